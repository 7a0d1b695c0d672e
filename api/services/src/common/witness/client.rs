//! Asks the configured witnesses to cosign our checkpoints (`add-checkpoint`), behind their publication: no checkpoint waits for a witness, and
//! no witness for another.

use crate::common::witness::Witnessing;
use operation::context::Part;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use schemas::note::{KeyError, KeyType, Note, Signed, VerifierKey, decimal};
use schemas::reason::reason;
use schemas::views::receipts::SignedCheckpoint;
use tokio::sync::watch;
use view_store::lease::{LEASE, Lease};

use super::cosignatures::{self, Cosignature};
use super::request::AddCheckpoint;
use super::{OwnTree, Pair, Standing};
use operation::context::{Context, store_problem};
use operation::metrics;
use operation::problem::Problem;

/// How long a connection to a witness may take, and a whole request.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// How often new checkpoints are looked for, which is how often a tree is signed at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest time between two requests to a witness about the same tree.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// After how long a witness is asked again about a checkpoint that it cosigned: its time says how old the newest tree is at most.
const REFRESH_INTERVAL: Duration = Duration::from_secs(3_600);
/// The longest pause after requests that failed. The first is at most a second, and each next one twice as long.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Why a witness cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// Its verifier key is none.
    #[error("vkey \"{vkey}\": {source}")]
    Key {
        /// The key as it was given.
        vkey: String,
        /// What is wrong with it.
        source: KeyError,
    },
    /// Its submission prefix is none.
    #[error("url \"{url}\": it is not http:// or https:// with a host")]
    Url {
        /// The address as it was given.
        url: String,
    },
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// A witness that is asked to cosign our checkpoints.
#[derive(Clone, Debug)]
pub struct Witness {
    pub(super) key: VerifierKey,
    url: Url,
    client: Client,
}

/// What a witness answered.
enum Answer {
    /// Its signature lines.
    Lines(String),
    /// That it cosigned a tree of another size last: of this one, if it said which.
    Conflict(Option<u64>),
}

impl Witness {
    /// A witness with its verifier key (cosignature/v1) and its submission prefix.
    ///
    /// # Errors
    /// When the key or the address cannot be used.
    pub fn new(vkey: &str, url: &str) -> Result<Self, WitnessError> {
        let key = VerifierKey::parse(vkey, KeyType::Cosignature).map_err(|source| WitnessError::Key { vkey: vkey.to_owned(), source })?;
        let is_usable = |parsed: &Url| matches!(parsed.scheme(), "http" | "https") && parsed.host().is_some() && parsed.query().is_none();
        let prefix = Url::parse(url).ok().filter(is_usable);
        let mut url = prefix.ok_or_else(|| WitnessError::Url { url: url.to_owned() })?;
        let path = format!("{}/add-checkpoint", url.path().trim_end_matches('/'));
        url.set_path(&path);
        // Installed twice is an error that says it is installed already, which is all we want.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut client = Client::builder()
            .no_proxy()
            .referer(false)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECTED_WITHIN)
            .timeout(ANSWERED_WITHIN)
            .user_agent(concat!("highwater/", env!("CARGO_PKG_VERSION")));
        if url.scheme() == "http" {
            // Speaks no TLS, so it trusts nobody, and works on a machine that has no certificates.
            let trusts_nobody =
                rustls::ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
            client = client.tls_backend_preconfigured(trusts_nobody);
        }
        Ok(Self { key, url, client: client.build().map_err(WitnessError::Client)? })
    }

    /// The name of the witness.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// Submits a checkpoint.
    ///
    /// # Errors
    /// Why the witness answered nothing usable, in words for the operator.
    async fn submit(&self, request: &AddCheckpoint<'_>) -> Result<Answer, String> {
        let unanswered = |error: reqwest::Error| reason(&error.without_url());
        let sent = self.client.post(self.url.clone()).header(CONTENT_TYPE, "text/plain; charset=utf-8").body(request.body()).send().await;
        let mut answer = sent.map_err(unanswered)?;
        let status = answer.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unanswered)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(format!("its answer is longer than {ANSWER_BYTES_MAX} bytes"));
            }
        }
        let text = String::from_utf8(bytes).map_err(|_| "its answer is not UTF-8".to_owned())?;
        match status {
            200 => Ok(Answer::Lines(text)),
            409 => Ok(Answer::Conflict(text.strip_suffix('\n').and_then(decimal))),
            403 => Err("it answered 403: it does not know the key that signs this log".to_owned()),
            404 => Err("it answered 404: it does not know this log's origin".to_owned()),
            422 => Err("it answered 422: the checkpoint does not continue the one that it cosigned last".to_owned()),
            _ => Err(format!("it answered {status}")),
        }
    }

    /// The cosignature in an answer; `None` if it holds no valid one of this witness. Signatures of other keys are left out.
    fn cosignature(&self, note: &str, size: u64, lines: &str) -> Option<Cosignature> {
        let text = Note::parse(note)?.text();
        let Signed::Valid { line, time_s } = Note::of_lines(text, lines)?.signed_by(&self.key) else { return None };
        Some(Cosignature { note: note.to_owned(), size, line: line.to_owned(), time_s })
    }

    /// Has the witness cosign a checkpoint, from the size that it cosigned last as far as that is known here.
    ///
    /// # Errors
    /// Why it did not, in words for the operator.
    async fn cosign(&self, ctx: &Context, tree: OwnTree, sealed: &SignedCheckpoint, known: u64) -> Result<Cosignature, String> {
        let size = u64::try_from(sealed.size).unwrap_or(0);
        // A witness that cosigned more than there is says so itself.
        let mut old = if known <= size { known } else { 0 };
        for _ in 0..2 {
            let proof = if old == 0 || old == size {
                Vec::new()
            } else {
                tree.consistency(ctx, size, old).await.map_err(|problem| problem.detail)?.ok_or("the tree lacks a hash")?
            };
            match self.submit(&AddCheckpoint { old, proof, note: &sealed.note }).await? {
                Answer::Lines(lines) => {
                    return self.cosignature(&sealed.note, size, &lines).ok_or_else(|| "its answer holds no valid cosignature".to_owned());
                }
                Answer::Conflict(Some(actual)) if actual > size => {
                    return Err(format!("it cosigned a tree of {actual} leaves, and this log's newest checkpoint has {size}"));
                }
                Answer::Conflict(Some(actual)) if actual != old => old = actual,
                Answer::Conflict(_) => return Err(format!("it answered 409: it cosigned another tree of {old} leaves")),
            }
        }
        Err("it answered 409 twice: other checkpoints of this log are submitted at the same time".to_owned())
    }
}

/// The pause after so many failures one after another; `chance` is between 0 and 1.
fn pause(failures: u32, chance: f64) -> Duration {
    let longest = Duration::from_secs(1 << failures.saturating_sub(1).min(20)).min(PAUSE_MAX);
    longest.mul_f64(0.5 + chance / 2.0)
}

/// Has a witness cosign a checkpoint unless it did so lately; answers how long its cosignature is good for.
async fn ask(ctx: &Context, witness: &Witness, tree: OwnTree, sealed: &SignedCheckpoint) -> Result<Duration, String> {
    let failed = |problem: Problem| problem.detail;
    let now_s = u64::try_from(ctx.clock.now_ms() / 1_000).unwrap_or(0);
    let known = cosignatures::read(ctx, tree.service()).await.map_err(failed)?.0.remove(&witness.key.to_string());
    if let Some(known) = known.as_ref().filter(|known| known.note == sealed.note) {
        let age = Duration::from_secs(now_s.saturating_sub(known.time_s));
        if let Some(left) = REFRESH_INTERVAL.checked_sub(age).filter(|left| !left.is_zero()) {
            return Ok(left);
        }
    }
    let cosignature = witness.cosign(ctx, tree, sealed, known.map_or(0, |known| known.size)).await?;
    cosignatures::store(ctx, tree.service(), witness, &cosignature).await.map_err(failed)?;
    tracing::debug!(witness = witness.name(), service = tree.service(), size = cosignature.size, "a witness cosigned a checkpoint");
    Ok(REFRESH_INTERVAL)
}

/// Asks one witness about one tree, whenever there is a new checkpoint. Never returns.
async fn follow(ctx: &Context, witness: &Witness, tree: OwnTree, mut newest: watch::Receiver<Option<SignedCheckpoint>>) {
    let pair: Pair = (tree.service(), witness.name().to_owned());
    let mut failures = 0_u32;
    loop {
        let sealed = newest.borrow_and_update().clone();
        let Some(sealed) = sealed else {
            if newest.changed().await.is_err() {
                // Whoever looks for checkpoints is gone, and ends this as well.
                return std::future::pending().await;
            }
            continue;
        };
        match ask(ctx, witness, tree, &sealed).await {
            Ok(good_for) => {
                failures = 0;
                if !Witnessing::of(ctx).set_standing(&pair, |standing| *standing = Standing::default()).is_empty() {
                    tracing::info!(witness = witness.name(), service = tree.service(), "a witness cosigns again");
                }
                tokio::time::sleep(ASK_INTERVAL).await;
                // Either there is something new, or its time is to be renewed.
                let _ = tokio::time::timeout(good_for, newest.changed()).await;
            }
            Err(reason) => {
                failures = failures.saturating_add(1);
                if Witnessing::of(ctx).set_standing(&pair, |standing| standing.reason.clone_from(&reason)) != reason {
                    let (witness, service) = (witness.name(), tree.service());
                    tracing::warn!(witness, service, reason, "a witness did not cosign a checkpoint, will retry");
                }
                tokio::time::sleep(pause(failures, rand::random())).await;
            }
        }
    }
}

/// Looks for new checkpoints of all trees, and shows which witness is behind. Never returns.
async fn look(ctx: &Context, trees: &[(OwnTree, watch::Sender<Option<SignedCheckpoint>>)]) {
    let mut is_failing = false;
    loop {
        let began = tokio::time::Instant::now();
        let mut failed = None;
        for (tree, newest) in trees {
            if let Err(problem) = look_at(ctx, *tree, newest).await {
                failed = Some(problem);
            }
        }
        if let Some(problem) = failed.as_ref().filter(|_| !is_failing) {
            tracing::warn!(reason = problem.detail, "checkpoints for witnesses cannot be read, will retry");
        }
        is_failing = failed.is_some();
        tokio::time::sleep_until(began + LOOK_INTERVAL).await;
    }
}

/// Hands on the newest checkpoint of a tree, and shows for how long it has lacked the cosignature of each witness.
async fn look_at(ctx: &Context, tree: OwnTree, newest: &watch::Sender<Option<SignedCheckpoint>>) -> Result<(), Problem> {
    let sealed = tree.sealed(ctx).await?;
    newest.send_if_modified(|current| {
        let is_new = *current != sealed;
        current.clone_from(&sealed);
        is_new
    });
    let Some(sealed) = sealed else { return Ok(()) };
    let (row, _) = cosignatures::read(ctx, tree.service()).await?;
    for witness in &Witnessing::of(ctx).asked {
        let is_current = row.get(&witness.key.to_string()).is_some_and(|known| known.note == sealed.note);
        let pair: Pair = (tree.service(), witness.name().to_owned());
        let mut behind = Duration::ZERO;
        Witnessing::of(ctx).set_standing(&pair, |standing| {
            let since = standing.behind_since.unwrap_or_else(Instant::now);
            standing.behind_since = (!is_current).then_some(since);
            behind = standing.behind_since.map_or(Duration::ZERO, |since| since.elapsed());
        });
        metrics::witness_behind(witness.name(), tree.service(), Some(behind.as_secs()));
    }
    Ok(())
}

/// Asks all witnesses about all trees until the server stops. One process at a time does.
pub async fn run(ctx: Arc<Context>, holder: String) {
    let witnessing = Witnessing::of(&ctx);
    if witnessing.asked.is_empty() {
        return;
    }
    let mut lease = Lease::new(&ctx.store, "witnesses/ask".to_owned(), &holder);
    let asking = async {
        loop {
            match lease.renew().await.map_err(store_problem) {
                Ok(true) => {
                    ask_all(&ctx, &mut lease).await;
                    // Another process asks now, and shows which witness is behind.
                    for tree in OwnTree::all(&ctx) {
                        witnessing.asked.iter().for_each(|witness| metrics::witness_behind(witness.name(), tree.service(), None));
                    }
                }
                Ok(false) => {}
                Err(problem) => tracing::warn!(reason = problem.detail, "the lease to ask witnesses cannot be taken, will retry"),
            }
            tokio::time::sleep(LEASE / 3).await;
        }
    };
    tokio::select! {
        () = asking => {}
        () = ctx.stopped() => {}
    }
    lease.release().await;
}

/// Asks all witnesses about all trees while the lease is held.
async fn ask_all(ctx: &Context, lease: &mut Lease) {
    let trees: Vec<_> = OwnTree::all(ctx).into_iter().map(|tree| (tree, watch::Sender::new(None))).collect();
    let witnessing = Witnessing::of(ctx);
    let mut following = Vec::new();
    for (tree, newest) in &trees {
        following.extend(witnessing.asked.iter().map(|witness| follow(ctx, witness, *tree, newest.subscribe())));
    }
    tokio::select! {
        _ = join_all(following) => {}
        () = look(ctx, &trees) => {}
        () = lease.lost() => {}
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
