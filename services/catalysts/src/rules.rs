//! Catalysts: expected events of drugs, each with the sentence or field of a public document that states its date.
//!
//! A readout is a trial of a company; a meeting is what the notices of one docket say; a target action date is what the newest filing of a
//! company says about a drug. Companies get their tickers from the regulator's list, by name or number, in whatever order the facts come.
//! Nothing here depends on today: whether an event has passed is computed when it is read.

pub mod companies;
mod decision;
pub mod drugs;
pub mod notices;
mod pdufa;
pub mod sentences;
mod trials;

#[cfg(test)]
mod tests;

use crate::record::{Catalyst, CatalystDetails, TABLES};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::meetings::MeetingFact;
use schemas::facts::statements::StatementFact;
use schemas::facts::trials::TrialFact;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::topics::{CHANGES_CATALYSTS, MEETINGS, STATEMENTS, TRIALS, Topic};
use schemas::views::records::{RecordChange, RecordTables};
use texts::dates::Precision;

use self::companies::{Listed, Named, cik_key, name_key};
pub use self::decision::CatalystsRules;
use self::decision::{Decision, forget_name, set_anchor, set_dates, set_ticker_by_name, withdraw};
use fold::aliases;
use fold::records::{DecisionRow, Records, Rules, State, read_variant};
use fold::service::Undecided;

/// The catalysts service.
pub type Catalysts = Records<CatalystsRules>;

/// A fact of one of the service's topics.
#[derive(Clone)]
pub enum CatalystFact {
    /// A fact of the topic `trials`.
    Trial(Box<TrialFact>),
    /// A fact of the topic `meetings`.
    Meeting(Box<MeetingFact>),
    /// A fact of the topic `statements`.
    Statement(Box<StatementFact>),
}

impl Rules for CatalystsRules {
    type Fact = CatalystFact;
    type Record = Catalyst;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[TRIALS, MEETINGS, STATEMENTS];
    const CHANGES: &'static Topic = &CHANGES_CATALYSTS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<CatalystFact>, avro::Error> {
        if topic.name == TRIALS.name {
            read_variant(topic, value, CatalystFact::Trial)
        } else if topic.name == MEETINGS.name {
            read_variant(topic, value, CatalystFact::Meeting)
        } else {
            read_variant(topic, value, CatalystFact::Statement)
        }
    }

    fn reads(fact: &Fact<CatalystFact>) -> Vec<DecisionRow> {
        let source = |key: Option<String>| key.map(DecisionRow::State);
        match &fact.data {
            Some(CatalystFact::Trial(trial)) => {
                let company = source(name_key(&trial.sponsor).filter(|_| trials::is_candidate(trial)));
                let numbers = aliases::reads(&trial.number, &trial.aliases);
                [Some(DecisionRow::Record(trials::id(&fact.key))), company].into_iter().flatten().chain(numbers).collect()
            }
            Some(CatalystFact::Meeting(meeting)) => {
                let identity = notices::identity(meeting);
                vec![DecisionRow::State(docket_key(&identity)), DecisionRow::Record(adcom_id(&identity))]
            }
            Some(CatalystFact::Statement(statement)) if statement.stream == TICKERS => {
                [source(Some(cik_key(&statement.cik))), source(name_key(&statement.company))].into_iter().flatten().collect()
            }
            Some(CatalystFact::Statement(statement)) => {
                vec![DecisionRow::State(cik_key(&statement.cik)), DecisionRow::State(pdufa::key(&statement.cik))]
            }
            None if fact.key.starts_with("clinical_trials/") => vec![DecisionRow::Record(trials::id(&fact.key))],
            None => Vec::new(),
        }
    }

    fn change_details(_record: &Catalyst, change: &RecordChange<Catalyst>) -> CatalystDetails {
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => CatalystDetails::between(before, after),
            _ => CatalystDetails::default(),
        }
    }

    fn index(key: &str, value: &str, seq: Seq) -> Vec<Write> {
        companies::index(key, value, seq)
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<CatalystFact>) -> Result<(), Undecided> {
        let day = day_of(fact.observed_at);
        match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(CatalystFact::Trial(trial))) => trials::decide(state, &trials::id(&fact.key), trial, &day),
            (FactKind::Observed, Some(CatalystFact::Meeting(meeting))) => decide_meeting(state, meeting, day),
            (FactKind::Observed, Some(CatalystFact::Statement(statement))) if statement.stream == TICKERS => {
                decide_tickers(state, &statement.cik, Some(&**statement))
            }
            (FactKind::Observed, Some(CatalystFact::Statement(statement))) => pdufa::decide(state, statement, &day),
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            (FactKind::Withdrawn | FactKind::Superseded, _) => match fact.key.split_once('/') {
                Some(("clinical_trials", _)) => withdraw(state, &trials::id(&fact.key)),
                Some((TICKERS, cik)) => decide_tickers(state, cik, None),
                // Notices and sentences stay published.
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// The stream of tickers.
const TICKERS: &str = "edgar.tickers";

/// Returns the day of a time, in UTC.
fn day_of(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map(|at| at.to_zoned(TimeZone::UTC).date().to_string()).unwrap_or_default()
}

fn docket_key(identity: &str) -> String {
    format!("docket/{identity}")
}

/// The id of the record of a meeting, given its docket, or the number of its notice.
pub(crate) fn adcom_id(identity: &str) -> String {
    format!("adcom:{identity}")
}

/// Decides the meeting of a docket again, with one more notice.
fn decide_meeting(state: Decision<'_, '_>, fact: &MeetingFact, day: String) -> Result<(), Undecided> {
    let identity = notices::identity(fact);
    let key = docket_key(&identity);
    let mut known: Vec<notices::Notice> = state.get(&key)?.unwrap_or_default();
    // The day on which an earlier version of the notice was read is still the first.
    let seen =
        known.iter().find(|notice| notice.number == fact.number && notice.dates == fact.dates).map_or(day, |notice| notice.seen.clone());
    notices::add(&mut known, notices::Notice::of(fact, seen));
    let id = adcom_id(&identity);
    let before = state.record(&id)?;
    match notices::meeting(&known) {
        Some(meeting) => {
            let mut record = adcom(&id, &meeting);
            if let Some(before) = before.as_ref().filter(|before| before.company != record.company) {
                forget_name(state, &before.company, &id)?;
            }
            set_ticker_by_name(state, &mut record)?;
            state.put(record)?;
        }
        None => withdraw(state, &id)?,
    }
    // Most notices of other kinds belong to no meeting and will never be needed again, but an amendment may come before its notice.
    state.remember(&key, Some(&known))
}

fn adcom(id: &str, meeting: &notices::Meeting) -> Catalyst {
    let mut record = Catalyst {
        id: id.to_owned(),
        kind: "adcom".to_owned(),
        date_type: "STATED".to_owned(),
        company: meeting.company.clone(),
        drug: meeting.drug.clone(),
        title: meeting.title.clone(),
        status: if meeting.is_cancelled { "cancelled" } else { "upcoming" }.to_owned(),
        slips: meeting.slips,
        first_seen: meeting.first_seen.clone(),
        source: "federalregister.gov".to_owned(),
        source_url: meeting.anchor.url.clone(),
        source_field: "dates".to_owned(),
        verified_as_of: meeting.anchor.seen.clone(),
        ..Catalyst::default()
    };
    let (from, to) = meeting.days;
    set_dates(&mut record, from, to, Precision::Day);
    // A meeting of several days begins on its date.
    record.date = from.to_string();
    let (number, dates) = (meeting.anchor.number.as_str(), meeting.anchor.dates.as_str());
    set_anchor(&mut record, &[("field", "dates"), ("id", number), ("source", "federalregister.gov"), ("text", dates)]);
    record
}

/// Takes over the tickers of a company, or that the list no longer has it, and decides the tickers of its records again.
fn decide_tickers(state: Decision<'_, '_>, cik: &str, fact: Option<&StatementFact>) -> Result<(), Undecided> {
    let key = cik_key(cik);
    let before: Listed = state.get(&key)?.unwrap_or_default();
    let title = fact.map(|fact| fact.company.clone()).unwrap_or_default();
    let after = Listed { title, tickers: fact.map(|fact| fact.tickers.clone()).unwrap_or_default(), records: before.records.clone() };
    if after == before {
        return Ok(());
    }
    let (old, new) = (name_key(&before.title), name_key(&after.title));
    if let Some(old) = old.as_ref().filter(|old| new.as_ref() != Some(old)) {
        change_listed(state, old, cik, None)?;
    }
    if let Some(new) = &new {
        change_listed(state, new, cik, Some(&after.tickers))?;
    }
    if after.ticker() != before.ticker() {
        for id in &after.records {
            if let Some(record) = state.record(id)? {
                state.put(Catalyst { ticker: after.ticker(), ..record })?;
            }
        }
    }
    let is_known = !after.title.is_empty() || !after.tickers.is_empty() || !after.records.is_empty();
    state.remember(&key, Some(&after).filter(|_| is_known))
}

/// Changes which companies have a name, and decides the tickers of the records with this name again.
fn change_listed(state: Decision<'_, '_>, key: &str, cik: &str, tickers: Option<&Vec<String>>) -> Result<(), Undecided> {
    let before: Named = state.get(key)?.unwrap_or_default();
    let mut named = before.clone();
    match tickers {
        Some(tickers) => drop(named.listed.insert(cik.to_owned(), tickers.clone())),
        None => drop(named.listed.remove(cik)),
    }
    if named == before {
        return Ok(());
    }
    for id in &named.records {
        if let Some(record) = state.record(id)? {
            let (cik, ticker) = named.ticker(&record.company);
            state.put(Catalyst { cik, ticker, ..record })?;
        }
    }
    state.remember(key, Some(&named).filter(|named| !named.is_empty()))
}
