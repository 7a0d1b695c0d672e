//! `GET /api/delta`: the parcels that the current cycle made over-assessed, and those that are no more.

use crate::record::{DeltaCounts, Parcel, delta_list, masked_pin};
use feed::places::{Segment, Walk};
use operation::problem::Problem;
use operation::{Definition, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use texts::cook;

use super::counts;
use super::filter::Filter;
use super::watchable_feed::Parcels;
use super::{DISCLAIMER, rule};
use reads::read::{Read, Reader};

/// The most rows of each list without a paid key.
const REDACTED_ROWS_MAX: usize = 25;
/// Begins the `next` of a page that ends among the resolved parcels.
const RESOLVED: &str = "resolved.";
/// Begins the `next` of a page that ends among the new parcels.
const NEW: &str = "new.";
/// What selects the rows of both lists: all of them.
const LIST_FILTER: &str = "delta";

/// Arguments of `delta`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Where to continue: the `next` of an earlier answer to the same query. Without a paid key there is none.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

/// A parcel that is newly over-assessed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "NewParcel")]
pub struct New {
    /// The number of the parcel; masked without a paid key.
    pub pin: String,
    /// The tier of the parcel.
    pub tier: String,
}

/// A parcel that is no longer over-assessed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ResolvedParcel")]
pub struct Resolved {
    /// The number of the parcel; masked without a paid key.
    pub pin: String,
    /// The tier of the parcel when the cycle before closed.
    pub was: String,
    /// The tier of the parcel now: `none` if it is not higher than its peers any more, `insufficient` if it cannot be compared any more; `class` if it is not
    /// commercial or industrial any more.
    pub why: String,
}

/// What the current cycle changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ParcelDelta")]
pub struct Delta {
    /// The county.
    pub county: String,
    /// The current cycle, `2026-mailed`; empty before the first.
    pub cycle: String,
    /// The day on which the first neighbourhood reached it; empty before the first.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub since: String,
    /// How many parcels are new and resolved.
    pub counts: DeltaCounts,
    /// Parcels that are over-assessed and were not when the cycle before closed, by PIN.
    pub new: Vec<New>,
    /// Parcels that were over-assessed when the cycle before closed and are not now, by PIN.
    pub resolved: Vec<Resolved>,
    /// Send it as `after` to get the next page; null on the last one and without a paid key.
    pub next: Option<String>,
    /// The rule and the version of the data file of classes, which `/docs` shows.
    pub rule: String,
    /// What the lists are not.
    pub disclaimer: &'static str,
}

/// A page of one of the two lists.
async fn page(
    reader: &Reader<Parcels>,
    (county, cycle): (&str, &str),
    is_new: bool,
    limit: usize,
    after: Option<&str>,
) -> Result<(Vec<Parcel>, Option<String>), Problem> {
    let list = delta_list(county, cycle, is_new);
    let part = Segment { buckets: 0..=0, ranks: 0..=0 };
    let found = reader.ranked_page(Walk { list: &list, part, filter: LIST_FILTER, limit, after }, None).await?;
    let begin = if is_new { NEW } else { RESOLVED };
    Ok((found.items, found.next.map(|next| format!("{begin}{next}"))))
}

/// Checks the `after` of a call below the paid tier, which gets the first page whatever is asked.
fn check_after(reader: &Reader<Parcels>, (county, cycle): (&str, &str), after: Option<&str>) -> Result<(), Problem> {
    let (is_new, place) = match after.map(|after| (after.strip_prefix(RESOLVED), after)) {
        Some((Some(place), _)) => (false, Some(place).filter(|place| !place.is_empty())),
        Some((None, after)) => (true, Some(after.strip_prefix(NEW).unwrap_or(after))),
        None => return Ok(()),
    };
    reader.check_after(&delta_list(county, cycle, is_new), LIST_FILTER, place)
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = Delta;

    const FILTER: &'static [&'static str] = &["county"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "delta",
            path: "/api/delta",
            summary: "The parcels that the current cycle of a county made over-assessed, and those that are no more.",
            description: "A cycle is a year and a stage of the assessment. The parcels of the cycle before as it closed, with the new ones and without the resolved ones, are those that \
                are over-assessed now. Commercial and industrial parcels. Without a key of tier pro: true counts, and at most 25 masked PINs of each \
                list. With one, a page has the new ones first, then the resolved ones.",
            surface: Surface::Route,
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "county": "cook-il" }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Delta, Problem> {
        let is_redacted = reader.is_limited();
        let limit = reader.limit();
        let county = filter.county.unwrap_or_else(|| cook::COUNTY.to_owned());
        let current = counts::cycle(&reader.at, &county).await?;
        let place = (county.as_str(), current.cycle.as_str());
        let counts = counts::delta(&reader.at, &county, &current.cycle).await?;
        // Of an empty answer a key shows no more.
        if counts.new > 0 || counts.resolved > 0 {
            reader.redaction();
        }
        let (new, resolved, next) = if is_redacted {
            check_after(reader, place, self.after.as_deref())?;
            reader.note_first_page(self.after.as_deref());
            let limit = limit.min(REDACTED_ROWS_MAX);
            let (new, _) = page(reader, place, true, limit, None).await?;
            let (resolved, _) = page(reader, place, false, limit, None).await?;
            (new, resolved, None)
        } else {
            let of_resolved = self.after.as_deref().and_then(|after| after.strip_prefix(RESOLVED));
            // An `after` that begins with neither word is refused as one of another query.
            let of_new = self.after.as_deref().map(|after| after.strip_prefix(NEW).unwrap_or(after));
            let (new, next) = match of_resolved {
                Some(_) => (Vec::new(), None),
                None => page(reader, place, true, limit, of_new).await?,
            };
            match (limit - new.len(), next) {
                (_, Some(next)) => (new, Vec::new(), Some(next)),
                (0, None) => {
                    let has_more = counts.resolved > 0;
                    (new, Vec::new(), has_more.then(|| RESOLVED.to_owned()))
                }
                (rest, None) => {
                    let after = of_resolved.filter(|after| !after.is_empty());
                    let (resolved, next) = page(reader, place, false, rest, after).await?;
                    (new, resolved, next)
                }
            }
        };
        let pin = |pin: String| if is_redacted { masked_pin(&pin) } else { pin };
        let mut new: Vec<New> = new.into_iter().map(|parcel| New { pin: pin(parcel.pin), tier: parcel.tier }).collect();
        let resolved = resolved.into_iter().map(|parcel| {
            let why = if parcel.is_commercial() { parcel.tier } else { "class".to_owned() };
            Resolved { pin: pin(parcel.pin), was: parcel.tier_before, why }
        });
        let mut resolved: Vec<Resolved> = resolved.collect();
        if is_redacted {
            // The order of whole PINs would tell digits that are masked.
            new.sort_unstable();
            resolved.sort_unstable();
        }
        Ok(Delta { counts, new, resolved, next, cycle: current.cycle, since: current.since, county, rule: rule(), disclaimer: DISCLAIMER })
    }
}
