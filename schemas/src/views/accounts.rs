//! Accounts and their API keys.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};
use crate::change::Change;
use crate::details::{ChangeRecord, NoDetails};
use crate::event::Command;
use crate::tables::{Table, TableKind, ValueKind, ViewDef, int, int_desc, text};
use crate::topics::{self, Topic};

/// What a caller may do. The API's tier table holds the limits of each tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A caller without a key.
    #[default]
    Anonymous,
    /// A free key, which anyone can mint.
    Free,
    /// A paid key, with saved filters, watches and webhooks.
    Pro,
    /// A paid key with higher limits.
    Business,
    /// A paid key for fleets.
    Fleet,
    /// A paid key for fleets, with exports.
    FleetPlus,
}

impl Tier {
    /// THE LIST of tiers.
    pub const ALL: [Self; 6] = [Self::Anonymous, Self::Free, Self::Pro, Self::Business, Self::Fleet, Self::FleetPlus];

    /// Returns the tier's name in configuration and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Free => "free",
            Self::Pro => "pro",
            Self::Business => "business",
            Self::Fleet => "fleet",
            Self::FleetPlus => "fleet_plus",
        }
    }

    /// Returns the tier with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == name)
    }
}

/// A command on the `accounts` topic: the `data` of an envelope in the shape of a fact. The envelope's key is the id of the API key, saved
/// filter or watch that the command is about, or the identity of a request that must not be executed twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccountCommand {
    /// `mint`, `rotate`, `revoke`, `erase`, `used`; [`SAVE_FILTER`](super::watches::SAVE_FILTER) and the others of [`VERBS`](super::watches::VERBS).
    pub verb: String,
    /// Id of the API key: `key_` and 24 hex digits of its hash, or of the hash of the request that mints it once. For `rotate`, that of the
    /// replaced key.
    pub key_id: String,
    /// Keyed hash (hex) of the minted key. The key itself is not stored.
    pub key_hash: String,
    /// For `rotate`: the id of the new key.
    pub new_key_id: String,
    /// The account that owns the key: `acct_` and 24 hex digits.
    pub account: String,
    /// Name of the tier.
    pub tier: String,
    /// Keyed hash (hex) of the e-mail address, for look-ups. The address itself is not stored here.
    pub email_hash: String,
    /// For a filter or watch: the service whose changes it selects.
    pub service: String,
    /// Id of the filter or watch.
    pub item_id: String,
    /// Name of the filter.
    pub name: String,
    /// The filter in canonical form. A watch has one, too.
    pub filter: String,
    /// For a watch: the watched entity, as the request gave it: JSON.
    pub entity: String,
    /// For a watch: its webhook URL, encrypted under a key of the account.
    pub webhook: String,
    /// For a watch: the signing secret of its webhook, encrypted under a key of the account.
    pub secret: String,
    /// For a watch: seq of the last change of the service that it does not match.
    pub after: i64,
    /// The most filters, or watches, of this service that the account's tier allows.
    pub limit: i64,
}

impl Command for AccountCommand {
    const TOPIC: &'static Topic = &topics::ACCOUNTS;

    fn verb(&self) -> &str {
        &self.verb
    }

    fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }
}

/// The current state of an API key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiKey {
    /// Id of the key.
    pub id: String,
    /// Keyed hash (hex) of the key.
    pub key_hash: String,
    /// Account that owns it.
    pub account: String,
    /// Name of the tier.
    pub tier: String,
    /// Keyed hash of the e-mail address, or empty.
    pub email_hash: String,
    /// When it was minted: milliseconds since 1970.
    pub minted_at: i64,
    /// When it stops working: milliseconds since 1970; 0 for never (rotation gives the old key a day).
    pub ends_at: i64,
    /// Start of the hour in which the key was last used: milliseconds since 1970; 0 for never.
    pub last_used_at: i64,
}

impl ChangeRecord for ApiKey {
    type Details = NoDetails;
}

/// The precision of [`ApiKey::last_used_at`]: one hour, in milliseconds.
pub const LAST_USED_PRECISION_MS: i64 = 3_600_000;

/// Returns the start of the hour that contains an instant, both in milliseconds since 1970.
#[must_use]
pub fn hour_of(at_ms: i64) -> i64 {
    at_ms - at_ms.rem_euclid(LAST_USED_PRECISION_MS)
}

/// A change of an API key.
pub type AccountChange = Change<ApiKey, AccountCommand>;

/// A stored row: the key and the seq of the change that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Seq of the change that wrote it.
    pub seq: i64,
    /// The key.
    pub record: ApiKey,
}

/// Current keys: (id) to [`Row`] as JSON.
pub const KEYS: Table =
    Table { name: "accounts_keys", key: &[text("id")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
/// Earlier versions of keys: (id, seq descending) to [`Row`] as JSON.
pub const KEYS_HISTORY: Table = Table {
    name: "accounts_keys_history",
    key: &[text("id"), int_desc("seq")],
    partition_columns: 1,
    kind: TableKind::History,
    value: ValueKind::Text,
};
/// Index of keys by keyed hash: (hash) to the key's id.
pub const BY_HASH: Table =
    Table { name: "accounts_by_hash", key: &[text("hash")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };
/// Index of keys by keyed hash of the e-mail address: (hash, id) to nothing. Rows are no longer written or read; those of older versions are
/// deleted when their account is erased.
pub const BY_EMAIL: Table = Table {
    name: "accounts_by_email",
    key: &[text("hash"), text("id")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// Packed pages of changes: (block) to a block, see `view_store::feed`.
pub const FEED: Table =
    Table { name: "accounts_feed", key: &[int("block")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
/// Parked inputs: (key of fact, offset) to position and reason, as JSON.
pub const PARKED: Table = Table {
    name: "accounts_parked",
    key: &[text("key"), int("offset")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};

/// The view of the accounts service.
pub const VIEW: ViewDef = ViewDef { name: "accounts", tables: &[&KEYS, &KEYS_HISTORY, &BY_HASH, &BY_EMAIL, &FEED, &PARKED] };

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that every field of a command is hashed: changing it changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        let empty = serde_json::to_value(AccountCommand::default()).unwrap();
        for name in empty.as_object().unwrap().keys() {
            let mut changed = empty.clone();
            changed[name] = if empty[name].is_number() { json!(7) } else { json!("x") };
            let command: AccountCommand = serde_json::from_value(changed).unwrap();
            assert_ne!(command.canonical(), AccountCommand::default().canonical(), "{name}");
        }
    }
}
