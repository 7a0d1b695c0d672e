//! Recognises repeated rows in a sort order that is not unique.
//!
//! Rows are sorted by award number alone, so only rows of the same number can change places between two requests. A page can therefore
//! repeat or skip only rows of a number that occurs on both sides of a page boundary. Only those rows are remembered.

use serde::{Deserialize, Serialize};

/// A row: its award number and a short hash of its content.
pub(super) type Row = (String, String);

/// The most rows that are remembered. With more, reading backwards cannot prove that no row is missing.
const ROWS_MAX: usize = 4_000;

/// Rows of one award number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tie {
    number: String,
    rows: Vec<String>,
}

/// The rows at the boundaries of the pages read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Ties {
    /// The rows with the same number as the last row.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Tie>,
    /// The rows whose number occurs on both sides of a boundary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edges: Vec<Tie>,
}

impl Ties {
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none() && self.edges.is_empty()
    }

    /// Processes a page that was read forwards. Returns how many of its rows are new.
    pub(super) fn forwards(&mut self, rows: &[Row]) -> usize {
        let Some((last_number, _)) = rows.last() else { return 0 };
        let before = self.last.take().unwrap_or_default();
        // Each row of the page before can repeat once.
        let mut repeatable = before.rows.clone();
        let mut new = 0;
        for (number, row) in rows {
            let again = if *number == before.number { repeatable.iter().position(|one| one == row) } else { None };
            match again {
                Some(at) => drop(repeatable.swap_remove(at)),
                None => new += 1,
            }
        }
        let mut tie = Tie { number: last_number.clone(), rows: of_number(rows, last_number) };
        if rows.first().is_some_and(|(number, _)| *number == before.number) {
            if *last_number == before.number {
                tie.rows.extend(before.rows.iter().cloned());
            }
            self.remember(&before.number, before.rows.into_iter().chain(of_number(rows, &before.number)));
        }
        tie.rows.truncate(ROWS_MAX);
        self.last = Some(tie);
        new
    }

    /// Processes a page that was read backwards. Returns how many of its rows the forward pass had missed.
    pub(super) fn backwards(&mut self, rows: &[Row]) -> usize {
        let mut new = 0;
        for (number, row) in rows {
            let Some(edge) = self.edges.iter_mut().find(|edge| edge.number == *number) else { continue };
            if !edge.rows.contains(row) {
                edge.rows.push(row.clone());
                new += 1;
            }
        }
        new
    }

    fn remember(&mut self, number: &str, rows: impl Iterator<Item = String>) {
        let known: usize = self.edges.iter().map(|edge| edge.rows.len()).sum();
        if self.edges.last().is_none_or(|edge| edge.number != number) {
            self.edges.push(Tie { number: number.to_owned(), rows: Vec::new() });
        }
        let Some(edge) = self.edges.last_mut() else { return };
        for row in rows.take(ROWS_MAX.saturating_sub(known)) {
            if !edge.rows.contains(&row) {
                edge.rows.push(row);
            }
        }
    }
}

fn of_number(rows: &[Row], number: &str) -> Vec<String> {
    rows.iter().filter(|(one, _)| one == number).map(|(_, row)| row.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &str) -> Vec<Row> {
        rows.split_whitespace().map(|row| (row[..1].to_owned(), row.to_owned())).collect()
    }

    /// Proves that a row repeated after a boundary is not counted twice, and that the row it displaced is found once when reading
    /// backwards.
    #[test]
    fn a_hidden_row_is_missed_and_found() {
        let mut ties = Ties::default();
        assert_eq!(ties.forwards(&page("a1 b1 c1 c2")), 4);
        assert_eq!(ties.forwards(&page("c2 d1 e1 f1")), 3, "c3 was hidden by c2");
        assert_eq!(ties.forwards(&page("g1")), 1);
        assert_eq!(ties.backwards(&page("g1 f1 e1 d1")), 0);
        assert_eq!(ties.backwards(&page("c1 c3 c2 b1")), 1);
        assert_eq!(ties.backwards(&page("c3 a1")), 0);
    }

    /// Proves that a number whose rows fill whole pages is one tie, and that equal rows of one page are all counted.
    #[test]
    fn a_tie_over_pages_is_one() {
        let mut ties = Ties::default();
        assert_eq!(ties.forwards(&page("a1 a2")), 2);
        assert_eq!(ties.forwards(&page("a3 a1")), 1);
        assert_eq!(ties.forwards(&page("a2 a4")), 1);
        assert_eq!(ties.backwards(&page("a4 a3 a2 a1 a5")), 1);
        let mut ties = Ties::default();
        assert_eq!(ties.forwards(&page("x1 x1")), 2);
        assert_eq!(ties.forwards(&[]), 0);
    }
}
