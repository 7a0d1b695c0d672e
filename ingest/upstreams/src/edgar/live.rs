//! Live search for filings by form and date, and for the filings of one filer.

use std::collections::HashSet;

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::filings::FilingFact;

use super::full_text::{ORIGIN, Search};
use super::submissions::{self, Filer};
use super::{BACK_OFF, accession, cik, declared, filing, form, is_missing, item};
use crate::json;
use crate::live_page::{LivePage, offset};
use crate::{Answer, Request, Settings, Stream, UpstreamError, text};

/// Documents per page of the full-text search.
const PAGE_DOCUMENTS: usize = 100;
/// How many documents of a search can be paged through.
const WINDOW_DOCUMENTS: usize = 10_000;

/// Requests one page of the full-text search, which goes back to 2001. A page is given by the number of documents before it.
pub(crate) fn search(
    stream: &Stream,
    settings: &Settings,
    forms: &[String],
    start: Date,
    end: Date,
    page: &str,
) -> Result<Request, UpstreamError> {
    declared(stream, settings)?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("q", "");
    if !forms.is_empty() {
        query.append_pair("forms", &forms.join(","));
    }
    query.append_pair("dateRange", "custom").append_pair("startdt", &start.to_string()).append_pair("enddt", &end.to_string());
    if !page.is_empty() {
        query.append_pair("from", page);
    }
    Ok(Request { back_off: Some(&BACK_OFF), ..json::request(ORIGIN, format!("/LATEST/search-index?{}", query.finish())) })
}

/// Requests the filings of one filer.
pub(crate) fn company(stream: &Stream, settings: &Settings, cik: &str) -> Result<Request, UpstreamError> {
    declared(stream, settings)?;
    Ok(submissions::request(cik))
}

/// Reads the filings of a search page, each once for its first filer. The search finds documents, and a filing has many.
pub(crate) fn found(stream: &Stream, answer: &Answer, today: Date, page: &str) -> Result<LivePage, UpstreamError> {
    let body = json::body_text(&answer.body, &mut Vec::new());
    let found: Search<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
    let hits = found.hits(stream)?;
    let total = hits.total(&mut None);
    let (mut seen, mut out, mut documents) = (HashSet::new(), Vec::new(), 0);
    for hit in hits.list(&mut None) {
        documents += 1;
        let source = hit.source(&mut None);
        let (numbers, names) = (source.ciks.list(), source.display_names.list());
        let (number, kind, filed) = (source.adsh.clean(), source.form.clean(), text::date(source.file_date.text()));
        let read = (accession(&number), numbers.first().and_then(|number| cik(number)), form(&kind));
        let ((Some(number), Some(cik), Some(kind)), Some(filed)) = (read, filed.filter(|day| text::is_plausible(*day, today))) else {
            continue;
        };
        if seen.insert(number.to_owned()) {
            let company = names.first().map(|name| name_of(name)).unwrap_or_default();
            let items = source.items.list().iter().filter_map(|code| item(code)).map(str::to_owned).collect();
            let report_date = text::plausible_date(source.period_ending.text(), today);
            let fact = FilingFact { items, report_date, ..filing(stream, number, cik, kind, company, filed) };
            out.push(FactData::Filing(Box::new(fact)));
        }
    }
    let end = offset(page) + documents;
    let has_more = documents > 0 && total.map_or(documents >= PAGE_DOCUMENTS, |total| end < total);
    let next = (has_more && end + PAGE_DOCUMENTS <= WINDOW_DOCUMENTS).then(|| end.to_string());
    Ok(LivePage { facts: out, next, has_more, total: None })
}

/// Reads the filings of a filer, newest first. The list has the newest 1,000 or more; older ones are in further files, which are not requested.
pub(crate) fn listed(stream: &Stream, answer: &Answer, cik: &str, today: Date) -> Result<LivePage, UpstreamError> {
    if is_missing(stream.name, answer)? {
        return Ok(LivePage::default());
    }
    let body = json::body_text(&answer.body, &mut Vec::new());
    let filer: Filer<'_> = serde_json::from_str(&body).map_err(|error| json::not_json(stream.name, &body, &error))?;
    let has_more = filer.has_older_files();
    let page = filer.page(stream, Some(cik), Date::MIN, today, |_| true)?;
    Ok(LivePage { facts: page.observations.into_iter().map(|filing| filing.data).collect(), next: None, has_more, total: None })
}

/// Extracts the name from `APPLE INC  (AAPL)  (CIK 0000320193)`.
pub(super) fn name_of(display: &str) -> &str {
    let name = display.rsplit_once("(CIK ").map_or(display, |(name, _)| name).trim_end();
    let is_ticker = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-., ".contains(&byte));
    let before = name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")).filter(|(_, ticker)| is_ticker(ticker));
    before.map_or(name, |(before, _)| before).trim_end()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::Upstream;
    use crate::edgar::Edgar;

    /// Proves that a filing with several documents is found once, with its filer's name and items, and that an invalid answer is refused.
    #[test]
    fn found_once() {
        let stream = Edgar.manifest().streams.iter().find(|stream| stream.name == "edgar.submissions").unwrap();
        let hit = |file: &str| {
            serde_json::json!({"_id": format!("0000320193-26-000001:{file}"), "_source": {
                "adsh": "0000320193-26-000001", "form": "8-K", "file_date": "2026-11-20", "period_ending": "2026-11-19",
                "ciks": ["0000320193"], "display_names": ["ACME INC  (ACME)  (CIK 0000320193)"], "items": ["2.02", "9.01"]}})
        };
        let body = serde_json::json!({"hits": {"total": {"value": 3}, "hits": [hit("a.htm"), hit("b.htm"), {"_source": {"adsh": "x"}}]}});
        let answer = |body: String| Answer { status: 200, link: None, body: body.into() };
        let first = found(stream, &answer(body.to_string()), date(2026, 11, 21), "").unwrap();
        let [FactData::Filing(filing)] = first.facts.as_slice() else { panic!("{first:?}") };
        assert_eq!((first.next, first.has_more), (None, false));
        assert_eq!((filing.company.as_str(), filing.items.len(), filing.filing_date.as_str()), ("ACME INC", 2, "2026-11-20"));
        let page = |total: usize, page: &str| {
            let body = serde_json::json!({"hits": {"total": {"value": total}, "hits": vec![hit("a.htm"); PAGE_DOCUMENTS]}});
            let found = found(stream, &answer(body.to_string()), date(2026, 11, 21), page).unwrap();
            (found.next, found.has_more)
        };
        assert_eq!(page(101, ""), (Some("100".to_owned()), true));
        assert_eq!((page(200, "100"), page(20_000, "9900")), ((None, false), (None, true)));
        assert!(found(stream, &answer("{}".into()), date(2026, 11, 21), "").is_err());
        assert!(found(stream, &answer("<html>".into()), date(2026, 11, 21), "").is_err());
    }
}
