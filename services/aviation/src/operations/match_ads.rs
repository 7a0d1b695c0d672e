//! `GET /v1/match` and the tool `match_ads`: the airworthiness directives that may apply to a make and model.

use directives::{Aircraft, Reason, ResolvedAircraft, ResolvedModel, Role, is_known_make, nearest_makes, nearest_models};
use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::basis::Basis;
use super::comparisons::{Compared, ResolvedNames, directives_for, drop_of_unknown_make, has_make};
use super::directive_match::DirectiveMatch;
use super::filter::{Filter, check_name};
use super::watchable_feed::Aviation;
use reads::read::{Read, Reader, RowTexts};

/// The most models that directives name which are compared with an unknown one.
const MODELS_COMPARED_MAX: usize = 500;

/// Which directives to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShownStatus {
    /// Directives that no other directive replaces.
    #[default]
    Current,
    /// All of them.
    All,
}

/// Arguments of `match_ads`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The make in any of its names: `Piper`, `The New Piper Aircraft, Inc.`
    #[schemars(length(min = 1, max = 80))]
    pub make: String,
    /// The model in any spelling: `PA-28-140`, `PA28140`, `Cherokee 140`.
    #[schemars(length(min = 1, max = 80))]
    pub model: String,
    /// `current` (all but superseded ones) or `all`.
    #[serde(default)]
    pub status: ShownStatus,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 60))]
    pub after: Option<String>,
}

/// The directives that may apply to a make and model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DirectiveMatches")]
pub struct Answer {
    /// The make as it was given.
    pub make: String,
    /// The model as it was given.
    pub model: String,
    /// How make and model were understood.
    pub resolved: ResolvedNames,
    /// The number of directives in this answer.
    pub count: usize,
    /// How many directives may apply, over all pages.
    pub total: usize,
    /// Send it as `after` to get the next page; null on the last one.
    pub next: Option<String>,
    /// The directives, newest effective date first, then by number.
    #[schemars(with = "Vec<DirectiveMatch>")]
    pub directives: RowTexts,
    /// What the answer is based on, and what it is not.
    #[serde(flatten)]
    pub basis: Basis,
}

/// The place of a directive in the order of answers, as `next` names it.
fn place(compared: &Compared) -> String {
    format!("{}/{}", compared.directive.effective_date, compared.directive.ad_number())
}

/// The directives after the one that `after` names.
fn rest_after(found: Vec<Compared>, after: Option<&str>) -> Result<Vec<Compared>, Problem> {
    let Some(after) = after else { return Ok(found) };
    let (day, number) = after
        .split_once('/')
        .filter(|(day, _)| day.is_empty() || day.parse::<jiff::civil::Date>().is_ok())
        .ok_or_else(|| Problem::new(ErrorCode::CursorInvalid, "`after` is not the `next` of an earlier answer").about("after"))?;
    let is_past = |one: &Compared| {
        let directive = &one.directive;
        day > directive.effective_date.as_str() || (day == directive.effective_date && directive.ad_number() > number)
    };
    Ok(found.into_iter().filter(is_past).collect())
}

/// A note about a make that nothing is known of.
pub(crate) fn unknown_make(make: &str, resolved: &ResolvedAircraft) -> Option<String> {
    unknown_make_of(make, &resolved.airframe)
}

/// A note about the make of an airframe, an engine or a propeller that nothing is known of.
pub(crate) fn unknown_make_of(make: &str, resolved: &ResolvedModel) -> Option<String> {
    if is_known_make(&resolved.makes) {
        return None;
    }
    let nearest = nearest_makes(make);
    let hint = if nearest.is_empty() { String::new() } else { format!("; the nearest known makes are {}", nearest.join(", ")) };
    Some(format!("the make {make:?} is not known{hint}"))
}

/// A note about a model that none of the directives names that may apply, with the nearest ones of its make: a misspelt model must not look like one that few
/// directives are for. `None` for the name of a family, which means many models, and for a make that nothing is known of.
pub(crate) fn unknown_model(model: &str, aircraft: &ResolvedAircraft, found: &[Compared]) -> Option<String> {
    let airframe = &aircraft.airframe;
    let is_make = is_known_make(&airframe.makes) || has_make(found, aircraft);
    if !is_make || !airframe.families.is_empty() || found.iter().any(|one| one.is_naming(aircraft)) {
        return None;
    }
    let of_series = found.iter().filter(|one| one.outcome.reasons.contains(&Reason::SameSeries));
    let named = of_series.flat_map(|one| &one.directive.stored.directive.applicability.models).filter(|model| model.role == Role::Applies);
    let named = named.take(MODELS_COMPARED_MAX).map(|model| (model.form.as_str(), model.name.as_str()));
    let nearest = nearest_models(&airframe.makes, &airframe.designation, named);
    let hint =
        if nearest.is_empty() { String::new() } else { format!("; the nearest known models of the make are {}", nearest.join(", ")) };
    Some(format!("no directive that may apply names the model {model:?}{hint}"))
}

impl Read for Arguments {
    type Service = Aviation;
    type Answer = Answer;

    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "match_ads",
            path: "/v1/match",
            summary: "The airworthiness directives that may apply to a make and model, newest first, with the text that names it.",
            when: "Use it to see which directives concern an aircraft of a make and model.",
            description: "All spellings of a model and all names of a make give the same answer. `MATCH` means that the text names the model or its \
                series; `POSSIBLE` that it names another model of the series, or that its models could not be read. `cannotDecide` names what the \
                text leaves open: serial numbers, installed parts, other documents. Directives for engines and propellers are found where they name \
                the aircraft. Superseded directives are shown with `status=all`. Page with `after`.",
            list: "directives",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "make": "Piper", "model": "PA-28-140" }),
            ..Definition::read()
        }
    }

    fn take_rows(answer: &mut Answer) -> Option<RowTexts> {
        Some(std::mem::take(&mut answer.directives))
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Aviation>) -> Result<Answer, Problem> {
        let Self { make, model, status, after } = self;
        check_name("make", &make)?;
        check_name("model", &model)?;
        let aircraft = ResolvedAircraft::new(&Aircraft { make: &make, model: &model, ..Aircraft::default() });
        let mut found = directives_for(reader, &aircraft).await?;
        drop_of_unknown_make(&mut found, &aircraft);
        reader.note(unknown_model(&model, &aircraft, &found));
        found.retain(|one| status == ShownStatus::All || !one.directive.is_superseded);
        let total = found.len();
        if total == 0 {
            let dropped = "directives for appliances that any aircraft may have are not shown; an assessment shows them";
            reader.note(unknown_make(&make, &aircraft).map(|note| format!("{note}. {dropped}")));
        }
        let limit = reader.limit();
        let mut rest = rest_after(found, after.as_deref())?;
        let has_more = rest.len() > limit;
        rest.truncate(limit);
        let next = rest.last().filter(|_| has_more).map(place);
        let mut directives = RowTexts::default();
        rest.iter().for_each(|one| one.write(None, directives.row()));
        Ok(Answer {
            resolved: ResolvedNames::of(&aircraft.airframe),
            make,
            model,
            count: rest.len(),
            total,
            next,
            directives,
            basis: Basis::read(reader).await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use feed::derived_lists::Derived as _;
    use schemas::views::aviation::AirworthinessDirective;

    use super::super::shared_directive::SharedDirective;
    use super::*;

    /// The note about a model, with one directive for PA-28-140 and PA-28-150 airplanes.
    fn note(make: &str, model: &str, engine: Option<(&str, &str)>) -> Option<String> {
        let named = |name: &str, form: &str| json!({ "name": name, "form": form, "series": "PA28", "role": "applies", "span": name });
        let record = json!({
            "id": "2026-15-05", "adNumber": "2026-15-05", "make": "Piper Aircraft, Inc.", "makes": ["PIPER"], "product": "aircraft", "layout": "lettered",
            "models": [named("PA-28-140", "PA28140"), named("PA-28-150", "PA28150")],
        });
        let directive = SharedDirective::of(serde_json::from_value::<AirworthinessDirective>(record).unwrap());
        let aircraft = ResolvedAircraft::new(&Aircraft { make, model, engine, ..Aircraft::default() });
        let outcome = directives::compare(&directive.stored.directive, &aircraft);
        unknown_model(model, &aircraft, &[Compared::new(Arc::new(directive), outcome)])
    }

    /// Proves that a model that no directive names is noted with the nearest ones of its make, also if only its engine is known, and that a model that is
    /// named, a family, and a model of an unknown make are not.
    #[test]
    fn unknown_models_are_noted() {
        let noted = note("Piper", "PA-28-14O", None).unwrap();
        assert!(
            noted.starts_with(
                "no directive that may apply names the model \"PA-28-14O\"; the nearest known models of the make are PA-28-140"
            ),
            "{noted}"
        );
        assert!(noted.contains("PA-28-150"), "{noted}");
        assert_eq!(note("Piper", "PA-28-14O", Some(("Lycoming", "O-320-E2A"))), Some(noted));
        assert_eq!(note("Piper", "QQQQQQQQQQ", None).as_deref(), Some("no directive that may apply names the model \"QQQQQQQQQQ\""));
        for (make, model) in [("Piper", "PA-28-140"), ("Piper", "Cherokee 140"), ("Piper", "Cherokee"), ("Qqqqqqqqqq", "PA-28-14O")] {
            assert_eq!(note(make, model, None), None, "{make} {model}");
        }
    }
}
