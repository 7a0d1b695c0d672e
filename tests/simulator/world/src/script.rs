//! What callers add to the simulated sites of stories and page views.

use std::collections::{BTreeMap, BTreeSet};

/// Stories about a phrase, spread evenly over some hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The phrase, which every title has.
    pub phrase: String,
    /// When it begins, in milliseconds since 1970.
    pub from_ms: i64,
    /// Over how many hours it extends.
    pub hours: i64,
    /// How many stories it has, at most 100 an hour.
    pub stories: u64,
    /// How many authors post them in turn, each from a site of its own.
    pub authors: u64,
    /// How often the encyclopedia's article about the phrase is read on each day of the burst; 0: there is none.
    pub views: u64,
}

/// What callers have added to the simulated sites.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Bursts of stories about a phrase.
    pub bursts: Vec<Burst>,
    /// Hours with more stories than an answer shows, in hours since 1970.
    pub floods: BTreeSet<i64>,
    /// Times without answers: from, to before, in milliseconds since 1970.
    pub outages: Vec<(i64, i64)>,
    /// Times without new stories.
    pub silences: Vec<(i64, i64)>,
    /// Stories that are gone.
    pub removed: BTreeSet<u64>,
    /// The titles of stories whose title was edited.
    pub edited: BTreeMap<u64, String>,
}
