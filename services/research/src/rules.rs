//! Research funding: grants and clinical trials, one record per fact. The topics of a record are decided here, once, by the lexicon of
//! [`crate::record::topic_lexicon`].

use crate::record::{Funding, TABLES, Topic as RecordTopic};
use schemas::avro;
use schemas::details::{GRANT_SITES, LinkDetails};
use schemas::event::{Fact, FactKind};
use schemas::facts::grants::GrantFact;
use schemas::facts::trials::TrialFact;
use schemas::topics::{CHANGES_RESEARCH, GRANTS, TRIALS, Topic};
use schemas::views::records::{RecordChange, RecordTables};

use fold::aliases;
use fold::records::{DecisionRow, Records, Rules, State, read_variant};
use fold::service::Undecided;

/// The research service.
pub type Research = Records<ResearchRules>;

/// The rules of the research service.
pub struct ResearchRules;

/// A fact of one of the service's two topics.
#[derive(Clone)]
pub enum ResearchFact {
    /// A fact of the topic `grants`.
    Grant(Box<GrantFact>),
    /// A fact of the topic `trials`.
    Trial(Box<TrialFact>),
}

impl Rules for ResearchRules {
    type Fact = ResearchFact;
    type Record = Funding;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[GRANTS, TRIALS];
    const CHANGES: &'static Topic = &CHANGES_RESEARCH;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<ResearchFact>, avro::Error> {
        if topic.name == GRANTS.name {
            read_variant(topic, value, ResearchFact::Grant)
        } else {
            read_variant(topic, value, ResearchFact::Trial)
        }
    }

    fn reads(fact: &Fact<ResearchFact>) -> Vec<DecisionRow> {
        let mut reads = vec![DecisionRow::Record(id_of(&fact.key))];
        if let Some(ResearchFact::Trial(trial)) = &fact.data {
            reads.extend(aliases::reads(&trial.number, &trial.aliases));
        }
        reads
    }

    fn change_details(record: &Funding, _change: &RecordChange<Funding>) -> LinkDetails {
        // A trial's link is made from its number.
        if record.kind == "grant" { LinkDetails::new(&record.url, &GRANT_SITES) } else { LinkDetails::default() }
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<ResearchFact>) -> Result<(), Undecided> {
        let id = id_of(&fact.key);
        let record = match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(ResearchFact::Grant(grant))) => Funding { id, ..Funding::of_grant(grant) },
            (FactKind::Observed, Some(ResearchFact::Trial(trial))) => {
                aliases::remember(state, &trial.number, &trial.aliases)?;
                let before = state.record(&id)?;
                trial_record(id, trial, before.as_ref())
            }
            (FactKind::Withdrawn | FactKind::Superseded, _) => {
                let Some(before) = state.record(&id)? else { return Ok(()) };
                Funding { withdrawn: true, ..before }
            }
            (FactKind::Observed, None) => return Err(Undecided::Poison("an observed fact without its record".to_owned())),
            _ => return Ok(()),
        };
        state.put(record)
    }
}

/// Returns the id of a record. It starts with the kind instead of the stream, so that a record from another stream gets the same id.
fn id_of(key: &str) -> String {
    match key.split_once('/') {
        Some(("nih_reporter", number)) => format!("grant/{number}"),
        Some((_, number)) => format!("trial/{number}"),
        None => key.to_owned(),
    }
}

/// Builds the record of a trial. Lists that have the same entries as those of the record before keep its order: the registry promises none,
/// so another order is no change.
fn trial_record(id: String, trial: &TrialFact, before: Option<&Funding>) -> Funding {
    let keep = |list: Vec<String>, before: Option<&Vec<String>>| match before {
        Some(before) if sorted(before) == sorted(&list) => before.clone(),
        _ => list,
    };
    let record = Funding { id, ..Funding::of_trial(trial) };
    let topics = record.topics.into_iter().map(|topic| {
        let same = |before: &&RecordTopic| before.slug == topic.slug && same_evidence(&before.evidence, &topic.evidence);
        before.and_then(|before| before.topics.iter().find(same)).cloned().unwrap_or(topic)
    });
    Funding {
        topics: topics.collect(),
        conditions: keep(record.conditions, before.map(|before| &before.conditions)),
        interventions: keep(record.interventions, before.map(|before| &before.interventions)),
        ..record
    }
}

fn sorted(list: &[String]) -> Vec<&String> {
    let mut list: Vec<&String> = list.iter().collect();
    list.sort_unstable();
    list
}

/// Whether two pieces of evidence name the same phrases in the same fields, in any order.
fn same_evidence(one: &str, other: &str) -> bool {
    let parts = |evidence: &str| -> Vec<Vec<String>> {
        let sorted_phrases = |field: &str| {
            let mut phrases: Vec<String> = field.split([':', ',']).map(|phrase| phrase.trim().to_owned()).collect();
            phrases.sort_unstable();
            phrases
        };
        evidence.split("; ").map(sorted_phrases).collect()
    };
    parts(one) == parts(other)
}

#[cfg(test)]
mod tests {
    use schemas::facts::grants::grant_class;
    use schemas::facts::trials::sponsor_class;
    use schemas::key;
    use schemas::views::records::{alias_key, former_key};

    use super::*;
    use fold::testing::{Folded, fact};

    /// Proves how a grant and a trial become records, with the registry's classes mapped to the contract's four.
    #[test]
    fn records() {
        let grant = GrantFact {
            title: "Cardiac repair".into(),
            added: String::new(),
            notice_date: "2026-01-02".into(),
            state: "TX".into(),
            amount: Some(5),
            ..Default::default()
        };
        let record = Funding::of_grant(&GrantFact { number: "1".into(), ..grant });
        assert_eq!((record.id.clone(), record.published.as_str(), record.amount), (id_of("nih_reporter/1"), "2026-01-02", Some(5)));
        assert_eq!(record.topics.iter().map(|topic| topic.slug.as_str()).collect::<Vec<_>>(), ["cardiology"]);
        let trial = TrialFact { sponsor_class: "FED".into(), first_posted: "2026-01-03".into(), ..Default::default() };
        let record = trial_record(id_of("clinical_trials/NCT1"), &trial, None);
        assert_eq!((record.id.as_str(), record.sponsor_class.as_str()), ("trial/NCT1", "OTHER_GOV"));
        assert_eq!((sponsor_class("AMBIG"), grant_class("VA"), grant_class("NCI")), ("OTHER", "OTHER_GOV", "NIH"));
        let shown = |conditions: &[&str], keywords: &[&str]| {
            let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            TrialFact { conditions: list(conditions), keywords: list(keywords), ..Default::default() }
        };
        let before = trial_record("trial/1".into(), &shown(&["Stroke", "Heart Failure"], &["tumor", "cancer"]), None);
        assert!(before.topics.len() > 1 && before.conditions == ["Stroke", "Heart Failure"]);
        let reordered = shown(&["Heart Failure", "Stroke"], &["cancer", "tumor"]);
        assert_eq!(trial_record("trial/1".into(), &reordered, Some(&before)), before, "another order is no change");
        let other = trial_record("trial/1".into(), &shown(&["Heart Failure"], &["tumor"]), Some(&before));
        assert!(other.conditions == ["Heart Failure"] && other.topics != before.topics);
        assert!(record.states.is_empty() && Funding::of_grant(&GrantFact::default()).states.is_empty());
    }
    /// Proves that the earlier numbers of a trial lead to its current one, also after a fact that no longer names them, and that a trial without earlier
    /// numbers leaves nothing behind.
    #[test]
    fn earlier_numbers() {
        let observed = |number: &str, aliases: &[&str]| {
            let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
            let trial = TrialFact { number: number.into(), aliases, ..TrialFact::default() };
            fact(format!("clinical_trials/{number}"), FactKind::Observed, 0, Some(ResearchFact::Trial(Box::new(trial))))
        };
        let mut engine = Folded::<Research>::default();
        for (number, aliases) in
            [("NCT00000002", &["NCT00000001"][..]), ("NCT00000002", &["NCT00000003"]), ("NCT00000002", &[]), ("NCT00000009", &[])]
        {
            engine.decide(&observed(number, aliases));
        }
        let sources: Vec<String> =
            engine.table(TABLES.state).map(|(key, value)| format!("{key:?} {}", String::from_utf8_lossy(value))).collect();
        assert_eq!(sources.len(), 3, "{sources:?}");
        for (key, value) in [
            (alias_key("NCT00000001"), r#""NCT00000002""#),
            (alias_key("NCT00000003"), r#""NCT00000002""#),
            (former_key("NCT00000002"), r#"["NCT00000001","NCT00000003"]"#),
        ] {
            assert_eq!(engine.rows.get(&(TABLES.state.name, key![key.as_str()])).map(|value| &value[..]), Some(value.as_bytes()), "{key}");
        }
        engine.assert_rebuilds();
    }
}
