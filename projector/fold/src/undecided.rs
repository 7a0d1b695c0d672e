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

/// Reads all values. Rows that have not been fetched are all named before the decision is repeated, so that it takes few rounds.
pub fn all<T>(values: impl Iterator<Item = Result<T, Undecided>>) -> Result<Vec<T>, Undecided> {
    let (mut misses, mut out) = (false, Vec::new());
    for value in values {
        match value {
            Ok(value) => out.push(value),
            Err(Undecided::Miss) => misses = true,
            Err(error) => return Err(error),
        }
    }
    if misses { Err(Undecided::Miss) } else { Ok(out) }
}
