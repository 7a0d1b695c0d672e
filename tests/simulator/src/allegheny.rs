//! Tables of a county on CKAN, of a few parcels: assessments, sales, permits of its city, and tax liens with their status.
//!
//! The peculiarities of the server and its tables are there: it lowers a limit without saying so, numbers the rows again each day, estimates the total on
//! every second day, and on one day has half of a table and a header among its rows. Of the liens: descriptions with two taxing bodies, each word for a
//! satisfaction in part, a satisfaction that a later entry hides, three block-lots in one docket, one without a PIN, one that was struck off, one older than
//! 20 years, a flag that is a text, and numbers with a point.

mod liens;
mod permits;
mod roll;

use self::roll::day;
use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::{Fault, Plan};
use simulated_world::query::Query;
use simulated_world::world::World;

/// The paths of the actions.
const RESOURCE: &str = "/api/3/action/resource_show";
const SEARCH: &str = "/api/3/action/datastore_search";
/// The most rows of an answer, whatever is asked for.
const LIMIT_MAX: usize = 100;
/// The rows of an answer without a limit.
const LIMIT_DEFAULT: usize = 100;
/// Days after the first day on which a table is half-loaded.
const HALF_DAY: i32 = 5;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Assessments,
    Liens,
    Permits,
    Sales,
}

impl Table {
    fn with_id(id: &str) -> Option<Self> {
        match id {
            "65855e14-549e-4992-b5be-d629afc676fa" => Some(Self::Assessments),
            "65d0d259-3e58-49d3-bebb-80dc75f61245" => Some(Self::Liens),
            "f4d1177a-f597-4c32-8cbf-7885f56253f6" => Some(Self::Permits),
            "5bbe6c55-bce6-4edb-9d04-68edeb6bf7b1" => Some(Self::Sales),
            _ => None,
        }
    }

    fn rows(self, world: &World) -> Vec<Value> {
        match self {
            Self::Assessments => roll::assessments(world),
            Self::Liens => liens::rows(world),
            Self::Permits => permits::rows(world),
            Self::Sales => roll::sales(world),
        }
    }
}

/// An action of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Resource,
    Search,
}

impl Action {
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            RESOURCE => Some(Self::Resource),
            SEARCH => Some(Self::Search),
            _ => None,
        }
    }
}

fn refused(status: u16, kind: &str) -> Answer {
    let body = json!({ "help": "x", "success": false, "error": { "__type": kind, "message": "refused" } });
    Answer { status, ..Answer::json(body.to_string().into_bytes()) }
}

/// Answers a call of an action.
pub(crate) fn answer(world: &World, action: Action, query: &Query<'_>, plan: &Plan) -> Answer {
    if plan.has(Fault::ErrorObject) {
        return refused(409, "Search Error");
    }
    let id = query.get(if action == Action::Resource { "id" } else { "resource_id" });
    let Some(table) = id.and_then(Table::with_id) else { return refused(404, "Not Found Error") };
    let result = match action {
        Action::Resource => json!({ "id": id, "last_modified": format!("{}T04:11:00.000000", world.today), "datastore_active": true }),
        Action::Search => found(world, table, query, plan),
    };
    Answer::json(json!({ "help": "x", "success": true, "result": result }).to_string().into_bytes())
}

/// A page of a table.
fn found(world: &World, table: Table, query: &Query<'_>, plan: &Plan) -> Value {
    let day = day(world);
    let mut rows = if plan.has(Fault::Outage) { Vec::new() } else { table.rows(world) };
    if day == HALF_DAY && world.has_bad_files {
        rows.truncate(rows.len() / 2);
        let header = rows.first().and_then(Value::as_object).into_iter().flatten();
        rows.push(header.map(|(name, _)| (name.clone(), Value::from(name.to_ascii_uppercase()))).collect());
    }
    if query.get("sort").is_some_and(|sort| sort.starts_with("PARID asc")) {
        rows.sort_by(|one, other| one["PARID"].as_str().cmp(&other["PARID"].as_str()));
    }
    let total = rows.len();
    let number = |name: &str| query.get(name).and_then(|text| text.parse::<usize>().ok());
    let (offset, limit) = (number("offset").unwrap_or(0), number("limit").unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX));
    let fields: Vec<&str> = query.get("fields").map(|fields| fields.split(',').collect()).unwrap_or_default();
    let shown = rows.into_iter().enumerate().skip(offset).take(limit).map(|(at, mut row)| {
        if let Value::Object(columns) = &mut row {
            columns.retain(|name, _| fields.is_empty() || fields.contains(&name.as_str()));
            columns.insert("_id".to_owned(), json!(i64::from(day) * 100_000 + at as i64));
        }
        plan.schema.apply(&mut row);
        row
    });
    let records: Vec<Value> = shown.collect();
    let is_estimated = day % 2 == 1;
    let total = if is_estimated { total / 10 * 10 } else { total };
    json!({ "records": records, "total": total, "total_was_estimated": is_estimated, "limit": limit })
}
