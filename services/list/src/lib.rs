//! The list of services. Each is a crate of its own; the binary hands the list to the projector, the API and the configuration, which name no service.
//!
//! Architecture invariants: a service states facts (name, route, description, types, price, errors); the crates `surfaces` and `webhooks`
//! render and deliver them. No service depends on another: what one asks of another is set as a part of the context ([`with_parts`]).

#[cfg(test)]
mod company_tests;
pub mod entities;
#[cfg(test)]
mod exports_tests;
#[cfg(test)]
mod free_callers;
#[cfg(test)]
mod late_news_tests;
mod licences;
#[cfg(test)]
mod numbers_tests;
#[cfg(test)]
mod places_tests;
mod selection;
#[cfg(test)]
mod sources_tests;
#[cfg(test)]
mod status_tests;
#[cfg(test)]
mod unknown_tests;

use std::sync::{Arc, LazyLock};

use access::suppression::ServiceViews;
use clearance::Registers;
use futures_util::future::BoxFuture;
use operation::Service;
use operation::context::{Context, Settings};
use operation::document_receipt::ReceiptIssuer;
use projector::runtime::{ProjectedService, projected};
use projector::service_def::ServiceDef;
use schemas::tables::ViewDef;
use transparency::prover::SignedTree;
use webhooks::Matchers;

use reads::registration::{Registration, TaskContext, TaskRole};
use schemas::views::receipts::TABLES as RECEIPTS;

pub use selection::{Disabled, Selection, selected};

/// A service: its registration, which is made when it is needed, and its fold as the projector runs it.
type Listed = (fn() -> Registration, ProjectedService);

/// THE LIST of services.
fn list() -> Vec<Listed> {
    vec![
        listed::<aviation::rules::Aviation>(aviation::service),
        listed::<awards::rules::Awards>(awards::service),
        listed::<cadence::rules::Cadence>(cadence::service),
        listed::<catalysts::rules::Catalysts>(catalysts::service),
        listed::<coverage::rules::Coverage>(coverage::service),
        listed::<exclusions::rules::Exclusions>(exclusions::service),
        listed::<filings::rules::Filings>(filings::service),
        listed::<labs::rules::Labs>(labs::service),
        listed::<names::rules::Names>(names::service),
        listed::<parcels::rules::Parcels>(parcels::service),
        listed::<phrases::rules::Phrases>(phrases::service),
        listed::<recalls::rules::Recalls>(recalls::service),
        listed::<receipts::rules::Receipts>(receipts::service),
        listed::<research::rules::Research>(research::service),
    ]
}

/// The names of all services, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    list().into_iter().map(|(_, service)| service.def.view.name)
}

fn listed<S: fold::service::Service>(registration: fn() -> Registration) -> Listed {
    (registration, projected::<S>())
}

/// What the projector runs: the services of the engine and all others, in the order of their names.
#[must_use]
pub fn projected_services() -> &'static [ProjectedService] {
    static PROJECTED: LazyLock<Vec<ProjectedService>> = LazyLock::new(|| {
        let mut all = projector::services::of_engine();
        all.extend(list().into_iter().map(|(_, service)| service));
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

/// The registrations of all services. They are made once in a process.
#[must_use]
pub fn registered() -> &'static [Registration] {
    static REGISTERED: LazyLock<Vec<Registration>> =
        LazyLock::new(|| list().into_iter().map(|(registration, _)| with_shared_parts(registration())).collect());
    &REGISTERED
}

/// Adds the operations of entities, which ask several services, to the service that offers them, and says which entities its records name, and which licences
/// what it shows has.
fn with_shared_parts(registration: Registration) -> Registration {
    let name = registration.service.name;
    let mut registration = registration.with(entities::operations_of(name, registered));
    registration.service.entities = entities::links_of(name);
    match licences::of(name, defs()) {
        // A service can have a more detailed list of its own.
        Some(file) if registration.service.data.iter().all(|own| own.name != file.name) => registration.with_data(file),
        _ => registration,
    }
}

/// What the surfaces serve of all services.
#[must_use]
pub fn all() -> Vec<Service> {
    registered().iter().map(|registration| registration.service.clone()).collect()
}

/// The matchers of the services that have watches and are served.
#[must_use]
pub fn matchers(settings: &Settings) -> Matchers {
    let served = registered().iter().filter(|registration| settings.serves(registration.service.name));
    Matchers::new(served.filter_map(|registration| registration.matcher).collect())
}

/// The signed trees of all services.
#[must_use]
pub fn trees() -> Vec<Arc<dyn SignedTree>> {
    registered().iter().filter_map(|registration| registration.tree.clone()).collect()
}

/// Sets the parts of a context that follow from the list: the views whose records can be hidden, the register of trademarks that services ask, and the
/// service that issues receipts over documents.
#[must_use]
pub fn with_parts(context: Context) -> Context {
    context
        .with(ServiceViews(views()))
        .with(Registers(Some(&names::operations::clearance::Trademarks)))
        .with(ReceiptIssuer(Some(&receipts::operations::document::Issuer)))
}

/// Takes the register of trademarks away from a context: no credential for it is set, so services clear no name.
#[must_use]
pub fn without_register(context: Context) -> Context {
    context.with(Registers(None))
}

/// Prepares the services that are served, so that their first calls do not wait for what every call needs.
pub async fn prepare(context: &Arc<Context>) {
    let served = registered().iter().filter(|registration| context.settings.serves(registration.service.name));
    for prepare in served.filter_map(|registration| registration.prepare) {
        prepare(Arc::clone(context)).await;
    }
}

/// The background tasks of a role: those of receipts and of each service that is enabled, and those that all services share (delivery to webhooks, signed
/// checkpoints).
#[must_use]
pub fn tasks(role: TaskRole, given: &Arc<TaskContext>) -> Vec<BoxFuture<'static, ()>> {
    let settings = &given.context.settings;
    let is_on = |registration: &&Registration| {
        let name = registration.service.name;
        name == RECEIPTS.view.name || settings.serves(name)
    };
    let own = registered().iter().filter(is_on).flat_map(|registration| registration.tasks).filter(|task| task.role == role);
    let mut tasks: Vec<BoxFuture<'static, ()>> = own.map(|task| (task.run)(Arc::clone(given))).collect();
    match role {
        TaskRole::Api => {
            tasks.push(Box::pin(webhooks::sender::run(Arc::clone(&given.context), matchers(settings), given.holder.clone())));
        }
        TaskRole::Project => {
            let sources: Vec<_> = registered().iter().filter(is_on).filter_map(|registration| registration.checkpoints).collect();
            let given_to_trees = Arc::clone(given);
            if !sources.is_empty() {
                tasks.push(Box::pin(async move {
                    let TaskContext { context, signer, holder } = &*given_to_trees;
                    transparency::checkpoints::run(context, &**signer, holder, sources).await;
                }));
            }
            tasks.push(Box::pin(transparency::witness::run(Arc::clone(&given.context), given.holder.clone())));
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

    /// Proves that the source of a service's changes has the view and the change topic of the service, and that the topics which say how complete the service
    /// is are inputs of it.
    #[test]
    fn sources_are_of_their_services() {
        // Receipts have a tree of their own in place of checkpoints.
        let sources: Vec<_> = registered().iter().filter_map(|registration| registration.checkpoints).chain([receipts::SOURCE]).collect();
        assert_eq!(sources.len(), registered().len());
        for source in sources {
            let def = defs().iter().find(|def| def.view.name == source.service).unwrap();
            assert_eq!((source.view.name, source.topic.name), (def.view.name, def.changes.name));
            assert!(source.facts.iter().all(|topic| def.reads(topic)), "{}", source.service);
        }
    }

    /// Proves which services show callers without a key something other than the changes of 7 days: everything, or the redacted form of their records.
    #[test]
    fn what_callers_without_a_key_see() {
        let sources = registered().iter().filter_map(|registration| registration.checkpoints);
        let shown = sources.map(|source| (source.service, source.sample_days, source.redaction.is_some()));
        let others: Vec<_> = shown.filter(|(_, days, is_redacted)| (*days, *is_redacted) != (Some(7), false)).collect();
        assert_eq!(
            others,
            [
                ("aviation", None, false),
                ("cadence", None, false),
                ("catalysts", None, true),
                ("coverage", None, true),
                ("exclusions", None, false),
                ("labs", None, true),
                ("names", None, false),
                ("parcels", None, true),
                ("phrases", None, false),
                ("recalls", None, false),
            ]
        );
    }

    /// Proves which fields the services hide when a record is suppressed.
    #[test]
    fn hidden_fields() {
        assert_eq!(
            access::suppression::hidden_fields(views(), &RECORD),
            [
                "cadence (item, vendor, url, variants)",
                "coverage (id, business, dba, city, zip, ids, url, evidence, mandate, joined, mergedInto)",
                "exclusions (name, nameKeys, otherNames, uei, cage, comments, exclusions)",
                "filings (owners, company, cik)",
                "labs (pi)",
                "parcels (address, basis, ratio, peerMedian, reasons, permit, url, lien, flag)",
                "phrases (phrase)",
                "research (pi, investigators, sponsor, collaborators)",
            ]
        );
    }
}
