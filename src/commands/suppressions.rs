//! `highwater suppress`, `unsuppress` and `suppressions`: hides fields of records from all readers, shows them again, and lists what is hidden.

use access::suppression::{self, SuppressedKey, hidden_fields};
use schemas::clock::rfc3339;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::output::Output;

/// A command on suppressed keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum SuppressionCommand {
    /// Suppresses a key.
    Suppress { kind: String, key: String, reason: String },
    /// Takes it back.
    Unsuppress { kind: String, key: String, reason: String },
    /// Lists the suppressed keys.
    List,
}

pub(super) async fn run(engine: &Engine, command: SuppressionCommand, output: &dyn Output) -> Result<(), Failure> {
    let context = &engine.context;
    match command {
        SuppressionCommand::Suppress { kind, key, reason } => {
            let SuppressedKey { kind, normal, .. } = suppression::suppress(context, &kind, &key, &reason).await?;
            output.note(&format!("{} {normal:?} is suppressed; hidden: {}", kind.name, hidden_fields(kind).join(", ")));
        }
        SuppressionCommand::Unsuppress { kind, key, reason } => {
            let SuppressedKey { kind, normal, .. } = suppression::unsuppress(context, &kind, &key, &reason).await?;
            output.note(&format!("{} {normal:?} is shown again", kind.name));
        }
        SuppressionCommand::List => {
            for SuppressedKey { kind, row, .. } in suppression::list(context).await? {
                output.line(format!("{}\t{}\tsince {}\t{}", kind.name, row.key, rfc3339(row.since), row.reason).as_bytes());
            }
        }
    }
    Ok(())
}
