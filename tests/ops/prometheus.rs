//! Alert rules and dashboards use metrics that exist, every alert has a runbook section, and promtool makes it fire.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::metrics::defined;
use crate::{file, text, yaml};

/// Returns the names in an expression that begin like our metrics.
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

/// Proves that every alert uses metrics that exist, has a summary, a section in the runbook and a test that makes it fire.
#[test]
fn alerts() {
    let tests = ["alerts_test.yml", "alerts_days_test.yml"].map(|name| text(&format!("ops/prometheus/{name}"))).concat();
    let runbook = text("ops/docs/operations/runbooks/alerts.md");
    let rules = rules();
    assert_eq!(runbook.matches("\n## ").count(), rules.len(), "the runbook has a section without an alert");
    for rule in rules {
        let alert = rule["alert"].as_str().unwrap();
        let used = assert_exist(alert, rule["expr"].as_str().unwrap());
        assert!(used > 0 || ["NodeDown", "RoleMissing"].contains(&alert), "{alert} uses no metric of ours");
        assert!(runbook.contains(&format!("\n## {alert}\n")), "{alert} is not in the runbook");
        assert_eq!(rule["annotations"]["runbook"], format!("ops/docs/operations/runbooks/alerts.md#{}", alert.to_lowercase()));
        assert!(!rule["annotations"]["summary"].as_str().unwrap().is_empty());
        assert!(["warning", "critical"].contains(&rule["labels"]["severity"].as_str().unwrap()), "{alert}");
        assert!(tests.contains(&format!("        alertname: {alert}\n        exp_alerts:\n")), "{alert} has no test that makes it fire");
    }
}

/// Proves that scraped processes have the label by which RoleMissing knows them: the name of a role, which the stack has as a service.
#[test]
fn scraped_processes_have_a_role() {
    let scraped = yaml("ops/prometheus/prometheus.yml")["scrape_configs"][0].clone();
    assert_eq!(scraped["job_name"], "highwater");
    let relabeled = &scraped["relabel_configs"][0];
    assert_eq!((&relabeled["source_labels"][0], &relabeled["target_label"]), (&"__meta_dns_name".into(), &"role".into()));
    let services = yaml("docker-compose.yml")["services"].clone();
    for role in scraped["dns_sd_configs"][0]["names"].as_array().unwrap() {
        let command = services[role.as_str().unwrap()]["command"].clone();
        assert_eq!(command.as_array().unwrap().last(), Some(role));
    }
}

/// Proves that the alerts fire in their tests and are silent before, if promtool is installed; under `CI=true` it must be.
#[test]
fn alerts_fire() {
    let output = Command::new(file("ops/checks/prometheus")).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}

/// Proves that every panel queries the provisioned source for metrics that exist, and that every metric is on the dashboard.
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
