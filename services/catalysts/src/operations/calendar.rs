//! `GET /v1/upcoming.ics`: the events of `upcoming` as a calendar file (RFC 5545), to which calendar programs subscribe.

use std::fmt::Write as _;

use jiff::ToSpan;
use jiff::civil::Date;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, FileBody, Operation, Surface};
use proofs::hash::Hash32;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use serde_json::{Value, json};

use super::upcoming::Arguments;
use reads::read;

/// The media type of a calendar.
const CALENDAR: &str = "text/calendar; charset=utf-8";
/// The most bytes of a line without its end.
const LINE_BYTES_MAX: usize = 75;
/// How often programs should read the calendar again.
const REFRESH: &str = "PT12H";

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let upcoming = read::operation::<Arguments>();
    let mut input = upcoming.input.clone();
    // A program subscribes to what is upcoming now.
    if let Some(properties) = input.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove("asOf");
    }
    let words = Definition {
        name: "upcoming_calendar",
        path: "/v1/upcoming.ics",
        summary: "The events of `upcoming` as a calendar file (iCalendar, RFC 5545), to which calendar programs subscribe.",
        description: "The parameters, the order and the limits of `upcoming`. An event whose date is less precise than a day lasts for its window. The key goes into \
            `api_key`, because calendar programs send no headers. The description of the calendar has the notes of the answer, and says if there are more events \
            than it holds: ask for up to 200 with `limit`.",
        surface: Surface::Route,
        errors: &[ErrorCode::CursorInvalid, ErrorCode::RangeUnsatisfiable],
        example: json!({ "days": 365, "limit": 100 }),
        ..Definition::read()
    };
    // The rows are those of the list in every respect, so the calendar is made from its answer.
    let run = move |call: Call, arguments: Value| {
        let upcoming = upcoming.clone();
        async move {
            let clock = call.context.clock;
            let answer = (upcoming.run)(Call { if_none_match: None, ..call }, arguments).await?;
            let events = answer.body.into_value().ok_or_else(|| Problem::new(ErrorCode::Internal, "the events could not be read"))?;
            file(&events, clock)
        }
    };
    let operation = Operation::define::<Value, (), _, _>(words, run);
    Operation { input, ..operation }.with_files(&[(CALENDAR, true)])
}

fn file(events: &Value, clock: Clock) -> Result<Answer, Problem> {
    let text = calendar(events, clock.today());
    let etag = format!("\"{}\"", Hash32::of(text.as_bytes()));
    let mut file = FileBody::of_bytes(CALENDAR, "catalysts.ics".to_owned(), text);
    file.note = events["note"].as_str().map(str::to_owned);
    Ok(Answer { body: Body::File(file), etag, next_cursor: String::new(), has_more: false, status: 200 })
}

/// The calendar of an answer of `upcoming`. `today` is the day of events in an answer that was never refreshed.
fn calendar(answer: &Value, today: Date) -> String {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut about = vec![text(answer, "note"), text(answer, "disclaimer")];
    if !answer["next"].is_null() {
        about.push(format!("there are more events than these {}", answer["count"]));
    }
    about.retain(|part| !part.is_empty());
    let mut out = String::new();
    let mut line = |name: &str, value: &str| fold(&mut out, &format!("{name}:{value}"));
    line("BEGIN", "VCALENDAR");
    line("VERSION", "2.0");
    line("PRODID", "-//Highwater//Catalysts//EN");
    line("CALSCALE", "GREGORIAN");
    line("METHOD", "PUBLISH");
    line("X-WR-CALNAME", "Catalysts");
    line("X-WR-CALDESC", &escaped(&about.join("; ")));
    line("REFRESH-INTERVAL;VALUE=DURATION", REFRESH);
    line("X-PUBLISHED-TTL", REFRESH);
    for event in answer["catalysts"].as_array().into_iter().flatten() {
        let day = |name: &str| event["window"][name].as_str().and_then(|day| day.parse::<Date>().ok());
        // An event without a window has no place in a calendar.
        let Some((first, last)) = day("from").zip(day("to")) else { continue };
        let seen = event["verifiedAsOf"].as_str().and_then(|day| day.parse::<Date>().ok()).unwrap_or(today);
        line("BEGIN", "VEVENT");
        line("UID", &escaped(&format!("{}@catalysts.highwater", text(event, "id"))));
        line("DTSTAMP", &format!("{}T000000Z", compact(seen)));
        line("SEQUENCE", &event["slips"].as_i64().unwrap_or(0).max(0).to_string());
        line("DTSTART;VALUE=DATE", &compact(first));
        // The end is the first day after the event.
        line("DTEND;VALUE=DATE", &compact(last.max(first).saturating_add(1.day())));
        line("SUMMARY", &escaped(&summary(event)));
        line("DESCRIPTION", &escaped(&description(event)));
        line("CATEGORIES", &escaped(&text(event, "kind")));
        let source = text(event, "sourceUrl");
        if source.starts_with("https://") && source.bytes().all(|byte| byte.is_ascii_graphic()) {
            line("URL", &source);
        }
        line("STATUS", if event["date"].as_str().is_some_and(|date| !date.is_empty()) { "CONFIRMED" } else { "TENTATIVE" });
        line("TRANSP", "TRANSPARENT");
        line("END", "VEVENT");
    }
    line("END", "VCALENDAR");
    out
}

/// The name of an event: its company, its drug and its kind.
fn summary(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().filter(|text| !text.is_empty());
    let kind = match text("kind") {
        Some("readout") => "readout",
        Some("pdufa") => "FDA decision date",
        Some("adcom") => "FDA advisory committee",
        kind => kind.unwrap_or("event"),
    };
    let company = text("ticker").or_else(|| text("company"));
    let named: Vec<&str> = company.into_iter().chain(text("drug")).collect();
    if named.is_empty() { format!("{kind}: {}", text("title").unwrap_or_default()) } else { format!("{}: {kind}", named.join(" ")) }
}

/// What is known about an event, one fact a line.
fn description(event: &Value) -> String {
    let fields = [
        ("Title", "title"),
        ("Company", "company"),
        ("Drug", "drug"),
        ("Indication", "indication"),
        ("Phase", "phase"),
        ("Trial", "trialId"),
        ("Precision of the date", "datePrecision"),
        ("Source", "sourceUrl"),
        ("Hash", "verifyHash"),
    ];
    let mut out = String::new();
    for (words, name) in fields {
        if let Some(value) = event[name].as_str().filter(|value| !value.is_empty()) {
            let _ = writeln!(out, "{words}: {value}");
        }
    }
    out.trim_end().to_owned()
}

/// A day without dashes.
fn compact(day: Date) -> String {
    day.to_string().replace('-', "")
}

/// A text as a value: control characters are left out, and separators have a backslash before them.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | ';' | ',' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Appends a line, in pieces of at most [`LINE_BYTES_MAX`] bytes that end between characters. Each further piece begins with a blank.
fn fold(out: &mut String, line: &str) {
    let mut length = 0;
    for c in line.chars() {
        if length + c.len_utf8() > LINE_BYTES_MAX {
            out.push_str("\r\n ");
            length = 1;
        }
        out.push(c);
        length += c.len_utf8();
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Value {
        json!({
            "note": "cut; short", "disclaimer": "dates move", "next": "x", "count": 3,
            "catalysts": [
                { "id": "pdufa:1/a,b", "kind": "pdufa", "date": "2026-12-01", "window": {"from": "2026-12-01", "to": "2026-12-01"}, "ticker": "CLDB",
                    "company": "Calder, Inc.", "drug": "calderinib", "slips": 2, "verifiedAsOf": "2026-11-20", "sourceUrl": "https://a.example/1",
                    "title": format!("A\r\nBEGIN:VEVENT\n{}", "é".repeat(100)) },
                { "id": "ctgov:NCT1", "kind": "readout", "date": "", "window": {"from": "2026-12-01", "to": "2026-12-31"}, "company": "Other",
                    "sourceUrl": "javascript:alert(1)" },
                { "id": "ctgov:NCT2", "kind": "readout", "window": {"from": "", "to": ""} },
            ],
        })
    }

    /// Proves the form of RFC 5545: line ends, at most 75 bytes a line, escaped texts that begin no line of their own, and days whose end is exclusive.
    #[test]
    fn form_of_a_calendar() {
        let text = calendar(&answer(), "2026-11-28".parse().unwrap());
        assert!(
            text.starts_with("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:") && text.ends_with("END:VEVENT\r\nEND:VCALENDAR\r\n"),
            "{text}"
        );
        for line in text.split_terminator("\r\n") {
            assert!(line.len() <= LINE_BYTES_MAX && !line.contains(['\r', '\n']), "{line}");
        }
        let whole = text.replace("\r\n ", "");
        let lines: Vec<&str> = whole.split("\r\n").collect();
        assert_eq!(lines.iter().filter(|line| **line == "BEGIN:VEVENT").count(), 2);
        for line in [
            "UID:pdufa:1/a\\,b@catalysts.highwater",
            "DTSTAMP:20261120T000000Z",
            "SEQUENCE:2",
            "DTSTART;VALUE=DATE:20261201",
            "DTEND;VALUE=DATE:20261202",
            "DTEND;VALUE=DATE:20270101",
            "SUMMARY:CLDB calderinib: FDA decision date",
            "SUMMARY:Other: readout",
            "STATUS:CONFIRMED",
            "STATUS:TENTATIVE",
            "URL:https://a.example/1",
            "X-WR-CALDESC:cut\\; short\\; dates move\\; there are more events than these 3",
        ] {
            assert!(lines.contains(&line), "{line}: {whole}");
        }
        assert!(!whole.contains("URL:javascript") && whole.contains("Company: Calder\\, Inc."), "{whole}");
    }

    /// Proves that a line is cut between characters, and that its pieces join to the line.
    #[test]
    fn lines_are_folded() {
        for count in [0, 1, 36, 37, 38, 74, 75, 76, 200] {
            for letter in ["a", "é", "🦊"] {
                let (line, mut out) = (letter.repeat(count), String::new());
                fold(&mut out, &line);
                assert!(out.split_terminator("\r\n").all(|piece| piece.len() <= LINE_BYTES_MAX), "{count} {letter}");
                assert_eq!(out.replace("\r\n ", "").trim_end_matches("\r\n"), line);
            }
        }
    }
}
