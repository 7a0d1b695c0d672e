//! Whether this deployment signs receipts and checkpoints: the keys of this process, and which trees are refused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use proofs::receipt::{Refusal, SigningKeys};
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};

use crate::context::Part;
use crate::problem::Problem;

/// The service whose tree holds receipts. While signing is refused altogether, its checkpoint is withheld.
const RECEIPTS: &str = "receipts";

/// Why the checkpoints of some trees are not signed, by the tree's service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RefusedTrees(pub BTreeMap<String, String>);

/// The keys that this process signs with, and what is refused: by its own signer, or by the signers of nodes that share the store.
#[derive(Debug, Default)]
pub struct SigningState {
    keys: Arc<SigningKeys>,
    trees: Mutex<RefusedTrees>,
}

impl Part for SigningState {}

impl SigningState {
    /// Creates a state in which nothing is refused.
    #[must_use]
    pub fn new(keys: Arc<SigningKeys>) -> Self {
        Self { keys, trees: Mutex::default() }
    }

    /// The signing keys.
    #[must_use]
    pub fn keys(&self) -> &SigningKeys {
        &self.keys
    }

    /// Why nothing is signed; `None` while signing is allowed.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.keys.refusal()
    }

    /// The trees whose checkpoints are not signed.
    #[must_use]
    pub fn refused_trees(&self) -> RefusedTrees {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets which trees are refused.
    pub fn set_refused_trees(&self, trees: RefusedTrees) {
        *self.trees.lock().unwrap_or_else(PoisonError::into_inner) = trees;
    }

    /// Sets why the checkpoints of a tree are not signed; `None` if they are. Returns the previous reason.
    pub fn refuse_tree(&self, service: &str, reason: Option<String>) -> Option<String> {
        let trees = &mut self.trees.lock().unwrap_or_else(PoisonError::into_inner).0;
        match reason {
            Some(reason) => trees.insert(service.to_owned(), reason),
            None => trees.remove(service),
        }
    }

    /// Whether anything is refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.refusal().is_some() || !self.refused_trees().0.is_empty()
    }

    /// Refuses a service's checkpoint if this log does not extend what was signed for that tree.
    ///
    /// # Errors
    /// `unavailable`. The reason is shown to the operator only.
    pub fn check_checkpoint(&self, service: &str) -> Result<(), Problem> {
        let is_conflict = service == RECEIPTS && matches!(self.refusal(), Some(Refusal::Conflict(_)));
        if !is_conflict && !self.refused_trees().0.contains_key(service) {
            return Ok(());
        }
        let detail = "no checkpoint is available now: this server's log does not extend what was signed before";
        Err(Problem::new(ErrorCode::Unavailable, detail).retry_after(5))
    }

    /// The note for readers of a service's feed while its checkpoints are withheld; `None` otherwise. The reason is shown to the operator only.
    #[must_use]
    pub fn unsigned_note(&self, service: &str) -> Option<String> {
        let words = "the newest changes are not signed: this server's log does not extend what was signed before, so it may be an old copy, and other changes may \
                     have their numbers elsewhere";
        self.check_checkpoint(service).is_err().then(|| words.to_owned())
    }

    /// The lines of `/readyz` about refused signing. The reasons are shown to the operator only, by `highwater status`.
    #[must_use]
    pub fn notices(&self) -> String {
        let mut lines = String::new();
        if self.refusal().is_some() {
            lines += "receipts and checkpoints are not signed: see highwater status\n";
        }
        for service in self.refused_trees().0.keys() {
            lines += &format!("checkpoints of {service} are not signed: see highwater status\n");
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a checkpoint is withheld if the log contradicts what was signed, and only then, and that the notices do not show the reason.
    #[test]
    fn checkpoints_of_refused_trees_are_withheld() {
        let state = SigningState::default();
        let withheld = || ["receipts", "recalls"].map(|service| state.check_checkpoint(service).is_err());
        assert_eq!((withheld(), state.notices()), ([false, false], String::new()));
        let noted = || ["receipts", "recalls"].map(|service| state.unsigned_note(service).is_some_and(|note| !note.contains("secret")));
        assert_eq!(noted(), [false, false]);
        for (refusal, is_withheld) in [(Refusal::Wait("secret".to_owned()), false), (Refusal::Conflict("secret".to_owned()), true)] {
            state.keys().set_refusal(Some(refusal));
            assert_eq!((withheld(), noted()), ([is_withheld, false], [is_withheld, false]));
            assert!(state.notices().starts_with("receipts and checkpoints") && !state.notices().contains("secret"));
        }
        state.keys().set_refusal(None);
        assert_eq!(state.refuse_tree("recalls", Some("secret".to_owned())), None);
        assert_eq!((withheld(), noted(), state.is_refused()), ([false, true], [false, true], true));
        assert_eq!(state.notices(), "checkpoints of recalls are not signed: see highwater status\n");
        assert_eq!(state.refuse_tree("recalls", None).as_deref(), Some("secret"));
        assert!(!state.is_refused());
    }
}
