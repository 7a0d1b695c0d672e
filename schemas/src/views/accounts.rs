//! Accounts and their keys: what the API was asked to remember about its callers.

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::event::Command;
use crate::facts::canonical::Canonical;
use crate::tables::{Table, TableKind, ValueKind, ViewDef, int, int_desc, text};
use crate::topics::{self, Topic};

/// What a caller may do. Limits of each are in the API's tier table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// No key.
    #[default]
    Anonymous,
    /// A key that anyone can mint.
    Free,
    /// A paid key, with saved filters, watches and webhooks.
    Pro,
    /// A paid key with more of all.
    Business,
    /// A paid key for fleets.
    Fleet,
    /// A paid key for fleets, with exports.
    FleetPlus,
}

impl Tier {
    /// THE LIST of tiers.
    pub const ALL: [Self; 6] = [Self::Anonymous, Self::Free, Self::Pro, Self::Business, Self::Fleet, Self::FleetPlus];

    /// Its name in configuration and on the command line.
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

    /// The tier of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == name)
    }
}

/// A command of the API, kept on the `accounts` topic as `data` of a fact-like envelope whose key is the id of the API key, or of the saved
/// filter or watch, that it is about (or stands for the request, where one is not to be done twice).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccountCommand {
    /// `mint`, `rotate`, `revoke`, `erase`, `used`; [`SAVE_FILTER`](super::watches::SAVE_FILTER) and the others of [`VERBS`](super::watches::VERBS).
    pub verb: String,
    /// Id of the key (`key_` and 24 hex digits: of its hash, or of the hash of the request that mints it once); on `rotate` that of the key replaced.
    pub key_id: String,
    /// Keyed hash (hex) of the key minted; never the key.
    pub key_hash: String,
    /// On `rotate`: the id of the new key.
    pub new_key_id: String,
    /// Account that owns it: `acct_` and 24 hex digits.
    pub account: String,
    /// Tier's name.
    pub tier: String,
    /// Keyed hash (hex) of the e-mail address, for look-up; the address itself is not kept.
    pub email_hash: String,
    /// Of a filter or watch: the service whose changes it is about.
    pub service: String,
    /// Id of the filter or watch.
    pub item_id: String,
    /// The filter's name.
    pub name: String,
    /// The filter in canonical form; a watch has one, too.
    pub filter: String,
    /// What is watched, as it was asked for: JSON.
    pub entity: String,
    /// Where a watch is delivered: the URL, sealed under a key of the account. Never the URL.
    pub webhook: String,
    /// What messages to it are signed with, sealed likewise.
    pub secret: String,
    /// The last change of the service that a watch does not count.
    pub after: i64,
    /// How many filters, or watches, of this service the account's tier may have.
    pub limit: i64,
}

impl Command for AccountCommand {
    const TOPIC: &'static Topic = &topics::ACCOUNTS;

    fn verb(&self) -> &str {
        &self.verb
    }

    fn canonical(&self) -> Vec<u8> {
        let Self {
            verb,
            key_id,
            key_hash,
            new_key_id,
            account,
            tier,
            email_hash,
            service,
            item_id,
            name,
            filter,
            entity,
            webhook,
            secret,
            after,
            limit,
        } = self;
        let number = |number: i64| Some(number).filter(|number| *number != 0);
        Canonical::default()
            .text("verb", verb)
            .text("keyId", key_id)
            .text("keyHash", key_hash)
            .text("newKeyId", new_key_id)
            .text("account", account)
            .text("tier", tier)
            .text("emailHash", email_hash)
            .text("service", service)
            .text("itemId", item_id)
            .text("name", name)
            .text("filter", filter)
            .text("entity", entity)
            .text("webhook", webhook)
            .text("secret", secret)
            .number("after", number(*after))
            .number("limit", number(*limit))
            .bytes()
    }
}

/// A key as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiKey {
    /// Its id.
    pub id: String,
    /// Keyed hash (hex) of the key.
    pub key_hash: String,
    /// Account that owns it.
    pub account: String,
    /// Tier's name.
    pub tier: String,
    /// Keyed hash of the e-mail address, or empty.
    pub email_hash: String,
    /// When it was minted: milliseconds since 1970.
    pub minted_at: i64,
    /// When it stops working: milliseconds since 1970; 0 for never (rotation gives the old key a day).
    pub ends_at: i64,
    /// When the hour began in which it was last used: milliseconds since 1970; 0 for never.
    pub last_used_at: i64,
}

/// How finely it is known when a key was last used: an hour, in milliseconds.
pub const USE_GRAIN_MS: i64 = 3_600_000;

/// When the hour began that an instant is in, both in milliseconds since 1970.
#[must_use]
pub fn hour_of(at_ms: i64) -> i64 {
    at_ms - at_ms.rem_euclid(USE_GRAIN_MS)
}

/// A change of the accounts.
pub type AccountChange = Change<ApiKey, AccountCommand>;

/// A stored row: the key and the change that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Seq of the change that wrote it.
    pub seq: i64,
    /// The key.
    pub record: ApiKey,
}

/// Keys as they stand: (id) to [`Row`] as JSON.
pub const KEYS: Table =
    Table { name: "accounts_keys", key: &[text("id")], partition_columns: 1, kind: TableKind::Current, value: ValueKind::Text };
/// Keys as they stood: (id, seq descending) to [`Row`] as JSON.
pub const KEYS_HISTORY: Table = Table {
    name: "accounts_keys_history",
    key: &[text("id"), int_desc("seq")],
    partition_columns: 1,
    kind: TableKind::History,
    value: ValueKind::Text,
};
/// Keys by their keyed hash: (hash) to the key's id.
pub const BY_HASH: Table =
    Table { name: "accounts_by_hash", key: &[text("hash")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Text };
/// Keys by keyed hash of the e-mail: (hash, id) to nothing. No row is written any more and none is read; rows of older versions are deleted when
/// their account is erased.
pub const BY_EMAIL: Table = Table {
    name: "accounts_by_email",
    key: &[text("hash"), text("id")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
/// Packed pages of changes.
pub const FEED: Table =
    Table { name: "accounts_feed", key: &[int("block")], partition_columns: 1, kind: TableKind::Derived, value: ValueKind::Bytes };
/// Inputs that could not be decided: (key of fact, offset) to where and why, as JSON.
pub const PARKED: Table = Table {
    name: "accounts_parked",
    key: &[text("key"), int("offset")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};

/// The accounts' view.
pub const VIEW: ViewDef = ViewDef { name: "accounts", tables: &[&KEYS, &KEYS_HISTORY, &BY_HASH, &BY_EMAIL, &FEED, &PARKED] };

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that every field of a command counts: changing any one of them changes the canonical form.
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
