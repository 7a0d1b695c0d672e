//! The files about checkpoints that every service with a signed tree serves below its base address.

use crate::note::{KeyType, SignedNote, VerifierKey};
use proofs::hash::Hash32;
use schemas::views::receipts::SignedCheckpoint;

use super::{newest_cosigned, with_cosignatures};
use operation::File;
use operation::context::{Context, Part};
use operation::problem::Problem;
use operation::signing_state::SigningState;

/// A file about a service's checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointFile {
    /// `checkpoint`: the newest checkpoint, with the available cosignatures.
    Newest,
    /// `checkpoint/cosigned`: the newest checkpoint that a witness cosigned.
    Cosigned,
    /// `vkey`: the verifier key of the newest checkpoint, for the configuration of witnesses and verifiers.
    Key,
}

impl CheckpointFile {
    /// The file at a path below the service's base address; `None` for other paths.
    pub fn of(path: &str) -> Option<Self> {
        match path {
            "checkpoint" => Some(Self::Newest),
            "checkpoint/cosigned" => Some(Self::Cosigned),
            "vkey" => Some(Self::Key),
            _ => None,
        }
    }

    /// The file of a service whose newest checkpoint is `sealed`; `None` if there is none yet.
    ///
    /// # Errors
    /// `unavailable` while the service's checkpoints are withheld, or when the store fails.
    pub async fn file(self, ctx: &Context, service: &str, sealed: Option<SignedCheckpoint>) -> Result<Option<File>, Problem> {
        if self != Self::Key {
            SigningState::of(ctx).check_checkpoint(service)?;
        }
        let Some(sealed) = sealed else { return Ok(None) };
        let text = match self {
            Self::Newest => Some(with_cosignatures(ctx, service, sealed.note).await?),
            Self::Cosigned => newest_cosigned(ctx, service).await?,
            Self::Key => log_key(&sealed).map(|key| format!("{key}\n")),
        };
        Ok(text.map(|text| File { bytes: text.into(), content_type: "text/plain; charset=utf-8", is_immutable: false, policy: "" }))
    }
}

/// The verifier key of a checkpoint, whose name is the origin; `None` if the checkpoint is damaged.
fn log_key(sealed: &SignedCheckpoint) -> Option<VerifierKey> {
    let origin = SignedNote::parse(&sealed.note)?.checkpoint()?.origin;
    VerifierKey::new(&origin, KeyType::Ed25519, &Hash32::from_hex(&sealed.public_key_hex)?.0).ok()
}
