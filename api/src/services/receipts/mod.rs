//! Provenance receipts: what an agent did, signed, each behind the one before in the agent's chain. Inputs and outputs are hashed here and
//! dropped: they are neither stored nor logged.

pub mod issue;
pub mod list;
pub mod pubkey;
pub mod verify;

use std::sync::Arc;

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::receipt;
use schemas::topics::CHANGES_RECEIPTS;
use schemas::views::receipts::{Signing, TABLES, source};
use schemas::views::records::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;
use view_store::View;

use crate::context::{Context, store_problem};
use crate::feed::Source;
use crate::operation::Service;
use crate::problem::Problem;
use crate::services::common::{health, keys};

/// Where the service's changes are.
pub const SOURCE: Source = Source {
    service: "receipts",
    view: TABLES.view,
    feed: TABLES.feed,
    through: TABLES.through,
    topic: &CHANGES_RECEIPTS,
    facts: &[],
    sample_days: None,
};

/// The service.
#[must_use]
pub fn service() -> Service {
    Service {
        name: "receipts",
        title: "Provenance receipts",
        about: "Signed, hash-chained receipts of what software agents did. Each agent's receipts count up without a gap, each naming the hash of \
            the one before; a receipt is checked offline with SHA-256, Ed25519 and canonical JSON (RFC 8785). Inputs and outputs are hashed on \
            arrival and never kept. Verifying and listing are free.",
        operations: vec![
            issue::operation(),
            verify::operation(),
            list::operation(),
            pubkey::operation(),
            keys::operation(),
            health::operation(SOURCE),
        ],
    }
}

/// A receipt as it is shown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// `rcpt_` and the first 32 hex digits of the content hash.
    pub id: String,
    /// What is certified.
    pub body: Body,
    /// `sha256:` and the SHA-256 of the body's canonical form (RFC 8785: sorted keys).
    pub content_hash: String,
    /// Who vouches for it.
    pub signature: Signature,
    /// A page that checks it, for people.
    pub verify_url: String,
}

/// What a receipt certifies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Body {
    /// `agent-action-receipt`.
    #[serde(rename = "type")]
    pub kind: String,
    /// 1.
    pub version: i64,
    /// Name of the action.
    pub action: String,
    /// Whose chain it stands in.
    pub agent_id: String,
    /// Commitment to the inputs: `sha256:` and the hash of their canonical form.
    pub inputs_hash: String,
    /// Commitment to the outputs.
    pub outputs_hash: String,
    /// When it was issued, RFC 3339 in UTC.
    #[serde(rename = "issuedAt")]
    pub issued_at: String,
    /// Position in the agent's chain, from 1.
    pub seq: i64,
    /// `contentHash` of the agent's receipt before; zeros for the first.
    #[serde(rename = "prevHash")]
    pub prev_hash: String,
    /// Base address of the service that issued it.
    pub issuer: String,
}

/// A receipt's signature.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    /// `Ed25519`.
    pub algorithm: String,
    /// The signature over the 32 bytes of the content hash, 128 hex digits.
    pub value: String,
    /// The key that verifies it, 64 hex digits; compare it with `/pubkey`.
    pub public_key_hex: String,
}

impl From<receipt::Receipt> for Shown {
    fn from(receipt: receipt::Receipt) -> Self {
        let receipt::Receipt { id, body, content_hash, signature } = receipt;
        let receipt::Body { kind, version, action, agent_id, inputs_hash, outputs_hash, issued_at, seq, prev_hash, issuer } = body;
        let receipt::Signature { algorithm, value, public_key_hex } = signature;
        let verify_url = format!("{issuer}/verify/{id}");
        let body = Body { kind, version, action, agent_id, inputs_hash, outputs_hash, issued_at, seq, prev_hash, issuer };
        Self { id, body, content_hash, signature: Signature { algorithm, value, public_key_hex }, verify_url }
    }
}

/// The receipts as they stand.
pub(crate) struct Receipts {
    view: Arc<dyn View>,
}

impl Receipts {
    pub(crate) async fn now(ctx: &Context) -> Result<Self, Problem> {
        Ok(Self { view: ctx.live(TABLES.view).await? })
    }

    /// The receipt of an id.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<receipt::Receipt>, Problem> {
        let row = self.view.get(TABLES.records, &key![id]).await.map_err(store_problem)?;
        row.map(|bytes| read::<Row<receipt::Receipt>>(&bytes).map(|row| row.record)).transpose()
    }

    /// The receipts of some ids, in their order; those that are not there are left out.
    pub(crate) async fn get_many(&self, ids: &[String]) -> Result<Vec<receipt::Receipt>, Problem> {
        let keys: Vec<_> = ids.iter().map(|id| key![id.as_str()]).collect();
        let rows = self.view.get_many(TABLES.records, &keys).await.map_err(store_problem)?;
        rows.into_iter().flatten().map(|bytes| read::<Row<receipt::Receipt>>(&bytes).map(|row| row.record)).collect()
    }

    /// What decisions remember under some keys, in their order.
    pub(crate) async fn remembered<T: DeserializeOwned>(&self, sources: &[String]) -> Result<Vec<Option<T>>, Problem> {
        let keys: Vec<_> = sources.iter().map(|source| key![source.as_str()]).collect();
        let rows = self.view.get_many(TABLES.sources, &keys).await.map_err(store_problem)?;
        rows.into_iter().map(|row| row.map(|bytes| read(&bytes)).transpose()).collect()
    }

    /// What decisions remember under one key.
    pub(crate) async fn one<T: DeserializeOwned>(&self, source: String) -> Result<Option<T>, Problem> {
        Ok(self.remembered(&[source]).await?.pop().flatten())
    }

    /// The keys that sign.
    pub(crate) async fn signing(&self) -> Result<Signing, Problem> {
        Ok(self.one(source::SIGNING.to_owned()).await?.unwrap_or_default())
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(%error, view = TABLES.view.name, "a row cannot be read");
        Problem::new(ErrorCode::Internal, "a stored row cannot be read")
    })
}
