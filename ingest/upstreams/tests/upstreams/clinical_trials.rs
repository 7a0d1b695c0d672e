//! ClinicalTrials.gov: requests, paging, data versions, and the mapping of studies.

use jiff::civil::date;
use serde_json::{Value, json};
use upstreams::{Answer, UpstreamError, Window};

use crate::common::*;

const STREAM: &str = "clinical_trials";

fn study(number: usize, updated: &str) -> Value {
    json!({"protocolSection": {
        "identificationModule": {"nctId": format!("NCT{number:08}"), "briefTitle": "Title"},
        "statusModule": {"overallStatus": "RECRUITING", "lastUpdatePostDateStruct": {"date": updated}},
        "sponsorCollaboratorsModule": {"leadSponsor": {"name": "Sponsor"}}}})
}

fn page_of(numbers: std::ops::Range<usize>, token: Option<&str>, total: Option<usize>) -> Answer {
    let mut body = json!({"studies": numbers.map(|number| study(number, "2026-09-10")).collect::<Vec<_>>()});
    if let Some(token) = token {
        body["nextPageToken"] = json!(token);
    }
    if let Some(total) = total {
        body["totalCount"] = json!(total);
    }
    ok(body.to_string())
}

fn version(stamp: &str) -> Answer {
    ok(json!({"apiVersion": "2.0.5", "dataTimestamp": stamp}).to_string())
}

fn september() -> Window {
    Window { from: Some(date(2026, 9, 5)), to: TODAY }
}

/// Decodes the query of a path.
fn plain(path: &str) -> String {
    path.replace("%5B", "[").replace("%5D", "]").replace("%2C", ",").replace("%3A", ":").replace("%7C", "|")
}

fixture_tests!(STREAM);

/// Proves the order of requests (the version, then the windows up to today) and that the registry knows all parameters.
#[test]
fn requests_use_known_parameters() {
    let paths = walk(STREAM, &september(), |path| if path.ends_with("version") { version("a") } else { page_of(0..2, None, Some(2)) });
    assert_eq!((&*paths[0], &*paths[2], paths.len()), ("/api/v2/version", "/api/v2/version", 3));
    let path = plain(&paths[1]);
    assert!(
        path.starts_with(
            "/api/v2/studies?filter.advanced=AREA[LastUpdatePostDate]RANGE[2026-09-05,MAX]&sort=LastUpdatePostDate:asc&fields=NCTId|"
        ),
        "{path}"
    );
    assert!(path.ends_with("&pageSize=1000&countTotal=true"), "{path}");
    assert!(!path.contains("filter.phase") && !path.contains(' '));
}

/// Proves that a full run reads two years, month by month, and that the last window has no end.
#[test]
fn a_full_run_reads_two_years() {
    let paths = walk(STREAM, &Window { from: None, to: TODAY }, |_| page_of(0..1, None, None));
    assert_eq!(paths.len(), 25, "the first answer counts as a page too");
    assert!(plain(&paths[1]).contains("RANGE[2024-10-01,2024-10-31]") && plain(&paths[24]).contains("RANGE[2026-09-01,MAX]"), "{paths:?}");
}

/// Proves that page tokens are sent unchanged, encoded, without another count, also after an empty page.
#[test]
fn tokens_are_followed() {
    let mut requested = 0;
    let paths = walk(STREAM, &september(), |path| {
        requested += usize::from(!path.ends_with("version"));
        match requested {
            0 => version("a"),
            1 => page_of(0..3, Some("a+b/=&c"), Some(5)),
            2 => page_of(0..0, Some("d"), None),
            3 if !path.ends_with("version") => page_of(3..5, None, None),
            _ => version("a"),
        }
    });
    assert!(paths[2].ends_with("&pageSize=1000&pageToken=a%2Bb%2F%3D%26c") && paths[3].ends_with("&pageToken=d"), "{paths:?}");
    assert_eq!(paths.len(), 5);
}

/// Proves that a page that names itself as the next ends the window with a warning about missing records.
#[test]
fn a_page_that_follows_itself_ends() {
    let first = map_at(STREAM, &start(STREAM, &september()), &page_of(0..5, Some("t"), Some(21))).unwrap();
    let page = map_at(STREAM, &first.next.unwrap(), &page_of(0..5, Some("t"), Some(21))).unwrap();
    assert!(page.next.is_none());
    assert!(page.warnings.iter().any(|warning| warning.contains("ended early")), "{:?}", page.warnings);
    assert!(page.warnings.iter().any(|warning| warning.contains("but sent 10")), "{:?}", page.warnings);
}

/// Proves that the last days are read again, once, when the data version changed during a run.
#[test]
fn a_moved_version_is_read_once_more() {
    let mut requested = 0;
    let paths = walk(STREAM, &september(), |path| {
        requested += 1;
        if path.ends_with("version") { version(&requested.to_string()) } else { page_of(0..1, None, Some(1)) }
    });
    assert_eq!(paths.len(), 4);
    assert!(plain(&paths[3]).contains("RANGE[2026-09-27,MAX]"), "{paths:?}");
}

/// Proves that a registry without a version is read.
#[test]
fn no_version_is_no_failure() {
    for answer in [Answer { status: 404, ..ok("<html>Not Found</html>") }, ok("{}"), ok("no json")] {
        let page = map_at(STREAM, &start(STREAM, &september()), &answer).unwrap();
        assert!(page.warnings[0].contains("names no version"), "{:?}", page.warnings);
        let last = map_at(STREAM, &page.next.unwrap(), &page_of(0..1, None, Some(1))).unwrap();
        assert!(last.next.is_none());
    }
}

/// Proves that an invalid answer is requested again.
#[test]
fn an_answer_without_studies_is_none() {
    let first = map_at(STREAM, &start(STREAM, &september()), &version("a")).unwrap().next.unwrap();
    for body in ["", "<html>", "{}", r#"{"message":"slow down"}"#, r#"{"studies":[{"#] {
        assert!(matches!(map_at(STREAM, &first, &ok(body)), Err(UpstreamError::Later { .. })), "{body}");
    }
}

/// Proves that an ignored filter stops the stream with an error that names it.
#[test]
fn an_ignored_filter_stops() {
    let studies: Vec<_> = (0..600).map(|number| study(number, "2011-01-01")).collect();
    let error = map(STREAM, json!({"studies": studies}).to_string()).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "filter.advanced"));
}

/// Proves that a field missing on most records stops the stream with an error that names it.
#[test]
fn drift_names_the_field() {
    for (pointer, name) in [
        ("/protocolSection/identificationModule/nctId", "identificationModule.nctId"),
        ("/protocolSection/statusModule/overallStatus", "statusModule.overallStatus"),
        ("/protocolSection/statusModule/lastUpdatePostDateStruct/date", "statusModule.lastUpdatePostDateStruct.date"),
        ("/protocolSection/sponsorCollaboratorsModule/leadSponsor", "sponsorCollaboratorsModule.leadSponsor"),
    ] {
        let mut studies: Vec<_> = (0..20).map(|number| study(number, "2026-09-10")).collect();
        for study in &mut studies[..11] {
            *study.pointer_mut(pointer).unwrap() = json!(7);
        }
        let error = map(STREAM, json!({"studies": studies}).to_string()).unwrap_err();
        assert!(matches!(&error, UpstreamError::Stop { field, .. } if field == name), "{error}");
    }
}

/// Proves that posting date and order of sites do not change the content hash, and that the status does.
#[test]
fn what_means_nothing_moves_no_hash() {
    let hash = |change: fn(&mut Value)| {
        let mut study = study(1, "2026-09-10");
        study["protocolSection"]["contactsLocationsModule"] = json!({"locations": [
            {"facility": "Harbour Clinic", "state": "Maine", "country": "United States"}, {"facility": "Alder Hospital", "country": "France"}]});
        study["derivedSection"] = json!({"miscInfoModule": {"versionHolder": "2026-09-10"}});
        change(&mut study);
        let page = map(STREAM, json!({"studies": [study]}).to_string()).unwrap();
        page.observations[0].data.canonical()
    };
    let before = hash(|_| {});
    assert_eq!(before, hash(|study| study["protocolSection"]["statusModule"]["lastUpdatePostDateStruct"]["date"] = json!("2026-09-20")));
    assert_eq!(before, hash(|study| study["protocolSection"]["contactsLocationsModule"]["locations"].as_array_mut().unwrap().reverse()));
    assert_eq!(before, hash(|study| study["derivedSection"] = json!({"miscInfoModule": {"versionHolder": "2026-09-20"}})));
    assert_ne!(before, hash(|study| study["protocolSection"]["statusModule"]["overallStatus"] = json!("COMPLETED")));
}

/// Proves that a module or part that cannot be read (half a character, a doubled key, another type) rejects the study and blanks nothing.
#[test]
fn an_unreadable_part_rejects_the_study() {
    let whole = study(1, "2026-09-10").to_string();
    for (from, to, named) in [
        (r#""overallStatus":"RECRUITING""#, r#""overallStatus":"\ud800""#, "statusModule"),
        (r#""overallStatus":"RECRUITING""#, r#""overallStatus":"RECRUITING","overallStatus":"RECRUITING""#, "statusModule"),
        (
            r#""lastUpdatePostDateStruct":{"date":"2026-09-10"}"#,
            r#""lastUpdatePostDateStruct":{"date":"\udfff"}"#,
            "lastUpdatePostDateStruct",
        ),
        (r#""leadSponsor":{"name":"Sponsor"}"#, r#""leadSponsor":"Sponsor""#, "leadSponsor"),
        (r#""leadSponsor":{"name":"Sponsor"}"#, r#""leadSponsor":{"name":"Sponsor"},"collaborators":[7]"#, "collaborators"),
        (r#""statusModule":{"#, r#""designModule":7,"statusModule":{"#, "designModule"),
    ] {
        assert!(whole.contains(from), "{from} in {whole}");
        let (broken, good) = (whole.replacen(from, to, 1), study(2, "2026-09-10"));
        let page = map(STREAM, format!(r#"{{"studies":[{broken},{good}]}}"#)).unwrap();
        assert_eq!((page.observations.len(), page.rejects.len()), (1, 1), "{to}");
        assert!(page.rejects[0].reason.starts_with(&format!("{named} is not readable")), "{}", page.rejects[0].reason);
        assert_eq!(page.rejects[0].raw, broken.as_bytes());
    }
}

/// Proves that the order of conditions, keywords, interventions and phases is not content, and that a record that was stored in the
/// registry's order counts as unchanged.
#[test]
fn order_is_no_content() {
    let observed = |is_reversed: bool| {
        let mut study = study(1, "2026-09-10");
        let list = |mut items: Vec<Value>| {
            if is_reversed {
                items.reverse();
            }
            items
        };
        let drugs = list(vec![json!({"type": "DRUG", "name": "B"}), json!({"type": "DRUG", "name": "A"})]);
        study["protocolSection"]["conditionsModule"] =
            json!({"conditions": list(vec!["Stroke".into(), "Asthma".into()]), "keywords": list(vec!["y".into(), "x".into()])});
        study["protocolSection"]["designModule"] = json!({"phases": list(vec!["PHASE2".into(), "PHASE1".into()])});
        study["protocolSection"]["armsInterventionsModule"] = json!({"interventions": drugs});
        map(STREAM, json!({"studies": [study]}).to_string()).unwrap().observations.remove(0)
    };
    let (one, other) = (observed(false), observed(true));
    assert_eq!(one.data, other.data);
    let fact = trial(&one);
    assert_eq!((fact.conditions.as_slice(), fact.phase.as_str()), (&["Asthma".to_owned(), "Stroke".to_owned()][..], "PHASE1/PHASE2"));
    let Some(schemas::facts::FactData::Trial(former)) = one.former else { panic!("no former record") };
    assert_eq!(
        (former.conditions[0].as_str(), former.interventions[0].name.as_str(), former.phase.as_str()),
        ("Stroke", "B", "PHASE2/PHASE1")
    );
    assert_eq!(other.former, None);
}
