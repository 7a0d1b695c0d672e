//! docker-compose.yml and the Dockerfile, as far as they can be held against the repository without an image.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Map, Value};

use crate::{file, text, yaml};

fn services() -> Map<String, Value> {
    yaml("docker-compose.yml")["services"].as_object().unwrap().clone()
}

/// A list of texts, empty if it is not there.
fn texts(value: &Value) -> Vec<&str> {
    value.as_array().map(|list| list.iter().map(|item| item.as_str().unwrap()).collect()).unwrap_or_default()
}

/// Proves that every service says how it is and comes back by itself, that images are pinned, and that no port is open beyond this machine.
#[test]
fn services_are_whole() {
    for (name, service) in services() {
        let test = texts(&service["healthcheck"]["test"]);
        assert!(test.len() > 1 && ["CMD", "CMD-SHELL"].contains(&test[0]), "{name} has no health check");
        assert_eq!(service["restart"], "unless-stopped", "{name}");
        if service["build"].is_null() {
            let tag = service["image"].as_str().unwrap().split_once(':').unwrap().1;
            assert!(tag.contains(|character: char| character.is_ascii_digit()), "{name} is not pinned: {tag}");
        }
        for port in texts(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name} is open beyond this machine: {port}");
        }
    }
}

/// Proves that what services name is there: other services, volumes, mounted files; and that no volume is left over.
#[test]
fn what_is_named_is_there() {
    let (all, compose) = (services(), yaml("docker-compose.yml"));
    let mut used = BTreeSet::new();
    for (name, service) in &all {
        for (other, how) in service["depends_on"].as_object().into_iter().flatten() {
            assert!(all.contains_key(other), "{name} depends on {other}");
            assert_eq!(how["condition"], "service_healthy", "{name}");
            assert!(all[other]["profiles"].is_null(), "{name} depends on {other}, which may be left out");
        }
        for volume in texts(&service["volumes"]) {
            let source = volume.split(':').next().unwrap();
            if source.starts_with('.') {
                assert!(file(source).exists(), "{name} mounts {source}");
                assert!(volume.ends_with(":ro"), "{name} may write {source}");
            } else {
                used.insert(source.to_owned());
            }
        }
    }
    let declared: BTreeSet<String> = compose["volumes"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(used, declared);
    let dashboards = yaml("ops/grafana/provisioning/dashboards/highwater.yml")["providers"][0]["options"]["path"].clone();
    let grafana = texts(&all["grafana"]["volumes"]).join(" ");
    assert!(grafana.contains(&format!("dashboards:{}:ro", dashboards.as_str().unwrap())), "{grafana}");
}

/// Proves that the three roles run, on Kafka and ScyllaDB, and that every setting of ours that a service is given is in the manual.
#[test]
fn roles_and_settings() {
    let all = services();
    let manual: toml::Table = text("src/default.toml").parse().unwrap();
    for role in ["ingest", "project", "api"] {
        assert_eq!(texts(&all[role]["command"]), ["serve", "--role", role]);
        let (log, store) = (&all[role]["environment"]["HIGHWATER_LOG"], &all[role]["environment"]["HIGHWATER_STORE"]);
        assert_eq!((log, store), (&"kafka://kafka:9092".into(), &"scylla://scylla:9042".into()), "{role}");
    }
    let mut settings = 0;
    for (name, service) in &all {
        for (variable, _) in service["environment"].as_object().into_iter().flatten() {
            let Some(path) = variable.strip_prefix("HIGHWATER_") else { continue };
            let mut at = Some(&toml::Value::Table(manual.clone())).cloned();
            for part in path.split("__") {
                at = at.and_then(|value| value.get(part.to_lowercase()).cloned());
            }
            assert!(at.is_some_and(|value| !value.is_table()), "{name}: {variable} is in no manual");
            settings += 1;
        }
    }
    assert!(settings > 15, "{settings}");
}

/// Proves that the roles are scraped under the names and the port at which they are.
#[test]
fn prometheus_scrapes_the_roles() {
    let config = yaml("ops/prometheus/prometheus.yml");
    let roles = &config["scrape_configs"][0]["dns_sd_configs"][0];
    let all = services();
    for role in texts(&roles["names"]) {
        assert_eq!(all[role]["environment"]["HIGHWATER_LISTEN"], format!("0.0.0.0:{}", roles["port"]), "{role}");
    }
    assert_eq!(texts(&roles["names"]).len(), 3);
}

/// Proves that the image is built from a pinned base, with a compiler that the workspace takes, from the lock file, and does not run as root.
#[test]
fn dockerfile() {
    let dockerfile = text("Dockerfile");
    let bases: Vec<&str> = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert_eq!(bases.len(), 2);
    for base in &bases {
        assert!(base.split_once(':').unwrap().1.starts_with(|character: char| character.is_ascii_digit()), "{base}");
    }
    let manifest: toml::Table = text("Cargo.toml").parse().unwrap();
    let floor = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(bases[0].starts_with(&format!("rust:{floor}.")), "{} is not {floor}", bases[0]);
    assert!(dockerfile.contains("cargo build --release --locked"));
    assert!(dockerfile.contains("\nUSER highwater\n"));
    assert!(text(".dockerignore").lines().any(|line| line == "target"));
}

/// Proves that docker compose itself takes the file, with every profile, as far as it is there; under `CI=true` it must be.
#[test]
fn docker_compose_takes_it() {
    let output = Command::new(file("ops/checks/compose")).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}
