//! Which of several media types a caller prefers, by the qualities in `Accept` (RFC 9110, section 12.5.1).

use http::HeaderMap;
use http::header::ACCEPT;

/// The type of an answer if the caller prefers no other one.
pub(crate) const JSON: &str = "application/json";

/// The type of `offered` that the caller names with the highest quality, of equal ones the first that is named; `None` if the caller names none of them.
/// Wildcards name none: a stream of events, lines or a page is for callers who ask for it.
pub(crate) fn preferred<'a>(headers: &HeaderMap, offered: &[&'a str]) -> Option<&'a str> {
    let mut best: Option<(&str, f32)> = None;
    let lines = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for range in lines.flat_map(|line| line.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().unwrap_or_default();
        let Some(named) = offered.iter().find(|offered| offered.eq_ignore_ascii_case(named)) else { continue };
        let quality = quality(parts);
        if quality > best.map_or(0.0, |(_, best)| best) {
            best = Some((named, quality));
        }
    }
    best.map(|(named, _)| named)
}

/// The quality among the parameters of a media range. One that cannot be read counts as missing, which is 1.
fn quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> f32 {
    let given = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse::<f32>().ok()).flatten()
    });
    given.filter(|quality| (0.0..=1.0).contains(quality)).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the highest quality decides, then the order, and that wildcards and refused types are never chosen.
    #[test]
    fn qualities() {
        let (events, lines) = ("text/event-stream", "application/x-ndjson");
        for (accept, expected) in [
            ("", None),
            ("*/*", None),
            ("application/*, text/*", None),
            ("text/html", None),
            ("text/event-stream", Some(events)),
            ("TEXT/Event-Stream ; charset=utf-8", Some(events)),
            ("application/json, text/event-stream;q=0.1", Some(JSON)),
            ("text/event-stream;q=0.1, application/json;q=0.2", Some(JSON)),
            ("application/json;q=0.2, text/event-stream;q=0.3", Some(events)),
            ("application/json;q=0, text/event-stream;q=0.001", Some(events)),
            ("application/json, text/event-stream", Some(JSON)),
            ("text/event-stream, application/json", Some(events)),
            ("text/event-stream, */*;q=0.1", Some(events)),
            ("text/event-stream;q=0.1, */*", Some(events)),
            ("text/event-stream;q=0", None),
            ("text/event-stream;q=0.000, */*", None),
            ("application/x-ndjson;q=0.9, text/html", Some(lines)),
            ("application/x-ndjson; q = 0.5, text/event-stream; Q=0.6", Some(events)),
            ("text/event-stream;q=high, application/json;q=0.9", Some(events)),
            ("text/event-stream;q=-1, application/json;q=7", Some(events)),
            ("text/event-streams, text/event", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT, accept.parse().unwrap());
            assert_eq!(preferred(&headers, &[JSON, events, lines]), expected, "{accept}");
        }
        let mut headers = HeaderMap::new();
        for line in ["text/html;q=0.3", "application/json;q=0.4, text/event-stream;q=0.5"] {
            headers.append(ACCEPT, line.parse().unwrap());
        }
        assert_eq!(preferred(&headers, &[JSON, events]), Some(events), "lines are read as one");
        assert_eq!(preferred(&headers, &[JSON, "text/html"]), Some(JSON), "only offered types count");
    }
}
