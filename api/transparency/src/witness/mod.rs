//! Witnesses (C2SP tlog-witness): other parties cosign our checkpoints, and we cosign those of other logs, by configuration.
//!
//! A witness signs a checkpoint only if it continues the one that it signed last. A reader who trusts a witness and sees its cosignature knows that
//! no other reader is shown a different history of that size.
//!
//! Promises: no checkpoint waits for a witness, and none is served with a cosignature over another text. As a witness this process stores a
//! checkpoint durably before it gives out the cosignature. Of two checkpoints that are submitted over the same older one, at most one history is
//! cosigned.

mod client;
mod cosignatures;
mod files;
mod own;
mod record;
mod remote;
mod request;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::note::VerifierKey;

pub use client::run;
pub(crate) use cosignatures::newest_cosigned;
pub use cosignatures::with_cosignatures;
pub use cosignatures::{CosignatureStatus, status};
pub use files::CheckpointFile;
pub use own::{KnownLog, OwnWitness, Refusal};
pub use record::RecordPlace;
pub use remote::{Witness, WitnessError};

use crate::prover::SignedTree;
use operation::context::{Context, Part};

/// The witnesses that a process asks, and the witness that it runs itself.
#[derive(Debug, Default)]
pub struct Witnessing {
    /// The witnesses that are asked to cosign our checkpoints.
    pub(crate) asked: Vec<Witness>,
    /// The witness that this process runs for other logs, if any are configured.
    pub(crate) own: Option<OwnWitness>,
    /// Returns the signed trees of all services; `None` if there are none.
    trees: Option<Trees>,
    standings: Mutex<BTreeMap<Pair, Standing>>,
}

/// Returns the signed trees of all services. They are made when they are needed.
pub type Trees = fn() -> Vec<Arc<dyn SignedTree>>;

/// A service's tree and the name of a witness.
type Pair = (&'static str, String);

/// The progress of a witness with the checkpoints of a tree, as the asking process sees it.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// Since when the newest checkpoint has lacked the witness's cosignature; `None` if it has it.
    behind_since: Option<Instant>,
    /// Why the witness did not cosign when it was last asked; empty if it did.
    reason: String,
}

impl Part for Witnessing {}

impl Witnessing {
    /// The witnesses to ask, and the witness that this process runs.
    #[must_use]
    pub fn new(asked: Vec<Witness>, own: Option<OwnWitness>) -> Self {
        Self { asked, own, trees: None, standings: Mutex::default() }
    }

    /// Asks the witnesses about these trees, of which those are left out whose service is not served.
    #[must_use]
    pub fn with_trees(self, trees: Trees) -> Self {
        Self { trees: Some(trees), ..self }
    }

    /// The witness that this process runs for other logs, if any are configured.
    #[must_use]
    pub fn own(&self) -> Option<&OwnWitness> {
        self.own.as_ref()
    }

    /// The public key of the witness that this process runs.
    #[must_use]
    pub fn own_key(&self) -> Option<&VerifierKey> {
        self.own.as_ref().map(OwnWitness::key)
    }

    /// Changes the progress of a witness with a tree. Returns the previous reason.
    fn set_standing(&self, pair: &Pair, change: impl FnOnce(&mut Standing)) -> String {
        let mut standings = self.standings.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = standings.entry(pair.clone()).or_default();
        let before = standing.reason.clone();
        change(standing);
        before
    }

    /// Why a witness did not cosign a tree's checkpoint when this process last asked it; empty if it did, or was not asked.
    fn reason(&self, pair: &Pair) -> String {
        let standings = self.standings.lock().unwrap_or_else(PoisonError::into_inner);
        standings.get(pair).map(|standing| standing.reason.clone()).unwrap_or_default()
    }
}

/// The signed trees of all services that are served.
fn served_trees(ctx: &Context) -> Vec<Arc<dyn SignedTree>> {
    let is_served = |name: &str| ctx.settings.services.get(name).is_some_and(|settings| settings.enabled);
    let trees = Witnessing::of(ctx).trees.map_or_else(Vec::new, |trees| trees());
    trees.into_iter().filter(|tree| is_served(tree.service())).collect()
}
