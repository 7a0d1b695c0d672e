//! The settings of the store.

use std::path::PathBuf;
use std::time::Duration;

use view_store::store::DEFAULT_LEASE_LENGTH;

/// Where and how to connect. Implements no `Debug`, because it may contain a password.
#[derive(Clone)]
pub struct Options {
    /// `host:port` of some nodes; the others are discovered.
    pub contact_points: Vec<String>,
    /// The keyspace, created if there is none: a lower-case letter, then letters, digits and underscores, 48 characters at most.
    pub keyspace: String,
    /// The number of replicas in every data centre, if the keyspace is created.
    pub replication_factor: u32,
    /// User name and password.
    pub credentials: Option<(String, String)>,
    /// The PEM file with the certificates that sign those of the nodes; `None` for connections without TLS.
    pub ca_file: Option<PathBuf>,
    /// How long the tables of a replaced generation remain for its readers.
    pub drop_after: Duration,
    /// How long a lease lasts: see [`lease_length`](view_store::ViewStore::lease_length).
    pub lease_length: Duration,
    /// Milliseconds added to the database's time. 0, except in tests of clocks that differ.
    pub clock_offset_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            keyspace: "highwater".to_owned(),
            replication_factor: 1,
            credentials: None,
            ca_file: None,
            drop_after: Duration::from_secs(60),
            lease_length: DEFAULT_LEASE_LENGTH,
            clock_offset_ms: 0,
        }
    }
}
