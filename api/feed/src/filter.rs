//! Filters of a service's changes, the criteria of one search, and the terms by which matching changes are found without reading all of them.

pub use filter_values::fields::Field;
use filter_values::terms::may_have_words;
pub use filter_values::terms::{Named, TermQuery, contains, has_words, is_one_of};
use jiff::civil::Date;
use operation::context::Context;
use operation::problem::Problem;
use schemas::details::ChangeRecord;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::records::Record;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use view_store::feed::Page;

use super::position::Position;

/// A change, as it is stored in the feed.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "R: DeserializeOwned"))]
pub struct Element<R: ChangeRecord> {
    /// `new` or `modified`.
    pub event: String,
    /// Number of the change within the service.
    pub seq: Seq,
    /// When the change was recorded, RFC 3339 in UTC.
    pub recorded_at: String,
    /// What the change shows in addition to the record.
    #[serde(flatten)]
    pub details: R::Details,
    /// Whether it records only late what happened long before. `None` if the change does not say so.
    #[serde(default)]
    pub backfill: Option<bool>,
    /// The record after the change.
    pub record: R,
}

impl<R: ChangeRecord> Element<R> {
    /// Whether the change is late news, because it happened long before it was recorded: see [`schemas::news`]. Changes that older versions
    /// wrote do not say so.
    #[must_use]
    pub fn is_backfill(&self) -> bool {
        let recorded = || self.recorded_at.get(..10).and_then(|day| day.parse::<Date>().ok());
        let by_rule = || recorded().is_some_and(|day| self.record.is_backfill(&self.details, self.event == "new", day));
        self.backfill.unwrap_or_else(by_rule)
    }

    /// Hides what the change reveals of the version before it: see [`ChangeRecord::COMPARED`]. A new record has none.
    pub(crate) fn hide_compared(&mut self) {
        if R::COMPARED.is_empty() || self.event == "new" {
            return;
        }
        let mut details = serde_json::to_value(&self.details).unwrap_or_default();
        set_null(&mut details, R::COMPARED);
        self.details = serde_json::from_value(details).unwrap_or_default();
    }
}

/// Sets fields of an object to null, if it has them.
pub(crate) fn set_null(object: &mut Value, names: &[&str]) {
    for name in names {
        if let Some(field) = object.get_mut(*name) {
            *field = Value::Null;
        }
    }
}

/// Decodes the changes of a page.
///
/// # Errors
/// `internal` if a change cannot be decoded.
pub fn elements<R: ChangeRecord + DeserializeOwned>(page: &Page) -> Result<Vec<Element<R>>, Problem> {
    let parts: Vec<&[u8]> = page.parts.iter().map(AsRef::as_ref).collect();
    let list = [b"[", parts.join(b",".as_slice()).as_slice(), b"]"].concat();
    serde_json::from_slice(&list).map_err(|error| {
        tracing::error!(%error, "a page of changes cannot be read");
        Problem::new(ErrorCode::Internal, "stored changes cannot be read")
    })
}

/// One way to find the candidates by the index of terms.
pub(crate) struct TermSearch {
    /// The terms to look up.
    pub(crate) query: TermQuery,
    /// A value of the dimension that matches every search. Changes with it are candidates, too.
    pub(crate) wildcard: Option<&'static str>,
}

/// Whether a change is selected.
type Condition<'a, R> = Box<dyn Fn(&Element<R>) -> bool + Send + Sync + 'a>;

/// Which changes a read selects. A filter gives its own with [`criteria`](Filter::criteria); an operation that selects fewer adds
/// a condition with [`Self::and`].
pub struct Criteria<'a, R: ChangeRecord> {
    /// Ways to find the candidates, the most selective first. Every change is a candidate if none of them is selective enough.
    pub(crate) searches: Vec<TermSearch>,
    /// Words that every selected change has in its texts.
    words: Vec<String>,
    conditions: Vec<Condition<'a, R>>,
}

impl<'a, R: ChangeRecord> Criteria<'a, R> {
    /// Selects the changes that meet a condition. Each of `queries` finds all of them; the most selective comes first.
    #[must_use]
    pub fn new(queries: Vec<TermQuery>, condition: impl Fn(&Element<R>) -> bool + Send + Sync + 'a) -> Self {
        let searches = queries.into_iter().map(|query| TermSearch { query, wildcard: None }).collect();
        Self { searches, words: Vec::new(), conditions: vec![Box::new(condition)] }
    }

    /// Adds a condition that a change must meet as well.
    #[must_use]
    pub fn and(mut self, condition: impl Fn(&Element<R>) -> bool + Send + Sync + 'a) -> Self {
        self.conditions.push(Box::new(condition));
        self
    }

    /// Leaves out late news.
    #[must_use]
    pub fn of_news(self) -> Self {
        self.and(|change| !change.is_backfill())
    }

    /// Finds candidates also by a value that matches every search: `wildcard` returns it for a dimension.
    #[must_use]
    pub(crate) fn with_wildcard(mut self, wildcard: impl Fn(&str) -> Option<&'static str>) -> Self {
        for search in &mut self.searches {
            let (TermQuery::Exact(dimension, _) | TermQuery::Part(dimension, _) | TermQuery::Prefix(dimension, _)) = &search.query;
            search.wildcard = wildcard(dimension);
        }
        self
    }

    /// Names words that every selected change has in its texts.
    #[must_use]
    fn with_words(self, words: Vec<String>) -> Self {
        Self { words, ..self }
    }

    /// Whether a change can be selected, by its JSON: false only if it cannot. It takes much less time than to decode the change.
    #[must_use]
    pub(crate) fn may_select(&self, json: &[u8]) -> bool {
        may_have_words(json, &self.words)
    }

    /// Whether a change is selected.
    #[must_use]
    pub fn selects(&self, change: &Element<R>) -> bool {
        self.conditions.iter().all(|condition| condition(change))
    }
}

/// A [`Field`] that is an optional text, in the table of the filter that is implemented: `text_field!(state)`, or
/// `text_field!("coverageLine", coverage_line)` if its name in queries is another one.
#[macro_export]
macro_rules! text_field {
    ($field:ident) => {
        $crate::text_field!(stringify!($field), $field)
    };
    ($name:expr, $field:ident) => {
        $crate::filter::Field::<Self, <Self as $crate::filter::Filter>::Record>::text(
            $name,
            |filter| filter.$field.as_deref(),
            |filter| &mut filter.$field,
        )
    };
}

/// The table of a filter's fields.
pub type Fields<F> = &'static [Field<F, <F as Filter>::Record>];

/// A filter of one service's changes. Its canonical form is its JSON, with the fields in the order of declaration and without the fields that are
/// not set. What it means follows from the table of its fields; a filter with rules of its own implements the functions that differ.
pub trait Filter: Serialize + DeserializeOwned + Clone + Default + PartialEq + Send + Sync + 'static {
    /// The records that the filter is applied to.
    type Record: Record;

    /// The fields that mean something alone, in the order in which they are checked.
    const FIELDS: Fields<Self> = &[];

    /// Fields whose values are recorded ones, where the table does not say so: see [`Self::named`].
    const NAMED: &'static [Named] = &[];

    /// The fields whose values are recorded ones. A note names a value that nothing recorded has, see `crate::unknown`.
    fn named() -> Vec<Named> {
        Self::NAMED.iter().copied().chain(Self::FIELDS.iter().filter_map(Field::named)).collect()
    }

    /// The filter of one text, by the name of a field of the table; `None` if the table has no such text.
    fn of_text(field: &str, text: &str) -> Option<Self> {
        let mut filter = Self::default();
        let known = Self::FIELDS.iter().find(|known| known.name() == field)?;
        known.set(&mut filter, text).then_some(filter)
    }

    /// Checks and normalizes the fields of the table.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the field.
    fn read_fields(&mut self) -> Result<(), Problem> {
        Self::FIELDS.iter().try_for_each(|field| field.read(self))
    }

    /// Checks and normalizes the filter, so that it can be compared and saved.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the field.
    fn normalize(mut self) -> Result<Self, Problem> {
        self.read_fields()?;
        check_ranges(&self)?;
        Ok(self)
    }

    /// Whether feeds, digests and watches under the filter have a change: it matches, and it is news or late news is asked for.
    fn selects(&self, change: &Element<Self::Record>) -> bool {
        self.matches(change) && (includes_backfill(self) || !change.is_backfill())
    }

    /// The criteria for a search of the changes that [`Self::selects`] selects.
    fn news(&self) -> Criteria<'_, Self::Record> {
        if includes_backfill(self) { self.criteria() } else { self.criteria().of_news() }
    }

    /// The criteria for a search of matching changes, late news among them: what answers about the current state of records read.
    fn criteria(&self) -> Criteria<'_, Self::Record> {
        let words = Self::FIELDS.iter().flat_map(|field| field.words(self)).collect();
        let criteria = Criteria::new(self.term_queries(), |change| self.matches(change));
        criteria.with_wildcard(|dimension| self.wildcard(dimension)).with_words(words)
    }

    /// Whether a record matches the fields of the table.
    fn takes(&self, record: &Self::Record) -> bool {
        Self::FIELDS.iter().all(|field| field.selects(self, record))
    }

    /// Whether a change matches the filter, be it news or not.
    fn matches(&self, change: &Element<Self::Record>) -> bool {
        self.takes(&change.record)
    }

    /// Alternative queries, each of which finds all matching changes. The first selective one is used; without any, all changes are read.
    fn term_queries(&self) -> Vec<TermQuery> {
        let mut queries: Vec<(u8, TermQuery)> = Self::FIELDS.iter().filter_map(|field| field.query(self)).collect();
        queries.sort_by_key(|(order, _)| *order);
        queries.into_iter().map(|(_, query)| query).collect()
    }

    /// Resolves parts of the filter at a position. What is resolved is not part of the canonical form. Changes up to `after` are not shown to the caller,
    /// so neither the note nor what is resolved says anything about them. Returns a note if it resolves to nothing.
    ///
    /// # Errors
    /// When the feed cannot be read.
    fn look_up(&mut self, _ctx: &Context, _at: &Position, _after: Seq) -> impl Future<Output = Result<Option<String>, Problem>> + Send {
        std::future::ready(Ok(None))
    }

    /// Whether a watch needs [`look_up`](Self::look_up) to find its changes: the filter means something that changes elsewhere. Until then
    /// [`matches`](Self::matches) selects at least the changes that the resolved filter selects.
    fn needs_look_up(&self) -> bool {
        false
    }

    /// Whether what a field names was found by [`look_up`](Self::look_up); `None` if a search has to find it.
    fn resolves(&self, _field: &str) -> Option<bool> {
        None
    }

    /// Why no record can match the filter, if its fields exclude each other.
    fn contradiction(&self) -> Option<String> {
        None
    }

    /// A value of a dimension that matches every search. Changes with this value are candidates in addition to those with the values found.
    fn wildcard(&self, _dimension: &str) -> Option<&'static str> {
        None
    }

    /// Returns this filter, with unset fields taken from `base`.
    ///
    /// # Errors
    /// `internal`, which does not happen: both have the same type.
    fn with_defaults_from(&self, base: &Self) -> Result<Self, Problem> {
        let unwritten = |error: serde_json::Error| {
            tracing::error!(%error, "a filter cannot be encoded");
            Problem::new(ErrorCode::Internal, "the filter could not be read")
        };
        let mut merged = serde_json::to_value(base).map_err(unwritten)?;
        if let (Value::Object(merged), Value::Object(own)) = (&mut merged, serde_json::to_value(self).map_err(unwritten)?) {
            merged.extend(own);
        }
        serde_json::from_value(merged).map_err(unwritten)
    }

    /// Encodes the canonical form; empty for the filter that matches everything.
    fn canonical(&self) -> String {
        if *self == Self::default() { String::new() } else { serde_json::to_string(self).unwrap_or_default() }
    }

    /// Decodes a canonical form; `None` if this version cannot read it.
    fn from_canonical(text: &str) -> Option<Self> {
        if text.is_empty() { Some(Self::default()) } else { serde_json::from_str(text).ok() }
    }
}

/// Checks that no range of a filter's table ends before it begins.
///
/// # Errors
/// `parameter-invalid`, naming the field.
pub fn check_ranges<F: Filter>(filter: &F) -> Result<(), Problem> {
    F::FIELDS.iter().try_for_each(|field| field.check_range(filter))
}

/// Whether a filter selects late news as well; see [`Element::is_backfill`].
#[must_use]
pub fn includes_backfill<F: Filter>(filter: &F) -> bool {
    F::FIELDS.iter().any(|field| field.includes_backfill(filter))
}

/// The name of the first of some fields that a filter gives; each says whether it is given.
#[must_use]
pub fn first_given(fields: &[(&'static str, bool)]) -> Option<&'static str> {
    fields.iter().find(|(_, is_given)| *is_given).map(|(field, _)| *field)
}

/// Decodes an element of the feed.
pub(crate) fn read<R: ChangeRecord + DeserializeOwned>(element: &[u8]) -> Result<Element<R>, Problem> {
    serde_json::from_slice(element).map_err(|error| {
        tracing::error!(%error, "a change in the feed cannot be read");
        unreadable()
    })
}

/// The problem of a change in the feed that cannot be decoded. Whoever decodes it logs the cause.
pub(crate) fn unreadable() -> Problem {
    Problem::new(ErrorCode::Internal, "a stored change cannot be read")
}
