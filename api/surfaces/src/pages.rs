//! The pages of the site: its home, and the documentation of each service.

pub mod docs;
pub mod home;
