//! The simulated NIH RePORTER.

use super::*;

const PATH: &str = "/v2/projects/search";
/// The awards with a part to play have numbers from here on.
const PARTS_FROM: u64 = 30_000_000;

fn search(sim: &Simulator, body: &Value) -> Value {
    value(&sim.answer_posted(PATH, body.to_string().as_bytes()).unwrap())
}

/// Returns all records of some criteria, page by page. Each answer must announce the same total.
pub(super) fn read(sim: &Simulator, criteria: &Value, limit: usize, order: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let body = json!({"criteria": criteria, "offset": all.len(), "limit": limit, "sort_field": "appl_id", "sort_order": order});
        let answer = search(sim, &body);
        let page = answer["results"].as_array().unwrap();
        all.extend(page.iter().cloned());
        if page.len() < limit {
            assert_eq!(answer["meta"]["total"], all.len());
            return all;
        }
    }
}

fn ids(records: &[Value]) -> Vec<u64> {
    records.iter().map(|record| record["appl_id"].as_u64().unwrap()).collect()
}

fn added(from: &str, to: &str) -> Value {
    json!({"date_added": {"from_date": from, "to_date": to}})
}

/// Proves that pages join without gap or duplicate in both orders, that months add up to the whole, and that earlier years have fewer
/// records.
#[test]
fn pages_and_windows_are_complete() {
    let sim = Simulator::new(options(600));
    let all = read(&sim, &json!({}), 50, "asc");
    let mut upwards = ids(&all);
    assert!(upwards.is_sorted_by(|one, other| one < other) && upwards.len() > 300, "{}", upwards.len());
    let downwards = ids(&read(&sim, &json!({}), 500, "desc"));
    upwards.reverse();
    assert_eq!(downwards, upwards);
    let (before, since) =
        (read(&sim, &added("2000-01-01", "2026-09-20"), 500, "asc"), read(&sim, &added("2026-09-21", "2026-11-20"), 500, "asc"));
    assert_eq!(before.len() + since.len(), all.len());
    let per_day = since.len() as f64 / 45.0;
    assert!((5.0..7.0).contains(&per_day) && before.len() < since.len(), "{per_day} a day, {} before", before.len());
    assert!(since.iter().all(|record| ("2026-09-21".."2026-11-21").contains(&&text(&record["date_added"])[..10])));
}

/// Proves that criteria select what they name, that unknown criteria are ignored, and that invalid requests are refused.
#[test]
fn criteria_select_matching_records() {
    let sim = Simulator::new(options(600));
    let all = read(&sim, &json!({}), 500, "asc");
    let checks: [(Value, Fits<'_>); 8] = [
        (json!({"org_states": ["MA"]}), &|record: &Value| record["organization"]["org_state"] == "MA"),
        (json!({"agencies": ["NCI"], "is_agency_admin": true}), &|record: &Value| record["agency_ic_admin"]["abbreviation"] == "NCI"),
        (json!({"activity_codes": ["R01", "R21"]}), &|record: &Value| ["R01", "R21"].contains(&record["activity_code"].as_str().unwrap())),
        (json!({"exclude_subprojects": true}), &|record: &Value| record["subproject_id"].is_null()),
        (json!({"fiscal_years": [2027]}), &|record: &Value| record["fiscal_year"] == 2027),
        (json!({"award_amount_range": {"min_amount": 500_000}}), &|record: &Value| {
            record["award_amount"].as_u64().is_some_and(|own| own >= 500_000)
        }),
        (json!({"org_names": ["university"]}), &|record: &Value| text(&record["organization"]["org_name"]).contains("UNIVERSITY")),
        (json!({"advanced_text_search": {"operator": "and", "search_field": "all", "search_text": "lung cancer"}}), &|record: &Value| {
            let own = format!("{}{}{}", record["project_title"], record["abstract_text"], record["pref_terms"]).to_lowercase();
            own.contains("lung") && own.contains("cancer")
        }),
    ];
    for (criteria, fits) in checks {
        let found = ids(&read(&sim, &criteria, 500, "asc"));
        let expected: Vec<Value> = all.iter().filter(|record| fits(record)).cloned().collect();
        assert_eq!(found, ids(&expected), "{criteria}");
        assert!(!found.is_empty() && found.len() < all.len(), "{criteria}");
    }
    assert_eq!(read(&sim, &json!({"appl_id": [1]}), 500, "asc").len(), all.len(), "ignored");
    let chosen = search(&sim, &json!({"include_fields": ["ApplId", "AgencyIcAdmin", "NoSuchField"], "limit": 1}));
    let names: Vec<&String> = chosen["results"][0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["agency_ic_admin", "appl_id", "no_such_field"]);
    for body in ["{\"limit\":501}", "{\"offset\":15000}", "{\"limit\":\"x\"}", "[]", ""] {
        assert_eq!(sim.answer_posted(PATH, body.as_bytes()).unwrap().status, 400, "{body}");
    }
    assert_ne!(search(&sim, &json!({}))["meta"]["search_id"], search(&sim, &json!({}))["meta"]["search_id"]);
}

/// Proves that each award with a part to play is shown as it should be: the amended amount, and the two that vanish, one of them for good.
#[test]
fn awards_play_their_parts() {
    let sim = Simulator::new(options(600));
    let parts = |sim: &Simulator| -> BTreeMap<String, Value> {
        let all = read(sim, &json!({}), 500, "asc").into_iter();
        let parts = all.filter(|record| record["appl_id"].as_u64().unwrap() >= PARTS_FROM);
        parts.map(|record| (text(&record["project_title"]).to_owned(), record)).collect()
    };
    let start = parts(&sim);
    assert_eq!(start.len(), 24);
    let (amended, gone, back) =
        ("Cryo-EM of an amended amount", "Freezers of an award that vanishes", "Freezers of an award that comes back");
    let on = |day: &str| {
        sim.set_today(day.parse().unwrap());
        let now = parts(&sim);
        (now[amended]["award_amount"].as_u64().unwrap(), now.contains_key(gone), now.contains_key(back))
    };
    assert_eq!(on("2026-11-21"), (400_000, true, true));
    assert_eq!(on("2026-11-22"), (650_000, true, true));
    assert_eq!(on("2026-11-28"), (650_000, false, false));
    assert_eq!(on("2026-12-06"), (650_000, false, true));
    assert!(start["An award without an organisation"]["organization"].is_null());
    assert!(start["Bioreactors without a notice of award"]["award_notice_date"].is_null());
}

/// Proves that each business day of four weeks adds grants and removes none, and that some amounts are amended in place.
#[test]
fn business_days_add_grants() {
    let sim = Simulator::new(options(600));
    let amounts = |records: &[Value]| -> BTreeMap<u64, Value> {
        let others = records.iter().filter(|record| record["appl_id"].as_u64().unwrap() < PARTS_FROM);
        others.map(|record| (record["appl_id"].as_u64().unwrap(), record["award_amount"].clone())).collect()
    };
    let (mut known, mut amended) = (amounts(&read(&sim, &json!({}), 500, "asc")), 0);
    for day in business_days() {
        sim.set_today(day);
        let now = amounts(&read(&sim, &json!({}), 500, "asc"));
        assert!(now.len() > known.len() && known.keys().all(|id| now.contains_key(id)), "{day}");
        amended += known.iter().filter(|(id, amount)| now[id] != **amount).count();
        known = now;
    }
    assert!(amended > 0);
}
