//! The price of an operation as text.

use operation::context::ServiceSettings;
use operation::{Operation, Price};

/// The price and access rule in a few words.
pub(crate) fn price(operation: &Operation, settings: &ServiceSettings) -> String {
    match operation.price {
        Price::Free => "free".to_owned(),
        Price::Tier(tier) => format!("tier {} or above", tier.as_str()),
        Price::PerCall { free_from, .. } => {
            format!(
                "{} USD per call by x402, or tier {} or above",
                dollars(operation.price_micros(settings).unwrap_or(0)),
                free_from.as_str()
            )
        }
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
    use super::*;

    /// Proves that prices have two decimals, and more only where needed.
    #[test]
    fn prices() {
        let texts = [10_000, 500_000, 5_000_000, 2_500, 1_234_567].map(dollars);
        assert_eq!(texts, ["0.01", "0.50", "5.00", "0.0025", "1.234567"]);
    }
}
