//! `highwater fsck`: checks the log, the receipts, the signed trees and the views, and repairs views.

use std::collections::BTreeMap;
use std::sync::Arc;

use event_log::transfer;
use projector::fsck::{CheckedView, SignedTree, check_heads, check_receipts, check_topic};
use receipts::operations::signer::TREE as RECEIPTS_TREE;
use schemas::topics::TopicKind;
use schemas::views::engine::VIEW as ENGINE_VIEW;

use super::progress::with_progress;
use crate::engine::Engine;
use crate::failure::{Failure, failure};
use crate::output::Output;

/// What the names of change topics begin with.
const CHANGES: &str = "changes.";

/// What was signed, by the name of the tree.
type SignedTrees = BTreeMap<String, Vec<SignedTree>>;

/// Prints a line for each topic, signed tree and view, and fails if something is wrong and was not repaired.
pub(super) async fn run(engine: &Arc<Engine>, repair: bool, output: &dyn Output) -> Result<(), Failure> {
    // Read before the log, which therefore holds all of them.
    let signed = signed_trees(engine, output).await?;
    let of_tree = |name: &str| signed.get(name).map_or(&[][..], Vec::as_slice);
    let mut faults = 0;
    let mut fault = |text: &str| {
        faults += 1;
        output.line(format!("FAULT\t{text}").as_bytes());
    };
    for topic in transfer::topics() {
        let task = format!("fsck {}", topic.name);
        let (mut done, mut total) = (0, 0);
        for partition in 0..topic.partitions {
            total += engine.log.end(topic, partition).await.map_err(failure)?.0;
        }
        let progress = |records| {
            done += records;
            output.progress(&task, done, total);
        };
        let tree = topic.name.strip_prefix(CHANGES).filter(|name| topic.kind == TopicKind::Changes && *name != RECEIPTS_TREE);
        let signed = tree.map_or(&[][..], of_tree);
        let checked = check_topic(&*engine.log, topic, signed, progress).await.map_err(failure)?;
        let chained = if checked.chained > 0 { format!("\tchained {}", checked.chained) } else { String::new() };
        output.line(format!("topic {}\trecords {}{chained}", topic.name, checked.records).as_bytes());
        checked.faults.iter().for_each(|text| fault(text));
        report_tree(tree.unwrap_or_default(), signed, &checked.tree_faults, output, &mut fault);
    }
    let keys = receipts::operations::pubkey::named(&engine.context).await?.keys;
    let keys: Vec<String> = keys.into_iter().map(|key| key.public_key_hex).collect();
    let signed = of_tree(RECEIPTS_TREE);
    let checked = check_receipts(&*engine.log, &keys, signed, |_| ()).await.map_err(failure)?;
    output.line(format!("receipts\tsigned {}\twrong {}", checked.receipts, checked.faults.len()).as_bytes());
    checked.faults.iter().for_each(|text| fault(text));
    report_tree(RECEIPTS_TREE, signed, &checked.tree_faults, output, &mut fault);
    let heads = check_heads(&engine.parts, repair).await.map_err(failure)?;
    report(ENGINE_VIEW.name, &heads, output, &mut fault);
    for service in engine.projector.services() {
        let task = format!("fsck {}", service.name());
        let checked = with_progress(output, &task, |progress| async move { service.check(repair, &progress).await }).await?;
        report(service.name(), &checked, output, &mut fault);
    }
    for disabled in engine.disabled.iter().filter(|disabled| disabled.needed_by.is_none()) {
        output.line(format!("view {}\tnot checked: its service is disabled", disabled.service).as_bytes());
    }
    if faults == 0 { Ok(()) } else { Err(Failure::new(format!("{faults} faults were found"))) }
}

/// Reads what was signed from the signer's memory. Only a process that signs has it.
async fn signed_trees(engine: &Engine, output: &dyn Output) -> Result<SignedTrees, Failure> {
    if !engine.is_signer {
        output.line(b"signed trees\tnot compared: run the command on a node with role project, which has the signer's memory");
        return Ok(SignedTrees::new());
    }
    let mut trees = SignedTrees::new();
    for (tree, key, checkpoint) in engine.signer.signed_trees().await? {
        trees.entry(tree).or_default().push(SignedTree { key, size: checkpoint.size, root: checkpoint.root });
    }
    Ok(trees)
}

fn report_tree(tree: &str, signed: &[SignedTree], faults: &[String], output: &dyn Output, fault: &mut impl FnMut(&str)) {
    let Some(size) = signed.iter().map(|signed| signed.size).max() else { return };
    let state = if faults.is_empty() { "equal to the log" } else { "not equal to the log" };
    output.line(format!("tree {tree}\tsigned {size}\t{state}").as_bytes());
    faults.iter().for_each(|text| fault(&format!("tree {tree}: {text}")));
}

fn report(view: &str, checked: &CheckedView, output: &dyn Output, fault: &mut impl FnMut(&str)) {
    let state = match (&checked.difference, checked.is_repaired) {
        (None, _) => "equal to the log",
        (Some(_), true) => "repaired",
        (Some(_), false) => "not equal to the log",
    };
    output.line(format!("view {view}\tapplied {}\t{state}", checked.changes).as_bytes());
    match &checked.difference {
        Some(difference) if !checked.is_repaired => fault(&format!("view {view}: {difference}")),
        Some(difference) => output.note(&format!("view {view} was rebuilt: {difference}")),
        None => {}
    }
}
