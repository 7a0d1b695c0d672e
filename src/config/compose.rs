//! docker-compose.yml with the lists of upstreams and services: what its roles would read and which links they would give.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::api_settings::api_settings;
use crate::engine::upstream_settings;

const ROLES: [&str; 3] = ["ingest", "project", "api"];

/// Replaces each `${NAME:-default}` by the variable or the default.
fn resolved(text: &str, variables: &BTreeMap<&str, &str>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (expression, following) = after.split_once('}').unwrap();
        let (name, default) = expression.split_once(":-").unwrap();
        out = out + before + variables.get(name).unwrap_or(&default);
        rest = following;
    }
    out + rest
}

/// The configuration of a role in docker-compose.yml, with some variables set.
fn config_of(role: &str, variables: &[(&str, &str)]) -> Config {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker-compose.yml");
    let mut compose: serde_norway::Value = serde_norway::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    compose.apply_merge().unwrap();
    let environment = compose["services"][role]["environment"].as_mapping().unwrap();
    let variables = variables.iter().copied().collect();
    let environment = environment.iter().map(|(name, value)| {
        let name = name.as_str().unwrap().to_owned();
        (name, resolved(value.as_str().unwrap(), &variables))
    });
    let empty = tempfile::NamedTempFile::new().unwrap();
    Config::load(Some(empty.path()), environment.collect::<Vec<_>>().into_iter(), &Flags::default()).unwrap()
}

/// Proves that one variable points every role at the simulator for every upstream, also for the live look-ups of the API, and that without it they
/// read the real upstreams.
#[test]
fn the_simulator_replaces_every_upstream() {
    for role in ROLES {
        let (simulated, real) = (config_of(role, &[("UPSTREAMS_URL", "http://simulator:9000")]), config_of(role, &[]));
        for upstream in upstreams::ALL {
            let name = upstream.manifest().name;
            let base_url = |config| upstream_settings(config, name).unwrap().base_url;
            assert_eq!(base_url(&simulated).as_deref(), Some("http://simulator:9000"), "{role} reads the real {name}");
            assert_eq!(base_url(&real), None, "{role}: {name}");
        }
    }
}

/// Proves that one variable is the public address of every service in every role: the API shows it, and the projector signs it in checkpoints.
#[test]
fn one_public_address_serves_every_service() {
    for role in ROLES {
        for (variables, public) in
            [(&[][..], "http://127.0.0.1:8080"), (&[("PUBLIC_URL", "https://records.example.org")], "https://records.example.org")]
        {
            let settings = api_settings(&config_of(role, variables), Some("0.0.0.0:8080".parse().unwrap()));
            for service in services::all() {
                let base_url = &settings.services[service.name].base_url;
                assert_eq!(*base_url, format!("{public}/{}", service.name), "{role}");
            }
        }
    }
}

/// Proves that no listener gives links to the address of all interfaces, and that links use `public_url` and a service's own `base_url` where they are
/// set.
#[test]
fn links_lead_to_a_usable_address() {
    let links = |variables: &[(&str, &str)], listening: &str| {
        let variables = variables.iter().map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned()));
        let empty = tempfile::NamedTempFile::new().unwrap();
        let config = Config::load(Some(empty.path()), variables, &Flags::default()).unwrap();
        let settings = api_settings(&config, Some(listening.parse().unwrap()));
        settings.services["recalls"].base_url.clone()
    };
    assert_eq!(links(&[], "127.0.0.1:8080"), "http://127.0.0.1:8080/recalls");
    assert_eq!(links(&[], "192.0.2.7:80"), "http://192.0.2.7:80/recalls");
    assert_eq!(links(&[], "0.0.0.0:8080"), "http://127.0.0.1:8080/recalls");
    assert_eq!(links(&[], "[::]:8080"), "http://[::1]:8080/recalls");
    assert_eq!(links(&[], "[::ffff:0.0.0.0]:8080"), "http://127.0.0.1:8080/recalls");
    let public = ("PUBLIC_URL", "https://records.example.org/");
    assert_eq!(links(&[public], "0.0.0.0:8080"), "https://records.example.org/recalls");
    assert_eq!(
        links(&[public, ("SERVICES__RECALLS__BASE_URL", "https://recalls.example.org")], "0.0.0.0:8080"),
        "https://recalls.example.org"
    );
}

/// Proves that an upstream's own address overrides the one of all upstreams.
#[test]
fn an_upstreams_own_address_counts_first() {
    let variables = [("HIGHWATER_UPSTREAMS_BASE_URL", "http://all:9000/"), ("HIGHWATER_UPSTREAMS__FSIS__BASE_URL", "http://fsis:9000")];
    let empty = tempfile::NamedTempFile::new().unwrap();
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = Config::load(Some(empty.path()), variables, &Flags::default()).unwrap();
    let base_url = |name| upstream_settings(&config, name).unwrap().base_url;
    assert_eq!((base_url("fsis").as_deref(), base_url("cpsc").as_deref()), (Some("http://fsis:9000"), Some("http://all:9000")));
}
