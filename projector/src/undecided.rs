//! The reasons for which a fact is not decided.

/// Why a fact was not decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// Rows are needed that have not been fetched. They are fetched, and `decide` is called again.
    Miss,
    /// The service cannot interpret the fact. The fact is parked with this reason, and so are later facts of its key.
    Poison(String),
    /// This node lacks something without which no fact can be decided; the text says what to do. All facts wait.
    Blocked(String),
}
