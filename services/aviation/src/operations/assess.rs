//! `POST /v1/assess` and the tool `assess_fleet`: the directives that may apply to each aircraft of a fleet, and when each is next due. The route stores the
//! fleet of a caller who may store fleets, unless asked not to; the tool stores nothing.

use std::collections::BTreeMap;

use directives::{CannotDecide, Product, ResolvedModel, resolve_makes};
use operation::problem::Problem;
use operation::tiers::FLEETS_MIN_TIER;
use operation::{Definition, Method, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DISCLAIMER;
use super::basis::Basis;
use super::comparisons::{Compared, Comparisons};
use super::filter::Filter;
use super::fleet::{Assessment, CheckedItem, FleetItem, StatusCounts, check_items, unmatched_note};
use super::fleet_watch::{fleet_default, fleet_name};
use super::match_ads::{unknown_make_of, unknown_model};
use super::next_due::NextDue;
use super::stored_fleets::store;
use super::watchable_feed::Aviation;
use reads::read::{Read, Reader, RowTexts, Tool};

/// The price of a call in millionths of a US dollar.
const PRICE_MICROS: u64 = 20_000;
/// The most aircraft of a call: of tiers pro and business, of fleet, of `fleet_plus`, and of a payment.
const AIRCRAFT_PRO: usize = 5;
const AIRCRAFT_FLEET: usize = 50;
const AIRCRAFT_FLEET_PLUS: usize = 200;
const AIRCRAFT_PAID: usize = 25;
/// The most unknown makes that a note names.
const UNKNOWN_SHOWN_MAX: usize = 5;

/// Arguments of `assess_fleet`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The aircraft.
    #[schemars(length(min = 1, max = 200))]
    pub aircraft: Vec<FleetItem>,
    /// The name of the fleet.
    #[serde(default = "fleet_default")]
    #[schemars(length(min = 1, max = 100))]
    pub fleet: String,
    /// Whether to store the aircraft under the name of the fleet, in place of those that it had; by default with a key of tier fleet or above, which
    /// it needs. The tool stores nothing.
    pub store: Option<bool>,
}

/// The assessment of a fleet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FleetAssessment")]
pub struct Answer {
    /// The name of the fleet.
    pub fleet: String,
    /// Whether the account's fleet of this name now has these aircraft.
    pub stored: bool,
    /// The number of aircraft.
    pub count: usize,
    /// The aircraft, in the order of the request.
    #[schemars(with = "Vec<Assessment>")]
    pub aircraft: RowTexts,
    /// In how many directives the texts leave each point open.
    pub cannot_decide: BTreeMap<String, usize>,
    /// What the answer is based on, and what it is not.
    #[serde(flatten)]
    pub basis: Basis,
}

/// The most aircraft of a call with a tier, by its name in answers. Callers below tier pro have paid.
fn aircraft_max(tier: &str) -> usize {
    match tier {
        "pro" | "business" => AIRCRAFT_PRO,
        "fleet" => AIRCRAFT_FLEET,
        "fleet_plus" => AIRCRAFT_FLEET_PLUS,
        _ => AIRCRAFT_PAID,
    }
}

/// Checks the aircraft of a request, and that the tier allows so many.
fn check(aircraft: Vec<FleetItem>, reader: &Reader<Aviation>) -> Result<Vec<CheckedItem>, Problem> {
    let (most, tier) = (aircraft_max(reader.tier()), reader.tier());
    if aircraft.len() > most {
        let detail = format!("aircraft: has {} items; a call with tier {tier} assesses at most {most}", aircraft.len());
        return Err(Problem::new(ErrorCode::BodyInvalid, detail).about("aircraft"));
    }
    check_items(aircraft)
}

/// Assesses each aircraft of a request, and gives `take` the directives that may apply to it and when each is next due.
async fn assess(
    checked: &[CheckedItem],
    reader: &Reader<Aviation>,
    mut take: impl FnMut(&CheckedItem, &[Compared], &[NextDue]) + Send,
) -> Result<(), Problem> {
    let (today, mut comparisons) = (reader.today(), Comparisons::default());
    for item in checked {
        let found = comparisons.directives_for(reader, &item.aircraft).await?;
        take(item, &found, &item.dues(&found, today));
    }
    Ok(())
}

/// Notes about the makes of an aircraft that nothing is known of, where it has no directive of their products: a misspelt name must not look like an aircraft
/// without directives.
fn unknown_makes(checked: &CheckedItem, found: &[Compared]) -> Vec<String> {
    let (item, aircraft) = (&checked.item, &checked.aircraft);
    // A directive of another holder, which may be for any aircraft, says nothing of the make.
    let has = |product: Product, model: &ResolvedModel| {
        let is_of_make = |holder: &str| resolve_makes(holder).iter().any(|make| model.makes.contains(make));
        found.iter().any(|one| one.directive.product() == product && is_of_make(&one.directive.stored.directive.holder))
    };
    let parts = [
        (Product::Aircraft, Some(&item.make), Some(&aircraft.airframe)),
        (Product::Engine, item.engine_make.as_ref(), aircraft.engine.as_ref()),
        (Product::Propeller, item.prop_make.as_ref(), aircraft.propeller.as_ref()),
    ];
    let notes = parts.into_iter().filter_map(|(product, make, model)| {
        let (make, model) = (make?, model?);
        unknown_make_of(make, model).filter(|_| !has(product, model))
    });
    let without = [("engineMake", &item.engine_model, &item.engine_make), ("propMake", &item.prop_model, &item.prop_make)];
    let without = without.into_iter().filter(|(_, model, make)| model.is_some() && make.is_none());
    let without = without.map(|(field, ..)| format!("without {field} directives whose models could not be read are left out"));
    notes.chain(without).map(|note| format!("{}: {note}", item.tail)).collect()
}

/// What to know about the assessment of an aircraft with the directives that may apply to it: names that nothing is known of, and records of compliance
/// without a directive. Its serial number changes nothing.
pub(crate) fn notes_of(checked: &CheckedItem, found: &[Compared]) -> Vec<String> {
    let item = &checked.item;
    let others = [unknown_model(&item.model, &checked.aircraft, found), unmatched_note("compliance", &checked.unmatched(found))];
    let others = others.into_iter().flatten().map(|note| format!("{}: {note}", item.tail));
    unknown_makes(checked, found).into_iter().chain(others).collect()
}

/// The first notes about aircraft, and how many more there are.
pub(crate) fn first_notes(all: &[String]) -> Option<String> {
    let more = all.len().saturating_sub(UNKNOWN_SHOWN_MAX);
    let shown = all.get(..all.len() - more)?.join(". ");
    match (shown.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown}. The same holds for {more} more")),
    }
}

/// Whether to store the fleet of a call.
///
/// # Errors
/// `tier-too-low` if the caller asks for it and may not store fleets.
fn is_to_store(asked: Option<bool>, reader: &Reader<Aviation>) -> Result<bool, Problem> {
    let caller = &reader.call().caller;
    let may_store = caller.tier >= FLEETS_MIN_TIER && !caller.account.is_empty();
    match asked {
        Some(true) if !may_store => {
            let needs = "store: fleets are stored for keys of tier";
            Err(reader.context().settings.tier_too_low(needs, FLEETS_MIN_TIER, &caller.tier_remark()).about("store"))
        }
        Some(asked) => Ok(asked),
        None => Ok(may_store),
    }
}

/// The name of what cannot be decided, as answers have it.
pub(crate) fn name_of(reason: CannotDecide) -> Option<String> {
    match json!(reason) {
        Value::String(name) => Some(name),
        _ => None,
    }
}

impl Read for Arguments {
    type Service = Aviation;
    type Answer = Answer;

    fn definition() -> Definition {
        Definition {
            name: "assess",
            method: Method::Post,
            path: "/v1/assess",
            summary: "The directives that may apply to each aircraft of a fleet: one-time or recurring, next due by hours, cycles and date, and what is \
                undecided.",
            description: "A call assesses up to 5 aircraft with a key of tier pro, 50 of fleet, 200 of fleet_plus, and 25 for a payment. Next due is the last \
                record of compliance plus the interval. Without a record a directive is `DUE_UNKNOWN`. Superseded directives are `CLOSED`. Engines and \
                propellers are compared if their models are given. A fleet is stored under its name with a key of tier fleet or above, encrypted, until \
                it is deleted; of other calls nothing is stored. Unpaid calls get counts only.",
            surface: Surface::Route,
            price: Price::PerCall { micros: PRICE_MICROS, free_from: Tier::Pro },
            list: "aircraft",
            errors: &[
                ErrorCode::AsOfInvalid,
                ErrorCode::BodyInvalid,
                ErrorCode::LimitReached,
                ErrorCode::IdempotencyMismatch,
                ErrorCode::NotFound,
            ],
            example: json!({ "aircraft": [{ "tail": "N5432W", "make": "Piper", "model": "PA-28-140", "hoursTIS": 1262.5 }] }),
            ..Definition::read()
        }
    }

    async fn preview(self, _filter: Filter, reader: &mut Reader<Aviation>) -> Result<Option<Value>, Problem> {
        let checked = check(self.aircraft, reader)?;
        let mut counts = StatusCounts::new();
        let count = |_: &CheckedItem, _: &[Compared], dues: &[NextDue]| {
            dues.iter().for_each(|due| *counts.entry(due.status).or_default() += 1);
        };
        assess(&checked, reader, count).await?;
        let directives: usize = counts.values().sum();
        Ok(Some(json!({ "count": checked.len(), "directives": directives, "counts": counts, "disclaimer": DISCLAIMER })))
    }

    fn take_rows(answer: &mut Answer) -> Option<RowTexts> {
        Some(std::mem::take(&mut answer.aircraft))
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Aviation>) -> Result<Answer, Problem> {
        if reader.is_tool() && self.store == Some(true) {
            reader.note("the tool stores nothing; POST /v1/assess stores a fleet".to_owned());
        }
        let fleet = fleet_name(&self.fleet)?;
        let stored = !reader.is_tool() && is_to_store(self.store, reader)?;
        let checked = check(self.aircraft, reader)?;
        let (mut aircraft, mut notes, mut cannot_decide) = (RowTexts::default(), Vec::new(), BTreeMap::<CannotDecide, usize>::new());
        let write = |item: &CheckedItem, found: &[Compared], dues: &[NextDue]| {
            item.write_assessment(found, dues, aircraft.row_of(CheckedItem::assessment_bytes(found)));
            notes.extend(notes_of(item, found));
            for reason in found.iter().flat_map(|one| &one.outcome.cannot_decide) {
                *cannot_decide.entry(*reason).or_default() += 1;
            }
        };
        assess(&checked, reader, write).await?;
        reader.note(first_notes(&notes));
        if stored {
            store(reader.call(), &fleet, &checked).await?;
        }
        Ok(Answer {
            fleet,
            stored,
            count: aircraft.count(),
            aircraft,
            cannot_decide: cannot_decide.into_iter().filter_map(|(reason, count)| Some((name_of(reason)?, count))).collect(),
            basis: Basis::read(reader).await?,
        })
    }
}

impl Tool for Arguments {
    type ToolAnswer = Answer;

    const ABOUT_ARGUMENTS: &'static str = "Arguments of the tool `assess_fleet`.";

    fn tool() -> Definition {
        Definition {
            name: "assess_fleet",
            path: "",
            when: "Use it to check several aircraft, or one with its records of compliance.",
            surface: Surface::Tool,
            ..Self::definition()
        }
    }

    fn take_tool_rows(answer: &mut Answer) -> Option<RowTexts> {
        Self::take_rows(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use feed::derived_lists::Derived as _;
    use schemas::views::aviation::AirworthinessDirective;

    use super::super::shared_directive::SharedDirective;
    use super::*;

    /// Proves that a directive for something that any aircraft can have hides no unknown make, and that one of the make itself does.
    #[test]
    fn directives_for_any_aircraft_hide_no_unknown_make() {
        let note = |holder: &str, makes: &[&str]| {
            let record = json!({ "id": "2026-15-05", "adNumber": "2026-15-05", "make": holder, "makes": makes, "product": "aircraft", "layout": "lettered" });
            let record: AirworthinessDirective = serde_json::from_value(record).unwrap();
            let directive = SharedDirective::of(record);
            let item = FleetItem { tail: "N1".to_owned(), make: "Pipper".to_owned(), model: "X-1".to_owned(), ..FleetItem::default() };
            let checked = check_items(vec![item]).unwrap();
            let outcome = directives::compare(&directive.stored.directive, &checked[0].aircraft);
            let found = [Compared::new(Arc::new(directive), outcome)];
            first_notes(&unknown_makes(&checked[0], &found))
        };
        assert!(note("Acme Winch", &[]).unwrap().starts_with("N1: the make \"Pipper\" is not known"));
        assert_eq!(note("Pipper", &["PIPPER"]), None);
    }

    /// Proves that a make, or the make of an engine, that nothing is known of is noted with the nearest known ones, that known ones are not, and that many are
    /// cut.
    #[test]
    fn unknown_makes_are_noted() {
        let item_of = |tail: &str, make: &str, engine: Option<&str>| FleetItem {
            tail: tail.to_owned(),
            make: make.to_owned(),
            model: "PA-28-140".to_owned(),
            engine_make: engine.map(str::to_owned),
            engine_model: engine.map(|_| "O-320-E2A".to_owned()),
            ..FleetItem::default()
        };
        let note = |items: Vec<FleetItem>| {
            let checked = check_items(items).unwrap();
            first_notes(&checked.iter().flat_map(|item| unknown_makes(item, &[])).collect::<Vec<_>>())
        };
        assert_eq!(note(vec![item_of("N1", "Piper", Some("Lycoming"))]), None);
        let noted = note(vec![item_of("N1", "Piper", None), item_of("N2", "Pipper", Some("Lycomming"))]).unwrap();
        assert!(noted.starts_with("N2: the make \"Pipper\" is not known; the nearest known makes are PIPER"), "{noted}");
        assert!(noted.contains("\"Lycomming\"") && noted.contains("LYCOMING") && !noted.contains("N1"), "{noted}");
        let without = FleetItem { engine_model: Some("O-320-E2A".to_owned()), ..item_of("N3", "Piper", None) };
        assert!(note(vec![without]).unwrap().starts_with("N3: without engineMake directives"));
        let many = (1..=9).map(|number| item_of(&format!("N{number}"), "Qqqqqqqqqq", None)).collect();
        assert!(note(many).unwrap().ends_with("The same holds for 4 more"));
    }
}
