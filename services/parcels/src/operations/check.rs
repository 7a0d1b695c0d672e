//! `GET /api/parcel` and the tool `parcel_overassessment`: the assessment of one parcel, compared with its peers.

use crate::record::{Parcel, ParcelYear, id};
use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use texts::cook;

use super::filter::{Filter, pin};
use super::lead::OverLead;
use super::watchable_feed::Parcels;
use super::{DISCLAIMER, rule};
use crate::rules::ParcelsRules;
use feed::RecordFeed;
use reads::read::{Read, Reader};

/// Arguments of `parcel_overassessment`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The number of a parcel of Cook County: 14 digits, also with dashes (`16-01-216-001-0000`).
    #[schemars(length(min = 1, max = 30))]
    pub pin: String,
}

/// The assessment of one parcel.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParcelCheck {
    /// The parcel, compared with its peers.
    #[serde(flatten)]
    pub parcel: OverLead,
    /// The assessments of the last 3 years, the newest first.
    pub history: Vec<ParcelYear>,
    /// Why the tier is what it is.
    pub reasons: Vec<String>,
    /// The rule and the version of the data file of classes, which `/docs` shows.
    pub rule: String,
    /// What the answer is not.
    pub disclaimer: &'static str,
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = ParcelCheck;

    fn definition() -> Definition {
        Definition {
            name: "parcel_overassessment",
            path: "/api/parcel",
            summary: "Whether one parcel of Cook County is assessed higher than sold parcels of its class around it, with the evidence.",
            when: "Use it to check one PIN.",
            description: "`tier` is `high`, `medium`, `low` or `none`; `insufficient` if the parcel cannot be compared. `reasons` says why, and which of its sales do \
                not count. `history` has the assessments of 3 years at each stage.",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::NotFound],
            example: json!({ "pin": "16012160640000" }),
            ..Definition::read()
        }
    }

    async fn answer(self, _: Filter, reader: &mut Reader<Parcels>) -> Result<ParcelCheck, Problem> {
        let pin = pin("pin", &self.pin)?;
        let found = ParcelsRules::FEED.records_by_id::<Parcel>(&reader.at, &[id(cook::COUNTY, &pin)]).await?;
        let unknown = || Problem::new(ErrorCode::NotFound, format!("pin: no parcel {pin} of Cook County is recorded")).about("pin");
        let mut parcel = found.into_iter().next().flatten().ok_or_else(unknown)?;
        let (history, reasons) = (std::mem::take(&mut parcel.history), std::mem::take(&mut parcel.reasons));
        Ok(ParcelCheck { parcel: parcel.into(), history, reasons, rule: rule(), disclaimer: DISCLAIMER })
    }
}
