//! The simulated USAspending.

use super::*;

pub(super) const AWARDS: &str = "/api/v2/search/spending_by_award/";
pub(super) const TRANSACTIONS: &str = "/api/v2/search/spending_by_transaction/";
pub(super) const CONTRACTS: [&str; 4] = ["A", "B", "C", "D"];
pub(super) const VEHICLES: [&str; 3] = ["IDV_B_B", "IDV_C", "IDV_E"];
const ACTION_FIELDS: [&str; 7] = ["Award ID", "Mod", "Action Date", "Action Type", "Transaction Amount", "naics_code", "Awarding Agency"];
const AWARD_FIELDS: [&str; 6] = ["Award ID", "Award Amount", "End Date", "Last Modified Date", "Recipient Name", "NAICS"];

fn post(sim: &Simulator, path: &str, body: &Value) -> (u16, Value) {
    let answer = sim.answer_posted(path, body.to_string().as_bytes()).unwrap();
    (answer.status, value(&answer))
}

/// Builds filters for contracts by a date in a window.
pub(super) fn filters(by: &str, from: &str, to: &str) -> Value {
    json!({"award_type_codes": CONTRACTS, "time_period": [{"start_date": from, "end_date": to, "date_type": by}]})
}

fn count(sim: &Simulator, path: &str, filters: &Value) -> u64 {
    let path = path
        .replace("/spending_by_award/", "/spending_by_award_count/")
        .replace("/spending_by_transaction/", "/spending_by_transaction_count/");
    post(sim, &path, &json!({ "filters": filters })).1["results"]["contracts"].as_u64().unwrap()
}

/// Returns all rows of a search, page by page.
pub(super) fn read(sim: &Simulator, path: &str, filters: &Value, sort: &str, order: &str, limit: u64) -> Vec<Value> {
    let fields: &[&str] = if path == AWARDS { &AWARD_FIELDS } else { &ACTION_FIELDS };
    let mut all = Vec::new();
    for page in 1.. {
        let body = json!({"filters": filters, "fields": fields, "sort": sort, "order": order, "limit": limit, "page": page});
        let (status, answer) = post(sim, path, &body);
        assert_eq!(status, 200, "{answer}");
        all.extend(answer["results"].as_array().unwrap().iter().cloned());
        if answer["page_metadata"]["hasNext"] == false {
            break;
        }
    }
    all
}

fn key(row: &Value) -> String {
    format!("{} {}", text(&row["generated_internal_id"]), text(&row["Mod"]))
}

fn keys(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(key).collect()
}

/// Proves that the rows match the counts, that awards page without a gap, and that single days add up to the window's actions, although
/// long pages of actions repeat some rows and hide others.
#[test]
fn counts_equal_rows() {
    let sim = Simulator::new(options(600));
    let month = filters("last_modified_date", "2026-10-21", "2026-11-20");
    let awards = read(&sim, AWARDS, &month, "Last Modified Date", "asc", 7);
    assert_eq!((awards.len() as u64, keys(&awards).len()), (count(&sim, AWARDS, &month), awards.len()));
    assert!(awards.is_sorted_by(|one, other| text(&one["Last Modified Date"]) <= text(&other["Last Modified Date"])));

    let year = filters("last_modified_date", "2025-11-21", "2026-11-20");
    let all = count(&sim, TRANSACTIONS, &year);
    let days = std::iter::successors(Some(date(2025, 11, 21)), |day| day.tomorrow().ok()).take(365).map(|day| day.to_string());
    let by_day: Vec<Value> =
        days.flat_map(|day| read(&sim, TRANSACTIONS, &filters("last_modified_date", &day, &day), "Award ID", "asc", 100)).collect();
    assert_eq!((by_day.len() as u64, keys(&by_day).len() as u64), (all, all));
    let by_type: usize = CONTRACTS
        .iter()
        .map(|code| {
            read(&sim, TRANSACTIONS, &json!({"award_type_codes": [code], "time_period": year["time_period"]}), "Award ID", "asc", 100).len()
        })
        .sum();
    assert_eq!(by_type as u64, all);
    let paged = read(&sim, TRANSACTIONS, &year, "Award ID", "asc", 5);
    assert!(
        paged.len() as u64 == all && (keys(&paged).len() as u64) < all,
        "without a tie-break some rows must be repeated and others missing"
    );
    let per_day = count(&sim, TRANSACTIONS, &month) as f64 / 22.0;
    assert!((4.0..14.0).contains(&per_day), "{per_day} a day");
}

/// Proves that an award's amount is the sum of its actions, that one award is found by its id, and that end dates are in the next months.
#[test]
fn award_amounts_are_sums_of_actions() {
    let sim = Simulator::new(options(600));
    let recent = filters("new_awards_only", "2026-07-23", "2026-11-20");
    let awards = read(&sim, AWARDS, &recent, "Award Amount", "desc", 100);
    for row in awards.iter().take(40) {
        let id = text(&row["generated_internal_id"]);
        let (_, history) = post(&sim, "/api/v2/transactions/", &json!({"award_id": id, "limit": 5000, "page": 1, "sort": "action_date"}));
        let cents = |value: &Value| (value.as_f64().unwrap() * 100.0).round() as i64;
        let actions = history["results"].as_array().unwrap();
        assert_eq!(
            actions.iter().map(|action| cents(&action["federal_action_obligation"])).sum::<i64>(),
            cents(&row["Award Amount"]),
            "{id}"
        );
        let detail = value(&get(&sim, &format!("/api/v2/awards/{id}/"), ""));
        assert_eq!((&detail["generated_unique_award_id"], cents(&detail["total_obligation"])), (&json!(id), cents(&row["Award Amount"])));
        assert_eq!(detail["period_of_performance"]["end_date"], row["End Date"]);
        if let Some(parent) = detail["parent_award"]["generated_unique_award_id"].as_str() {
            assert!(matches!(get(&sim, &format!("/api/v2/awards/{parent}/"), "").status, 200 | 404));
        }
    }
    let ending = |until: &str| awards.iter().filter(|row| ("2026-11-20"..=until).contains(&text(&row["End Date"]).as_str())).count();
    assert!(0 < ending("2027-02-18") && ending("2027-02-18") < ending("2027-05-19"));
    assert!(awards.iter().any(|row| row["Award Amount"].as_f64().unwrap() > 5e6));
    let names: BTreeSet<String> = awards.iter().map(|row| text(&row["Recipient Name"])).collect();
    assert!(names.len() > 5 && names.len() * 4 < awards.len(), "recipients must repeat: {} of {}", names.len(), awards.len());
    assert_eq!(get(&sim, "/api/v2/awards/CONT_AWD_NONE_7530_-NONE-_-NONE-/", "").status, 404);
    assert_eq!(value(&get(&sim, "/api/v2/awards/last_updated/", "")), json!({"last_updated": "11/20/2026"}));
}

/// Proves that filters select what they name, that unknown filters are reported, and that invalid requests are refused.
#[test]
fn filters_select_matching_records() {
    let sim = Simulator::new(options(600));
    let with = |name: &str, filter: Value| {
        let mut filters = filters("last_modified_date", "2026-01-01", "2026-11-20");
        filters[name] = filter;
        filters
    };
    let all = read(&sim, AWARDS, &with("award_type_codes", json!(CONTRACTS)), "Award ID", "asc", 100);
    let naics = |row: &Value| text(&row["NAICS"]["code"]);
    let checks: [(&str, Value, Fits<'_>); 5] = [
        ("naics_codes", json!({"require": ["54"]}), &|row| naics(row).starts_with("54")),
        ("naics_codes", json!({"exclude": ["54", "33"]}), &|row| !naics(row).starts_with("54") && !naics(row).starts_with("33")),
        ("award_amounts", json!([{"lower_bound": 5_000_000}]), &|row| row["Award Amount"].as_f64().unwrap() >= 5e6),
        ("recipient_search_text", json!(["northford"]), &|row| text(&row["Recipient Name"]).starts_with("NORTHFORD")),
        ("award_ids", json!([format!("\"{}\"", text(&all[3]["Award ID"]))]), &|row| row["Award ID"] == all[3]["Award ID"]),
    ];
    for (name, filter, fits) in checks {
        let found = keys(&read(&sim, AWARDS, &with(name, filter.clone()), "Award ID", "asc", 100));
        let expected: Vec<Value> = all.iter().filter(|row| fits(row)).cloned().collect();
        assert_eq!(found, keys(&expected), "{name} {filter}");
        assert!(!found.is_empty() && found.len() < all.len(), "{name} {filter}");
    }
    let ask = |filters: Value, more: Value| {
        let mut body = json!({"filters": filters, "fields": AWARD_FIELDS, "sort": "Award ID", "limit": 10, "page": 1});
        more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        post(&sim, AWARDS, &body)
    };
    let (_, answer) = ask(with("time_periods", json!([])), json!({}));
    assert!(answer["messages"][1].as_str().unwrap().contains("not used: {'time_periods'}"), "{answer}");
    let mixed = ask(with("award_type_codes", json!(["A", "IDV_C"])), json!({}));
    assert!(mixed.0 == 422 && mixed.1["award_type_groups"]["idvs"].is_array());
    for (more, status) in [
        (json!({"limit": 101}), 422),
        (json!({"page": 5_001}), 422),
        (json!({"sort": "PSC"}), 400),
        (json!({"fields": []}), 422),
        (json!({"last_record_unique_id": 1}), 422),
    ] {
        let (own, answer) = ask(with("award_type_codes", json!(VEHICLES)), more.clone());
        assert!(own == status && answer["detail"].is_string(), "{more}: {answer}");
    }
    // Beyond the window paging continues after a row.
    let (_, first) = ask(with("award_type_codes", json!(CONTRACTS)), json!({"order": "asc"}));
    let last = &first["page_metadata"];
    let onward = json!({"order": "asc", "last_record_unique_id": last["last_record_unique_id"], "last_record_sort_value": last["last_record_sort_value"]});
    let (_, second) = ask(with("award_type_codes", json!(CONTRACTS)), onward);
    assert_eq!(second["results"][0]["Award ID"], all[10]["Award ID"]);
}

/// Proves that each business day of four weeks adds actions, among them new awards, modifications and corrections, and removes none; and
/// that actions of the Department of Defense are published ninety days later.
#[test]
fn business_days_add_actions() {
    let sim = Simulator::new(options(600));
    let amounts = || -> BTreeMap<String, Value> {
        let days = std::iter::successors(Some(date(2026, 10, 1)), |day| day.checked_add(jiff::Span::new().days(8)).ok()).take(11);
        // Few enough days that all of their actions are on one page.
        let slices = days.flat_map(|day| {
            let to = day.checked_add(jiff::Span::new().days(7)).unwrap();
            read(&sim, TRANSACTIONS, &filters("action_date", &day.to_string(), &to.to_string()), "Award ID", "asc", 100)
        });
        slices.map(|row| (key(&row), row["Transaction Amount"].clone())).collect()
    };
    let (mut known, mut new, mut modified, mut corrected) = (amounts(), 0, 0, 0);
    for day in business_days() {
        sim.set_today(day);
        let now = amounts();
        assert!(now.len() > known.len() && known.keys().all(|key| now.contains_key(key)), "{day}");
        new += now.keys().filter(|key| !known.contains_key(*key) && key.ends_with(" 0")).count();
        modified += now.keys().filter(|key| !known.contains_key(*key) && !key.ends_with(" 0")).count();
        corrected += known.iter().filter(|(key, amount)| now[*key] != **amount).count();
        known = now;
    }
    assert!(new > 20 && modified > 20 && corrected > 0, "{new} {modified} {corrected}");
    let late = read(&sim, TRANSACTIONS, &filters("last_modified_date", "2026-09-25", "2026-12-18"), "Award ID", "asc", 100);
    assert!(late.iter().all(|row| row["Awarding Agency"] != "Department of Defense"));
    let early = read(&sim, TRANSACTIONS, &filters("last_modified_date", "2022-01-01", "2026-09-01"), "Award ID", "asc", 100);
    assert!(early.iter().any(|row| row["Awarding Agency"] == "Department of Defense"));
}
