//! The addresses of events: the number of a trial, the docket of a meeting, or an id in any case.

use crate::record::TABLES;
use crate::rules::adcom_id;
use feed::position::Position;
use operation::problem::Problem;
use reads::numbers::numbers_of_trial;

/// The ids that a text can mean: those of a trial's readout by any of its numbers, that of a decision in small letters, and that of the meeting of a docket,
/// whose number has capitals.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn ids_of(at: &Position, text: &str) -> Result<Vec<String>, Problem> {
    let trials = numbers_of_trial(&TABLES, at, text).await?;
    let text = text.trim();
    let docket = text.rsplit(':').next().unwrap_or_default().to_uppercase();
    Ok(trials.iter().map(|number| format!("ctgov:{number}")).chain([text.to_lowercase(), adcom_id(&docket)]).collect())
}
