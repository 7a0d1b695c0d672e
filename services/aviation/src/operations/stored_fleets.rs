//! `GET /v1/fleet` and `DELETE /v1/fleet/{name}`: the fleets that an account has stored by assessing them.

use access::fleets::StoredFleet;
use access::saved_items::SavedItems;
use feed::filter::Filter as _;
use operation::problem::Problem;
use operation::tiers::FLEETS_MIN_TIER;
use operation::{Answer, Call, Definition, Method, Operation, Price};
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::fleet::{CheckedItem, FleetItem, check_items};
use crate::rules::AviationRules;
use fold::records::Rules;
use reads::list_page::ListPage;

/// Stores the aircraft of a call as the fleet of this name.
pub(crate) async fn store(call: &Call, name: &str, aircraft: &[CheckedItem]) -> Result<(), Problem> {
    let items: Vec<&FleetItem> = aircraft.iter().map(|checked| &checked.item).collect();
    SavedItems::fleets(call, AviationRules::NAME).save_fleet(name, json!(items)).await.map(drop)
}

/// The fleet of this name, with its aircraft.
///
/// # Errors
/// `not-found`, about the parameter `fleet`.
pub(crate) async fn stored(call: &Call, name: &str) -> Result<(StoredFleet, Vec<CheckedItem>), Problem> {
    let fleet = SavedItems::fleets(call, AviationRules::NAME).fleet(name).await.map_err(|problem| problem.about("fleet"))?;
    let aircraft = check_items(items_of(&fleet)?)?;
    Ok((fleet, aircraft))
}

fn items_of(fleet: &StoredFleet) -> Result<Vec<FleetItem>, Problem> {
    Vec::<FleetItem>::deserialize(&fleet.aircraft).map_err(|error| {
        tracing::error!(id = fleet.id, %error, "a stored fleet cannot be read");
        Problem::new(ErrorCode::Internal, "the stored fleet cannot be read; assess it again")
    })
}

/// A stored fleet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StoredFleet")]
pub struct Fleet {
    /// The name, which `/v1/audit.csv` takes as `fleet`.
    pub name: String,
    /// The number of aircraft.
    pub count: usize,
    /// The tail numbers of the aircraft, in their order.
    pub tails: Vec<String>,
    /// When the name was first stored, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub made_at: String,
    /// When the aircraft were last changed, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub changed_at: String,
}

impl Fleet {
    fn of(stored: StoredFleet) -> Result<Self, Problem> {
        let tails: Vec<String> = items_of(&stored)?.into_iter().map(|item| item.tail).collect();
        let (made_at, changed_at) = (rfc3339(stored.made_at), rfc3339(stored.changed_at));
        Ok(Self { name: stored.name, count: tails.len(), tails, made_at, changed_at })
    }
}

/// The stored fleets of an account.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "StoredFleets")]
pub struct Fleets {
    /// The fleets, sorted by name.
    pub fleets: Vec<Fleet>,
    /// Send it as `after` to get the fleets after these; null if there are no more.
    pub next: Option<String>,
}

/// Arguments of `delete_fleet`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Name {
    /// The name of the fleet.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
}

/// The answer about a deleted fleet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeletedFleet")]
pub struct Deleted {
    /// The name of the deleted fleet.
    pub deleted: String,
}

/// The operations.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let list = Definition {
        name: "list_fleets",
        path: "/v1/fleet",
        summary: "The fleets that this account has stored, sorted by name.",
        description: "A fleet is stored by assessing it. The tier limits how many an account may have.",
        price: Price::Tier(FLEETS_MIN_TIER),
        list: "fleets",
        errors: &[],
        example: json!({}),
        ..Definition::read()
    };
    let delete = Definition {
        name: "delete_fleet",
        method: Method::Delete,
        path: "/v1/fleet/{name}",
        summary: "Deletes a stored fleet.",
        description: "Its aircraft cannot be read again: the secret that they are encrypted with is destroyed. Its watches are deleted.",
        price: Price::Tier(FLEETS_MIN_TIER),
        errors: &[],
        example: json!({ "name": "default" }),
        ..Definition::read()
    };
    let list = Operation::define::<ListPage, Fleets, _, _>(list, list_fleets);
    let delete = Operation::define::<Name, Deleted, _, _>(delete, delete_fleet);
    [list, delete].map(Operation::managed).into()
}

async fn list_fleets(call: Call, page: ListPage) -> Result<Answer, Problem> {
    let all = SavedItems::fleets(&call, AviationRules::NAME).all_fleets().await?;
    let fleets = all.into_iter().map(Fleet::of).collect::<Result<Vec<Fleet>, Problem>>()?;
    let (fleets, next) = page.by_name(fleets, |fleet| &fleet.name)?;
    Answer::json(&Fleets { fleets, next })
}

async fn delete_fleet(call: Call, arguments: Name) -> Result<Answer, Problem> {
    let name = arguments.name.trim();
    let fleets = SavedItems::fleets(&call, AviationRules::NAME);
    // Its watches end first: one that is left would begin again with the next fleet of that name.
    end_watches(&call, &fleets.fleet_id(name)).await?;
    fleets.delete_fleet(name).await.map_err(|problem| problem.about("name"))?;
    Answer::json(&Deleted { deleted: name.to_owned() })
}

/// Deletes the watches of a fleet.
async fn end_watches(call: &Call, fleet_id: &str) -> Result<(), Problem> {
    let watches = SavedItems::watches(call, AviationRules::NAME);
    for watch in watches.list().await? {
        let of_fleet = Filter::from_canonical(&watch.filter).and_then(|filter| filter.fleet);
        if of_fleet.is_some_and(|fleet| fleet.id == fleet_id) {
            watches.delete(&watch).await?;
        }
    }
    Ok(())
}
