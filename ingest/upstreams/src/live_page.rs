//! What live queries return, and names that they search for.

use schemas::facts::FactData;

/// The records of one page of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LivePage {
    /// The records, in the upstream's order.
    pub facts: Vec<FactData>,
    /// The page that follows, for [`crate::live::Question::at_page`]; `None` if there is none that can be requested.
    pub next: Option<String>,
    /// Whether the upstream has more matching records after this page.
    pub has_more: bool,
    /// The number of all matching records, if the upstream gives it.
    pub total: Option<u64>,
}

/// An awarding agency, by the name that the upstream gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AwardAgency {
    /// Whether it is an agency within a department.
    pub is_within_department: bool,
    /// The name of the agency.
    pub name: String,
}

/// The offset that a page stands for: 0 for the first.
pub(crate) fn offset(page: &str) -> usize {
    page.parse().unwrap_or(0)
}
