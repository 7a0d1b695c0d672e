//! Saved items of accounts: saved filters, watches and fleets. Private.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::records::{Record, Term};
use crate::details::{ChangeRecord, NoDetails};
use crate::position::Seq;
use proofs::hash::Hash32;

/// The values of [`SavedItem::kind`].
pub mod kind {
    /// A saved filter.
    pub const FILTER: &str = "filter";
    /// A watch.
    pub const WATCH: &str = "watch";
    /// A fleet of aircraft.
    pub const FLEET: &str = "fleet";
}

/// A saved filter, a watch or a fleet. `""` and 0 mean none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SavedItem {
    /// Id of the item: `filter_`, `watch_` or `fleet_`, and 24 hex digits.
    pub id: String,
    /// One of the constants of [`kind`].
    pub kind: String,
    /// Who owns the item: an account, or the holder of a token, see [`token_owner`].
    pub account: String,
    /// The service that the item belongs to. Filters and watches select its changes.
    pub service: String,
    /// Filter: the name. Watch with an end: the text by which a renewal is recognized.
    pub name: String,
    /// The filter in canonical form; empty if it matches everything.
    pub filter: String,
    /// Watch: the watched entity, as the request gave it, JSON. Fleet: its name and aircraft, encrypted under a key of the account and of the fleet.
    pub entity: String,
    /// Watch: the webhook URL, encrypted under a key of the account.
    pub webhook: String,
    /// Watch: the signing secret of the webhook, encrypted likewise.
    pub secret: String,
    /// Watch: replaced secrets, which sign alongside the current one until they expire, the newest first.
    pub old_secrets: Vec<OldSecret>,
    /// Watch: seq of the last change of the service that the watch does not match.
    pub after: Seq,
    /// When the item was created, milliseconds since 1970.
    pub made_at: i64,
    /// When the item was last changed, milliseconds since 1970.
    pub changed_at: i64,
    /// Whether the item was deleted. A deleted item keeps only its account.
    pub gone: bool,
    /// Watch: when it ends, milliseconds since 1970; 0 for never. A change that is recorded later is not matched.
    pub until: i64,
}

impl SavedItem {
    /// Whether the item is active at a time, in milliseconds since 1970: it exists and has not ended.
    #[must_use]
    pub fn is_active(&self, at_ms: i64) -> bool {
        !self.gone && (self.until == 0 || at_ms <= self.until)
    }

    /// Whether the item's owner can read it at a time, in milliseconds since 1970: it exists, and it ended less than 30 days ago, if it ended.
    #[must_use]
    pub fn is_readable(&self, at_ms: i64) -> bool {
        !self.gone && is_readable(self.until, at_ms)
    }
}

/// How long a watch that has ended can be read, in milliseconds: 30 days.
const READABLE_AFTER_END_MS: i64 = 30 * 24 * 3600 * 1000;

/// Whether a watch with this end (0 for none) can be read at a time; both in milliseconds since 1970.
#[must_use]
pub fn is_readable(until: i64, at_ms: i64) -> bool {
    until == 0 || at_ms < until.saturating_add(READABLE_AFTER_END_MS)
}

/// Returns the time some calendar months after another, in UTC; both in milliseconds since 1970. The day of the month and the time of day remain; a
/// day that the month does not have becomes its last one. `None` outside of the years that can be represented.
#[must_use]
pub fn months_after(at_ms: i64, months: i64) -> Option<i64> {
    let at = Timestamp::from_millisecond(at_ms).ok()?.to_zoned(TimeZone::UTC);
    let end = at.checked_add(Span::new().try_months(months).ok()?).ok()?;
    Some(end.timestamp().as_millisecond())
}

/// The beginning of [`SavedItem::account`] for items that a token opens.
const TOKEN_OWNER_PREFIX: &str = "token_";

/// Returns the owner of items that a token opens: `token_` and the SHA-256 of the token. Tokens are random, so their hash reveals nothing about them.
#[must_use]
pub fn token_owner(token: &str) -> String {
    format!("{TOKEN_OWNER_PREFIX}{}", Hash32::of(token.as_bytes()))
}

/// Whether an owner is the holder of a token, and not an account.
#[must_use]
pub fn is_token_owner(owner: &str) -> bool {
    owner.starts_with(TOKEN_OWNER_PREFIX)
}

/// A replaced signing secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OldSecret {
    /// The secret, encrypted under a key of the account.
    pub secret: String,
    /// When the secret expires, milliseconds since 1970.
    pub until: i64,
}

impl ChangeRecord for SavedItem {
    type Details = NoDetails;
}

impl Record for SavedItem {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_listed(&self) -> bool {
        !self.gone
    }

    fn terms(&self) -> Vec<Term> {
        Term::new("account", &self.account).into_iter().collect()
    }
}

/// Returns the key of the decision row that lists an account's items of one kind in a service: their ids as JSON, in the order of
/// creation.
#[must_use]
pub fn saved_items_key(account: &str, service: &str, kind: &str) -> String {
    format!("{account}/{service}/{kind}")
}

/// Returns the key of the decision row with the ends of an account's watches that have one: ids with milliseconds since 1970, as JSON.
#[must_use]
pub fn ends_key(account: &str, service: &str) -> String {
    format!("{account}/{service}/ends")
}

/// Returns the key of the decision row about a payment that bought a watch: a [`Bought`] as JSON.
#[must_use]
pub fn bought_key(payment: &str) -> String {
    format!("bought/{payment}")
}

/// What a payment bought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bought {
    /// Id of the watch that was created or renewed.
    pub watch: String,
}

/// Returns the key of the decision row about a watch that was deleted before its purchase was decided. This only happens when all decisions are made
/// again, because the two are in different topics.
#[must_use]
pub fn deleted_key(id: &str) -> String {
    format!("deleted/{id}")
}

/// Returns the key of the decision row about an idempotency key, given as the hash in commands ([`ItemCommand::once`]): the subject of the first command
/// with it.
///
/// [`ItemCommand::once`]: super::accounts::ItemCommand::once
#[must_use]
pub fn once_key(once: &str) -> String {
    format!("once/{once}")
}

crate::record_tables!("watches");

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that months are those of the calendar, and that a month without the day ends on its last one.
    #[test]
    fn months_are_calendar_months() {
        let ms = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        for (from, months, until) in [
            ("2026-11-20T10:20:30.456Z", 12, "2027-11-20T10:20:30.456Z"),
            ("2028-02-29T00:00:00Z", 12, "2029-02-28T00:00:00Z"),
            ("2027-02-28T23:59:59.999Z", 12, "2028-02-28T23:59:59.999Z"),
            ("2027-01-31T00:00:00Z", 1, "2027-02-28T00:00:00Z"),
            ("2026-12-31T12:00:00Z", 24, "2028-12-31T12:00:00Z"),
        ] {
            assert_eq!(months_after(ms(from), months), Some(ms(until)), "{from} {months}");
        }
        assert_eq!((months_after(i64::MAX, 1), months_after(0, i64::MAX)), (None, None));
    }

    /// Proves when a watch with an end is active, and for how long after its end it can be read.
    #[test]
    fn ends_and_what_follows() {
        let day = 24 * 3600 * 1000;
        let watch = SavedItem { until: 100 * day, ..SavedItem::default() };
        let at = |ms: i64| (watch.is_active(ms), watch.is_readable(ms));
        assert_eq!([at(0), at(100 * day), at(100 * day + 1)], [(true, true), (true, true), (false, true)]);
        assert_eq!([at(130 * day - 1), at(130 * day)], [(false, true), (false, false)]);
        let endless = SavedItem::default();
        assert!(endless.is_active(i64::MAX) && endless.is_readable(i64::MAX));
        let gone = SavedItem { gone: true, ..watch };
        assert!(!gone.is_active(0) && !gone.is_readable(0));
    }
}
