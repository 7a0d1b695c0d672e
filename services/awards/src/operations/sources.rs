//! The notices of which an award is made, for `record_sources`: its states in several streams, and its actions.

use feed::position::Position;
use operation::context::{store_problem, stored};
use operation::problem::Problem;
use reads::records::sources::Notice;
use schemas::facts::awards::{AwardFact, kind};
use schemas::key;
use schemas::views::awards::{Award, TABLES};
use serde_json::{Map, Value, json};

use crate::rules::{AwardState, award_key};

/// The rule of joining, in words. It is that of [`crate::rules`].
pub(crate) const RULE: &str = "What the streams publish under one award id is one award. Each value is of the first notice that states it: the details of \
    the award, then its state in the other streams, then its latest action. The fields of the latest action are of that action. A total that no stream states \
    is the sum of all known actions.";

/// The notices of an award, in the order in which it takes values from them. The number of an action is that of the award and of the modification.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn notices_of(at: &Position, award: &Award) -> Result<Vec<Notice>, Problem> {
    let state = at.view.get(TABLES.state, &key![award_key(&award.id)]).await.map_err(store_problem)?;
    let Some(state) = state else { return Ok(Vec::new()) };
    let known: AwardState = stored(TABLES.state, &state)?;
    Ok(known.facts().into_iter().map(notice).collect())
}

/// A fact with the values that it has for the fields of an award, which have the same names.
fn notice(fact: &AwardFact) -> Notice {
    let mut values = match json!(fact) {
        Value::Object(values) => values,
        _ => Map::new(),
    };
    let is_action = fact.kind == kind::ACTION;
    if is_action {
        values.insert("actionDescription".to_owned(), json!(fact.description));
    }
    let number = if is_action { format!("{}/{}", fact.award_id, fact.modification) } else { fact.award_id.clone() };
    Notice { number, stream: fact.stream.clone(), url: fact.url.clone(), values }
}
