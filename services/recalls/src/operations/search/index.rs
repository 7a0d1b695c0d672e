//! The index on disk or in memory: which documents contain which words.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use feed::follower::Label;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::directory::MmapDirectory;
use tantivy::indexer::IndexWriterOptions;
use tantivy::query::{BooleanQuery, Query, RangeQuery, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::{
    DocId, IndexReader, IndexWriter, ReloadPolicy, Score, Searcher, SegmentOrdinal, SegmentReader, TantivyDocument, TantivyError, Term,
};

use super::newest::{Hit, NewestHits, Span};
use super::words::{Document, Keyword};
use crate::operations::rows::Filter;

/// The version of the index. It changes whenever the same changes give another index.
const VERSION: u32 = 4;
/// The memory for unwritten documents in bytes: the minimum of the engine.
const WRITER_BYTES: usize = 15_000_000;

/// What an index on disk says of its last change.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    version: u32,
    seq: Seq,
    origin: u64,
}

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    words: Field,
    id: Field,
    seq: Field,
    day: Field,
    category: Field,
    agency: Field,
}

/// The part of the index that queries read: everything up to one change.
#[derive(Clone)]
pub(super) struct IndexSnapshot {
    pub(super) searcher: Searcher,
    pub(super) fields: Fields,
    /// Documents added since the last commit.
    pub(super) pending: Arc<Vec<Arc<Document>>>,
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_tokenizer("whitespace").set_fieldnorms(false).set_index_option(IndexRecordOption::Basic);
    let fields = Fields {
        words: builder.add_text_field("words", TextOptions::default().set_indexing_options(indexing)),
        id: builder.add_text_field("id", TextOptions::default().set_fast("raw")),
        seq: builder.add_u64_field("seq", FAST),
        day: builder.add_i64_field("day", FAST),
        category: builder.add_text_field("category", STRING),
        agency: builder.add_text_field("agency", STRING),
    };
    (builder.build(), fields)
}

/// An open index, up to one change. A clone shares its files, which are locked until the last one is dropped. Its calls block the thread.
#[derive(Clone)]
pub(super) struct Index {
    writer: Arc<Mutex<IndexWriter>>,
    reader: IndexReader,
    /// What queries read. They keep no clone of the index, so that it can be opened again while they run.
    pub(super) snapshot: IndexSnapshot,
    /// The bytes of memory that the writer and the documents that wait for a commit need.
    pub(super) bytes: usize,
}

impl Index {
    /// Opens the index in a directory, or creates an empty one there; without a directory it is in memory. The returned label is that of its last change.
    pub(super) fn open(dir: Option<&Path>) -> Result<(Self, Label), TantivyError> {
        let (schema, fields) = schema();
        let index = match dir {
            Some(dir) => {
                std::fs::create_dir_all(dir)?;
                tantivy::Index::open_or_create(MmapDirectory::open(dir)?, schema)?
            }
            None => tantivy::Index::create_in_ram(schema),
        };
        let payload = index.load_metas()?.payload.and_then(|text| serde_json::from_str::<Payload>(&text).ok());
        let options =
            IndexWriterOptions::builder().num_worker_threads(1).num_merge_threads(1).memory_budget_per_thread(WRITER_BYTES).build();
        let writer = index.writer_with_options(options)?;
        let reader: IndexReader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let snapshot = IndexSnapshot { searcher: reader.searcher(), fields, pending: Arc::default() };
        let mut index = Self { writer: Arc::new(Mutex::new(writer)), reader, snapshot, bytes: WRITER_BYTES };
        match payload {
            Some(Payload { version: VERSION, seq, origin }) => Ok((index, Label { seq, origin, ..Label::default() })),
            _ => {
                index.delete_all()?;
                Ok((index, Label::default()))
            }
        }
    }

    fn writer(&self) -> MutexGuard<'_, IndexWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes every document.
    pub(super) fn delete_all(&mut self) -> Result<(), TantivyError> {
        self.writer().delete_all_documents()?;
        self.commit(Label::default())
    }

    /// Adds documents, which wait for a commit. Queries find them at once.
    pub(super) fn add_all(&mut self, documents: Vec<Arc<Document>>) -> Result<(), TantivyError> {
        documents.iter().try_for_each(|document| self.write(document))?;
        self.bytes += documents.iter().map(|document| document.bytes()).sum::<usize>();
        Arc::make_mut(&mut self.snapshot.pending).extend(documents);
        Ok(())
    }

    fn write(&self, document: &Document) -> Result<(), TantivyError> {
        let fields = &self.snapshot.fields;
        let mut out = TantivyDocument::new();
        out.add_text(fields.words, document.words.join(" "));
        out.add_text(fields.id, &document.id);
        out.add_u64(fields.seq, document.seq.0);
        out.add_i64(fields.day, document.day);
        out.add_text(fields.category, &document.category);
        for agency in &document.agencies {
            out.add_text(fields.agency, agency);
        }
        self.writer().add_document(out).map(|_| ())
    }

    /// Writes the added documents: a restart begins after the last change.
    pub(super) fn commit(&mut self, last: Label) -> Result<(), TantivyError> {
        let payload = Payload { version: VERSION, seq: last.seq, origin: last.origin };
        let payload = serde_json::to_string(&payload).map_err(std::io::Error::other)?;
        let mut writer = self.writer();
        let mut prepared = writer.prepare_commit()?;
        prepared.set_payload(&payload);
        prepared.commit()?;
        drop(writer);
        self.reader.reload()?;
        self.snapshot = IndexSnapshot { searcher: self.reader.searcher(), pending: Arc::default(), ..self.snapshot };
        self.bytes = WRITER_BYTES;
        Ok(())
    }
}

/// The newest documents in a span that contain the words, or are of the number, and match the filter. Blocks the thread.
pub(super) fn search(
    searcher: &Searcher,
    fields: &Fields,
    keyword: &Keyword,
    filter: &Filter,
    span: Span,
) -> Result<NewestHits, TantivyError> {
    let mut parts: Vec<Box<dyn Query>> = Vec::with_capacity(keyword.words.len() + 2);
    for word in &keyword.words {
        let first = Term::from_field_text(fields.words, word);
        // No word contains the greatest character, so all words with this prefix are below.
        let last = Term::from_field_text(fields.words, &format!("{word}{}", char::MAX));
        parts.push(Box::new(RangeQuery::new(Bound::Included(first), Bound::Excluded(last))));
    }
    if let Some(number) = &keyword.number {
        let of_number = TermQuery::new(Term::from_field_text(fields.words, number), IndexRecordOption::Basic);
        let of_words = BooleanQuery::intersection(std::mem::take(&mut parts));
        parts.push(Box::new(BooleanQuery::union(vec![Box::new(of_words), Box::new(of_number)])));
    }
    for (field, value) in [(fields.category, filter.category), (fields.agency, filter.agency)] {
        if let Some(value) = value {
            parts.push(Box::new(TermQuery::new(Term::from_field_text(field, value), IndexRecordOption::Basic)));
        }
    }
    searcher.search(&BooleanQuery::intersection(parts), &Hits(span))
}

/// Reads the ids of documents, segment by segment.
pub(super) fn ids(searcher: &Searcher, hits: &[Hit]) -> Result<Vec<String>, TantivyError> {
    let mut out = Vec::with_capacity(hits.len());
    let mut columns = std::collections::HashMap::new();
    for hit in hits {
        let column = match columns.entry(hit.segment) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                let column = searcher.segment_reader(hit.segment).fast_fields().str("id")?;
                unknown.insert(column.ok_or_else(|| TantivyError::FieldNotFound("id".to_owned()))?)
            }
        };
        let mut id = String::new();
        if let Some(ord) = column.ords().first(hit.doc) {
            column.ord_to_str(ord, &mut id)?;
        }
        out.push(id);
    }
    Ok(out)
}

/// Collects the newest hits in a span.
struct Hits(Span);

struct SegmentHits {
    days: Column<i64>,
    seqs: Column<u64>,
    segment: SegmentOrdinal,
    newest: NewestHits,
}

impl Collector for Hits {
    type Fruit = NewestHits;
    type Child = SegmentHits;

    fn for_segment(&self, segment: SegmentOrdinal, reader: &SegmentReader) -> tantivy::Result<SegmentHits> {
        let columns = reader.fast_fields();
        Ok(SegmentHits { days: columns.i64("day")?, seqs: columns.u64("seq")?, segment, newest: NewestHits::new(self.0) })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, fruits: Vec<NewestHits>) -> tantivy::Result<NewestHits> {
        let mut all = NewestHits::new(self.0);
        fruits.into_iter().for_each(|newest| all.append(newest));
        Ok(all)
    }
}

impl SegmentCollector for SegmentHits {
    type Fruit = NewestHits;

    fn collect(&mut self, doc: DocId, _score: Score) {
        // Of a word that most recalls have, most hits are too old, and only their days are read.
        let Some(day) = self.days.first(doc).filter(|day| self.newest.takes_day(*day)) else { return };
        if let Some(seq) = self.seqs.first(doc).map(Seq) {
            self.newest.push(Hit { day, seq, segment: self.segment, doc });
        }
    }

    fn harvest(self) -> NewestHits {
        self.newest
    }
}
