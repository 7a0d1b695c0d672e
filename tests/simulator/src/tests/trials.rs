//! The simulated ClinicalTrials.gov.

use super::*;

const PATH: &str = "/api/v2/studies";
const ID: &str = "/protocolSection/identificationModule/nctId";
const STATUS: &str = "/protocolSection/statusModule/overallStatus";
const UPDATED: &str = "/protocolSection/statusModule/lastUpdatePostDateStruct/date";

fn at<'a>(study: &'a Value, pointer: &str) -> &'a str {
    study.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns all studies of a search, page by page.
pub(super) fn read(sim: &Simulator, query: &str) -> Vec<Value> {
    let (mut all, mut total, mut token) = (Vec::new(), None, String::new());
    loop {
        let page = value(&get(sim, PATH, &format!("{query}&countTotal=true{token}")));
        all.extend(page["studies"].as_array().unwrap().iter().cloned());
        assert_eq!(page["totalCount"].is_null(), !token.is_empty(), "only the first page has a total");
        total = total.or_else(|| page["totalCount"].as_u64());
        match page["nextPageToken"].as_str() {
            Some(next) => token = format!("&pageToken={next}"),
            None => {
                assert_eq!(total, Some(all.len() as u64));
                return all;
            }
        }
    }
}

fn updated(range: &str) -> String {
    format!("filter.advanced=AREA%5BLastUpdatePostDate%5DRANGE%5B{range}%5D&sort=LastUpdatePostDate:asc")
}

/// Proves that pages join without gap or duplicate, that windows add up to the whole, and that empty fields are omitted.
#[test]
fn pages_and_windows_are_complete() {
    let sim = Simulator::new(options(600));
    let all = read(&sim, "pageSize=1000");
    let ids: BTreeSet<&str> = all.iter().map(|study| at(study, ID)).collect();
    assert!(ids.len() == all.len() && all.len() > 250, "{} of {}", ids.len(), all.len());
    let paged = read(&sim, &format!("{}&pageSize=7", updated("MIN,MAX")));
    assert_eq!(paged.iter().map(|study| at(study, ID)).collect::<BTreeSet<_>>(), ids);
    assert!(paged.is_sorted_by(|one, other| at(one, UPDATED) <= at(other, UPDATED)));
    let (before, since) = (read(&sim, &updated("MIN,2026-10-31")), read(&sim, &updated("2026-11-01,MAX")));
    assert!(before.len() + since.len() == all.len() && before.iter().all(|study| at(study, UPDATED) < "2026-11-01"));
    let record = serde_json::to_string(&all).unwrap();
    assert!(!record.contains("null") && !record.contains("\"\"") && !record.contains("[]") && !record.contains("{}"));
}

/// Proves that filters and queries select what they name, that fields can be chosen, and that unknown names are refused.
#[test]
fn filters_select_matching_records() {
    let sim = Simulator::new(options(600));
    let all = read(&sim, "pageSize=1000");
    let phases = |study: &Value| study.pointer("/protocolSection/designModule/phases").cloned().unwrap_or_default();
    let checks: [(&str, Fits<'_>); 6] = [
        ("filter.overallStatus=RECRUITING|SUSPENDED", &|study| ["RECRUITING", "SUSPENDED"].contains(&at(study, STATUS))),
        ("filter.advanced=AREA[Phase]PHASE3", &|study| phases(study) == json!(["PHASE3"])),
        ("filter.advanced=NOT+AREA[StudyType]INTERVENTIONAL+AND+(AREA[HasNone]x)", &|_| false),
        ("filter.advanced=AREA[LeadSponsorClass]INDUSTRY+OR+AREA[LeadSponsorClass]NIH", &|study| {
            ["INDUSTRY", "NIH"].contains(&at(study, "/protocolSection/sponsorCollaboratorsModule/leadSponsor/class"))
        }),
        ("query.cond=melanoma", &|study| at(study, "/protocolSection/conditionsModule/conditions/0") == "Melanoma"),
        ("filter.advanced=AREA[EnrollmentCount]RANGE[100,200]", &|study| {
            study
                .pointer("/protocolSection/designModule/enrollmentInfo/count")
                .and_then(Value::as_u64)
                .is_some_and(|count| (100..=200).contains(&count))
        }),
    ];
    for (query, fits) in checks {
        if query.contains("HasNone") {
            assert!(String::from_utf8(get(&sim, PATH, query).body).unwrap().contains("unknown area `HasNone`"));
            continue;
        }
        let found: BTreeSet<String> = read(&sim, &format!("{query}&pageSize=1000")).iter().map(|study| at(study, ID).to_owned()).collect();
        let expected: BTreeSet<String> = all.iter().filter(|study| fits(study)).map(|study| at(study, ID).to_owned()).collect();
        assert_eq!(found, expected, "{query}");
        assert!(!found.is_empty() && found.len() < all.len(), "{query}");
    }
    let few = read(&sim, "fields=NCTId,LocationState|LeadSponsorName&pageSize=1000");
    assert_eq!(few[0]["protocolSection"]["statusModule"], Value::Null);
    assert!(few.iter().any(|study| !at(study, "/protocolSection/contactsLocationsModule/locations/0/state").is_empty()));
    for (query, words) in [
        ("filter.phase=PHASE3", "`filter.phase` is unknown parameter"),
        ("fields=", "`fields` parameter has incorrect value"),
        ("fields=NCTID", "`fields` parameter has incorrect value"),
        ("sort=BriefTitle:asc", "`sort` parameter has incorrect value"),
        ("pageToken=x", "`pageToken` parameter has incorrect value"),
        ("filter.advanced=((((", "`filter.advanced` parameter has incorrect value"),
    ] {
        let answer = get(&sim, PATH, query);
        assert!(answer.status == 400 && String::from_utf8(answer.body).unwrap().contains(words), "{query}");
    }
    let deep = "(".repeat(100_000);
    assert_eq!(get(&sim, PATH, &format!("filter.advanced={deep}")).status, 400, "deep nesting must be refused");
    assert_eq!(value(&get(&sim, PATH, "pageSize=0"))["studies"].as_array().unwrap().len(), 10);
}

/// Proves that one study is found by its number, that an old number leads to it, and that the data version is that of the last working day.
#[test]
fn study_by_number_and_data_version() {
    let sim = Simulator::new(options(600));
    let all = read(&sim, "pageSize=1000");
    let one = &all[all.len() / 2];
    assert_eq!(&value(&get(&sim, &format!("{PATH}/{}", at(one, ID)), "")), one);
    let merged = all.iter().find(|study| study.pointer("/protocolSection/identificationModule/nctIdAliases").is_some()).unwrap();
    let alias = at(merged, "/protocolSection/identificationModule/nctIdAliases/0");
    let moved = get(&sim, &format!("{PATH}/{alias}"), "");
    assert_eq!((moved.status, moved.location), (301, Some(format!("{PATH}/{}", at(merged, ID)))));
    assert_eq!(get(&sim, &format!("{PATH}/NCT99999999"), "").status, 404);
    sim.set_today(date(2026, 11, 22));
    assert_eq!(value(&get(&sim, "/api/v2/version", ""))["dataTimestamp"], "2026-11-20T09:00:05");
    sim.set_today(date(2026, 11, 23));
    assert_eq!(value(&get(&sim, "/api/v2/version", ""))["dataTimestamp"], "2026-11-23T09:00:05");
}

/// Proves that each business day of four weeks posts and updates studies, and that statuses, end dates and results change.
#[test]
fn business_days_add_studies_and_updates() {
    let sim = Simulator::new(options(600));
    let by_id =
        || -> BTreeMap<String, Value> { read(&sim, "pageSize=1000").into_iter().map(|study| (at(&study, ID).to_owned(), study)).collect() };
    let (mut known, mut statuses, mut ends, mut results) = (by_id(), 0, 0, 0);
    for day in business_days() {
        sim.set_today(day);
        let now = by_id();
        assert!(now.len() > known.len(), "{day}");
        let moved: Vec<(&Value, &Value)> =
            known.iter().map(|(id, old)| (old, &now[id])).filter(|(old, new)| at(old, UPDATED) != at(new, UPDATED)).collect();
        assert!(!moved.is_empty() && moved.iter().all(|(_, new)| at(new, UPDATED) == day.to_string()), "{day}");
        statuses += moved.iter().filter(|(old, new)| at(old, STATUS) != at(new, STATUS)).count();
        let end = "/protocolSection/statusModule/primaryCompletionDateStruct/date";
        ends += moved.iter().filter(|(old, new)| at(old, end) != at(new, end)).count();
        results += moved.iter().filter(|(old, new)| old["hasResults"] != new["hasResults"]).count();
        known = now;
    }
    assert!(statuses > 10 && ends > 5 && results > 0, "{statuses} {ends} {results}");
}
