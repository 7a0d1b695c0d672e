//! The services' folds: one file (or folder) each.

pub mod accounts;
pub mod recalls;

/// Does something with each service's type: THE LIST of services. `$act!(Type)` stands for the service's code.
#[macro_export]
macro_rules! for_each_service {
    ($act:ident) => {
        $act!($crate::services::accounts::Accounts);
        $act!($crate::services::recalls::Recalls);
    };
}
