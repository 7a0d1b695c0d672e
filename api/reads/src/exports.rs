//! `GET /v1/exports/{file}`: the records of a service at the end of a day as one file, and the same table for `highwater export --current`.
//!
//! The table is read from the feed, newest change first: the first change of a record that is met is its latest one. So both backends read it in the
//! order in which the feed is stored, and every reader of one position gets the same rows.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use feed::etag::{etag, matches_etag};
use feed::notes::notes;
use feed::position::{Position, parse_date, position};
use feed::{Feeds, Source};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use operation::context::Part;
use operation::problem::Problem;
use operation::schema;
use operation::tiers::EXPORTS_MIN_TIER;
use operation::{Answer, Body, Call, Definition, Operation, Price, Surface};
use proofs::hash::Hash32;
use schemars::JsonSchema;
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use table_file::{Column, Format, Kind};
use view_store::ViewStore;
use view_store::feed::{FEED_BLOCK_LEN, FeedCache, FeedReader};

use super::files::{self, FileRows, Wanted};

/// The version of the form of the files, part of the ETag. Increase it when the same position is written with other bytes.
const RENDERING: &str = "4";

/// The columns that every table begins with. The fields of the record follow.
const FIRST: [(&str, Kind); 3] = [("id", Kind::Text), ("seq", Kind::Int), ("recordedAt", Kind::Time)];

/// The records of a service as a table: one row for each record that lists show.
#[derive(Clone)]
pub struct RecordTable {
    /// The source of the service's changes.
    pub source: Source,
    fields: Arc<[Column]>,
    listed: Listed,
}

/// The fields of a record as it is read on a day, from those that the feed has; `None` if tables leave the record out.
type Listed = fn(Fields, Date) -> Option<Fields>;
type Fields = serde_json::Map<String, Value>;

/// The fields of a record as it is read on a day, from those that the feed has; `None` if tables leave the record out.
#[must_use]
pub fn listed<R: ChangeRecord + Serialize + DeserializeOwned>(fields: Fields, day: Date) -> Option<Fields> {
    let fields = Value::Object(fields);
    let record = R::deserialize(&fields).ok().filter(ChangeRecord::is_in_tables)?;
    let fields = if R::ON_DAY.is_some() { serde_json::to_value(record.on_day(day)).ok()? } else { fields };
    if let Value::Object(fields) = fields { Some(fields) } else { None }
}

impl RecordTable {
    /// The table of a service, whose records are `R`.
    #[must_use]
    pub fn of<R: ChangeRecord + JsonSchema + Serialize + DeserializeOwned>(source: Source) -> Self {
        let mut fields = Column::of_schema(&schema::output::<R>());
        fields.retain(|field| FIRST.iter().all(|(name, _)| *name != field.name));
        Self { source, fields: fields.into(), listed: listed::<R> }
    }

    /// The columns.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        FIRST.into_iter().map(|(name, kind)| Column::new(name, kind)).chain(self.fields.iter().cloned()).collect()
    }

    /// The rows of the current records, as they are read on a day.
    ///
    /// # Errors
    /// When the view cannot be read.
    pub async fn current(&self, store: &dyn ViewStore, day: Date) -> Result<Rows, view_store::Error> {
        let view = store.live(self.source.view).await?;
        let upto = view.checkpoint().await?.seq;
        Ok(self.rows(FeedReader::new(view, self.source.feed, Arc::new(FeedCache::default())), upto, day))
    }

    /// The rows as of `upto`, which must not be above the view's checkpoint, as they are read on a day.
    #[must_use]
    pub fn rows(&self, reader: FeedReader, upto: Seq, day: Date) -> Rows {
        Rows { table: self.clone(), reader, day, next: upto.0, seen: HashSet::new() }
    }

    /// The row of a change; `None` if tables leave its record out.
    fn row(&self, change: Change, day: Date) -> Option<Vec<Value>> {
        let Change { seq, recorded_at, record: FeedRecord { id, mut fields } } = change;
        fields.insert("id".to_owned(), json!(id));
        let mut fields = (self.listed)(fields, day)?;
        let own = [json!(id), json!(seq), json!(recorded_at)];
        let mut field = |column: &Column| fields.get_mut(&column.name).map(Value::take).unwrap_or_default();
        Some(own.into_iter().chain(self.fields.iter().map(&mut field)).collect())
    }
}

/// A change in the feed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    seq: u64,
    recorded_at: String,
    record: FeedRecord,
}

/// A record in the feed.
#[derive(Deserialize)]
struct FeedRecord {
    id: String,
    #[serde(flatten)]
    fields: Fields,
}

/// The rows of a table, read block by block.
pub struct Rows {
    table: RecordTable,
    reader: FeedReader,
    /// The day on which the records are read.
    day: Date,
    /// The newest change that was not read yet; 0 after the last.
    next: u64,
    /// Hashes of the ids of the records that were met.
    seen: HashSet<Hash32>,
}

impl Rows {
    /// How many changes are still to be read.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.next
    }

    /// The next rows; none at the end.
    ///
    /// # Errors
    /// When the feed cannot be read.
    pub async fn next(&mut self) -> Result<Vec<Vec<Value>>, view_store::Error> {
        let mut rows = Vec::with_capacity(FEED_BLOCK_LEN);
        while rows.is_empty() && self.next > 0 {
            let block = self.reader.block(Seq(self.next)).await?;
            let first = block.first_seq().0;
            for seq in (first..=self.next).rev() {
                let at = usize::try_from(seq - first).unwrap_or(usize::MAX);
                // A change that cannot be read is left out, as in every other answer that is made from the feed.
                let change = block.shown(at).then(|| serde_json::from_slice::<Change>(&block.elements(at, at + 1)).ok()).flatten();
                if let Some(change) = change
                    // A record whose id is hidden: it is not known which other changes are of the same record. Lists leave it out, too.
                    && !change.record.id.is_empty()
                    && self.seen.insert(Hash32::of(change.record.id.as_bytes()))
                {
                    rows.extend(self.table.row(change, self.day));
                }
            }
            self.next = first.saturating_sub(1);
        }
        Ok(rows)
    }
}

impl FileRows for Rows {
    async fn next(&mut self) -> io::Result<Vec<Vec<Value>>> {
        Self::next(self).await.map_err(io::Error::other)
    }
}

/// Arguments of `export`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The day and the format: `DATE.parquet`, `DATE.csv` or `DATE.ndjson`. The file holds the records as they were at the end of the day in UTC.
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\.(ndjson|csv|parquet)$"))]
    pub file: String,
}

/// The operation of one service, whose table is given.
#[must_use]
pub fn operation(table: RecordTable) -> Operation {
    let words = Definition {
        name: "export",
        path: "/v1/exports/{file}",
        summary: "All records at the end of a day as one file: Parquet, CSV or NDJSON.",
        description: "One row for each record that lists show, in its recorded form, the last changed first, with `seq` and `recordedAt` of its last \
            change. Columns have types: dates, times in UTC, numbers, lists and structures. Unknown dates are null. The file of a day that has ended never \
            changes, and is sent in parts (`Range`, `If-Range`). A file that is not written yet within 20 seconds gets `unavailable` with \
            `Retry-After`: ask again.",
        price: Price::Tier(EXPORTS_MIN_TIER),
        surface: Surface::Route,
        errors: &[ErrorCode::AsOfInvalid, ErrorCode::RangeUnsatisfiable, ErrorCode::Unavailable],
        example: json!({ "file": "2026-11-01.parquet" }),
        ..Definition::read()
    };
    let table = Arc::new(table);
    let operation = Operation::define::<Arguments, (), _, _>(words, move |call, arguments| answer(call, arguments, Arc::clone(&table)));
    operation.with_files(&[("application/vnd.apache.parquet", false), ("text/csv; charset=utf-8", true), ("application/x-ndjson", true)])
}

/// The problem of a day that has no file.
fn day_problem(reason: &str) -> Problem {
    Problem::new(ErrorCode::AsOfInvalid, format!("file: {reason}")).about("file")
}

async fn answer(call: Call, arguments: Arguments, table: Arc<RecordTable>) -> Result<Answer, Problem> {
    let (ctx, file) = (&call.context, arguments.file);
    let wrong = || Problem::parameter("file", "file: is not DATE.parquet, DATE.csv or DATE.ndjson");
    let (date, extension) = file.split_once('.').ok_or_else(wrong)?;
    let format = Format::from_name(extension).ok_or_else(wrong)?;
    let source = table.source;
    let day = parse_date(date).ok_or_else(|| day_problem(&format!("{date:?} is not a date (YYYY-MM-DD)")))?;
    if day >= ctx.clock.now().to_zoned(TimeZone::UTC).date() {
        return Err(day_problem(&format!("the file of {day} is made after that day ends in UTC; ask for an earlier day")));
    }
    let at = position(ctx, &source, Some(date)).await?;
    let etag = etag(&*at.view, &[RENDERING, source.service, &at.seq.0.to_string(), &file]);
    let body = if matches_etag(call.if_none_match.as_deref(), &etag) {
        Body::NotModified
    } else {
        let note = notes(&call, &source, &at).await?.note(false);
        let Position { view, seq, .. } = at;
        let rows = || table.rows(Feeds::of(ctx).reader(&source, view), seq, day);
        let wanted = Wanted { account: &call.caller.account, etag: &etag, name: format!("{}-{file}", source.service), format };
        let mut file = files::file(ctx, wanted, table.columns(), rows).await?;
        file.note = note;
        Body::File(file)
    };
    Ok(Answer { body, etag, next_cursor: String::new(), has_more: false, status: 200 })
}
