//! The filter of the aviation service's feeds.

use std::collections::BTreeSet;

use directives::{Aircraft, ResolvedAircraft, StoredDirective, Verdict, compare, keys_for, resolve_makes};
use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::aviation::{AirworthinessDirective, STATUSES};
use schemas::views::records::normal;
use serde::{Deserialize, Serialize};

use super::fleet_watch::{FleetOfWatch, aircraft_of};
use access::fleets::fleet_of;
use feed::filter::{self, Element, Field, Fields, TermQuery};
use feed::position::Position;
use feed::text_field;
use operation::context::Context;
use operation::problem::Problem;

/// The kinds of products.
const PRODUCTS: [&str; 4] = ["aircraft", "engine", "propeller", "appliance"];
/// What is known of repetition.
const RECURRING: [&str; 3] = ["yes", "no", "unknown"];

/// A filter: directives match if they match every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// A make in any of its names: `Piper`, `The New Piper Aircraft, Inc.`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub make: Option<String>,
    /// A model of the make in any spelling. Directives match that may apply to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub model: Option<String>,
    /// `aircraft`, `engine`, `propeller` or `appliance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub product: Option<String>,
    /// Whether the actions recur: `yes`, `no` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub recurring: Option<String>,
    /// `current`, `corrected` or `superseded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub status: Option<String>,
    /// Whether to include late news: directives that were published more than 60 days before they were recorded. By default it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
    /// The stored fleet of a watch. Only watches name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(crate) fleet: Option<FleetOfWatch>,
    /// The aircraft of the fleet as it is stored now; `None` until it is looked up.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) fleet_aircraft: Option<Vec<ResolvedAircraft>>,
}

/// The most keys by which the changes for a fleet are searched. For more, all changes are read.
const FLEET_KEYS_MAX: usize = 300;

/// What make and model, or the fleet, of a filter select.
enum Wanted {
    Makes(Vec<String>),
    Aircraft(Vec<ResolvedAircraft>),
    /// A fleet that was not looked up: everything may be for it.
    Unknown,
}

impl Wanted {
    fn takes(&self, record: &AirworthinessDirective) -> bool {
        match self {
            Self::Makes(makes) => record.makes.iter().any(|make| makes.contains(make)),
            Self::Aircraft(aircraft) => {
                let stored = StoredDirective::of(record);
                aircraft.iter().any(|one| compare(&stored.directive, one).verdict > Verdict::None)
            }
            Self::Unknown => true,
        }
    }

    /// How the changes are found; `None` if that needs too many keys, or the fleet is not known.
    fn query(self) -> Option<TermQuery> {
        let values = |values: Vec<String>| values.iter().map(|value| normal(value)).collect();
        match self {
            Self::Makes(makes) => Some(TermQuery::Exact("make", values(makes))),
            Self::Aircraft(aircraft) => {
                let keys: BTreeSet<String> = aircraft.iter().flat_map(keys_for).collect();
                (keys.len() <= FLEET_KEYS_MAX).then(|| TermQuery::Exact("key", values(keys.into_iter().collect())))
            }
            Self::Unknown => None,
        }
    }
}

impl Filter {
    fn wanted(&self) -> Option<Wanted> {
        if self.fleet.is_some() {
            return Some(self.fleet_aircraft.clone().map_or(Wanted::Unknown, Wanted::Aircraft));
        }
        let make = self.make.as_deref()?;
        let aircraft = |model: &str| ResolvedAircraft::new(&Aircraft { make, model, ..Aircraft::default() });
        Some(match self.model.as_deref() {
            Some(model) => Wanted::Aircraft(vec![aircraft(model)]),
            None => Wanted::Makes(resolve_makes(make)),
        })
    }
}

/// Checks that the name of a make or model names something.
pub(crate) fn check_name(parameter: &str, name: &str) -> Result<(), Problem> {
    if directives::compact_form(name).is_empty() {
        return Err(Problem::parameter(parameter, format!("{parameter}: has neither a letter nor a digit")));
    }
    Ok(())
}

impl filter::Filter for Filter {
    type Record = AirworthinessDirective;

    const FIELDS: Fields<Self> = &[
        Field::<Self, AirworthinessDirective>::new("make").found_by(1, |filter| filter.wanted()?.query()).with_names("make"),
        text_field!(product).one_of(&PRODUCTS).equal_to(|record| &record.product).found_by_term(2, "product"),
        text_field!(recurring).one_of(&RECURRING).equal_to(|record| &record.recurring).found_by_term(3, "recurring"),
        text_field!(status).one_of(&STATUSES).equal_to(|record| &record.status).found_by_term(4, "status"),
        Field::<Self, AirworthinessDirective>::backfill(|filter| filter.include_backfill),
    ];

    fn normalize(mut self) -> Result<Self, Problem> {
        if self.fleet.is_some() {
            return Err(Problem::parameter("fleet", "fleet: only a watch names a stored fleet"));
        }
        self.read_fields()?;
        if self.model.is_some() && self.make.is_none() {
            return Err(Problem::parameter("make", "make: `model` needs `make` with it"));
        }
        self.make.iter().try_for_each(|make| check_name("make", make))?;
        self.model.iter().try_for_each(|model| check_name("model", model))?;
        Ok(self)
    }

    fn criteria(&self) -> filter::Criteria<'_, AirworthinessDirective> {
        // Make and model are resolved once, not for each change.
        let wanted = self.wanted();
        filter::Criteria::new(self.term_queries(), move |change| {
            self.takes(&change.record) && wanted.as_ref().is_none_or(|wanted| wanted.takes(&change.record))
        })
    }

    fn matches(&self, change: &Element<AirworthinessDirective>) -> bool {
        self.takes(&change.record) && self.wanted().is_none_or(|wanted| wanted.takes(&change.record))
    }

    fn needs_look_up(&self) -> bool {
        self.fleet.is_some() && self.fleet_aircraft.is_none()
    }

    /// Reads the aircraft of the fleet as it is stored now: none if it was deleted.
    async fn look_up(&mut self, ctx: &Context, _at: &Position, _after: Seq) -> Result<Option<String>, Problem> {
        let Some(fleet) = &self.fleet else { return Ok(None) };
        let stored = fleet_of(ctx, &fleet.account, &fleet.id).await?;
        self.fleet_aircraft = Some(stored.map(|stored| aircraft_of(&stored)).transpose()?.unwrap_or_default());
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;
    use feed::testing::filters::filter_of;
    use serde_json::json;

    /// Proves which changes match which filters, and how they are found.
    #[test]
    fn conditions() {
        let model = json!({ "name": "PA-28-140", "form": "PA28140", "series": "PA28", "role": "applies", "span": "PA-28-140" });
        let record = json!({
            "id": "2026-15-05", "makes": ["PIPER"], "product": "aircraft", "layout": "lettered", "models": [model],
            "recurring": "yes", "status": "current", "scope": "all"
        });
        let change: Element<AirworthinessDirective> =
            serde_json::from_value(json!({ "event": "new", "seq": 1, "recordedAt": "", "record": record })).unwrap();
        for (filter, expected) in [
            (json!({}), true),
            (json!({ "make": "The New Piper Aircraft, Inc." }), true),
            (json!({ "make": "Piper", "model": "cherokee 140" }), true),
            (json!({ "make": "Piper", "model": "PA-46-350P" }), false),
            (json!({ "make": "Cessna" }), false),
            (json!({ "product": "Aircraft", "recurring": "YES", "status": "current" }), true),
            (json!({ "status": "superseded" }), false),
        ] {
            let read: Filter = filter_of(&filter).unwrap();
            assert_eq!((read.matches(&change), read.criteria().selects(&change)), (expected, expected), "{filter}");
        }
        let queries = filter_of::<Filter>(&json!({ "make": "Piper", "recurring": "yes" })).unwrap().term_queries();
        assert_eq!(queries, [("make", "piper"), ("recurring", "yes")].map(|(name, value)| TermQuery::Exact(name, vec![value.to_owned()])));
        // The fleet of a watch: everything may be for it until its aircraft are known, then what is for one of them. A query names none.
        let fleet = FleetOfWatch { account: "acct_1".to_owned(), id: "fleet_1".to_owned() };
        let watch = Filter { fleet: Some(fleet), ..Filter::default() };
        assert_eq!(Filter::from_canonical(&watch.canonical()).as_ref(), Some(&watch));
        assert!(watch.matches(&change) && watch.needs_look_up() && watch.term_queries().is_empty());
        let resolved = |make, model| ResolvedAircraft::new(&Aircraft { make, model, ..Aircraft::default() });
        for (aircraft, expected) in [
            (vec![], false),
            (vec![resolved("Cessna", "172S")], false),
            (vec![resolved("Cessna", "172S"), resolved("Piper", "PA-28-140")], true),
        ] {
            let known = Filter { fleet_aircraft: Some(aircraft), ..watch.clone() };
            assert_eq!((known.matches(&change), known.criteria().selects(&change), known.needs_look_up()), (expected, expected, false));
            assert_eq!((known.canonical(), known.term_queries().len()), (watch.canonical(), 1));
        }
        assert_eq!(watch.normalize().unwrap_err().parameter, "fleet");

        for (filter, parameter) in [
            (json!({ "product": "wing" }), "product"),
            (json!({ "model": "PA-28" }), "make"),
            (json!({ "make": "--" }), "make"),
            (json!({ "make": "Piper", "model": "?" }), "model"),
        ] {
            assert_eq!(filter_of::<Filter>(&filter).unwrap_err().parameter, parameter);
        }
    }
}
