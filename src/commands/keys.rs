//! `highwater keys`: creates, lists, rotates and revokes API keys.

use access::{Access, unused_until};
use operation::context::Part;
use schemas::clock::rfc3339;

use super::args::{KeysCommand, tier_of};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output::Output;

pub(super) async fn run(engine: &Engine, command: KeysCommand, output: &dyn Output) -> Result<(), Failure> {
    let (context, access) = (&engine.context, Access::of(&engine.context));
    match command {
        KeysCommand::Mint { tier } => {
            let minted = access.mint(context, tier_of(&tier)?, "").await?;
            output.line(minted.key.reveal().as_bytes());
            output.note(&format!("id {}; the key is not shown again", minted.row.id));
        }
        KeysCommand::List => {
            let time = |at_ms: i64| if at_ms == 0 { "never".to_owned() } else { rfc3339(at_ms) };
            for key in access.list(context).await? {
                let (minted, ends, used) = (rfc3339(key.minted_at), time(key.ends_at), time(key.last_used_at));
                let unused_until = unused_until(&key).filter(|_| key.ends_at == 0);
                let (id, tier, account) = (key.id, key.tier, key.account);
                let mut line = format!("{id}\t{tier}\tminted {minted}\tends {ends}\tlast used {used}\tof {account}");
                if let Some(until) = unused_until {
                    let verb = if until <= context.clock.now_ms() { "expired" } else { "expires unless used by" };
                    line += &format!("\t{verb} {}", rfc3339(until));
                }
                output.line(line.as_bytes());
            }
        }
        KeysCommand::Rotate { id } => {
            let rotated = access.rotate(context, &id).await?;
            output.line(rotated.minted.key.reveal().as_bytes());
            output.note(&format!("id {}; the old key works until {}", rotated.minted.row.id, rfc3339(rotated.old.ends_at)));
        }
        KeysCommand::Revoke { id } => {
            access.revoke(context, &id).await?;
            output.note(&format!("{id} is revoked"));
        }
    }
    Ok(())
}
