//! tantivy's fuzzy queries as a peer of the index of names: how fast they are, and which of the strong marks they find.

use std::collections::HashSet;
use std::time::Instant;

use marks::index::Index;
use marks::{Mark, Tier};
use tantivy::collector::DocSetCollector;
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, FuzzyTermQuery, Query};
use tantivy::schema::{FAST, Field, STRING, Schema};
use tantivy::{IndexWriter, Searcher, TantivyDocument, Term};

use crate::Failure;
use crate::report::{figure, latency};

/// Names that are asked for.
const NAMES: usize = 200;
/// The memory of the writer.
const WRITER_BYTES: usize = 256 << 20;
/// The edits up to which the letters of a mark are found: the most that tantivy allows.
const LETTERS_EDITS: u8 = 2;
/// The edits up to which each word of the name is found in a mark.
const WORD_EDITS: u8 = 1;

/// The marks in an index of tantivy, in memory.
struct Peer {
    searcher: Searcher,
    letters: Field,
    words: Field,
    /// The serial numbers of each segment.
    serials: Vec<Column<u64>>,
}

impl Peer {
    fn build(texts: impl Iterator<Item = (u32, String)>) -> Result<Self, Failure> {
        let mut schema = Schema::builder();
        let letters = schema.add_text_field("letters", STRING);
        let words = schema.add_text_field("words", STRING);
        let serial = schema.add_u64_field("serial", FAST);
        let index = tantivy::Index::create_in_ram(schema.build());
        let mut writer: IndexWriter = index.writer(WRITER_BYTES)?;
        for (number, text) in texts {
            let mut document = TantivyDocument::new();
            document.add_text(letters, text.replace(' ', ""));
            for word in text.split(' ') {
                document.add_text(words, word);
            }
            document.add_u64(serial, u64::from(number));
            writer.add_document(document)?;
        }
        writer.commit()?;
        let searcher = index.reader()?.searcher();
        let mut serials = Vec::new();
        for segment in searcher.segment_readers() {
            serials.push(segment.fast_fields().u64("serial")?);
        }
        Ok(Self { searcher, letters, words, serials })
    }

    /// The serial numbers of the marks whose letters are nearly those of the name, or that have nearly all of its words.
    fn find(&self, name: &Mark) -> Result<HashSet<u64>, Failure> {
        let normal = name.normal();
        let words = normal.split(' ').map(|word| near(self.words, word, WORD_EDITS)).collect();
        let query =
            BooleanQuery::union(vec![near(self.letters, name.compact(), LETTERS_EDITS), Box::new(BooleanQuery::intersection(words))]);
        let found = self.searcher.search(&query, &DocSetCollector)?;
        let serial = |segment: u32, document: u32| self.serials.get(segment as usize)?.first(document);
        Ok(found.into_iter().filter_map(|address| serial(address.segment_ord, address.doc_id)).collect())
    }
}

fn near(field: Field, text: &str, edits: u8) -> Box<dyn Query> {
    Box::new(FuzzyTermQuery::new(Term::from_field_text(field, text), edits, true))
}

/// Asks tantivy for names in turn with the index, and prints which share of the exact and strong marks it finds, and how many marks it finds.
pub(super) fn compare(index: &Index, texts: impl Iterator<Item = (u32, String)>, names: &[Mark]) -> Result<(), Failure> {
    let started = Instant::now();
    let peer = Peer::build(texts)?;
    figure("build, tantivy, s", format!("{:.2}", started.elapsed().as_secs_f64()));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut strong, mut found, mut all) = (0, 0, 0);
    for name in names.iter().take(NAMES) {
        let started = Instant::now();
        let hits = index.find(name, index.seq());
        ours.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let serials = peer.find(name)?;
        theirs.push(started.elapsed().as_secs_f64());
        let wanted: Vec<u64> = hits.iter().filter(|hit| hit.rule.tier() <= Tier::Strong).map(|hit| u64::from(hit.serial)).collect();
        strong += wanted.len();
        found += wanted.iter().filter(|serial| serials.contains(serial)).count();
        all += serials.len();
    }
    latency("check, one caller, next to tantivy", &ours);
    latency("fuzzy queries, tantivy", &theirs);
    figure("... share of the exact and strong marks that they find", format!("{:.3}", found as f64 / strong.max(1) as f64));
    figure("... marks that they find for a name", format!("{:.1}", all as f64 / theirs.len().max(1) as f64));
    Ok(())
}
