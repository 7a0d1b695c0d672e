//! `GET /pubkey`: the keys that verify receipts.

use proofs::receipt::ALGORITHM;
use reads::registration::TaskContext;
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::views::engine;
use schemas::views::receipts::{KEY, PublicKey, ReceiptCommand, SigningHistory, TABLES};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

use crate::Receipts;
use access::append::{self, CommandPolicy};
use operation::context::Context;
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation, Surface};

/// The pause before another attempt to name the first key.
const NAME_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Arguments of `public_key`: none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The keys of this issuer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Keys {
    /// `Ed25519`.
    pub algorithm: &'static str,
    /// The key that signs now, 64 hex digits.
    pub public_key_hex: String,
    /// All keys that ever signed, the current one last.
    pub keys: Vec<Key>,
}

/// One key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// 64 hex digits.
    pub public_key_hex: String,
    /// When the key started to sign, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub since: String,
    /// The reason for the key if the operator declared that a backup was restored: this history then lacks what the previous key signed after the
    /// backup. Empty for the first key and for an ordinary rotation.
    pub reason: String,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "public_key",
        path: "/pubkey",
        summary: "The keys of this issuer: the current one, and all earlier ones.",
        description: "A receipt names the key that signed it; the key is valid if it is listed here. Replaced keys remain listed.",
        surface: Surface::Route,
        counted: false,
        errors: &[],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<Arguments, Keys, _, _>(words, answer)
}

async fn answer(call: Call, _: Arguments) -> Result<Answer, Problem> {
    let signing = Receipts::now(&call.context).await?.signing().await?;
    let shown = |key: PublicKey| Key { public_key_hex: key.public_key_hex, since: rfc3339(key.since), reason: key.reason };
    let keys: Vec<Key> = signing.keys.into_iter().map(shown).collect();
    let Some(last) = keys.last() else {
        return Err(Problem::new(ErrorCode::Unavailable, "no key signs yet").retry_after(1));
    };
    Answer::json(&Keys { algorithm: ALGORITHM, public_key_hex: last.public_key_hex.clone(), keys })
}

/// Records the first key that signs, unless one was recorded.
///
/// # Errors
/// `unavailable` while no process projects.
pub async fn name_first(ctx: &Context, public_key: &str) -> Result<(), Problem> {
    name(ctx, public_key, "", CommandPolicy::OncePerSubject).await
}

/// Records the first key as soon as possible, unless one was recorded.
pub(crate) async fn keep_first_named(given: Arc<TaskContext>) {
    let naming = async {
        // After a start views are first completed from the log.
        given.context.store.served(&[engine::VIEW.name, TABLES.view.name]).await;
        while let Err(problem) = name_first(&given.context, given.signer.first_key()).await {
            tracing::warn!(reason = problem.detail, "the first key of receipts is not named yet, will retry");
            tokio::time::sleep(NAME_RETRY_INTERVAL).await;
        }
    };
    tokio::select! {
        () = naming => {}
        () = given.context.stopped() => {}
    }
}

/// Records the key that signs from now on, with the reason if a restore was declared. The process that decides must have the key.
///
/// # Errors
/// `unavailable` while no process projects.
pub async fn name_next(ctx: &Context, public_key: &str, reason: &str) -> Result<(), Problem> {
    name(ctx, public_key, reason, CommandPolicy::Always).await
}

async fn name(ctx: &Context, public_key: &str, reason: &str, policy: CommandPolicy) -> Result<(), Problem> {
    let (public_key, reason) = (public_key.to_owned(), reason.to_owned());
    let command = ReceiptCommand::Key { public_key, reason };
    append::append_command(ctx, TABLES.view, KEY, policy, &command).await
}

/// The keys that signed so far, the current one last.
///
/// # Errors
/// When they cannot be read.
pub async fn named(ctx: &Context) -> Result<SigningHistory, Problem> {
    Receipts::now(ctx).await?.signing().await
}
