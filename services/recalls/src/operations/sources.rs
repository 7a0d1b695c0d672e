//! The notices of which a recall is made, for `record_sources`.

use feed::position::Position;
use operation::problem::Problem;
use reads::records::sources::Notice;
use schemas::facts::recalls::RecallFact;
use schemas::views::recalls::Recall;
use serde_json::{Map, Value, json};

use super::notice::facts_of;
use crate::rules::category::LEXICON;

/// The rule of merging, in words. It is that of [`crate::rules::merge`].
pub(crate) const RULE: &str = "Notices of one agency with one number are one recall, in any stream or language. Notices of different agencies are one \
    recall if brand and title are the same except for case, punctuation and white space, if their dates are at most 7 days apart, and if there is at most \
    one recall of each agency. Each value is of the first notice that states it: in the order of the numbers, English before Spanish, then by stream. \
    A category for infants or children takes precedence.";

/// The notices of a recall, in the order in which it takes values from them.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn notices_of(at: &Position, recall: &Recall) -> Result<Vec<Notice>, Problem> {
    let mut notices = Vec::new();
    for identity in &recall.numbers {
        let facts = facts_of(at.view.as_ref(), identity).await?;
        // A recall that is gone has the values that its notices had last.
        let is_gone = facts.iter().all(|(note, _)| note.gone);
        notices.extend(facts.iter().filter(|(note, _)| is_gone || !note.gone).map(|(_, fact)| notice(identity, fact)));
    }
    Ok(notices)
}

/// A fact with the values that it has for the fields of a recall.
fn notice(identity: &str, fact: &RecallFact) -> Notice {
    let (category, evidence) = LEXICON.category(fact);
    let urls: Vec<&String> = std::iter::once(&fact.url).chain(&fact.links).collect();
    let values = json!({
        "agency": fact.agency,
        "category": category,
        "title": fact.title,
        "brand": fact.brand,
        "hazard": fact.hazard,
        "date": fact.date,
        "url": fact.url,
        "remedy": fact.remedy,
        "agencies": [fact.agency],
        "numbers": [identity],
        "urls": urls,
        "categoryEvidence": evidence,
        "status": fact.status,
        "classification": fact.classification,
        "units": fact.units,
        "alert": fact.alert,
    });
    let values = if let Value::Object(values) = values { values } else { Map::new() };
    Notice { number: identity.to_owned(), stream: fact.stream.clone(), url: fact.url.clone(), values }
}
