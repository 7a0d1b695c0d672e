//! ClinicalTrials.gov, API version 2: the search for studies, single studies, and the data version.
//!
//! Studies are posted each business day and updated every few weeks: status, dates, sites and enrolment change, and results follow at the
//! end. Pages are reached by tokens, only the first page has the total, and empty fields are omitted. Not simulated: distances, the lists
//! of enums and areas, statistics, CSV.

mod cast;
mod essie;
mod pieces;
mod study;

use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::days::last_business_day;
use simulated_world::faults::{Fault, Plan};
use simulated_world::query::Query;
use simulated_world::world::World;

use self::study::DAILY;
use essie::Expression;
use study::Study;

const PAGE_DEFAULT: u64 = 10;
const PAGE_MAX: u64 = 1_000;
/// Obfuscates page positions to make tokens.
const TOKEN_KEY: u64 = 0x5eed_c71a_11d0_70c5;
const API: &str = "/api/v2/";
const PARAMETERS: &[&str] = &[
    "filter.advanced",
    "filter.overallStatus",
    "filter.ids",
    "fields",
    "sort",
    "countTotal",
    "pageSize",
    "pageToken",
    "format",
    "markupFormat",
];
/// The query parameters, and the pieces that each of them searches.
const QUERIES: &[(&str, &[&str])] = &[
    ("query.cond", &["Condition", "Keyword", "BriefTitle", "OfficialTitle"]),
    ("query.term", essie::ANYWHERE),
    ("query.intr", &["InterventionName", "BriefTitle"]),
    ("query.titles", &["BriefTitle", "OfficialTitle", "Acronym"]),
    ("query.outc", &["PrimaryOutcomeMeasure"]),
    ("query.spons", &["LeadSponsorName", "CollaboratorName"]),
    ("query.lead", &["LeadSponsorName"]),
    ("query.locn", &["LocationFacility", "LocationCity", "LocationState", "LocationCountry"]),
    ("query.id", &["NCTId", "NCTIdAlias", "OrgStudyId"]),
];

/// The endpoint of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A search.
    Studies,
    /// The study whose number is at the end of the path.
    Study,
    /// The version of the data.
    Version,
}

impl Route {
    /// The endpoint of a path; `None` for a path of another upstream.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        match path.strip_prefix(API)? {
            "studies" => Some(Self::Studies),
            "version" => Some(Self::Version),
            rest => rest.strip_prefix("studies/NCT").map(|_| Self::Study),
        }
    }
}

/// Answers a request.
#[must_use]
pub fn answer(world: &World, route: Route, path: &str, query: &Query<'_>, plan: &Plan) -> Answer {
    match route {
        Route::Studies => studies(world, query, plan).unwrap_or_else(|words| refusal(400, &words)),
        Route::Study => one(world, path.rsplit('/').next().unwrap_or_default(), query).unwrap_or_else(|words| refusal(400, &words)),
        Route::Version => {
            let version = json!({"apiVersion": "2.0.5", "dataTimestamp": format!("{}T09:00:05", last_business_day(world.today))});
            Answer::json(version.to_string().into_bytes())
        }
    }
}

fn refusal(status: u16, words: &str) -> Answer {
    Answer { status, content_type: Some("text/plain; charset=utf-8"), body: words.as_bytes().to_vec(), ..Answer::default() }
}

fn all(world: &World) -> impl Iterator<Item = Study> {
    DAILY.all(world).map(|place| Study::of(world, place)).chain(cast::all(world))
}

/// The requested fields; `None` means all.
fn fields(query: &Query<'_>) -> Result<Option<Vec<&'static str>>, String> {
    let Some(fields) = query.get("fields") else { return Ok(None) };
    pieces::requested(fields).map(Some).map_err(|name| format!("`fields` parameter has incorrect value: `{name}`"))
}

fn one(world: &World, id: &str, query: &Query<'_>) -> Result<Answer, String> {
    let fields = fields(query)?;
    let found = all(world).find(|study| study.nct_id == id || study.alias.as_deref() == Some(id));
    let Some(study) = found else { return Ok(refusal(404, &format!("NCT number {id} not found"))) };
    if study.nct_id != id {
        return Ok(Answer { location: Some(format!("{API}studies/{}", study.nct_id)), ..refusal(301, "") });
    }
    Ok(Answer::json(to_json(&study, fields.as_deref()).to_string().into_bytes()))
}

fn to_json(study: &Study, fields: Option<&[&str]>) -> Value {
    fields.map_or_else(|| study.value().clone(), |fields| pieces::chosen(study.value(), fields))
}

/// All conditions of a search.
fn demands(query: &Query<'_>) -> Result<Vec<Expression>, String> {
    let mut demands = Vec::new();
    for (name, value) in query.pairs() {
        if let Some((_, area)) = QUERIES.iter().find(|(known, _)| *known == name) {
            demands.push(Expression::words(value, area).map_err(|words| format!("`{name}` parameter has incorrect value: {words}"))?);
        } else if !PARAMETERS.contains(&name) {
            return Err(format!("`{name}` is unknown parameter"));
        }
    }
    if let Some(filter) = query.get("filter.advanced") {
        let filter = Expression::parse(filter);
        demands.push(filter.map_err(|words| format!("`filter.advanced` parameter has incorrect value: {words}"))?);
    }
    let one_of = |list: &str, pieces: &[&str]| {
        let values = list.split([',', '|']).map(str::trim);
        let each =
            values.flat_map(|value| pieces.iter().map(move |piece| Expression::Is { piece: (*piece).to_owned(), value: value.to_owned() }));
        Expression::Any(each.collect())
    };
    demands.extend(query.get("filter.overallStatus").map(|list| one_of(list, &["OverallStatus"])));
    demands.extend(query.get("filter.ids").map(|list| one_of(list, &["NCTId", "NCTIdAlias"])));
    Ok(demands)
}

fn studies(world: &World, query: &Query<'_>, plan: &Plan) -> Result<Answer, String> {
    let demands = demands(query)?;
    let fields = fields(query)?;
    let page_size = match query.get("pageSize").map(str::parse::<u64>) {
        None | Some(Ok(0)) => PAGE_DEFAULT,
        Some(Ok(size)) => size.min(PAGE_MAX),
        Some(Err(_)) => return Err("`pageSize` parameter has incorrect value".to_owned()),
    };
    let start = match query.get("pageToken") {
        None => 0,
        Some(token) => place(token).ok_or("`pageToken` parameter has incorrect value")?,
    };
    let mut found: Vec<Study> = match plan.has(Fault::Outage) {
        true => Vec::new(),
        false => all(world).filter(|study| demands.iter().all(|demand| demand.fits(study))).collect(),
    };
    if let Some(sort) = query.get("sort") {
        sorted(&mut found, sort)?;
    }
    let total = found.len();
    let end = start.saturating_add(page_size);
    let places = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
    let page = found.iter().skip(places(plan.start(start, page_size))).take(places(page_size));
    let studies: Vec<Value> = page
        .filter(|study| !plan.vanishes(study.random()))
        .map(|study| {
            let mut record = to_json(study, fields.as_deref());
            plan.schema.apply(&mut record);
            record
        })
        .collect();
    let mut body = json!({ "studies": studies });
    if start == 0 && query.get("countTotal") == Some("true") {
        body["totalCount"] = json!(total);
    }
    if places(end) < total {
        body["nextPageToken"] = json!(token(end));
    }
    Ok(Answer::json(body.to_string().into_bytes()))
}

/// Sorts by a date or a number; studies without it come last. Equal ones are sorted by number.
fn sorted(studies: &mut Vec<Study>, sort: &str) -> Result<(), String> {
    let (piece, order) = sort.split_once(':').unwrap_or((sort, "desc"));
    let is_sortable = piece.ends_with("Date") || piece.ends_with("Count");
    if !is_sortable || pieces::path_of(piece).is_none() || !matches!(order, "asc" | "desc") {
        return Err(format!("`sort` parameter has incorrect value: `{sort}`"));
    }
    let key = |study: &Study| {
        let text = pieces::texts(study, piece).first().map(|text| text.to_string()).unwrap_or_default();
        // Padded to the width of the largest number, so that numbers sort like dates.
        if piece.ends_with("Count") && !text.is_empty() { format!("{text:0>12}") } else { text }
    };
    let (mut with, without): (Vec<_>, Vec<_>) = studies.drain(..).map(|study| (key(&study), study)).partition(|(key, _)| !key.is_empty());
    with.sort_by(|(one, _), (other, _)| if order == "asc" { one.cmp(other) } else { other.cmp(one) });
    studies.extend(with.into_iter().chain(without).map(|(_, study)| study));
    Ok(())
}

fn token(place: u64) -> String {
    format!("{:016x}", place ^ TOKEN_KEY)
}

fn place(token: &str) -> Option<u64> {
    u64::from_str_radix(token, 16).ok().map(|token| token ^ TOKEN_KEY)
}
