//! Enforcement reports of the Food and Drug Administration through openFDA: food, drug and device, one stream each.
//!
//! Reports are read in windows of one year of `report_date`, because the server silently ends paging by offset at 25,000 records. Within a
//! window the server's `search_after` is used. Only its value is taken from the `Link` header, never the address. There is no modification
//! date: status and class change in place, and only a full read finds these changes.
//!
//! "No match" is a 404 with a known body. It means an empty window, even if `Link` announced another page.

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use proofs::hash::{Hash32, hex};
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;
use schemas::position::UpstreamCursor;
use schemas::topics::RECALLS;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::drift::FieldCounts;
use crate::json::{self, Field, Object, Records};
use crate::{
    Answer, Incomplete, Licence, Manifest, Observation, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, drift, text,
};

const ORIGIN: &str = "https://api.fda.gov";
const FIRST_DAY: Date = Date::constant(2004, 1, 1);
/// Records per page: the server's maximum.
const LIMIT: usize = 1_000;
/// The largest offset that the server accepts.
const SKIP_MAX: usize = 25_000;
/// A longer server cursor is refused.
const SEARCH_AFTER_BYTES_MAX: usize = 2_000;
/// A firm initiates a recall at most this long before or after its report.
const INITIATION_YEARS_MAX: i16 = 20;
const TITLE_CHARS_MAX: usize = 120;
const PRODUCTS_CHARS_MAX: usize = 2_000;

const fn stream(name: &'static str) -> Stream {
    Stream {
        name,
        topic: &RECALLS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 64 << 20,
        answer_timeout: Duration::from_secs(90),
    }
}

static MANIFEST: Manifest = Manifest {
    name: "openfda",
    licence: Licence { terms: Licence::CC0, publisher: "Food and Drug Administration" },
    streams: &[stream("openfda.food"), stream("openfda.drug"), stream("openfda.device")],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct OpenFda;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// The days that this request asks for.
    from: Date,
    to: Date,
    /// The last day of the sync run.
    stop: Date,
    /// The server's own cursor, encoded as the server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search_after: Option<String>,
    /// How many records to skip if there is no server cursor.
    #[serde(default)]
    skip: usize,
    /// How many records of this window were read.
    #[serde(default)]
    seen: usize,
}

impl Cursor {
    fn window(from: Date, to: Date, stop: Date) -> Self {
        Self { from, to, stop, search_after: None, skip: 0, seen: 0 }
    }

    fn year(from: Date, stop: Date) -> Self {
        let last = Date::new(from.year(), 12, 31).unwrap_or(Date::MAX);
        Self::window(from, last.min(stop), stop)
    }

    fn next_window(&self) -> Option<Self> {
        (self.to < self.stop).then(|| Self::year(self.to.saturating_add(1.day()), self.stop))
    }

    /// Returns the first half of this window. The cursor continues with the second half.
    fn halved(&self) -> Option<Self> {
        let days = (self.to - self.from).get_days();
        (days > 0).then(|| Self::window(self.from, self.from.saturating_add((days / 2).days()), self.stop))
    }
}

impl Upstream for OpenFda {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, window: &Window, _settings: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor::year(window.from.unwrap_or(FIRST_DAY).min(window.to), window.to))
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let endpoint = stream.name.rsplit('.').next().unwrap_or(stream.name);
        let compact = |day: Date| day.strftime("%Y%m%d").to_string();
        // `+` means a space here and must not be escaped: `%2B` makes the server fail.
        let mut path = format!(
            "/{endpoint}/enforcement.json?search=report_date:[{}+TO+{}]&sort=report_date:asc&limit={LIMIT}",
            compact(cursor.from),
            compact(cursor.to)
        );
        if let Some(after) = &cursor.search_after {
            path.push_str("&search_after=");
            path.push_str(after);
        } else if cursor.skip > 0 {
            path.push_str(&format!("&skip={}", cursor.skip));
        }
        if let Some(key) = settings.api_key.as_deref().filter(|key| !key.is_empty()) {
            path.push_str("&api_key=");
            path.extend(form_urlencoded::byte_serialize(key.as_bytes()));
        }
        Ok(Request { accepts_statuses: &[404], ..json::request(ORIGIN, path) })
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let Some((total, records)) = read(stream.name, answer.status, &body)? else {
            if cursor.seen > 0 {
                // The server sometimes announces a page after the last one; it may also have lost records.
                warnings.push(format!("the window {} to {} ended early, after {} records", cursor.from, cursor.to, cursor.seen));
            }
            return Ok(Page { next: cursor.next_window().map(json::write_cursor), warnings, ..Page::default() });
        };
        let (mut outside, mut fields) = (0, FieldCounts::default());
        let (observations, rejects) = records.map(stream.name, EXPECTED, |report: &Report<'_>| {
            let day = text::date(report.report_date.text());
            outside += usize::from(day.is_some_and(|day| day < cursor.from || day > cursor.to));
            report.count(&mut fields);
            observe(stream, report, today)
        })?;
        warnings.extend(drift::outside(stream.name, "search=report_date", outside, records.len())?);
        let mut page = Page { observations, rejects, warnings, fields, ..Page::default() };
        page.next = follow(&cursor, records.len(), total, answer.link.as_deref(), &mut page).map(json::write_cursor);
        Ok(page)
    }

    fn single(&self, _stream: &Stream, raw: &[u8]) -> Vec<u8> {
        [br#"{"meta":{"results":{"skip":0,"limit":1000,"total":1}},"results":["#, raw, b"]}"].concat()
    }
}

/// Determines the cursor after a page with this many records. Adds warnings, and what stays incomplete, to the page.
fn follow(cursor: &Cursor, read: usize, total: Option<usize>, link: Option<&str>, page: &mut Page) -> Option<Cursor> {
    let seen = cursor.seen.saturating_add(read);
    let all_seen = total.is_some_and(|total| seen >= total);
    if read < LIMIT || all_seen {
        if let Some(total) = total.filter(|_| !all_seen) {
            let (from, to) = (cursor.from, cursor.to);
            page.warnings.push(format!("the upstream counts {total} records in the window {from} to {to} but sent {seen}"));
        }
        return cursor.next_window();
    }
    let after = link.and_then(search_after).filter(|after| Some(after) != cursor.search_after.as_ref());
    if after.is_some() {
        return Some(Cursor { search_after: after, skip: 0, seen, ..cursor.clone() });
    }
    if total.is_some_and(|total| total > SKIP_MAX) || seen > SKIP_MAX {
        if let Some(half) = cursor.halved() {
            page.warnings.push(format!("the window {} to {} is too large to page through and is read in halves", cursor.from, cursor.to));
            return Some(half);
        }
        if seen > SKIP_MAX {
            let what = format!("more than {SKIP_MAX} records on {} and no search_after to continue", cursor.from);
            page.incomplete = Some(Incomplete { what, from: Some(cursor.from) });
            return cursor.next_window();
        }
    }
    Some(Cursor { search_after: None, skip: seen, seen, ..cursor.clone() })
}

/// Returns the value of `search_after` in the `rel="next"` part of a `Link` header, without decoding it.
fn search_after(link: &str) -> Option<String> {
    let part =
        link.split(",<").flat_map(|part| part.split(", <")).find(|part| part.contains("rel=\"next\"") || part.contains("rel=next"))?;
    let address = part.trim_start_matches('<').split('>').next()?;
    let value = address.split(['?', '&']).find_map(|pair| pair.strip_prefix("search_after="))?;
    let fits = !value.is_empty() && value.len() <= SEARCH_AFTER_BYTES_MAX;
    (fits && value.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\\')))
        .then(|| value.to_owned())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(borrow)]
    meta: Object<Meta<'a>>,
    #[serde(borrow)]
    results: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    error: Object<Fault<'a>>,
}
#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta<'a> {
    #[serde(borrow)]
    results: Object<Counts<'a>>,
}
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts<'a> {
    #[serde(borrow)]
    total: Field<'a>,
}
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fault<'a> {
    #[serde(borrow)]
    code: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}

/// The announced total, if there is one, and the records.
type Reports<'a> = (Option<usize>, Records<'a>);

/// Reads the total and the records; `None` when the server reports no match.
fn read<'a>(stream: &'static str, status: u16, body: &'a str) -> Result<Option<Reports<'a>>, UpstreamError> {
    let not_json = |error| if status == 404 { later_404(stream) } else { json::not_json(stream, body, &error) };
    let Envelope { meta, results, error } = serde_json::from_str(body).map_err(not_json)?;
    if let Object(Some(fault)) = error {
        if fault.code.text() == "NOT_FOUND" {
            return Ok(None);
        }
        let words = text::cut(format!("{} {}", fault.code.clean(), fault.message.clean()), 200);
        return Err(json::later(stream, format!("the server says: {words}")));
    }
    match results {
        _ if status == 404 => Err(later_404(stream)),
        None => Err(json::later(stream, "an answer without results")),
        Some(results) => {
            let total = meta.0.and_then(|meta| meta.results.0).and_then(|counts| counts.total.text().parse().ok());
            Ok(Some((total, Records::of_list(results))))
        }
    }
}

fn later_404(stream: &'static str) -> UpstreamError {
    json::later(stream, "status 404 without the text that means no match: has the path changed?")
}

type FieldCheck = fn(&Report<'_>) -> bool;

const EXPECTED: &[(&str, FieldCheck)] = &[
    ("recall_number", |report| report.recall_number.is_text()),
    ("event_id", |report| report.event_id.is_text()),
    ("status", |report| report.status.is_text()),
    ("classification", |report| report.classification.is_text()),
    ("product_type", |report| report.product_type.is_text()),
    ("report_date", |report| report.report_date.is_text()),
    ("recalling_firm", |report| report.recalling_firm.is_text()),
    ("product_description", |report| report.product_description.is_text()),
    ("reason_for_recall", |report| report.reason_for_recall.is_text()),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Report<'a> {
    #[serde(borrow)]
    recall_number: Field<'a>,
    #[serde(borrow)]
    event_id: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    classification: Field<'a>,
    #[serde(borrow)]
    product_type: Field<'a>,
    #[serde(borrow)]
    report_date: Field<'a>,
    #[serde(borrow)]
    recall_initiation_date: Field<'a>,
    #[serde(borrow)]
    recalling_firm: Field<'a>,
    #[serde(borrow)]
    distribution_pattern: Field<'a>,
    #[serde(borrow)]
    product_description: Field<'a>,
    #[serde(borrow)]
    product_quantity: Field<'a>,
    #[serde(borrow)]
    reason_for_recall: Field<'a>,
    #[serde(borrow)]
    openfda: Object<Names<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Names<'a> {
    #[serde(borrow)]
    brand_name: Field<'a>,
}

impl Report<'_> {
    /// Counts the mapped fields.
    fn count(&self, fields: &mut FieldCounts) {
        let names = self.openfda.0.as_ref();
        fields.count([
            ("recall_number", self.recall_number.is_filled()),
            ("event_id", self.event_id.is_filled()),
            ("status", self.status.is_filled()),
            ("classification", self.classification.is_filled()),
            ("product_type", self.product_type.is_filled()),
            ("report_date", self.report_date.is_filled()),
            ("recall_initiation_date", self.recall_initiation_date.is_filled()),
            ("recalling_firm", self.recalling_firm.is_filled()),
            ("distribution_pattern", self.distribution_pattern.is_filled()),
            ("product_description", self.product_description.is_filled()),
            ("product_quantity", self.product_quantity.is_filled()),
            ("reason_for_recall", self.reason_for_recall.is_filled()),
            ("openfda.brand_name", names.is_some_and(|names| names.brand_name.is_filled())),
        ]);
    }
}

fn observe(stream: &Stream, report: &Report<'_>, today: Date) -> Result<Observation, (String, String)> {
    let (number, event) = (report.recall_number.clean(), report.event_id.clean());
    let description = report.product_description.clean();
    // The provisional name of a report without a number. Lower case, so that a change of spelling alone keeps the link.
    let unnumbered = (!event.is_empty()).then(|| {
        let hash = Hash32::of(description.to_lowercase().as_bytes());
        format!("EVT-{event}-{}", hex(&hash.0[..4]))
    });
    let (number, replaces) = match (number.is_empty(), unnumbered) {
        (false, Some(unnumbered)) => (number, vec![format!("{}/{unnumbered}", stream.name)]),
        (false, None) => (number, Vec::new()),
        (true, Some(unnumbered)) => (unnumbered, Vec::new()),
        (true, None) => return Err((text::cut(description, 100), "recall_number and event_id are both absent or empty".to_owned())),
    };
    let printed = number;
    let Some(number) = text::number(&printed) else {
        return Err((text::cut(printed, 100), "recall_number is not a number".to_owned()));
    };
    let firm = Some(report.recalling_firm.clean()).filter(|firm| firm != "N/A").unwrap_or_default();
    let product = description.split(',').next().unwrap_or_default().trim();
    let title = match (firm.is_empty(), product.is_empty()) {
        (false, false) => format!("{firm}: {product}"),
        _ => format!("{firm}{product}"),
    };
    let brand = report.openfda.0.as_ref().map(|names| names.brand_name.clean()).filter(|brand| !brand.is_empty());
    let (date, initiated) = dates(report, today);
    let product_type = Some(report.product_type.clean()).filter(|kind| !kind.is_empty());
    let data = RecallFact {
        stream: stream.name.to_owned(),
        agency: "FDA".to_owned(),
        number: number.clone(),
        aliases: Some(printed).into_iter().filter(|printed| *printed != number).collect(),
        lang: "en".to_owned(),
        title: text::cut(title, TITLE_CHARS_MAX),
        brand: brand.or_else(|| text::doing_business_as(&firm)).unwrap_or(firm),
        hazard: report.reason_for_recall.clean(),
        url: if event.is_empty() {
            String::new()
        } else {
            let event: String = form_urlencoded::byte_serialize(event.as_bytes()).collect();
            format!("https://www.accessdata.fda.gov/scripts/ires/index.cfm?Event={event}")
        },
        product_type: product_type.unwrap_or_else(|| kind_of(stream).to_owned()),
        products: text::cut(description, PRODUCTS_CHARS_MAX),
        status: report.status.clean(),
        classification: report.classification.clean(),
        units: report.product_quantity.clean(),
        distribution: report.distribution_pattern.clean(),
        initiated: if initiated == date { String::new() } else { initiated },
        date,
        event_number: event,
        ..RecallFact::default()
    };
    let key = format!("{}/{number}", stream.name);
    Ok(Observation { replaces, ..Observation::new(key, FactData::Recall(Box::new(data))) })
}

fn kind_of(stream: &Stream) -> &'static str {
    match stream.name {
        "openfda.drug" => "Drugs",
        "openfda.device" => "Devices",
        _ => "Food",
    }
}

/// Returns the report date and the initiation date. Mistyped dates (`02121207`) are dropped rather than guessed.
fn dates(report: &Report<'_>, today: Date) -> (String, String) {
    let believable = |field: &Field<'_>| text::date(field.text()).filter(|day| text::is_past(*day, today));
    let reported = believable(&report.report_date);
    // Without a plausible report date the earliest possible one is used; no recall was initiated long before that.
    let near = |day: &Date| match reported {
        Some(reported) => (day.year() - reported.year()).abs() <= INITIATION_YEARS_MAX,
        None => day.year() >= FIRST_DAY.year() - INITIATION_YEARS_MAX,
    };
    let initiated = believable(&report.recall_initiation_date).filter(near);
    let written = |day: Option<Date>| day.map(|day| day.to_string()).unwrap_or_default();
    (written(reported.or(initiated)), written(initiated))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only a harmless value is taken from a `Link` header, and only that of the next page.
    #[test]
    fn takes_the_value_from_the_link_alone() {
        let next = r#"<https://evil.example/food/enforcement.json?limit=1000&search_after=0%3D1388%3B1%3Dab&sort=x>; rel="next""#;
        assert_eq!(search_after(next).as_deref(), Some("0%3D1388%3B1%3Dab"));
        assert_eq!(search_after(&format!("<https://a/?search_after=no>; rel=\"prev\", {next}")).as_deref(), Some("0%3D1388%3B1%3Dab"));
        for bad in ["", "garbage", r#"<https://a/?skip=1000>; rel="next""#, r#"<https://a/?search_after=>; rel="next""#] {
            assert_eq!(search_after(bad), None, "{bad}");
        }
        assert_eq!(search_after("<https://a/?search_after=a b>; rel=\"next\""), None);
        assert_eq!(search_after(&format!("<https://a/?search_after={}>; rel=next", "a".repeat(3_000))), None);
    }
}
