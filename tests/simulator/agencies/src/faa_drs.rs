//! The Dynamic Regulatory System of the FAA: final rules that are airworthiness directives, for a key. A page has a fixed number of documents, and an error
//! can come with status 200. Lists hold `_EMPTY_` for nothing, and a model with a comma is split there.

use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::query::Query;
use simulated_world::world::World;

/// The path of the document type.
pub const PATH: &str = "/api/drs/data-pull/ADFRAWD";
/// Documents per page. The real ones have 750.
const PAGE: usize = 2;

/// Answers a request.
#[must_use]
pub fn answer(world: &World, query: &Query<'_>, key: Option<&str>) -> Answer {
    if key != Some(simulated_world::KEY) {
        return Answer { status: 403, ..Answer::json(Vec::new()) };
    }
    let Some(offset) = query.get("offset").unwrap_or("0").parse::<usize>().ok() else {
        return Answer::json(json!({"errorMessage": "One or more filters provided are invalid"}).to_string().into_bytes());
    };
    let all = documents(world);
    let total = all.len();
    let page: Vec<Value> = all.into_iter().skip(offset).take(PAGE).collect();
    let summary = json!({
        "doctypeName": "ADFRAWD", "drsDoctypeName": "AD Final Rules", "count": page.len(), "hasMoreItems": offset.saturating_add(page.len()) < total,
        "totalItems": total, "offset": offset, "sortBy": "drs:documentNumber", "sortByOrder": "DESC",
    });
    Answer::json(json!({"summary": summary, "documents": page}).to_string().into_bytes())
}

/// One of a year that the Federal Register has, one with a text in the layout of its time, and one without a text, whose subject each round changes.
fn documents(world: &World) -> Vec<Value> {
    let subject = match world.rounds.len() {
        0 => "Wing bolts".to_owned(),
        rounds => format!("Wing bolts, revision {rounds}"),
    };
    let document_of = |guid: &str, number: &str, subject: &str, models: &[&str], text: Option<&str>, effective: &str| {
        json!({
            "documentGuid": guid, "documentURL": format!("https://drs.faa.gov/browse/excelExternalWindow/{guid}.0001"),
            "drs:documentNumber": number, "drs:status": "Current", "drs:title": null, "drs:adfrawdSubject": subject,
            "drs:adfrawdMake": ["Piper Aircraft, Inc."], "drs:adfrawdModel": models, "drs:adfrawdProductType": ["Aircraft"],
            "drs:adfrawdProductSubType": ["Small Airplane"], "drs:adfrawdSupersededBy": null, "drs:adfrawdRegulatoryText": text,
            "drs:subPart": ["_EMPTY_"], "drs:effectiveDate": effective, "docLastModifiedDate": null, "hasMoreAttachments": false,
        })
    };
    vec![
        document_of("FR-ADFRAWD-2020-00001-0000000000", "2020-40-01", "Fuel selector", &["PA-46-350P"], None, "2020-11-05"),
        document_of(
            "4C1D2E3F405162738495A6B7C8D9EAFB",
            "1978-40-03",
            "Seat rails",
            &["PA-28-140", "PA-28-150"],
            Some(
                "78-40-03 PIPER: Amendment 39-3100. Applies to Models PA-28-140 and PA-28-150 airplanes, all serial numbers.\n\nCompliance: Required as \
                 indicated.\n\nWithin 100 hours time in service after the effective date of this AD, and thereafter at intervals not to exceed 100 hours time in \
                 service, inspect the seat rails.",
            ),
            "1978-10-12",
        ),
        document_of("5D2E3F405162738495A6B7C8D9EAFB0C", "1962-24-01", &subject, &["PA-24 (A", "B)", "PA-24-250"], None, "1962-11-20"),
    ]
}
