//! `edgar.current`: the feed of the latest filings, with one entry per party of a filing.
//!
//! All entries of a filing have the same id, so entries are distinguished by filing and party. The feed moves while it is read. The next
//! page therefore begins before the last filing of this page, whose parties may continue there. Reading stops at a page without new
//! entries.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::civil::Date;
use schemas::facts::filings::{FilingFact, has_items};
use serde::{Deserialize, Serialize};

use super::{BACK_OFF, ORIGIN, accession, cik, filing, form, is_page, item, observed};
use crate::drift::{FieldCounts, Tally};
use crate::xml::{self, Element};
use crate::{Answer, Observation, Page, Reject, Request, Stream, UpstreamError, json, text};

/// How many entries a request asks for; the feed's maximum.
const ENTRIES: usize = 100;
/// The feed fails far from its start, and only its start is needed.
const START_MAX: usize = 4_000;
/// The usual roles of a filer in a filing. A role in another case is written like these; any other role is taken as it is.
const ROLES: &[&str] = &["Filed by", "Filer", "Issuer", "Reporting", "Subject", "Depositor", "Securitizer", "Issuing Entity"];
/// A longer text in the last parentheses is no role.
const ROLE_CHARS_MAX: usize = 40;

/// The position of a sync run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cursor {
    start: usize,
    /// The keys of the page before, until it is known which of them are new.
    pub(super) seen: Vec<String>,
}

impl Cursor {
    pub(super) fn request(&self) -> Request {
        Request {
            origin: ORIGIN.to_owned(),
            // The feed compares a type by its prefix only (4 matches 424B2 too), so no type is requested.
            path: format!("/cgi-bin/browse-edgar?action=getcurrent&type=&owner=include&count={ENTRIES}&start={}&output=atom", self.start),
            body: None,
            headers: Vec::new(),
            accepts_statuses: &[],
            media_types: &["application/atom+xml", "application/xml", "text/xml"],
            conditional: false,
            back_off: Some(&BACK_OFF),
            download: None,
            local_file: None,
        }
    }

    /// Empty when the page before showed nothing new.
    pub(super) fn narrow(self, known: &HashSet<String>) -> Option<Self> {
        let is_old = !self.seen.is_empty() && self.seen.iter().all(|key| known.contains(key));
        (!is_old).then(|| Self { seen: Vec::new(), ..self })
    }
}

/// A parsed entry: the fields that its parties share, and its party.
struct ParsedFiling {
    accession: String,
    fact: FilingFact,
}

type FieldCheck = fn(&Element) -> bool;

const EXPECTED: &[(&str, FieldCheck)] = &[
    ("title", |entry| entry.child("title").is_some()),
    ("category", |entry| entry.child("category").is_some_and(|category| !category.attribute("term").is_empty())),
    ("id", |entry| entry.text("id").contains("accession-number=")),
    ("summary", |entry| entry.child("summary").is_some_and(|summary| summary.raw_text().contains("Filed"))),
];

pub(super) fn map(stream: &Stream, cursor: &Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let source = xml::decoded(&answer.body);
    if is_page(&source) {
        return Err(json::later(stream.name, "the response is an HTML page, not the feed"));
    }
    let feed = Element::parse(&source).map_err(|reason| json::later(stream.name, format!("the response is not the feed: {reason}")))?;
    if feed.name != "feed" {
        return Err(json::later(stream.name, format!("{} instead of feed", text::cut(feed.name, 40))));
    }
    let (mut entries, mut rejects, mut count): (Vec<ParsedFiling>, Vec<Reject>, usize) = (Vec::new(), Vec::new(), 0);
    let (mut tally, mut fields) = (Tally::new(EXPECTED), FieldCounts::default());
    for element in feed.all("entry") {
        count += 1;
        tally.take(Some(element));
        match read(stream, element, today) {
            Ok(entry) => {
                fields.count([("title: role", !entry.fact.roles.is_empty()), ("title: company", !entry.fact.company.is_empty())]);
                if has_items(&entry.fact.form) {
                    fields.count([("summary: items", !entry.fact.items.is_empty())]);
                }
                entries.push(entry);
            }
            Err(field) => {
                let reference = text::cut(element.text("title"), 100);
                let raw = source.get(element.span.clone()).unwrap_or_default().as_bytes().to_vec();
                rejects.push(Reject { reference, reason: format!("{field} is absent or not readable"), raw });
            }
        }
    }
    tally.check(stream.name)?;
    let last = entries.last().map(|entry| entry.accession.clone());
    let of_last = entries.iter().rev().take_while(|entry| Some(&entry.accession) == last.as_ref()).count();
    let step = if of_last < count { count - of_last } else { count };
    let observations = joined(stream, entries);
    let start = cursor.start + step;
    let seen = observations.iter().map(|observation| observation.key.clone()).collect();
    let next = (step > 0 && start < START_MAX).then(|| json::write_cursor(Cursor { start, seen }));
    Ok(Page { observations, rejects, next, fields, ..Page::default() })
}

/// Builds one record per filing and party, with all roles of the party.
fn joined(stream: &Stream, entries: Vec<ParsedFiling>) -> Vec<Observation> {
    let mut facts: Vec<FilingFact> = Vec::with_capacity(entries.len());
    let mut places: HashMap<String, usize> = HashMap::with_capacity(entries.len());
    for ParsedFiling { fact, .. } in entries {
        let place = *places.entry(fact.identity()).or_insert(facts.len());
        match facts.get_mut(place) {
            Some(known) => {
                let roles: BTreeSet<String> = known.roles.drain(..).chain(fact.roles).collect();
                known.roles = roles.into_iter().collect();
            }
            None => facts.push(fact),
        }
    }
    facts.into_iter().map(|fact| observed(stream, fact)).collect()
}

/// Parses an entry's filing and party. The error is the missing field.
fn read(stream: &Stream, entry: &Element, today: Date) -> Result<ParsedFiling, &'static str> {
    let kind = form(entry.child("category").ok_or("category")?.attribute("term")).ok_or("category")?;
    // The text is escaped once more than the feed declares.
    let summary = entry.child("summary").ok_or("summary")?.raw_text();
    let id = entry.text("id");
    let named = id.rsplit_once("accession-number=").map(|(_, number)| number).or_else(|| behind(summary, "AccNo:"));
    let accession = named.and_then(accession).ok_or("id")?.to_owned();
    let filed = behind(summary, "Filed:").and_then(text::date).filter(|day| text::is_plausible(*day, today)).ok_or("summary")?;
    let title = entry.text("title");
    let (name, number, role) = party(&title, &kind);
    let link = entry.all("link").map(|link| link.attribute("href")).find_map(|href| href.split("/data/").nth(1)?.split('/').next());
    let number = number.or(link).and_then(cik).ok_or("title")?;
    let mut fact = filing(stream, &accession, number, kind, name, filed);
    fact.roles = role.into_iter().collect();
    if has_items(&fact.form) {
        fact.items = items(summary);
    }
    Ok(ParsedFiling { accession, fact })
}

/// Returns the word after a label of the summary, whatever tags are between them.
fn behind<'a>(summary: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = summary.split_once(label)?;
    let rest = rest.trim_start();
    let rest = if rest.starts_with('<') { rest.split_once('>')?.1 } else { rest };
    rest.split_whitespace().next()
}

/// Returns the items that a summary lists, one per line, in their order.
fn items(summary: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in summary.split("<br") {
        let line = line.trim_start_matches(['/', ' ']).trim_start_matches('>').trim();
        let code = line.strip_prefix("Item ").and_then(|rest| rest.split([':', ' ', '<']).next()).and_then(item);
        if let Some(code) = code.filter(|code| !out.iter().any(|known| known == code)) {
            out.push(code.to_owned());
        }
    }
    out
}

/// Splits a title, `FORM - NAME (0000736012) (Issuer)`, into name, number and role. Parsed from its end, because names contain parentheses
/// and dashes. What follows the number is the role, whatever it is; without a number only a usual role is one.
fn party<'a>(title: &'a str, kind: &str) -> (&'a str, Option<&'a str>, Option<String>) {
    let (rest, last) = parenthesis(title);
    let (before, number) = parenthesis(rest);
    let number = number.filter(|number| cik(number).is_some());
    let usual = last.and_then(|last| ROLES.iter().find(|role| role.eq_ignore_ascii_case(last)));
    let (rest, number, role) = match (last, number, usual) {
        (Some(last), _, _) if cik(last).is_some() => (rest, Some(last), None),
        (Some(last), Some(number), None) => (before, Some(number), Some(text::cut(text::clean(last), ROLE_CHARS_MAX))),
        (Some(_), Some(number), Some(usual)) => (before, Some(number), Some((*usual).to_owned())),
        (Some(_), None, Some(usual)) => (rest, None, Some((*usual).to_owned())),
        _ => (title, None, None),
    };
    let role = role.filter(|role| !role.is_empty());
    let name = rest.strip_prefix(kind).and_then(|rest| rest.trim_start().strip_prefix('-'));
    let name = name.or_else(|| rest.split_once(" - ").map(|(_, name)| name)).unwrap_or(rest);
    (name.trim(), number, role)
}

/// Splits a text into the part before its last parenthesis and the content of that parenthesis.
fn parenthesis(text: &str) -> (&str, Option<&str>) {
    let text = text.trim_end();
    match text.strip_suffix(')').and_then(|inner| inner.rsplit_once('(')) {
        Some((rest, inner)) => (rest.trim_end(), Some(inner.trim())),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that titles are parsed from their end.
    #[test]
    fn reads_titles() {
        for (title, kind, name, number, role) in [
            ("4 - INTRUSION INC (0000736012) (Issuer)", "4", "INTRUSION INC", Some("0000736012"), Some("Issuer")),
            (
                "SC 13D/A - A - B (Holdings) Ltd. (0000000012) (Filed by)",
                "SC 13D/A",
                "A - B (Holdings) Ltd.",
                Some("0000000012"),
                Some("Filed by"),
            ),
            ("8-K - PIER CORP (0000000012)", "8-K", "PIER CORP", Some("0000000012"), None),
            ("ABS-15G - PIER (I) LLC (0000000012) (Securitizer)", "ABS-15G", "PIER (I) LLC", Some("0000000012"), Some("Securitizer")),
            ("10-D - PIER TRUST (0000000012) (ISSUING ENTITY)", "10-D", "PIER TRUST", Some("0000000012"), Some("Issuing Entity")),
            ("10-D - PIER LLC (0000000012) (Depositor)", "10-D", "PIER LLC", Some("0000000012"), Some("Depositor")),
            ("X-1 - PIER LLC (0000000012) (Keeper of Lights)", "X-1", "PIER LLC", Some("0000000012"), Some("Keeper of Lights")),
            ("X-1 - PIER LLC (0000000012) ()", "X-1", "PIER LLC", Some("0000000012"), None),
            ("8-K - PIER (UK) LTD", "8-K", "PIER (UK) LTD", None, None),
            ("", "4", "", None, None),
        ] {
            assert_eq!(party(title, kind), (name, number, role.map(str::to_owned)), "{title}");
        }
    }

    /// Proves that items are read line by line, once each, and that unknown codes are skipped.
    #[test]
    fn reads_items() {
        let summary = "<b>Filed:</b> 2026-01-12\n<br>Item 8.01: Other Events\n<br/>Item 9.01: x\n<br />Item 8.01: y<br>Item 3C.1: z\n<br>no Item 5.02";
        assert_eq!(items(summary), ["8.01", "9.01"]);
        assert_eq!((behind(summary, "Filed:"), behind(summary, "AccNo:")), (Some("2026-01-12"), None));
    }
}
