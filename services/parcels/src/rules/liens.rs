//! Tax liens: what the entries of a docket say about each, and which taxing bodies it is left for.
//!
//! A table shows the last entry of a docket only, so an entry that decides is remembered: a later one, such as a returned letter, hides it. A lien that a
//! reading lacks stays as it was. Nothing depends on today.

use std::collections::BTreeSet;

use crate::record::Parcel;
use crate::record::lien::{Lien, PARTIAL};
use proofs::hash::Hash32;
use property::dockets::{Seen, without_names};
use schemas::facts::liens::LienFact;
use texts::allegheny::{COUNTY, pins_of_block_lot};

use super::roll::Roll;
use super::state::{ParcelsRules, roll_key};
use fold::records::{DecisionRow, State};
use fold::undecided::{Undecided, all};

/// The most liens that wait for a parcel. Those beyond are not decided again when it is known.
const WAITING_MAX: usize = 1_000;

/// The key of what is remembered of a lien.
fn seen_key(key: &str) -> String {
    format!("seen/{key}")
}

/// The id of the record of a lien. It holds no PIN.
fn id(key: &str) -> String {
    let hash = Hash32::of(key.as_bytes()).to_string();
    format!("lien/{}", hash.get(..24).unwrap_or(&hash))
}

/// What is remembered of a lien.
fn seen_of(state: &mut State<'_, ParcelsRules>, key: &str) -> Result<Seen, Undecided> {
    Ok(state.get::<Seen>(&seen_key(key))?.unwrap_or_default().without_names())
}

/// The rows that a decision about a lien reads.
pub(super) fn reads(key: &str) -> Vec<DecisionRow> {
    vec![DecisionRow::State(seen_key(key)), DecisionRow::Record(id(key))]
}

/// The key of the liens that wait for a parcel with a PIN.
pub(super) fn waiting_key(pin: &str) -> String {
    format!("waiting/{pin}")
}

/// Decides the record of a lien.
pub(super) fn decide(state: &mut State<'_, ParcelsRules>, key: &str, fact: &LienFact) -> Result<(), Undecided> {
    let fact = &without_names(fact);
    let mut seen = seen_of(state, key)?;
    seen.take(&fact.last_entry);
    if fact.pin.is_empty() {
        for pin in pins_of_block_lot(&fact.block_lot) {
            let add = |keys: &mut BTreeSet<String>| _ = keys.len() < WAITING_MAX && keys.insert(key.to_owned());
            state.change(&waiting_key(&pin), add)?;
        }
        seen.waiting = Some(fact.clone());
    }
    state.change(&seen_key(key), |stored: &mut Seen| stored.clone_from(&seen))?;
    put(state, key, &seen, fact)
}

/// Decides the liens again that waited for a parcel, now that it is known.
pub(super) fn decide_waiting(state: &mut State<'_, ParcelsRules>, pin: &str) -> Result<(), Undecided> {
    let keys: BTreeSet<String> = state.get(&waiting_key(pin))?.unwrap_or_default();
    all(keys.iter().map(|key| {
        let seen = seen_of(state, key)?;
        match &seen.waiting {
            Some(fact) => put(state, key, &seen, fact),
            None => Ok(()),
        }
    }))
    .map(drop)
}

/// Sets the record of a lien. A block-lot is a PIN if exactly one of those that it can mean is that of a known parcel.
fn put(state: &mut State<'_, ParcelsRules>, key: &str, seen: &Seen, fact: &LienFact) -> Result<(), Undecided> {
    let mut pin = fact.pin.clone();
    if pin.is_empty() {
        let candidates = pins_of_block_lot(&fact.block_lot);
        let rolls = all(candidates.iter().map(|pin| state.get::<Roll>(&roll_key(pin))))?;
        let is_known = |roll: &Option<Roll>| roll.as_ref().is_some_and(|roll| roll.details.is_some());
        let mut known = candidates.iter().zip(&rolls).filter(|(_, roll)| is_known(roll)).map(|(pin, _)| pin);
        if let (Some(only), None) = (known.next(), known.next()) {
            pin.clone_from(only);
        }
    }
    state.put(record(id(key), pin, seen, fact))
}

fn record(id: String, pin: String, seen: &Seen, fact: &LienFact) -> Parcel {
    let (status, why, left) = seen.status(fact);
    let amount_cents = fact.amount_cents.filter(|_| status != PARTIAL);
    let lien = Lien {
        dtd: fact.docket.clone(),
        description: fact.description.clone(),
        body: left.into_iter().map(str::to_owned).collect(),
        tax_year: fact.year,
        filed: fact.filed.clone(),
        amount_cents,
        status: status.to_owned(),
        why,
        last_entry: fact.last_entry.clone(),
        assignee: fact.assignee.clone(),
        block_lot: fact.block_lot.clone(),
        municipality: fact.municipality.clone(),
    };
    Parcel { id, pin, county: COUNTY.to_owned(), lien: Some(Box::new(lien)), ..Parcel::default() }
}

#[cfg(test)]
mod tests {
    use schemas::event::FactKind;
    use schemas::views::records::Record;

    use super::super::{Parcels, ParcelsFact};
    use super::*;
    use crate::record::lien::{OPEN, SATISFIED};
    use fold::testing::{self, Folded};

    const KEY: &str = "allegheny.liens/DTD-97-004687|x|1996|28F194|0028F00194000000";

    fn lien(description: &str, last_entry: &str) -> LienFact {
        LienFact {
            docket: "DTD-97-004687".into(),
            description: description.into(),
            year: Some(1996),
            block_lot: "28F194".into(),
            pin: "0028F00194000000".into(),
            amount_cents: Some(120_000),
            last_entry: last_entry.into(),
            ..LienFact::default()
        }
    }

    /// Folds the versions of one lien, and returns its last record.
    fn folded(versions: Vec<LienFact>) -> Parcel {
        let mut engine: Folded<Parcels> = Folded::default();
        for version in versions {
            engine.decide(&testing::fact(KEY, FactKind::Observed, 1_795_176_000_000, Some(ParcelsFact::Lien(Box::new(version)))));
        }
        engine.records().remove(&id(KEY)).unwrap()
    }

    fn status(record: Parcel) -> (String, Vec<String>, Option<i64>) {
        let lien = record.lien.unwrap();
        (lien.status, lien.body, lien.amount_cents)
    }

    /// Proves that the record of a fact with names in its entry has their initials, in the entry and in what it decided.
    #[test]
    fn entries_name_no_person() {
        let record = folded(vec![
            lien("School District Tax Lien", "Satisfaction, John Kowalski"),
            lien("School District Tax Lien", "Notice to SMITH"),
        ]);
        let lien = record.lien.unwrap();
        assert_eq!((lien.status.as_str(), lien.last_entry.as_str()), (SATISFIED, "Notice to S."));
        assert_eq!(lien.why, "the earlier entry \"Satisfaction, J. K.\", which \"Notice to S.\" hides");
    }

    /// Proves that the record of a fact with the name of a person who bought the lien has the initials, and that of a company the whole name.
    #[test]
    fn assignees_name_no_person() {
        let shown_assignee = |assignee: &str| {
            let fact = LienFact { assignee: assignee.into(), ..lien("School District Tax Lien", "Tax Lien") };
            folded(vec![fact]).lien.unwrap().assignee
        };
        assert_eq!(
            (shown_assignee("PNC BANK ATTN: JOHN SMITH"), shown_assignee("MTAG SERVICES, LLC")),
            ("P. B. A. J. S.".into(), "MTAG SERVICES, LLC".into())
        );
    }

    /// Proves that an entry which decides is remembered when a later one hides it, and that what it decided is said.
    #[test]
    fn later_entries_hide_nothing() {
        let folded_with = |entries: &[&str]| folded(entries.iter().map(|entry| lien("School District Tax Lien", entry)).collect());
        let hidden = folded_with(&["Tax Lien", "Satisfaction", "Mail Returned"]);
        assert_eq!(hidden.lien.as_ref().unwrap().why, "the earlier entry \"Satisfaction\", which \"Mail Returned\" hides");
        assert_eq!(status(hidden).0, SATISFIED);
        let both = ["Satisfied as to School ONLY", "Notice", "Satisfied as to City ONLY"];
        let first = folded(vec![lien("City & School Tax Lien", both[0])]);
        assert_eq!(status(first), (PARTIAL.to_owned(), vec!["City".to_owned()], None));
        let both = folded(both.iter().map(|entry| lien("City & School Tax Lien", entry)).collect());
        assert_eq!(status(both), (SATISFIED.to_owned(), Vec::new(), Some(120_000)));
        assert_eq!(status(folded_with(&["Satisfaction", "Satisfaction Vacated", "Mail Returned"])).0, OPEN);
        // A flag that was set in error is taken back: no entry says so.
        let flagged = LienFact { is_satisfied: true, ..lien("School District Tax Lien", "Tax Lien") };
        assert_eq!(status(folded(vec![flagged, lien("School District Tax Lien", "Tax Lien")])).0, OPEN);
    }

    /// Proves that a lien with a PIN is in the list of its parcel, and one without in that of each parcel which its block-lot can mean; and that a lien which
    /// a table lacks stays as it was.
    #[test]
    fn liens_are_listed() {
        let lists = |record: &Parcel| record.places().into_iter().map(|place| place.list).collect::<Vec<_>>();
        let known = folded(vec![lien("Allegheny County Tax Lien", "Tax Lien")]);
        assert_eq!(lists(&known), ["lien/0028F00194000000"]);
        let unknown = LienFact { pin: String::new(), block_lot: "233J211 2".into(), ..lien("Allegheny County Tax Lien", "Tax Lien") };
        assert_eq!(lists(&folded(vec![unknown])), ["lien/unmatched/0233J00211000200", "lien/unmatched/0233J00211000002"]);
        let nowhere = LienFact { pin: String::new(), block_lot: "296- N-1-1".into(), ..lien("Allegheny County Tax Lien", "Tax Lien") };
        let nowhere = folded(vec![nowhere]);
        assert_eq!((lists(&nowhere), nowhere.lien.unwrap().block_lot.as_str()), (Vec::new(), "296- N-1-1"));
        let mut engine: Folded<Parcels> = Folded::default();
        let fact = |kind, data| testing::fact(KEY, kind, 1_795_176_000_000, data);
        let data = ParcelsFact::Lien(Box::new(lien("Allegheny County Tax Lien", "Tax Lien")));
        engine.decide(&fact(FactKind::Observed, Some(data)));
        let before = engine.records();
        engine.decide(&fact(FactKind::Withdrawn, None));
        assert_eq!(engine.records(), before);
    }
}
