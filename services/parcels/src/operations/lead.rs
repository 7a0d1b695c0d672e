//! Over-assessed parcels as answers show them, and pages of them.

use crate::record::{Appeal, Basis, Parcel, RedactedParcel, TIERS, over_list, over_part};
use feed::places::{Ranked, Segment, Walk};
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::views::records::Redact;
use serde::Serialize;

use super::filter::Filter;
use super::watchable_feed::Parcels;
use reads::read::Reader;

/// A parcel that is assessed higher than its peers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverLead {
    /// The number of the parcel.
    pub pin: String,
    /// The county.
    pub county: String,
    /// The class.
    pub class: String,
    /// What the class is called.
    pub class_label: String,
    /// The name of the township.
    pub township: String,
    /// The number of the neighbourhood.
    pub neighborhood: String,
    /// The address of the parcel; empty if unknown.
    pub address: String,
    /// `high`, `medium` or `low`; of a single parcel also `none` or `insufficient`.
    pub tier: String,
    /// The ratio of the parcel divided by the median of its peers; null if it cannot be compared.
    pub r: Option<f64>,
    /// The market value that the assessment implies, divided by the price of its own sale; without one, its value per square foot divided by the median of
    /// those of its peers.
    pub ratio: Option<f64>,
    /// The median of the ratios of its peers when the cycle closed; 1 for values per square foot.
    pub peer_median: Option<f64>,
    /// How many sales of peers count.
    pub peer_n: i64,
    /// Whether the peers are those of the `neighborhood` or of the `township`; empty without peers.
    pub peer_level: String,
    /// The coefficient of dispersion of the ratios of its peers, in percent.
    pub cod: Option<f64>,
    /// The stage of the assessment: `mailed`, `certified` or `board`; empty without a value.
    pub stage: String,
    /// The assessed value in dollars.
    pub assessed: Option<i64>,
    /// The level of assessment of the class: 0.25.
    pub level: Option<f64>,
    /// The assessed value divided by the level, in dollars.
    pub implied_market_value: Option<i64>,
    /// What the implied market value is compared to.
    pub basis: Basis,
    /// The last appeal to the assessor that has a result; null and empty if there is none in the last years.
    pub last_appeal: Appeal,
    /// The rule.
    pub method: String,
    /// The cycle whose medians are used: `2026-mailed`.
    pub cycle: String,
    /// The row of the assessed values at the publisher.
    pub url: String,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

impl From<Parcel> for OverLead {
    fn from(parcel: Parcel) -> Self {
        Self {
            pin: parcel.pin,
            county: parcel.county,
            class: parcel.class,
            class_label: parcel.class_label,
            township: parcel.township,
            neighborhood: parcel.neighborhood,
            address: parcel.address,
            tier: parcel.tier,
            r: parcel.r,
            ratio: parcel.ratio,
            peer_median: parcel.peer_median,
            peer_n: parcel.peer_n,
            peer_level: parcel.peer_level,
            cod: parcel.cod,
            stage: parcel.stage,
            assessed: parcel.assessed,
            level: parcel.level,
            implied_market_value: parcel.implied_market_value,
            basis: parcel.basis,
            last_appeal: parcel.last_appeal,
            method: parcel.method,
            cycle: parcel.cycle,
            url: parcel.url,
            suppressed: parcel.suppressed,
        }
    }
}

/// A row of a list: whole for a paid key, else redacted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "OverLeadRow")]
pub enum LeadRow {
    /// All of it.
    Whole(Box<OverLead>),
    /// Without what says which parcel it is.
    Redacted(Box<RedactedParcel>),
}

impl LeadRow {
    /// The row of a parcel.
    pub(crate) fn new(parcel: Parcel, is_redacted: bool) -> Self {
        if is_redacted { Self::Redacted(Box::new(parcel.redacted())) } else { Self::Whole(Box::new(parcel.into())) }
    }
}

/// The list that has the over-assessed parcels that a filter takes.
fn list_of(filter: &Filter) -> String {
    let is_high = filter.min_tier.as_deref() == Some(TIERS[0]);
    over_list(filter.county(), filter.township.as_deref(), filter.class.as_deref(), is_high)
}

/// Checks the `after` of an unpaid call, see [`page`].
///
/// # Errors
/// `cursor-invalid` for an `after` of another query.
pub(crate) fn check_after(reader: &Reader<Parcels>, filter: &Filter, after: Option<&str>) -> Result<(), Problem> {
    reader.check_after(&list_of(filter), filter.min_tier.as_deref().unwrap_or_default(), after)
}

/// A page of the over-assessed parcels that a filter takes, the largest `r` first, ties by PIN.
///
/// # Errors
/// `cursor-invalid` for an `after` of another query; `unavailable`.
pub(crate) async fn page(reader: &Reader<Parcels>, filter: &Filter, limit: usize, after: Option<&str>) -> Result<Ranked<Parcel>, Problem> {
    let [_, medium, _] = TIERS;
    let (list, least) = (list_of(filter), filter.min_tier.as_deref());
    let ((first, last), (from, to)) = over_part(least != Some(medium));
    let part = Segment { buckets: first..=last, ranks: from..=to };
    let bound = least.unwrap_or_default();
    // What matches is counted by decisions, so the walk need not.
    reader.ranked_page(Walk { list: &list, part, filter: bound, limit, after }, None).await
}
