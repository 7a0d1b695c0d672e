//! The tool `recurring_due`: the directives with repetitive actions that may apply to one aircraft, and when each is next due.

use directives::Recurring;
use operation::problem::Problem;
use operation::{Definition, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::basis::Basis;
use super::comparisons::{Compared, ResolvedNames, directives_for, has_make};
use super::filter::Filter;
use super::fleet::{AssessedDirective, ComplianceRecord, FleetItem, check_items, unmatched_note};
use super::match_ads::{unknown_make, unknown_model};
use super::watchable_feed::Aviation;
use reads::read::{Read, Reader, RowTexts};

/// The name under which the one aircraft of a call is checked.
const TAIL: &str = "AIRCRAFT";

/// When a directive was last complied with.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LastDone {
    /// The number of the directive.
    #[schemars(length(min = 1, max = 20))]
    pub ad: String,
    /// Time in service then, in hours.
    #[schemars(range(min = 0, max = 200_000))]
    pub hours: Option<f64>,
    /// The day, YYYY-MM-DD.
    #[schemars(length(min = 10, max = 10))]
    pub date: Option<String>,
}

/// Arguments of `recurring_due`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// The make.
    #[schemars(length(min = 1, max = 80))]
    pub make: String,
    /// The model.
    #[schemars(length(min = 1, max = 80))]
    pub model: String,
    /// Time in service, in hours.
    #[serde(rename = "hoursTIS")]
    #[schemars(range(min = 0, max = 200_000))]
    pub hours_tis: Option<f64>,
    /// When directives were last complied with.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub last_done: Vec<LastDone>,
    /// The day for which to answer, YYYY-MM-DD, or an RFC 3339 time of it; by default the day of the answer.
    #[schemars(length(min = 1, max = 40))]
    pub date: Option<String>,
}

/// The recurring directives of an aircraft.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecurringDirectives")]
pub struct Answer {
    /// The make as it was given.
    pub make: String,
    /// The model as it was given.
    pub model: String,
    /// How make and model were understood.
    pub resolved: ResolvedNames,
    /// The day for which the answer holds.
    #[schemars(with = "proofs::json_type::Day")]
    pub date: String,
    /// The number of directives in this answer.
    pub count: usize,
    /// How many directives with repetitive actions may apply.
    pub total: usize,
    /// The directives, newest effective date first, then by number.
    #[schemars(with = "Vec<AssessedDirective>")]
    pub directives: RowTexts,
    /// What the answer is based on, and what it is not.
    #[serde(flatten)]
    pub basis: Basis,
}

/// The problem of a field of the checked aircraft, as one of the argument that gave it.
fn of_argument(problem: Problem) -> Problem {
    let field = problem.detail.strip_prefix("aircraft.0.").and_then(|detail| detail.split_once(": "));
    match field {
        Some(("compliance", reason)) => Problem::parameter("lastDone", format!("lastDone: {reason}")),
        Some((field, reason)) => Problem::parameter(field, format!("{field}: {reason}")),
        None => problem,
    }
}

impl Read for Arguments {
    type Service = Aviation;
    type Answer = Answer;

    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "recurring_due",
            path: "",
            summary: "The directives with repetitive actions that may apply to one aircraft, with their intervals and when each is next due.",
            when: "Use it to see which inspections recur on one aircraft, and when.",
            description: "Only directives whose text says that actions recur, without superseded ones; `note` names how many more do not say whether \
                theirs do. Next due is the last time in `lastDone` plus the interval; of several limits the nearest rules, or the latest where the \
                text says \"whichever occurs later\". Without a record a directive is `DUE_UNKNOWN`. An interval that is only in another document has \
                no limits and `REFERENCED_DOCUMENT`.",
            surface: Surface::Tool,
            list: "directives",
            errors: &[ErrorCode::AsOfInvalid],
            example: json!({ "make": "Piper", "model": "PA-28-140", "hoursTIS": 1262.5 }),
            ..Definition::read()
        }
    }

    fn take_rows(answer: &mut Answer) -> Option<RowTexts> {
        Some(std::mem::take(&mut answer.directives))
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Aviation>) -> Result<Answer, Problem> {
        let Self { make, model, hours_tis, last_done, date } = self;
        let today = match &date {
            None => reader.today(),
            Some(date) => feed::position::day_argument("date", date.trim())?,
        };
        let record = |done: LastDone| ComplianceRecord { ad: done.ad, hours: done.hours, date: done.date, ..ComplianceRecord::default() };
        let item = FleetItem {
            tail: TAIL.to_owned(),
            make: make.clone(),
            model: model.clone(),
            hours_tis,
            compliance: last_done.into_iter().map(record).collect(),
            ..FleetItem::default()
        };
        let Some(checked) = check_items(vec![item]).map_err(of_argument)?.pop() else {
            return Err(Problem::new(ErrorCode::Internal, "the aircraft could not be read"));
        };
        let mut found = directives_for(reader, &checked.aircraft).await?;
        // Of an unknown make only what may be for any aircraft is found.
        if !has_make(&found, &checked.aircraft) {
            reader.note(unknown_make(&make, &checked.aircraft));
        }
        reader.note(unknown_model(&model, &checked.aircraft, &found));
        reader.note(unmatched_note("lastDone", &checked.unmatched(&found)));
        let recurring = |one: &Compared| one.directive.stored.directive.compliance.recurring;
        found.retain(|one| !one.directive.is_superseded);
        let open = found.iter().filter(|one| recurring(one) == Recurring::Unknown).count();
        found.retain(|one| recurring(one) == Recurring::Yes);
        let total = found.len();
        reader.note((open > 0).then(|| {
            format!("{open} more directives do not say whether their actions recur; match_ads shows them, with recurring \"unknown\"")
        }));
        found.truncate(reader.limit());
        let mut directives = RowTexts::default();
        found.iter().for_each(|one| one.write(Some(&checked.due(one, today)), directives.row()));
        Ok(Answer {
            make,
            model,
            resolved: ResolvedNames::of(&checked.aircraft.airframe),
            date: today.to_string(),
            count: found.len(),
            total,
            directives,
            basis: Basis::read(reader).await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what is wrong with the aircraft of a call is named by the tool's own arguments: it has no `aircraft` and no `compliance`.
    #[test]
    fn refused_arguments() {
        let done =
            |ad: &str, date: &str| ComplianceRecord { ad: ad.to_owned(), date: Some(date.to_owned()), ..ComplianceRecord::default() };
        let item = |make: &str, compliance| FleetItem {
            tail: TAIL.to_owned(),
            make: make.to_owned(),
            model: "PA-28-140".to_owned(),
            compliance,
            ..FleetItem::default()
        };
        for (item, parameter, detail) in [
            (item("--", Vec::new()), "make", "make: has neither a letter nor a digit"),
            (item("Piper", vec![done("2011-10-09", "2026-13-01")]), "lastDone", "lastDone: \"2026-13-01\" is not a day YYYY-MM-DD"),
            (item("Piper", vec![done("AD --", "2026-03-10")]), "lastDone", "lastDone: \"AD --\" is not the number of a directive"),
        ] {
            let Err(problem) = check_items(vec![item]).map_err(of_argument) else { panic!("{detail} was accepted") };
            assert_eq!(
                (problem.code, problem.parameter.as_str(), problem.detail.as_str()),
                (ErrorCode::ParameterInvalid, parameter, detail)
            );
        }
    }
}
