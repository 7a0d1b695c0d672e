//! `GET /verify/{id}`: a receipt for people, checked by their own browser.

use maud::html;
use operation::File;
use operation::problem::Problem;
use pages::page;
use schemas::receipt::{Receipt, is_id};
use serde_json::json;

use super::Receipts;

/// The script that checks: it hashes, compares and verifies with what the browser has.
const SCRIPT: &str = include_str!("verify.js");
/// What the page may do: run that script, and ask this service.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// What is served at a path; `None` for what is not there.
pub(super) async fn file(receipts: &Receipts, path: &str) -> Result<Option<File>, Problem> {
    if path == "verify.js" {
        return Ok(Some(File {
            bytes: SCRIPT.into(),
            content_type: "text/javascript; charset=utf-8",
            is_immutable: false,
            policy: POLICY,
        }));
    }
    let Some(id) = path.strip_prefix("verify/").filter(|id| is_id(id)) else { return Ok(None) };
    let Some(receipt) = receipts.get(id).await? else { return Ok(None) };
    let owner = receipts.chain(&receipt.body.agent_id).await?.owner();
    Ok(Some(File {
        bytes: rendered(&receipt, &owner).into(),
        content_type: "text/html; charset=utf-8",
        is_immutable: false,
        policy: POLICY,
    }))
}

fn rendered(receipt: &Receipt, owner: &str) -> String {
    let body = &receipt.body;
    let known = |caller: &str| if caller.is_empty() { "not recorded".to_owned() } else { caller.to_owned() };
    let (issued_to, owner) = (known(body.issued_to.as_deref().unwrap_or_default()), known(owner));
    let rows = [
        ("Action", body.action.as_str()),
        ("Agent", &body.agent_id),
        ("Issued to", &issued_to),
        ("Owner of the chain", &owner),
        ("Issued", &body.issued_at),
        ("Issuer", &body.issuer),
        ("Inputs", &body.inputs_hash),
        ("Outputs", &body.outputs_hash),
        ("Behind", &body.prev_hash),
        ("Content hash", &receipt.content_hash),
        ("Key", &receipt.signature.public_key_hex),
    ];
    let page_body = html! {
        h1 { "Receipt " (body.seq) " of its agent" }
        p { code { (receipt.id) } }
        table {
            @for (name, value) in rows { tr { th { (name) } td { (value) } } }
        }
        h2 { "Verified in your browser" }
        ul #checks { li { "Not verified: this needs JavaScript. " code { "highwater verify" } " makes the same checks." } }
        // A template is inert, and its text is escaped like any other.
        template #receipt { (json!(receipt).to_string()) }
        script src="../verify.js" {}
    };
    page("Receipt", &page_body)
}
