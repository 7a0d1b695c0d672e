//! docker-compose.yml and the Dockerfile, as far as they can be checked without building an image.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Map, Value};

use crate::{file, text, yaml};

fn services() -> Map<String, Value> {
    yaml("docker-compose.yml")["services"].as_object().unwrap().clone()
}

/// Returns the items of a list of texts; empty if there is no list.
fn texts(value: &Value) -> Vec<&str> {
    value.as_array().map(|list| list.iter().map(|item| item.as_str().unwrap()).collect()).unwrap_or_default()
}

/// Proves that every service has a health check and restarts, that images are pinned, and that ports are open on loopback only.
#[test]
fn services_have_health_checks_and_pinned_images() {
    for (name, service) in services() {
        let test = texts(&service["healthcheck"]["test"]);
        assert!(test.len() > 1 && ["CMD", "CMD-SHELL"].contains(&test[0]), "{name} has no health check");
        assert_eq!(service["restart"], "unless-stopped", "{name}");
        if service["build"].is_null() {
            let tag = service["image"].as_str().unwrap().split_once(':').unwrap().1;
            assert!(tag.contains(|character: char| character.is_ascii_digit()), "{name} is not pinned: {tag}");
        }
        for port in texts(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name} opens a port beyond loopback: {port}");
        }
    }
}

/// Proves that services, volumes and mounted files that services name exist, and that no volume is unused.
#[test]
fn references_exist() {
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

/// Proves that the three roles run on Kafka and ScyllaDB, and that every Highwater setting of a service is in src/default.toml.
#[test]
fn roles_and_settings() {
    let all = services();
    let manual: toml::Table = text("src/default.toml").parse().unwrap();
    for role in ["ingest", "project", "api"] {
        assert_eq!(texts(&all[role]["command"]), ["serve", "--role", role]);
        let (log, store) = (&all[role]["environment"]["HIGHWATER_LOG"], &all[role]["environment"]["HIGHWATER_STORE"]);
        assert_eq!((log, store), (&"kafka://${KAFKA_BROKERS:-kafka:9092}".into(), &"scylla://scylla:9042".into()), "{role}");
    }
    let mut settings = 0;
    for (name, service) in &all {
        for (variable, _) in service["environment"].as_object().into_iter().flatten() {
            let Some(path) = variable.strip_prefix("HIGHWATER_") else { continue };
            let mut at = Some(&toml::Value::Table(manual.clone())).cloned();
            for part in path.split("__") {
                at = at.and_then(|value| value.get(part.to_lowercase()).cloned());
            }
            assert!(at.is_some_and(|value| !value.is_table()), "{name}: {variable} is not in src/default.toml");
            settings += 1;
        }
    }
    assert!(settings > 15, "{settings}");
}

/// Resolves a value of a service with the variables of an environment file, or with its default.
fn with(value: &Value, file: &BTreeMap<String, String>) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Some((before, rest)) = text.split_once("${") else { return text };
    let (variable, after) = rest.split_once('}').unwrap();
    let (name, otherwise) = variable.split_once(":-").unwrap_or((variable, ""));
    format!("{before}{}{after}", file.get(name).map_or(otherwise, String::as_str))
}

/// Proves that the first broker alone is a quorum. With ops/cluster.env all three are brokers and controllers of one quorum, known to every
/// process, with enough copies that any one of them may fail. Every variable of that file is used.
#[test]
fn any_broker_of_three_may_fail() {
    let all = services();
    let cluster: BTreeMap<String, String> = text("ops/cluster.env")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap())
        .collect();
    let compose = text("docker-compose.yml");
    for name in cluster.keys().filter(|name| *name != "COMPOSE_PROFILES") {
        assert!(compose.contains(&format!("${{{name}:-")), "{name} is not used");
    }
    let brokers: Vec<&String> = all.keys().filter(|name| *name == "kafka" || name.starts_with("kafka-")).collect();
    assert_eq!(brokers.len(), 3);
    let mut quorum = Vec::new();
    for name in &brokers {
        let (service, environment) = (&all[*name], &all[*name]["environment"]);
        let (profiles, alone) = (texts(&service["profiles"]), name.as_str() == "kafka");
        assert_eq!(profiles, if alone { vec![] } else { vec![cluster["COMPOSE_PROFILES"].as_str()] }, "{name}");
        assert_eq!(environment["KAFKA_PROCESS_ROLES"], "broker,controller", "{name}");
        assert!(environment["KAFKA_LISTENERS"].as_str().unwrap().ends_with(",CONTROLLER://:9093"), "{name}");
        assert!(environment["KAFKA_ADVERTISED_LISTENERS"].as_str().unwrap().starts_with(&format!("INSIDE://{name}:9092,")), "{name}");
        for copies in ["OFFSETS_TOPIC_REPLICATION_FACTOR", "TRANSACTION_STATE_LOG_REPLICATION_FACTOR"] {
            assert_eq!(with(&environment[format!("KAFKA_{copies}")], &cluster), "3", "{name}");
        }
        assert_eq!(with(&environment["KAFKA_CONTROLLER_QUORUM_VOTERS"], &BTreeMap::new()), "1@kafka:9093");
        assert_eq!(with(&environment["KAFKA_CONTROLLER_QUORUM_VOTERS"], &cluster), cluster["KAFKA_VOTERS"], "{name}");
        quorum.push(format!("{}@{name}:9093", environment["KAFKA_NODE_ID"]));
    }
    assert_eq!(quorum.join(","), cluster["KAFKA_VOTERS"]);
    let bootstrap: Vec<String> = brokers.iter().map(|name| format!("{name}:9092")).collect();
    assert_eq!(bootstrap.join(","), cluster["KAFKA_BROKERS"]);
    for role in ["ingest", "project", "api"] {
        let environment = &all[role]["environment"];
        let value = |name: &str| with(&environment[name], &cluster);
        assert_eq!(value("HIGHWATER_LOG"), format!("kafka://{}", bootstrap.join(",")));
        let (copies, in_sync): (u32, u32) =
            (value("HIGHWATER_KAFKA__REPLICATION").parse().unwrap(), value("HIGHWATER_KAFKA__IN_SYNC_MIN").parse().unwrap());
        assert!(copies == 3 && in_sync == 2, "with {copies} copies of which {in_sync} must be in sync no broker may fail");
        // Without the file, one broker holds the only copy.
        assert_eq!(with(&environment["HIGHWATER_KAFKA__REPLICATION"], &BTreeMap::new()), "1");
    }
    let public: Vec<String> = serde_json::from_str(&with(&all["api"]["environment"]["HIGHWATER_API__PUBLIC_BROKERS"], &cluster)).unwrap();
    assert_eq!(public.len(), 3);
}

/// Proves that the schema registry is one of the services and stores its schemas in the log's broker.
#[test]
fn registry_is_a_service() {
    let all = services();
    let registry = &all["schema-registry"];
    let brokers = with(&registry["environment"]["SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS"], &BTreeMap::new());
    assert_eq!(brokers, "kafka:9092");
    assert_eq!(texts(&registry["profiles"]), ["registry"]);
    let file = text("docker-compose.yml");
    assert!(
        file.contains("AVRO_REGISTRY_URL=http://schema-registry:8081")
            && text("ops/docs/reference/topics.md").contains("AVRO_FRAMING=confluent")
    );
    for role in ["ingest", "project", "api"] {
        assert_eq!(all[role]["environment"]["HIGHWATER_AVRO__FRAMING"], "${AVRO_FRAMING:-single-object}", "{role}");
    }
}

/// Proves that Prometheus scrapes the roles by their names, at the listener for operators, which is not published.
#[test]
fn prometheus_scrapes_the_roles() {
    let config = yaml("ops/prometheus/prometheus.yml");
    let roles = &config["scrape_configs"][0]["dns_sd_configs"][0];
    let all = services();
    for role in texts(&roles["names"]) {
        assert_eq!(all[role]["environment"]["HIGHWATER_OPERATOR_LISTEN"], format!("0.0.0.0:{}", roles["port"]), "{role}");
        let is_published = |port: &&str| port.ends_with(&format!(":{}", roles["port"]));
        assert_eq!(texts(&all[role]["ports"]).iter().find(|port| is_published(port)), None, "{role}");
    }
    assert_eq!(texts(&roles["names"]).len(), 3);
}

/// Proves that the image is built from a pinned base and the lock file, with a compiler that the workspace accepts, and does not run as root.
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

/// Proves that docker compose accepts the file with every profile, if it is installed; under `CI=true` it must be.
#[test]
fn docker_compose_accepts_it() {
    let output = Command::new(file("ops/checks/compose")).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}
