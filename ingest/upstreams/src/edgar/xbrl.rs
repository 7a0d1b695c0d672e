//! `edgar.xbrl`: what annual reports (10-K) of the companies of the crosswalk say about revenue and about customers.
//!
//! The list of a company's filings names each report and its main document. The instance of the report, which has its facts, is `{document}_htm.xml` in
//! the same folder; the label file next to it says what the company calls its customers, and is requested if the instance names any. A report never
//! changes, so it is read once; an amendment is a report of its own. Which fact is the revenue from the government is decided later, from the facts.
//!
//! Not read on purpose: the API of company facts, which has no facts about customers, and the text of the report.

use std::collections::HashSet;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::company_facts::{CompanyFact, REPORT};
use schemas::facts::filings::base_form;
use serde::{Deserialize, Serialize};
use texts::crosswalk;

use super::instance::{Instance, labels};
use super::{XBRL, file, is_missing, is_page, submissions};
use crate::{Answer, Observation, Page, Reject, Request, Stream, UpstreamError, json, text, xml};

/// The forms of annual reports, without the `/A` of an amendment.
const FORMS: [&str; 2] = ["10-K", "10-KT"];
/// How far back reports are read: sums of three years, compared with those of the years before.
const REPORT_DAYS: i64 = 2_200;
/// The most reports that are read of a company.
const REPORTS_MAX: usize = 24;

/// An annual report that a list names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Filing {
    accession: String,
    form: String,
    filed: String,
    /// Last day of the fiscal year, as the list has it.
    period: String,
    /// The main document.
    document: String,
    company: String,
}

impl Filing {
    fn key(&self) -> String {
        format!("{XBRL}/{}", self.accession)
    }

    /// The name of the main document without its extension; `None` if it is no HTML document, which has no instance.
    fn stem(&self) -> Option<&str> {
        let (stem, extension) = self.document.rsplit_once('.')?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (matches!(extension, "htm" | "html") && !stem.is_empty() && stem.bytes().all(is_plain)).then_some(stem)
    }

    fn request(&self, cik: &str, suffix: &str) -> Request {
        let (cik, plain) = (cik.trim_start_matches('0'), self.accession.replace('-', ""));
        file(format!("/Archives/edgar/data/{cik}/{plain}/{}{suffix}", self.stem().unwrap_or("none")))
    }
}

/// The position of a sync run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The numbers of the companies that are still to be read; the current one is the first.
    companies: Vec<String>,
    /// Whether the reports were just listed, so that it is still unknown which of them are new.
    #[serde(default)]
    fresh: bool,
    /// The reports to request now.
    #[serde(default)]
    pending: Vec<Filing>,
    /// The first of them as far as its instance shows it, if its labels are requested now.
    #[serde(default)]
    report: Option<Box<CompanyFact>>,
}

impl Cursor {
    /// The start of a run: the companies of the crosswalk, or the simulated ones alone.
    pub(super) fn new(is_simulated: bool) -> Self {
        let own = crosswalk::companies(is_simulated);
        Self { companies: own.map(|company| company.cik.clone()).collect(), fresh: false, pending: Vec::new(), report: None }
    }

    fn cik(&self) -> &str {
        self.companies.first().map_or("", String::as_str)
    }

    pub(super) fn request(&self) -> Request {
        match self.pending.first() {
            None => submissions::request(self.cik()),
            Some(filing) if self.report.is_some() => filing.request(self.cik(), "_lab.xml"),
            Some(filing) => filing.request(self.cik(), "_htm.xml"),
        }
    }

    /// The keys under which the reports that were just listed may be known, as read or as rejected.
    pub(super) fn depends_on(&self) -> Vec<String> {
        self.pending.iter().filter(|_| self.fresh).map(Filing::key).collect()
    }

    /// Removes the known reports from those that were just listed.
    pub(super) fn narrow(mut self, known: &HashSet<String>) -> Option<Self> {
        if self.fresh {
            self.fresh = false;
            self.pending.retain(|filing| !known.contains(&filing.key()));
            if self.pending.is_empty() {
                return self.next_company();
            }
        }
        Some(self)
    }

    /// The cursor after the first pending report.
    fn advance(mut self) -> Option<Self> {
        (self.fresh, self.report) = (false, None);
        if !self.pending.is_empty() {
            self.pending.remove(0);
        }
        if self.pending.is_empty() { self.next_company() } else { Some(self) }
    }

    fn next_company(mut self) -> Option<Self> {
        if !self.companies.is_empty() {
            self.companies.remove(0);
        }
        (!self.companies.is_empty()).then(|| Self { fresh: false, pending: Vec::new(), report: None, ..self })
    }
}

pub(super) fn map(stream: &Stream, mut cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let Some(filing) = cursor.pending.first().cloned() else { return listed(stream, cursor, answer, today) };
    let is_missing = is_missing(stream.name, answer)?;
    let source = xml::decoded(&answer.body);
    if !is_missing && is_page(&source) {
        return Err(json::later(stream.name, "the response is an HTML page, not a file of a filing"));
    }
    let mut page = Page::default();
    if let Some(report) = cursor.report.take() {
        let report = labelled(*report, &source, is_missing, &mut page);
        page.observations.push(observed(report));
    } else if is_missing || filing.stem().is_none() {
        page.observations.push(observed(report_of(stream, cursor.cik(), &filing)));
    } else {
        match Instance::read(&source) {
            Ok(instance) => {
                let report = CompanyFact {
                    file: format!("{}_htm.xml", filing.stem().unwrap_or_default()),
                    fiscal_year: instance.fiscal_year.unwrap_or_else(|| year_of(&filing.period)),
                    end: if instance.period_end.is_empty() { filing.period.clone() } else { instance.period_end },
                    facts: instance.facts,
                    left_out: instance.left_out,
                    ..report_of(stream, cursor.cik(), &filing)
                };
                if instance.has_customers {
                    cursor.report = Some(Box::new(report));
                    return Ok(Page { next: Some(json::write_cursor(cursor)), ..page });
                }
                page.observations.push(observed(report));
            }
            Err(reason) => page.rejects.push(Reject { reference: filing.accession, reason, raw: answer.body.to_vec() }),
        }
    }
    page.next = cursor.advance().map(json::write_cursor);
    Ok(page)
}

/// Reads the list of a company's filings, which has no records and only names the next requests.
fn listed(stream: &Stream, mut cursor: Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let body = String::from_utf8_lossy(&answer.body);
    if answer.status == 200 && body.trim_start().starts_with('<') {
        // A rejected instance that is mapped again on its own does not say which filing it belongs to.
        let reason = "the filing of the instance is not known".to_owned();
        let reject = Reject { reference: "an instance".to_owned(), reason, raw: answer.body.to_vec() };
        return Ok(Page { rejects: vec![reject], ..Page::default() });
    }
    if is_missing(stream.name, answer)? {
        let warnings = vec![format!("there is no list of filings of {}", cursor.cik())];
        return Ok(Page { next: cursor.next_company().map(json::write_cursor), warnings, ..Page::default() });
    }
    let filer: submissions::Filer<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
    let from = today.saturating_sub(REPORT_DAYS.days());
    let page = filer.page(stream, Some(cursor.cik()), from, today, |form| FORMS.contains(&base_form(form)))?;
    let filings = page.observations.into_iter().filter_map(|observation| match observation.data {
        FactData::Filing(filing) => Some(Filing {
            accession: filing.accession,
            form: filing.form,
            filed: filing.filing_date,
            period: filing.report_date,
            document: filing.primary_document,
            company: filing.company,
        }),
        _ => None,
    });
    cursor.pending = filings.take(REPORTS_MAX).collect();
    cursor.fresh = true;
    let next = if cursor.pending.is_empty() { cursor.next_company() } else { Some(cursor) };
    Ok(Page { next: next.map(json::write_cursor), rejects: page.rejects, ..Page::default() })
}

/// Adds the labels of its customers to the facts of a report.
fn labelled(mut report: CompanyFact, source: &str, is_missing: bool, page: &mut Page) -> CompanyFact {
    // Older reports have none: their labels stay empty.
    if is_missing {
        return report;
    }
    match labels(source) {
        Ok(labels) => {
            for fact in &mut report.facts {
                let members = fact.dimensions().filter(|(axis, _)| axis.ends_with(":MajorCustomersAxis"));
                let found: Vec<&str> =
                    members.filter_map(|(_, member)| labels.get(&member.replace(':', "_"))).map(String::as_str).collect();
                fact.label = found.join(" | ");
            }
        }
        Err(reason) => page.warnings.push(format!("{}: the label file cannot be read: {reason}", report.accession)),
    }
    report
}

/// What the list says of a report.
fn report_of(stream: &Stream, cik: &str, filing: &Filing) -> CompanyFact {
    CompanyFact {
        stream: stream.name.to_owned(),
        kind: REPORT.to_owned(),
        cik: cik.to_owned(),
        company: text::clean(&filing.company),
        accession: filing.accession.clone(),
        form: filing.form.clone(),
        filed: filing.filed.clone(),
        fiscal_year: year_of(&filing.period),
        end: filing.period.clone(),
        ..CompanyFact::default()
    }
}

fn observed(report: CompanyFact) -> Observation {
    Observation::new(format!("{XBRL}/{}", report.accession), FactData::CompanyFact(Box::new(report)))
}

fn year_of(day: &str) -> i64 {
    day.get(..4).and_then(|year| year.parse().ok()).unwrap_or_default()
}
