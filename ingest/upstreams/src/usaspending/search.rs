//! The addresses and bodies of all requests.

use serde_json::{Value, json};

use super::plan::{By, Cursor, Group, Order, Rows, SECTORS, Step};
use super::{DETAILS, ORIGIN, TRANSACTIONS};
use crate::Request;

/// Rows per page: the server's maximum.
pub(super) const LIMIT: usize = 100;
/// The last page that can be requested by number.
pub(super) const PAGES_MAX: u32 = 500;
/// Awards per page when details are requested: few, because all of them are in the cursor.
const DETAILS_LIMIT: usize = 10;
/// Details are requested for awards of at least this many dollars.
const DETAILS_DOLLARS_MIN: u64 = 5_000_000;
/// Actions per page.
const ACTIONS_LIMIT: usize = 5_000;

const MEDIA_TYPES: &[&str] = &["application/json", "text/json"];
/// Endpoints where a 404, which may be an HTML page, is a valid answer.
const MEDIA_TYPES_OR_WORDS: &[&str] = &["application/json", "text/json", "text/html", "text/plain"];

const ACTION_FIELDS: &[&str] = &[
    "Award ID",
    "Mod",
    "Action Date",
    "Action Type",
    "Transaction Amount",
    "Transaction Description",
    "Recipient Name",
    "Recipient UEI",
    "Awarding Agency",
    "Awarding Sub Agency",
    "Award Type",
    "PSC",
    "naics_code",
    "naics_description",
];

/// Without the fields that have made the server fail: Awarding Agency Code, recipient_id, Contract Award Type, Total Outlays.
pub(super) const AWARD_FIELDS: &[&str] = &[
    "Award ID",
    "Recipient Name",
    "Recipient UEI",
    "Awarding Agency",
    "Awarding Sub Agency",
    "Funding Agency",
    "Description",
    "Last Modified Date",
    "Base Obligation Date",
    "Start Date",
    "Award Amount",
    "NAICS",
    "PSC",
    "Recipient Location",
    "Primary Place of Performance",
];

/// Builds the request at a cursor.
pub(super) fn request(stream: &str, cursor: &Cursor) -> Request {
    let kind = if stream == TRANSACTIONS { "transaction" } else { "award" };
    match &cursor.step {
        Step::Count => {
            let body = json!({ "filters": filters(stream, cursor) });
            Request { media_types: MEDIA_TYPES_OR_WORDS, ..post(format!("/api/v2/search/spending_by_{kind}_count/"), &body) }
        }
        Step::Rows(rows) => post(format!("/api/v2/search/spending_by_{kind}/"), &search(stream, cursor, rows)),
        Step::Award { ids, .. } => {
            let mut path = "/api/v2/awards/".to_owned();
            path.extend(
                form_urlencoded::byte_serialize(ids.first().map_or("", String::as_str).as_bytes()).map(|part| part.replace('+', "%20")),
            );
            path.push('/');
            Request { path, media_types: MEDIA_TYPES_OR_WORDS, ..ask() }
        }
        Step::Actions { ids, page, .. } => {
            let body = json!({"award_id": ids.first(), "page": page, "limit": ACTIONS_LIMIT, "sort": "action_date", "order": "desc"});
            Request { media_types: MEDIA_TYPES_OR_WORDS, ..post("/api/v2/transactions/".to_owned(), &body) }
        }
    }
}

fn ask() -> Request {
    Request {
        origin: ORIGIN.to_owned(),
        headers: vec![("accept", "application/json".to_owned())],
        accepts_statuses: &[400, 404, 422],
        media_types: MEDIA_TYPES,
        ..Request::default()
    }
}

pub(super) fn post(path: String, body: &Value) -> Request {
    Request { path, body: Some(body.to_string()), ..ask() }
}

fn search(stream: &str, cursor: &Cursor, rows: &Rows) -> Value {
    let is_vehicles = cursor.slice.group == Group::Idvs;
    let (fields, sort, limit): (Vec<&str>, _, _) = match stream {
        TRANSACTIONS => (ACTION_FIELDS.to_vec(), "Award ID", LIMIT),
        DETAILS => (
            vec!["Award ID", "Award Amount", "Last Modified Date", "Recipient Name", "Awarding Agency", "NAICS"],
            "Last Modified Date",
            DETAILS_LIMIT,
        ),
        _ => {
            let end = if is_vehicles { "Last Date to Order" } else { "End Date" };
            let sort = if cursor.plan.first().is_some_and(|span| span.by == By::NewAwards) {
                "Base Obligation Date"
            } else {
                "Last Modified Date"
            };
            (AWARD_FIELDS.iter().copied().chain([end]).collect(), sort, LIMIT)
        }
    };
    let order = if rows.order == Order::Desc { "desc" } else { "asc" };
    let mut body = json!({
        "filters": filters(stream, cursor), "fields": fields, "sort": sort, "order": order, "limit": limit, "page": rows.page,
    });
    // Beyond the last numbered page; the server requires both.
    if let Some((id, value)) = rows.after.as_ref().filter(|_| rows.page > PAGES_MAX) {
        body["last_record_unique_id"] = json!(id);
        body["last_record_sort_value"] = json!(value);
    }
    body
}

fn filters(stream: &str, cursor: &Cursor) -> Value {
    let slice = &cursor.slice;
    let by = match cursor.plan.first().map(|span| span.by) {
        Some(By::NewAwards) => "new_awards_only",
        _ => "last_modified_date",
    };
    let codes = slice.group.codes();
    let codes = slice.code.and_then(|code| codes.get(code..=code)).unwrap_or(codes);
    let mut filters = json!({
        "award_type_codes": codes,
        "time_period": [{"start_date": slice.from.to_string(), "end_date": slice.to.to_string(), "date_type": by}],
    });
    if let Some(sector) = slice.sector {
        filters["naics_codes"] = SECTORS.get(sector).map_or_else(|| json!({"exclude": SECTORS}), |sector| json!({"require": [sector]}));
    }
    if stream == DETAILS {
        filters["award_amounts"] = json!([{"lower_bound": DETAILS_DOLLARS_MIN}]);
    }
    filters
}
