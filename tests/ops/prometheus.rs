//! Alert rules and dashboards: each uses metrics that exist, each alert has its words, and promtool fires it by its fault.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::metrics::defined;
use crate::{file, text, yaml};

/// The names in an expression that look like metrics: a room of ours, and what follows.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let rooms = ["ingest_", "log_", "projector_", "api_", "engine_", "runtime_"];
    expression
        .split(|character: char| !is_name(character))
        .filter(|word| rooms.iter().any(|room| word.starts_with(room)))
        .map(str::to_owned)
        .collect()
}

fn assert_exist(place: &str, expression: &str) -> usize {
    let defined = defined();
    let used = metrics_in(expression);
    for name in &used {
        let whole = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).filter(|name| defined.contains_key(*name));
        assert!(defined.contains_key(name) || whole.is_some(), "{place}: there is no metric {name}");
    }
    used.len()
}

fn rules() -> Vec<Value> {
    let file = yaml("ops/prometheus/alerts.yml");
    file["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// Proves that every alert uses metrics that exist, says what is wrong, and has its section in the runbook and its fault in the tests of the rules.
#[test]
fn alerts() {
    let (tests, runbook) = (text("ops/prometheus/alerts_test.yml"), text("ops/docs/operations/runbooks/alerts.md"));
    let rules = rules();
    assert_eq!(runbook.matches("\n## ").count(), rules.len(), "a section of the runbook is left over");
    for rule in rules {
        let alert = rule["alert"].as_str().unwrap();
        let used = assert_exist(alert, rule["expr"].as_str().unwrap());
        assert!(used > 0 || alert == "NodeDown", "{alert} uses no metric of ours");
        assert!(runbook.contains(&format!("\n## {alert}\n")), "{alert} is not in the runbook");
        assert_eq!(rule["annotations"]["runbook"], format!("ops/docs/operations/runbooks/alerts.md#{}", alert.to_lowercase()));
        assert!(!rule["annotations"]["summary"].as_str().unwrap().is_empty());
        assert!(["warning", "critical"].contains(&rule["labels"]["severity"].as_str().unwrap()), "{alert}");
        assert!(tests.contains(&format!("        alertname: {alert}\n        exp_alerts:\n")), "{alert} is fired by no test");
    }
}

/// Proves that the alerts fire by their faults and are silent before, as far as promtool is there; under `CI=true` it must be.
#[test]
fn alerts_fire() {
    let output = Command::new(file("ops/checks/prometheus")).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}

/// Proves that every panel asks the provisioned source for metrics that exist, and that every metric has a place on the dashboard.
#[test]
fn dashboard() {
    let dashboard: Value = serde_json::from_str(&text("ops/grafana/dashboards/highwater.json")).unwrap();
    let source = yaml("ops/grafana/provisioning/datasources/prometheus.yml")["datasources"][0]["uid"].clone();
    let mut shown = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title} has another panel's id");
        if panel["type"] == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], source, "{title}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title} shows nothing");
        for target in targets {
            let expression = target["expr"].as_str().unwrap();
            assert!(assert_exist(title, expression) > 0, "{title} uses no metric of ours");
            shown.extend(metrics_in(expression));
        }
    }
    for name in defined().into_keys() {
        assert!(shown.contains(&name) || shown.contains(&format!("{name}_bucket")), "{name} is on no panel");
    }
}
