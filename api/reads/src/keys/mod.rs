//! API keys: anybody creates a free one, and each key lists, creates, rotates and revokes the keys of its account. They are the same in all services.

pub mod create;
pub mod free;
pub mod list;
pub mod revoke;
pub mod rotate;
mod shown_key;

use operation::Operation;

pub use self::shown_key::ShownKey;
pub use free::operation;

/// The operations on keys: `create_key`, which needs no key, and those of an account.
#[must_use]
pub fn operations() -> Vec<Operation> {
    vec![operation(), list::operation(), create::operation(), rotate::operation(), revoke::operation()]
}

#[cfg(test)]
mod tests;
