//! What a service states so that filters of its feed can be saved, and things in it watched.

use schemars::JsonSchema;
use schemas::views::records::normal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::tiers::KEEPS_FROM;
use crate::feed::filter::Filter;
use crate::feed::query::{Feed, Item};
use crate::operation::Operation;
use crate::problem::Problem;
use crate::services::common::webhooks::{self, Place};
use crate::services::common::{filters, watchlist};

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

/// The operations of one service: saved filters, then watches and their webhooks.
#[must_use]
pub fn operations<S: Followed>() -> Vec<Operation> {
    let paths = [
        "/v1/watchlist/{id}/deliveries",
        "/v1/watchlist/{id}/ping",
        "/v1/watchlist/{id}/replay",
        "/v1/watchlist/{id}/resend",
        "/v1/watchlist/{id}",
    ];
    let place = Place { service: S::FEED.source.service, tier: KEEPS_FROM, paths };
    let own = vec![
        filters::save::operation::<S>(),
        filters::list::operation::<S>(),
        filters::delete::operation::<S>(),
        watchlist::begin::operation::<S>(),
        watchlist::list::operation::<S>(),
        watchlist::matches::operation::<S>(),
        watchlist::end::operation::<S>(),
    ];
    own.into_iter().chain(webhooks::operations(place)).collect()
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
