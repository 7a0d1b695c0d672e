//! Records that cannot be mapped: each is stored once, hides no withdrawal of another record, and is never withdrawn itself. And what an
//! upgrade finds: records that were stored in another order of their lists are unchanged.

use std::sync::{Arc, Mutex};

use schemas::event::FactKind;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use upstreams::Settings;

use crate::engine::{Engine, fixed_clock, of_kind, settings};

/// A server whose every answer is one document, which a test can change.
#[derive(Clone)]
pub(crate) struct Document(Arc<Mutex<String>>);

impl Document {
    /// Starts a server with a document. Returns it and the settings of an upstream at its address.
    pub(crate) async fn serve(records: &[Value]) -> (Self, Settings) {
        let document = Self(Arc::new(Mutex::new(json!(records).to_string())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let own = document.clone();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if connection.read(&mut byte).await.unwrap_or(0) == 0 {
                        break;
                    }
                    head.push(byte[0]);
                }
                let body = own.0.lock().unwrap().clone();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = connection.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await;
            }
        });
        (document, settings(&format!("http://{address}")))
    }

    pub(crate) fn set(&self, records: &[Value]) {
        *self.0.lock().unwrap() = json!(records).to_string();
    }
}

/// Ordinary notices with the numbers 001 to `count`.
fn notices(count: usize) -> Vec<Value> {
    let notice = |number: usize| {
        json!({"field_recall_number": format!("{number:03}-2026"), "field_title": format!("Pier Meats Recalls Ham {number}"),
            "field_recall_date": "2026-01-01", "field_recall_type": "Closed Recall", "field_recall_reason": ["Misbranding"],
            "field_product_items": ["Ham"], "field_states": ["Ohio", "Iowa"], "langcode": "English"})
    };
    (1..=count).map(notice).collect()
}

/// Runs the stream once; it must finish.
async fn run(engine: &Engine, settings: &Settings) -> schemas::event::Run {
    let run = engine.run("fsis", settings).await.remove(0).unwrap().run;
    engine.wait_projected().await;
    run
}

/// The keys that were withdrawn so far, without stream and language.
async fn withdrawn(engine: &Engine) -> Vec<String> {
    let facts = engine.facts().await;
    of_kind(&facts, FactKind::Withdrawn).iter().map(|fact| fact["key"].as_str().unwrap()[5..8].to_owned()).collect()
}

/// Proves that a record that is rejected in every run is stored once and does not keep another record from being withdrawn; and that a
/// stored record that can no longer be read is not withdrawn while it is rejected, but is when it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn known_rejects_hide_no_withdrawal() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let mut all = notices(40);
    all[0]["field_recall_number"] = json!("");
    let (document, settings) = Document::serve(&all).await;
    let first = run(&engine, &settings).await;
    assert_eq!((first.rejected, first.known_rejected, first.appended), (1, 0, 39));
    let second = run(&engine, &settings).await;
    assert_eq!((second.rejected, second.known_rejected, second.appended), (1, 1, 0));
    assert_eq!(engine.export("rejected", true).await.len(), 1, "the same record is stored once");

    // 002 is gone from the upstream; 001 is still rejected.
    all.remove(1);
    document.set(&all);
    run(&engine, &settings).await;
    assert_eq!(withdrawn(&engine).await, Vec::<String>::new(), "one run is not enough");
    run(&engine, &settings).await;
    assert_eq!(withdrawn(&engine).await, ["002"]);

    // 003 is still there, but cannot be read any more: it must stay, however many runs there are.
    all[1]["langcode"] = json!("Klingon");
    document.set(&all);
    for known in [1, 2, 2, 2] {
        let run = run(&engine, &settings).await;
        assert_eq!((run.rejected, run.known_rejected, run.withheld), (2, known, vec!["fsis/003-2026/en".to_owned()]));
        assert!(run.reason.contains("1 missing records may be among the 2 rejected ones"), "{}", run.reason);
    }
    // Meanwhile 004 goes, and is withdrawn.
    all.remove(2);
    document.set(&all);
    run(&engine, &settings).await;
    run(&engine, &settings).await;
    assert_eq!(withdrawn(&engine).await, ["002", "004"]);
    assert_eq!(engine.export("rejected", true).await.len(), 2);
    // Nothing is rejected any more and 003 is gone: two runs later it is withdrawn.
    let good = all.split_off(2);
    document.set(&good);
    run(&engine, &settings).await;
    run(&engine, &settings).await;
    assert_eq!(withdrawn(&engine).await, ["002", "004", "003"]);
    engine.close().await;
}

/// Proves that a mapped field that every stored record had stops the stream with its name when no record of a run has it, on however small
/// a page, and that nothing is blanked; and that one record less with it is an ordinary change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_field_stops_the_stream() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let all = notices(12);
    let (document, settings) = Document::serve(&all).await;
    run(&engine, &settings).await;
    let (facts, feed) = (engine.facts().await, engine.feed().await);
    for field in ["field_product_items", "field_states", "field_recall_reason", "field_title", "field_recall_date"] {
        for value in [None, Some(json!({"x": "Ham"})), Some(json!([]))] {
            let mut renamed = all.clone();
            for record in &mut renamed {
                let old = record.as_object_mut().unwrap().remove(field).unwrap();
                match &value {
                    Some(value) => record[field] = value.clone(),
                    None => record[format!("{field}_new")] = old,
                }
            }
            document.set(&renamed);
            let error = ingest::reason(&engine.run("fsis", &settings).await.remove(0).unwrap_err());
            assert!(error.contains(&format!("field {field}: present in 12 of 12")), "{error}");
        }
    }
    engine.wait_projected().await;
    assert_eq!((engine.facts().await, engine.feed().await), (facts, feed), "nothing is blanked");

    let mut one_less = all.clone();
    one_less[3].as_object_mut().unwrap().remove("field_product_items");
    document.set(&one_less);
    assert_eq!(run(&engine, &settings).await.appended, 1);
    engine.close().await;
}

/// Proves that another order of a record's lists appends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_order_appends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open_with(dir.path(), fixed_clock(), &["recalls"]).await;
    let mut all = notices(5);
    let (document, settings) = Document::serve(&all).await;
    assert_eq!(run(&engine, &settings).await.appended, 5);
    all.iter_mut().for_each(|record| record["field_states"].as_array_mut().unwrap().reverse());
    document.set(&all);
    assert_eq!(run(&engine, &settings).await.appended, 0);
    engine.close().await;
}
