//! The arithmetic of counters, the same for every store.

/// A counter as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// When it expires: milliseconds since 1970.
    pub expires_ms: i64,
    /// How much is used, in the unit of the counter.
    pub used: i64,
}

/// Returns how much of `amount` is added to a counter, and the counter afterwards (`None`: nothing is used, and the counter is deleted).
///
/// `current` is `None` if there is no counter; an expired one counts as none.
pub fn take(current: Option<Counter>, amount: i64, max: i64, now_ms: i64, expires_ms: i64) -> (i64, Option<Counter>) {
    let current = current.filter(|counter| counter.expires_ms >= now_ms);
    let used = current.map_or(0, |counter| counter.used);
    let added = if amount >= 0 {
        // A counter that expires immediately would have no limit.
        if expires_ms < now_ms { 0 } else { amount.min(max.saturating_sub(used)).max(0) }
    } else {
        amount.max(used.saturating_neg())
    };
    let expires_ms = current.map_or(expires_ms, |counter| counter.expires_ms.max(expires_ms));
    (added, (used + added != 0).then_some(Counter { expires_ms, used: used + added }))
}
