//! Fixtures: pages in the real format of their upstream under `tests/fixtures/<upstream>/`, and for each the expected mapping in
//! `<case>.expected.json`. `HIGHWATER_BLESS=1` writes the expected files; review them like code.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use schemas::facts::FactData;
use schemas::facts::grants::GrantFact;
use schemas::facts::recalls::RecallFact;
use schemas::facts::trials::TrialFact;
use schemas::position::UpstreamCursor;
use serde_json::{Value, json};
use upstreams::shopify::{Options, Store};
use upstreams::{Answer, Observation, OwnOptions, Page, Settings, Stream, Upstream, UpstreamError, Window, by_name};

/// The day on which all fixtures are read.
pub(crate) const TODAY: Date = date(2026, 9, 30);

/// Returns the upstream and stream with a name.
pub(crate) fn stream(name: &str) -> (&'static dyn Upstream, &'static Stream) {
    let upstream = by_name(name.split('.').next().unwrap()).unwrap();
    (upstream, upstream.manifest().streams.iter().find(|stream| stream.name == name).unwrap())
}

/// The window of the fixtures' requests.
pub(crate) fn window() -> Window {
    Window { from: Some(date(2026, 1, 1)), to: TODAY }
}

/// Settings that every upstream accepts.
pub(crate) fn settings() -> Settings {
    let store = Store { host: "shop.example".to_owned(), niche: "sneakers".to_owned(), interval_s: 3_600 };
    let own = OwnOptions::new(Options { stores: vec![store], ..Options::default() });
    Settings { user_agent: "Example Company ops@example.org".to_owned(), window_days: 7, own, ..Settings::default() }
}

/// Returns the cursor of the first page of a window, for a run on the fixtures' day. Rules for crawlers were read on that day.
pub(crate) fn start(name: &str, window: &Window) -> UpstreamCursor {
    let (upstream, stream) = stream(name);
    let at = TODAY.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let day = at.as_second() / 86_400;
    let memory = UpstreamCursor(format!(r#"{{"v":1,"stores":{{"shop.example":{{"robots_day":{day}}}}}}}"#));
    upstream.start_after(stream, window, &settings(), &memory, at)
}

/// Returns the path of the request at a cursor.
pub(crate) fn path(name: &str, cursor: &UpstreamCursor) -> String {
    let (upstream, stream) = stream(name);
    let api_key = ["sam_exclusions", "uspto_trademarks"].iter().any(|upstream| name.starts_with(upstream)).then(|| "key".to_owned());
    upstream.request(stream, cursor, &Settings { api_key, ..settings() }).unwrap().path
}

/// Maps a body as the answer at a cursor.
pub(crate) fn map_at(name: &str, cursor: &UpstreamCursor, answer: &Answer) -> Result<Page, UpstreamError> {
    let (upstream, stream) = stream(name);
    upstream.map(stream, cursor, answer, TODAY)
}

/// Maps a body as the first answer of a run.
pub(crate) fn map(name: &str, body: impl Into<Bytes>) -> Result<Page, UpstreamError> {
    map_at(name, &start(name, &window()), &ok(body))
}

/// Builds a successful answer.
pub(crate) fn ok(body: impl Into<Bytes>) -> Answer {
    Answer { status: 200, link: None, body: body.into() }
}

/// Returns the recall of an observation.
pub(crate) fn recall(observation: &Observation) -> &RecallFact {
    let FactData::Recall(fact) = &observation.data else { panic!("{observation:?}") };
    fact
}

/// Returns the grant of an observation.
pub(crate) fn grant(observation: &Observation) -> &GrantFact {
    let FactData::Grant(fact) = &observation.data else { panic!("{observation:?}") };
    fact
}

/// Returns the trial of an observation.
pub(crate) fn trial(observation: &Observation) -> &TrialFact {
    let FactData::Trial(fact) = &observation.data else { panic!("{observation:?}") };
    fact
}

/// Whether a record has an identity: no part of its key is empty, and numbers of filings and filers are complete.
fn has_identity(stream: &str, Observation { key, data, .. }: &Observation) -> bool {
    // Both streams of marks show the same records.
    let prefix = if let FactData::Mark(_) = data { "uspto_trademarks" } else { stream };
    let number = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'));
    let is_whole = match data {
        FactData::Filing(fact) => fact.accession.len() == 20 && fact.cik.len() == 10,
        FactData::InsiderTrade(fact) => fact.accession.len() == 20 && fact.issuer_cik.len() == 10,
        FactData::Mark(fact) => fact.serial.len() == 8,
        FactData::Statement(fact) => fact.cik.len() == 10,
        _ => true,
    };
    is_whole && number.is_some_and(|number| number.split('/').all(|part| !part.trim().is_empty()))
}

/// Returns the record with a key.
pub(crate) fn with_key<'a>(page: &'a Page, key: &str) -> &'a RecallFact {
    recall(page.observations.iter().find(|observation| observation.key == key).unwrap_or_else(|| panic!("{key} in {page:?}")))
}

/// Runs a stream over a window, with `answer` as the answer to each request. Returns the paths of all requests.
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

/// Lists the fixtures of an upstream, sorted: name, stream, answer. The name begins with the stream; `404` or `403` at its end is the
/// status.
pub(crate) fn fixtures(upstream: &str) -> Vec<(String, String, Answer)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder(upstream)).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        if file.ends_with(".expected.json") {
            continue;
        }
        let case = file.split('.').next().unwrap().to_owned();
        let stream = by_name(upstream)
            .unwrap()
            .manifest()
            .streams
            .iter()
            .map(|stream| stream.name)
            .rev()
            .find(|stream| stream.split_once('.').is_none_or(|(_, stream)| case.starts_with(stream)));
        let status = [403, 404].into_iter().find(|status| case.ends_with(&format!("_{status}"))).unwrap_or(200);
        let body = Bytes::from(fs::read(&path).unwrap());
        all.push((case, stream.unwrap().to_owned(), Answer { status, link: None, body }));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!all.is_empty());
    all
}

/// Maps one fixture.
pub(crate) fn fixture(upstream: &str, case: &str) -> Result<Page, UpstreamError> {
    let (_, stream, answer) = fixtures(upstream).into_iter().find(|(name, ..)| name == case).unwrap_or_else(|| panic!("fixture {case}"));
    map_at(&stream, &start(&stream, &window()), &answer)
}

/// Makes the tests that every upstream needs.
macro_rules! fixture_tests {
    ($upstream:expr) => {
        /// Proves that every fixture is mapped to its expected result.
        #[test]
        fn fixtures_give_what_is_expected() {
            $crate::common::check_all($upstream);
        }

        /// Proves that a damaged answer never makes the mapping panic or return records without identity.
        #[test]
        fn damage_gives_pages_or_errors() {
            $crate::common::mutate_all($upstream);
        }
    };
}
pub(crate) use fixture_tests;

/// Compares every fixture of an upstream with its expected result.
pub(crate) fn check_all(upstream: &str) {
    let bless = std::env::var_os("HIGHWATER_BLESS").is_some();
    for (case, stream, answer) in fixtures(upstream) {
        let got = describe(map_at(&stream, &start(&stream, &window()), &answer));
        let file = folder(upstream).join(format!("{case}.expected.json"));
        if bless {
            fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&got).unwrap())).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(got, expected, "{upstream}/{case}: got {}", serde_json::to_string_pretty(&got).unwrap());
    }
}

/// Maps every fixture of an upstream truncated and with flipped bits; each must give a page or an error.
pub(crate) fn mutate_all(upstream: &str) {
    let mut random = StdRng::seed_from_u64(7);
    let mut draw = |below: usize| random.random_range(..below);
    for (case, stream, answer) in fixtures(upstream) {
        let cursor = start(&stream, &window());
        let try_body = |body: Vec<u8>| {
            let answer = Answer { body: Bytes::from(body), ..answer.clone() };
            if let Ok(page) = map_at(&stream, &cursor, &answer) {
                for observation in page.observations {
                    assert!(has_identity(&stream, &observation), "{case}: {observation:?}");
                    // A record of a mark names no stream.
                    let is_named = !matches!(observation.data, FactData::Mark(_));
                    assert!(!is_named || stream_of(&observation.data) == *stream, "{case}");
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

/// Returns the stream that a record names. Most kinds of facts store it in the field `door`.
fn stream_of(data: &FactData) -> String {
    let record = serde_json::to_value(data).unwrap();
    let stream = record.get("door").or_else(|| record.get("stream"));
    stream.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn describe(result: Result<Page, UpstreamError>) -> Value {
    let page = match result {
        Ok(page) => page,
        Err(error @ UpstreamError::Later { .. }) => return json!({"later": error.to_string()}),
        Err(error) => return json!({"stop": error.to_string()}),
    };
    let observations = page.observations.iter().map(|observation| {
        let mut data = serde_json::to_value(&observation.data).unwrap();
        // Empty fields are omitted to make the files readable.
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
