//! Witnesses (C2SP tlog-witness): other parties cosign our checkpoints, and we cosign those of other logs, by configuration.
//!
//! A witness signs a checkpoint only if it continues the one that it signed last. Whoever trusts a witness and sees its cosignature knows that
//! nobody is shown another history of that size.
//!
//! Promises: no checkpoint waits for a witness, and none is served with a cosignature over another text. As a witness we remember a checkpoint,
//! durably, before its cosignature is given out; of two checkpoints that are submitted over the same older one, at most one history is cosigned.

mod client;
mod cosignatures;
mod files;
mod own;
mod record;
mod remote;
mod request;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use schemas::hash::Hash32;
use schemas::note::VerifierKey;
use schemas::views::receipts::SignedCheckpoint;

pub use client::run;
pub use cosignatures::{CosignatureStatus, status};
pub(crate) use cosignatures::{newest_cosigned, with_cosignatures};
pub(crate) use files::CheckpointFile;
pub use own::{KnownLog, OwnWitness, Refusal};
pub use record::RecordPlace;
pub use remote::{Witness, WitnessError};

use crate::common::change_tree::Tree;
use crate::common::prover::Prover;
use crate::receipts::Receipts;
use operation::context::{Context, Part};
use operation::problem::Problem;

/// What a process has to do with witnesses: those that it asks, and the one that it is.
#[derive(Debug, Default)]
pub struct Witnessing {
    /// The witnesses that are asked to cosign our checkpoints.
    pub(crate) asked: Vec<Witness>,
    /// The witness that this process is for other logs, if any are configured.
    pub(crate) own: Option<OwnWitness>,
    standings: Mutex<BTreeMap<Pair, Standing>>,
}

/// A service's tree and the name of a witness.
type Pair = (&'static str, String);

/// How far a witness is with the checkpoints of a tree, as the process that asks sees it.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// Since when the newest checkpoint lacks the witness's cosignature; `None` if it has it.
    behind_since: Option<Instant>,
    /// Why the witness did not cosign when it was last asked; empty if it did.
    reason: String,
}

impl Part for Witnessing {}

impl Witnessing {
    /// The witnesses that are asked, and the one that this process is.
    #[must_use]
    pub fn new(asked: Vec<Witness>, own: Option<OwnWitness>) -> Self {
        Self { asked, own, standings: Mutex::default() }
    }

    /// The witness that this process is for other logs, if any are configured.
    #[must_use]
    pub fn own(&self) -> Option<&OwnWitness> {
        self.own.as_ref()
    }

    /// The public key of the witness that this process is.
    #[must_use]
    pub fn own_key(&self) -> Option<&VerifierKey> {
        self.own.as_ref().map(OwnWitness::key)
    }

    /// Changes how far a witness is with a tree; answers the reason of before.
    fn set_standing(&self, pair: &Pair, change: impl FnOnce(&mut Standing)) -> String {
        let mut standings = self.standings.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = standings.entry(pair.clone()).or_default();
        let before = standing.reason.clone();
        change(standing);
        before
    }

    /// Why a witness did not cosign a tree's checkpoint when this process asked it last; empty if it did, or was not asked.
    fn reason(&self, pair: &Pair) -> String {
        let standings = self.standings.lock().unwrap_or_else(PoisonError::into_inner);
        standings.get(pair).map(|standing| standing.reason.clone()).unwrap_or_default()
    }
}

/// A tree of ours whose checkpoints are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnTree {
    /// The tree over receipts.
    Receipts,
    /// The tree over a service's changes.
    Changes(&'static str),
}

impl OwnTree {
    /// The trees of all services that are served.
    fn all(ctx: &Context) -> Vec<Self> {
        let services = crate::registered();
        let is_served = |name: &str| ctx.settings.services.get(name).is_some_and(|settings| settings.enabled);
        let changes = services.iter().filter_map(|registration| registration.checkpoints).map(|source| Self::Changes(source.service));
        [Self::Receipts].into_iter().chain(changes).filter(|tree| is_served(tree.service())).collect()
    }

    /// The service that serves the tree.
    fn service(self) -> &'static str {
        match self {
            Self::Receipts => crate::receipts::SOURCE.service,
            Self::Changes(service) => service,
        }
    }

    /// The newest signed checkpoint; `None` before the first.
    async fn sealed(self, ctx: &Context) -> Result<Option<SignedCheckpoint>, Problem> {
        match self {
            Self::Receipts => Receipts::now(ctx).await?.sealed().await,
            Self::Changes(service) => Tree::now(ctx, service).await?.sealed().await,
        }
    }

    /// Proves that the tree of `size` leaves holds the one of `old`; `None` if a hash is missing.
    async fn consistency(self, ctx: &Context, size: u64, old: u64) -> Result<Option<Vec<Hash32>>, Problem> {
        match self {
            Self::Receipts => Receipts::now(ctx).await?.consistency(size, old).await,
            Self::Changes(service) => Tree::now(ctx, service).await?.consistency(size, old).await,
        }
    }
}
