//! The page of receipts: finds them by id, content hash or agent, verifies one in the browser without sending it, and shows the signed trees. The script
//! `verify.js` makes the checks; everything else works without it.

use futures_util::future::{join, join_all};
use maud::{Markup, html};
use operation::problem::Problem;
use pages::assets;
use pages::{Page, table};
use schemas::error_code::ErrorCode;
use serde_json::Value;

use crate::fields::{cell, grouped};
use crate::layout::notice;
use crate::{Pairs, Reads, SiteService, VERIFY, url};

/// The receipts of an agent that one page shows.
const ROWS: u64 = 25;
/// The longest search, in characters.
const WORDS_CHARS_MAX: usize = 200;
/// The hexadecimal digits of a content hash, of which an id has the first ones.
const HASH_DIGITS: usize = 64;
/// The hexadecimal digits of an id.
const ID_DIGITS: usize = 32;
/// The longest receipt that may be pasted, in characters.
const PASTED_CHARS_MAX: usize = 1_000_000;
/// The most signatures of a checkpoint that are named.
const SIGNERS_MAX: usize = 10;

/// What was searched for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Nothing,
    /// A receipt, by its id.
    Receipt(String),
    /// The chain of an agent.
    Agent(String),
}

impl Wanted {
    /// An id, a content hash (of which the id has the first digits), or else the name of an agent.
    fn of(words: &str) -> Self {
        let lower = words.to_ascii_lowercase();
        let is_hex = |text: &str, digits: usize| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = lower.strip_prefix("sha256:").unwrap_or(&lower);
        match lower.strip_prefix("rcpt_") {
            _ if words.is_empty() || words.chars().count() > WORDS_CHARS_MAX => Self::Nothing,
            Some(digits) if is_hex(digits, ID_DIGITS) => Self::Receipt(format!("rcpt_{digits}")),
            None if is_hex(hash, HASH_DIGITS) => Self::Receipt(format!("rcpt_{}", &hash[..ID_DIGITS])),
            _ => Self::Agent(words.to_owned()),
        }
    }
}

/// The service that issues receipts, if one is served.
pub(crate) fn issuer(reads: &dyn Reads) -> Option<SiteService<'_>> {
    reads.services().into_iter().find(is_issuer)
}

/// Whether a service issues receipts.
pub(crate) fn is_issuer(shown: &SiteService<'_>) -> bool {
    shown.operation("verify_receipt").is_some()
}

/// The page.
///
/// # Errors
/// `not-found` if this server serves no receipts.
pub(crate) async fn page<'a>(reads: &'a dyn Reads, pairs: &Pairs) -> Result<Page<'a>, Problem> {
    let shown = issuer(reads).ok_or_else(|| Problem::new(ErrorCode::NotFound, "this server issues no receipts"))?;
    let words = url::value(pairs, "q");
    let found = async {
        match Wanted::of(words) {
            Wanted::Nothing => html! {},
            Wanted::Receipt(id) => receipt(reads, shown, &id).await,
            Wanted::Agent(agent) => chain(reads, shown, &agent, url::value(pairs, "after")).await,
        }
    };
    let (found, trees) = join(found, trees(reads)).await;
    let main = html! {
        h1 { "Receipts" }
        p.lead { "A receipt is a signed record of what a software agent did. Find one, or verify one that you have." }
        form.big action=(VERIFY) method="get" aria-label="Find a receipt" {
            label.hidden for="q" { "Id, content hash or agent" }
            input #q type="search" name="q" value=(words) placeholder="Id, content hash or agent" maxlength=(WORDS_CHARS_MAX) autocomplete="off";
            button.primary { "Find" }
        }
        (found)
        section aria-labelledby="own" {
            h2 #own { "Verify a receipt that you have" }
            p {
                "It is checked in this browser and not sent: its content hash, its id, its signature, and the proof of its place in the signed tree if it has one. Only "
                "the public keys of this issuer are fetched."
            }
            (verifier(&shown))
        }
        section aria-labelledby="trees" {
            h2 #trees { "Signed trees" }
            p {
                "All receipts are leaves of one tree, and so are the changes of each service. A checkpoint signs the size and the root of a tree: who keeps one can prove "
                "later that nothing before it was changed. See the " a href={ (crate::guides::PATH) "/receipts" } { "guide" } "."
            }
            (trees)
        }
    };
    let description = "Find receipts of software agents, and verify them in your browser.".to_owned();
    let canonical = if words.is_empty() { VERIFY.to_owned() } else { String::new() };
    Ok(Page { title: "Receipts".to_owned(), description, canonical, main, ..Page::default() })
}

/// The page of a receipt at its issuer, which verifies it in the browser.
pub(crate) fn receipt_page(shown: &SiteService<'_>, id: &str) -> String {
    format!("{}/verify/{}", shown.settings.prefix, url::segment(id))
}

/// What the server says of one receipt.
async fn receipt(reads: &dyn Reads, shown: SiteService<'_>, id: &str) -> Markup {
    let verified = match reads.read(shown.service.name, "verify_receipt", vec![("receipt_id".to_owned(), id.to_owned())]).await {
        Ok(verified) => verified,
        Err(problem) => return notice(&problem.detail, problem.code),
    };
    let is_valid = verified["valid"] == true;
    let checks = [
        ("hash", "the content hash is that of the body"),
        ("id", "the id is that of the content hash"),
        ("signature", "the signature is by a key of this issuer"),
        ("chain", "it is in its agent's chain, directly after the receipt that it names"),
    ];
    let body = &verified["receipt"]["body"];
    html! {
        section aria-labelledby="found" {
            h2 #found { "Receipt " code { (id) } }
            p class={ "verdict " (if is_valid { "good" } else { "bad" }) } role="status" { (if is_valid { "VALID" } else { "NOT VALID" }) }
            p.soft { "This is what the server says. Its page checks the receipt again in your browser: " a href=(receipt_page(&shown, id)) { "verify it here" } "." }
            ul { @for (name, words) in checks { li { (if verified["checks"][name] == true { "holds: " } else { "DOES NOT HOLD: " }) (words) } } }
            dl.facts.small {
                div { dt { "Action" } dd { (cell("", &body["action"])) } }
                div { dt { "Agent" } dd { (agent_link(body["agent_id"].as_str().unwrap_or_default())) } }
                div { dt { "Issued" } dd { (cell("", &body["issuedAt"])) } }
                div { dt { "Place in its chain" } dd { (cell("", &verified["position"]["seq"])) " of " (cell("", &verified["position"]["length"])) } }
                div { dt { "Leaf of the tree" } dd { (leaf(&verified["inclusion"])) } }
            }
        }
    }
}

fn leaf(inclusion: &Value) -> Markup {
    html! { @match inclusion["leafIndex"].as_i64() { Some(index) => { (grouped(index)) } None => { "not in a checkpoint yet" } } }
}

fn agent_link(agent: &str) -> Markup {
    html! { a href={ (VERIFY) (url::query(&[("q", agent)])) } { bdi { (agent) } } }
}

/// The receipts of an agent, the newest first.
async fn chain(reads: &dyn Reads, shown: SiteService<'_>, agent: &str, after: &str) -> Markup {
    let mut arguments = vec![("agent_id".to_owned(), agent.to_owned()), ("limit".to_owned(), ROWS.to_string())];
    arguments.extend((!after.is_empty()).then(|| ("after".to_owned(), after.to_owned())));
    let listed = match reads.read(shown.service.name, "list_receipts", arguments).await {
        Ok(listed) => listed,
        Err(problem) => return notice(&problem.detail, problem.code),
    };
    let receipts = listed["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        section aria-labelledby="found" {
            h2 #found { "Receipts of " bdi { (agent) } }
            @if receipts.is_empty() {
                p.empty { "No agent of this name has a receipt here. Hashes of inputs and outputs are not searched; a content hash has 64 digits." }
            } @else {
                (table("Chain", &["Place", "Action", "Issued", "Receipt"], &html! {
                    @for receipt in receipts {
                        @let id = receipt["id"].as_str().unwrap_or_default();
                        tr {
                            th scope="row" { (cell("", &receipt["body"]["seq"])) }
                            td { (cell("", &receipt["body"]["action"])) }
                            td { (cell("", &receipt["body"]["issuedAt"])) }
                            td { a href=(receipt_page(&shown, id)) { code { (id) } } }
                        }
                    }
                }))
                @if let Some(next) = listed["next"].as_i64() {
                    nav.pager aria-label="Receipts" {
                        a.next rel="next" href={ (VERIFY) (url::query(&[("q", agent.to_owned()), ("after", next.to_string())])) } { "Earlier receipts" }
                    }
                }
            }
        }
    }
}

/// The form whose receipt the script verifies. Without the script it is hidden, so that nothing is sent.
fn verifier(shown: &SiteService<'_>) -> Markup {
    html! {
        p.notice #needs-script {
            "This needs JavaScript. On a computer with the program, " code { "highwater verify RECEIPT.json --pubkey HEX" } " makes the same checks without the server."
        }
        form.stack #verifier hidden {
            div.field {
                label for="pasted" { "The receipt as JSON; paste it, or drop a file here" }
                textarea #pasted rows="8" maxlength=(PASTED_CHARS_MAX) spellcheck="false" autocomplete="off" {}
            }
            div.field { label for="file" { "Or choose a file" } input #file type="file" accept="application/json,.json"; }
            label.switch { input #ask type="checkbox"; "Also ask this server for its place in the chain and in the tree, which sends its id only" }
            button.primary { "Verify in this browser" }
        }
        p.verdict #verdict role="status" {}
        ul #checks data-base={ (shown.settings.prefix) "/" } {}
        script src=(assets::VERIFY.path) defer {}
    }
}

/// The newest signed checkpoint of each tree.
async fn trees(reads: &dyn Reads) -> Markup {
    let services = reads.services().into_iter().filter(|shown| shown.operation("prove_consistency").is_some());
    let answering = services.map(|shown| async move {
        // The proof of the first leaf is empty: only the checkpoint is shown.
        let arguments = vec![("from".to_owned(), "1".to_owned()), ("to".to_owned(), "1".to_owned())];
        let proved = reads.read(shown.service.name, "prove_consistency", arguments).await;
        (shown, proved)
    });
    let trees: Vec<(SiteService<'_>, Result<Value, Problem>)> = join_all(answering).await;
    html! {
        (table("Checkpoints", &["Tree", "Leaves", "Root", "Signed by", "Checkpoint"], &html! {
            @for (shown, proved) in &trees {
                tr {
                    th scope="row" { a href=(shown.explorer()) { (shown.service.title) } }
                    @match proved {
                        Ok(proved) => { (checkpoint(shown, proved["checkpoint"].as_str().unwrap_or_default())) }
                        Err(problem) => { td colspan="4" { bdi { (problem.detail) } } }
                    }
                }
            }
        }))
    }
}

/// The cells of a checkpoint: a signed note of origin, size and root, an empty line, and a line for each signature.
fn checkpoint(shown: &SiteService<'_>, note: &str) -> Markup {
    let (text, signatures) = note.split_once("\n\n").unwrap_or((note, ""));
    let mut lines = text.lines().skip(1);
    let size = lines.next().and_then(|size| size.parse::<i64>().ok()).unwrap_or(0);
    let root = lines.next().unwrap_or_default();
    let signers = signatures.lines().filter_map(|line| line.strip_prefix("— ")?.split(' ').next()).take(SIGNERS_MAX);
    html! {
        td.number { (grouped(size)) }
        td { code { bdi { (root) } } }
        td { @for (index, signer) in signers.enumerate() { @if index > 0 { ", " } bdi { (signer) } } }
        td { a href={ (shown.settings.base_url) "/checkpoint" } { "checkpoint" } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{HOSTILE, Made};

    /// Proves that ids and content hashes in any case lead to one receipt, and that everything else is the name of an agent.
    #[test]
    fn words_are_ids_hashes_or_agents() {
        let digits = "0123456789abcdef0123456789abcdef";
        let id = Wanted::Receipt(format!("rcpt_{digits}"));
        for words in [
            format!("rcpt_{digits}"),
            format!("RCPT_{}", digits.to_uppercase()),
            format!("sha256:{digits}{digits}"),
            format!("{digits}{digits}"),
        ] {
            assert_eq!(Wanted::of(&words), id, "{words}");
        }
        for agent in ["billing-agent-1", "rcpt_xyz", digits, "sha256:12", "ü"] {
            assert_eq!(Wanted::of(agent), Wanted::Agent(agent.to_owned()));
        }
        assert_eq!([Wanted::of(""), Wanted::of(&"x".repeat(201))], [Wanted::Nothing, Wanted::Nothing]);
    }

    /// Proves that a receipt that does not hold is shown as such with the check that fails, that a chain links to the pages of its receipts, that the
    /// trees are shown with their signers, and that texts are inert.
    #[test]
    fn receipts_chains_and_trees() {
        let mut made = Made::new();
        let id = format!("rcpt_{}", "a".repeat(32));
        let checks = json!({ "hash": true, "id": true, "signature": false, "chain": true });
        let receipt = json!({ "id": id, "body": { "action": HOSTILE, "agent_id": HOSTILE, "issuedAt": "2026-11-28T10:00:00Z", "seq": 3 } });
        made.answers.insert(
            "verify_receipt",
            json!({ "valid": false, "checks": checks, "receipt": receipt, "position": { "seq": 3, "length": 9 } }),
        );
        made.answers.insert("list_receipts", json!({ "receipts": [receipt], "next": 3 }));
        made.answers
            .insert("prove_consistency", json!({ "checkpoint": "made\n1234\ncm9vdA==\n\n— api.example/made c2ln\n— <b>witness c2ln\n" }));
        let html = made.page(&format!("/verify?q={id}")).html;
        assert!(
            html.contains("class=\"verdict bad\" role=\"status\">NOT VALID<") && html.contains("DOES NOT HOLD: the signature"),
            "{html}"
        );
        assert!(html.contains(&format!("href=\"/made/verify/{id}\"")) && html.contains("not in a checkpoint yet"), "{html}");
        assert!(html.contains("1,234") && html.contains("<bdi>api.example/made</bdi>, <bdi>&lt;b&gt;witness</bdi>"), "{html}");
        assert!(!html.contains("<script>alert") && html.contains("hidden") && html.contains(&assets::VERIFY.path), "{html}");
        let html = made.page("/verify?q=agent+x").html;
        assert!(html.contains(&format!("href=\"/made/verify/{id}\"")) && html.contains("href=\"/verify?q=agent+x&amp;after=3\""), "{html}");
        let read = made.read.lock().unwrap().iter().find(|(name, _)| name == "list_receipts").unwrap().1.clone();
        assert_eq!(read, [("agent_id".to_owned(), "agent x".to_owned()), ("limit".to_owned(), "25".to_owned())]);
        made.answers.remove("verify_receipt");
        let page = made.page(&format!("/verify?q={id}"));
        assert!(page.status == 200 && page.html.contains("No &lt;record&gt; has this id."), "{}", page.html);
    }
}
