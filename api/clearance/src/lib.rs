//! What a service that is no register of trademarks can ask of one: how far it is recorded, and what it says of a name. The engine sets which register
//! answers, so that the services do not depend on each other.

use async_trait::async_trait;
use marks::index::{Corpus, Hit};
use marks::{Tier, Verdict};
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;

/// How many marks are similar to a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Marks with the same letters.
    pub exact: u64,
    /// Marks that are likely to be held similar.
    pub strong: u64,
    /// Marks with a part in common.
    pub partial: u64,
}

/// How many marks of other classes are similar to a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherCounts {
    /// Marks with the same letters.
    pub exact: u64,
    /// Marks that are likely to be held similar.
    pub strong: u64,
}

/// What the register says of a name.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The verdict.
    pub verdict: Verdict,
    /// The similar marks of the given classes; of all classes if none were given.
    pub counts: Counts,
    /// The similar marks of other classes than the given ones; 0 if none were given.
    pub other_counts: OtherCounts,
    /// The similar marks, with the tier in which each counts: by tier, then distance, then serial number.
    pub hits: Vec<(Tier, Hit)>,
    /// How many marks were compared.
    pub corpus: Corpus,
}

/// What the register says of a name, for other services.
#[derive(Clone, Debug)]
pub struct Clearance {
    /// The comparison.
    pub comparison: Comparison,
    /// The last day of the register that is recorded completely, YYYY-MM-DD; empty before the first.
    pub through_date: String,
    /// What to know about the comparison, as the check says it.
    pub notes: Vec<String>,
}

/// The register as far as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many marks it has; none if no register was ever read.
    pub corpus: Corpus,
    /// The last day of the register that is recorded completely, YYYY-MM-DD; empty before the first.
    pub through_date: String,
}

/// A register of trademarks.
#[async_trait]
pub trait Register: Send + Sync {
    /// Whether the register is served here, and has a mark as of a time (see `asOf`); as of now without one.
    ///
    /// # Errors
    /// `as-of-invalid`; `unavailable`.
    async fn has_marks(&self, ctx: &Context, as_of: Option<&str>) -> Result<bool, Problem>;

    /// How far the register is recorded as of a time (see `asOf`); as of now without one.
    ///
    /// # Errors
    /// `as-of-invalid`; `unavailable` while the index is being built.
    async fn extent(&self, ctx: &Context, as_of: Option<&str>) -> Result<Extent, Problem>;

    /// Compares a name with the register as of a time (see `asOf`); as of now without one.
    ///
    /// # Errors
    /// `parameter-invalid` for a name without a letter or digit; `as-of-invalid`; `unavailable` while the index is being built.
    async fn clearance(&self, ctx: &Context, name: &str, classes: &[u8], as_of: Option<&str>) -> Result<Clearance, Problem>;
}

/// The register that answers; `None` if no service has one.
#[derive(Default)]
pub struct Registers(pub Option<&'static dyn Register>);

impl Part for Registers {}
