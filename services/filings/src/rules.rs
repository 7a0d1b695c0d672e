//! Filings and insider trades. A filing of one filer is one record, whichever streams contain it and in whatever order: the fact from each
//! stream is remembered, and the record is built from all of them. An amendment names the filing that it amends; a trade is a record of its
//! own.

use std::collections::BTreeMap;

use crate::filing_events::WEIGHTS;
use crate::record::{Filing, TABLES};
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::filings::FilingFact;
use schemas::facts::insider_trades::InsiderTradeFact;
use schemas::topics::{CHANGES_FILINGS, FILINGS, INSIDER_TRADES, Topic};
use schemas::views::records::RecordTables;
use serde::{Deserialize, Serialize};

use fold::records::{DecisionRow, Records, Rules, State, read_variant};
use fold::service::Undecided;

/// How many filings of one company and form are remembered to find what an amendment amends: the newest ones.
const RELATED_FILINGS_MAX: usize = 64;
/// Prefixes of forms that are never amended, some of which are filed by the hundred.
const NEVER_AMENDED: &[&str] = &["424B", "497", "FWP", "13F"];

/// The filings service.
pub type Filings = Records<FilingsRules>;

/// The rules of the filings service.
pub struct FilingsRules;

/// A fact of one of the service's two topics.
pub enum FilingsFact {
    /// A fact of the topic `filings`.
    Filing(Box<FilingFact>),
    /// A fact of the topic `insider_trades`.
    Trade(Box<InsiderTradeFact>),
}

/// The fact about a filing from each stream, by stream.
type FactsByStream = BTreeMap<String, FilingFact>;

/// A filing in the list of those with the same company and form, sorted by date.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RelatedFiling {
    date: String,
    accession: String,
    amendment: bool,
}

impl Rules for FilingsRules {
    type Fact = FilingsFact;
    type Record = Filing;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[FILINGS, INSIDER_TRADES];
    const CHANGES: &'static Topic = &CHANGES_FILINGS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<FilingsFact>, avro::Error> {
        if topic.name == FILINGS.name {
            read_variant(topic, value, FilingsFact::Filing)
        } else {
            read_variant(topic, value, FilingsFact::Trade)
        }
    }

    fn reads(fact: &Fact<FilingsFact>) -> Vec<DecisionRow> {
        match &fact.data {
            Some(FilingsFact::Filing(filing)) => {
                let id = filing_id(&filing.accession, &filing.cik);
                let related = is_amended(&filing.base_form).then(|| DecisionRow::State(related_key(filing)));
                [DecisionRow::Record(id.clone()), DecisionRow::State(id)].into_iter().chain(related).collect()
            }
            Some(FilingsFact::Trade(trade)) => vec![DecisionRow::Record(trade_id(trade))],
            None => Vec::new(),
        }
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<FilingsFact>) -> Result<(), Undecided> {
        match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(FilingsFact::Filing(filing))) => decide_filing(state, filing),
            (FactKind::Observed, Some(FilingsFact::Trade(trade))) => state.put(trade_record(trade)),
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            // Filings are never withdrawn, and no stream publishes snapshots.
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

fn related_key(filing: &FilingFact) -> String {
    format!("alike/{}/{}", filing.cik, filing.base_form)
}

fn is_amended(base_form: &str) -> bool {
    !NEVER_AMENDED.iter().any(|form| base_form.starts_with(form))
}

fn decide_filing(state: &mut State<'_, FilingsRules>, filing: &FilingFact) -> Result<(), Undecided> {
    let id = filing_id(&filing.accession, &filing.cik);
    let mut facts: FactsByStream = state.get(&id)?.unwrap_or_default();
    facts.insert(filing.stream.clone(), filing.clone());
    let mut record = filing_record(&id, &facts);
    if is_amended(&filing.base_form) {
        let key = related_key(filing);
        let before: Vec<RelatedFiling> = state.get(&key)?.unwrap_or_default();
        let own = RelatedFiling { date: record.filing_date.clone(), accession: record.accession.clone(), amendment: filing.amendment };
        let mut after = before.clone();
        after.retain(|other| other.accession != own.accession);
        after.push(own);
        after.sort_unstable();
        let excess = after.len().saturating_sub(RELATED_FILINGS_MAX);
        after.drain(..excess);
        record.amends = amended_by(&after, &record.accession);
        if record.amends.is_empty() {
            // The amended filing may no longer be in the remembered list.
            record.amends = state.record(&id)?.map(|known| known.amends).unwrap_or_default();
        }
        if after != before {
            // A filing that arrives late may be the one that others amend.
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
    state.remember(&id, Some(&facts))?;
    state.put(record)
}

/// Returns the accession number of the filing that an amendment amends: the last original before it. Empty for a filing that is not an
/// amendment.
fn amended_by(related: &[RelatedFiling], accession: &str) -> String {
    let Some(at) = related.iter().position(|one| one.accession == accession && one.amendment) else { return String::new() };
    related.iter().take(at).rev().find(|one| !one.amendment).map(|one| one.accession.clone()).unwrap_or_default()
}

/// Builds the record from the facts of all streams. The index is the regulator's own list and takes precedence; the filer's own page has
/// the most fields.
fn filing_record(id: &str, facts: &FactsByStream) -> Filing {
    let by_trust = ["edgar.index", "edgar.submissions", "edgar.current"];
    let ordered: Vec<&FilingFact> = by_trust
        .iter()
        .filter_map(|stream| facts.get(*stream))
        .chain(facts.iter().filter(|(stream, _)| !by_trust.contains(&stream.as_str())).map(|(_, filing)| filing))
        .collect();
    let text = |field: fn(&FilingFact) -> &String| {
        ordered.iter().map(|filing| field(filing)).find(|text| !text.is_empty()).cloned().unwrap_or_default()
    };
    let list = |field: fn(&FilingFact) -> &Vec<String>| {
        ordered.iter().map(|filing| field(filing)).find(|list| !list.is_empty()).cloned().unwrap_or_default()
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

fn trade_record(trade: &InsiderTradeFact) -> Filing {
    let issuer_filing = FilingFact { accession: trade.accession.clone(), cik: trade.issuer_cik.clone(), ..FilingFact::default() };
    Filing {
        id: trade_id(trade),
        kind: "trade".to_owned(),
        form: trade.form.clone(),
        base_form: schemas::facts::filings::base_form(&trade.form).to_owned(),
        filing_date: trade.filing_date.clone(),
        company: trade.issuer_name.clone(),
        cik: trade.issuer_cik.clone(),
        accession: trade.accession.clone(),
        url: issuer_filing.url(),
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

    /// Proves that the record does not depend on the order of facts, and that its items determine its score.
    #[test]
    fn streams_are_one_record() {
        let facts: FactsByStream = [fact("edgar.current", "Acme Corp", &["9.01", "1.03"]), fact("edgar.index", "ACME CORP", &[])]
            .into_iter()
            .map(|fact| (fact.stream.clone(), fact))
            .collect();
        let record = filing_record("x", &facts);
        assert_eq!((record.company.as_str(), record.top_item.as_str(), record.event_score), ("ACME CORP", "1.03", 100));
        assert_eq!(record.url, "https://www.sec.gov/Archives/edgar/data/7/000000000126000001/0000000001-26-000001-index.htm");
    }

    /// Proves which filing an amendment amends: the last one before it with the same form that is not an amendment.
    #[test]
    fn amendments() {
        let one = |date: &str, accession: &str, amendment| RelatedFiling { date: date.into(), accession: accession.into(), amendment };
        let mut related = vec![one("2026-01-01", "a", false), one("2026-02-01", "b", true), one("2026-03-01", "c", false)];
        related.extend([one("2026-03-01", "d", true), one("2026-03-02", "e", true)]);
        let amended: Vec<String> = ["a", "b", "d", "e", "?"].iter().map(|accession| amended_by(&related, accession)).collect();
        assert_eq!(amended, ["", "a", "c", "c", ""]);
        assert_eq!(amended_by(&related[1..2], "b"), "");
        assert!(is_amended("8-K") && !is_amended("424B2"));
    }
}
