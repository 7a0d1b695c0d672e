//! The signer: lets receipts and checkpoints be signed only while the log continues what was signed before, by its [`Memory`].
//!
//! Promise: a process that was started on a restored backup, or on a copy of a data directory, signs nothing that contradicts what was signed
//! with the same key, until an operator declares the restore; then another key signs, and the log says why.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use schemas::error_code::ErrorCode;
use schemas::hash::Hash32;
use schemas::reason::reason;
use schemas::receipt::{Refusal, SigningKeys};
use schemas::topics::CHANGES_RECEIPTS;
use schemas::tree::{Checkpoint, Question};
use schemas::views::receipts::{SigningHistory, TABLES};

use super::Receipts;
use super::memory::{self, Found, Memory, Remembered, Successor, conflict, new_memory};
use crate::context::Context;
use crate::problem::Problem;
use crate::surfaces::metrics;

/// The name of the tree over receipts in the memory.
pub(super) const TREE: &str = "receipts";
/// Between two comparisons while signing is refused.
const COMPARE_INTERVAL: Duration = Duration::from_secs(2);
/// How long a comparison waits until the view has applied what is in the log.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(10);
/// How often a checkpoint is remembered again when another process remembers one at the same time.
const TRIES: usize = 5;
/// Why nothing is signed right after the start.
const UNCOMPARED: &str = "the log is not yet compared with what was signed before";
/// What an operator can do about a refusal.
const ADVICE: &str = "if a backup was restored on purpose: `highwater receipt-keys restore --reason TEXT`; if not, start on the newest data \
    directory (ops/docs/runbooks/restore.md)";

/// Decides whether this process may sign.
pub struct Signer {
    memory: Memory,
    keys: Arc<SigningKeys>,
    /// The key that signs if the log names none yet.
    first_key: String,
    /// The key for which the log was compared with the memory and signing was allowed; empty for none.
    allowed: Mutex<String>,
    /// Why the checkpoints of some trees are not signed, by the tree's service; those of the receipts stop all signing instead.
    refused_trees: Mutex<BTreeMap<String, String>>,
}

/// A tree that proves that it holds an earlier one.
#[async_trait]
pub(crate) trait Prover: Sync {
    /// The consistency proof from `old` leaves to `size`; `None` if the tree has not that many.
    async fn consistency(&self, size: u64, old: u64) -> Result<Option<Vec<Hash32>>, Problem>;
}

#[async_trait]
impl Prover for Receipts {
    async fn consistency(&self, size: u64, old: u64) -> Result<Option<Vec<Hash32>>, Problem> {
        self.tree(Question::Consistency { size, old }).await
    }
}

impl Signer {
    /// A signer with its memory. Nothing is refused before [`Self::start`].
    #[must_use]
    pub fn new(memory: Memory, keys: Arc<SigningKeys>, first_key: String) -> Self {
        Self { memory, keys, first_key, allowed: Mutex::default(), refused_trees: Mutex::default() }
    }

    /// The keys that are signed with.
    pub(crate) fn keys(&self) -> &SigningKeys {
        &self.keys
    }

    /// Why nothing is signed; `None` while signing is allowed.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.keys.refusal()
    }

    /// Compares the log with the memory before anything is signed. What cannot be compared yet is compared by [`Self::watch`], and until then
    /// nothing is signed.
    pub async fn start(&self, ctx: &Context) {
        self.keys.set_refusal(Some(Refusal::Wait(UNCOMPARED.to_owned())));
        match self.compare(ctx).await {
            Ok(None) => self.conclude(ctx, None).await,
            // The view may be behind the log: that is seen once it has caught up.
            Ok(Some(_)) => {}
            Err(problem) => tracing::warn!(reason = problem.detail, "the log cannot be compared with what was signed before"),
        }
    }

    /// Compares again and again while signing is refused. Never returns.
    pub async fn watch(&self, ctx: &Context) {
        loop {
            if self.refusal().is_some()
                && let Err(problem) = self.compare_again(ctx).await
            {
                tracing::warn!(reason = problem.detail, "the log cannot be compared with what was signed before");
            }
            tokio::time::sleep(COMPARE_INTERVAL).await;
        }
    }

    /// Compares once the view has applied what is in the log, and allows or refuses signing.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub async fn compare_again(&self, ctx: &Context) -> Result<(), Problem> {
        let end = ctx.log.end(&CHANGES_RECEIPTS, 0).await.map_err(|error| unavailable(reason(&error)))?;
        ctx.wait_for(TABLES.view, CAUGHT_UP_WITHIN, |at| at.offset >= end.0).await?;
        let refusal = self.compare(ctx).await?;
        self.conclude(ctx, refusal).await;
        Ok(())
    }

    /// Whether the log was compared with what the present key signed, and continues it.
    ///
    /// # Errors
    /// When the log or the store fails.
    pub(crate) async fn may_sign(&self, ctx: &Context, key: &str) -> Result<bool, Problem> {
        let is_compared = || *self.allowed.lock().unwrap_or_else(PoisonError::into_inner) == key;
        if self.refusal().is_none() && !is_compared() {
            // Another key signs now.
            self.compare_again(ctx).await?;
        }
        Ok(self.refusal().is_none() && is_compared())
    }

    /// Why the checkpoints of some trees are not signed, by the tree's service.
    #[must_use]
    pub fn refused_trees(&self) -> BTreeMap<String, String> {
        self.refused_trees.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers a checkpoint of a service's tree before it is signed; false if it must not be signed.
    ///
    /// # Errors
    /// When the memory or the store fails.
    pub(crate) async fn remember(
        &self,
        ctx: &Context,
        service: &str,
        key: &str,
        checkpoint: &Checkpoint,
        tree: &dyn Prover,
    ) -> Result<bool, Problem> {
        let known = named(&Receipts::now(ctx).await?.signing().await?);
        for _ in 0..TRIES {
            let found = self.memory.find(key).await.map_err(memory_problem)?;
            let refused = match found.refusal(&self.memory.place(key), &known) {
                Some(reason) => Some(reason),
                None => broken(tree, service, &found, checkpoint).await?,
            };
            if let Some(reason) = refused {
                if service == TREE {
                    // Another process may have signed a larger tree since this one was read, which is no reason to stop.
                    self.compare_again(ctx).await?;
                } else {
                    self.refuse_tree(service, Some(reason));
                }
                return Ok(false);
            }
            self.refuse_tree(service, None);
            if self.memory.advance(key, service, &found, checkpoint).await.map_err(memory_problem)? {
                return Ok(true);
            }
        }
        Err(unavailable(memory::Error::Contended { place: self.memory.place(key) }.to_string()))
    }

    /// Begins a declared restore: the present key signs nothing any more, and the memory of the next key begins at the tree of the log. Answers the
    /// next key, which is made by `make_key` unless an earlier call that was cut short had made one. It signs once the log names it.
    ///
    /// # Errors
    /// When the memory, the log or the store fails, or the key cannot be made.
    pub async fn begin_restore<F>(&self, ctx: &Context, restore_reason: &str, make_key: F) -> Result<String, Problem>
    where
        F: FnOnce() -> Result<String, Problem>,
    {
        self.compare_again(ctx).await?;
        let receipts = Receipts::now(ctx).await?;
        let signing = receipts.signing().await?;
        let present = signing.keys.last().map_or_else(|| self.first_key.clone(), |key| key.public_key_hex.clone());
        let found = self.memory.find(&present).await.map_err(memory_problem)?;
        let next = match self.declared(&found, &named(&signing)) {
            Some(successor) => successor.key,
            None => make_key()?,
        };
        let tree = receipts.newest().await?.ok_or_else(damaged)?;
        self.memory.change(&next, |found| found.remembered.is_none().then(new_memory)).await.map_err(memory_problem)?;
        let successor = Successor { key: next.clone(), reason: restore_reason.to_owned() };
        let replaced = |found: &Found| {
            let remembered = found.remembered.clone().unwrap_or_else(new_memory);
            Some(Remembered { successor: Some(successor.clone()), ..remembered })
        };
        self.memory.change(&present, replaced).await.map_err(memory_problem)?;
        if tree.size > 0 {
            let found = self.memory.find(&next).await.map_err(memory_problem)?;
            self.memory.advance(&next, TREE, &found, &tree).await.map_err(memory_problem)?;
        }
        let refusal = self.compare(ctx).await?;
        self.conclude(ctx, refusal).await;
        Ok(next)
    }

    /// The key of a restore that was declared here and that the log does not name yet.
    fn declared(&self, found: &Found, known: &[String]) -> Option<Successor> {
        let successor = found.remembered.as_ref()?.successor.clone()?;
        let is_here = self.keys.public().contains(&successor.key);
        (is_here && !successor.reason.is_empty() && !known.contains(&successor.key)).then_some(successor)
    }

    /// Why the log does not continue what was signed with its keys; `None` if it does.
    async fn compare(&self, ctx: &Context) -> Result<Option<Refusal>, Problem> {
        let signing = Receipts::now(ctx).await?.signing().await?;
        let known = named(&signing);
        let mut keys: Vec<String> = signing.since_restore().iter().map(|key| key.public_key_hex.clone()).collect();
        if keys.is_empty() {
            keys.push(self.first_key.clone());
        }
        let mut all = Vec::new();
        for key in keys {
            let found = match self.memory.find(&key).await {
                Ok(found) => found,
                Err(error) => return Ok(Some(Refusal::Wait(reason(&error)))),
            };
            if let Some(successor) = self.declared(&found, &known) {
                let parked = format!(
                    "a restore was declared, and the key {} signs from then on: if this stays, run `highwater receipt-keys restore` again",
                    successor.key
                );
                return Ok(Some(Refusal::Park(parked)));
            }
            if let Some(reason) = found.refusal(&self.memory.place(&key), &known) {
                return Ok(Some(wait(&reason)));
            }
            all.push((key, found));
        }
        // Read after the memory: what was signed by then was in the tree by then.
        let receipts = Receipts::now(ctx).await?;
        let newest = receipts.newest().await?.ok_or_else(damaged)?;
        for (_, found) in &all {
            if let Some(reason) = broken(&receipts, TREE, found, &newest).await? {
                return Ok(Some(wait(&reason)));
            }
        }
        Ok(self.take_up(&receipts, &all).await.err().map(|error| Refusal::Wait(reason(&error))))
    }

    /// Remembers the log's newest checkpoint where it was signed before there was a memory, and which key signs in place of older ones.
    async fn take_up(&self, receipts: &Receipts, all: &[(String, Found)]) -> Result<(), memory::Error> {
        let sealed = receipts.sealed().await.ok().flatten().unwrap_or_default();
        let Some((present, _)) = all.last() else { return Ok(()) };
        for (key, found) in all {
            let checkpoint = Checkpoint::read(&sealed.note, [key.as_str()]).filter(|_| found.remembered.is_none());
            if let Some(checkpoint) = checkpoint {
                self.memory.advance(key, TREE, found, &checkpoint).await?;
            }
            if key == present {
                continue;
            }
            let replaced = |found: &Found| {
                let remembered = found.remembered.clone()?;
                let is_known = remembered.successor.as_ref().is_some_and(|successor| successor.key == *present);
                let successor = Some(Successor { key: present.clone(), reason: String::new() });
                (!is_known).then_some(Remembered { successor, ..remembered })
            };
            self.memory.change(key, replaced).await?;
        }
        Ok(())
    }

    /// Notes why the checkpoints of a tree are not signed (`None`: they are), and says so where that changes.
    fn refuse_tree(&self, service: &str, reason: Option<String>) {
        let mut refused = self.refused_trees.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &reason {
            Some(reason) => refused.insert(service.to_owned(), format!("{reason}; {ADVICE}")),
            None => refused.remove(service),
        };
        metrics::signing_refused(!refused.is_empty() || self.refusal().is_some());
        match (before, reason) {
            (None, Some(reason)) => tracing::error!(service, reason, "the checkpoints of a service are not signed"),
            (Some(_), None) => tracing::info!(service, "the checkpoints of a service are signed again"),
            _ => {}
        }
    }

    /// Allows or refuses signing, and says so where that changes.
    async fn conclude(&self, ctx: &Context, refusal: Option<Refusal>) {
        let key = match (&refusal, Receipts::now(ctx).await) {
            (None, Ok(receipts)) => receipts.signing().await.ok().and_then(|mut signing| signing.keys.pop()).map(|key| key.public_key_hex),
            _ => None,
        };
        *self.allowed.lock().unwrap_or_else(PoisonError::into_inner) = key.unwrap_or_default();
        metrics::signing_refused(refusal.is_some());
        let before = self.keys.set_refusal(refusal.clone());
        if before == refusal {
            return;
        }
        match (before, refusal) {
            (_, Some(refusal)) => tracing::error!(reason = refusal.reason(), "receipts and checkpoints are not signed"),
            (Some(before), None) if before.reason() != UNCOMPARED => tracing::info!("receipts and checkpoints are signed again"),
            _ => {}
        }
    }
}

/// All keys that a log names.
fn named(signing: &SigningHistory) -> Vec<String> {
    signing.keys.iter().map(|key| key.public_key_hex.clone()).collect()
}

/// Why a tree does not continue the one that is remembered; `None` if it does, or if none is.
async fn broken(tree: &dyn Prover, service: &str, found: &Found, next: &Checkpoint) -> Result<Option<String>, Problem> {
    let Some(signed) = found.remembered.as_ref().and_then(|remembered| remembered.trees.get(service)) else { return Ok(None) };
    let Some(old) = signed.checkpoint() else { return Ok(Some("the signer's memory holds no hash of the tree".to_owned())) };
    let proof = if next.size > old.size { tree.consistency(next.size, old.size).await? } else { None };
    Ok(conflict(&old, next, proof.as_deref()))
}

fn wait(reason: &str) -> Refusal {
    Refusal::Wait(format!("{reason}; {ADVICE}"))
}

fn unavailable(detail: String) -> Problem {
    Problem::new(ErrorCode::Unavailable, detail).retry_after(1)
}

fn memory_problem(error: memory::Error) -> Problem {
    unavailable(reason(&error))
}

fn damaged() -> Problem {
    Problem::new(ErrorCode::Internal, "the tree over receipts lacks a hash")
}
