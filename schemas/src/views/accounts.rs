//! Accounts and their API keys.

use serde::{Deserialize, Serialize};

use crate::details::{ChangeRecord, NoDetails};
use crate::event::Command;
use crate::position::{PositionError, Seq};
use crate::suppression::Suppression;
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

/// A command on the `accounts` topic: the `data` of an envelope in the shape of a fact. The envelope's key is the id of the API key or saved
/// item that the command is about, or the identity of a request that must not be executed twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredCommand", into = "StoredCommand")]
pub enum AccountCommand {
    /// Creates a key.
    Mint(NewKey),
    /// Replaces a key.
    Rotate {
        /// Id of the replaced key.
        key_id: String,
        /// For how many seconds the replaced key still works; `None` for one day.
        overlap_s: Option<i64>,
        /// The key that replaces it.
        successor: NewKey,
    },
    /// Ends a key.
    Revoke(KeyOfAccount),
    /// Ends a key and removes the hash of its e-mail address.
    Erase(KeyOfAccount),
    /// Records that a key was used in this hour.
    Used {
        /// Id of the key.
        key_id: String,
    },
    /// A request about a saved item, which the watches service decides.
    Item(ItemCommand),
    /// Hides the fields of records that a key names from all readers.
    Suppress(Suppression),
    /// Shows them again.
    Unsuppress(Suppression),
    /// A command of a newer version, which this version cannot apply.
    Unknown {
        /// Its verb.
        verb: String,
    },
}

/// A key that is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewKey {
    /// Id of the key: `key_` and 24 hex digits of its hash, or of the hash of the request that mints it once.
    pub id: String,
    /// Keyed hash (hex) of the key. The key itself is not stored.
    pub key_hash: String,
    /// The account that owns the key: `acct_` and 24 hex digits.
    pub account: String,
    /// Name of the tier.
    pub tier: String,
    /// Keyed hash (hex) of the e-mail address, for look-ups. The address itself is not stored here.
    pub email_hash: String,
    /// The last characters of the key, by which its owner recognizes it.
    pub key_end: String,
}

/// An existing key, with its account and tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyOfAccount {
    /// Id of the key.
    pub key_id: String,
    /// The account that owns the key.
    pub account: String,
    /// Name of the tier.
    pub tier: String,
}

/// A request about a saved item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemCommand {
    /// Id of the item.
    pub item_id: String,
    /// Who owns it: an account, or the holder of a token ([`token_owner`](super::watches::token_owner)).
    pub account: String,
    /// The service that it belongs to.
    pub service: String,
    /// Keyed hash of the account and the idempotency key of the request, if it has one. A second request with the same hash has no effect, unless it
    /// is the same request: its command then has the same subject.
    pub once: Option<String>,
    /// What is requested.
    pub request: ItemRequest,
}

/// What is requested for a saved item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemRequest {
    /// Saves a filter under a name, and replaces the one with that name.
    SaveFilter {
        /// Name of the filter.
        name: String,
        /// The filter in canonical form.
        filter: String,
        /// The most filters of this service that the account's tier allows.
        limit: i64,
    },
    /// Deletes a saved filter.
    DeleteFilter,
    /// Saves a fleet, and replaces the one with this id.
    SaveFleet {
        /// Its name and aircraft, encrypted under a key of the account and of the fleet.
        contents: String,
        /// The most fleets of this service that the account's tier allows.
        limit: i64,
    },
    /// Deletes a saved fleet.
    DeleteFleet,
    /// Creates a watch, or renews the watch with this id if it has an end.
    Watch(NewWatch),
    /// Deletes a watch.
    Unwatch,
    /// Changes the webhook or the secret of a watch; `""` leaves one as it is.
    Retarget {
        /// The webhook's URL, encrypted under a key of the account.
        webhook: String,
        /// The signing secret of the webhook, encrypted under a key of the account.
        secret: String,
    },
}

/// A watch that is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewWatch {
    /// Watch with an end: the text by which a second request of the owner for the same is recognized as a renewal; otherwise empty.
    pub name: String,
    /// The filter in canonical form.
    pub filter: String,
    /// The watched entity, as the request gave it: JSON.
    pub entity: String,
    /// Its webhook URL, encrypted under a key of the account.
    pub webhook: String,
    /// The signing secret of its webhook, encrypted under a key of the account.
    pub secret: String,
    /// The last change of the service that the watch does not match.
    pub after: Seq,
    /// The most watches of this service that the account's tier allows. It does not apply to watches that are bought.
    pub limit: i64,
    /// For how many calendar months the watch is active; `None` for no end.
    pub months: Option<i64>,
}

impl Command for AccountCommand {
    const TOPIC: &'static Topic = &topics::ACCOUNTS;

    fn verb(&self) -> &str {
        match self {
            Self::Mint(_) => "mint",
            Self::Rotate { .. } => "rotate",
            Self::Revoke(_) => "revoke",
            Self::Erase(_) => "erase",
            Self::Used { .. } => "used",
            Self::Item(ItemCommand { request, .. }) => match request {
                ItemRequest::SaveFilter { .. } => "save_filter",
                ItemRequest::DeleteFilter => "delete_filter",
                ItemRequest::SaveFleet { .. } => "save_fleet",
                ItemRequest::DeleteFleet => "delete_fleet",
                ItemRequest::Watch(_) => "watch",
                ItemRequest::Unwatch => "unwatch",
                ItemRequest::Retarget { .. } => "retarget",
            },
            Self::Suppress(_) => "suppress",
            Self::Unsuppress(_) => "unsuppress",
            Self::Unknown { verb } => verb,
        }
    }
}

/// The stored form of a command: one record with the fields of all commands. 0 and `""` mean none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredCommand {
    verb: String,
    key_id: String,
    key_hash: String,
    new_key_id: String,
    account: String,
    tier: String,
    email_hash: String,
    service: String,
    item_id: String,
    name: String,
    filter: String,
    entity: String,
    webhook: String,
    secret: String,
    after: i64,
    limit: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    once: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    months: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap_s: Option<i64>,
    key_end: String,
}

impl TryFrom<StoredCommand> for AccountCommand {
    type Error = PositionError;

    fn try_from(stored: StoredCommand) -> Result<Self, PositionError> {
        let StoredCommand { verb, key_id, key_hash, new_key_id, account, tier, email_hash, service, item_id, name, .. } = stored;
        let StoredCommand { filter, entity, webhook, secret, after, limit, once, reason, months, overlap_s, key_end, .. } = stored;
        let request = match verb.as_str() {
            "mint" => return Ok(Self::Mint(NewKey { id: key_id, key_hash, account, tier, email_hash, key_end })),
            "rotate" => {
                let successor = NewKey { id: new_key_id, key_hash, account, tier, email_hash, key_end };
                return Ok(Self::Rotate { key_id, overlap_s, successor });
            }
            "revoke" => return Ok(Self::Revoke(KeyOfAccount { key_id, account, tier })),
            "erase" => return Ok(Self::Erase(KeyOfAccount { key_id, account, tier })),
            "used" => return Ok(Self::Used { key_id }),
            "suppress" => return Ok(Self::Suppress(Suppression { kind: name, key: entity, reason: reason.unwrap_or_default() })),
            "unsuppress" => return Ok(Self::Unsuppress(Suppression { kind: name, key: entity, reason: reason.unwrap_or_default() })),
            "save_filter" => ItemRequest::SaveFilter { name, filter, limit },
            "delete_filter" => ItemRequest::DeleteFilter,
            "save_fleet" => ItemRequest::SaveFleet { contents: entity, limit },
            "delete_fleet" => ItemRequest::DeleteFleet,
            "watch" => ItemRequest::Watch(NewWatch { name, filter, entity, webhook, secret, after: Seq::try_from(after)?, limit, months }),
            "unwatch" => ItemRequest::Unwatch,
            "retarget" => ItemRequest::Retarget { webhook, secret },
            _ => return Ok(Self::Unknown { verb }),
        };
        Ok(Self::Item(ItemCommand { item_id, account, service, once, request }))
    }
}

impl From<AccountCommand> for StoredCommand {
    fn from(command: AccountCommand) -> Self {
        let stored = Self { verb: command.verb().to_owned(), ..Self::default() };
        match command {
            AccountCommand::Mint(NewKey { id, key_hash, account, tier, email_hash, key_end }) => {
                Self { key_id: id, key_hash, account, tier, email_hash, key_end, ..stored }
            }
            AccountCommand::Rotate { key_id, overlap_s, successor } => {
                let NewKey { id, key_hash, account, tier, email_hash, key_end } = successor;
                Self { key_id, new_key_id: id, key_hash, account, tier, email_hash, overlap_s, key_end, ..stored }
            }
            AccountCommand::Revoke(KeyOfAccount { key_id, account, tier })
            | AccountCommand::Erase(KeyOfAccount { key_id, account, tier }) => Self { key_id, account, tier, ..stored },
            AccountCommand::Used { key_id } => Self { key_id, ..stored },
            AccountCommand::Item(ItemCommand { item_id, account, service, once, request }) => {
                let stored = Self { item_id, account, service, once, ..stored };
                match request {
                    ItemRequest::SaveFilter { name, filter, limit } => Self { name, filter, limit, ..stored },
                    ItemRequest::Watch(NewWatch { name, filter, entity, webhook, secret, after, limit, months }) => {
                        Self { name, filter, entity, webhook, secret, after: after.stored(), limit, months, ..stored }
                    }
                    ItemRequest::Retarget { webhook, secret } => Self { webhook, secret, ..stored },
                    ItemRequest::SaveFleet { contents, limit } => Self { entity: contents, limit, ..stored },
                    ItemRequest::DeleteFilter | ItemRequest::DeleteFleet | ItemRequest::Unwatch => stored,
                }
            }
            AccountCommand::Suppress(Suppression { kind, key, reason }) | AccountCommand::Unsuppress(Suppression { kind, key, reason }) => {
                Self { name: kind, entity: key, reason: Some(reason), ..stored }
            }
            AccountCommand::Unknown { .. } => stored,
        }
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
    /// When it stops working: milliseconds since 1970; 0 for never. Rotation gives the old key some time.
    pub ends_at: i64,
    /// Start of the hour in which the key was last used: milliseconds since 1970; 0 for never.
    pub last_used_at: i64,
    /// The last characters of the key; empty for keys of older versions.
    pub key_end: String,
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

/// A stored row: the key and the seq of the change that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Seq of the change that wrote it.
    pub seq: Seq,
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
/// Index of keys by account: (account, id) to nothing. Keys of older versions are added when they are used or changed, or by a replay.
pub const BY_ACCOUNT: Table = Table {
    name: "accounts_by_account",
    key: &[text("account"), text("id")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Bytes,
};
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

/// Suppressed keys: (kind, normalized key) to [`SuppressionRow`](crate::suppression::SuppressionRow) as JSON.
pub const SUPPRESSIONS: Table = Table {
    name: "accounts_suppressions",
    key: &[text("kind"), text("subject")],
    partition_columns: 1,
    kind: TableKind::Derived,
    value: ValueKind::Text,
};

/// The view of the accounts service.
pub const VIEW: ViewDef = ViewDef {
    name: "accounts",
    tables: &[&KEYS, &KEYS_HISTORY, &BY_HASH, &BY_ACCOUNT, &BY_EMAIL, &SUPPRESSIONS, &FEED, &PARKED],
    hides: &[],
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::views::testing::assert_own_fields;

    /// Proves that each command keeps its own fields in the stored form, and that each of these is hashed.
    #[test]
    fn commands_are_stored_with_their_fields() {
        let item = "itemId account service once";
        for (verb, own) in [
            ("mint", "keyId keyHash account tier emailHash keyEnd".to_owned()),
            ("rotate", "keyId newKeyId keyHash account tier emailHash overlapS keyEnd".to_owned()),
            ("revoke", "keyId account tier".to_owned()),
            ("erase", "keyId account tier".to_owned()),
            ("used", "keyId".to_owned()),
            ("save_filter", format!("{item} name filter limit")),
            ("delete_filter", item.to_owned()),
            ("save_fleet", format!("{item} entity limit")),
            ("delete_fleet", item.to_owned()),
            ("watch", format!("{item} name filter entity webhook secret after limit months")),
            ("unwatch", item.to_owned()),
            ("retarget", format!("{item} webhook secret")),
            ("suppress", "name entity reason".to_owned()),
            ("unsuppress", "name entity reason".to_owned()),
            ("dance", String::new()),
        ] {
            let whole = json!({
                "verb": verb, "keyId": "k", "keyHash": "h", "newKeyId": "n", "account": "a", "tier": "free", "emailHash": "e", "service": "s",
                "itemId": "i", "name": "m", "filter": "f", "entity": "t", "webhook": "w", "secret": "x", "after": 3, "limit": 5,
                "once": "o", "reason": "r", "months": 12, "overlapS": 60, "keyEnd": "abcd"
            });
            assert_own_fields::<AccountCommand>(&whole, &own.split(' ').collect::<Vec<_>>());
        }
        assert!(serde_json::from_value::<AccountCommand>(json!({ "verb": "watch", "after": -1 })).is_err());
    }
}
