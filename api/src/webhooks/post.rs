//! One attempt: a message posted to a URL, within limits, and what was said to it.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use url::{Host, Url};

use super::guard::{Guarded, is_public};
use super::sign::SigningSecret;
use crate::access::webhook::Webhook;

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
}

impl Said {
    /// The HTTP status, 0 for none.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Taken(status) | Self::Refused(status, _) => *status,
            Self::Gone => 410,
            Self::Nothing(_) => 0,
        }
    }

    /// Why it counts as failed, in words that repeat nothing of the answer; empty if it does not.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Taken(_) => String::new(),
            Self::Gone => "it answered 410: it wants no more".to_owned(),
            Self::Refused(status @ 300..400, _) => format!("it answered {status}: redirects are not followed"),
            Self::Refused(status, _) => format!("it answered {status}"),
            Self::Nothing(why) => (*why).to_owned(),
        }
    }
}

/// A message and what signs it.
pub(crate) struct Message<'a> {
    pub(crate) id: &'a str,
    pub(crate) body: Bytes,
    /// The secret, and the one before while both sign.
    pub(crate) secrets: &'a [SigningSecret],
}

/// Posts to webhooks: no proxies, no redirects, no address that is not public unless that is permitted.
#[derive(Clone)]
pub(crate) struct Poster {
    client: Client,
    private_targets: bool,
}

impl Poster {
    /// A poster.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn new(private_targets: bool) -> Result<Self, reqwest::Error> {
        // Installed twice is an error that says it is installed already, which is all we want.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .no_proxy()
            .no_gzip()
            .referer(false)
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(std::sync::Arc::new(Guarded { private_targets }))
            .connect_timeout(CONNECTED_WITHIN)
            .timeout(ANSWERED_WITHIN)
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(IDLE_MAX)
            .build()?;
        Ok(Self { client, private_targets })
    }

    /// Posts a message; `at_s` is the time of the attempt, seconds since 1970.
    pub(crate) async fn post(&self, to: &Webhook, message: Message<'_>, at_s: i64) -> Said {
        // A name is checked when it is resolved; an address is no name.
        if !self.private_targets && !leads_out(to.url()) {
            return Said::Nothing("the address is not on the public internet");
        }
        let signatures: Vec<String> = message.secrets.iter().map(|secret| secret.sign(message.id, at_s, &message.body)).collect();
        let request = self
            .client
            .post(to.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("highwater-webhooks/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", message.id)
            .header("webhook-timestamp", at_s)
            .header("webhook-signature", signatures.join(" "));
        let mut answer = match request.body(message.body).send().await {
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

/// Why there was no answer. Which address a name has is not told: that would map a network for whoever asks.
fn why(error: &reqwest::Error) -> &'static str {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<super::guard::NotPublic>() {
            return "its name does not lead to the public internet alone";
        }
        cause = error.source();
    }
    if error.is_timeout() {
        "it does not answer in time"
    } else if error.is_connect() {
        "it cannot be connected to"
    } else {
        "the connection broke before it answered"
    }
}
