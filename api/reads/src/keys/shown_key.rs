//! A key as its owner sees it.

use access::{KeyState, key_state, unused_until};
use schemars::JsonSchema;
use schemas::clock::{day_of, rfc3339, rfc3339_or_empty};
use schemas::views::accounts::ApiKey;
use serde::Serialize;

/// A key of an account, without the key itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AccountKey")]
pub struct ShownKey {
    /// The id of the key, to rotate or revoke it.
    pub key_id: String,
    /// The last four characters of the key; empty for a key that an older version of this server created. All keys begin with `hw_live_`.
    pub ends_with: String,
    /// The tier of the key.
    pub tier: String,
    /// `working`; `ending`: it was rotated and still works until `endsAt`; `ended`; or `expired`: a free key that was not used for 90 days.
    pub state: &'static str,
    /// When the key was created, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub created_at: String,
    /// The last UTC day on which the key was used, recorded within a minute of the use; empty if it was never used.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub last_used_on: String,
    /// When the key stops or stopped working, RFC 3339 in UTC; empty if it has no end. A free key also expires after 90 days without use.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub ends_at: String,
    /// Whether this is the key of the request.
    pub is_own: bool,
}

impl ShownKey {
    /// The key as it is at a time, in milliseconds since 1970. `own` is the id of the key of the request.
    pub(super) fn of(row: &ApiKey, own: &str, now_ms: i64) -> Self {
        let state = key_state(row, now_ms);
        let ends_at = if state == KeyState::Expired { unused_until(row).unwrap_or_default() } else { row.ends_at };
        Self {
            key_id: row.id.clone(),
            ends_with: row.key_end.clone(),
            tier: row.tier.clone(),
            state: state.as_str(),
            created_at: rfc3339(row.minted_at),
            last_used_on: if row.last_used_at == 0 { String::new() } else { day_of(row.last_used_at).to_string() },
            ends_at: rfc3339_or_empty(ends_at),
            is_own: row.id == own,
        }
    }
}
