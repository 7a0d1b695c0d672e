//! Whether a phrase is free as a trademark. This is the only place where the service asks for the register of trademarks.

use clearance::{Extent, Register, Registers};
use feed::position::Position;
use jiff::ToSpan;
use jiff::civil::Date;
use marks::Verdict;
use operation::context::{Context, Part as _};
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Serialize;

/// What every answer with a clearance says.
pub const DISCLAIMER: &str =
    "The result is not legal advice. It compares names with a register by rules; it does not search unregistered marks.";
/// Where a person verifies a name.
const SEARCH_PAGE: &str = "https://tmsearch.uspto.gov/search/search-information";

/// Whether a name is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(rename = "ClearanceStatus")]
pub enum Status {
    /// No similar live mark.
    Clear,
    /// A similar live mark.
    Similar,
    /// A live mark of the same name.
    Taken,
    /// Not verified: no credential for the register is set, none is loaded, or it is too old. `link` leads to a manual search.
    Unverified,
}

/// The state of the register of trademarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// The register is loaded and recent.
    Loaded,
    /// No register is loaded, or no credential for it is set.
    Absent,
    /// The register is older than 14 days.
    Stale,
}

/// The clearance of a name. Counts are null if it is not verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Clearance {
    /// The verdict.
    pub status: Status,
    /// Live marks of the same name.
    pub exact: Option<u64>,
    /// Live marks that are similar.
    pub similar: Option<u64>,
    /// Live marks that are partly similar.
    pub partial: Option<u64>,
    /// Where a person verifies the name; empty if the clearance is verified.
    pub link: &'static str,
    /// The last day of the register that was searched, YYYY-MM-DD; empty if none was.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub as_of: String,
    /// What the clearance is not.
    pub disclaimer: &'static str,
}

impl Clearance {
    fn unverified() -> Self {
        Self {
            status: Status::Unverified,
            exact: None,
            similar: None,
            partial: None,
            link: SEARCH_PAGE,
            as_of: String::new(),
            disclaimer: DISCLAIMER,
        }
    }

    /// The clearance that a comparison with the register gives, and what is to know about it.
    fn of(found: clearance::Clearance) -> (Self, Vec<String>) {
        let notes = found.notes.into_iter().map(|note| format!("clearance: {note}")).collect();
        let counts = found.comparison.counts;
        let clearance = Self {
            status: match found.comparison.verdict {
                Verdict::LikelyAvailable => Status::Clear,
                Verdict::Caution => Status::Similar,
                Verdict::LikelyTaken => Status::Taken,
            },
            exact: Some(counts.exact),
            similar: Some(counts.strong),
            partial: Some(counts.partial),
            link: "",
            as_of: found.through_date,
            disclaimer: DISCLAIMER,
        };
        (clearance, notes)
    }
}

/// After so many days a register clears nothing.
const STALE_DAYS: i64 = 14;

impl Registry {
    /// The state of a register on a day.
    fn of(extent: &Extent, today: Date) -> Self {
        if extent.corpus.marks == 0 {
            return Self::Absent;
        }
        let is_recent = |through: Date| through >= today.saturating_sub(STALE_DAYS.days());
        if extent.through_date.parse().is_ok_and(is_recent) { Self::Loaded } else { Self::Stale }
    }
}

/// The register of trademarks; `None` if there is none.
fn register(ctx: &Context) -> Option<&'static dyn Register> {
    Registers::of(ctx).0
}

/// The state of the register as of a time (see `asOf`); as of now without one.
///
/// # Errors
/// `unavailable` while the index of a register is being built.
async fn state(ctx: &Context, at: &Position, as_of: Option<&str>) -> Result<Registry, Problem> {
    // Without a record there is nothing to index.
    let Some(register) = register(ctx) else { return Ok(Registry::Absent) };
    if !register.has_marks(ctx, as_of).await? {
        return Ok(Registry::Absent);
    }
    Ok(Registry::of(&register.extent(ctx, as_of).await?, at.today()))
}

/// The state of the register as of a time (see `asOf`); as of now without one. A register whose index is being built is absent.
pub(crate) async fn registry(ctx: &Context, at: &Position, as_of: Option<&str>) -> Result<Registry, Problem> {
    match state(ctx, at, as_of).await {
        Err(problem) if problem.code == ErrorCode::Unavailable => Ok(Registry::Absent),
        state => state,
    }
}

/// Searches the register for a name, in one class or in all, as of a time (see `asOf`); as of now without one. Without a register that is recent
/// the clearance is not verified. The notes of the register about the search come with it.
///
/// # Errors
/// `unavailable` while the index of a register is being built.
pub(crate) async fn clearance(
    ctx: &Context,
    at: &Position,
    name: &str,
    class: Option<u8>,
    as_of: Option<&str>,
) -> Result<(Clearance, Vec<String>), Problem> {
    let loaded = state(ctx, at, as_of).await? == Registry::Loaded;
    let Some(register) = register(ctx).filter(|_| loaded) else { return Ok((Clearance::unverified(), Vec::new())) };
    match register.clearance(ctx, name, class.as_slice(), as_of).await {
        // The register compares names that have a letter or digit only.
        Err(problem) if problem.code == ErrorCode::ParameterInvalid => Ok((Clearance::unverified(), Vec::new())),
        found => Ok(Clearance::of(found?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the form of a clearance that is not verified: a link, and no counts.
    #[test]
    fn unverified_clearances_have_a_link() {
        let value = serde_json::to_value(Clearance::unverified()).unwrap();
        assert_eq!(value["status"], "UNVERIFIED");
        assert!(value["exact"].is_null() && value["similar"].is_null() && value["partial"].is_null());
        assert_eq!(value["link"], SEARCH_PAGE);
        assert!(value["disclaimer"].as_str().unwrap().contains("The result is not legal advice."));
    }

    /// Proves that a clearance has the counts of the comparison, and that the notes of the register come with it.
    #[test]
    fn clearances_keep_the_notes_of_the_register() {
        let comparison = clearance::Comparison {
            verdict: Verdict::Caution,
            counts: clearance::Counts { exact: 0, strong: 2, partial: 3 },
            other_counts: clearance::OtherCounts::default(),
            hits: Vec::new(),
            corpus: marks::index::Corpus { marks: 9, live_marks: 9 },
        };
        let notes = vec!["some rules do not apply".to_owned()];
        let (clearance, notes) = Clearance::of(clearance::Clearance { comparison, through_date: "2026-11-19".to_owned(), notes });
        assert_eq!((clearance.status, clearance.similar, clearance.partial), (Status::Similar, Some(2), Some(3)));
        assert_eq!((clearance.as_of.as_str(), notes), ("2026-11-19", vec!["clearance: some rules do not apply".to_owned()]));
    }

    /// Proves when a register clears names: it has marks, and its last complete day is at most 14 days ago.
    #[test]
    fn old_and_empty_registers_clear_nothing() {
        let today = Date::constant(2026, 11, 20);
        let registry_of = |marks, through: &str| {
            let corpus = marks::index::Corpus { marks, live_marks: marks };
            Registry::of(&Extent { corpus, through_date: through.to_owned() }, today)
        };
        assert_eq!((registry_of(0, "2026-11-20"), registry_of(7, "")), (Registry::Absent, Registry::Stale));
        assert_eq!((registry_of(7, "2026-11-06"), registry_of(7, "2026-11-05")), (Registry::Loaded, Registry::Stale));
    }
}
