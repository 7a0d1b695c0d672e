//! Checks of MCP and OpenAPI by external tools: the official MCP conformance suites, run against a service of fixture tools that only tests
//! have, and schemathesis.

use std::path::Path;
use std::process::Command;

use operation::problem::Problem;
use operation::{Answer, Definition, Method, Operation, Price, Service, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::HttpApi;
use crate::child::run_check;
use crate::commands::NOWHERE;
use crate::demo_history;
use crate::engine::{Engine, moving_clock};
use crate::process::{Server, highwater, stdout};

/// Examples of each operation that schemathesis generates, in addition to the edges of each parameter.
const EXAMPLES: &str = "3";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoInput {}

/// The answer of a fixture tool.
#[derive(Serialize, JsonSchema)]
struct Text {
    /// The text of the answer.
    text: &'static str,
}

/// The fixture tools of the suites whose answers our tools can express: a text or an error.
fn fixtures() -> Vec<Service> {
    let message = |name: &'static str, path: &'static str| Definition {
        name,
        method: Method::Get,
        path,
        summary: "A fixture of the conformance suites.",
        when: "",
        description: "",
        price: Price::Free,
        surface: Surface::Both,
        counted: false,
        list: "",
        errors: &[ErrorCode::NotFound],
        example: json!({}),
        ..Definition::read()
    };
    let text = Operation::define::<NoInput, Text, _, _>(message("test_simple_text", "/text"), |_, NoInput {}| async {
        Answer::json(&Text { text: "This is a simple text response for testing." })
    });
    let failure = Operation::define::<NoInput, Text, _, _>(message("test_error_handling", "/failure"), |_, NoInput {}| async {
        Err(Problem::new(ErrorCode::NotFound, "This tool intentionally returns an error for testing"))
    });
    let operations = vec![text, failure];
    vec![Service {
        name: "fixtures",
        title: "Fixtures",
        about: "Fixtures of the conformance suites.",
        operations,
        files: None,
        data: Vec::new(),
        page: operation::RecordPage::default(),
        entities: &[],
    }]
}

/// Proves that MCP conforms to both revisions according to the official suites. Scenarios that we do not support are listed next to
/// `ops/checks/conformance` with reasons, and all others pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn official_mcp_suites_pass() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), moving_clock()).await;
    let http_api = HttpApi::with_services(fixtures, &engine, moving_clock(), None);
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/conformance"));
    check.arg(format!("http://{}/fixtures/mcp", http_api.address));
    println!("{}", tokio::task::spawn_blocking(move || run_check(check)).await.unwrap());
    http_api.stop().await;
    engine.close().await;
}

/// Proves that clients in TypeScript and Python can be generated from the OpenAPI document of every service, compile, and make a typed call each.
#[test]
fn generated_clients_work() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let server = Server::ready(highwater(&data, NOWHERE, demo_history::STILL));
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "pro"]));
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/clients"));
    check.arg(format!("http://{}", server.address)).env("HIGHWATER_KEY", key.trim());
    println!("{}", run_check(check));
}

/// Proves that every operation of every service, with and without a key, answers generated requests as its OpenAPI document says. The findings of all
/// services are printed, and the last line names each service that has some.
#[test]
fn answers_match_openapi() {
    let dir = tempfile::tempdir().unwrap();
    let data = demo_history::copy_to(dir.path());
    let mut command = highwater(&data, NOWHERE, demo_history::STILL);
    for tier in ["FREE", "FLEET_PLUS"] {
        command.env(format!("HIGHWATER_TIERS__{tier}__CALLS_PER_DAY"), "1000000000");
    }
    let server = Server::ready(command);
    let key = stdout(highwater(&data, NOWHERE, &["keys", "mint", "--tier", "fleet_plus"]));
    let mut check = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/checks/openapi"));
    let examples = std::env::var("OPENAPI_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    check.arg(format!("http://{}", server.address)).arg(examples).env("HIGHWATER_KEY", key.trim());
    println!("{}", run_check(check));
}
