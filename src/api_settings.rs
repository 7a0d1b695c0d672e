//! The API's settings as the API crates take them, made from the configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use event_log::kafka::Framing;
use operation::Service;
use operation::context::{RetrySchedule, Rounds, ServiceSettings, Settings};
use operation::tiers::Tiers;
use payments::{Payments, SettingError, Settings as PaymentSettings};

use crate::config::{self, Config};
use crate::hardening;

/// The settings of the API. `listening` is the listener's address, if this process has one.
pub(crate) fn api_settings(config: &Config, listening: Option<SocketAddr>) -> Settings {
    let (api, webhooks, checkpoints) = (&config.sections.api, &config.sections.webhooks, &config.sections.checkpoints);
    let public_url = public_url(config, listening);
    let services =
        services::all().iter().map(|service| (service.name.to_owned(), service_settings(config, service, &public_url))).collect();
    let connections_max = hardening::connections_max(api.connections_max.get());
    Settings {
        services,
        trusted_proxies: api.trusted_proxies.iter().map(|network| (network.address, network.prefix_bits)).collect(),
        connections_max,
        connections_per_address_max: hardening::connections_per_address_max(api.connections_per_address_max.get(), connections_max),
        forwarded_header: api.forwarded_header,
        listening: listening.map(|address| address.ip()),
        request_timeout_s: api.request_timeout_s.get(),
        call_times: config.sections.call_times.times(),
        rounds: Rounds {
            signer: checkpoints.signer_round_s,
            checkpoints: checkpoints.round_s,
            witnesses: checkpoints.witness_round_s,
            receipt_keys: config.sections.receipt_keys_round_s,
            revoked_keys: api.revoked_keys_round_s,
        },
        body_bytes_max: api.body_bytes_max.get(),
        allowed_hosts: api.allowed_hosts.clone(),
        public_brokers: api.public_brokers.clone(),
        registry: (Framing::from(config.sections.avro.framing) == Framing::Confluent).then(|| api.public_registry.clone()),
        private_targets: webhooks.allow_private_targets,
        nameserver: webhooks.nameserver,
        webhook_retries: RetrySchedule {
            pauses: webhooks.retry_pauses_s.iter().copied().map(Duration::from_secs).collect(),
            disable_after: Duration::from_secs(webhooks.disable_after_h * 3_600),
        },
        cache_dir: None,
        tiers: Tiers::new(|tier| config.sections.tiers.limits(tier)),
        keys_contact: config.sections.keys_contact.clone(),
        // A newcomer's calls, unless the limits themselves are tried out.
        is_loopback_unlimited: config.is_demo()
            && config.is_default("tiers.free.calls_per_day")
            && config.is_default("tiers.free.calls_per_minute"),
    }
}

/// The public URL of this server, without a slash at its end: the configured one, or that of the listener. A listener on all interfaces has no address
/// that a client could use, so its URL is that of the loopback interface.
pub(crate) fn public_url(config: &Config, listening: Option<SocketAddr>) -> String {
    if let Some(url) = &config.sections.public_url {
        return url.clone();
    }
    let address = listening.unwrap_or(config.sections.listen);
    let ip = match address.ip() {
        ip if !ip.to_canonical().is_unspecified() => ip,
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        _ => Ipv4Addr::LOCALHOST.into(),
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// The settings of one service. `public_url` is the public URL of this server.
fn service_settings(config: &Config, service: &Service, public_url: &str) -> ServiceSettings {
    let sections = &config.sections;
    let (section, prefix) = (sections.services.get(service.name), format!("/{}", service.name));
    let base_url = section.and_then(|section| section.base_url.clone()).unwrap_or_else(|| format!("{public_url}{prefix}"));
    let prices = sections.prices.get(service.name).into_iter().flatten();
    let prices = prices.map(|(operation, price)| (operation.clone(), price.micros)).collect();
    ServiceSettings { enabled: section.is_some_and(|section| section.enabled), base_url, prefix, prices }
}

/// The payment settings.
///
/// # Errors
/// The first setting that cannot be used.
pub(crate) fn payments(config: &Config) -> Result<Payments, config::Error> {
    let section = config.sections.payments.clone();
    let settings = PaymentSettings {
        facilitator_url: section.facilitator_url,
        pay_to: section.pay_to,
        network: section.network,
        asset: section.asset,
        rpc_url: section.rpc_url,
        validity_s: section.validity_s,
        round: section.round_s,
        call_times: config.sections.call_times.times(),
    };
    Payments::new(&settings).map_err(|error| invalid_payments(config, &error))
}

/// The error about a payment setting that cannot be used.
pub(crate) fn invalid_payments(config: &Config, error: &SettingError) -> config::Error {
    config.invalid(&format!("payments.{}", error.field), error.reason.clone())
}
