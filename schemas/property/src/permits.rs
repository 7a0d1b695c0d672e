//! Codes of permits for construction: which work is major, and the code by which projects are alike.

use schemas::facts::permits::PermitFact;

/// What the codes of new construction and of additions begin with, as words and as numbers.
const MAJOR_CODES: [&str; 12] = ["NEW BUILDING", "ADDITION", "DORMERS", "110", "111", "112", "113", "114", "210", "211", "212", "213"];
/// Codes of major improvements have this word, and none of the others.
const MAJOR: &str = "MAJOR";
const NOT_MAJOR: [&str; 2] = ["WRECK", "BURNOUT"];

/// Whether the codes of the assessor are those of new construction or of a major improvement.
#[must_use]
pub fn is_major(fact: &PermitFact) -> bool {
    [&fact.job_code_secondary].into_iter().chain(&fact.improvements).any(|code| {
        let code = code.to_uppercase();
        let is_other = NOT_MAJOR.iter().any(|word| code.contains(word));
        !is_other && (code.contains(MAJOR) || MAJOR_CODES.iter().any(|known| code.starts_with(known)))
    })
}

/// The job code by which the length of the window is learned.
#[must_use]
pub fn job_code(assessor: Option<&PermitFact>, city: Option<&PermitFact>) -> String {
    let of_assessor = |fact: &PermitFact| {
        let second = [&fact.job_code_secondary].into_iter().chain(&fact.improvements).find(|code| !code.is_empty());
        let parts = [Some(&fact.job_code), second].into_iter().flatten().filter(|code| !code.is_empty());
        parts.map(|code| code.to_uppercase()).collect::<Vec<_>>().join(": ")
    };
    let code = assessor.map(of_assessor).filter(|code| !code.is_empty());
    code.or_else(|| city.map(|fact| fact.permit_type.to_uppercase())).unwrap_or_default()
}
