//! The Federal Register: the search for notices of the Food and Drug Administration. What is published follows from the first day: meetings
//! of one and of two days, an amendment that moves a meeting and one without a date, notices whose only date is that of comments, and
//! notices that are about no drug. Pages are reached by address, and fields are sent when they are asked for. The search for rules of part 39
//! finds airworthiness directives ([`directives`]).

mod directives;

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::{Fault, Plan};
use simulated_world::query::Query;
use simulated_world::world::World;

/// The path of the search.
/// The path of the search.
pub const PATH: &str = "/api/v1/documents.json";
/// Documents per page, however many are asked for, so that a search has several pages.
const PAGE: usize = 4;

/// A notice: the days after the first day on which it is published, its title, the text about dates, and its docket.
struct Notice {
    day: i64,
    title: &'static str,
    /// `{25}` is the day 25 days after the first day.
    dates: &'static str,
    docket: &'static str,
}

const NOTICES: &[Notice] = &[
    Notice {
        day: -14,
        title: "Oncologic Drugs Advisory Committee; Notice of Meeting; Establishment of a Public Docket; Request for Comments — NDA 700001 From Calderbrook \
            Therapeutics, Inc. for Calderinib",
        dates: "The meeting will be held on {25}, from 9 a.m. to 6 p.m. Eastern Time.",
        docket: "FDA-2026-N-4301",
    },
    Notice {
        day: -13,
        title: "Cellular, Tissue, and Gene Therapies Advisory Committee; Notice of Meeting — BLA 700002 From Rowanfield Pharmaceuticals for Rowanlimab",
        dates: "The meeting will be held on {40} and {41}.",
        docket: "FDA-2026-N-4302",
    },
    Notice {
        day: -12,
        title: "Psychopharmacologic Drugs Advisory Committee; Notice of Meeting",
        dates: "Meeting: {55}",
        docket: "FDA-2026-N-0001",
    },
    Notice {
        day: -11,
        title: "Circulatory System Devices Panel of the Medical Devices Advisory Committee; Notice of Meeting",
        dates: "The meeting will be held on {30}.",
        docket: "FDA-2026-N-4304",
    },
    Notice {
        day: -10,
        title: "Tobacco Products Scientific Advisory Committee; Notice of Meeting",
        dates: "The meeting will be held on {31}.",
        docket: "FDA-2026-N-4305",
    },
    Notice {
        day: -9,
        title: "Blood Products Advisory Committee; Notice of Meeting; Renewal",
        dates: "Applicable {1}.",
        docket: "FDA-2026-N-4306",
    },
    Notice { day: -9, title: "Pediatric Advisory Committee; Charter; Notice of Meeting", dates: "{2}", docket: "FDA-2026-N-4307" },
    Notice {
        day: -8,
        title: "Pharmacy Compounding Advisory Committee; Notice of Meeting",
        dates: "The meeting will be held on {33}.",
        docket: "FDA-2026-N-4308",
    },
    Notice {
        day: -7,
        title: "Arthritis Advisory Committee; Notice of Meeting; Reopening of the Comment Period",
        dates: "Comments due by {20}.",
        docket: "FDA-2026-N-4309",
    },
    Notice { day: -6, title: "Oncologic Drugs Advisory Committee; Amendment of Notice", dates: "", docket: "FDA-2026-N-4301" },
    Notice {
        day: 2,
        title: "Cellular, Tissue, and Gene Therapies Advisory Committee; Amendment of Notice of Meeting",
        dates: "The meeting will be held on {68} and {69}.",
        docket: "FDA-2026-N-4302",
    },
];

/// Answers a search.
#[must_use]
pub fn answer(world: &World, raw: &str, query: &Query<'_>, plan: &Plan) -> Answer {
    let day = |name: &str| query.get(name).and_then(|day| day.parse::<Date>().ok());
    let from = day("conditions[publication_date][gte]").unwrap_or(Date::MIN);
    let to = day("conditions[publication_date][lte]").unwrap_or(Date::MAX);
    let fields: Vec<&str> = query.pairs().filter(|(name, _)| *name == "fields[]").map(|(_, value)| value).collect();
    let is_part_39 = query.get("conditions[cfr][part]") == Some("39");
    let all: Vec<(Date, usize)> = if is_part_39 {
        directives::found(world, query.get("conditions[type][]").unwrap_or_default())
    } else {
        NOTICES.iter().enumerate().map(|(at, notice)| (world.first_today.saturating_add(notice.day.days()), at)).collect()
    };
    let mut found: Vec<(Date, usize)> =
        all.into_iter().filter(|(day, _)| *day >= from && *day <= to && *day <= world.today && !plan.has(Fault::Outage)).collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    if query.get("order") == Some("oldest") {
        found.reverse();
    }
    if found.is_empty() {
        return Answer::json(json!({"description": "No documents", "count": 0, "total_pages": 0}).to_string().into_bytes());
    }
    let page: usize = query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1).max(1);
    let pages = found.len().div_ceil(PAGE);
    let start = usize::try_from(plan.start(((page - 1) * PAGE) as u64, PAGE as u64)).unwrap_or(usize::MAX);
    let results = found.iter().skip(start).take(PAGE).map(|(day, at)| {
        let mut record = if is_part_39 { directives::document(*day, *at) } else { document(world, *day, *at) };
        if !fields.is_empty() {
            record.retain(|name, _| fields.contains(&name.as_str()));
        }
        let mut record = Value::Object(record);
        plan.schema.apply(&mut record);
        record
    });
    let results: Vec<Value> = results.collect();
    let mut body = json!({"description": "Documents", "count": found.len(), "total_pages": pages, "results": results});
    if page < pages {
        let others: Vec<&str> = raw.split('&').filter(|pair| !pair.starts_with("page=") && !pair.starts_with("format=")).collect();
        body["next_page_url"] =
            json!(format!("https://www.federalregister.gov/api/v1/documents?{}&format=json&page={}", others.join("&"), page + 1));
    }
    Answer::json(body.to_string().into_bytes())
}

/// Whether a path is one of a text.
#[must_use]
pub fn is_text(path: &str) -> bool {
    path.starts_with(directives::TEXT_PATH)
}

/// Answers the path of a text.
#[must_use]
pub fn text(world: &World, path: &str) -> Answer {
    directives::text(world, path)
}

fn document(world: &World, day: Date, at: usize) -> Map<String, Value> {
    let notice = &NOTICES[at];
    let number = format!("{}-{:05}", day.year(), 16_200 + at);
    let value = json!({
        "document_number": number,
        "title": notice.title,
        "type": "Notice",
        "action": "Notice; establishment of a public docket; request for comments.",
        "dates": filled(world.first_today, notice.dates),
        "abstract": if at.is_multiple_of(3) { Value::Null } else { json!("The Food and Drug Administration announces a forthcoming meeting.") },
        "publication_date": day.to_string(),
        "html_url": format!("https://www.federalregister.gov/documents/{}/{number}/notice", day.strftime("%Y/%m/%d")),
        "docket_ids": [notice.docket],
    });
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn filled(first: Date, text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (number, after) = behind.split_once('}').unwrap_or((behind, ""));
        let day = first.saturating_add(number.parse::<i64>().unwrap_or(0).days());
        out.push_str(before);
        out.push_str(&day.strftime("%B %-d, %Y").to_string());
        rest = after;
    }
    out + rest
}
