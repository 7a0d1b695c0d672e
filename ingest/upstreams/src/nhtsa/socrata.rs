//! The Socrata copy: one row per campaign, without empty fields.

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;
use serde::{Deserialize, Serialize};

use super::{SITE, campaign, manufacturers_number};
use crate::drift::FieldCounts;
use crate::json::{self, Field, Object, Records};
use crate::{Answer, Observation, Page, Request, Settings, Stream, UpstreamError, drift, socrata, text};

/// The position of a sync run. The flat files need one request each and do not use it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Cursor {
    /// The first day of the campaigns to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<Date>,
    /// How many campaigns were read so far.
    pub(super) offset: usize,
    /// The first campaign of the page before.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) first: String,
}

const ORIGIN: &str = "https://data.transportation.gov";
/// Rows per page.
const LIMIT: usize = 1_000;
/// Legal forms at the end of a firm's name, without punctuation.
const INCORPORATIONS: &[&str] = &["inc", "llc", "l.l.c", "incorporated"];

pub(super) fn request(cursor: &Cursor, settings: &Settings) -> Request {
    let (limit, offset) = (LIMIT.to_string(), cursor.offset.to_string());
    let since = cursor.from.map(|from| format!("report_received_date >= '{from}T00:00:00'"));
    let mut parameters = vec![("$order", "report_received_date DESC, nhtsa_id"), ("$limit", &limit), ("$offset", &offset)];
    if let Some(since) = &since {
        parameters.insert(0, ("$where", since));
    }
    socrata::request(ORIGIN, "6axg-epim", &parameters, settings)
}

pub(super) fn map(stream: &Stream, cursor: &Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let mut warnings = Vec::new();
    let body = socrata::rows(stream.name, answer, &mut warnings)?;
    let records = Records::of_array(stream.name, &body)?;
    let (mut first, mut outside, mut fields) = (None, 0, FieldCounts::default());
    let (observations, rejects) = records.map(stream.name, EXPECTED, |row: &Row<'_>| {
        first.get_or_insert_with(|| row.nhtsa_id.clean());
        let is_before = |from| text::date(row.report_received_date.text()).is_some_and(|day| day < from);
        outside += usize::from(cursor.from.is_some_and(is_before));
        row.count(&mut fields);
        observe(stream, row, today)
    })?;
    warnings.extend(drift::outside(stream.name, "$where", outside, records.len())?);
    let first = first.unwrap_or_default();
    if cursor.offset > 0 && !first.is_empty() && first == cursor.first {
        let reason = format!("ignored by the upstream: the page at {} begins like the one before, with {first}", cursor.offset);
        return Err(UpstreamError::Stop { stream: stream.name, field: "$offset".to_owned(), reason });
    }
    let next = (records.len() >= LIMIT).then(|| Cursor { offset: cursor.offset.saturating_add(records.len()), first, ..cursor.clone() });
    Ok(Page { observations, rejects, next: next.map(json::write_cursor), warnings, fields, ..Page::default() })
}

type FieldCheck = fn(&Row<'_>) -> bool;

const EXPECTED: &[(&str, FieldCheck)] = &[
    ("nhtsa_id", |row| row.nhtsa_id.is_text()),
    ("report_received_date", |row| row.report_received_date.is_text()),
    ("manufacturer", |row| row.manufacturer.is_text()),
    ("subject", |row| row.subject.is_text()),
    ("recall_type", |row| row.recall_type.is_text()),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    nhtsa_id: Field<'a>,
    #[serde(borrow)]
    report_received_date: Field<'a>,
    #[serde(borrow)]
    recall_link: Object<Link<'a>>,
    #[serde(borrow)]
    manufacturer: Field<'a>,
    #[serde(borrow)]
    subject: Field<'a>,
    #[serde(borrow)]
    component: Field<'a>,
    #[serde(borrow)]
    mfr_campaign_number: Field<'a>,
    #[serde(borrow)]
    recall_type: Field<'a>,
    #[serde(borrow)]
    potentially_affected: Field<'a>,
    #[serde(borrow)]
    defect_summary: Field<'a>,
    #[serde(borrow)]
    consequence_summary: Field<'a>,
    #[serde(borrow)]
    corrective_action: Field<'a>,
    #[serde(borrow)]
    fire_risk_when_parked: Field<'a>,
    #[serde(borrow)]
    do_not_drive: Field<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Link<'a> {
    #[serde(borrow)]
    url: Field<'a>,
}

impl Row<'_> {
    /// Counts the mapped fields.
    fn count(&self, fields: &mut FieldCounts) {
        let link = self.recall_link.0.as_ref();
        fields.count([
            ("report_received_date", self.report_received_date.is_filled()),
            ("manufacturer", self.manufacturer.is_filled()),
            ("subject", self.subject.is_filled()),
            ("component", self.component.is_filled()),
            ("mfr_campaign_number", self.mfr_campaign_number.is_filled()),
            ("recall_type", self.recall_type.is_filled()),
            ("potentially_affected", self.potentially_affected.is_filled()),
            ("defect_summary", self.defect_summary.is_filled()),
            ("consequence_summary", self.consequence_summary.is_filled()),
            ("corrective_action", self.corrective_action.is_filled()),
            ("fire_risk_when_parked", self.fire_risk_when_parked.is_filled()),
            ("do_not_drive", self.do_not_drive.is_filled()),
            ("recall_link.url", link.is_some_and(|link| link.url.is_filled())),
        ]);
    }
}

fn observe(stream: &Stream, row: &Row<'_>, today: Date) -> Result<Observation, (String, String)> {
    let raw = row.nhtsa_id.clean();
    let Some(number) = campaign(&raw) else {
        return Err((text::cut(raw, 100), "nhtsa_id is absent or not a campaign number".to_owned()));
    };
    let (component, manufacturer) = (row.component.clean(), row.manufacturer.clean());
    let subject = Some(row.subject.clean()).filter(|subject| !subject.is_empty()).unwrap_or_else(|| component.clone());
    let title = match (subject.is_empty(), manufacturer.is_empty()) {
        (false, false) => format!("{manufacturer}: {subject}"),
        _ => format!("{manufacturer}{subject}"),
    };
    let hazard = Some(row.consequence_summary.clean()).filter(|text| !text.is_empty());
    let link = row.recall_link.0.as_ref().map(|link| text::https(link.url.text(), SITE)).filter(|url| !url.is_empty());
    let data = RecallFact {
        stream: stream.name.to_owned(),
        agency: "NHTSA".to_owned(),
        aliases: manufacturers_number(row.mfr_campaign_number.text()).into_iter().collect(),
        lang: "en".to_owned(),
        title,
        brand: without_incorporation(text::doing_business_as(&manufacturer).as_ref().unwrap_or(&manufacturer)),
        hazard: hazard.unwrap_or_else(|| row.defect_summary.clean()),
        date: text::plausible_date(row.report_received_date.text(), today),
        url: link.unwrap_or_else(|| format!("{SITE}/recalls?nhtsaId={number}")),
        remedy: row.corrective_action.clean(),
        product_type: row.recall_type.clean(),
        products: text::cut(text::join_distinct([component, subject], "; "), 2_000),
        units: row.potentially_affected.clean(),
        do_not_drive: row.do_not_drive.flag(),
        park_outside: row.fire_risk_when_parked.flag(),
        number: number.clone(),
        ..RecallFact::default()
    };
    Ok(Observation::new(format!("{}/{number}", stream.name), FactData::Recall(Box::new(data))))
}

/// Removes the legal form: `Mercedes-Benz USA, LLC` becomes `Mercedes-Benz USA`, `Chrysler (FCA US, LLC)` becomes `Chrysler (FCA US)`.
fn without_incorporation(firm: &str) -> String {
    let (inner, close) = match firm.strip_suffix(')') {
        Some(inner) if inner.contains('(') => (inner, ")"),
        _ => (firm, ""),
    };
    let bare = inner.trim_end_matches(['.', ',', ' ']);
    let stripped = bare.rsplit_once([' ', ',']).filter(|(_, last)| INCORPORATIONS.iter().any(|ending| ending.eq_ignore_ascii_case(last)));
    match stripped {
        Some((name, _)) if !name.is_empty() => format!("{}{close}", name.trim_end_matches([',', ' '])),
        _ => firm.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only the legal form is removed from a firm's name.
    #[test]
    fn strips_incorporations() {
        for (firm, brand) in [
            ("Mercedes-Benz USA, LLC", "Mercedes-Benz USA"),
            ("Chrysler (FCA US, LLC)", "Chrysler (FCA US)"),
            ("Tesla, Inc.", "Tesla"),
            ("Forest River, L.L.C.", "Forest River"),
            ("Ford Motor Company", "Ford Motor Company"),
            ("Spinc", "Spinc"),
            ("LLC", "LLC"),
            ("", ""),
        ] {
            assert_eq!(without_incorporation(firm), brand);
        }
    }
}
