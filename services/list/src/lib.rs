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
use projector::runtime::{ProjectedService, projected};
use projector::service_def::ServiceDef;
use projector::services as folds;
use reads::prover::SignedTree;
use schemas::tables::ViewDef;
use webhooks::Matchers;

use reads::registration::{Registration, TaskContext, TaskRole};

/// A service: its registration, and its fold as the projector runs it.
type Listed = (Registration, ProjectedService);

/// THE LIST of services.
fn list() -> Vec<Listed> {
    vec![
        listed::<folds::aviation::Aviation>(aviation::service()),
        listed::<folds::awards::Awards>(awards::service()),
        listed::<folds::cadence::Cadence>(cadence::service()),
        listed::<folds::catalysts::Catalysts>(catalysts::service()),
        listed::<folds::coverage::Coverage>(coverage::service()),
        listed::<folds::exclusions::Exclusions>(exclusions::service()),
        listed::<folds::filings::Filings>(filings::service()),
        listed::<folds::labs::Labs>(labs::service()),
        listed::<folds::names::Names>(names::service()),
        listed::<folds::parcels::Parcels>(parcels::service()),
        listed::<folds::phrases::Phrases>(phrases::service()),
        listed::<folds::recalls::Recalls>(recalls::service()),
        listed::<folds::receipts::Receipts>(receipts::service()),
        listed::<folds::research::Research>(research::service()),
    ]
}

fn listed<S: fold::service::Service>(registration: Registration) -> Listed {
    (registration, projected::<S>())
}

/// The list is made once in a process.
static LIST: LazyLock<(Vec<Registration>, Vec<ProjectedService>)> = LazyLock::new(|| list().into_iter().unzip());

/// What the projector runs: the services of the engine and all others, in the order of their names.
#[must_use]
pub fn projected_services() -> &'static [ProjectedService] {
    static PROJECTED: LazyLock<Vec<ProjectedService>> = LazyLock::new(|| {
        let mut all = projector::services::of_engine();
        all.extend(&LIST.1);
        all.sort_unstable_by_key(|service| service.def.view.name);
        all
    });
    &PROJECTED
}

/// The views and topics of the services that the projector runs, in the order of their names.
#[must_use]
pub fn defs() -> &'static [ServiceDef] {
    static DEFS: LazyLock<Vec<ServiceDef>> = LazyLock::new(|| projected_services().iter().map(|service| service.def).collect());
    &DEFS
}

/// The views of the services that the projector runs: those that are derived from changes and that can be replayed, decided again and digested. In the
/// order of their names.
#[must_use]
pub fn views() -> &'static [&'static ViewDef] {
    static VIEWS: LazyLock<Vec<&'static ViewDef>> = LazyLock::new(|| defs().iter().map(|service| service.view).collect());
    &VIEWS
}

/// The registrations of all services.
#[must_use]
pub fn registered() -> &'static [Registration] {
    &LIST.0
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

#[cfg(test)]
mod tests {
    use schemas::suppression::RECORD;

    use super::*;

    /// Proves that no service decides from changes that depend on its own.
    #[test]
    fn services_form_no_circle() {
        assert_eq!(projector::service_def::circle(defs()), None);
    }

    /// Proves which fields the services hide when a record is suppressed.
    #[test]
    fn hidden_fields() {
        assert_eq!(
            access::suppression::hidden_fields(views(), &RECORD),
            [
                "cadence (item, vendor, url, variants)",
                "coverage (business, dba, city, zip, ids, url, evidence, mandate, joined)",
                "exclusions (name, nameKeys, otherNames, uei, cage, comments, exclusions)",
                "filings (owners, company, cik)",
                "labs (pi)",
                "parcels (address, basis, ratio, peerMedian, url)",
                "phrases (phrase)",
                "research (pi, investigators)",
            ]
        );
    }
}
