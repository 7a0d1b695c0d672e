//! Tests of the configuration: layers, defaults, and refused keys and values.

use std::collections::BTreeSet;
use std::time::Duration;

use operation::call_times::CallTimes;
use operation::context::Rounds;

use super::*;
use crate::engine::may_clear_names;
use crate::role::Role;

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, Error> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(Some(file.path()), variables, &Flags::default())
}

/// Proves that flags of the command line override the environment and the file, and that an unusable one is named.
#[test]
fn flags_override_everything() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "data_dir = \"of the file\"\nlisten = \"127.0.0.1:1\"").unwrap();
    let variables = || [("HIGHWATER_DATA_DIR".to_owned(), "of the environment".to_owned())].into_iter();
    let load = |flags: &Flags| Config::load(Some(file.path()), variables(), flags);
    let flags = Flags { data_dir: Some("of the flag".into()), listen: Some("127.0.0.1:2".parse().unwrap()) };
    let config = load(&flags).unwrap();
    assert_eq!((config.sections.data_dir.to_str(), config.sections.listen.port()), (Some("of the flag"), 2));
    let config = load(&Flags::default()).unwrap();
    assert_eq!((config.sections.data_dir.to_str(), config.sections.listen.port()), (Some("of the environment"), 1));
    assert!(!config.is_default("listen") && config.is_default("log"));
    let error = load(&Flags { data_dir: Some("".into()), listen: None }).unwrap_err().to_string();
    assert!(error.contains("data_dir (--data-dir)"), "{error}");
}

/// Proves that the file overrides the defaults and the environment the file, in any section and type.
#[test]
fn later_layers_override_earlier_ones() {
    let config = load(
        "listen = \"127.0.0.1:1\"\nuser_agent = \"a@example.org\"\n[upstreams.fsis]\nuser_agent = \"b@example.org\"\n\
         [upstreams.cpsc]\nrequests_per_second = 4\nwindow_days = 3",
        &[
            ("HIGHWATER_LISTEN", "127.0.0.1:2"),
            ("HIGHWATER_UPSTREAMS__CPSC__WINDOW_DAYS", "9"),
            ("HIGHWATER_SERVICES__RECALLS__ENABLED", "false"),
            ("HIGHWATER_SERVICES__AWARDS__BASE_URL", "https://awards.example//"),
            ("PATH", "x"),
        ],
    )
    .unwrap();
    let sections = &config.sections;
    assert_eq!(sections.listen.port(), 2);
    assert_eq!(sections.upstreams["cpsc"].requests_per_second, 4.0);
    assert_eq!(sections.upstreams["cpsc"].window_days.get(), 9);
    assert!(!sections.services["recalls"].enabled);
    assert_eq!(sections.services["awards"].base_url.as_deref(), Some("https://awards.example"));
    assert_eq!(sections.log, LogBackend::Embedded);
    let user_agent = |upstream: &str| crate::engine::upstream_settings(&config, upstream).unwrap().user_agent;
    assert_eq!((user_agent("cpsc").as_str(), user_agent("fsis").as_str()), ("a@example.org", "b@example.org"));
}

/// Proves that real upstreams are not read while the user agent is that of the defaults, which the error says how to set; simulated ones are.
#[test]
fn real_upstreams_need_a_user_agent() {
    let check =
        |variables: &[(&str, &str)]| crate::engine::check_user_agent(&load("", variables).unwrap()).map_err(|error| error.to_string());
    let error = check(&[]).unwrap_err();
    assert!(error.contains("configuration key user_agent") && error.contains("HIGHWATER_USER_AGENT"), "{error}");
    assert_eq!(check(&[("HIGHWATER_USER_AGENT", "Example Company ops@example.com")]), Ok(()));
    assert_eq!(check(&[("HIGHWATER_UPSTREAMS_BASE_URL", "http://127.0.0.1:9000")]), Ok(()));
}

/// Proves that the retry schedule in the defaults is that of the API.
#[test]
fn default_retry_schedule() {
    let config = load("", &[]).unwrap();
    assert_eq!(crate::api_settings::api_settings(&config, None).webhook_retries, operation::context::RetrySchedule::default());
}

/// Proves that the rounds in the defaults are those of the API, and that parts of a second and whole seconds are read from the environment.
#[test]
fn rounds_are_read() {
    let rounds = |variables: &[(&str, &str)]| crate::api_settings::api_settings(&load("", variables).unwrap(), None).rounds;
    assert_eq!(rounds(&[]), Rounds::default());
    let set = [
        ("HIGHWATER_CHECKPOINTS__SIGNER_ROUND_S", "3"),
        ("HIGHWATER_CHECKPOINTS__ROUND_S", "0.25"),
        ("HIGHWATER_CHECKPOINTS__WITNESS_ROUND_S", "60"),
        ("HIGHWATER_RECEIPT_KEYS_ROUND_S", "0.1"),
        ("HIGHWATER_API__REVOKED_KEYS_ROUND_S", "1.5"),
    ];
    let [signer, checkpoints, witnesses, receipt_keys, revoked_keys] = [3_000, 250, 60_000, 100, 1_500].map(Duration::from_millis);
    assert_eq!(rounds(&set), Rounds { signer, checkpoints, witnesses, receipt_keys, revoked_keys });
}

/// Proves that the call times in the defaults are those of the API, and that each has its key.
#[test]
fn call_times_are_read() {
    let times = |variables: &[(&str, &str)]| crate::api_settings::api_settings(&load("", variables).unwrap(), None).call_times;
    assert_eq!(times(&[]), CallTimes::default());
    let set = [
        ("HIGHWATER_CALL_TIMES__READ_S", "1"),
        ("HIGHWATER_CALL_TIMES__LIVE_READ_S", "2.5"),
        ("HIGHWATER_CALL_TIMES__FILE_S", "3"),
        ("HIGHWATER_CALL_TIMES__COMMAND_S", "4"),
        ("HIGHWATER_CALL_TIMES__SALE_S", "600"),
    ];
    let [read, live_read, file, command, sale] = [1_000, 2_500, 3_000, 4_000, 600_000].map(Duration::from_millis);
    assert_eq!(times(&set), CallTimes { read, live_read, file, command, sale });
}

/// Proves that the defaults are accepted, and that they have a section for each service and upstream and a price for each operation with one.
#[test]
fn defaults_are_complete() {
    let sections = load("", &[]).unwrap().sections;
    let services: BTreeSet<&str> = services::all().iter().map(|service| service.name).collect();
    assert_eq!(sections.services.keys().map(String::as_str).collect::<BTreeSet<_>>(), services);
    assert!(sections.services.values().all(|section| section.enabled && section.base_url.is_none()), "{:?}", sections.services);
    let upstreams: BTreeSet<&str> = upstreams::ALL.iter().map(|upstream| upstream.manifest().name).collect();
    assert_eq!(sections.upstreams.keys().map(String::as_str).collect::<BTreeSet<_>>(), upstreams);
    for service in services::all() {
        let sold = service.operations.iter().filter(|operation| matches!(operation.price, operation::Price::PerCall { .. }));
        let sold: BTreeSet<&str> = sold.map(|operation| operation.name).collect();
        let priced = sections.prices.get(service.name).into_iter().flat_map(|prices| prices.keys().map(String::as_str));
        assert_eq!(priced.collect::<BTreeSet<_>>(), sold, "{}", service.name);
    }
}

/// Proves that an unknown key is refused in any section, with the nearest known key and where it was set.
#[test]
fn unknown_keys_are_refused() {
    let error = |text: &str, variables: &[(&str, &str)]| load(text, variables).unwrap_err().to_string();
    assert!(error("lisen = \"x\"", &[]).contains("did you mean \"listen\"?"));
    let section = error("[upstreams.cpcs]\nenabled = true", &[]);
    assert!(section.contains("upstreams.cpcs") && section.contains("did you mean \"cpsc\"?"), "{section}");
    let variable = error("", &[("HIGHWATER_UPSTREAMS__CPSC__BASE", "x")]);
    assert!(variable.contains("HIGHWATER_UPSTREAMS__CPSC__BASE") && variable.contains("did you mean \"base_url\"?"), "{variable}");
}

/// Proves that a value of the wrong type or out of range is refused with its key and where it was set.
#[test]
fn unusable_values_are_refused() {
    for (variable, value, key, reason) in [
        ("LISTEN", "8080", "listen", "\"8080\" is not an address with a port"),
        ("LOG", "kafka", "log", "neither \"embedded\" nor \"kafka://host:9092"),
        ("LOG", "kafka://", "log", "neither"),
        ("STORE", "scylla:/x", "store", "neither \"embedded\" nor \"scylla://host:9042"),
        ("KAFKA__REPLICATION", "0", "kafka.replication", "nonzero"),
        ("KAFKA__SECURITY_PROTOCOL", "tls", "kafka.security_protocol", "`sasl_ssl`"),
        ("SCYLLA__LEASE_S", "5", "scylla.lease_s", "must be 6 to 300"),
        ("RECEIPT_KEYS_ROUND_S", "0", "receipt_keys_round_s", "must be 0.1 to 60"),
        ("CHECKPOINTS__ROUND_S", "0.09", "checkpoints.round_s", "must be 0.1 to 60"),
        ("CHECKPOINTS__SIGNER_ROUND_S", "-2", "checkpoints.signer_round_s", "must be 0.1 to 60"),
        ("CHECKPOINTS__WITNESS_ROUND_S", "nan", "checkpoints.witness_round_s", "must be 0.1 to 60"),
        ("LOGGING__FORMAT", "xml", "logging.format", "`text` or `json`"),
        ("LOGGING__LEVEL", "a=b=c", "logging.level", "level filter"),
        ("AVRO__FRAMING", "json", "avro.framing", "`single-object` or `confluent`"),
        ("API__CONNECTIONS_MAX", "0", "api.connections_max", "nonzero"),
        ("API__BODY_BYTES_MAX", "-1", "api.body_bytes_max", "-1"),
        ("API__REVOKED_KEYS_ROUND_S", "4.1", "api.revoked_keys_round_s", "must be 0.1 to 4"),
        ("CALL_TIMES__READ_S", "0.9", "call_times.read_s", "must be 1 to 600"),
        ("CALL_TIMES__LIVE_READ_S", "nan", "call_times.live_read_s", "must be 1 to 600"),
        ("CALL_TIMES__FILE_S", "-1", "call_times.file_s", "must be 1 to 600"),
        ("CALL_TIMES__COMMAND_S", "soon", "call_times.command_s", "\"soon\" is not a TOML value of type float"),
        ("CALL_TIMES__SALE_S", "600.5", "call_times.sale_s", "must be 1 to 600"),
        ("API__TRUSTED_PROXIES", "[\"10.0.0.0/33\"]", "api.trusted_proxies", "\"10.0.0.0/33\""),
        ("API__TRUSTED_PROXIES", "[1]", "api.trusted_proxies", "string"),
        ("API__ALLOWED_HOSTS", "x", "api.allowed_hosts", "\"x\" is not a TOML value of type array"),
        ("API__FORWARDED_HEADER", "forwarder", "api.forwarded_header", "did you mean \"forwarded\"?"),
        ("API__FORWARDED_HEADER", "x-real-ip", "api.forwarded_header", "\"x-forwarded-for\" or \"forwarded\""),
        ("UPSTREAMS__CPSC__WINDOW_DAYS", "many", "upstreams.cpsc.window_days", "\"many\" is not a TOML value of type integer"),
        ("UPSTREAMS__CPSC__WINDOW_DAYS", "0", "upstreams.cpsc.window_days", "nonzero"),
        ("UPSTREAMS__CPSC__REQUESTS_PER_SECOND", "-1", "upstreams.cpsc.requests_per_second", "above 0"),
        ("TIERS__FREE__ROWS_MAX", "201", "tiers.free.rows_max", "must be 1 to 200"),
        ("TIERS__FREE__CALLS_PER_DAY", "-1", "tiers.free.calls_per_day", "not below 0"),
        ("PAYMENTS__VALIDITY_S", "59", "payments.validity_s", "must be 60 to 604800"),
        ("PAYMENTS__VALIDITY_S", "604801", "payments.validity_s", "must be 60 to 604800"),
        ("PAYMENTS__ROUND_S", "61", "payments.round_s", "must be 0.1 to 60"),
        ("PRICES__RECEIPTS__ISSUE_RECEIPT", "0.0000001", "prices.receipts.issue_receipt", "a millionth of a dollar"),
        ("WEBHOOKS__NAMESERVER", "10.0.0.2", "webhooks.nameserver", "\"10.0.0.2\""),
        ("WEBHOOKS__ALLOW_PRIVATE_TARGETS", "1", "webhooks.allow_private_targets", "must be of type boolean, not integer"),
        ("WEBHOOKS__RETRY_PAUSES_S", "[]", "webhooks.retry_pauses_s", "1 to 100 pauses of 1 to 86400 seconds"),
        ("WEBHOOKS__RETRY_PAUSES_S", "[0]", "webhooks.retry_pauses_s", "1 to 100 pauses of 1 to 86400 seconds"),
        ("WEBHOOKS__DISABLE_AFTER_H", "0", "webhooks.disable_after_h", "must be 1 to 8760"),
        ("CLOCK__FIXED", "noon", "clock.fixed", "noon"),
        ("CLOCK__START", "noon", "clock.start", "noon"),
        ("PUBLIC_URL", "records.example.org", "public_url", "does not begin with http:// or https://"),
        ("KEYS_CONTACT", "sales@example.com\nX-Other: 1", "keys_contact", "one line"),
        ("UPSTREAMS_BASE_URL", "127.0.0.1:9000", "upstreams_base_url", "does not begin with http:// or https://"),
        ("SERVICES__RECALLS__BASE_URL", "//recalls", "services.recalls.base_url", "\"//recalls\" does not begin with"),
    ] {
        let variable = format!("{PREFIX}{variable}");
        let error = load("", &[(&variable, value)]).unwrap_err().to_string();
        assert!(error.contains(&format!("configuration key {key}")), "{variable}={value}: {error}");
        assert!(error.contains(&format!("({variable})")) && error.contains(reason), "{variable}={value}: {error}");
    }
    let both = [("HIGHWATER_CLOCK__FIXED", "2026-11-20T12:00:00Z"), ("HIGHWATER_CLOCK__START", "2026-11-20T12:00:00Z")];
    let error = load("", &both).unwrap_err().to_string();
    assert!(error.contains("clock.start") && error.contains("not together with clock.fixed"), "{error}");
    let error = load("listen = 8080", &[]).unwrap_err().to_string();
    assert!(error.contains("must be of type string, not integer"), "{error}");
}

/// Proves that servers with a password in their address are refused without repeating it.
#[test]
fn passwords_in_addresses_are_not_repeated() {
    for (variable, value) in [("HIGHWATER_LOG", "kafka://me:hunter2@host:9092"), ("HIGHWATER_STORE", "scylla://me:hunter2@host:9042")] {
        let error = load("", &[(variable, value)]).unwrap_err().to_string();
        assert!(!error.contains("hunter2") && error.contains("settings of their own"), "{error}");
    }
}

/// Proves that stores and niches are read from a file and the environment, and that wrong ones are refused with what is wrong.
#[test]
fn stores_and_niches() {
    let niches = "[[upstreams.shopify.niches]]\nkey = \"sneakers\"\nlabel = \"Sneakers\"\n";
    let with = |stores: &str| load(&format!("{niches}{stores}"), &[]);
    let config = with("[[upstreams.shopify.stores]]\nhost = \"Shop.Example\"\nniche = \"sneakers\"\n").unwrap();
    let ShopifySection { niches, stores } = &config.shopify;
    assert_eq!((niches[0].label.as_str(), stores[0].host.as_str(), stores[0].interval_s), ("Sneakers", "shop.example", 3_600));
    let variables = [
        ("HIGHWATER_UPSTREAMS__SHOPIFY__NICHES", "[{ key = \"art\", label = \"Art\" }]"),
        ("HIGHWATER_UPSTREAMS__SHOPIFY__STORES", "[{ host = \"a.example\", niche = \"art\", interval_s = 7200 }]"),
    ];
    assert_eq!(load("", &variables).unwrap().shopify.stores[0].interval_s, 7_200);
    let refusal = |stores: &str| with(stores).unwrap_err().to_string();
    let store = |host: &str, niche: &str| format!("[[upstreams.shopify.stores]]\nhost = \"{host}\"\nniche = \"{niche}\"\n");
    for (stores, reason) in [
        (store("https://a.example/", "sneakers"), "is not a host name"),
        (store("a.example", "sneaker"), "did you mean \"sneakers\"?"),
        (store("a.example", "sneakers").repeat(2), "named twice"),
        (format!("{}interval_s = 5\n", store("a.example", "sneakers")), "must be 600 to 604800"),
        (format!("{}colour = 5\n", store("a.example", "sneakers")), "colour"),
    ] {
        assert!(refusal(&stores).contains(reason), "{stores}: {}", refusal(&stores));
    }
    let key = "configuration key upstreams.shopify.stores[0].interval_s (";
    assert!(refusal(&format!("{}interval_s = 5\n", store("a.example", "sneakers"))).contains(key));
    assert!(load("[upstreams.cpsc]\nstores = []", &[]).unwrap_err().to_string().contains("unknown"));
}

/// Proves that the path of the file PTAXSIM is read for its upstream only, and that an empty one is none.
#[test]
fn path_of_ptaxsim() {
    let path = |text: &str| load(text, &[]).unwrap().sections.upstreams["cook"].ptaxsim_path.clone();
    assert_eq!(path(""), None);
    assert_eq!(path("[upstreams.cook]\nptaxsim_path = \"/srv/ptaxsim.db\""), Some("/srv/ptaxsim.db".into()));
    assert!(load("[upstreams.cpsc]\nptaxsim_path = \"\"", &[]).unwrap_err().to_string().contains("unknown"));
}

/// Proves that a process that reads upstreams clears names only if the credential for the register of trademarks is set, and that one that only serves leaves
/// that to the age of the register.
#[test]
fn clearances_need_the_credential() {
    let variables = |key: &'static str| [("HIGHWATER_UPSTREAMS__USPTO_TRADEMARKS__API_KEY", key)];
    let may_clear = |key: &'static str, role: Role| may_clear_names(&load("", &variables(key)).unwrap(), role);
    assert!(may_clear("a-key", Role::All) && may_clear("a-key", Role::Ingest));
    assert!(!may_clear("", Role::All) && !may_clear_names(&load("", &[]).unwrap(), Role::All));
    assert!(may_clear("", Role::Api) && may_clear("", Role::Project));
}
