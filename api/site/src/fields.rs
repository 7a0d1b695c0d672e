//! Values of records as text and HTML. A text of a record is shown in `bdi`, so that its direction marks end with it.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use maud::{Markup, html};
use operation::RecordPage;
use serde_json::Value;

use crate::url::followed_host;

/// The most items of a list that are shown.
const ITEMS_MAX: usize = 40;
/// How deep objects within objects are shown as such. Below, their JSON is shown.
const DEPTH_MAX: usize = 3;
/// The longest text that is shown, in characters.
const TEXT_CHARS_MAX: usize = 12_000;
/// The longest text in the cell of a table, in characters.
const CELL_CHARS_MAX: usize = 160;
/// The longest link that is shown in a list of links, in characters.
const LINK_CHARS_MAX: usize = 60;
/// What is shown for a value that is unknown.
const UNKNOWN: &str = "–";
/// The title of a record that has none of the fields that can name it.
const UNNAMED: &str = "Record";

/// The value at a path of field names with dots.
pub(crate) fn at<'a>(record: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(record, |value, name| value.get(name)).unwrap_or(&Value::Null)
}

/// Whether a value says nothing.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The name of a field as words: `excludingAgency` is "Excluding agency".
pub(crate) fn label(path: &str) -> String {
    let name = path.rsplit('.').next().unwrap_or(path);
    let mut words = String::with_capacity(name.len() + 4);
    for (index, c) in name.chars().enumerate() {
        if index == 0 {
            words.extend(c.to_uppercase());
        } else if c.is_uppercase() {
            words.push(' ');
            words.extend(c.to_lowercase());
        } else {
            words.push(if c == '_' { ' ' } else { c });
        }
    }
    let shortened = words.strip_suffix(" cents").map(str::to_owned).unwrap_or(words);
    match shortened.as_str() {
        "Id" => "Id".to_owned(),
        "Url" => "Link".to_owned(),
        "Urls" => "Links".to_owned(),
        "Top label" => "Event".to_owned(),
        "Include backfill" => "Include late news".to_owned(),
        "Ad number" => "AD number".to_owned(),
        "Uei" | "Cik" | "Naics" | "Psc" | "Piid" | "Pin" | "Ata" | "Ic" => shortened.to_uppercase(),
        "Pi" => "Investigator".to_owned(),
        "R" => "Ratio to peers".to_owned(),
        "Dba" => "Trade name (DBA)".to_owned(),
        "Cage" => "CAGE code".to_owned(),
        "Org" => "Organisation".to_owned(),
        "Intl class" => "Classes".to_owned(),
        _ => shortened,
    }
}

/// The first title of a record that is not empty.
pub(crate) fn title(record: &Value, paths: &[&str]) -> String {
    given_title(record, paths).unwrap_or_else(|| UNNAMED.to_owned())
}

/// The first title of a record that is not empty, if there is one.
fn given_title(record: &Value, paths: &[&str]) -> Option<String> {
    let found = paths.iter().map(|path| at(record, path)).find(|value| !is_empty(value));
    found.map(|value| text(value, CELL_CHARS_MAX * 2))
}

/// What follows the title of a record where it is named outside of a table; empty if the record has none of these fields.
pub(crate) fn detail(record: &Value, page: &RecordPage) -> String {
    let parts = page.detail.iter().map(|(words, path)| (words, at(record, path))).filter(|(_, value)| !is_empty(value));
    parts.map(|(words, value)| format!("{words}{}", text(value, CELL_CHARS_MAX))).collect::<Vec<_>>().join(", ")
}

/// The title of a record and what follows it: "Northford: cutter drydock repairs".
pub(crate) fn name(record: &Value, page: &RecordPage) -> String {
    given_name(record, page).unwrap_or_else(|| UNNAMED.to_owned())
}

/// The words that name a record; `None` if it has none of the fields that can name one.
pub(crate) fn given_name(record: &Value, page: &RecordPage) -> Option<String> {
    let (title, detail) = (given_title(record, page.title), detail(record, page));
    match title {
        Some(title) if detail.is_empty() => Some(title),
        Some(title) => Some(format!("{title}: {detail}")),
        None => Some(detail).filter(|detail| !detail.is_empty()),
    }
}

/// A value as plain text of at most so many characters.
pub(crate) fn text(value: &Value, chars_max: usize) -> String {
    let whole = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(is_true) => if *is_true { "yes" } else { "no" }.to_owned(),
        Value::Array(items) => {
            let between = if items.iter().any(Value::is_object) { "; " } else { ", " };
            items.iter().take(ITEMS_MAX).map(|item| text(item, chars_max)).collect::<Vec<_>>().join(between)
        }
        Value::Object(fields) => {
            let name = ["name", "topic", "title", "label", "text", "make", "id"].iter().find_map(|name| fields.get(*name));
            let pairs = || {
                fields
                    .iter()
                    .filter(|(_, value)| !is_empty(value))
                    .map(|(name, value)| format!("{} {}", label(name), text(value, chars_max)))
            };
            name.map_or_else(|| pairs().collect::<Vec<_>>().join(" · "), |name| text(name, chars_max))
        }
        Value::Number(number) => number.to_string(),
    };
    cut(whole, chars_max)
}

/// A text of at most so many characters, with dots if it was longer.
fn cut(text: String, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}

/// A value in the cell of a table: short, and without a link.
pub(crate) fn cell(path: &str, value: &Value) -> Markup {
    match value {
        value if is_empty(value) => html! { span.soft { (UNKNOWN) } },
        Value::String(text) => day_or_time(text).unwrap_or_else(|| html! { bdi { (cut(text.clone(), CELL_CHARS_MAX)) } }),
        Value::Number(_) => number(path, value),
        Value::Object(fields) if fields.contains_key("from") && fields.contains_key("to") => {
            html! { (cell("", &fields["from"])) " – " (cell("", &fields["to"])) }
        }
        value => html! { bdi { (text(value, CELL_CHARS_MAX)) } },
    }
}

/// A value on the page of its record.
pub(crate) fn whole(path: &str, value: &Value) -> Markup {
    nested(path, value, 0)
}

fn nested(path: &str, value: &Value, depth: usize) -> Markup {
    match value {
        value if is_empty(value) => html! { span.soft { (UNKNOWN) } },
        Value::String(given) => {
            if let Some(host) = followed_host(given) {
                return html! { a href=(given) rel="noopener noreferrer nofollow ugc" { bdi { (host) } span aria-hidden="true" { " ↗" } } };
            }
            day_or_time(given).unwrap_or_else(|| html! { bdi { (cut(given.clone(), TEXT_CHARS_MAX)) } })
        }
        Value::Number(_) => number(path, value),
        Value::Array(items) => {
            let is_plain = items.iter().all(|item| !item.is_object() && !item.is_array());
            let is_short = is_plain && items.iter().all(|item| item.as_str().is_none_or(|text| text.len() <= 40));
            let more = items.len().saturating_sub(ITEMS_MAX);
            html! {
                @if is_short && items.iter().all(|item| item.as_str().and_then(followed_host).is_none()) {
                    bdi { (text(value, TEXT_CHARS_MAX)) }
                } @else {
                    ul.plain { @for item in items.iter().take(ITEMS_MAX) { li { (nested(path, item, depth + 1)) } } }
                }
                @if more > 0 { p.soft { "and " (more) " more, in the JSON" } }
            }
        }
        Value::Object(fields) if depth < DEPTH_MAX => html! {
            dl.nested {
                @for (name, value) in fields.iter().filter(|(_, value)| !is_empty(value)) {
                    div { dt { (label(name)) } dd { (nested(name, value, depth + 1)) } }
                }
            }
        },
        Value::Object(_) => html! { code { (cut(value.to_string(), TEXT_CHARS_MAX)) } },
        Value::Bool(_) | Value::Null => html! { (text(value, CELL_CHARS_MAX)) },
    }
}

/// An amount in dollars: the sign comes before the symbol.
fn dollars(amount: &str) -> String {
    amount.strip_prefix('-').map_or_else(|| format!("${amount}"), |amount| format!("-${amount}"))
}

/// A number with separators of thousands. Fields in cents are dollars.
fn number(path: &str, value: &Value) -> Markup {
    let name = path.rsplit('.').next().unwrap_or(path);
    let is_cents = name.ends_with("Cents");
    let is_dollars = ["amount", "Amount", "Value", "assessed"].iter().any(|end| name.ends_with(end));
    let is_plain = ["year", "Year", "class", "Class", "version", "Version"].iter().any(|end| name.ends_with(end));
    let shown = match value.as_i64() {
        Some(cents) if is_cents => dollars(&grouped(cents / 100)),
        Some(number) if is_plain => number.to_string(),
        Some(amount) if is_dollars => dollars(&grouped(amount)),
        Some(number) => grouped(number),
        None => match value.as_f64() {
            Some(amount) if is_dollars => dollars(&format!("{amount:.0}")),
            Some(number) => format!("{number:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
            None => value.to_string(),
        },
    };
    html! { span.number { (shown) } }
}

/// An integer with commas between thousands.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if number < 0 {
        out.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with commas between thousands.
pub(crate) fn count(number: u64) -> String {
    grouped(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A text that is a day or a time, as such; `None` for any other text.
fn day_or_time(text: &str) -> Option<Markup> {
    match text.len() {
        10 => text.parse::<Date>().ok().map(|date| html! { time datetime=(text) title=(text) { (day(date)) } }),
        20..=32 if text.as_bytes().get(10) == Some(&b'T') => text.parse::<Timestamp>().ok().map(|_| time(text)),
        _ => None,
    }
}

/// A day as people read it.
fn day(date: Date) -> String {
    date.strftime("%-d %b %Y").to_string()
}

/// A time in UTC, to the minute, with the exact time on hover.
pub(crate) fn time(rfc3339: &str) -> Markup {
    match rfc3339.parse::<Timestamp>() {
        Ok(at) => {
            let shown = at.to_zoned(TimeZone::UTC).strftime("%-d %b %Y, %H:%M").to_string();
            html! { time datetime=(rfc3339) title=(rfc3339) { (shown) " UTC" } }
        }
        Err(_) => html! { bdi { (rfc3339) } },
    }
}

/// The day of a time in UTC, with the exact time on hover.
pub(crate) fn day_of(rfc3339: &str) -> Markup {
    match rfc3339.parse::<Timestamp>() {
        Ok(at) => html! { time datetime=(rfc3339) title=(rfc3339) { (day(at.to_zoned(TimeZone::UTC).date())) } },
        Err(_) => html! { bdi { (rfc3339) } },
    }
}

/// A link without its scheme, short enough for a line.
pub(crate) fn link_words(link: &str) -> String {
    let words = link.split_once("://").map_or(link, |(_, rest)| rest);
    cut(words.strip_prefix("www.").unwrap_or(words).trim_end_matches('/').to_owned(), LINK_CHARS_MAX)
}

/// How long ago a time was, with the exact time on hover.
pub(crate) fn ago(rfc3339: &str, now_ms: i64) -> Markup {
    let Ok(at) = rfc3339.parse::<Timestamp>() else { return html! { span.soft { "never" } } };
    let minutes = (now_ms - at.as_millisecond()).max(0) / 60_000;
    let shown = match minutes {
        0 => "just now".to_owned(),
        1..=59 => format!("{minutes} min ago"),
        60..=2_879 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1_440),
    };
    html! { time datetime=(rfc3339) title=(rfc3339) { (shown) } }
}

/// The day of a time.
pub(crate) fn today(now_ms: i64) -> Date {
    Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC).date()
}

/// The last `days` days up to a day, oldest first.
pub(crate) fn days_before(today: Date, days: i64) -> Vec<Date> {
    (0..days).rev().map(|back| today.saturating_sub(back.days())).collect()
}

/// Whether a field is about the record as such and not a fact of the world.
pub(crate) fn is_internal(name: &str) -> bool {
    matches!(name, "keys" | "nameKeys" | "rulesVersion" | "basedOn")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that names become words, and numbers are grouped and in dollars where they are.
    #[test]
    fn names_and_numbers() {
        assert_eq!(
            ["excludingAgency", "url", "body.agentId", "amountCents"].map(label),
            ["Excluding agency", "Link", "Agent id", "Amount"]
        );
        assert_eq!([0, 999, 1000, -1_234_567].map(grouped), ["0", "999", "1,000", "-1,234,567"]);
        for (path, value, shown) in [
            ("amountCents", json!(123_456), "$1,234"),
            ("actionAmount", json!(-354_088), "-$354,088"),
            ("amount", json!(-0.75), "-$1"),
            ("seq", json!(1_000), "1,000"),
            ("ratio", json!(1.25), "1.25"),
            ("fiscalYear", json!(2026), "2026"),
        ] {
            assert_eq!(cell(path, &value).into_string(), format!("<span class=\"number\">{shown}</span>"), "{path}");
        }
    }

    /// Proves that a record is named by its first title and the details that it has.
    #[test]
    fn names_of_records() {
        let page = RecordPage { title: &["drug", "company"], detail: &[("form ", "form"), ("", "place.state")], ..RecordPage::default() };
        let named = |record: Value| name(&record, &page);
        assert_eq!(named(json!({"drug": "", "company": "Acme", "form": "4", "place": {"state": "MD"}})), "Acme: form 4, MD");
        assert_eq!(named(json!({"drug": "X-1", "form": ""})), "X-1");
        assert_eq!(named(json!({"form": "8-K"})), "form 8-K");
        assert_eq!(named(json!({})), "Record");
        assert_eq!(given_name(&json!({"drug": " "}), &page), None);
    }

    /// Proves that objects without a name are shown as words, and links without what all links have.
    #[test]
    fn objects_and_links_as_words() {
        let documents = json!([{"citation": "91 FR 1", "isCorrection": false, "note": ""}, {"citation": "91 FR 2"}]);
        assert_eq!(text(&documents, 400), "Citation 91 FR 1 · Is correction no; Citation 91 FR 2");
        assert_eq!(link_words("https://www.example.gov/recalls/1/"), "example.gov/recalls/1");
        assert_eq!(link_words(&format!("https://a.example/{}", "x".repeat(100))).chars().count(), LINK_CHARS_MAX + 1);
    }

    /// Proves that days and times are readable and keep the exact value, and that other texts of the same length stay as they are.
    #[test]
    fn times() {
        assert_eq!(
            cell("", &json!("2026-11-28T12:34:56.789Z")).into_string(),
            "<time datetime=\"2026-11-28T12:34:56.789Z\" title=\"2026-11-28T12:34:56.789Z\">28 Nov 2026, 12:34 UTC</time>"
        );
        assert_eq!(cell("", &json!("2026-11-02")).into_string(), "<time datetime=\"2026-11-02\" title=\"2026-11-02\">2 Nov 2026</time>");
        assert_eq!(cell("", &json!("0123456789")).into_string(), "<bdi>0123456789</bdi>");
        assert_eq!(ago("2026-11-28T10:00:00Z", 1_795_867_200_000).into_string().matches("2 h ago").count(), 1);
    }

    /// Proves that texts of records are inert: no element, no link but to http or https, and a long text ends.
    #[test]
    fn hostile_texts() {
        let shown = whole("title", &json!("<script>alert(1)</script>\u{202e}")).into_string();
        assert_eq!(shown, "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;\u{202e}</bdi>");
        assert!(!whole("url", &json!("javascript:alert(1)")).into_string().contains("href"));
        let link = whole("url", &json!("https://example.org/\"><script>")).into_string();
        assert!(link.contains("href=\"https://example.org/&quot;&gt;&lt;script&gt;\"") && link.contains("nofollow"), "{link}");
        assert!(cell("title", &json!("x".repeat(10_000))).into_string().len() < 300);
        let deep = json!({"a": {"b": {"c": {"d": {"e": "<b>"}}}}});
        assert!(!whole("a", &deep).into_string().contains("<b>"));
    }
}
