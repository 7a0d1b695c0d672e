//! Recalls: one record per recall, whichever agencies published it, in whatever streams and order.
//!
//! The rules of merging are in [`merge`], those of categories in [`category`]. This module turns them into changes: a fact changes the set
//! of facts of its recall; the recall is built again from that set and compared with its record; a difference is a change. A record that
//! turns out to be the same recall as another agency's remains with `mergedInto` set.

pub mod category;
pub mod merge;

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use schemas::avro;
use schemas::change::ChangeKind;
use schemas::details::{LinkDetails, RECALL_SITES};
use schemas::event::{Fact, FactKind};
use schemas::facts::recalls::RecallFact;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::{Datum, Key, Table, ViewDef, Write};
use schemas::topics::{CHANGES_RECALLS, RECALLS as RECALLS_TOPIC, Topic};
use schemas::views::recalls::{
    FEED, HISTORY, LISTS, ListEntry, PARKED, RECALLS, Recall, RecallChange, RememberedFact, RememberedSet, Row, SETS, SOURCES, THROUGH,
    VIEW, day_of, month_of,
};
use serde::Serialize;
use texts::folding::is_same_content;

use self::merge::{Alike, LikenessPlace};
use fold::rows::Rows;
use fold::service::{Draft, Service, Undecided};

/// The recalls service.
pub struct Recalls;

impl Service for Recalls {
    type Fact = RecallFact;
    type Record = Recall;
    type Note = RememberedFact;

    const NAME: &'static str = "recalls";
    const VIEW: &'static ViewDef = &VIEW;
    const INPUTS: &'static [Topic] = &[RECALLS_TOPIC];
    const CHANGES: &'static Topic = &CHANGES_RECALLS;
    const FEED: &'static Table = &FEED;
    const RECORDS: &'static Table = &RECALLS;
    const PARKED: &'static Table = &PARKED;
    const DECISION_TABLES: &'static [&'static Table] = &[&RECALLS, &SOURCES, &SETS];

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<RecallFact>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<RecallFact>) -> Vec<(&'static Table, Key)> {
        let mut out = vec![(&SOURCES, key![fact.key.as_str()])];
        if let Some(data) = &fact.data {
            let identity = data.identity();
            out.push((&SETS, key![members_of(&identity)]));
            // If it is the only fact of its recall, this is the recall's position among those with the same likeness.
            if let Some(likeness) = merge::likeness_of(&data.brand, &data.title, &data.date) {
                let place = LikenessPlace { likeness, day: day_of(&data.date) };
                out.extend(place.sets().map(|name| (&SETS as &'static Table, key![name])));
            }
            out.push((&RECALLS, key![identity]));
        }
        out
    }

    fn decide(rows: &mut Rows, fact: &Fact<RecallFact>) -> Result<Vec<Draft<Recall, RememberedFact>>, Undecided> {
        let before: Option<RememberedFact> = rows.get_json(&SOURCES, &key![fact.key.as_str()])?;
        let Some(note) = note_of(fact, before.as_ref())? else { return Ok(Vec::new()) };
        let decision = Decision { rows, note: &note, before: before.as_ref(), sets: BTreeMap::new(), recalls: BTreeMap::new() };
        let (mut drafts, sets) = decision.drafts()?;
        let id = identity_of(&note);
        let note = Some(RememberedFact { sets, ..note });
        match drafts.first_mut() {
            Some(first) => first.note = note,
            None => drafts.push(Draft { note, ..note_draft(id) }),
        }
        Ok(drafts)
    }

    fn apply(change: &RecallChange, record: &[u8]) -> Vec<Write> {
        let mut writes = Vec::with_capacity(10);
        if let Some(note) = &change.note {
            remember(note, &mut writes);
        }
        if let Some(through) = &change.through
            && let Ok(value) = serde_json::to_vec(through)
        {
            writes.push(Write::put(&THROUGH, key![through.upstream.as_str(), change.seq], Bytes::from(value)));
        }
        let Some(after) = &change.after else { return writes };
        let since = write_list_entries(change, after, &mut writes);
        writes.push(Write::put(&RECALLS, key![after.id.as_str()], row_json(change.seq, since, record)));
        if let Some(before) = change.before.as_ref().and_then(|before| serde_json::to_vec(before).ok()) {
            let value = row_json(change.before_seq, change.before_since, &before);
            writes.push(Write::put(&HISTORY, key![after.id.as_str(), change.before_seq], value));
        }
        writes
    }

    fn change_details(record: &Recall, _change: &RecallChange) -> LinkDetails {
        LinkDetails::new(&record.url, &RECALL_SITES)
    }

    fn is_listed(record: &Recall) -> bool {
        record.is_listed()
    }

    fn digest_row(value: &Bytes) -> Option<Bytes> {
        let row: Row = serde_json::from_slice(value).ok()?;
        row.record.is_listed().then(|| serde_json::to_vec(&row.record).ok().map(Bytes::from)).flatten()
    }

    fn read_row(value: &[u8]) -> Result<(Recall, Seq, Seq), serde_json::Error> {
        serde_json::from_slice(value).map(|row: Row| (row.record, row.seq, row.since))
    }

    fn difference(id: &str, before: Option<(Recall, Seq, Seq)>, after: Option<Recall>) -> Option<Draft<Recall, RememberedFact>> {
        let after = match (after, &before) {
            (Some(after), _) => after,
            // The rules no longer create this record. Readers who know it get a change, unless it was not a record of its own.
            (None, Some((before, _, _))) if !before.is_listed() => return None,
            (None, Some((before, _, _))) => Recall { withdrawn: true, ..before.clone() },
            (None, None) => return None,
        };
        draft(id, before, after)
    }

    fn remember(
        table: &'static Table,
        key: &Key,
        value: Option<&Bytes>,
    ) -> Result<Option<Draft<Recall, RememberedFact>>, serde_json::Error> {
        let Some(Datum::Text(name)) = key.first() else { return Ok(None) };
        let note = match value {
            Some(value) if *table == SOURCES => serde_json::from_slice(value)?,
            _ if *table == SETS => {
                let items = value.map(|value| serde_json::from_slice(value)).transpose()?.unwrap_or_default();
                RememberedFact { sets: vec![RememberedSet { name: name.clone(), items }], ..RememberedFact::default() }
            }
            _ => return Ok(None),
        };
        Ok(Some(Draft { note: Some(note), ..note_draft(String::new()) }))
    }
}

/// Creates a draft that changes no record.
fn note_draft(id: String) -> Draft<Recall, RememberedFact> {
    Draft { event: ChangeKind::Noted, id, after: None, before: None, before_seq: Seq(0), before_since: Seq(0), note: None }
}

/// Returns the fields that [`merge`] and [`category`] read. The other fields are only in the fact's topic.
fn fields_to_remember(fact: &RecallFact) -> RecallFact {
    RecallFact {
        stream: fact.stream.clone(),
        agency: fact.agency.clone(),
        number: fact.number.clone(),
        lang: fact.lang.clone(),
        title: fact.title.clone(),
        brand: fact.brand.clone(),
        hazard: fact.hazard.clone(),
        date: fact.date.clone(),
        url: fact.url.clone(),
        remedy: fact.remedy.clone(),
        product_type: fact.product_type.clone(),
        products: fact.products.clone(),
        status: fact.status.clone(),
        classification: fact.classification.clone(),
        units: fact.units.clone(),
        alert: fact.alert,
        links: fact.links.clone(),
        ..RecallFact::default()
    }
}

/// Returns the decision state of a fact; `None` if it adds nothing.
fn note_of(fact: &Fact<RecallFact>, before: Option<&RememberedFact>) -> Result<Option<RememberedFact>, Undecided> {
    let mut note = RememberedFact { key: fact.key.clone(), version: fact.version, ..RememberedFact::default() };
    match (fact.kind, &fact.data) {
        (FactKind::Observed, Some(data)) => {
            if data.agency.is_empty() || data.number.is_empty() {
                return Err(Undecided::Poison("the fact names no agency or number".to_owned()));
            }
            let mut recall = fields_to_remember(data);
            if let Some(before) = before.and_then(|before| before.recall.as_ref()) {
                keep_order(&mut recall, before);
            }
            note.recall = Some(recall);
        }
        (FactKind::Withdrawn | FactKind::Superseded, _) => {
            let Some(before) = before else { return Ok(None) };
            note.gone = true;
            note.superseded_by.clone_from(&fact.superseded_by);
            note.recall.clone_from(&before.recall);
        }
        _ => return Err(Undecided::Poison(format!("a fact of kind {} holds no record", fact.kind.as_str()))),
    }
    Ok(Some(note))
}

/// Takes a text from the fact before if it has the same parts in another order. Upstreams list hazards, products and remedies in no
/// particular order; the order in which a record shows them is no change.
fn keep_order(recall: &mut RecallFact, before: &RecallFact) {
    for (text, before) in [
        (&mut recall.hazard, &before.hazard),
        (&mut recall.remedy, &before.remedy),
        (&mut recall.products, &before.products),
        (&mut recall.product_type, &before.product_type),
        (&mut recall.units, &before.units),
    ] {
        let (parts, parts_before) = (parts_of(text), parts_of(before));
        if parts != parts_before && sorted(&parts) == sorted(&parts_before) {
            text.clone_from(before);
        }
    }
    if sorted(&recall.links) == sorted(&before.links) {
        recall.links.clone_from(&before.links);
    }
}

/// Returns the parts of a text that was joined from entries.
fn parts_of(text: &str) -> Vec<&str> {
    text.split(['.', ';', '/', '!', '?']).map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn sorted<T: Ord + Clone>(list: &[T]) -> Vec<T> {
    let mut list = list.to_vec();
    list.sort_unstable();
    list
}

type Drafts = Vec<Draft<Recall, RememberedFact>>;

/// The decision about one fact: the sets after it, and the records that follow from them.
struct Decision<'a> {
    rows: &'a mut Rows,
    /// The decision state of the fact.
    note: &'a RememberedFact,
    /// The previous decision state of its key.
    before: Option<&'a RememberedFact>,
    /// The sets that were read, with the changes of this decision.
    sets: BTreeMap<String, Set>,
    /// Recalls built from their own facts alone, each with its position among those with the same likeness. Only those that were requested;
    /// the `member` sets no longer change by then.
    recalls: BTreeMap<String, Option<(Recall, Option<LikenessPlace>)>>,
}

/// A set with the changes of this decision.
struct Set {
    items: Vec<String>,
    is_changed: bool,
}

impl Set {
    fn insert(&mut self, item: String) {
        if let Err(at) = self.items.binary_search(&item) {
            self.items.insert(at, item);
            self.is_changed = true;
        }
    }

    fn remove(&mut self, item: &str) {
        if let Ok(at) = self.items.binary_search_by(|other| other.as_str().cmp(item)) {
            self.items.remove(at);
            self.is_changed = true;
        }
    }
}

impl Decision<'_> {
    /// Returns the drafts of changed records, and the changed sets.
    fn drafts(mut self) -> Result<(Drafts, Vec<RememberedSet>), Undecided> {
        let identity = identity_of(self.note);
        let old_identity = self.before.map(identity_of).unwrap_or_default();
        let mut touched: BTreeSet<String> = [identity.clone(), old_identity.clone()].into_iter().filter(|id| !id.is_empty()).collect();
        let mut old_places = Vec::with_capacity(touched.len());
        for id in &touched {
            old_places.push((id.clone(), self.own_recall(id, self.before)?.as_ref().and_then(LikenessPlace::of)));
        }
        if let Some(before) = self.before
            && old_identity != identity
            && !old_identity.is_empty()
        {
            self.set(members_of(&old_identity))?.remove(&before.key);
        }
        let key = self.note.key.clone();
        self.set(members_of(&identity))?.insert(key);
        for (id, old) in old_places {
            let new = self.recall_now(&id)?.and_then(|(_, place)| place.clone());
            for place in [&old, &new].into_iter().flatten() {
                touched.extend(self.alike(place)?.around(place.day, &id));
            }
            if old != new {
                if let Some(old) = &old {
                    self.set(old.set())?.remove(&old.item(&id));
                }
                if let Some(new) = &new {
                    let set = self.set(new.set())?;
                    if set.items.len() < merge::BUCKET_MAX {
                        set.insert(new.item(&id));
                    }
                }
                for place in [&old, &new].into_iter().flatten() {
                    touched.extend(self.alike(place)?.around(place.day, &id));
                }
            }
        }
        let mut drafts = Vec::with_capacity(1);
        for id in touched {
            let row: Option<Row> = self.rows.get_json(&RECALLS, &key![id.as_str()])?;
            let after = match (self.record(&id)?, &row) {
                (Some(after), _) => after,
                // No fact is about this recall any more: its fact now has another number.
                (None, Some(row)) => Recall { merged_into: identity.clone(), ..row.record.clone() },
                (None, None) => continue,
            };
            drafts.extend(draft(&id, row.map(|row| (row.record, row.seq, row.since)), after));
        }
        let changed = self.sets.into_iter().filter(|(_, set)| set.is_changed);
        let sets = changed.map(|(name, Set { items, .. })| RememberedSet { name, items }).collect();
        Ok((drafts, sets))
    }

    /// Returns a set with the changes of this decision.
    fn set(&mut self, name: String) -> Result<&mut Set, Undecided> {
        match self.sets.entry(name) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let items = self.rows.get_json(&SETS, &key![unknown.key().as_str()])?.unwrap_or_default();
                Ok(unknown.insert(Set { items, is_changed: false }))
            }
        }
    }

    /// Builds the recall of one identity from its own facts, with `own` in place of the fact being decided.
    fn own_recall(&mut self, identity: &str, own: Option<&RememberedFact>) -> Result<Option<Recall>, Undecided> {
        let members = self.set(members_of(identity))?.items.clone();
        let mut notes = Vec::with_capacity(members.len());
        for member in members {
            if member == self.note.key {
                notes.extend(own.map(Cow::Borrowed));
            } else {
                notes.extend(self.rows.get_json(&SOURCES, &key![member])?.map(Cow::Owned));
            }
        }
        notes.retain(|note: &Cow<'_, RememberedFact>| is_of(note, identity));
        let mut recall = merge::recall(identity, &notes, &category::LEXICON);
        if let Some(recall) = &mut recall
            && recall.withdrawn
            && let Some(successor) = notes.iter().map(|note| &note.superseded_by).find(|key| !key.is_empty())
        {
            // The recall continues under another number.
            let successor: Option<RememberedFact> = if *successor == self.note.key {
                Some(self.note.clone())
            } else {
                self.rows.get_json(&SOURCES, &key![successor.as_str()])?
            };
            let by_key = notes.iter().find(|note| !note.superseded_by.is_empty()).map(|note| successor_identity(note)).unwrap_or_default();
            recall.merged_into = successor.as_ref().map_or(by_key, identity_of);
        }
        Ok(recall)
    }

    /// Returns the recall of one identity after this fact, from its own facts, and its position among those with the same likeness.
    fn recall_now(&mut self, identity: &str) -> Result<Option<&(Recall, Option<LikenessPlace>)>, Undecided> {
        if !self.recalls.contains_key(identity) {
            let known = self.own_recall(identity, Some(self.note))?.map(|recall| {
                let place = LikenessPlace::of(&recall);
                (recall, place)
            });
            self.recalls.insert(identity.to_owned(), known);
        }
        Ok(self.recalls.get(identity).and_then(Option::as_ref))
    }

    /// Returns the recalls with the same likeness around a position, with the changes of this decision.
    fn alike(&mut self, place: &LikenessPlace) -> Result<Alike, Undecided> {
        let mut alike = Alike::default();
        for name in place.sets() {
            alike.extend(&self.set(name)?.items);
        }
        Ok(alike)
    }

    /// Returns the record of an identity, with other agencies considered.
    fn record(&mut self, identity: &str) -> Result<Option<Recall>, Undecided> {
        let Some((_, place)) = self.recall_now(identity)? else { return Ok(None) };
        let group = match place.clone() {
            Some(place) => self.alike(&place)?.group_of(place.day, identity),
            None => Vec::new(),
        };
        // Each recall is taken once, except by groups that contain it, which build it again.
        let own = |this: &mut Self| this.recalls.remove(identity).flatten().map(|(recall, _)| recall);
        match group.first() {
            Some(first) if group.len() > 1 && first == identity => {
                let mut members = Vec::with_capacity(group.len());
                for id in &group {
                    members.extend(self.recall_now(id)?.map(|(recall, _)| recall.clone()));
                }
                Ok(merge::merged(&members))
            }
            Some(first) if group.len() > 1 => Ok(own(self).map(|own| Recall { merged_into: first.clone(), ..own })),
            _ => Ok(own(self)),
        }
    }
}

/// Returns the name of the set of keys whose facts are about a recall.
fn members_of(identity: &str) -> String {
    format!("member/{identity}")
}

fn identity_of(note: &RememberedFact) -> String {
    note.recall.as_ref().map(RecallFact::identity).unwrap_or_default()
}

fn is_of(note: &RememberedFact, identity: &str) -> bool {
    note.recall.as_ref().is_some_and(|recall| {
        identity.strip_prefix(recall.agency.as_str()).and_then(|rest| rest.strip_prefix(':')) == Some(recall.number.as_str())
    })
}

/// Returns the identity under which the recall of a superseded fact continues, as far as its key gives it.
fn successor_identity(note: &RememberedFact) -> String {
    let agency = note.recall.as_ref().map(|recall| recall.agency.clone()).unwrap_or_default();
    let number = note.superseded_by.rsplit('/').next().unwrap_or_default();
    format!("{agency}:{number}")
}

/// Returns the draft that turns a record into `after`, if they differ.
fn draft(id: &str, before: Option<(Recall, Seq, Seq)>, after: Recall) -> Option<Draft<Recall, RememberedFact>> {
    let (event, before, before_seq, before_since) = match before {
        // A recall that never was a record of its own, and is none now, is not a change.
        None if !after.merged_into.is_empty() || after.withdrawn => return None,
        None => (ChangeKind::New, None, Seq(0), Seq(0)),
        Some((before, _, _)) if is_same_content(&before, &after) => return None,
        Some((before, seq, since)) => (ChangeKind::Modified, Some(before), seq, since),
    };
    Some(Draft { event, id: id.to_owned(), after: Some(after), before, before_seq, before_since, note: None })
}

/// A note as its row contains it: without the sets, which have rows of their own.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateRow<'a> {
    key: &'a str,
    version: i64,
    gone: bool,
    superseded_by: &'a str,
    recall: &'a Option<RecallFact>,
    sets: [(); 0],
}

/// Writes the decision state of a note.
fn remember(note: &RememberedFact, writes: &mut Vec<Write>) {
    let RememberedFact { key, version, gone, superseded_by, recall, sets: _ } = note;
    let source = StateRow { key, version: *version, gone: *gone, superseded_by, recall, sets: [] };
    // A note without a key contains only sets.
    if !key.is_empty()
        && let Ok(value) = serde_json::to_vec(&source)
    {
        writes.push(Write::put(&SOURCES, key![note.key.as_str()], Bytes::from(value)));
    }
    for set in &note.sets {
        let value = (!set.items.is_empty()).then(|| serde_json::to_vec(&set.items).ok()).flatten();
        let key = key![set.name.as_str()];
        writes.push(match value {
            Some(value) => Write::put(&SETS, key, Bytes::from(value)),
            None => Write::delete(&SETS, key),
        });
    }
}

/// Writes the list entries of a record. Returns since when it has its position in lists; 0 if it is in none.
fn write_list_entries(change: &RecallChange, after: &Recall, writes: &mut Vec<Write>) -> Seq {
    let before = change.before.as_ref().filter(|before| before.is_listed());
    let is_unchanged = before.is_some_and(|before| {
        after.is_listed() && (&before.date, &before.category, &before.agencies) == (&after.date, &after.category, &after.agencies)
    });
    if is_unchanged {
        return change.before_since;
    }
    if let Some(before) = before {
        put_list_entries(before, change.before_since, ListEntry { until: change.seq }, writes);
    }
    if after.is_listed() {
        put_list_entries(after, change.seq, ListEntry::default(), writes);
        return change.seq;
    }
    Seq(0)
}

fn put_list_entries(recall: &Recall, since: Seq, entry: ListEntry, writes: &mut Vec<Write>) {
    let value = Bytes::from(serde_json::to_vec(&entry).unwrap_or_default());
    let own = recall.agencies.iter().map(|agency| format!("{}/{agency}", recall.category));
    for list in own.chain(["*/*".to_owned()]) {
        let key = key![list, month_of(&recall.date), day_of(&recall.date), recall.id.as_str(), since];
        writes.push(Write::put(&LISTS, key, value.clone()));
    }
}

fn row_json(seq: Seq, since: Seq, record: &[u8]) -> Bytes {
    let mut out = format!(r#"{{"seq":{seq},"since":{since},"record":"#).into_bytes();
    out.extend_from_slice(record);
    out.push(b'}');
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the same hazards, options, products and links in another order are the record before, and that every other difference,
    /// also in punctuation alone, is taken.
    #[test]
    fn another_order_is_no_change() {
        let fact_with = |hazard: &str, remedy: &str, products: &str, links: [&str; 2]| RecallFact {
            hazard: hazard.into(),
            remedy: remedy.into(),
            products: products.into(),
            links: links.map(str::to_owned).into(),
            ..RecallFact::default()
        };
        let before = fact_with("It may burn. Fall", "Repair/Refund", "Lamps; Beds", ["b", "a"]);
        let mut after = fact_with("Fall; It may burn.", "Refund/Repair", "Beds; Lamps", ["a", "b"]);
        keep_order(&mut after, &before);
        assert_eq!(after, before);
        for other in [
            fact_with("Fall", "Repair", "Lamps; Lamps", ["b", "c"]),
            fact_with("It may burn. Fall.", "Repair/Refund/Replace", "Lamps, Beds", ["a", "a"]),
        ] {
            let mut after = other.clone();
            keep_order(&mut after, &before);
            assert_eq!(after, other);
        }
    }
    /// Proves that a recall in another normal form of its texts is no change, and that a corrected accent is one.
    #[test]
    fn normal_forms_are_no_change() {
        let recall_titled = |title: &str| Recall { id: "FDA:1".into(), title: title.into(), ..Recall::default() };
        let change =
            |before: &str, after: &str| draft("FDA:1", Some((recall_titled(before), Seq(1), Seq(0))), recall_titled(after)).is_some();
        assert!(!change("cafe\u{301}", "caf\u{e9}") && !change("caf\u{e9}", "cafe\u{301}"));
        assert!(change("cafe", "caf\u{e9}") && change("caf\u{e9}", "Caf\u{e9}"));
    }
}
