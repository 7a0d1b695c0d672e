//! Two histories of a service that differ only in what callers below the paid tier must not see.

use std::collections::BTreeSet;
use std::sync::Arc;

use feed::free::FreeWindow;
use feed::testing::World;
use feed::testing::records::RecordView;
use jiff::Timestamp;
use jiff::civil::Date;
use operation::context::Context;
use schemas::views::records::{Record, RecordTables, Redact};
use serde_json::{Value, json};

/// The time of both clocks: 2026-11-20T12:00:00Z.
pub(super) const NOW_MS: i64 = 1_795_176_000_000;
const HOUR_MS: i64 = 3_600_000;
/// The hours of the free window of services without a redacted form.
const SAMPLE_HOURS: i64 = 7 * 24;

/// A version of a record, and when it was recorded.
pub(super) struct Recorded {
    /// How many hours before now.
    pub(super) hours_ago: i64,
    /// The record as JSON.
    pub(super) record: Value,
}

/// The details of a change, from the record before it and the record after it.
pub(super) type Details<R> = fn(Option<&R>, &R) -> Value;

/// Two histories, each with its context.
pub(super) struct Histories<R> {
    /// The versions of both, in pairs and in the order of recording.
    pub(super) pairs: Vec<[R; 2]>,
    /// The contexts.
    pub(super) contexts: [Arc<Context>; 2],
    _worlds: [World; 2],
}

impl<R: Redact> Histories<R> {
    /// Histories whose records have the same redacted forms, and the same records within the free window.
    pub(super) async fn redacted(tables: &'static RecordTables, records: Vec<Recorded>) -> Self {
        let now = Timestamp::from_millisecond(NOW_MS).unwrap();
        let window = FreeWindow::new(now, now);
        let shown = |record: &R| {
            let lists: BTreeSet<String> = record.places().into_iter().map(|place| place.list).collect();
            window.shows(record).then(|| json!([record.redacted(), record.is_listed(), lists]))
        };
        Self::new(tables, records, |record, _| shown(record), |_, _| json!({})).await
    }
}

impl<R: Record> Histories<R> {
    /// Histories that have the same changes within the last days. `details` gives the details of a change from the record before and after it.
    pub(super) async fn sampled(tables: &'static RecordTables, records: Vec<Recorded>, details: Details<R>) -> Self {
        let shown = |record: &R, hours_ago: i64| {
            let is_free = hours_ago <= SAMPLE_HOURS;
            // Ids of all times are known: they are numbers of the upstreams.
            Some(if is_free { json!(record) } else { json!(record.id()) })
        };
        Self::new(tables, records, shown, details).await
    }

    async fn new(
        tables: &'static RecordTables,
        records: Vec<Recorded>,
        shown: impl Fn(&R, i64) -> Option<Value>,
        details: Details<R>,
    ) -> Self {
        let worlds = [World::new().await, World::new().await];
        let mut views = [RecordView::new(&*worlds[0].store, tables).await, RecordView::new(&*worlds[1].store, tables).await];
        let mut pairs = Vec::new();
        for Recorded { hours_ago, record } in records {
            let left: R = serde_json::from_value(record).unwrap();
            let right = twin(&left, |record| shown(record, hours_ago));
            for (view, record) in views.iter_mut().zip([&left, &right]) {
                view.change_with(NOW_MS - hours_ago * HOUR_MS, record, |before| details(before, record));
            }
            pairs.push([left, right]);
        }
        for view in &mut views {
            view.commit().await;
        }
        let contexts = [worlds[0].context(NOW_MS), worlds[1].context(NOW_MS)];
        Self { pairs, contexts, _worlds: worlds }
    }
}

/// A record that differs in every value that can differ while the same is shown.
fn twin<R: Record>(record: &R, shown: impl Fn(&R) -> Option<Value>) -> R {
    let (mut json, wanted) = (json!(record), shown(record));
    let mut paths = Vec::new();
    leaves(&json, String::new(), &mut paths);
    for path in paths {
        let before = json.pointer(&path).unwrap().clone();
        for other in others(&before) {
            *json.pointer_mut(&path).unwrap() = other;
            if serde_json::from_value::<R>(json.clone()).is_ok_and(|twin| shown(&twin) == wanted) {
                break;
            }
            *json.pointer_mut(&path).unwrap() = before.clone();
        }
    }
    serde_json::from_value(json).unwrap()
}

/// Adds the JSON pointers of all texts, numbers and flags.
pub(super) fn leaves(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| leaves(value, format!("{path}/{name}"), paths)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| leaves(value, format!("{path}/{at}"), paths)),
        Value::Null => {}
        _ => paths.push(path),
    }
}

/// Other values of the same type, from those that differ much to those that differ little.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(is) => vec![json!(!is)],
        Value::Number(number) => match number.as_i64() {
            Some(number) => [2 * number + 1, number + 1, number - 1].map(|other| json!(other)).into(),
            None => [0.9, 1.01, 0.999].map(|factor| json!(number.as_f64().unwrap() * factor)).into(),
        },
        Value::String(text) => match text.parse::<Date>() {
            Ok(day) => [-1, 1, -3, 3].map(|days| json!(day.saturating_add(jiff::Span::new().days(days)).to_string())).into(),
            Err(_) => {
                let backwards: String = text.chars().rev().chain("x".chars()).collect();
                let words: Vec<String> = text.split(' ').map(|word| format!("{word}q")).collect();
                let last = text.char_indices().next_back().map_or(0, |(at, _)| at);
                vec![json!(backwards), json!(words.join(" ")), json!(format!("{}7", &text[..last])), json!(format!("{}8", &text[..last]))]
            }
        },
        _ => Vec::new(),
    }
}
