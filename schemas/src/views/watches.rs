//! Saved items of accounts: saved filters and watches. Private.

use serde::{Deserialize, Serialize};

use super::records::{Record, Term};
use crate::details::{ChangeRecord, NoDetails};
use crate::position::Seq;

/// The values of [`SavedItem::kind`].
pub mod kind {
    /// A saved filter.
    pub const FILTER: &str = "filter";
    /// A watch.
    pub const WATCH: &str = "watch";
}

/// A saved filter or a watch. `""` and 0 mean none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SavedItem {
    /// Id of the item: `filter_` or `watch_`, and 24 hex digits.
    pub id: String,
    /// One of the constants of [`kind`].
    pub kind: String,
    /// The account that owns the item.
    pub account: String,
    /// The service whose changes the item selects.
    pub service: String,
    /// Filter: the name.
    pub name: String,
    /// The filter in canonical form; empty if it matches everything.
    pub filter: String,
    /// Watch: the watched entity, as the request gave it, JSON.
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

/// Returns the key of the decision row that lists an account's filters, or watches, in a service: their ids as JSON, in the order of
/// creation.
#[must_use]
pub fn saved_items_key(account: &str, service: &str, kind: &str) -> String {
    format!("{account}/{service}/{kind}")
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
