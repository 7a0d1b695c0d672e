//! One attempt: a message posted to a URL, within limits, and what was said to it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use schemas::views::watches::Kept;
use url::{Host, Url};

use super::guard::{Guarded, is_public};
use super::sign::SigningSecret;
use crate::access::webhook::{Sealing, Webhook};
use crate::context::Context;
use crate::problem::Problem;

/// How long a connection may take, and a whole attempt.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// Bytes of an answer that are read, so that its connection can be used again; nothing of it is kept.
const ANSWER_BYTES_MAX: usize = 4 << 10;
/// How long a connection that is not used is kept.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// What a target said to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It took it.
    Taken(u16),
    /// It wants no more, ever.
    Gone,
    /// It did not take it; a pause that it asked for.
    Refused(u16, Option<Duration>),
    /// Nothing: why.
    Nothing(&'static str),
    /// It was not asked, which is no fault of its: why.
    Unasked(&'static str),
}

impl Said {
    /// The HTTP status, 0 for none.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Taken(status) | Self::Refused(status, _) => *status,
            Self::Gone => 410,
            Self::Nothing(_) | Self::Unasked(_) => 0,
        }
    }

    /// Why it counts as failed, in words that repeat nothing of the answer; empty if it does not.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Taken(_) => String::new(),
            Self::Gone => "it answered 410: it wants no more".to_owned(),
            Self::Refused(status @ 300..400, _) => format!("it answered {status}: redirects are not followed"),
            Self::Refused(status, _) => format!("it answered {status}"),
            Self::Nothing(why) | Self::Unasked(why) => (*why).to_owned(),
        }
    }
}

/// Posts to webhooks: no proxies, no redirects, no address that is not public unless that is permitted.
#[derive(Clone)]
pub(crate) struct Poster {
    client: Client,
    guarded: Guarded,
    private_targets: bool,
}

impl Poster {
    /// Whether a host may be one of a target: one whose name leads inside may not; one that is not found now may be there later.
    pub(crate) async fn may_lead_to(&self, to: &Webhook) -> bool {
        match to.url().host() {
            Some(Host::Domain(name)) => !self.guarded.leads_inside(name).await,
            _ => true,
        }
    }

    /// A poster that asks the name servers of the system, or the one given.
    ///
    /// # Errors
    /// When TLS or the resolver cannot be set up.
    pub(crate) fn new(private_targets: bool, nameserver: Option<SocketAddr>) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let guarded = Guarded::new(private_targets, nameserver)?;
        // Installed twice is an error that says it is installed already, which is all we want.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .no_proxy()
            .no_gzip()
            .referer(false)
            .http1_only()
            .https_only(!private_targets)
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(guarded.clone()))
            .connect_timeout(CONNECTED_WITHIN)
            .timeout(ANSWERED_WITHIN)
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(IDLE_MAX)
            .build()?;
        Ok(Self { client, guarded, private_targets })
    }

    /// Posts a message to a target, signed with its secret, and with the one before while both sign.
    ///
    /// # Errors
    /// `unavailable` when what its address is sealed with cannot be read now.
    pub(crate) async fn send(&self, ctx: &Context, kept: &Kept, id: &str, body: Bytes) -> Result<Said, Problem> {
        let now_ms = ctx.clock.now_ms();
        let opened = Sealing::of(ctx, &kept.account).await?.and_then(|sealing| {
            let mut secrets = vec![sealing.open_secret(&kept.id, &kept.secret)?];
            let old = kept.old_secrets.iter().filter(|old| old.until > now_ms);
            secrets.extend(old.filter_map(|old| sealing.open_secret(&kept.id, &old.secret)));
            Some((sealing.open(&kept.id, &kept.webhook)?, secrets))
        });
        Ok(match opened {
            Some((to, secrets)) => self.post(&to, id, body, &secrets, now_ms / 1_000).await,
            None => Said::Unasked("its address was sealed with a secret that is not here"),
        })
    }

    /// Posts a message; `at_s` is the time of the attempt, seconds since 1970.
    async fn post(&self, to: &Webhook, id: &str, body: Bytes, secrets: &[SigningSecret], at_s: i64) -> Said {
        // A name is checked when it is resolved; an address is no name.
        if !self.private_targets && !leads_out(to.url()) {
            return Said::Nothing(NOWHERE);
        }
        let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, at_s, &body)).collect();
        let request = self
            .client
            .post(to.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("highwater-webhooks/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", id)
            .header("webhook-timestamp", at_s)
            .header("webhook-signature", signatures.join(" "));
        let mut answer = match request.body(body).send().await {
            Ok(answer) => answer,
            Err(error) => return Said::Nothing(why(&error)),
        };
        let status = answer.status().as_u16();
        let pause = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
        let mut read = 0;
        while read <= ANSWER_BYTES_MAX {
            match answer.chunk().await {
                Ok(Some(piece)) => read += piece.len(),
                // What was said is said: a connection that breaks behind it changes nothing.
                Ok(None) | Err(_) => break,
            }
        }
        match status {
            200..300 => Said::Taken(status),
            410 => Said::Gone,
            _ => Said::Refused(status, pause),
        }
    }
}

fn leads_out(url: &Url) -> bool {
    match url.host() {
        None => false,
        Some(Host::Domain(_)) => true,
        Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
    }
}

/// What is told of a target that cannot be connected to. Whether its name leads inside is not: that would map a network for whoever asks.
const NOWHERE: &str = "it cannot be connected to: its name must lead to public addresses alone, and it must listen there";

/// Why there was no answer.
fn why(error: &reqwest::Error) -> &'static str {
    if error.is_connect() {
        NOWHERE
    } else if error.is_timeout() {
        "it does not answer in time"
    } else {
        "the connection broke before it answered"
    }
}
