//! `highwater receipts` and `highwater receipt-keys`: the owners of chains, and the keys that sign.

use operation::context::Part;
use operation::problem::Problem;
use operation::secrets;
use operation::signing_state::SigningState;
use proofs::receipt::Refusal;
use receipts::operations::{chain, pubkey};
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::views::receipts::TABLES;

use super::args::{ReceiptKeysCommand, ReceiptsCommand};
use crate::data_dir::{read_receipt_keys, receipt_keys_dir};
use crate::engine::Engine;
use crate::failure::{Failure, failure};
use crate::key_checks::KeyChecks;
use crate::output::Output;
use crate::projection_wait::wait_caught_up;

pub(super) async fn run(engine: &Engine, command: ReceiptsCommand, output: &dyn Output) -> Result<(), Failure> {
    let ReceiptsCommand::AssignOwner { agent_id, owner, all_paid } = command;
    wait_caught_up(engine, output).await?;
    if all_paid {
        return assign_all_paid(engine, output).await;
    }
    let agent_id = agent_id.ok_or_else(|| Failure::new("name the agent, or use --all-paid"))?;
    let owner = chain::assign_owner(&engine.context, &agent_id, owner.as_deref()).await?;
    output.line(owner.as_bytes());
    Ok(())
}

async fn assign_all_paid(engine: &Engine, output: &dyn Output) -> Result<(), Failure> {
    let chains = chain::assign_all_paid(&engine.context).await?;
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

/// Why the signer signs nothing now. A refusal is checked again, because right after the start the log may not yet have been compared with the
/// signer's memory.
pub(super) async fn signing_refusal(engine: &Engine) -> Option<Refusal> {
    let state = &SigningState::of(&engine.context);
    if engine.is_signer
        && state.refusal().is_some()
        && let Err(problem) = engine.signer.compare_again().await
    {
        tracing::warn!(reason = problem.detail, "the log cannot be compared with the signer's memory");
    }
    state.refusal()
}

pub(super) async fn run_keys(engine: &Engine, command: ReceiptKeysCommand, output: &dyn Output) -> Result<(), Failure> {
    match command {
        ReceiptKeysCommand::New => {
            let (public_key, path) = create_key(engine)?;
            output.line(public_key.as_bytes());
            let path = path.display();
            output.note(&format!("copy {path} to receipt_keys_dir of every node with role project, then run `highwater receipt-keys use`"));
            Ok(())
        }
        ReceiptKeysCommand::Use { public_key } => use_key(engine, &public_key).await,
        ReceiptKeysCommand::List => {
            for key in pubkey::named(&engine.context).await?.keys {
                let restored = if key.reason.is_empty() { String::new() } else { format!(", after a declared restore: {}", key.reason) };
                output.line(format!("{} since {}{restored}", key.public_key_hex, rfc3339(key.since)).as_bytes());
            }
            Ok(())
        }
        ReceiptKeysCommand::Restore { reason } => restore(engine, &reason, output).await,
    }
}

/// Creates a key; returns the public key and the path of its file.
fn create_key(engine: &Engine) -> Result<(String, std::path::PathBuf), Failure> {
    let path = receipt_keys_dir(&engine.config).join(format!("{}.key", engine.context.clock.now_ms()));
    let seed = secrets::seed(&path).map_err(failure)?;
    Ok((engine.parts.keys.add(&seed), path))
}

async fn use_key(engine: &Engine, public_key: &str) -> Result<(), Failure> {
    let (context, keys, dir) = (&engine.context, &engine.parts.keys, receipt_keys_dir(&engine.config));
    let mut checks = KeyChecks::read(&engine.config.sections.data_dir).map_err(failure)?;
    read_receipt_keys(&dir, keys, &mut checks).map_err(|error| Failure::from_error(&*error))?;
    if !keys.public().iter().any(|known| known == public_key) {
        return Err(Failure::new(format!("no file in {} contains the key {public_key}", dir.display())));
    }
    if let Some(refusal) = signing_refusal(engine).await {
        return Err(Failure::new(format!("a new key would not help: {}", refusal.reason())));
    }
    let named = pubkey::named(context).await?;
    let before_restore = named.keys.len() - named.since_restore().len();
    if named.keys.iter().take(before_restore).any(|key| key.public_key_hex == public_key) {
        return Err(Failure::new(format!(
            "{public_key} signed before a declared restore: create another key with `highwater receipt-keys new`"
        )));
    }
    Ok(pubkey::name_next(context, public_key, "").await?)
}

async fn restore(engine: &Engine, reason: &str, output: &dyn Output) -> Result<(), Failure> {
    let context = &engine.context;
    let create = || match create_key(engine) {
        Ok((public_key, _)) => Ok(public_key),
        Err(failure) => Err(Problem::new(ErrorCode::Internal, failure.to_string())),
    };
    let next = engine.signer.begin_restore(reason, create).await?;
    pubkey::name_next(context, &next, reason).await?;
    engine.signer.compare_again().await?;
    if let Some(refusal) = SigningState::of(context).refusal() {
        return Err(Failure::new(refusal.reason()));
    }
    // Requests made before the restore were parked. The new key signs them.
    let service = engine.projector.service(TABLES.view.name).map_err(failure)?;
    let retried = service.retry_parked().await.map_err(failure)?;
    output.line(next.as_bytes());
    output.note(&format!("the key {next} signs from now on; {retried} parked requests are retried"));
    Ok(())
}
