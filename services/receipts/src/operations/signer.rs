//! The signer: allows signatures of receipts and checkpoints only while the log continues what was signed before, according to its [`Memory`].
//!
//! Promise: a process on a restored backup, or on a copy of a data directory, signs nothing that contradicts what was signed with the same key. Once an
//! operator declares the restore, another key signs, and the log says why. The log names the memory of each key before the first checkpoint is signed
//! with it, so that a lost memory is recognised.

use operation::context::Part;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use proofs::receipt::Refusal;
use proofs::tree::Checkpoint;
use schemas::error_code::ErrorCode;
use schemas::reason::reason;
use schemas::topics::CHANGES_RECEIPTS;
use schemas::views::receipts::{MEMORY, PublicKey, ReceiptCommand, SigningHistory, TABLES};
use tokio::sync::Notify;

use crate::Receipts;
use access::append::{self, CommandPolicy};
use operation::context::Context;
use operation::metrics::{self, RoundTask};
use operation::problem::Problem;
use operation::signing_state::SigningState;
use transparency::memory::{self, Memory, ReadMemory, Remembered, SignedTree, Successor, conflict, new_memory};
use transparency::prover::{CheckpointSigner, Prover};

/// The name of the tree over receipts in the memory.
pub const TREE: &str = "receipts";
/// How long a comparison waits until the view has applied what is in the log.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(10);
/// How long a comparison may take as a whole.
const COMPARED_WITHIN: Duration = Duration::from_secs(30);
/// How often an attempt to remember a checkpoint is repeated when another process remembers one at the same time.
const TRIES: usize = 5;
/// Why nothing is signed directly after the start.
const UNCOMPARED: &str = "the log is not yet compared with what was signed before";
/// Why a remembered tree cannot be compared.
const NO_HASH: &str = "the signer's memory holds no hash of the tree";
/// What an operator can do about a refusal.
const ADVICE: &str = "if a backup was restored on purpose: `highwater receipt-keys restore --reason TEXT`; if not, start on the newest data \
    directory (ops/docs/guides/back-up-and-restore.md)";

/// A receipt key of the current history, and its entry in the memory.
type Compared = (PublicKey, ReadMemory);

/// Decides whether this process may sign.
pub struct Signer {
    ctx: Arc<Context>,
    memory: Memory,
    /// The key that signs while the log names none.
    first_key: String,
    /// The key that may sign checkpoints, because the log was compared with its memory and names that memory; empty if there is none.
    allowed: Mutex<String>,
    /// The remembered trees over receipts that this log holds, by key. They are not compared again.
    held: Mutex<BTreeMap<String, SignedTree>>,
    /// Held during a comparison, so that only one at a time allows or refuses signing.
    comparing: tokio::sync::Mutex<()>,
    /// Held by [`Self::compare_if_needed`], so that a memory is recorded in the log once.
    needed: tokio::sync::Mutex<()>,
    /// Wakes [`Self::watch`] for a comparison.
    wake: Notify,
}

impl Signer {
    /// A signer with its memory. Nothing is refused before [`Self::start`].
    #[must_use]
    pub fn new(ctx: Arc<Context>, memory: Memory, first_key: String) -> Self {
        Self {
            ctx,
            memory,
            first_key,
            allowed: Mutex::default(),
            held: Mutex::default(),
            comparing: tokio::sync::Mutex::default(),
            needed: tokio::sync::Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// The keys, and the refusals.
    pub(crate) fn state(&self) -> Arc<SigningState> {
        SigningState::of(&self.ctx)
    }

    /// Refuses signing until [`Self::watch`] has compared the log with the memory. It must be called before anything can sign.
    pub fn start(&self) {
        self.state().keys().set_refusal(Some(Refusal::Wait(UNCOMPARED.to_owned())));
    }

    /// Compares the log with the memory, again and again while signing is refused or another key signs. Never returns.
    pub async fn watch(&self) {
        loop {
            self.ctx.store.served(&[TABLES.view.name]).await;
            self.compare_if_needed().await;
            metrics::count_round(RoundTask::Signer);
            tokio::select! {
                () = tokio::time::sleep(self.ctx.settings.rounds.signer) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Compares the log with the memory if signing is refused or another key signs. A failure, or a comparison that takes too long, is logged and becomes
    /// the reason of the refusal.
    pub async fn compare_if_needed(&self) {
        let _one = self.needed.lock().await;
        let compared = tokio::time::timeout(COMPARED_WITHIN, async {
            if self.state().refusal().is_none() && self.is_allowed(&self.present().await?) {
                return Ok(());
            }
            self.compare_again().await
        });
        let failed = match compared.await {
            Ok(compared) => compared.err().map(|problem| problem.detail),
            Err(_) => Some(format!("the comparison did not end within {} s", COMPARED_WITHIN.as_secs())),
        };
        if let Some(failed) = failed {
            tracing::warn!(reason = failed, "the log cannot be compared with what was signed before, will retry");
            self.explain_uncompared(&failed).await;
        }
    }

    /// Adds to the refusal why the log could not be compared since the start.
    async fn explain_uncompared(&self, failed: &str) {
        let _one = self.comparing.lock().await;
        if let Some(Refusal::Wait(before)) = self.state().refusal()
            && before.starts_with(UNCOMPARED)
        {
            self.conclude(Some(Refusal::Wait(format!("{UNCOMPARED}: {failed}"))));
        }
    }

    /// Waits until the view has applied the log, compares, and allows or refuses signing. Records the memory of a key in the log if the log names none.
    ///
    /// # Errors
    /// When the log or the store fails, or the view is behind the log.
    pub async fn compare_again(&self) -> Result<(), Problem> {
        let end = self.ctx.log.end(&CHANGES_RECEIPTS, 0).await.map_err(|error| unavailable(reason(&error)))?;
        let behind = || unavailable("the view of the receipts is behind the log".to_owned());
        self.ctx.wait_for(TABLES.view, CAUGHT_UP_WITHIN, |at| at.offset >= end).await?.ok_or_else(behind)?;
        let Some(all) = self.compare_and_conclude().await? else { return Ok(()) };
        if self.name_memories(&all).await? {
            self.compare_and_conclude().await?;
        }
        Ok(())
    }

    /// Compares before a batch of receipts is signed. Refuses signing if this log does not hold what was signed, or if the comparison fails.
    /// [`Self::watch`] compares again after a refusal. It reads the memory once for each key since the last declared restore.
    pub async fn check_before_batch(&self) {
        let is_uncompared = match self.state().refusal() {
            None => false,
            Some(Refusal::Wait(reason)) if reason == UNCOMPARED => true,
            Some(_) => return,
        };
        let _one = self.comparing.lock().await;
        let compared = tokio::time::timeout(COMPARED_WITHIN, self.compare()).await;
        let refused = match compared {
            Ok(Ok(Ok(_))) if is_uncompared => return self.conclude(None),
            Ok(Ok(Ok(_))) => return,
            // Whether the conflict is permanent is known once the view has applied the whole log.
            Ok(Ok(Err(refusal))) => refusal.reason().to_owned(),
            Ok(Err(problem)) => problem.detail,
            Err(_) => format!("the comparison did not end within {} s", COMPARED_WITHIN.as_secs()),
        };
        self.conclude(Some(Refusal::Wait(refused)));
        self.wake.notify_one();
    }

    /// Whether the key may sign: the log was compared with what the key signed, continues it, and names the key's memory.
    pub(crate) fn may_sign(&self, key: &str) -> bool {
        if self.state().refusal().is_none() && !self.is_allowed(key) {
            // Another key is current now.
            self.wake.notify_one();
        }
        self.state().refusal().is_none() && self.is_allowed(key)
    }

    fn is_allowed(&self, key: &str) -> bool {
        *self.allowed.lock().unwrap_or_else(PoisonError::into_inner) == key
    }

    /// The signing key that the log names; empty while it names none.
    async fn present(&self) -> Result<String, Problem> {
        let signing = Receipts::now(&self.ctx).await?.signing().await?;
        Ok(signing.keys.last().map(|key| key.public_key_hex.clone()).unwrap_or_default())
    }

    /// Remembers a checkpoint of a service's tree before it is signed. Returns false if it must not be signed, because it does not continue what each
    /// key since the last declared restore signed of that tree.
    ///
    /// # Errors
    /// When the memory or the store fails.
    pub(crate) async fn remember(&self, service: &str, key: &str, checkpoint: &Checkpoint, tree: &dyn Prover) -> Result<bool, Problem> {
        let signing = Receipts::now(&self.ctx).await?.signing().await?;
        let known = named(&signing);
        for _ in 0..TRIES {
            let (mut refused, mut present) = (None, None);
            for own in signing.since_restore() {
                let public = &own.public_key_hex;
                let found = self.memory.find(public).await.map_err(memory_problem)?;
                refused = match found.refusal(&self.memory.place(public), &own.memory, &known) {
                    Some(refusal) => Some(refusal.reason().to_owned()),
                    None => broken(tree, service, &found, checkpoint).await?,
                };
                if refused.is_some() {
                    break;
                }
                present = Some(found).filter(|_| public == key);
            }
            if let Some(reason) = refused {
                if service == TREE {
                    // Another process may have signed a larger tree since this one was read, which is no reason to stop.
                    self.compare_again().await?;
                } else {
                    self.refuse_tree(service, Some(reason));
                }
                return Ok(false);
            }
            // Another key is current now.
            let Some(found) = present else { return Ok(false) };
            self.refuse_tree(service, None);
            if self.memory.advance(key, service, &found, checkpoint).await.map_err(memory_problem)? {
                return Ok(true);
            }
        }
        Err(unavailable(memory::Error::Contended { place: self.memory.place(key) }.to_string()))
    }

    /// The newest signed tree of each key since the last declared restore, by the tree's service, each with its key.
    ///
    /// # Errors
    /// When the memory, the log or the store fails.
    pub async fn signed_trees(&self) -> Result<Vec<(String, String, Checkpoint)>, Problem> {
        let signing = Receipts::now(&self.ctx).await?.signing().await?;
        let mut all = Vec::new();
        for key in self.current_keys(&signing) {
            let found = self.memory.find(&key.public_key_hex).await.map_err(memory_problem)?;
            for (service, signed) in found.remembered.map(|remembered| remembered.trees).unwrap_or_default() {
                let checkpoint = signed.checkpoint().ok_or_else(|| unavailable(NO_HASH.to_owned()))?;
                all.push((service, key.public_key_hex.clone(), checkpoint));
            }
        }
        Ok(all)
    }

    /// Begins a declared restore: the current key signs nothing from now on, and the memory of the next key begins at the tree of the log. Returns the
    /// next key, which `make_key` creates unless an earlier, interrupted call did. It signs once the log names it.
    ///
    /// # Errors
    /// When the memory, the log or the store fails, or the key cannot be made.
    pub async fn begin_restore<F>(&self, restore_reason: &str, make_key: F) -> Result<String, Problem>
    where
        F: FnOnce() -> Result<String, Problem>,
    {
        self.compare_again().await?;
        let receipts = Receipts::now(&self.ctx).await?;
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
        let replaced = |found: &ReadMemory| {
            let remembered = found.remembered.clone().unwrap_or_else(new_memory);
            Some(Remembered { successor: Some(successor.clone()), ..remembered })
        };
        self.memory.change(&present, replaced).await.map_err(memory_problem)?;
        if tree.size > 0 {
            let found = self.memory.find(&next).await.map_err(memory_problem)?;
            self.memory.advance(&next, TREE, &found, &tree).await.map_err(memory_problem)?;
        }
        self.compare_and_conclude().await?;
        Ok(next)
    }

    /// The key of a restore that was declared here and that the log does not name so far.
    fn declared(&self, found: &ReadMemory, known: &[String]) -> Option<Successor> {
        let successor = found.remembered.as_ref()?.successor.clone()?;
        let is_here = self.state().keys().public().contains(&successor.key);
        (is_here && !successor.reason.is_empty() && !known.contains(&successor.key)).then_some(successor)
    }

    /// Compares, and allows or refuses signing accordingly. Returns the compared keys if signing is allowed.
    async fn compare_and_conclude(&self) -> Result<Option<Vec<Compared>>, Problem> {
        let _one = self.comparing.lock().await;
        let compared = self.compare().await?;
        let compared = match compared {
            Ok(all) => self.take_up(&all).await.map(|()| all).map_err(|error| Refusal::Wait(reason(&error))),
            Err(refusal) => Err(refusal),
        };
        // The memory that the log names was found, or the comparison had refused.
        let named = compared.as_ref().ok().and_then(|all| all.last()).filter(|(key, _)| !key.memory.is_empty());
        let allowed = named.map(|(key, _)| key.public_key_hex.clone()).unwrap_or_default();
        *self.allowed.lock().unwrap_or_else(PoisonError::into_inner) = allowed;
        self.conclude(compared.as_ref().err().cloned());
        Ok(compared.ok())
    }

    /// Compares the log with the memory. Returns the keys with their entries in the memory, or the refusal if the log does not continue what was signed.
    async fn compare(&self) -> Result<Result<Vec<Compared>, Refusal>, Problem> {
        let receipts = Receipts::now(&self.ctx).await?;
        let signing = receipts.signing().await?;
        let known = named(&signing);
        let keys = self.current_keys(&signing);
        let mut all = Vec::with_capacity(keys.len());
        for key in keys {
            let found = match self.memory.find(&key.public_key_hex).await {
                Ok(found) => found,
                Err(error) => return Ok(Err(Refusal::Wait(reason(&error)))),
            };
            if let Some(successor) = self.declared(&found, &known) {
                let parked = format!(
                    "a restore was declared, and the key {} signs from then on: if this stays, run `highwater receipt-keys restore` again",
                    successor.key
                );
                return Ok(Err(Refusal::Park(parked)));
            }
            if let Some(refusal) = found.refusal(&self.memory.place(&key.public_key_hex), &key.memory, &known) {
                return Ok(Err(advised(refusal)));
            }
            all.push((key, found));
        }
        if all.iter().all(|(key, found)| self.holds(key, found)) {
            return Ok(Ok(all));
        }
        // Read after the memory, so that the tree holds everything that the memory holds.
        let newest = receipts.newest().await?.ok_or_else(damaged)?;
        for (key, found) in &all {
            if let Some(reason) = broken(&receipts, TREE, found, &newest).await? {
                return Ok(Err(advised(Refusal::Conflict(reason))));
            }
            if let Some(signed) = signed_tree(found, TREE) {
                let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                held.insert(key.public_key_hex.clone(), signed.clone());
            }
        }
        Ok(Ok(all))
    }

    /// The keys since the last declared restore; the first key while the log names none.
    fn current_keys(&self, signing: &SigningHistory) -> Vec<PublicKey> {
        match signing.since_restore() {
            [] => vec![PublicKey { public_key_hex: self.first_key.clone(), ..PublicKey::default() }],
            keys => keys.to_vec(),
        }
    }

    /// Whether this log is already known to hold the remembered tree of a key.
    fn holds(&self, key: &PublicKey, found: &ReadMemory) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        signed_tree(found, TREE).is_none_or(|signed| held.get(&key.public_key_hex) == Some(signed))
    }

    /// Adds to the memory what it lacks: the log's newest checkpoint if it was signed before there was a memory, and the successors of older keys.
    async fn take_up(&self, all: &[Compared]) -> Result<(), memory::Error> {
        let sealed = match Receipts::now(&self.ctx).await {
            Ok(receipts) => receipts.sealed().await.ok().flatten().unwrap_or_default(),
            Err(_) => return Ok(()),
        };
        let Some((present, _)) = all.last() else { return Ok(()) };
        for (key, found) in all {
            let key = key.public_key_hex.as_str();
            let checkpoint = Checkpoint::read(&sealed.note, [key]).filter(|_| found.remembered.is_none());
            if let Some(checkpoint) = checkpoint {
                self.memory.advance(key, TREE, found, &checkpoint).await?;
            }
            if key == present.public_key_hex {
                continue;
            }
            let replaced = |found: &ReadMemory| {
                let remembered = found.remembered.clone()?;
                let is_known = remembered.successor.as_ref().is_some_and(|successor| successor.key == present.public_key_hex);
                let successor = Some(Successor { key: present.public_key_hex.clone(), reason: String::new() });
                (!is_known).then_some(Remembered { successor, ..remembered })
            };
            self.memory.change(key, replaced).await?;
        }
        Ok(())
    }

    /// Records in the log the memory of each key here whose memory the log does not name. Creates a memory for the current key if it has none. Returns
    /// whether one was recorded.
    async fn name_memories(&self, all: &[Compared]) -> Result<bool, Problem> {
        let here = self.state().keys().public();
        // The key that signs if the log names none is not in the log yet.
        let logged = named(&Receipts::now(&self.ctx).await?.signing().await?);
        let mut is_named = false;
        for (at, (key, _)) in all.iter().enumerate() {
            let public = &key.public_key_hex;
            if !key.memory.is_empty() || !here.contains(public) || !logged.contains(public) {
                continue;
            }
            let is_present = at + 1 == all.len();
            let begun = |found: &ReadMemory| (is_present && found.remembered.is_none()).then(new_memory);
            self.memory.change(public, begun).await.map_err(memory_problem)?;
            let found = self.memory.find(public).await.map_err(memory_problem)?;
            let Some(remembered) = found.remembered else { continue };
            let command = ReceiptCommand::Memory { public_key: public.clone(), memory: remembered.id };
            append::append_command(&self.ctx, TABLES.view, MEMORY, CommandPolicy::Always, &command).await?;
            is_named = true;
        }
        Ok(is_named)
    }

    /// Sets why the checkpoints of a tree are not signed (`None`: they are), and logs a change.
    fn refuse_tree(&self, service: &str, reason: Option<String>) {
        let state = self.state();
        let before = state.refuse_tree(service, reason.as_ref().map(|reason| format!("{reason}; {ADVICE}")));
        metrics::set_signing_refused(state.is_refused());
        match (before, reason) {
            (None, Some(reason)) => tracing::error!(service, reason, "the checkpoints of a service are not signed"),
            (Some(_), None) => tracing::info!(service, "the checkpoints of a service are signed again"),
            _ => {}
        }
    }

    /// Allows or refuses signing, and logs a change.
    fn conclude(&self, refusal: Option<Refusal>) {
        let before = self.state().keys().set_refusal(refusal.clone());
        metrics::set_signing_refused(self.state().is_refused());
        match (before, refusal) {
            (Some(before), Some(refusal)) if before.reason() == refusal.reason() => {}
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
async fn broken(tree: &dyn Prover, service: &str, found: &ReadMemory, next: &Checkpoint) -> Result<Option<String>, Problem> {
    let Some(signed) = signed_tree(found, service) else { return Ok(None) };
    let Some(old) = signed.checkpoint() else { return Ok(Some(NO_HASH.to_owned())) };
    let proof = if next.size > old.size { tree.consistency(next.size, old.size).await? } else { None };
    Ok(conflict(&old, next, proof.as_deref()))
}

/// The newest remembered checkpoint of a service's tree.
fn signed_tree<'a>(found: &'a ReadMemory, service: &str) -> Option<&'a SignedTree> {
    found.remembered.as_ref()?.trees.get(service)
}

/// Adds to a refusal what an operator can do about it.
fn advised(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Wait(reason) => Refusal::Wait(format!("{reason}; {ADVICE}")),
        Refusal::Conflict(reason) => Refusal::Conflict(format!("{reason}; {ADVICE}")),
        Refusal::Park(_) => refusal,
    }
}

fn unavailable(detail: String) -> Problem {
    Problem::new(ErrorCode::Unavailable, detail).retry_after(1)
}

#[async_trait]
impl CheckpointSigner for Signer {
    fn state(&self) -> Arc<SigningState> {
        self.state()
    }

    fn first_key(&self) -> &str {
        &self.first_key
    }

    async fn present(&self) -> Result<String, Problem> {
        self.present().await
    }

    fn may_sign(&self, key: &str) -> bool {
        self.may_sign(key)
    }

    async fn remember(&self, service: &str, key: &str, checkpoint: &Checkpoint, tree: &dyn Prover) -> Result<bool, Problem> {
        self.remember(service, key, checkpoint, tree).await
    }
}

fn memory_problem(error: memory::Error) -> Problem {
    unavailable(reason(&error))
}

fn damaged() -> Problem {
    Problem::new(ErrorCode::Internal, "the tree over receipts lacks a hash")
}
