//! The API's settings, read from the configuration: services, limits, prices, payments, proxies.

use std::error::Error as StdError;
use std::net::SocketAddr;

use event_log::kafka::Framing;
use feed::page_request::LIMIT_MAX;
use operation::Price;
use operation::context::{ForwardedHeader, ServiceSettings, Settings};
use operation::tiers::{Limits, Tiers};
use payments::{Payments, SettingError, Settings as PaymentSettings};
use schemas::names;
use schemas::views::accounts::Tier;

use crate::config::Config;
use crate::{backend, hardening};

/// The settings of the API, for a listener at an address.
///
/// # Errors
/// The first setting that cannot be used.
pub(crate) fn api_settings(config: &Config, listening: Option<SocketAddr>) -> Result<Settings, Box<dyn StdError>> {
    let origin = listening.map_or_else(|| format!("http://{}", config.text("listen")), |address| format!("http://{address}"));
    let services = services::all()
        .iter()
        .map(|service| {
            let (name, prefix) = (service.name, format!("/{}", service.name));
            let base_url = match config.text(&format!("services.{name}.base_url")) {
                "" => format!("{origin}{prefix}"),
                url => url.trim_end_matches('/').to_owned(),
            };
            let enabled = config.flag(&format!("services.{name}.enabled"));
            let sold = service.operations.iter().filter(|operation| matches!(operation.price, Price::PerCall { .. }));
            let prices = sold.map(|operation| Ok((operation.name.to_owned(), price(config, name, operation.name)?)));
            let prices = prices.collect::<Result<_, crate::config::Error>>()?;
            Ok((name.to_owned(), ServiceSettings { enabled, base_url, prefix, prices }))
        })
        .collect::<Result<_, crate::config::Error>>()?;
    let mut trusted_proxies = Vec::new();
    for proxy in config.list("api.trusted_proxies")? {
        let (address, bits) = proxy.split_once('/').map_or((proxy.as_str(), None), |(address, bits)| (address, Some(bits)));
        let parsed = address.parse::<std::net::IpAddr>().ok().and_then(|address| {
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(most), |bits| bits.parse::<u8>().ok().filter(|bits| *bits <= most))?;
            Some((address, bits))
        });
        trusted_proxies.push(parsed.ok_or_else(|| config.wrong("api.trusted_proxies", &format!("\"{proxy}\" is no address or network")))?);
    }
    let connections = |name: &str| config.count(&format!("api.{name}")).map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let connections_max = hardening::connections_max(connections("connections_max")?);
    Ok(Settings {
        services,
        trusted_proxies,
        connections_max,
        connections_per_address_max: hardening::connections_per_address_max(connections("connections_per_address_max")?, connections_max),
        forwarded_header: forwarded_header(config)?,
        listening: listening.map(|address| address.ip()),
        request_timeout_s: config.count("api.request_timeout_s")?,
        body_bytes_max: usize::try_from(config.count("api.body_bytes_max")?).unwrap_or(usize::MAX),
        allowed_hosts: config.list("api.allowed_hosts")?,
        public_brokers: config.list("api.public_brokers")?,
        registry: (backend::framing(config)? == Framing::Confluent).then(|| config.text("api.public_registry").to_owned()),
        private_targets: config.flag("webhooks.allow_private_targets"),
        nameserver: match config.text("webhooks.nameserver") {
            "" => None,
            text => Some(text.parse().map_err(|_| config.wrong("webhooks.nameserver", "is no address and port, 10.0.0.2:53"))?),
        },
        cache_dir: None,
        tiers: Tiers::new(|tier| limits(config, tier))?,
    })
}

/// The forwarding header that counts.
fn forwarded_header(config: &Config) -> Result<ForwardedHeader, crate::config::Error> {
    let name = config.text("api.forwarded_header");
    ForwardedHeader::from_name(name).ok_or_else(|| {
        let hint = names::hint(name, ForwardedHeader::ALL.into_iter().map(ForwardedHeader::as_str));
        let known = ForwardedHeader::ALL.map(|header| format!("\"{}\"", header.as_str())).join(" or ");
        config.wrong("api.forwarded_header", &format!("\"{name}\" is not {known}{hint}"))
    })
}

/// What a tier may do.
fn limits(config: &Config, tier: Tier) -> Result<Limits, crate::config::Error> {
    let key = |name: &str| format!("tiers.{}.{name}", tier.as_str());
    let number = |name: &str| config.number(&key(name));
    let few = |name: &str| number(name).map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let calls = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let rows_max = few("rows_max")?;
    if !(1..=LIMIT_MAX).contains(&rows_max) {
        return Err(config.wrong(&key("rows_max"), &format!("must be 1 to {LIMIT_MAX}")));
    }
    let (day, minute) = (calls(number("calls_per_day")?), calls(number("calls_per_minute")?));
    Ok(Limits::new(day, minute, rows_max, few("filters_max")?, few("watches_max")?))
}

/// A price, in millionths of a US dollar.
fn price(config: &Config, service: &str, operation: &str) -> Result<u64, crate::config::Error> {
    let key = format!("prices.{service}.{operation}");
    let micros = (config.rate(&key)? * 1e6).round();
    if !(1.0..=1e12).contains(&micros) {
        return Err(config.wrong(&key, "is not between a millionth of a dollar and a million dollars"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was just held against bounds")]
    Ok(micros as u64)
}

/// What payments go through.
pub(crate) fn payments(config: &Config) -> Result<Payments, crate::config::Error> {
    let text = |key: &str| config.text(&format!("payments.{key}")).to_owned();
    let settings = PaymentSettings {
        facilitator_url: text("facilitator_url"),
        pay_to: text("pay_to"),
        network: text("network"),
        asset: text("asset"),
        rpc_url: text("rpc_url"),
    };
    Payments::new(&settings).map_err(|error| payments_wrong(config, &error))
}

/// What is wrong with a setting of payments.
pub(crate) fn payments_wrong(config: &Config, error: &SettingError) -> crate::config::Error {
    config.wrong(&format!("payments.{}", error.field), &error.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the forwarding header is one of the known ones, and that another one is refused with the nearest.
    #[test]
    fn forwarding_header_is_checked() {
        let read = |name: &str| {
            let variable = ("HIGHWATER_API__FORWARDED_HEADER".to_owned(), name.to_owned());
            forwarded_header(&Config::load(None, std::iter::once(variable)).unwrap())
        };
        assert_eq!(read("Forwarded").unwrap(), ForwardedHeader::Forwarded);
        assert_eq!(forwarded_header(&Config::load(None, std::iter::empty()).unwrap()).unwrap(), ForwardedHeader::XForwardedFor);
        for (name, hint) in [
            ("x-forwarded-to", "\"x-forwarded-for\"?"),
            ("forwarder", "\"forwarded\"?"),
            ("x-real-ip", "\"x-forwarded-for\" or \"forwarded\""),
        ] {
            let refused = read(name).unwrap_err().to_string();
            assert!(refused.contains("api.forwarded_header") && refused.contains(hint), "{refused}");
        }
    }
}
