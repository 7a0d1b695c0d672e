//! The services: for each, its operations, and its registration.
//!
//! Architecture invariants: a service states facts (name, route, description, types, price, errors); the crates `surfaces` and `webhooks`
//! render and deliver them and name no service.

pub mod awards;
pub mod common;
pub mod filings;
pub mod recalls;
pub mod receipts;
pub mod registration;
pub mod research;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use operation::Service;
use webhooks::Matchers;

use crate::registration::{Registration, TaskContext, TaskRole};

/// THE LIST of services.
#[must_use]
pub fn registered() -> Vec<Registration> {
    vec![awards::service(), filings::service(), recalls::service(), receipts::service(), research::service()]
}

/// What the surfaces serve of all services.
#[must_use]
pub fn all() -> Vec<Service> {
    registered().into_iter().map(|registration| registration.service).collect()
}

/// The matchers of all services that have watches.
#[must_use]
pub fn matchers() -> Matchers {
    Matchers::new(registered().into_iter().filter_map(|registration| registration.matcher).collect())
}

/// The background tasks of all services for a role, and those that all services share: delivery to webhooks, signed checkpoints.
#[must_use]
pub fn tasks(role: TaskRole, given: &Arc<TaskContext>) -> Vec<BoxFuture<'static, ()>> {
    let registered = registered();
    let own = registered.iter().flat_map(|registration| registration.tasks).filter(|task| task.role == role);
    let mut tasks: Vec<BoxFuture<'static, ()>> = own.map(|task| (task.run)(Arc::clone(given))).collect();
    match role {
        TaskRole::Api => tasks.push(Box::pin(webhooks::sender::run(Arc::clone(&given.context), matchers(), given.holder.clone()))),
        TaskRole::Project => {
            let sources = registered.iter().filter_map(|registration| registration.checkpoints).collect();
            tasks.push(Box::pin(common::checkpoints::run(Arc::clone(given), sources)));
            tasks.push(Box::pin(common::witness::run(Arc::clone(&given.context), given.holder.clone())));
        }
    }
    tasks
}
