//! What a service implements so that filters of its feed can be saved and entities watched.

use operation::Call;
use operation::context::Context;
use operation::known_values::known_value;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use schemars::JsonSchema;
use schemas::views::accounts::Tier;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use texts::folding::folded;

use crate::RecordFeed;
use crate::filter::Filter;
use crate::query::{Feed, Item};

/// The shortest name that can be watched, in characters.
const WATCHED_CHARS_MIN: usize = 2;

/// A feed that supports saved filters and watches.
pub trait WatchableFeed: Sized + Send + Sync + 'static {
    /// The rules of the service, from which its feed follows.
    type Rules: RecordFeed<Record = <Self::Filter as Filter>::Record>;
    /// The filter type of the feed.
    type Filter: Filter + JsonSchema;
    /// The entity that a watch names: fields of the body of `POST /v1/watchlist`, in addition to its webhook.
    type WatchedEntity: Clone + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// A change, as readers receive it.
    type Shown: From<Item<<Self::Filter as Filter>::Record>> + Serialize + JsonSchema + 'static;

    /// The feed.
    const FEED: Feed = Self::Rules::FEED;

    /// The kinds of entities, if a watch names an entity by its kind and a value: names of texts in the table of the filter's fields. Empty if a watch names
    /// the fields themselves.
    const ENTITY_KINDS: &'static [&'static str] = &[];

    /// The lowest tier that may create watches.
    const WATCH_MIN_TIER: Tier = SAVED_ITEMS_MIN_TIER;

    /// Fields of the filter that a query gives in another form than a saved filter, each with its schema there: a list is one text with commas, or a
    /// parameter has bounds that a saved filter has not.
    fn parameters() -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Checks and normalizes a watched entity, and returns the filter that selects its changes.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the field.
    fn parse_entity(entity: Self::WatchedEntity) -> Result<(Self::WatchedEntity, Self::Filter), Problem>;

    /// Checks what a filter names against what is recorded, where the filter alone cannot know it.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the field and the nearest known value; `unavailable` when the store fails.
    fn check(_ctx: &Context, _filter: &Self::Filter) -> impl Future<Output = Result<(), Problem>> + Send {
        std::future::ready(Ok(()))
    }

    /// Replaces what the filter of a new watch names by what is recorded under another name now: a trial by its current number.
    ///
    /// # Errors
    /// `unavailable` when the store fails.
    fn resolve(_ctx: &Context, filter: Self::Filter) -> impl Future<Output = Result<Self::Filter, Problem>> + Send {
        std::future::ready(Ok(filter))
    }

    /// Replaces what a new watch names by what is stored of the caller, so that no private name is stored with the watch: the id of a stored fleet for its
    /// name. `filter` is the one of [`Self::parse_entity`].
    ///
    /// # Errors
    /// `not-found`, naming the field; `unavailable` when the store fails.
    fn bind(
        _call: &Call,
        entity: Self::WatchedEntity,
        filter: Self::Filter,
    ) -> impl Future<Output = Result<(Self::WatchedEntity, Self::Filter), Problem>> + Send {
        std::future::ready(Ok((entity, filter)))
    }

    /// The entity of a stored watch as its owner named it: the inverse of [`Self::bind`].
    ///
    /// # Errors
    /// `unavailable` when the store fails.
    fn shown_entity(
        _ctx: &Context,
        _account: &str,
        entity: Self::WatchedEntity,
    ) -> impl Future<Output = Result<Self::WatchedEntity, Problem>> + Send {
        std::future::ready(Ok(entity))
    }

    /// An example filter.
    fn example_filter() -> Value;

    /// An example entity.
    fn example_entity() -> Value;
}

/// Reads an entity that the fields `type` and `value` of `entity` name: its kind as the list of kinds writes it, and the filter that selects its changes.
/// A kind is the name of a text in the table of the filter's fields.
///
/// # Errors
/// `parameter-invalid` for an unknown kind, with the nearest one, and for a value that the filter refuses.
pub fn entity_filter<F: Filter>(kinds: &[&'static str], kind: &str, value: &str) -> Result<(&'static str, F), Problem> {
    let known = known_value("entity.type", kind, kinds)?;
    let unwatchable = || Problem::parameter("entity.type", format!("entity.type: {known} cannot be watched"));
    let filter = F::of_text(known, value).ok_or_else(unwatchable)?;
    Ok((known, filter.normalize().map_err(in_entity_value)?))
}

/// What is wrong with the value of an entity, as a problem of its field `value`.
#[must_use]
pub fn in_entity_value(problem: Problem) -> Problem {
    Problem { detail: format!("entity.value: {}", problem.detail), ..problem.about("entity.value") }
}

/// Checks a watched name. Names are matched as substrings, so a very short name would match almost every record.
///
/// # Errors
/// `parameter-invalid`, naming the path `field`.
pub fn watched_name(field: &str, name: &str) -> Result<String, Problem> {
    if folded(name).chars().count() < WATCHED_CHARS_MIN {
        return Err(Problem::parameter(field, format!("{field}: is shorter than {WATCHED_CHARS_MIN} characters")));
    }
    Ok(name.trim().to_owned())
}
