//! The cosignatures of our own checkpoints: one coordination row for each tree, with the newest cosignature of every witness. They are not
//! derived from facts and are in no digest; if they are lost, the witnesses are asked again.

use crate::witness::Witnessing;
use operation::context::Part;
use std::collections::BTreeMap;

use crate::note::{Signed, SignedNote};
use schemas::views::receipts::SignedCheckpoint;

use super::remote::{Cosignature, Witness};
use super::served_trees;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;

/// How often a write is repeated when another process changes the row at the same time.
const TRIES: usize = 5;

/// The cosignatures of a tree, by the witness's verifier key.
pub(super) type Row = BTreeMap<String, Cosignature>;

fn row_name(service: &str) -> String {
    format!("cosignatures/{service}")
}

/// The cosignatures of a tree, with the row's text.
///
/// # Errors
/// When the store fails.
pub(super) async fn read(ctx: &Context, service: &str) -> Result<(Row, Option<String>), Problem> {
    let text = ctx.store.coordination().value(&row_name(service)).await.map_err(store_problem)?;
    // A row that cannot be read is treated as lost.
    let row = text.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    Ok((row, text))
}

/// Stores the cosignature of a witness in place of an older one. Cosignatures of witnesses that are no longer configured are removed.
///
/// # Errors
/// When the store fails.
pub(super) async fn store(ctx: &Context, service: &str, witness: &Witness, cosignature: &Cosignature) -> Result<(), Problem> {
    for _ in 0..TRIES {
        let (mut row, text) = read(ctx, service).await?;
        row.retain(|key, _| Witnessing::of(ctx).asked.iter().any(|asked| asked.key.to_string() == *key));
        row.insert(witness.key.to_string(), cosignature.clone());
        let next = serde_json::to_string(&row).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        if ctx.store.coordination().compare_and_store(&row_name(service), text.as_deref(), &next).await.map_err(store_problem)? {
            return Ok(());
        }
    }
    Err(Problem::new(ErrorCode::Unavailable, "the cosignatures of a checkpoint are changed by others at the same time"))
}

/// A checkpoint with the cosignatures over exactly its text, in the order in which the witnesses are configured.
fn joined(ctx: &Context, note: &str, row: &Row) -> String {
    let Some(text) = SignedNote::parse(note).map(|read| read.text()) else { return note.to_owned() };
    let mut note = note.to_owned();
    for witness in &Witnessing::of(ctx).asked {
        let cosignature = row.get(&witness.key.to_string()).map(|cosignature| format!("{}\n", cosignature.line)).unwrap_or_default();
        // Verified again, because a cosignature over another text must not be served with this one.
        if let Some(Signed::Valid { line, .. }) = SignedNote::of_lines(text, &cosignature).map(|lines| lines.signed_by(&witness.key)) {
            note.push_str(line);
            note.push('\n');
        }
    }
    note
}

/// Adds the available cosignatures to a tree's checkpoint.
///
/// # Errors
/// When the store fails.
pub async fn with_cosignatures(ctx: &Context, service: &str, note: String) -> Result<String, Problem> {
    if Witnessing::of(ctx).asked.is_empty() {
        return Ok(note);
    }
    let (row, _) = read(ctx, service).await?;
    Ok(joined(ctx, &note, &row))
}

/// The newest checkpoint of a tree that a witness cosigned, with all cosignatures over it; `None` if there is none.
///
/// # Errors
/// When the store fails.
pub(crate) async fn newest_cosigned(ctx: &Context, service: &str) -> Result<Option<String>, Problem> {
    let witnessing = Witnessing::of(ctx);
    if witnessing.asked.is_empty() {
        return Ok(None);
    }
    let (row, _) = read(ctx, service).await?;
    let known = witnessing.asked.iter().filter_map(|witness| row.get(&witness.key.to_string()));
    Ok(known.max_by_key(|cosignature| cosignature.size).map(|newest| joined(ctx, &newest.note, &row)))
}

/// Which checkpoint of a service a witness has cosigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CosignatureStatus {
    /// The name of the witness.
    pub witness: String,
    /// The service.
    pub service: &'static str,
    /// The number of leaves in the newest checkpoint.
    pub size: u64,
    /// The number of leaves in the newest checkpoint that the witness cosigned, and the time, seconds since 1970; `None` if it cosigned none.
    pub cosigned: Option<(u64, u64)>,
    /// Whether the witness cosigned the newest checkpoint.
    pub is_current: bool,
    /// Why the witness did not cosign when this process last asked it; empty if it did, or if another process asks.
    pub reason: String,
}

/// Which checkpoint of each service each configured witness has cosigned.
///
/// # Errors
/// When the store fails.
pub async fn status(ctx: &Context) -> Result<Vec<CosignatureStatus>, Problem> {
    let mut all = Vec::new();
    if Witnessing::of(ctx).asked.is_empty() {
        return Ok(all);
    }
    for tree in served_trees(ctx) {
        let Some(SignedCheckpoint { size, note, .. }) = tree.open(ctx).await?.sealed().await? else { continue };
        let service = tree.service();
        let (row, _) = read(ctx, service).await?;
        for witness in &Witnessing::of(ctx).asked {
            let newest = row.get(&witness.key.to_string());
            let name = witness.key.name().to_owned();
            all.push(CosignatureStatus {
                reason: Witnessing::of(ctx).reason(&(service, name.clone())),
                witness: name,
                service,
                size,
                cosigned: newest.map(|newest| (newest.size, newest.time_s)),
                is_current: newest.is_some_and(|newest| newest.note == note),
            });
        }
    }
    Ok(all)
}
