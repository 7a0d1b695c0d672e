//! For tests: a view of simple records that is filled change by change, a filter over it, and a simple model of every expected page.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use jiff::civil::Date;
use operation::context::Context;
use operation::problem::Problem;
use operation::{Answer, Body, Call};
use schemars::JsonSchema;
use schemas::details::{ChangeRecord, NoDetails};
use schemas::position::Seq;
use schemas::topics::CHANGES_AWARDS;
use schemas::views::accounts::Tier;
use schemas::views::records::{Place, Record, RecordTables, Redact, Term, normal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Source;
use super::filter::{Field, Fields, Filter, TermQuery};
use super::page_request::{FilteredPageRequest, PageRequest};
use super::query::{Feed, Item, Query};
use super::testing::records::RecordView;
use super::testing::{Chance, START_MS, World, call};
use crate::text_field;

mod tables {
    schemas::record_tables!("things", places);
}

/// Tables with so small partitions of terms that a history has more of them than are read at once.
pub(crate) static SMALL: RecordTables = RecordTables { term_bucket: 32, ..tables::TABLES };
/// Tables whose partitions of terms hold more than is read at once.
pub(crate) static LARGE: RecordTables = RecordTables { term_bucket: 2_048, ..tables::TABLES };

/// The time between two changes.
pub(crate) const STEP_MS: i64 = 600_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Thing {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) size: i64,
}

impl ChangeRecord for Thing {
    type Details = NoDetails;
}

impl Record for Thing {
    const SEARCHED: &'static [&'static str] = &["name"];

    fn id(&self) -> &str {
        &self.id
    }

    /// Large things are not listed.
    fn is_listed(&self) -> bool {
        self.size < 95
    }

    fn terms(&self) -> Vec<Term> {
        [Term::new("kind", &self.kind), Term::new("name", &self.name)].into_iter().flatten().collect()
    }

    fn places(&self) -> Vec<Place> {
        ["all".to_owned(), format!("kind/{}", self.kind)].map(|list| Place { list, bucket: self.size / 10, rank: self.size }).into()
    }
}

/// The form of a thing that callers below tier pro see.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RedactedThing {
    kind: String,
}

impl Redact for Thing {
    type Redacted = RedactedThing;

    const WHOLE_FROM: Tier = Tier::Pro;
    const FREE_DAYS: i64 = 2;

    /// Things of even size are shown on even days only.
    fn is_free(&self, today: Date) -> bool {
        self.size % 2 == 1 || today.day() % 2 == 0
    }

    fn redacted(&self) -> RedactedThing {
        RedactedThing { kind: self.kind.clone() }
    }

    fn order(one: &RedactedThing, other: &RedactedThing) -> Ordering {
        one.kind.cmp(&other.kind)
    }
}

/// A filter of things by kind, part of the name, and size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Wants {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prefix: Option<String>,
    /// No term exists for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<i64>,
}

impl Wants {
    /// Written independently of the table of fields, from the meaning of the filter.
    pub(crate) fn takes(&self, thing: &Thing) -> bool {
        let name = thing.name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let kind = thing.kind.to_lowercase();
        self.kind.as_ref().is_none_or(|wanted| wanted.to_lowercase() == kind)
            && self.name.as_ref().is_none_or(|part| name.contains(&part.to_lowercase()))
            && self.prefix.as_ref().is_none_or(|prefix| name.starts_with(&prefix.to_lowercase()))
            && self.size.is_none_or(|least| thing.size >= least)
    }
}

impl Filter for Wants {
    type Record = Thing;

    const FIELDS: Fields<Self> = &[
        text_field!(kind).same_term_as(|thing| &thing.kind).found_by_term(3, "kind").with_codes("kind"),
        text_field!(name).part_of(|thing| &thing.name).found_by_part(1, "name").with_names("name"),
        text_field!(prefix)
            .selecting(|thing, prefix| normal(&thing.name).starts_with(&normal(prefix)))
            .found_by(2, |wants| wants.prefix.clone().map(|prefix| TermQuery::Prefix("name", vec![prefix]))),
        Field::<Self, Thing>::new("size").selecting_by(|wants, thing| wants.size.is_none_or(|least| thing.size >= least)),
    ];
}

/// Filters that are found by terms, by some of many values, by too many values, and by reading all changes.
pub(crate) fn filters() -> Vec<Wants> {
    let all = [
        json!({}),
        json!({ "kind": "b" }),
        json!({ "kind": "B", "size": 50 }),
        json!({ "kind": "rare" }),
        json!({ "kind": "none" }),
        json!({ "size": 97 }),
        json!({ "size": 1_000 }),
        json!({ "name": "Name 7" }),
        json!({ "name": "name", "kind": "a" }),
        json!({ "name": "name" }),
        json!({ "prefix": "NAME 1", "size": 20 }),
        json!({ "prefix": "zzz" }),
    ];
    all.into_iter().map(|wants| serde_json::from_value(wants).unwrap()).collect()
}

/// A change that readers see, in the model.
#[derive(Clone, Debug)]
pub(crate) struct ShownChange {
    pub(crate) seq: Seq,
    pub(crate) after: Thing,
    pub(crate) before: Option<Thing>,
}

/// A view of things.
pub(crate) struct Things {
    pub(crate) world: World,
    records: RecordView<Thing>,
    pub(crate) changes: Vec<ShownChange>,
}

impl Deref for Things {
    type Target = RecordView<Thing>;

    fn deref(&self) -> &RecordView<Thing> {
        &self.records
    }
}

impl Things {
    pub(crate) async fn new(tables: &'static RecordTables) -> Self {
        let world = World::new().await;
        let records = RecordView::new(&*world.store, tables).await;
        Self { world, records, changes: Vec::new() }
    }

    /// Creates a view with random changes, one every ten minutes.
    pub(crate) async fn filled(tables: &'static RecordTables, seed: u64, changes: usize) -> Self {
        let (mut this, mut chance) = (Self::new(tables).await, Chance(seed));
        this.fill(&mut chance, changes).await;
        this
    }

    pub(crate) async fn fill(&mut self, chance: &mut Chance, changes: usize) {
        for n in 0..changes {
            match chance.below(8) {
                0 => self.hidden(),
                _ => {
                    let thing = thing_by_chance(chance);
                    self.change(&thing);
                }
            }
            if n % 61 == 0 {
                self.commit().await;
            }
        }
        self.commit().await;
    }

    /// Adds a change that readers do not see.
    pub(crate) fn hidden(&mut self) {
        let at_ms = at_ms(self.checkpoint.seq.next());
        self.records.hidden(at_ms);
    }

    /// Adds a change of a thing. The next [`Self::commit`] writes it.
    pub(crate) fn change(&mut self, after: &Thing) -> Seq {
        let at_ms = at_ms(self.checkpoint.seq.next());
        let (seq, before) = self.records.change(at_ms, after);
        self.changes.push(ShownChange { seq, after: after.clone(), before });
        seq
    }

    pub(crate) async fn commit(&mut self) {
        self.records.commit().await;
    }

    /// The changes up to a seq that match a filter.
    pub(crate) fn shown(&self, wants: &Wants, upto: Seq) -> Vec<&ShownChange> {
        self.changes.iter().filter(|changes| changes.seq <= upto && wants.takes(&changes.after)).collect()
    }

    /// The things as of a seq.
    pub(crate) fn standing(&self, seq: Seq) -> BTreeMap<&str, &Thing> {
        self.changes.iter().filter(|changes| changes.seq <= seq).map(|changes| (changes.after.id.as_str(), &changes.after)).collect()
    }

    /// The feed, of which callers without a key see the given number of days.
    pub(crate) fn feed(&self, sample_days: Option<i64>) -> Feed {
        let RecordTables { view, records, history, feed, through, parked, .. } = *self.tables;
        let source = Source {
            service: "things",
            view,
            records,
            history,
            feed,
            through,
            parked,
            topic: &CHANGES_AWARDS,
            facts: &[],
            sample_days,
            redaction: None,
        };
        Feed { source, tables: self.tables, list: "things" }
    }

    /// A fixed clock, some time after the last change.
    pub(crate) fn context(&self) -> Arc<Context> {
        self.world.context(at_ms(self.checkpoint.seq) + STEP_MS)
    }
}

/// When a change is recorded.
pub(crate) fn at_ms(seq: Seq) -> i64 {
    START_MS + seq.stored() * STEP_MS
}

pub(crate) fn thing_by_chance(chance: &mut Chance) -> Thing {
    let kinds = ["a", "A", "b", "c"];
    let kind = if chance.below(90) == 0 { "rare" } else { kinds[chance.below(kinds.len())] };
    let name = format!("{} {}", ["Name", "NAME ", "name"][chance.below(3)], chance.below(120));
    Thing { id: format!("thing/{:03}", chance.below(150)), kind: kind.to_owned(), name, size: i64::try_from(chance.below(100)).unwrap() }
}

pub(crate) fn query(filter: Wants) -> Query<Wants> {
    let page = PageRequest { cursor: None, start: Some("earliest".to_owned()), limit: 200, wait: 0, as_of: None };
    Query { request: FilteredPageRequest { page, before: false, rebase: false }, filter, notes: Vec::new() }
}

/// The query for the next page.
pub(crate) fn after(query: Query<Wants>, page: &Value) -> Query<Wants> {
    at_cursor(query, page["cursor"].as_str().unwrap().to_owned())
}

/// The query that continues at a cursor.
pub(crate) fn at_cursor(mut query: Query<Wants>, cursor: String) -> Query<Wants> {
    (query.request.page.cursor, query.request.page.start) = (Some(cursor), None);
    query
}

/// A caller with a paid key, whose pages have full length.
pub(crate) fn keyed(ctx: &Arc<Context>) -> Call {
    let mut call = call(ctx);
    call.caller.tier = Tier::Pro;
    call.caller.key_id = "key_test".to_owned();
    call
}

pub(crate) async fn answer(call: &Call, feed: &Feed, query: Query<Wants>) -> Result<Answer, Problem> {
    let show = |Item { change, before }: Item<Thing>| json!({ "event": change.event, "seq": change.seq, "record": change.record, "before": before });
    feed.answer(call, query, show).await
}

pub(crate) async fn page(call: &Call, feed: &Feed, query: Query<Wants>) -> Value {
    match answer(call, feed, query).await.unwrap().body {
        Body::Json(value) => value,
        body => panic!("{body:?}"),
    }
}

/// The seqs of a page's items.
pub(crate) fn seqs(page: &Value) -> Vec<u64> {
    page["things"].as_array().unwrap().iter().map(|item| item["seq"].as_u64().unwrap()).collect()
}
