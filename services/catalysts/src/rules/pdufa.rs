//! Target action dates of one company: which of its statements are about one drug, and which of them counts.
//!
//! All statements of a company are remembered, and its events are built again from all of them in the order of filing. So the order in
//! which the facts come does not matter. The newest filing that speaks of a drug counts; of the sentences of one filing the first.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Catalyst, PDUFA};
use jiff::civil::Date;
use schemas::facts::statements::StatementFact;
use serde::{Deserialize, Serialize};
use texts::dates::Precision;

use super::companies::{Listed, cik_key};
use super::{Decision, drugs, sentences, set_anchor, set_dates, withdraw};
use fold::service::Undecided;

/// How many statements of one company are remembered: the newest ones.
const STATEMENTS_MAX: usize = 400;

/// A statement about a target date. The order is that of filing, and within a filing that of its documents.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Statement {
    filed: String,
    accession: String,
    file: String,
    n: i64,
    company: String,
    sentence: String,
    url: String,
    /// Day on which it was read.
    seen: String,
    drug: String,
    /// First and last day; empty for a decision that names no date.
    from: String,
    to: String,
    /// Position in [`PRECISIONS`].
    precision: usize,
    is_over: bool,
}

/// The precisions, by their number in stored statements.
const PRECISIONS: [Precision; 6] =
    [Precision::Day, Precision::Month, Precision::Quarter, Precision::Third, Precision::Half, Precision::Year];

/// What is remembered of a company.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Filer {
    statements: Vec<Statement>,
    /// Ids of its events.
    events: BTreeSet<String>,
}

/// Returns the key of what is remembered of a company.
pub(super) fn key(cik: &str) -> String {
    format!("pdufa/{cik}")
}

/// Adds a sentence to those of its company, and decides the company's events again.
pub(super) fn decide(state: Decision<'_, '_>, fact: &StatementFact, day: &str) -> Result<(), Undecided> {
    let read = statements(fact, day);
    let key = key(&fact.cik);
    let mut filer: Filer = state.get(&key)?.unwrap_or_default();
    let is_own = |known: &Statement| known.accession == fact.accession && known.file == fact.file && known.n == fact.n;
    let had = filer.statements.iter().any(is_own);
    if read.is_empty() && !had {
        return Ok(());
    }
    filer.statements.retain(|known| !is_own(known));
    filer.statements.extend(read);
    filer.statements.sort_unstable();
    let excess = filer.statements.len().saturating_sub(STATEMENTS_MAX);
    filer.statements.drain(..excess);

    let cik_row = cik_key(&fact.cik);
    let mut listed: Listed = state.get(&cik_row)?.unwrap_or_default();
    let events = events(&fact.cik, &listed.ticker(), &filer.statements);
    for id in filer.events.iter().filter(|id| !events.contains_key(*id)) {
        withdraw(state, id)?;
        listed.records.remove(id);
    }
    listed.records.extend(events.keys().cloned());
    filer.events = events.keys().cloned().collect();
    for record in events.into_values() {
        state.put(record)?;
    }
    state.remember(&cik_row, Some(&listed))?;
    state.remember(&key, Some(&filer))
}

/// Reads the target dates of a sentence.
fn statements(fact: &StatementFact, day: &str) -> Vec<Statement> {
    let Ok(filed) = fact.filed.parse::<Date>() else { return Vec::new() };
    if fact.n == 0 || fact.sentence.is_empty() {
        return Vec::new();
    }
    let targets = sentences::read(&fact.sentence, &fact.before, &fact.company, filed);
    let statement = |target: sentences::Target| Statement {
        filed: fact.filed.clone(),
        accession: fact.accession.clone(),
        file: fact.file.clone(),
        n: fact.n,
        company: fact.company.clone(),
        sentence: fact.sentence.clone(),
        url: fact.url(),
        seen: day.to_owned(),
        drug: target.drug,
        from: target.date.map(|date| date.from.to_string()).unwrap_or_default(),
        to: target.date.map(|date| date.to.to_string()).unwrap_or_default(),
        precision: target.date.and_then(|date| PRECISIONS.iter().position(|known| *known == date.precision)).unwrap_or_default(),
        is_over: target.is_over,
    };
    targets.into_iter().map(statement).collect()
}

/// Builds the events of a company from its statements in the order of filing.
fn events(cik: &str, ticker: &str, statements: &[Statement]) -> BTreeMap<String, Catalyst> {
    let mut groups: BTreeMap<String, Vec<&Statement>> = BTreeMap::new();
    for statement in statements {
        if let Some(suffix) = suffix(statement, statements) {
            groups.entry(format!("pdufa:{cik}:{suffix}")).or_default().push(statement);
        }
    }
    let event = |(id, group): (String, Vec<&Statement>)| event(&id, cik, ticker, &group).map(|event| (id, event));
    groups.into_iter().filter_map(event).collect()
}

/// Returns what identifies the event of a statement within its company: the drug, or for a statement without one the number of its date
/// among those of its filing. A date that another statement states of a drug is that drug's.
fn suffix(statement: &Statement, all: &[Statement]) -> Option<String> {
    if !statement.drug.is_empty() {
        return Some(drugs::slug(&statement.drug));
    }
    let named: BTreeSet<&str> =
        all.iter().filter(|other| !other.drug.is_empty() && is_same_date(other, statement)).map(|other| other.drug.as_str()).collect();
    if let [only] = named.into_iter().collect::<Vec<_>>().as_slice() {
        return Some(drugs::slug(only));
    }
    if statement.from.is_empty() {
        return None;
    }
    let own = all.iter().filter(|other| other.accession == statement.accession && other.drug.is_empty() && !other.from.is_empty());
    let dates: BTreeSet<(&str, &str)> = own.map(|other| (other.from.as_str(), other.to.as_str())).collect();
    dates.iter().position(|date| *date == (statement.from.as_str(), statement.to.as_str())).map(|at| (at + 1).to_string())
}

fn is_same_date(one: &Statement, other: &Statement) -> bool {
    !one.from.is_empty() && one.from == other.from && one.to == other.to
}

/// Builds an event from its statements in the order of filing; `None` if none of them names a date.
fn event(id: &str, cik: &str, ticker: &str, group: &[&Statement]) -> Option<Catalyst> {
    let filings = by_filing(group);
    let said: Vec<&Statement> = filings.iter().filter_map(|filing| of_filing(filing)).collect();
    let newest = *said.last()?;
    let dated: Vec<&Statement> = said.iter().filter(|one| !one.from.is_empty()).copied().collect();
    let date = *dated.last()?;
    let slips = dated.windows(2).filter(|pair| matches!(pair, [one, other] if !is_same_date(one, other))).count();
    let named = group.iter().rev().find(|one| !one.drug.is_empty()).map(|one| one.drug.clone()).unwrap_or_default();
    let subject = if named.is_empty() { &newest.company } else { &named };
    let mut record = Catalyst {
        id: id.to_owned(),
        kind: PDUFA.to_owned(),
        date_type: "STATED".to_owned(),
        company: newest.company.clone(),
        ticker: ticker.to_owned(),
        cik: cik.to_owned(),
        title: format!("Target action date (PDUFA) of {subject}"),
        drug: named.clone(),
        status: if newest.is_over { "met" } else { "upcoming" }.to_owned(),
        slips: i64::try_from(slips).unwrap_or_default(),
        first_seen: group.iter().map(|one| one.seen.clone()).min().unwrap_or_default(),
        source: "sec.gov".to_owned(),
        source_url: newest.url.clone(),
        source_field: "sentence".to_owned(),
        verified_as_of: newest.seen.clone(),
        ..Catalyst::default()
    };
    set_dates(
        &mut record,
        date.from.parse().ok()?,
        date.to.parse().ok()?,
        PRECISIONS.get(date.precision).copied().unwrap_or(Precision::Year),
    );
    let parts = [
        ("accession", newest.accession.as_str()),
        ("field", "sentence"),
        ("file", newest.file.as_str()),
        ("source", "sec.gov"),
        ("text", newest.sentence.as_str()),
    ];
    set_anchor(&mut record, &parts);
    Some(record)
}

/// Splits statements in the order of filing into those of each filing.
fn by_filing<'a>(group: &[&'a Statement]) -> Vec<Vec<&'a Statement>> {
    let mut filings: Vec<Vec<&Statement>> = Vec::new();
    for statement in group {
        match filings.last_mut().filter(|filing| filing.first().is_some_and(|first| first.accession == statement.accession)) {
            Some(filing) => filing.push(statement),
            None => filings.push(vec![*statement]),
        }
    }
    filings
}

/// Returns the statement of a filing that counts: the same date may be in several exhibits. A decision counts, unless the filing names
/// another date that is still ahead.
fn of_filing<'a>(filing: &[&'a Statement]) -> Option<&'a Statement> {
    let over = filing.iter().find(|one| one.is_over);
    let open = filing.iter().find(|one| !one.is_over && over.is_none_or(|over| !is_same_date(one, over)));
    match (over, open) {
        (Some(over), Some(open)) if !over.from.is_empty() && open.from > over.to => Some(*open),
        (Some(over), _) => Some(*over),
        (None, open) => open.copied(),
    }
}
