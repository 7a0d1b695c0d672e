//! What every answer about aircraft is based on, and what it is not.

use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;

use super::watchable_feed::Aviation;
use super::{DISCLAIMER, rule};
use reads::read::Reader;

/// The data and the rules of an answer, and its disclaimer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Basis {
    /// The last day for which the journal has been read completely; empty before the first complete reading.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
    /// The rules and the version of the data file of makes and models, which `/docs` shows.
    pub rule: String,
    /// What the answer is not.
    pub disclaimer: &'static str,
}

impl Basis {
    /// The basis of an answer at the position of a reader.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn read(reader: &Reader<Aviation>) -> Result<Self, Problem> {
        Ok(Self { through_date: reader.completeness().await?.through_date, rule: rule(), disclaimer: DISCLAIMER })
    }
}
