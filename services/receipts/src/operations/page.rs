//! `GET /verify/{id}`: a page that shows a receipt, which the reader's browser checks.

use maud::html;
use operation::File;
use operation::problem::Problem;
use pages::assets::VERIFY;
use pages::{EXPLORE, POLICY, Page, RECEIPTS, layout};
use proofs::receipt::{Receipt, is_id};
use serde_json::json;

use crate::Receipts;

/// The file at a path; `None` if there is none.
pub(crate) async fn file(receipts: &Receipts, path: &str) -> Result<Option<File>, Problem> {
    if path == "verify.js" {
        return Ok(Some(File { bytes: VERIFY.bytes.into(), content_type: VERIFY.content_type, is_immutable: false, policy: POLICY }));
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
        ("Metadata", body.metadata_hash.as_deref().unwrap_or("none")),
        ("Hash of the previous receipt", &body.prev_hash),
        ("Content hash", &receipt.content_hash),
        ("Key", &receipt.signature.public_key_hex),
    ];
    let main = html! {
        nav.crumbs aria-label="Breadcrumb" {
            a href="/" { "Home" } " / " a href=(RECEIPTS) { "Receipts" } " / " span aria-current="page" { (receipt.id) }
        }
        h1 { "Receipt " (body.seq) " of " bdi { (body.agent_id) } }
        p { code { (receipt.id) } " · " a href={ (EXPLORE) "/receipts/" (receipt.id) } { "Its record, and how to get it over the API" } }
        div.scroll tabindex="0" role="region" aria-label="The receipt" {
            table.grid { tbody { @for (name, value) in rows { tr { th scope="row" { (name) } td { bdi { (value) } } } } } }
        }
        h2 { "Verified in your browser" }
        p.verdict #verdict role="status" {}
        ul #checks data-base="../" { li { "Not verified: this needs JavaScript. " code { "highwater verify" } " makes the same checks." } }
        // A template is inert, and its text is escaped like any other.
        template #receipt { (json!(receipt).to_string()) }
        script src=(VERIFY.path) {}
    };
    layout(&Page { title: format!("Receipt {} of {}", body.seq, body.agent_id), main, ..Page::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that texts of callers are inert on the page, do not turn the direction of what follows, and that the page leads on.
    #[test]
    fn texts_of_callers_are_inert() {
        let mut receipt = Receipt { id: "rcpt_1".to_owned(), ..Receipt::default() };
        receipt.body.agent_id = "<script>alert(1)</script>\u{202e}".to_owned();
        receipt.body.action = "</template><b>\u{202e}".to_owned();
        let html = rendered(&receipt, "");
        assert!(!html.contains("<script>") && !html.contains("<b>") && html.matches("</template>").count() == 1, "{html}");
        assert!(html.contains("<td><bdi>&lt;/template&gt;&lt;b&gt;\u{202e}</bdi></td>"), "{html}");
        assert!(html.contains("Hash of the previous receipt</th>"), "{html}");
        assert!(html.contains("href=\"/verify\"") && html.contains("href=\"/explore/receipts/rcpt_1\""), "{html}");
    }
}
