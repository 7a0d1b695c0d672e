//! The options that only upstream `shopify` has.

/// What is configured for the upstream in addition to the settings that all upstreams have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The stores that are polled.
    pub stores: Vec<Store>,
    /// Whether each store is polled by every sync, also before its interval has passed. Only demos do so.
    pub is_every_store_due: bool,
}

/// A store that is polled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// The host name of the store.
    pub host: String,
    /// The key of the niche that its items belong to.
    pub niche: String,
    /// The interval between two polls, in seconds.
    pub interval_s: u32,
}
