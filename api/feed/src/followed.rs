//! What a service states so that filters of its feed can be saved, and things in it watched.

use schemars::JsonSchema;
use schemas::views::records::normal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::filter::Filter;
use crate::query::{Feed, Item};
use operation::problem::Problem;

/// The shortest name that is watched, in characters.
const WATCHED_CHARS_MIN: usize = 2;

/// The feed of a service, as it can be kept and followed.
pub trait Followed: Sized + Send + Sync + 'static {
    /// The filter of the feed.
    type Filter: Filter + JsonSchema;
    /// What a watch names, beside its webhook: fields of the body of `POST /v1/watchlist`.
    type Named: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// A change as readers get it.
    type Shown: From<Item<<Self::Filter as Filter>::Record>> + Serialize + JsonSchema + 'static;

    /// The feed.
    const FEED: Feed;

    /// A filter in the form in which it is compared and kept.
    ///
    /// # Errors
    /// What is wrong with it, by the field.
    fn checked(filter: Self::Filter) -> Result<Self::Filter, Problem>;

    /// What is watched, as it is shown, and the filter that it means.
    ///
    /// # Errors
    /// What is wrong with it, by the field.
    fn named(named: Self::Named) -> Result<(Self::Named, Self::Filter), Problem>;

    /// A filter to show.
    fn example_filter() -> Value;

    /// Something to watch, to show.
    fn example_named() -> Value;
}

/// A name that is watched: part of what records have, so one that says too little would take in all of them.
///
/// # Errors
/// `parameter-invalid`, naming the field.
pub fn watched_name(parameter: &'static str, field: &str, name: &str) -> Result<String, Problem> {
    if normal(name).chars().count() < WATCHED_CHARS_MIN {
        return Err(Problem::parameter(parameter, format!("{field}: is shorter than {WATCHED_CHARS_MIN} characters")));
    }
    Ok(name.trim().to_owned())
}
