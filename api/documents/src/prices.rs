//! The price of an operation as text.

use operation::context::ServiceSettings;
use operation::{Operation, Price};

/// The price and access rule in a few words.
pub(crate) fn price(operation: &Operation, settings: &ServiceSettings) -> String {
    match operation.price {
        Price::Free => "free".to_owned(),
        Price::Tier(tier) => format!("tier {} or above", tier.as_str()),
        Price::PerCall { free_from, .. } => {
            format!("{} USD per call by x402, or tier {} or above", per_call(operation, settings), free_from.as_str())
        }
    }
}

/// What a call costs in dollars: of an operation that sells several things from the least to the highest price.
fn per_call(operation: &Operation, settings: &ServiceSettings) -> String {
    let sold = operation.prices_of_sold(settings).map(|(_, micros)| micros);
    match (sold.clone().min(), sold.max()) {
        (Some(least), Some(most)) if least < most => format!("{} to {}", dollars(least), dollars(most)),
        _ => dollars(operation.price_micros(settings).unwrap_or(0)),
    }
}

/// The price and access rule as a sentence; empty for free operations.
pub(crate) fn needs(operation: &Operation, settings: &ServiceSettings) -> String {
    match operation.price {
        Price::Free => String::new(),
        Price::Tier(tier) => format!("Requires a key of tier {} or above.", tier.as_str()),
        Price::PerCall { .. } => format!("Costs {}.", price(operation, settings)),
    }
}

/// Formats millionths of a dollar as dollars, with at least two decimals: `0.01`.
pub(crate) fn dollars(micros: u64) -> String {
    let cents = format!("{:02}", micros / 10_000 % 100);
    let rest = format!("{:04}", micros % 10_000);
    format!("{}.{cents}{}", micros / 1_000_000, rest.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Proves that an operation that sells several things says its least and its highest price, also with those of the settings.
    #[test]
    fn prices_of_what_is_sold() {
        let service = services::all().into_iter().find(|service| service.name == "parcels").unwrap();
        let shown = |name: &str, settings: &ServiceSettings| {
            price(service.operations.iter().find(|operation| operation.name == name).unwrap(), settings)
        };
        let mut settings = ServiceSettings::new(String::new(), String::new());
        assert_eq!(shown("x402_pay", &settings), "0.02 to 0.50 USD per call by x402, or tier pro or above");
        assert_eq!(shown("lien_bundle_report", &settings), "0.50 USD per call by x402, or tier pro or above");
        settings.prices.insert("stalled_surety".to_owned(), 10_000);
        assert!(shown("x402_pay", &settings).starts_with("0.01 to 0.50 USD"));
    }

    /// Proves that the guide to payments lists each operation that is sold, with the prices that it has without settings, and no other one.
    #[test]
    fn prices_of_the_guide() {
        let guide = include_str!("../../../ops/docs/guides/payments.md");
        let mut listed: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
        for row in guide.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let [service, operations, price] = cells.as_slice() else { panic!("{row}") };
            // Texts in backticks with a sign are arguments.
            for name in operations.split('`').skip(1).step_by(2).filter(|name| !name.contains('=')) {
                listed.entry((*service, name)).or_default().insert((*price).to_owned());
            }
        }
        let (settings, services) = (ServiceSettings::new(String::new(), String::new()), services::all());
        let mut sold: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
        for service in &services {
            for operation in &service.operations {
                let Some(micros) = operation.price_micros(&settings) else { continue };
                let several: BTreeSet<String> = operation.prices_of_sold(&settings).map(|(_, micros)| dollars(micros)).collect();
                let prices = if several.is_empty() { BTreeSet::from([dollars(micros)]) } else { several };
                sold.entry((service.name, operation.name)).or_default().extend(prices);
            }
        }
        assert_eq!(listed, sold);
    }

    /// Proves that prices have two decimals, and more only where needed.
    #[test]
    fn prices() {
        let texts = [10_000, 500_000, 5_000_000, 2_500, 1_234_567].map(dollars);
        assert_eq!(texts, ["0.01", "0.50", "5.00", "0.0025", "1.234567"]);
    }
}
