//! THE LIST of services. Each states facts about itself; `surfaces/` renders them.

pub mod recalls;

use crate::operation::Service;

/// THE LIST of services.
#[must_use]
pub fn all() -> Vec<Service> {
    vec![recalls::service()]
}
