//! The addresses of trials, by any of their numbers, and of grants.

use crate::record::TABLES;
use feed::position::Position;
use operation::problem::Problem;
use reads::numbers::numbers_of_trial;
use texts::numbers::has_only_digits;

/// The ids that a number can mean: those of a trial by any of its numbers, that of a grant by its own.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn ids_of(at: &Position, text: &str) -> Result<Vec<String>, Problem> {
    let trials = numbers_of_trial(&TABLES, at, text).await?;
    let mut ids: Vec<String> = trials.iter().map(|number| format!("trial/{number}")).collect();
    let number = text.trim().rsplit('/').next().unwrap_or_default();
    ids.extend(has_only_digits(number).then(|| format!("grant/{number}")));
    Ok(ids)
}
