//! What readers meet: REST, MCP and documents for every service, all rendered from one definition of each operation.
//!
//! Architecture invariants: `services/` states facts (name, route, words, types, price, errors), `surfaces/` renders them and
//! adds none. The API keeps nothing but caches: what it must remember it appends to the log as a command.

pub mod access;
pub mod context;
pub mod feed;
pub mod live;
pub mod operation;
pub mod pages;
pub mod payments;
pub mod problem;
pub mod server;
pub mod services;
pub mod signing_state;
pub mod surfaces;
pub mod webhooks;
