//! The services, one file or folder each.

pub mod accounts;
pub mod awards;
pub mod cadence;
pub mod catalysts;
pub mod deliveries;
pub mod filings;
pub mod labs;
pub mod payments;
pub mod recalls;
pub mod receipts;
pub mod records;
pub mod research;
pub mod watches;

use schemas::topics::Topic;

use crate::service::Service;

/// Applies a macro to each service's type: THE LIST of services. `$act!(Type)` is called once per service.
#[macro_export]
macro_rules! for_each_service {
    ($act:ident) => {
        $act!($crate::services::accounts::Accounts);
        $act!($crate::services::awards::Awards);
        $act!($crate::services::cadence::Cadence);
        $act!($crate::services::catalysts::Catalysts);
        $act!($crate::services::deliveries::Deliveries);
        $act!($crate::services::filings::Filings);
        $act!($crate::services::labs::Labs);
        $act!($crate::services::payments::Payments);
        $act!($crate::services::recalls::Recalls);
        $act!($crate::services::receipts::Receipts);
        $act!($crate::services::research::Research);
        $act!($crate::services::watches::Watches);
    };
}

/// Whether a service decides from the records of a topic.
#[must_use]
pub fn reads(service: &str, topic: &Topic) -> bool {
    macro_rules! decides_from {
        ($service:ty) => {
            if <$service as Service>::NAME == service {
                return <$service as Service>::INPUTS.iter().any(|input| input.name == topic.name);
            }
        };
    }
    for_each_service!(decides_from);
    false
}
