//! Who may call an operation, and what a call costs.

use schemas::views::accounts::Tier;

/// Who may call an operation, and what a call costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// Free, within the limits of the caller's tier.
    Free,
    /// Requires a key of this tier or above.
    Tier(Tier),
    /// Paid per call, or free with a key of some tier.
    PerCall {
        /// The price in millionths of a US dollar, unless `[prices]` sets another one.
        micros: u64,
        /// The lowest tier whose keys do not pay.
        free_from: Tier,
    },
}

impl Price {
    /// The lowest tier whose keys do not pay.
    #[must_use]
    pub fn least_tier(self) -> Tier {
        match self {
            Self::Free => Tier::Anonymous,
            Self::Tier(least) | Self::PerCall { free_from: least, .. } => least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which tier each kind of price is free from.
    #[test]
    fn least_tiers() {
        let prices = [Price::Free, Price::Tier(Tier::Pro), Price::PerCall { micros: 1, free_from: Tier::Fleet }];
        assert_eq!(prices.map(Price::least_tier), [Tier::Anonymous, Tier::Pro, Tier::Fleet]);
    }
}
