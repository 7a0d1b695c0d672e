//! Filings and insider trades. A filing of one filer is one record, whatever streams showed it, in whatever order: what each said is
//! remembered, and the record follows from all of it. An amendment names the filing that it amends; a trade is a record of its own.

use std::collections::BTreeMap;

use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::filing_events::WEIGHTS;
use schemas::facts::filings::FilingFact;
use schemas::facts::insider_trades::InsiderTradeFact;
use schemas::topics::{CHANGES_FILINGS, FILINGS, INSIDER_TRADES, Topic};
use schemas::views::filings::{Filing, TABLES};
use schemas::views::records::RecordTables;
use serde::{Deserialize, Serialize};

use super::records::{Read, Records, Rules, State};
use crate::service::Undecided;

/// Filings of one company and form among which an amendment finds what it amends.
const ALIKE_MAX: usize = 64;
/// Forms that nobody amends, some of which come by the hundred.
const NEVER_AMENDED: &[&str] = &["424B", "497", "FWP", "13F"];

/// The filings service's two folds.
pub type Filings = Records<FilingsRules>;

/// What the filings service states.
pub struct FilingsRules;

/// A fact of one of its two topics.
pub enum FilingsFact {
    /// Of `filings`.
    Filing(Box<FilingFact>),
    /// Of `insider_trades`.
    Trade(Box<InsiderTradeFact>),
}

/// What each stream said of a filing, by stream.
type Streams = BTreeMap<String, FilingFact>;

/// A filing among those of one company and form, in their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Alike {
    date: String,
    accession: String,
    amendment: bool,
}

impl Rules for FilingsRules {
    type Fact = FilingsFact;
    type Record = Filing;

    const NAME: &'static str = "filings";
    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[FILINGS, INSIDER_TRADES];
    const CHANGES: &'static Topic = &CHANGES_FILINGS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<FilingsFact>, avro::Error> {
        if topic.name == FILINGS.name {
            avro::decode(topic.name, value).map(|fact: Fact<FilingFact>| fact.map(|data| FilingsFact::Filing(Box::new(data))))
        } else {
            avro::decode(topic.name, value).map(|fact: Fact<InsiderTradeFact>| fact.map(|data| FilingsFact::Trade(Box::new(data))))
        }
    }

    fn reads(fact: &Fact<FilingsFact>) -> Vec<Read> {
        match &fact.data {
            Some(FilingsFact::Filing(filing)) => {
                let id = filing_id(&filing.accession, &filing.cik);
                let alike = is_amended(&filing.base_form).then(|| Read::Source(alike_key(filing)));
                [Read::Record(id.clone()), Read::Source(id)].into_iter().chain(alike).collect()
            }
            Some(FilingsFact::Trade(trade)) => vec![Read::Record(trade_id(trade))],
            None => Vec::new(),
        }
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<FilingsFact>) -> Result<(), Undecided> {
        match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(FilingsFact::Filing(filing))) => decide_filing(state, filing),
            (FactKind::Observed, Some(FilingsFact::Trade(trade))) => state.put(of_trade(trade)),
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            // What was filed stays filed; no stream publishes snapshots.
            _ => Ok(()),
        }
    }
}

fn filing_id(accession: &str, cik: &str) -> String {
    format!("filing/{accession}/{cik}")
}

fn trade_id(trade: &InsiderTradeFact) -> String {
    format!("trade/{}/{}/{}", trade.accession, trade.table, trade.row)
}

fn alike_key(filing: &FilingFact) -> String {
    format!("alike/{}/{}", filing.cik, filing.base_form)
}

fn is_amended(base_form: &str) -> bool {
    !NEVER_AMENDED.iter().any(|form| base_form.starts_with(form))
}

fn decide_filing(state: &mut State<'_, FilingsRules>, filing: &FilingFact) -> Result<(), Undecided> {
    let id = filing_id(&filing.accession, &filing.cik);
    let mut streams: Streams = state.source(&id)?.unwrap_or_default();
    streams.insert(filing.stream.clone(), filing.clone());
    let mut record = of_filing(&id, &streams);
    if is_amended(&filing.base_form) {
        let key = alike_key(filing);
        let before: Vec<Alike> = state.source(&key)?.unwrap_or_default();
        let own = Alike { date: record.filing_date.clone(), accession: record.accession.clone(), amendment: filing.amendment };
        let mut after = before.clone();
        after.retain(|other| other.accession != own.accession);
        after.push(own);
        after.sort_unstable();
        let spare = after.len().saturating_sub(ALIKE_MAX);
        after.drain(..spare);
        record.amends = amended_by(&after, &record.accession);
        if record.amends.is_empty() {
            // What it amends may have gone from those that are remembered.
            record.amends = state.record(&id)?.map(|known| known.amends).unwrap_or_default();
        }
        if after != before {
            // One that came late may be what others amend.
            for other in after.iter().filter(|other| other.amendment && other.accession != record.accession) {
                let amends = amended_by(&after, &other.accession);
                if !amends.is_empty()
                    && amends != amended_by(&before, &other.accession)
                    && let Some(other) = state.record(&filing_id(&other.accession, &filing.cik))?
                {
                    state.put(Filing { amends, ..other })?;
                }
            }
            state.remember(&key, Some(&after))?;
        }
    }
    state.remember(&id, Some(&streams))?;
    state.put(record)
}

/// The filing that an amendment amends: the last one before it that is none itself. Empty for what is no amendment.
fn amended_by(alike: &[Alike], accession: &str) -> String {
    let Some(at) = alike.iter().position(|one| one.accession == accession && one.amendment) else { return String::new() };
    alike.iter().take(at).rev().find(|one| !one.amendment).map(|one| one.accession.clone()).unwrap_or_default()
}

/// The record that follows from what the streams said. The index is the regulator's own list; a filer's own page has the most of a filing.
fn of_filing(id: &str, streams: &Streams) -> Filing {
    let by_trust = ["edgar.index", "edgar.submissions", "edgar.current"];
    let ordered: Vec<&FilingFact> = by_trust
        .iter()
        .filter_map(|stream| streams.get(*stream))
        .chain(streams.iter().filter(|(stream, _)| !by_trust.contains(&stream.as_str())).map(|(_, filing)| filing))
        .collect();
    let text =
        |of: fn(&FilingFact) -> &String| ordered.iter().map(|filing| of(filing)).find(|text| !text.is_empty()).cloned().unwrap_or_default();
    let list = |of: fn(&FilingFact) -> &Vec<String>| {
        ordered.iter().map(|filing| of(filing)).find(|list| !list.is_empty()).cloned().unwrap_or_default()
    };
    let (base_form, items) = (text(|filing| &filing.base_form), list(|filing| &filing.items));
    let event = WEIGHTS.event(&base_form, &items);
    Filing {
        id: id.to_owned(),
        kind: "filing".to_owned(),
        form: text(|filing| &filing.form),
        base_form,
        filing_date: text(|filing| &filing.filing_date),
        company: text(|filing| &filing.company),
        cik: text(|filing| &filing.cik),
        accession: text(|filing| &filing.accession),
        url: ordered.first().map(|filing| filing.url()).unwrap_or_default(),
        items,
        top_item: event.item,
        top_label: event.label,
        event_score: event.score,
        roles: list(|filing| &filing.roles),
        report_date: text(|filing| &filing.report_date),
        ..Filing::default()
    }
}

fn of_trade(trade: &InsiderTradeFact) -> Filing {
    let of_issuer = FilingFact { accession: trade.accession.clone(), cik: trade.issuer_cik.clone(), ..FilingFact::default() };
    Filing {
        id: trade_id(trade),
        kind: "trade".to_owned(),
        form: trade.form.clone(),
        base_form: schemas::facts::filings::base_form(&trade.form).to_owned(),
        filing_date: trade.filing_date.clone(),
        company: trade.issuer_name.clone(),
        cik: trade.issuer_cik.clone(),
        accession: trade.accession.clone(),
        url: of_issuer.url(),
        ticker: trade.issuer_symbol.clone(),
        owners: trade.owners.clone(),
        security: trade.security.clone(),
        trade_date: trade.date.clone(),
        code: trade.code.clone(),
        acquired_disposed: trade.acquired_disposed.clone(),
        shares: trade.shares.clone(),
        price: trade.price.clone(),
        shares_after: trade.shares_after.clone(),
        ownership: trade.ownership.clone(),
        planned: trade.planned,
        ..Filing::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(stream: &str, company: &str, items: &[&str]) -> FilingFact {
        FilingFact {
            stream: stream.into(),
            accession: "0000000001-26-000001".into(),
            cik: "0000000007".into(),
            company: company.into(),
            form: "8-K".into(),
            base_form: "8-K".into(),
            filing_date: "2026-11-20".into(),
            items: items.iter().map(|item| (*item).to_owned()).collect(),
            ..Default::default()
        }
    }

    /// Proves that a record follows from what the streams said, whichever came first, and that its items decide what it weighs.
    #[test]
    fn streams_are_one_record() {
        let streams: Streams = [fact("edgar.current", "Acme Corp", &["9.01", "1.03"]), fact("edgar.index", "ACME CORP", &[])]
            .into_iter()
            .map(|fact| (fact.stream.clone(), fact))
            .collect();
        let record = of_filing("x", &streams);
        assert_eq!((record.company.as_str(), record.top_item.as_str(), record.event_score), ("ACME CORP", "1.03", 100));
        assert_eq!(record.url, "https://www.sec.gov/Archives/edgar/data/7/000000000126000001/0000000001-26-000001-index.htm");
    }

    /// Proves what an amendment amends: the last filing of the form before it that is none itself.
    #[test]
    fn amendments() {
        let one = |date: &str, accession: &str, amendment| Alike { date: date.into(), accession: accession.into(), amendment };
        let mut alike = vec![one("2026-01-01", "a", false), one("2026-02-01", "b", true), one("2026-03-01", "c", false)];
        alike.extend([one("2026-03-01", "d", true), one("2026-03-02", "e", true)]);
        let amended: Vec<String> = ["a", "b", "d", "e", "?"].iter().map(|accession| amended_by(&alike, accession)).collect();
        assert_eq!(amended, ["", "a", "c", "c", ""]);
        assert_eq!(amended_by(&alike[1..2], "b"), "");
        assert!(is_amended("8-K") && !is_amended("424B2"));
    }
}
