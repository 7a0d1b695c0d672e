//! The full-text search, which finds documents: where it is, and the form of its answers.

use serde::Deserialize;

use crate::json::{self, Field, Object, Part};
use crate::{Stream, UpstreamError};

/// The origin of the search.
pub(super) const ORIGIN: &str = "https://efts.sec.gov";

/// A page of the search.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Search<'a> {
    #[serde(borrow)]
    pub(super) timed_out: Field<'a>,
    #[serde(borrow)]
    hits: Object<Hits<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Hits<'a> {
    #[serde(borrow)]
    total: Part<'a>,
    #[serde(borrow)]
    hits: Part<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Total<'a> {
    #[serde(borrow)]
    value: Field<'a>,
}

/// A document that the search found.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SearchHit<'a> {
    #[serde(borrow, rename = "_id")]
    pub(super) id: Field<'a>,
    #[serde(borrow, rename = "_source")]
    source: Part<'a>,
}

/// What the index has of a document: fields of its filing.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct HitSource<'a> {
    #[serde(borrow)]
    pub(super) adsh: Field<'a>,
    #[serde(borrow)]
    pub(super) form: Field<'a>,
    #[serde(borrow)]
    pub(super) file_date: Field<'a>,
    #[serde(borrow)]
    pub(super) period_ending: Field<'a>,
    #[serde(borrow)]
    pub(super) ciks: Field<'a>,
    #[serde(borrow)]
    pub(super) display_names: Field<'a>,
    #[serde(borrow)]
    pub(super) items: Field<'a>,
}

impl<'a> Search<'a> {
    /// The hits of the page.
    ///
    /// # Errors
    /// When it has no list of them.
    pub(super) fn hits(self, stream: &Stream) -> Result<Hits<'a>, UpstreamError> {
        self.hits.0.filter(|hits| hits.hits.is_list()).ok_or_else(|| json::later(stream.name, "an answer without hits"))
    }
}

impl<'a> Hits<'a> {
    /// The number of documents, not of filings; `None` if the page does not say it.
    pub(super) fn total(&self, problem: &mut Option<String>) -> Option<usize> {
        let total: Total<'_> = self.total.object("total", problem);
        total.value.integer().and_then(|total| usize::try_from(total).ok())
    }

    pub(super) fn list(&self, problem: &mut Option<String>) -> Vec<SearchHit<'a>> {
        self.hits.list("hits", problem)
    }
}

impl<'a> SearchHit<'a> {
    pub(super) fn source(&self, problem: &mut Option<String>) -> HitSource<'a> {
        self.source.object("_source", problem)
    }
}
