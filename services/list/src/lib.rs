//! The services: the operations of each, and its registration.
//!
//! Architecture invariants: a service states facts (name, route, description, types, price, errors); the crates `surfaces` and `webhooks`
//! render and deliver them and name no service.

pub mod aviation;
pub mod awards;
pub mod cadence;
pub mod catalysts;
pub mod coverage;
pub mod exclusions;
#[cfg(test)]
mod exports_tests;
pub mod filings;
#[cfg(test)]
mod free_callers;
pub mod labs;
pub mod names;
#[cfg(test)]
mod numbers_tests;
pub mod parcels;
pub mod phrases;
pub mod recalls;
pub mod receipts;
pub mod research;
#[cfg(test)]
mod unknown_tests;

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use operation::Service;
use reads::prover::SignedTree;
use webhooks::Matchers;

use reads::registration::{Registration, TaskContext, TaskRole};

/// THE LIST of services.
fn registrations() -> Vec<Registration> {
    vec![
        aviation::service(),
        awards::service(),
        cadence::service(),
        catalysts::service(),
        coverage::service(),
        exclusions::service(),
        filings::service(),
        labs::service(),
        names::service(),
        parcels::service(),
        phrases::service(),
        recalls::service(),
        receipts::service(),
        research::service(),
    ]
}

/// The registrations of all services. They are made once in a process.
#[must_use]
pub fn registered() -> &'static [Registration] {
    static REGISTERED: LazyLock<Vec<Registration>> = LazyLock::new(registrations);
    &REGISTERED
}

/// What the surfaces serve of all services.
#[must_use]
pub fn all() -> Vec<Service> {
    registered().iter().map(|registration| registration.service.clone()).collect()
}

/// The matchers of all services that have watches.
#[must_use]
pub fn matchers() -> Matchers {
    Matchers::new(registered().iter().filter_map(|registration| registration.matcher).collect())
}

/// The signed trees of all services.
#[must_use]
pub fn trees() -> Vec<Arc<dyn SignedTree>> {
    registered().iter().filter_map(|registration| registration.tree.clone()).collect()
}

/// The background tasks of a role: those of each service, and those that all services share (delivery to webhooks, signed checkpoints).
#[must_use]
pub fn tasks(role: TaskRole, given: &Arc<TaskContext>) -> Vec<BoxFuture<'static, ()>> {
    let own = registered().iter().flat_map(|registration| registration.tasks).filter(|task| task.role == role);
    let mut tasks: Vec<BoxFuture<'static, ()>> = own.map(|task| (task.run)(Arc::clone(given))).collect();
    match role {
        TaskRole::Api => tasks.push(Box::pin(webhooks::sender::run(Arc::clone(&given.context), matchers(), given.holder.clone()))),
        TaskRole::Project => {
            let sources = registered().iter().filter_map(|registration| registration.checkpoints).collect();
            tasks.push(Box::pin(reads::checkpoints::run(Arc::clone(given), sources)));
            tasks.push(Box::pin(reads::witness::run(Arc::clone(&given.context), given.holder.clone())));
        }
    }
    tasks
}
