//! Checks the log and the views: reads every record, follows every chain, compares the trees that the log makes with those that were signed, and
//! compares every row of a view with the row that the log makes.
//!
//! A view is built again from the log next to the live one, with the same code as [`crate::rebuild::replay`], and both are compared row by row.

use std::collections::HashMap;
use std::sync::Arc;

use event_log::EventLog;
use proofs::hash::Hash32;
use proofs::receipt::{self, Receipt};
use proofs::tree::{self, GrowingTree};
use schemas::avro;
use schemas::change::Change;
use schemas::position::{LogOffset, Seq};
use schemas::tables::Table;
use schemas::topics::{CHANGES_RECEIPTS, Topic, TopicKind};
use schemas::views::engine;
use serde::de::IgnoredAny;
use tokio::sync::Mutex;
use view_store::View;

use crate::Error;
use crate::decider::Decider;
use crate::heads::Heads;
use crate::rebuild::{Parts, Progress, Rows};
use fold::service::Service;

/// The most records that one read returns.
const BATCH_RECORDS: usize = 2_000;
/// The most bytes that one read returns.
const BATCH_BYTES: usize = 4 << 20;
/// How often a view is compared again because it changed meanwhile.
const COMPARISONS_MAX: u32 = 20;

/// The result of reading one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedTopic {
    /// How many records were read.
    pub records: u64,
    /// How many changes extend the chain; 0 for other topics.
    pub chained: u64,
    /// What is wrong, a sentence each.
    pub faults: Vec<String>,
    /// Which signed trees the log does not make, a sentence each.
    pub tree_faults: Vec<String>,
}

/// The result of reading all receipts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedReceipts {
    /// How many receipts there are.
    pub receipts: u64,
    /// Which signatures and chains are wrong, a sentence each.
    pub faults: Vec<String>,
    /// Which signed trees the log does not make, a sentence each.
    pub tree_faults: Vec<String>,
}

/// The result of comparing a view with the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedView {
    /// How many changes were applied.
    pub changes: u64,
    /// The first row that differs, if one does.
    pub difference: Option<String>,
    /// Whether the view was replaced by the one that the log makes.
    pub is_repaired: bool,
}

/// A signed tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTree {
    /// The public key that signed it, 64 hex digits.
    pub key: String,
    /// The number of leaves.
    pub size: u64,
    /// The root.
    pub root: Hash32,
}

/// Compares the tree that the log makes with signed ones.
struct TreeCheck<'a> {
    tree: GrowingTree,
    /// The signed trees that were not reached yet, the largest first.
    signed: Vec<&'a SignedTree>,
    faults: Vec<String>,
}

impl<'a> TreeCheck<'a> {
    fn new(signed: &'a [SignedTree]) -> Self {
        let mut signed: Vec<&SignedTree> = signed.iter().collect();
        signed.sort_by_key(|signed| std::cmp::Reverse(signed.size));
        let mut check = Self { tree: GrowingTree::default(), signed, faults: Vec::new() };
        check.compare();
        check
    }

    /// Adds the hash of the next leaf.
    fn push(&mut self, leaf: Hash32) {
        if !self.signed.is_empty() {
            self.tree.push(leaf);
            self.compare();
        }
    }

    fn compare(&mut self) {
        let size = self.tree.size();
        while let Some(signed) = self.signed.pop_if(|signed| signed.size == size) {
            let root = self.tree.root();
            if root != Some(signed.root) {
                let root = root.unwrap_or(Hash32::ZERO);
                let SignedTree { key, root: signed, .. } = signed;
                self.faults
                    .push(format!("the key {key} signed the tree of {size} leaves with the root {signed}, and the log makes {root}"));
            }
        }
    }

    /// Returns the faults. A signed tree that the log does not reach is one.
    fn finish(mut self) -> Vec<String> {
        for SignedTree { key, size, .. } in self.signed.iter().rev() {
            let found = self.tree.size();
            self.faults.push(format!(
                "the key {key} signed a tree of {size} leaves, and the log has {found}: the log is older than what was signed"
            ));
        }
        self.faults
    }
}

/// Reads all records of a topic. Of a change topic, counts those that extend the chain, and compares their tree with `signed` ones.
///
/// # Errors
/// When the log cannot be used. A damaged record is a fault, not an error; the rest of its partition is not read.
pub async fn check_topic(
    log: &dyn EventLog,
    topic: &'static Topic,
    signed: &[SignedTree],
    mut progress: impl FnMut(u64),
) -> Result<CheckedTopic, Error> {
    let mut checked = CheckedTopic::default();
    let mut trees = TreeCheck::new(signed);
    let (mut seq, mut hash) = (Seq(0), Hash32::ZERO);
    for partition in 0..topic.partitions {
        let (mut from, end) = (LogOffset(0), log.end(topic, partition).await?);
        while from < end {
            let batch = match log.read(topic, partition, from, BATCH_RECORDS, BATCH_BYTES).await {
                Ok(batch) => batch,
                Err(error @ event_log::Error::Damaged { .. }) => {
                    checked.faults.push(error.to_string());
                    break;
                }
                Err(error) => return Err(error.into()),
            };
            let Some(last) = batch.last() else {
                checked.faults.push(format!("{}/{partition} has no record at offset {from}, below its end {end}", topic.name));
                break;
            };
            from = last.offset.next();
            checked.records += batch.len() as u64;
            if topic.kind == TopicKind::Changes {
                for stored in &batch {
                    let Ok(change) = avro::decode::<Change<IgnoredAny, IgnoredAny>>(topic.name, &stored.record.value) else { continue };
                    if change.extends(seq, hash) {
                        let id = avro::datum_hash(topic.name, &stored.record.value);
                        hash = id.map_err(|source| Error::Value { topic: topic.name.to_owned(), source })?;
                        seq = change.seq;
                        trees.push(tree::leaf(&hash.0));
                    }
                }
            }
            progress(batch.len() as u64);
            tokio::task::yield_now().await;
        }
    }
    checked.chained = seq.0;
    checked.tree_faults = trees.finish();
    Ok(checked)
}

/// Verifies the signature of every receipt in the log and the chains of all agents, and compares the tree of the receipts with `signed` ones.
///
/// # Errors
/// When the log fails.
pub async fn check_receipts(
    log: &dyn EventLog,
    keys: &[String],
    signed: &[SignedTree],
    mut progress: impl FnMut(u64),
) -> Result<CheckedReceipts, Error> {
    let topic = &CHANGES_RECEIPTS;
    let (mut from, mut seq, mut hash) = (LogOffset(0), Seq(0), Hash32::ZERO);
    let (mut receipts, mut faults, mut trees) = (0, Vec::new(), TreeCheck::new(signed));
    let mut chains: HashMap<String, (i64, String)> = HashMap::new();
    loop {
        let batch = log.read(topic, 0, from, BATCH_RECORDS, BATCH_BYTES).await?;
        let Some(last) = batch.last() else { return Ok(CheckedReceipts { receipts, faults, tree_faults: trees.finish() }) };
        from = last.offset.next();
        for stored in &batch {
            let value = &stored.record.value;
            let Ok(change) = avro::decode::<Change<Receipt, IgnoredAny>>(topic.name, value) else { continue };
            if !change.extends(seq, hash) {
                continue;
            }
            seq = change.seq;
            hash = avro::datum_hash(topic.name, value).map_err(|source| Error::Value { topic: topic.name.to_owned(), source })?;
            let Some(receipt) = change.after else { continue };
            receipts += 1;
            let (entry, is_valid) = (tree::entry(&receipt), serde_json::to_value(&receipt).is_ok_and(|json| receipt::check(&json).all()));
            trees.push(tree::leaf(entry.as_deref().unwrap_or_default()));
            if !is_valid || !keys.contains(&receipt.signature.public_key_hex) || entry.is_none() {
                faults.push(format!("receipt {} (change {seq}) has no valid signature of a key that the log names", receipt.id));
            }
            let end = chains.entry(receipt.body.agent_id.clone()).or_insert_with(|| (0, receipt::hash_text(&Hash32::ZERO)));
            if receipt.body.seq != end.0 + 1 || receipt.body.prev_hash != end.1 {
                faults.push(format!(
                    "receipt {} (change {seq}) does not extend the chain of its agent, which ends with {}",
                    receipt.id, end.0
                ));
            }
            *end = (receipt.body.seq, receipt.content_hash);
        }
        progress(batch.len() as u64);
        tokio::task::yield_now().await;
    }
}

/// Compares a service's view with the one that the log makes; with `repair`, replaces it if they differ.
///
/// # Errors
/// When the log or the store fails.
pub(crate) async fn check_view<S: Service>(
    parts: &Parts,
    live: &Mutex<Decider<S>>,
    repair: bool,
    progress: &Progress,
) -> Result<CheckedView, Error> {
    let mut rebuilt: Decider<S> = parts.open(parts.store.begin_rebuild(S::VIEW).await?).await?;
    let total = parts.log.end(S::CHANGES, 0).await?.0;
    let mut changes = rebuilt.apply_log(|applied| progress(applied, total)).await?;
    // The live view does not change while both are compared.
    let mut guard = live.lock().await;
    guard.apply_logged_changes().await?;
    changes += rebuilt.apply_log(|_| ()).await?;
    let counts = counts_differ(guard.checkpoint().current_records(), rebuilt.checkpoint().current_records());
    let difference = difference(S::VIEW.tables, &**guard.view(), &**rebuilt.view()).await?.or(counts);
    let is_repaired = repair && difference.is_some();
    if is_repaired {
        rebuilt.adopt_positions(&guard).await?;
        rebuilt.resume().await?;
        rebuilt.adopt_confirmations(&mut guard);
        parts.store.swap(rebuilt.view()).await?;
        *guard = rebuilt;
    } else {
        drop(guard);
        parts.store.discard(rebuilt.view()).await?;
    }
    Ok(CheckedView { changes, difference, is_repaired })
}

/// Compares the latest-version index with the one that the log makes; with `repair`, replaces it if they differ.
///
/// # Errors
/// When the log or the store fails, or the index changes all the time.
pub async fn check_heads(parts: &Parts, repair: bool) -> Result<CheckedView, Error> {
    let rebuilt = parts.store.begin_rebuild(&engine::VIEW).await?;
    let heads = Heads::new(Arc::clone(&parts.log), Arc::clone(&rebuilt), parts.services);
    let mut changes = 0;
    for _ in 0..COMPARISONS_MAX {
        changes += heads.catch_up().await?;
        let before = parts.engine.checkpoint().await?;
        if before != rebuilt.checkpoint().await? {
            tokio::task::yield_now().await;
            continue;
        }
        let pinned = parts.engine.pinned().await?;
        let live = pinned.as_deref().unwrap_or(&*parts.engine);
        let difference = difference(engine::VIEW.tables, live, &*rebuilt).await?;
        if parts.engine.checkpoint().await? != before {
            continue;
        }
        let is_repaired = repair && difference.is_some();
        if is_repaired {
            parts.store.swap(&rebuilt).await?;
        } else {
            parts.store.discard(&rebuilt).await?;
        }
        return Ok(CheckedView { changes, difference, is_repaired });
    }
    parts.store.discard(&rebuilt).await?;
    Err(Error::Refused("the latest-version index changes all the time; check again while no upstream is synced".to_owned()))
}

/// Returns the difference between the counts of current records of two generations of a view. A view that does not know its count does not differ.
fn counts_differ(live: Option<u64>, wanted: Option<u64>) -> Option<String> {
    live.filter(|_| live != wanted)
        .map(|live| format!("the view counts {live} current records, and the log makes {}", wanted.unwrap_or_default()))
}

/// Returns the first difference between two generations of a view.
async fn difference(tables: &[&'static Table], live: &dyn View, wanted: &dyn View) -> Result<Option<String>, Error> {
    for table in tables {
        let (mut live, mut wanted) = (Rows::new(table, live).await?, Rows::new(table, wanted).await?);
        loop {
            let (found, expected) = (live.next().await?, wanted.next().await?);
            if found != expected {
                let (what, row) = match (&found, &expected) {
                    (Some((found, _)), Some((expected, _))) if found == expected => ("differs", expected),
                    (Some((found, _)), Some((expected, _))) if found < expected => ("does not follow from the log", found),
                    (_, Some((expected, _))) => ("is missing", expected),
                    (Some((found, _)), None) => ("does not follow from the log", found),
                    (None, None) => break,
                };
                return Ok(Some(format!("row {row:?} of table {} {what}", table.name)));
            }
            if found.is_none() {
                break;
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that another count than the one that the log makes is a difference, and that a count which an older version did not make is none.
    #[test]
    fn counts_are_compared() {
        assert_eq!([counts_differ(Some(7), Some(7)), counts_differ(None, Some(7))], [None, None]);
        let other = counts_differ(Some(7), Some(8)).unwrap();
        assert_eq!(other, "the view counts 7 current records, and the log makes 8");
    }

    /// Proves that trees that the log makes pass at every size, and that another root and a tree that the log does not reach are faults with their sizes.
    #[test]
    fn signed_trees_are_compared() {
        let leaf = |number: u8| tree::leaf(&[number]);
        let roots = |count: u8| {
            let mut tree = GrowingTree::default();
            let root = |number| {
                tree.push(leaf(number));
                tree.root().unwrap()
            };
            (0..count).map(root).collect::<Vec<Hash32>>()
        };
        let signed = |size: u64, root: Hash32| SignedTree { key: format!("k{size}"), size, root };
        let faults = |signed: &[SignedTree], leaves: u8| {
            let mut check = TreeCheck::new(signed);
            (0..leaves).for_each(|number| check.push(leaf(number)));
            check.finish()
        };
        let whole = [signed(7, roots(7)[6]), signed(2, roots(2)[1]), signed(7, roots(7)[6])];
        assert_eq!(faults(&whole, 9), [""; 0]);
        assert_eq!(faults(&whole, 7), [""; 0]);
        let older = faults(&whole, 6);
        assert!(older.len() == 2 && older[0].contains("k7 signed a tree of 7 leaves, and the log has 6"), "{older:?}");
        let forked = faults(&[signed(2, roots(3)[2]), whole[0].clone()], 9);
        assert!(forked.len() == 1 && forked[0].starts_with("the key k2 signed the tree of 2 leaves with the root"), "{forked:?}");
        assert_eq!(faults(&[signed(0, leaf(0))], 1).len(), 1, "an empty tree has a root, too");
    }
}
