//! The pages of the site: its home, and the documentation of each service.

mod code;
pub mod docs;
pub mod home;
pub mod reference;
