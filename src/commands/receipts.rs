//! Commands on receipts: the owners of chains, and the keys that sign.

use operation::context::Part;
use operation::secrets;
use operation::signing_state::SigningState;
use schemas::clock::rfc3339;
use schemas::receipt::Refusal;
use schemas::views::receipts::TABLES;
use services::receipts::{chain, pubkey};

use super::{Failure, ReceiptKeysCommand, failure};
use crate::engine::{Engine, read_receipt_keys, receipt_keys_dir};
use crate::output::Output;

pub(super) async fn assign_owner(
    engine: &Engine,
    agent_id: Option<String>,
    owner: Option<String>,
    output: &dyn Output,
) -> Result<(), Failure> {
    let agent_id = agent_id.ok_or_else(|| Failure::new("name the agent, or use --all-paid"))?;
    let assigned = chain::assign_owner(&engine.context, &agent_id, owner.as_deref()).await;
    output.line(assigned.map_err(|problem| Failure(problem.detail))?.as_bytes());
    Ok(())
}

pub(super) async fn assign_all_paid(engine: &Engine, output: &dyn Output) -> Result<(), Failure> {
    let chains = chain::assign_all_paid(&engine.context).await.map_err(|problem| Failure(problem.detail))?;
    let assigned = chains.iter().filter(|(_, owner)| owner.is_ok()).count();
    for (agent_id, owner) in &chains {
        let line = match owner {
            Ok(owner) => format!("assigned\t{agent_id}\t{owner}"),
            Err(reason) => format!("not assigned\t{agent_id}\t{reason}"),
        };
        output.line(line.as_bytes());
    }
    output.note(&format!("{assigned} of {} chains without an owner assigned", chains.len()));
    Ok(())
}

/// Why nothing is signed, as it is now: right after the start the log may not be compared with the signer's memory yet.
pub(super) async fn signing_refusal(engine: &Engine) -> Option<Refusal> {
    let state = &SigningState::of(&engine.context);
    if engine.is_signer
        && state.refusal().is_some()
        && let Err(problem) = engine.signer.compare_again().await
    {
        tracing::warn!(reason = problem.detail, "the log cannot be compared with what was signed before");
    }
    state.refusal()
}

pub(super) async fn receipt_keys(engine: &Engine, command: ReceiptKeysCommand, output: &dyn Output) -> Result<(), Failure> {
    let (ctx, keys, dir) = (&engine.context, &engine.parts.keys, receipt_keys_dir(&engine.config));
    let refused = |problem: operation::problem::Problem| Failure(problem.detail);
    let path = dir.join(format!("{}.key", ctx.clock.now_ms()));
    let make_key = || Ok::<_, Failure>(keys.add(&secrets::seed(&path).map_err(failure)?));
    match command {
        ReceiptKeysCommand::New => {
            output.line(make_key()?.as_bytes());
            output.note(&format!(
                "copy {} to receipt_keys_dir of every node that decides, then `highwater receipt-keys use`",
                path.display()
            ));
            Ok(())
        }
        ReceiptKeysCommand::Use { public_key } => {
            read_receipt_keys(&dir, keys).map_err(|error| Failure(ingest::reason(&*error)))?;
            if !keys.public().contains(&public_key) {
                return Err(Failure(format!("no file of {} holds the key {public_key}", dir.display())));
            }
            if let Some(refusal) = signing_refusal(engine).await {
                return Err(Failure(format!("another key changes nothing: {}", refusal.reason())));
            }
            let named = pubkey::named(ctx).await.map_err(refused)?;
            let before_restore = named.keys.len() - named.since_restore().len();
            if named.keys.iter().take(before_restore).any(|key| key.public_key_hex == public_key) {
                return Err(Failure(format!(
                    "{public_key} signed before a declared restore: make another one with `highwater receipt-keys new`"
                )));
            }
            pubkey::name_next(ctx, &public_key, "").await.map_err(refused)
        }
        ReceiptKeysCommand::List => {
            for key in pubkey::named(ctx).await.map_err(refused)?.keys {
                let restored = if key.reason.is_empty() { String::new() } else { format!(", after a declared restore: {}", key.reason) };
                output.line(format!("{} since {}{restored}", key.public_key_hex, rfc3339(key.since)).as_bytes());
            }
            Ok(())
        }
        ReceiptKeysCommand::Restore { reason } => {
            let make_key =
                || make_key().map_err(|Failure(detail)| operation::problem::Problem::new(schemas::error_code::ErrorCode::Internal, detail));
            let next = engine.signer.begin_restore(&reason, make_key).await.map_err(refused)?;
            pubkey::name_next(ctx, &next, &reason).await.map_err(refused)?;
            engine.signer.compare_again().await.map_err(refused)?;
            if let Some(refusal) = SigningState::of(ctx).refusal() {
                return Err(Failure(refusal.reason().to_owned()));
            }
            // Requests made before the restore were parked: the next key signs what they asked for.
            let taken = engine.projector.service(TABLES.view.name).map_err(failure)?.retry_parked().await.map_err(failure)?;
            output.line(next.as_bytes());
            output.note(&format!("the key {next} signs from now on; {taken} parked requests are taken again"));
            Ok(())
        }
    }
}
