//! The price of an operation, in words.

use operation::context::ServiceSettings;
use operation::{Operation, Price};

/// Who may call, in a few words.
pub(crate) fn price(operation: &Operation, settings: &ServiceSettings) -> String {
    match operation.price {
        Price::Free => "free".to_owned(),
        Price::Tier(tier) => format!("tier {} or higher", tier.as_str()),
        Price::PerCall { free_from, .. } => {
            format!(
                "{} USD a call by x402, or tier {} or higher",
                dollars(operation.price_under(settings).unwrap_or(0)),
                free_from.as_str()
            )
        }
    }
}

/// The same as a sentence; empty for what is free.
pub(crate) fn needs(operation: &Operation, settings: &ServiceSettings) -> String {
    match operation.price {
        Price::Free => String::new(),
        Price::Tier(tier) => format!("Needs a key of tier {} or higher.", tier.as_str()),
        Price::PerCall { .. } => format!("Costs {}.", price(operation, settings)),
    }
}

/// Millionths of a dollar as dollars, with two digits at least: `0.01`.
pub(crate) fn dollars(micros: u64) -> String {
    let cents = format!("{:02}", micros / 10_000 % 100);
    let rest = format!("{:04}", micros % 10_000);
    format!("{}.{cents}{}", micros / 1_000_000, rest.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that prices are told with two digits, and with more only where they are needed.
    #[test]
    fn prices() {
        let told = [10_000, 500_000, 5_000_000, 2_500, 1_234_567].map(dollars);
        assert_eq!(told, ["0.01", "0.50", "5.00", "0.0025", "1.234567"]);
    }
}
