//! Tax liens in the records of the service.

use jiff::ToSpan;
use jiff::civil::Date;
pub use property::dockets::{OPEN, PARTIAL, SATISFIED, STRUCK};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use texts::allegheny::pins_of_block_lot;

use schemas::views::records::Place;

/// A lien that is open, or satisfied in part, [`EXPIRY_YEARS`] after it was filed.
pub const EXPIRED_REVIEW: &str = "EXPIRED_REVIEW";
/// A lien that is open after so many years is to be reviewed.
const EXPIRY_YEARS: i64 = 20;

/// A tax lien. `""` and null mean unknown. Whether it is older than 20 years depends on the day of the answer, so changes do not say that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "RecordedLien")]
pub struct Lien {
    /// The number of the docket. One docket can have several liens.
    pub dtd: String,
    /// The description, which names the taxing bodies.
    pub description: String,
    /// The taxing bodies that the lien is left for: `City`, `School`. Empty if it is satisfied or struck off; `description` names the bodies then.
    pub body: Vec<String>,
    /// The tax year.
    pub tax_year: Option<i64>,
    /// The day of filing, `YYYY-MM-DD`.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filed: String,
    /// The amount in cents, without interest and costs; null if it is unknown, and if it is unknown how much of it is left.
    pub amount_cents: Option<i64>,
    /// What the entries say: `OPEN`, `PARTIAL`, `SATISFIED` or `STRUCK`; `EXPIRED_REVIEW` if it is open 20 years after it was filed.
    pub status: String,
    /// Which entry or field gives the status.
    pub why: String,
    /// The last entry of the docket. Of words that are not usual in dockets, such as names, the initials are shown.
    pub last_entry: String,
    /// Who bought the lien: a company, or the initials of a person.
    pub assignee: String,
    /// The block and lot, as courts write them.
    pub block_lot: String,
    /// The municipality, as published.
    pub municipality: String,
}

/// The name of the list of the liens of a parcel.
#[must_use]
pub fn lien_list(pin: &str) -> String {
    format!("lien/{pin}")
}

/// The name of the list of the liens without a PIN whose block-lot can mean a parcel.
#[must_use]
pub fn unmatched_list(pin: &str) -> String {
    format!("lien/unmatched/{pin}")
}

impl Lien {
    /// Sets the status as of a day: a lien that is open 20 years after it was filed is to be reviewed.
    pub(crate) fn set_day(&mut self, day: Date) {
        let is_open = [OPEN, PARTIAL].contains(&self.status.as_str());
        let expires = self.filed.parse::<Date>().ok().map(|filed| filed.saturating_add(EXPIRY_YEARS.years()));
        if let Some(expires) = expires.filter(|expires| is_open && *expires <= day) {
            EXPIRED_REVIEW.clone_into(&mut self.status);
            self.why = format!("{}; {EXPIRY_YEARS} years after it was filed passed on {expires}", self.why);
        }
    }

    /// The places of the lien in lists: the newest tax year first.
    #[must_use]
    pub fn places(&self, pin: &str) -> Vec<Place> {
        let lists = match pin {
            "" => pins_of_block_lot(&self.block_lot).iter().map(|pin| unmatched_list(pin)).collect(),
            pin => vec![lien_list(pin)],
        };
        let rank = -self.tax_year.unwrap_or(0);
        lists.into_iter().map(|list| Place { list, bucket: 0, rank }).collect()
    }
}
