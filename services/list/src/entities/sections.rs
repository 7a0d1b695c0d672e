//! One service asked about an entity: its own operation answers, under the rules for the caller of the entity's operation.

use operation::problem::Problem;
use operation::{Call, Form, Operation, Stage};
use reads::registration::Registration;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Serialize;
use serde_json::{Map, Value};

/// What one service has about an entity.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "EntitySection")]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// What the rows are, such as `awards` or `insider trades`.
    pub topic: &'static str,
    /// The service that has them.
    pub service: &'static str,
    /// The operation of that service that shows more of them; empty if it was not asked.
    pub operation: &'static str,
    /// The arguments with which it was asked.
    pub arguments: Map<String, Value>,
    /// The filter under which the service lists, follows and exports the same; empty if it has none for this.
    pub filter: Map<String, Value>,
    /// By what the rows were found. A name alone is no proof that a row is about the entity.
    pub found_by: &'static str,
    /// The rows, as that operation shows them to this caller.
    pub rows: Vec<Map<String, Value>>,
    /// Whether the operation has more rows.
    pub truncated: bool,
    /// The note of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why the service has no rows here, if it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Section {
    /// A section whose service was not asked.
    pub(super) fn unasked(topic: &'static str, service: &'static str, why: &str) -> Self {
        Self { topic, service, problem: Some(why.to_owned()), ..Self::default() }
    }

    /// The section with a filter of its service that finds the same rows.
    pub(super) fn filtered_by(mut self, field: &str, value: &str) -> Self {
        self.filter.insert(field.to_owned(), Value::from(value));
        self
    }
}

/// The registrations of all services, which are made when they are needed.
pub(crate) type Registered = fn() -> &'static [Registration];

/// Asks the operations of services as the caller of one call.
pub(super) struct Asker {
    pub(super) call: Call,
    pub(super) registered: Registered,
}

/// An operation of a service, its arguments and its answer.
pub(super) struct AnsweredCall {
    service: &'static str,
    operation: &'static str,
    arguments: Map<String, Value>,
    answer: Result<Value, Problem>,
}

impl Asker {
    /// Asks an operation of a service.
    pub(super) async fn ask(&self, service: &'static str, operation: &'static str, arguments: Value) -> AnsweredCall {
        let answer = self.answer(service, operation, arguments.clone()).await;
        let arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
        AnsweredCall { service, operation, arguments, answer }
    }

    async fn answer(&self, service: &str, name: &str, arguments: Value) -> Result<Value, Problem> {
        let is_served = self.call.context.settings.services.get(service).is_some_and(|settings| settings.enabled);
        let registration = (self.registered)().iter().find(|registration| registration.service.name == service).filter(|_| is_served);
        let registration =
            registration.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("this server does not serve {service}")))?;
        let operations = &registration.service.operations;
        let operation = operations.iter().find(|operation| operation.name == name && operation.has_route());
        let operation = operation.ok_or_else(|| Problem::new(ErrorCode::Internal, format!("{service} has no operation {name}")))?;
        check_tier(&self.call, operation)?;
        let (idempotency_key, watch_token, if_none_match) = (None, None, None);
        let asked = Call { form: Form::Json, idempotency_key, watch_token, if_none_match, stage: Stage::Whole, ..self.call.clone() };
        (operation.run)(asked, arguments).await?.body.into_value().ok_or_else(|| unreadable(service))
    }
}

impl AnsweredCall {
    /// Puts the rows of a list into the opposite order: a feed has its oldest changes first.
    pub(super) fn newest_first(mut self, list: &str) -> Self {
        let rows = self.answer.as_mut().ok().and_then(|answer| answer.get_mut(list));
        if let Some(rows) = rows.and_then(Value::as_array_mut) {
            rows.reverse();
        }
        self
    }

    /// A text of the answer's first row of a list; empty if it has none.
    pub(super) fn first_text(&self, list: &str, field: &str) -> String {
        let answer = self.answer.as_ref().ok();
        answer.and_then(|answer| answer[list][0][field].as_str()).unwrap_or_default().to_owned()
    }

    /// A text of the answer; empty if it has none.
    pub(super) fn text(&self, field: &str) -> String {
        self.answer.as_ref().ok().and_then(|answer| answer[field].as_str()).unwrap_or_default().to_owned()
    }

    /// The section of a list of the answer, of at most so many rows for which `is_shown` is true.
    pub(super) fn section(
        &self,
        topic: &'static str,
        list: &str,
        found_by: &'static str,
        limit: usize,
        is_shown: impl Fn(&Map<String, Value>) -> bool,
    ) -> Section {
        let mut section = Section {
            topic,
            service: self.service,
            operation: self.operation,
            arguments: self.arguments.clone(),
            found_by,
            ..Section::default()
        };
        // The time of the answer as a whole is no argument that a reader repeats.
        section.arguments.remove("asOf");
        match &self.answer {
            Ok(answer) => {
                let rows = answer[list].as_array().into_iter().flatten().filter_map(Value::as_object);
                let rows: Vec<&Map<String, Value>> = rows.filter(|row| is_shown(row)).collect();
                section.truncated =
                    rows.len() > limit || answer["truncated"] == true || answer["hasMore"] == true || answer["next"].is_string();
                section.rows = rows.into_iter().take(limit).cloned().collect();
                section.note = answer["note"].as_str().map(str::to_owned);
            }
            Err(problem) => section.problem = Some(problem.detail.clone()),
        }
        section
    }
}

/// Refuses an operation that the caller's key does not include. It is asked without being paid for.
pub(super) fn check_tier(call: &Call, operation: &Operation) -> Result<(), Problem> {
    let least = operation.price.least_tier();
    if call.caller.tier >= least {
        return Ok(());
    }
    Err(call.context.settings.tier_too_low(&format!("{} needs a key of the tier", operation.name), least, ""))
}

fn unreadable(service: &str) -> Problem {
    Problem::new(ErrorCode::Internal, format!("the answer of {service} cannot be read"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that a page of a feed shows its newest rows first, and that it says so if it has one more than are shown.
    #[test]
    fn newest_rows_come_first() {
        let changes: Vec<Value> = (1..=3).map(|seq| json!({ "seq": seq })).collect();
        let answer = Ok(json!({ "changes": changes, "hasMore": false, "cursor": "end" }));
        let asked =
            AnsweredCall { service: "labs", operation: "whats_changed_since", arguments: Map::new(), answer }.newest_first("changes");
        for (limit, seqs, truncated) in [(2, vec![3, 2], true), (3, vec![3, 2, 1], false)] {
            let section = asked.section("leads", "changes", "", limit, |_| true);
            let shown: Vec<i64> = section.rows.iter().filter_map(|row| row["seq"].as_i64()).collect();
            assert_eq!((shown, section.truncated), (seqs, truncated), "{limit}");
        }
    }
}
