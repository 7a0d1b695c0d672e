//! What accounts keep in the services: saved filters, and watches of what they follow. Private.

use serde::{Deserialize, Serialize};

use super::records::{Record, Term};

/// Saves a filter under a name, or another one under the same name.
pub const SAVE_FILTER: &str = "save_filter";
/// Deletes a saved filter.
pub const DELETE_FILTER: &str = "delete_filter";
/// Begins a watch.
pub const WATCH: &str = "watch";
/// Ends a watch.
pub const UNWATCH: &str = "unwatch";

/// Gives a watch another webhook, or another secret.
pub const RETARGET: &str = "retarget";

/// The verbs of commands on the `accounts` topic that are about filters and watches; all others are about keys.
pub const VERBS: [&str; 5] = [SAVE_FILTER, DELETE_FILTER, WATCH, UNWATCH, RETARGET];

/// What a [`Kept`] is.
pub mod kind {
    /// A saved filter.
    pub const FILTER: &str = "filter";
    /// A watch.
    pub const WATCH: &str = "watch";
}

/// A saved filter or a watch. `""` and 0 stand for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kept {
    /// `filter_` or `watch_`, and 24 hex digits.
    pub id: String,
    /// One of [`kind`].
    pub kind: String,
    /// Whose it is.
    pub account: String,
    /// The service whose changes it is about.
    pub service: String,
    /// Filter: its name.
    pub name: String,
    /// The filter in canonical form; empty for one that lets all pass.
    pub filter: String,
    /// Watch: what is watched, as it was asked for, JSON.
    pub entity: String,
    /// Watch: where it is delivered, sealed.
    pub webhook: String,
    /// Watch: what its messages are signed with, sealed.
    pub secret: String,
    /// Watch: the secrets before, which sign beside it for a time, the last one first.
    pub old_secrets: Vec<OldSecret>,
    /// Watch: seq of the service's last change that does not count.
    pub after: i64,
    /// When it was made, milliseconds since 1970.
    pub made_at: i64,
    /// When it was last changed.
    pub changed_at: i64,
    /// Deleted; whose it was is all that is left.
    pub gone: bool,
}

/// A secret that was replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OldSecret {
    /// Sealed.
    pub secret: String,
    /// Until when it signs, milliseconds since 1970.
    pub until: i64,
}

impl Record for Kept {
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

/// The key under which it is remembered which filters, or watches, an account has in a service: a list of their ids as JSON, in the order
/// in which they were made.
#[must_use]
pub fn shelf(account: &str, service: &str, kind: &str) -> String {
    format!("{account}/{service}/{kind}")
}

crate::record_tables!("watches");
