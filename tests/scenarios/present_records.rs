//! Records of which an answer only says that they are present: they are not missing from a part of which a run has shown every record, and an
//! observation that follows is the first one of its key.

use std::time::Duration;

use jiff::civil::Date;
use schemas::event::{FactKind, Run};
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;
use schemas::position::UpstreamCursor;
use schemas::topics::RECALLS;
use serde_json::{Value, json};
use upstreams::{Answer, Licence, Manifest, Observation, Page, Request, Settings, Stream, Upstream, UpstreamError, Window};

use crate::engine::{Engine, fixed_clock, of_kind};
use crate::rejected_records::Document;

/// A register whose document has the records of each page. A record without a title is one that is not taken over.
struct Register;

static MANIFEST: Manifest = Manifest {
    name: "fsis",
    licence: Licence::of_government("Food Safety and Inspection Service"),
    streams: &[Stream {
        name: "fsis",
        topic: &RECALLS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 1 << 20,
        answer_timeout: Duration::from_secs(60),
    }],
    full_after: Duration::from_secs(7 * 86_400),
};

impl Register {
    /// The number of the page at a cursor.
    fn page_number(cursor: &UpstreamCursor) -> usize {
        cursor.0.parse().unwrap()
    }
}

impl Upstream for Register {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, _window: &Window, _settings: &Settings) -> UpstreamCursor {
        UpstreamCursor("0".to_owned())
    }

    fn request(&self, _stream: &Stream, _cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let origin = "https://register.example".to_owned();
        Ok(Request { origin, path: "/".to_owned(), media_types: &["application/json"], ..Request::default() })
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, _today: Date) -> Result<Page, UpstreamError> {
        let pages: Vec<Vec<Value>> = serde_json::from_slice(&answer.body).unwrap();
        let (number, mut page) = (Self::page_number(cursor), Page::default());
        for record in &pages[number] {
            let key = format!("{}/{}", stream.name, record["number"]);
            match record["title"].as_str() {
                Some(title) => {
                    let fact = RecallFact {
                        stream: stream.name.to_owned(),
                        agency: "USDA".to_owned(),
                        number: record["number"].to_string(),
                        title: title.to_owned(),
                        ..RecallFact::default()
                    };
                    page.observations.push(Observation::new(key, FactData::Recall(Box::new(fact))));
                }
                None => page.present.push(key),
            }
        }
        match number + 1 {
            next if next < pages.len() => page.next = Some(UpstreamCursor(next.to_string())),
            _ => page.complete_part = Some(stream.name.to_owned()),
        }
        Ok(page)
    }
}

/// A record that is taken over.
fn shown(number: usize) -> Value {
    json!({"number": number, "title": format!("Ham {number}")})
}

/// A record that is not taken over.
fn present(number: usize) -> Value {
    json!({"number": number})
}

/// Runs the stream once over the pages; it must finish.
async fn run(engine: &Engine, document: &Document, settings: &Settings, pages: &[Vec<Value>]) -> Run {
    document.set(&pages.iter().map(|page| json!(page)).collect::<Vec<_>>());
    let run = engine.runner.sync(&Register, settings).await.unwrap().remove(0).unwrap().run;
    engine.wait_projected().await;
    run
}

/// The keys that were withdrawn so far, sorted.
async fn withdrawn(engine: &Engine) -> Vec<String> {
    let facts = engine.facts().await;
    let mut keys: Vec<String> = of_kind(&facts, FactKind::Withdrawn).iter().map(|fact| fact["key"].as_str().unwrap().to_owned()).collect();
    keys.sort_unstable();
    keys
}

/// Proves that a known record is not withdrawn while complete answers say that it is present, that it is when two of them in a row lack it, and that its
/// observation on a later page of a run counts although an earlier page has named it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn present_records_are_not_missing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), fixed_clock()).await;
    let (document, settings) = Document::serve(&[]).await;
    let rest = || (3..=8).map(shown);
    assert_eq!(run(&engine, &document, &settings, &[(1..=8).map(shown).collect()]).await.appended, 8);

    // The register no longer has the first record, and still has the second, which is not taken over any more.
    let named: Vec<Value> = [present(2)].into_iter().chain(rest()).collect();
    let once = run(&engine, &document, &settings, std::slice::from_ref(&named)).await;
    assert_eq!((once.appended, once.missing), (0, vec!["fsis/1".to_owned()]));
    let twice = run(&engine, &document, &settings, &[named]).await;
    assert_eq!((twice.appended, twice.missing), (1, Vec::new()));
    assert_eq!(withdrawn(&engine).await, ["fsis/1"]);

    // A page names the second record before the next one shows it, in another version.
    let modified = json!({"number": 2, "title": "Ham with milk"});
    let pages = [vec![present(2)], [modified].into_iter().chain(rest()).collect()];
    let shown_later = run(&engine, &document, &settings, &pages).await;
    assert_eq!((shown_later.appended, shown_later.missing), (1, Vec::new()));

    for appended in [0, 1] {
        assert_eq!(run(&engine, &document, &settings, &[rest().collect()]).await.appended, appended);
    }
    assert_eq!(withdrawn(&engine).await, ["fsis/1", "fsis/2"]);
    engine.close().await;
}
