//! Enforcement reports of the Food and Drug Administration through openFDA: food, drug and device, one door each.
//!
//! Read in windows of one year of `report_date`, since skipping ends at 25,000 records without a word. Within a window the
//! server's `search_after` is followed, of which only the value is taken from the `Link` header, never its address. There is no
//! last-modified field: status and class change in place, and only reading everything again finds that.
//!
//! "No match" is a 404 with a certain body; it is an empty window, also where `Link` promised more.

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;
use schemas::hash::{Hash32, hex};
use schemas::position::UpstreamCursor;
use schemas::topics::RECALLS;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::cpsc::{JSON_MEDIA_TYPES, doing_business_as};
use crate::json::{self, Field, Object, Records};
use crate::{Answer, Door, Manifest, Observation, Page, Request, Settings, Upstream, UpstreamError, Window, drift, text};

const ORIGIN: &str = "https://api.fda.gov";
const FIRST_DAY: Date = Date::constant(2004, 1, 1);
/// Records a page: the most the server gives.
const LIMIT: usize = 1_000;
/// The server skips no further.
const SKIP_MAX: usize = 25_000;
/// A longer cursor of the server's is not taken.
const SEARCH_AFTER_BYTES_MAX: usize = 2_000;
/// A firm begins a recall at most so long before or after its report.
const INITIATION_YEARS_MAX: i16 = 20;
const TITLE_CHARS_MAX: usize = 120;
const PRODUCTS_CHARS_MAX: usize = 2_000;

const fn door(name: &'static str) -> Door {
    Door {
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
    doors: &[door("openfda.food"), door("openfda.drug"), door("openfda.device")],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct OpenFda;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// The days this request asks for.
    from: Date,
    to: Date,
    /// The last day of the run.
    stop: Date,
    /// Where the server's own cursor stands, still encoded as the server wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search_after: Option<String>,
    /// How many records to skip where there is no such cursor.
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

    /// The first half of this window; the second follows it by itself.
    fn halved(&self) -> Option<Self> {
        let days = (self.to - self.from).get_days();
        (days > 0).then(|| Self::window(self.from, self.from.saturating_add((days / 2).days()), self.stop))
    }
}

impl Upstream for OpenFda {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _door: &Door, window: &Window, _settings: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor::year(window.from.unwrap_or(FIRST_DAY).min(window.to), window.to))
    }

    fn request(&self, door: &Door, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(door.name, cursor)?;
        let endpoint = door.name.rsplit('.').next().unwrap_or(door.name);
        let compact = |day: Date| day.strftime("%Y%m%d").to_string();
        // `+` means a space here and must stay as it is: `%2B` makes the server fail.
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
        Ok(Request {
            origin: ORIGIN.to_owned(),
            path,
            body: None,
            headers: vec![("accept", "application/json".to_owned())],
            accepts_statuses: &[404],
            media_types: JSON_MEDIA_TYPES,
            conditional: false,
            wall: None,
        })
    }

    fn map(&self, door: &Door, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(door.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let Some((total, records)) = read(door.name, answer.status, &body)? else {
            if cursor.seen > 0 {
                // The server sometimes promises a page after the last; it may also have lost some.
                warnings.push(format!("the window {} to {} ended early, after {} records", cursor.from, cursor.to, cursor.seen));
            }
            return Ok(Page { next: cursor.next_window().map(json::write_cursor), warnings, ..Page::default() });
        };
        let mut outside = 0;
        let (observations, rejects) = records.map(door.name, EXPECTED, |report: &Report<'_>| {
            let day = text::date(report.report_date.text());
            outside += usize::from(day.is_some_and(|day| day < cursor.from || day > cursor.to));
            observe(door, report, today)
        })?;
        warnings.extend(drift::outside(door.name, "search=report_date", outside, records.len())?);
        let next = follow(door.name, &cursor, records.len(), total, answer.link.as_deref(), &mut warnings)?;
        Ok(Page { observations, rejects, next: next.map(json::write_cursor), through: None, warnings })
    }

    fn single(&self, _door: &Door, raw: &[u8]) -> Vec<u8> {
        [br#"{"meta":{"results":{"skip":0,"limit":1000,"total":1}},"results":["#, raw, b"]}"].concat()
    }
}

/// Where to go on after a page of so many records.
fn follow(
    door: &'static str,
    cursor: &Cursor,
    read: usize,
    total: Option<usize>,
    link: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Option<Cursor>, UpstreamError> {
    let seen = cursor.seen.saturating_add(read);
    let all_seen = total.is_some_and(|total| seen >= total);
    if read < LIMIT || all_seen {
        if let Some(total) = total.filter(|_| !all_seen) {
            warnings.push(format!("the window {} to {} holds {total} records by the answer, {seen} came", cursor.from, cursor.to));
        }
        return Ok(cursor.next_window());
    }
    let after = link.and_then(search_after).filter(|after| Some(after) != cursor.search_after.as_ref());
    if after.is_some() {
        return Ok(Some(Cursor { search_after: after, skip: 0, seen, ..cursor.clone() }));
    }
    if total.is_some_and(|total| total > SKIP_MAX) || seen > SKIP_MAX {
        let Some(half) = cursor.halved() else {
            let reason = format!("more than {SKIP_MAX} records on {} and no search_after to go on with", cursor.from);
            return Err(UpstreamError::Stop { door, field: "skip".to_owned(), reason });
        };
        warnings.push(format!("the window {} to {} is too large to page through and is read in halves", cursor.from, cursor.to));
        return Ok(Some(half));
    }
    Ok(Some(Cursor { search_after: None, skip: seen, seen, ..cursor.clone() }))
}

/// The value of `search_after` in the `rel="next"` part of a `Link` header, as it stands there.
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

/// The total, where the answer names one, and the records.
type Reports<'a> = (Option<usize>, Records<'a>);

/// The total and the records; `None` when the server says that nothing matches.
fn read<'a>(door: &'static str, status: u16, body: &'a str) -> Result<Option<Reports<'a>>, UpstreamError> {
    let not_json = |error| if status == 404 { later_404(door) } else { json::not_json(door, body, &error) };
    let Envelope { meta, results, error } = serde_json::from_str(body).map_err(not_json)?;
    if let Object(Some(fault)) = error {
        if fault.code.text() == "NOT_FOUND" {
            return Ok(None);
        }
        let words = text::cut(format!("{} {}", fault.code.clean(), fault.message.clean()), 200);
        return Err(json::later(door, format!("the server says: {words}")));
    }
    match results {
        _ if status == 404 => Err(later_404(door)),
        None => Err(json::later(door, "an answer without results")),
        Some(results) => {
            let total = meta.0.and_then(|meta| meta.results.0).and_then(|counts| counts.total.text().parse().ok());
            Ok(Some((total, Records::of_list(results))))
        }
    }
}

fn later_404(door: &'static str) -> UpstreamError {
    json::later(door, "404 without the words that mean no match: is the path still right?")
}

type Holds = fn(&Report<'_>) -> bool;

const EXPECTED: &[(&str, Holds)] = &[
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

fn observe(door: &Door, report: &Report<'_>, today: Date) -> Result<Observation, (String, String)> {
    let (number, event) = (report.recall_number.clean(), report.event_id.clean());
    let description = report.product_description.clean();
    // The name a report goes by until it has a number. Lower case, so that a change of spelling alone does not unlink them.
    let unnumbered = (!event.is_empty()).then(|| {
        let hash = Hash32::of(description.to_lowercase().as_bytes());
        format!("EVT-{event}-{}", hex(&hash.0[..4]))
    });
    let (number, replaces) = match (number.is_empty(), unnumbered) {
        (false, Some(unnumbered)) => (number, vec![format!("{}/{unnumbered}", door.name)]),
        (false, None) => (number, Vec::new()),
        (true, Some(unnumbered)) => (unnumbered, Vec::new()),
        (true, None) => return Err((text::cut(description, 100), "recall_number and event_id are both absent or empty".to_owned())),
    };
    if number.len() > 64 || number.contains(['/', ' ']) {
        return Err((text::cut(number, 100), "recall_number is no number".to_owned()));
    }
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
        stream: door.name.to_owned(),
        agency: "FDA".to_owned(),
        number: number.clone(),
        lang: "en".to_owned(),
        title: text::cut(title, TITLE_CHARS_MAX),
        brand: brand.or_else(|| doing_business_as(&firm)).unwrap_or(firm),
        hazard: report.reason_for_recall.clean(),
        url: if event.is_empty() {
            String::new()
        } else {
            let event: String = form_urlencoded::byte_serialize(event.as_bytes()).collect();
            format!("https://www.accessdata.fda.gov/scripts/ires/index.cfm?Event={event}")
        },
        product_type: product_type.unwrap_or_else(|| kind_of(door).to_owned()),
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
    Ok(Observation { key: format!("{}/{number}", door.name), data: FactData::Recall(Box::new(data)), replaces })
}

fn kind_of(door: &Door) -> &'static str {
    match door.name {
        "openfda.drug" => "Drugs",
        "openfda.device" => "Devices",
        _ => "Food",
    }
}

/// The date and the day of initiation. Reports hold mistyped days (`02121207`), which are left out rather than guessed.
fn dates(report: &Report<'_>, today: Date) -> (String, String) {
    let believable = |field: &Field<'_>| text::date(field.text()).filter(|day| text::is_past(*day, today));
    let reported = believable(&report.report_date);
    // Without a believable report the earliest one there is stands in: nothing was begun long before that.
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

    /// Proves that of a Link header only a harmless value is taken, and only that of the next page.
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
