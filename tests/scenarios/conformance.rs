//! MCP and OpenAPI held against outside judges: the official conformance suites, by a service of fixture tools that only tests have, and
//! schemathesis.

use std::path::Path;
use std::process::Command;

use operation::problem::Problem;
use operation::{Answer, Method, Operation, Price, Service, Words};
use schemars::JsonSchema;
use schemas::clock::Clock;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commands::NOWHERE;
use crate::engine::Engine;
use crate::fed::Served;
use crate::process::{Server, highwater, stdout};

/// Examples of each operation, beside the edges of each parameter.
const EXAMPLES: &str = "3";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// What the fixture says.
#[derive(Serialize, JsonSchema)]
struct Text {
    /// The words.
    text: &'static str,
}

/// The suites' tools that answer with what a tool of ours can: text, or a failure.
fn fixtures() -> Vec<Service> {
    let words = |name: &'static str, path: &'static str| Words {
        name,
        method: Method::Get,
        path,
        summary: "A fixture of the conformance suites.",
        description: "",
        price: Price::Free,
        tool: true,
        counted: false,
        list: "",
        errors: &[ErrorCode::NotFound],
        example: json!({}),
        aliases: &[],
    };
    let text = Operation::define::<Nothing, Text, _, _>(words("test_simple_text", "/text"), |_, Nothing {}| async {
        Answer::json(&Text { text: "This is a simple text response for testing." })
    });
    let failure = Operation::define::<Nothing, Text, _, _>(words("test_error_handling", "/failure"), |_, Nothing {}| async {
        Err(Problem::new(ErrorCode::NotFound, "This tool intentionally returns an error for testing"))
    });
    let operations = vec![text, failure];
    vec![Service { name: "fixtures", title: "Fixtures", about: "Fixtures of the conformance suites.", operations, files: None }]
}

/// Proves that MCP is spoken to the letter of both revisions, as the official suites have it; what they ask for and we do not offer is listed
/// beside `ops/checks/conformance`, with reasons, and nothing else fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_suites_agree() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), Clock::System).await;
    let served = Served::of(fixtures, &engine, Clock::System, None);
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/conformance"));
    check.arg(format!("http://{}/fixtures/mcp", served.address));
    let output = tokio::task::spawn_blocking(move || check.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", String::from_utf8_lossy(&output.stdout));
    served.stop().await;
    engine.close().await;
}

/// Proves that every operation of every service, with a key and without, answers as its OpenAPI says, whatever it is asked.
#[test]
fn answers_are_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut command = highwater(&data, NOWHERE, &["demo", "--still"]);
    for tier in ["FREE", "FLEET_PLUS"] {
        command.env(format!("HIGHWATER_TIERS__{tier}__CALLS_PER_DAY"), "1000000000");
    }
    let server = Server::ready(command);
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "fleet_plus"]));
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/openapi"));
    let examples = std::env::var("OPENAPI_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let output = check.arg(format!("http://{}", server.address)).arg(examples).env("HIGHWATER_KEY", key.trim()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", String::from_utf8_lossy(&output.stdout));
}
