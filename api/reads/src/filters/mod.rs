//! Saved filters: an account saves a filter of a service's feed under a name, and requests the feed with that name.

pub mod delete;
pub mod list;
pub mod save;

use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::views::watches::SavedItem;
use serde::ser::Error;
use serde::{Serialize, Serializer};

use access::saved_items::SavedItems;
use feed::filter::{Filter, check_ranges};
use feed::watchable::WatchableFeed;
use operation::Call;
use operation::known_values::spell_known_values;
use operation::problem::Problem;
use operation::schema::Repeated;
use operation::tiers::SAVED_ITEMS_MIN_TIER;

/// A saved filter.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SavedFilter")]
pub struct Saved<F> {
    /// The name, which the feed takes as `filter`.
    pub name: String,
    /// The filter in the form in which it is saved, with the spelling of known values.
    #[serde(serialize_with = "spelled", bound(serialize = "F: Serialize + JsonSchema"))]
    #[schemars(with = "Repeated<F>")]
    pub filter: F,
    /// When the name was first saved, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub made_at: String,
    /// When the filter was last changed, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub changed_at: String,
    /// What to know about the filter: values that nothing recorded has. Only the answer that saves it has a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Writes a filter with the spelling that its schema gives known values; the saved form, which cursors hold, is in lower case.
fn spelled<F: Serialize + JsonSchema, S: Serializer>(filter: &F, serializer: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(filter).map_err(S::Error::custom)?;
    spell_known_values(&mut value, &operation::schema::input::<F>());
    value.serialize(serializer)
}

impl<F: Filter> Saved<F> {
    fn of(kept: SavedItem) -> Result<Self, Problem> {
        let filter = read(&kept)?;
        Ok(Self { filter, made_at: rfc3339(kept.made_at), changed_at: rfc3339(kept.changed_at), name: kept.name, note: None })
    }
}

/// The filter of a feed request: the given fields, and the fields of the named saved filter that the request does not give. Next to it a note, if the
/// request replaces fields of the saved filter.
///
/// # Errors
/// `not-found` if the account has no filter of that name, `tier-too-low` if the caller's tier has no saved filters.
pub async fn merged<S: WatchableFeed>(call: &Call, name: Option<&str>, given: S::Filter) -> Result<(S::Filter, Option<String>), Problem> {
    let Some(name) = name else { return Ok((given, None)) };
    if call.caller.tier < SAVED_ITEMS_MIN_TIER {
        let remark = call.caller.tier_remark();
        let refusal = call.context.settings.tier_too_low("saved filters need a key of tier", SAVED_ITEMS_MIN_TIER, &remark);
        return Err(refusal.about("filter"));
    }
    let kept = SavedItems::filters(call, S::FEED.source.service).filter(name.trim()).await.map_err(|problem| problem.about("filter"))?;
    let saved: S::Filter = read(&kept)?;
    let merged = given.with_defaults_from(&saved)?;
    // One end of a range may be the request's, the other the saved filter's.
    check_ranges(&merged)?;
    Ok((merged, replaced(&given, &saved)))
}

/// The note that names the fields of a saved filter for which the request gives other values.
fn replaced<F: Filter>(given: &F, saved: &F) -> Option<String> {
    let [given, saved] = [given, saved].map(|filter| serde_json::to_value(filter).unwrap_or_default());
    let (given, saved) = (given.as_object()?, saved.as_object()?);
    let names: Vec<&str> =
        given.iter().filter(|(name, own)| saved.get(*name).is_some_and(|kept| kept != *own)).map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| format!("parameters of this request that replace those of the saved filter: {}", names.join(", ")))
}

fn read<F: Filter>(kept: &SavedItem) -> Result<F, Problem> {
    F::from_canonical(&kept.filter).ok_or_else(|| {
        tracing::error!(id = kept.id, "a saved filter cannot be read");
        Problem::new(ErrorCode::Internal, format!("the saved filter {:?} cannot be read; save it again", kept.name))
    })
}
