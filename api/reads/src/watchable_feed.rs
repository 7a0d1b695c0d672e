//! The operations of a service with a watchable feed, in addition to its own: saved filters, then watches and their webhooks; keys; and those over its recorded
//! changes.

use feed::filter::{Field, Filter};
use operation::Operation;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use schemars::SchemaGenerator;
use webhooks::matchers::{WatchMessages, matcher};
use webhooks::operations::{self as webhook_operations, WebhookAccess, WebhookConfig};

use super::health::{HealthFields, NoFields};
use super::numbers::FindIds;
use super::records::Addressed;
use super::{filters, history, keys, watchlist};
use crate::read::{RecordOf, filter_properties};
use crate::registration::Bundle;

/// The operations that every service with a watchable feed has. `find_ids` finds its records by numbers that people know.
///
/// # Panics
/// As [`operations`].
#[must_use]
pub fn standard_operations<S: WatchMessages>(find_ids: FindIds) -> Bundle
where
    RecordOf<S>: Addressed,
{
    standard_operations_with_health::<S, NoFields>(find_ids)
}

/// The operations that every service with a watchable feed has, of one whose health says more than that of every service.
///
/// # Panics
/// As [`operations`].
#[must_use]
pub fn standard_operations_with_health<S: WatchMessages, H: HealthFields>(find_ids: FindIds) -> Bundle
where
    RecordOf<S>: Addressed,
{
    operations::<S>().and(keys::operations()).and(history::with_numbers_and_health::<RecordOf<S>, H>(S::FEED.source, find_ids))
}

/// Saved filters, watches and webhooks of one service, with the matcher for the delivery to the webhooks.
///
/// # Panics
/// When the table of the filter's fields names one that the filter does not have, or a kind of entity is no text of the table.
#[must_use]
pub fn operations<S: WatchMessages>() -> Bundle {
    let fields = filter_properties::<S>(&mut SchemaGenerator::default());
    let unknown = S::Filter::FIELDS.iter().flat_map(Field::names).find(|name| !fields.contains_key(*name));
    assert_eq!(unknown, None, "a field in the table of the filter of {} is unknown", S::FEED.source.service);
    let unknown = S::ENTITY_KINDS.iter().find(|kind| S::Filter::of_text(kind, "").is_none());
    assert_eq!(unknown, None, "a kind of entity of {} is no text in the table of its filter", S::FEED.source.service);
    let paths = [
        "/v1/watchlist/{id}/deliveries",
        "/v1/watchlist/{id}/ping",
        "/v1/watchlist/{id}/replay",
        "/v1/watchlist/{id}/resend",
        "/v1/watchlist/{id}",
        "/v1/watchlist/{id}/messages/{message}",
    ];
    let config =
        WebhookConfig { service: S::FEED.source.service, access: WebhookAccess::Tier(SAVED_ITEMS_MIN_TIER), matcher: matcher::<S>, paths };
    let own = vec![
        filters::save::operation::<S>(),
        filters::list::operation::<S>(),
        filters::delete::operation::<S>(),
        watchlist::create::operation::<S>(),
        watchlist::list::operation::<S>(),
        watchlist::get::operation::<S>(),
        watchlist::delete::operation::<S>(),
    ];
    Bundle::watches(own.into_iter().map(Operation::managed).chain(webhook_operations::operations(config)).collect(), matcher::<S>)
}
