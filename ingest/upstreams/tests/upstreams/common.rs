//! Fixtures: pages in the true form of their upstream under `tests/fixtures/<upstream>/`, and beside each `<case>.expected.json`,
//! what it must be mapped to. `HIGHWATER_BLESS=1` writes these files anew, to be read like code.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::civil::{Date, date};
use schemas::facts::FactData;
use schemas::facts::grants::GrantFact;
use schemas::facts::recalls::RecallFact;
use schemas::facts::trials::TrialFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::{Answer, Door, Observation, Page, Settings, Upstream, UpstreamError, Window, by_name};

/// The day on which all fixtures are read.
pub(crate) const TODAY: Date = date(2026, 9, 30);

/// The upstream and door of that name.
pub(crate) fn door(name: &str) -> (&'static dyn Upstream, &'static Door) {
    let upstream = by_name(name.split('.').next().unwrap()).unwrap();
    (upstream, upstream.manifest().doors.iter().find(|door| door.name == name).unwrap())
}

/// The days that fixtures are asked for.
pub(crate) fn window() -> Window {
    Window { from: Some(date(2026, 1, 1)), to: TODAY }
}

/// Settings of who may ask any upstream.
pub(crate) fn settings() -> Settings {
    Settings { user_agent: "Example Company ops@example.org".to_owned(), window_days: 7, ..Settings::default() }
}

/// The cursor of the first page for a window.
pub(crate) fn start(name: &str, window: &Window) -> UpstreamCursor {
    let (upstream, door) = door(name);
    upstream.start(door, window, &settings())
}

/// The path of the request at a cursor.
pub(crate) fn path(name: &str, cursor: &UpstreamCursor) -> String {
    let (upstream, door) = door(name);
    upstream.request(door, cursor, &settings()).unwrap().path
}

/// Maps a body as the answer to a cursor.
pub(crate) fn map_at(name: &str, cursor: &UpstreamCursor, answer: &Answer) -> Result<Page, UpstreamError> {
    let (upstream, door) = door(name);
    upstream.map(door, cursor, answer, TODAY)
}

/// Maps a body as the first answer of a run.
pub(crate) fn map(name: &str, body: impl Into<Bytes>) -> Result<Page, UpstreamError> {
    map_at(name, &start(name, &window()), &ok(body))
}

/// A good answer.
pub(crate) fn ok(body: impl Into<Bytes>) -> Answer {
    Answer { status: 200, link: None, body: body.into() }
}

/// The record of an observation.
pub(crate) fn recall(observation: &Observation) -> &RecallFact {
    let FactData::Recall(fact) = &observation.data else { panic!("{observation:?}") };
    fact
}

/// The grant of an observation.
pub(crate) fn grant(observation: &Observation) -> &GrantFact {
    let FactData::Grant(fact) = &observation.data else { panic!("{observation:?}") };
    fact
}

/// The trial of an observation.
pub(crate) fn trial(observation: &Observation) -> &TrialFact {
    let FactData::Trial(fact) = &observation.data else { panic!("{observation:?}") };
    fact
}

/// Whether a record says what it is of: every part of its key says something, and numbers of filings and filers are whole.
fn has_identity(door: &str, Observation { key, data, .. }: &Observation) -> bool {
    let number = key.strip_prefix(door).and_then(|rest| rest.strip_prefix('/'));
    let is_whole = match data {
        FactData::Filing(fact) => fact.accession.len() == 20 && fact.cik.len() == 10,
        FactData::InsiderTrade(fact) => fact.accession.len() == 20 && fact.issuer_cik.len() == 10,
        _ => true,
    };
    is_whole && number.is_some_and(|number| number.split('/').all(|part| !part.trim().is_empty()))
}

/// The record with that key.
pub(crate) fn with_key<'a>(page: &'a Page, key: &str) -> &'a RecallFact {
    recall(page.observations.iter().find(|observation| observation.key == key).unwrap_or_else(|| panic!("{key} in {page:?}")))
}

/// The paths to run a door from a window's first to its last page, each page answered by `answer`.
pub(crate) fn walk(name: &str, window: &Window, mut answer: impl FnMut(&str) -> Answer) -> Vec<String> {
    let (mut cursor, mut paths) = (Some(start(name, window)), Vec::new());
    while let Some(at) = cursor {
        paths.push(path(name, &at));
        assert!(paths.len() < 1_000, "{name} does not end");
        cursor = map_at(name, &at, &answer(paths.last().unwrap())).unwrap().next;
    }
    paths
}

/// The folder of an upstream's fixtures.
pub(crate) fn folder(upstream: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(upstream)
}

/// The fixtures of an upstream, sorted: name, door, answer. The name's beginning is the door, `404` or `403` at its end the status.
pub(crate) fn fixtures(upstream: &str) -> Vec<(String, String, Answer)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder(upstream)).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        if file.ends_with(".expected.json") {
            continue;
        }
        let case = file.split('.').next().unwrap().to_owned();
        let door = by_name(upstream)
            .unwrap()
            .manifest()
            .doors
            .iter()
            .map(|door| door.name)
            .rev()
            .find(|door| door.split_once('.').is_none_or(|(_, door)| case.starts_with(door)));
        let status = [403, 404].into_iter().find(|status| case.ends_with(&format!("_{status}"))).unwrap_or(200);
        let body = Bytes::from(fs::read(&path).unwrap());
        all.push((case, door.unwrap().to_owned(), Answer { status, link: None, body }));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!all.is_empty());
    all
}

/// One fixture mapped.
pub(crate) fn fixture(upstream: &str, case: &str) -> Result<Page, UpstreamError> {
    let (_, door, answer) = fixtures(upstream).into_iter().find(|(name, ..)| name == case).unwrap_or_else(|| panic!("fixture {case}"));
    map_at(&door, &start(&door, &window()), &answer)
}

/// Compares every fixture of an upstream with what is expected of it.
pub(crate) fn check_all(upstream: &str) {
    let bless = std::env::var_os("HIGHWATER_BLESS").is_some();
    for (case, door, answer) in fixtures(upstream) {
        let got = describe(map_at(&door, &start(&door, &window()), &answer));
        let file = folder(upstream).join(format!("{case}.expected.json"));
        if bless {
            fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&got).unwrap())).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(got, expected, "{upstream}/{case}: got {}", serde_json::to_string_pretty(&got).unwrap());
    }
}

/// Maps every fixture of an upstream cut short and with flipped bits; each must give a page or an error.
pub(crate) fn mutate_all(upstream: &str) {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    for (case, door, answer) in fixtures(upstream) {
        let cursor = start(&door, &window());
        let try_body = |body: Vec<u8>| {
            let answer = Answer { body: Bytes::from(body), ..answer.clone() };
            if let Ok(page) = map_at(&door, &cursor, &answer) {
                for observation in page.observations {
                    assert!(has_identity(&door, &observation), "{case}: {observation:?}");
                    assert_eq!(serde_json::to_value(&observation.data).unwrap()["door"], *door, "{case}");
                }
            }
        };
        for end in (0..answer.body.len()).step_by(37) {
            try_body(answer.body[..end].to_vec());
        }
        for _ in 0..300 {
            let mut body = answer.body.to_vec();
            for _ in 0..=draw(4) {
                let at = draw(body.len());
                body[at] ^= u8::try_from(1 + draw(255)).unwrap();
            }
            try_body(body);
        }
    }
}

fn describe(result: Result<Page, UpstreamError>) -> Value {
    let page = match result {
        Ok(page) => page,
        Err(error @ UpstreamError::Later { .. }) => return json!({"later": error.to_string()}),
        Err(error) => return json!({"stop": error.to_string()}),
    };
    let observations = page.observations.iter().map(|observation| {
        let mut data = serde_json::to_value(&observation.data).unwrap();
        // What says nothing is left out, to keep the files readable.
        data.as_object_mut().unwrap().retain(|_, value| ![json!(""), json!([]), json!(false), Value::Null].contains(value));
        json!({"key": observation.key, "data": data, "replaces": observation.replaces})
    });
    let rejects = page
        .rejects
        .iter()
        .map(|reject| json!({"reference": reject.reference, "reason": reject.reason, "raw": String::from_utf8_lossy(&reject.raw)}));
    let next = page.next.as_ref().map(|next| serde_json::from_str::<Value>(&next.0).unwrap());
    json!({
        "observations": observations.collect::<Vec<_>>(),
        "rejects": rejects.collect::<Vec<_>>(),
        "next": next,
        "warnings": page.warnings,
    })
}
