//! The trial registry: what is asked, how pages and versions are followed, and what trials are mapped to.

use jiff::civil::date;
use serde_json::{Value, json};
use upstreams::{Answer, UpstreamError, Window};

use crate::common::*;

const DOOR: &str = "clinical_trials";

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

/// A query with its escapes undone.
fn plain(path: &str) -> String {
    path.replace("%5B", "[").replace("%5D", "]").replace("%2C", ",").replace("%3A", ":").replace("%7C", "|")
}

/// Proves that every fixture is mapped to what stands beside it.
#[test]
fn fixtures_give_what_is_expected() {
    check_all(DOOR);
}

/// Proves that no damage to an answer makes the mapping panic or give records without identity.
#[test]
fn damage_gives_pages_or_errors() {
    mutate_all(DOOR);
}

/// Proves what is asked: the version, then the window up to what is newest, in order, by parameters that the registry knows.
#[test]
fn asks_as_the_registry_wants() {
    let paths = walk(DOOR, &september(), |path| if path.ends_with("version") { version("a") } else { page_of(0..2, None, Some(2)) });
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

/// Proves that a full run reads two years, month by month, the last of them without an end.
#[test]
fn a_full_run_reads_two_years() {
    let paths = walk(DOOR, &Window { from: None, to: TODAY }, |_| page_of(0..1, None, None));
    assert_eq!(paths.len(), 25, "the first answer stands for a page, too");
    assert!(plain(&paths[1]).contains("RANGE[2024-10-01,2024-10-31]") && plain(&paths[24]).contains("RANGE[2026-09-01,MAX]"), "{paths:?}");
}

/// Proves that tokens are followed as they are, encoded, without asking to count again, and through an empty page.
#[test]
fn tokens_are_followed() {
    let mut asked = 0;
    let paths = walk(DOOR, &september(), |path| {
        asked += usize::from(!path.ends_with("version"));
        match asked {
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

/// Proves that a page that names itself as the next ends the window, with a word about what did not come.
#[test]
fn a_page_that_follows_itself_ends() {
    let first = map_at(DOOR, &start(DOOR, &september()), &page_of(0..5, Some("t"), Some(21))).unwrap();
    let page = map_at(DOOR, &first.next.unwrap(), &page_of(0..5, Some("t"), Some(21))).unwrap();
    assert!(page.next.is_none());
    assert!(page.warnings.iter().any(|warning| warning.contains("ended early")), "{:?}", page.warnings);
    assert!(page.warnings.iter().any(|warning| warning.contains("holds 21 records by the answer, 10 came")), "{:?}", page.warnings);
}

/// Proves that a version that moved during a run has the last days read once more, and once only.
#[test]
fn a_moved_version_is_read_once_more() {
    let mut asked = 0;
    let paths = walk(DOOR, &september(), |path| {
        asked += 1;
        if path.ends_with("version") { version(&asked.to_string()) } else { page_of(0..1, None, Some(1)) }
    });
    assert_eq!(paths.len(), 4);
    assert!(plain(&paths[3]).contains("RANGE[2026-09-27,MAX]"), "{paths:?}");
}

/// Proves that a registry without a version is read all the same.
#[test]
fn no_version_is_no_failure() {
    for answer in [Answer { status: 404, ..ok("<html>Not Found</html>") }, ok("{}"), ok("no json")] {
        let page = map_at(DOOR, &start(DOOR, &september()), &answer).unwrap();
        assert!(page.warnings[0].contains("names no version"), "{:?}", page.warnings);
        let last = map_at(DOOR, &page.next.unwrap(), &page_of(0..1, None, Some(1))).unwrap();
        assert!(last.next.is_none());
    }
}

/// Proves that an answer that is none is asked for again.
#[test]
fn an_answer_without_studies_is_none() {
    let first = map_at(DOOR, &start(DOOR, &september()), &version("a")).unwrap().next.unwrap();
    for body in ["", "<html>", "{}", r#"{"message":"slow down"}"#, r#"{"studies":[{"#] {
        assert!(matches!(map_at(DOOR, &first, &ok(body)), Err(UpstreamError::Later { .. })), "{body}");
    }
}

/// Proves that a filter that was ignored stops the door and is named.
#[test]
fn an_ignored_filter_stops() {
    let studies: Vec<_> = (0..600).map(|number| study(number, "2011-01-01")).collect();
    let error = map(DOOR, json!({"studies": studies}).to_string()).unwrap_err();
    assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "filter.advanced"));
}

/// Proves that a field that is gone on most records stops the door and is named.
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
        let error = map(DOOR, json!({"studies": studies}).to_string()).unwrap_err();
        assert!(matches!(&error, UpstreamError::Stop { field, .. } if field == name), "{error}");
    }
}

/// Proves that the day of the last posting and the order of sites move no hash, and that a status does.
#[test]
fn what_means_nothing_moves_no_hash() {
    let hash = |change: fn(&mut Value)| {
        let mut study = study(1, "2026-09-10");
        study["protocolSection"]["contactsLocationsModule"] = json!({"locations": [
            {"facility": "Harbour Clinic", "state": "Maine", "country": "United States"}, {"facility": "Alder Hospital", "country": "France"}]});
        study["derivedSection"] = json!({"miscInfoModule": {"versionHolder": "2026-09-10"}});
        change(&mut study);
        let page = map(DOOR, json!({"studies": [study]}).to_string()).unwrap();
        page.observations[0].data.canonical()
    };
    let before = hash(|_| {});
    assert_eq!(before, hash(|study| study["protocolSection"]["statusModule"]["lastUpdatePostDateStruct"]["date"] = json!("2026-09-20")));
    assert_eq!(before, hash(|study| study["protocolSection"]["contactsLocationsModule"]["locations"].as_array_mut().unwrap().reverse()));
    assert_eq!(before, hash(|study| study["derivedSection"] = json!({"miscInfoModule": {"versionHolder": "2026-09-20"}})));
    assert_ne!(before, hash(|study| study["protocolSection"]["statusModule"]["overallStatus"] = json!("COMPLETED")));
}
