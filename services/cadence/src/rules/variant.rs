//! What is remembered of a variant, and the keys of variants and items.

use serde::{Deserialize, Serialize};

/// The rules of the service.
pub struct CadenceRules;

/// What is known of a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VariantState {
    /// Id of its item.
    pub(crate) item: String,
    /// Whether it can be bought.
    pub(crate) available: bool,
    /// Whether it has ever been seen available.
    pub(crate) ever: bool,
    /// Whether it is gone from the store.
    pub(crate) removed: bool,
    /// When the fact that set `available` was observed, in milliseconds since 1970.
    pub(crate) since_ms: i64,
    /// Whether its newest fact is from an outdated copy of the list.
    pub(crate) is_outdated: bool,
    /// When the store had last edited it then, in milliseconds since 1970; 0 if unknown.
    pub(crate) updated_ms: i64,
}

pub(super) fn variant_key(host: &str, variant: &str) -> String {
    format!("variant/{host}/{variant}")
}

/// The id of an item.
pub(super) fn item_id(host: &str, product: &str) -> String {
    format!("{host}/{product}")
}
