//! One attempt: a message posted to a URL, within limits, and what was said to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use schemas::error_code::ErrorCode;
use schemas::views::watches::SavedItem;
use tokio::sync::OnceCell;
use url::Host;

use access::guard::{Guarded, TargetRules};
use access::sign::SigningSecret;
use access::webhook::{NOT_PUBLIC, Sealing, Webhook};
use operation::context::{Context, Part};
use operation::problem::Problem;

/// How long a connection may take, and a whole attempt.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// Bytes of an answer that are read, so that its connection can be used again; nothing of it is kept.
const ANSWER_BYTES_MAX: usize = 4 << 10;
/// How long a connection that is not used is kept: one that is kept takes some 30 KiB and a descriptor, and every target may be on a host of its own.
const IDLE_MAX: Duration = Duration::from_secs(1);

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

    /// The outcome, as metrics label it.
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Self::Taken(_) => "taken",
            Self::Gone => "gone",
            Self::Refused(..) => "refused",
            Self::Nothing(_) | Self::Unasked(_) => "unanswered",
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
pub struct Poster {
    client: Client,
    guarded: Guarded,
    rules: TargetRules,
}

/// The poster of a context, once a message is posted.
#[derive(Default)]
struct Posts(OnceCell<Poster>);

impl Part for Posts {}

/// What posts to webhooks.
///
/// # Errors
/// `internal` when TLS or the resolver of names cannot be set up.
pub async fn poster(ctx: &Context) -> Result<Poster, Problem> {
    let posts = Posts::of(ctx);
    let made = async || Poster::new(TargetRules::of(&ctx.settings), ctx.settings.nameserver);
    let poster = posts.0.get_or_try_init(made).await.map_err(|error| {
        tracing::error!(error, "nothing can be posted to webhooks");
        Problem::new(ErrorCode::Internal, "nothing can be posted from here")
    })?;
    Ok(poster.clone())
}

impl Poster {
    /// Reads the URL of a target: one whose name leads inside is refused; one that is not found now may be there later.
    ///
    /// # Errors
    /// Words for the caller, which say nothing of what a name leads to.
    pub async fn target(&self, url: &str) -> Result<Webhook, &'static str> {
        let to = Webhook::checked(url, &self.rules)?;
        let leads_inside = match to.url().host() {
            Some(Host::Domain(name)) => self.guarded.leads_inside(name).await,
            _ => false,
        };
        if leads_inside { Err(NOT_PUBLIC) } else { Ok(to) }
    }

    /// A poster that asks the name servers of the system, or the one given.
    ///
    /// # Errors
    /// When TLS or the resolver cannot be set up.
    pub(crate) fn new(rules: TargetRules, nameserver: Option<SocketAddr>) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Self::within(ANSWERED_WITHIN, rules, nameserver)
    }

    fn within(
        answered_within: Duration,
        rules: TargetRules,
        nameserver: Option<SocketAddr>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let guarded = Guarded::new(rules.clone(), nameserver)?;
        // Installed twice is an error that says it is installed already, which is all we want.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .no_proxy()
            .no_gzip()
            .referer(false)
            .http1_only()
            .https_only(!rules.has_private_targets())
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(guarded.clone()))
            .connect_timeout(CONNECTED_WITHIN)
            .timeout(answered_within)
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(IDLE_MAX)
            .build()?;
        Ok(Self { client, guarded, rules })
    }

    /// Posts a message to a target, signed with its secret, and with the one before while both sign.
    ///
    /// # Errors
    /// `unavailable` when what its address is sealed with cannot be read now.
    pub(crate) async fn send(&self, ctx: &Context, kept: &SavedItem, id: &str, body: Bytes) -> Result<Said, Problem> {
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
        // A name is checked once more when it is resolved; an address is no name.
        if to.permitted(&self.rules).is_err() {
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
        let pause = answer.headers().get(RETRY_AFTER).and_then(|value| asked(value.to_str().ok()?.trim(), at_s));
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

/// The pause that `Retry-After` asks for: seconds, or a time. The schedule caps it; `None` for a value that is neither.
fn asked(text: &str, now_s: i64) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that no number of ours holds still ask for a long pause.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = || Some(httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
    let now_s = u64::try_from(now_s).unwrap_or(0);
    until().map(|at_s| Duration::from_secs(at_s.saturating_sub(now_s)))
}

/// What is told of a target that cannot be connected to. Whether its name leads inside is not: that would map a network for whoever asks.
const NOWHERE: &str = "it cannot be connected to: it must listen on port 443 or 8443, and its name lead to public addresses alone";

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

#[cfg(test)]
#[path = "ssrf_tests.rs"]
mod ssrf;

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What is said to a message by somebody who answers with pieces, one after another and the last one for ever, with a pause before each.
    async fn said_to(pieces: &'static [&'static [u8]], pause: Duration, within: Duration) -> Said {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"{}") {
                assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0);
            }
            assert!(!String::from_utf8_lossy(&heard).to_lowercase().contains("accept-encoding"), "nothing compressed is asked for");
            let (last, first) = pieces.split_last().unwrap();
            for piece in first.iter().chain(std::iter::repeat(last)) {
                tokio::time::sleep(pause).await;
                if stream.write_all(piece).await.is_err() {
                    break;
                }
            }
            // A redirect would come by here.
            listener.accept().await.map(drop).unwrap();
        });
        let poster = Poster::within(within, TargetRules::new(true), Some(at)).unwrap();
        let to = Webhook::checked(&format!("http://{at}/"), &TargetRules::new(true)).unwrap();
        let said = poster.post(&to, "msg_1", Bytes::from_static(b"{}"), &[SigningSecret::of([7; 32])], 1).await;
        assert!(!answering.is_finished(), "it is asked once");
        answering.abort();
        said
    }

    /// Proves that neither a slow nor an endless nor a compressed answer holds whoever posts, and that a redirect is not followed.
    #[tokio::test]
    async fn answers_of_all_kinds() {
        const ENDLESS: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"5\r\naaaaa\r\n"];
        const NAMED_LONG: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", b"aaaaaaaa"];
        // The head of a gzip member, and a block of it that stands for nothing but its length, again and again.
        const PACKED: &[&[u8]] = &[
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\na\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03\r\n",
            b"5\r\n\0\0\0\xff\xff\r\n",
        ];
        const MOVED: &[&[u8]] = &[b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", b""];
        const HEAD_WITHOUT_END: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n"];
        const OTHER: &[&[u8]] = &[b"SSH-2.0-OpenSSH_9.6\r\n"];
        // So long that a test which waited for it would not end.
        let hour = Duration::from_secs(3600);
        for (pieces, wanted) in [
            (ENDLESS, Said::Taken(200)),
            (NAMED_LONG, Said::Taken(200)),
            (PACKED, Said::Taken(200)),
            (MOVED, Said::Refused(302, None)),
            (OTHER, Said::Nothing("the connection broke before it answered")),
        ] {
            let pause = Duration::from_millis(u64::from(pieces == MOVED));
            assert_eq!(said_to(pieces, pause, hour).await, wanted, "{}", String::from_utf8_lossy(pieces[0]));
        }
        // What drips is given up in time; what was said before is said.
        let (drips, second) = (Duration::from_millis(100), Duration::from_secs(1));
        assert_eq!(said_to(ENDLESS, drips, second).await, Said::Taken(200));
        assert_eq!(said_to(HEAD_WITHOUT_END, drips, second).await, Said::Nothing("it does not answer in time"));
        assert_eq!(said_to(&[b""], drips, second).await, Said::Nothing("it does not answer in time"));
    }

    /// Proves that a target which was permitted once is not posted to where it would not be permitted now.
    #[tokio::test]
    async fn permitted_no_more() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let poster = Poster::new(TargetRules::default(), Some(at)).unwrap();
        for url in
            [format!("http://{at}/"), format!("https://{at}/"), "https://example.org:22/".to_owned(), "http://example.org/".to_owned()]
        {
            let to = Webhook::checked(&url, &TargetRules::new(true)).unwrap();
            let said = poster.post(&to, "msg_1", Bytes::from_static(b"{}"), &[SigningSecret::of([7; 32])], 1).await;
            assert_eq!(said, Said::Nothing(NOWHERE), "{url}");
        }
        assert!(listener.accept().is_err(), "nothing came");
    }

    /// Proves the forms of `Retry-After`: seconds or a time, which may be past; anything else asks for nothing.
    #[test]
    fn pauses() {
        let at_s = 784_111_770;
        let second = Duration::from_secs;
        for (text, pause) in [
            ("120", Some(second(120))),
            ("0", Some(second(0))),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(second(7))),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(second(0))),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(second(7))),
            ("18446744073709551615", Some(second(u64::MAX))),
            ("99999999999999999999999999", Some(second(u64::MAX))),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(second(253_402_300_799 - 784_111_770))),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(asked(text, at_s), pause, "{text}");
        }
    }
}
