//! What a demo has from the start, so that its pages and guides show something: a receipt, and a signed checkpoint of each service with changes.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::{Duration, Instant};

use access::append::{CommandPolicy, append_command};
use operation::context::Part;
use operation::problem::Problem;
use operation::signing_state::SigningState;
use proofs::receipt::commitment;
use schemas::position::Seq;
use schemas::views::receipts::{IssueRequest, ReceiptCommand, TABLES as RECEIPTS};
use serde_json::json;

use crate::engine::Engine;

/// How long a start waits at most until everything is signed. That takes seconds, except on a machine that is busy with other work.
const TIME_MAX: Duration = Duration::from_secs(120);
/// How often it is checked whether something is signed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The request of the first receipt. A demo that is started again finds it in the log.
const REQUEST: &str = "req_demo";
/// The agent of the first receipt, and an account that has no key, so that nobody continues its chain.
const AGENT: &str = "demo-agent";
const OWNER: &str = "acct_demo";

/// Issues the first receipt and waits until it and the changes of every service are in signed checkpoints. A failure is logged: the demo works without.
pub(super) async fn sign(engine: &Arc<Engine>) {
    let signed = async {
        wait_until_signing(engine).await;
        issue_receipt(engine, REQUEST).await?;
        wait_for_checkpoints(engine).await
    };
    match tokio::time::timeout(TIME_MAX, signed).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(error = ingest::reason(&*error), "the first receipt and checkpoints of the demo are missing"),
        Err(_) => tracing::warn!("the first receipt and checkpoints of the demo are not signed yet"),
    }
}

/// Waits until the log names a key, and the signer has compared it with its memory. A receipt that is asked for without a key is not decided until there is one.
pub(super) async fn wait_until_signing(engine: &Engine) {
    while SigningState::of(&engine.context).is_refused() || !engine.has_signing_key().await {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Issues one more receipt to the agent of the first one. A failure is logged: the demo works without.
pub(super) async fn issue_another(engine: &Engine) {
    let request = format!("{REQUEST}_{}", engine.context.clock.now_ms());
    if let Err(error) = issue_receipt(engine, &request).await {
        tracing::warn!(error = ingest::reason(&*error), "a receipt of the demo could not be issued");
    }
}

async fn issue_receipt(engine: &Engine, request: &str) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let settings = &engine.context.settings;
    let issue = IssueRequest {
        action: "send_invoice".to_owned(),
        agent_id: AGENT.to_owned(),
        inputs_hash: commitment(&json!({ "customer": "c_17", "amount": 120.5 }))?,
        outputs_hash: commitment(&json!({ "invoice": "inv_9" }))?,
        metadata_hash: None,
        issuer: settings.services.get(RECEIPTS.view.name).map(|service| service.base_url.clone()).unwrap_or_default(),
        caller: OWNER.to_owned(),
    };
    let command = ReceiptCommand::Issue(issue);
    Ok(append_command(&engine.context, RECEIPTS.view, request, CommandPolicy::OncePerSubject, &command).await.map_err(detail)?)
}

async fn wait_for_checkpoints(engine: &Arc<Engine>) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let started = Instant::now();
    let settings = &engine.context.settings;
    for service in services::all().into_iter().filter(|service| settings.serves(service.name)) {
        let Some(files) = service.files else { continue };
        let has_changes = match engine.projector.service(service.name) {
            Ok(projected) => projected.checkpoint().await?.seq > Seq(0),
            Err(_) => false,
        };
        while has_changes && files(Arc::clone(&engine.context), "checkpoint".to_owned()).await.map_err(detail)?.is_none() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    tracing::debug!(seconds = started.elapsed().as_secs_f64(), "the first receipt and all checkpoints are signed");
    Ok(())
}

fn detail(problem: Problem) -> String {
    problem.detail
}
