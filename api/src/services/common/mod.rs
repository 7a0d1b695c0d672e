//! Operations that every service has in the same form.

pub mod health;
pub mod keys;
