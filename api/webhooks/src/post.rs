//! One delivery attempt: posts a message to a URL, within time and size limits, and classifies the response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use access::guard::{GuardedResolver, TargetRules};
use access::sign::SigningSecret;
use access::webhook::{Sealing, Webhook};
use bytes::Bytes;
use operation::context::{Context, Part};
use operation::problem::Problem;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, Response};
use schemas::error_code::ErrorCode;
use schemas::views::watches::SavedItem;
use tokio::sync::OnceCell;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a whole attempt may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// The most bytes of a response body that are read, so that the connection can be reused. The body is discarded.
const RESPONSE_BYTES_MAX: usize = 4 << 10;
/// How long an idle connection stays open. It takes about 30 KiB and a file descriptor, and every target may be on a different host.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of a delivery attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    /// The receiver accepted the message with this status.
    Accepted(u16),
    /// The receiver answered 410: it wants no more messages.
    Gone,
    /// The receiver rejected the message with this status; the pause is the one that its `Retry-After` asked for.
    Rejected(u16, Option<Duration>),
    /// There was no response, for this reason.
    NoResponse(&'static str),
    /// The attempt was not made, for this reason. The receiver is not to blame.
    NotSent(&'static str),
    /// The attempt was not made, since the watch selects none of the changes any more: what it asks for was suppressed.
    Empty,
}

impl DeliveryOutcome {
    /// The HTTP status; 0 if there was no response.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Accepted(status) | Self::Rejected(status, _) => *status,
            Self::Gone => 410,
            Self::NoResponse(_) | Self::NotSent(_) | Self::Empty => 0,
        }
    }

    /// The value of the metric label `outcome`.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "taken",
            Self::Gone => "gone",
            Self::Rejected(..) => "refused",
            Self::NoResponse(_) | Self::NotSent(_) => "unanswered",
            Self::Empty => "empty",
        }
    }

    /// Why the attempt failed; empty if it did not. The reason quotes nothing of the response body.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Accepted(_) => String::new(),
            Self::Gone => "the receiver answered 410 (gone)".to_owned(),
            Self::Rejected(status @ 300..400, _) => format!("the receiver answered {status}; redirects are not followed"),
            Self::Rejected(status, _) => format!("the receiver answered {status}"),
            Self::NoResponse(why) | Self::NotSent(why) => (*why).to_owned(),
            Self::Empty => "the watch selects none of its changes any more".to_owned(),
        }
    }
}

/// Posts messages to webhooks. It uses no proxy, follows no redirect, and connects only to public addresses unless private targets are permitted.
pub struct Poster {
    client: Client,
    rules: TargetRules,
}

/// The poster of a context, created when the first message is posted.
#[derive(Default)]
struct PosterCell(OnceCell<Arc<Poster>>);

impl Part for PosterCell {}

/// Returns the poster of a context. The first call creates it.
///
/// # Errors
/// `internal` when TLS or the DNS resolver cannot be set up.
pub async fn poster(ctx: &Context) -> Result<Arc<Poster>, Problem> {
    let posts = PosterCell::of(ctx);
    let create = async || Poster::new(TargetRules::from_settings(&ctx.settings), ctx.settings.nameserver).map(Arc::new);
    let poster = posts.0.get_or_try_init(create).await.map_err(|error| {
        tracing::error!(error, "the HTTP client for webhooks cannot be set up");
        Problem::new(ErrorCode::Internal, "webhooks cannot be sent from this server")
    })?;
    Ok(Arc::clone(poster))
}

impl Poster {
    /// Parses the URL of a target. Its host name is not resolved here, so that a caller cannot tell a name of an inside network from one that does not exist.
    /// Each attempt resolves it and checks the addresses.
    ///
    /// # Errors
    /// The reason, for the caller.
    pub fn target(&self, url: &str) -> Result<Webhook, &'static str> {
        Webhook::parse(url, &self.rules)
    }

    /// Creates a poster that uses the given name server, or those of the system.
    ///
    /// # Errors
    /// When TLS or the resolver cannot be set up.
    pub(crate) fn new(rules: TargetRules, nameserver: Option<SocketAddr>) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Self::with_timeout(RESPONSE_TIMEOUT, rules, nameserver)
    }

    fn with_timeout(
        timeout: Duration,
        rules: TargetRules,
        nameserver: Option<SocketAddr>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let guarded = GuardedResolver::new(rules.clone(), nameserver)?;
        // Installing the provider a second time returns an error, which can be ignored.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .no_proxy()
            .no_gzip()
            .referer(false)
            .http1_only()
            .https_only(!rules.has_private_targets())
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(guarded))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()?;
        Ok(Self { client, rules })
    }

    /// Posts a message to the webhook of a watch, signed with its secret. While a replaced secret is still valid, the message is signed with both.
    ///
    /// # Errors
    /// `unavailable` when the account's secret cannot be read from the store.
    pub(crate) async fn send(&self, ctx: &Context, watch: &SavedItem, id: &str, body: Bytes) -> Result<DeliveryOutcome, Problem> {
        let now_ms = ctx.clock.now_ms();
        let opened = Sealing::load(ctx, &watch.account).await?.and_then(|sealing| {
            let mut secrets = vec![sealing.open_secret(&watch.id, &watch.secret)?];
            let old = watch.old_secrets.iter().filter(|old| old.until > now_ms);
            secrets.extend(old.filter_map(|old| sealing.open_secret(&watch.id, &old.secret)));
            Some((sealing.open(&watch.id, &watch.webhook)?, secrets))
        });
        Ok(match opened {
            Some((to, secrets)) => self.post(&to, id, body, &secrets, now_ms / 1_000).await,
            None => DeliveryOutcome::NotSent("the URL was encrypted with a secret that this server does not have"),
        })
    }

    /// Posts a message. `at_s` is the time of the attempt in seconds since 1970.
    async fn post(&self, to: &Webhook, id: &str, body: Bytes, secrets: &[SigningSecret], at_s: i64) -> DeliveryOutcome {
        match self.send_request(to, id, body, secrets, at_s).await {
            Ok(answer) => read_answer(answer, at_s).await,
            Err(why) => DeliveryOutcome::NoResponse(why),
        }
    }

    /// Sends a message, and waits for the status and the headers of the response.
    ///
    /// # Errors
    /// Why there is no response.
    async fn send_request(
        &self,
        to: &Webhook,
        id: &str,
        body: Bytes,
        secrets: &[SigningSecret],
        at_s: i64,
    ) -> Result<Response, &'static str> {
        // Host names are checked again when they are resolved. IP addresses are not resolved, so they are checked here.
        if to.check_permitted(&self.rules).is_err() {
            return Err(self.cannot_connect());
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
        let failed = |error: reqwest::Error| if error.is_connect() { self.cannot_connect() } else { failure_reason(&error) };
        request.body(body).send().await.map_err(failed)
    }

    /// The reason shown when a connection fails.
    fn cannot_connect(&self) -> &'static str {
        if self.rules.has_private_targets() { CANNOT_CONNECT_TO_ANY } else { CANNOT_CONNECT }
    }
}

/// Reads a response to its end, or as far as it is read. `at_s` is the time of the attempt in seconds since 1970.
async fn read_answer(mut answer: Response, at_s: i64) -> DeliveryOutcome {
    let status = answer.status().as_u16();
    let pause = answer.headers().get(RETRY_AFTER).and_then(|value| parse_retry_after(value.to_str().ok()?.trim(), at_s));
    let mut read = 0;
    while read <= RESPONSE_BYTES_MAX {
        match answer.chunk().await {
            Ok(Some(piece)) => read += piece.len(),
            // The status is already known, so a connection that breaks now changes nothing.
            Ok(None) | Err(_) => break,
        }
    }
    match status {
        200..300 => DeliveryOutcome::Accepted(status),
        410 => DeliveryOutcome::Gone,
        _ => DeliveryOutcome::Rejected(status, pause),
    }
}

/// Parses the pause that a `Retry-After` header asks for, in seconds or as a time; `None` for any other value. The schedule caps the pause.
fn parse_retry_after(text: &str, now_s: i64) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit into a u64 is still a long pause.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = || Some(httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
    let now_s = u64::try_from(now_s).unwrap_or(0);
    until().map(|at_s| Duration::from_secs(at_s.saturating_sub(now_s)))
}

/// The reason shown when a connection fails. It is the same for private addresses, so that callers cannot use webhooks to map a network.
const CANNOT_CONNECT: &str =
    "the connection failed: the receiver must listen on port 443 or 8443, and its host must resolve to public addresses only";

/// The reason shown when a connection fails where private targets and any port are permitted.
const CANNOT_CONNECT_TO_ANY: &str =
    "the connection failed: the receiver's host must resolve, and the receiver must listen on the port of the URL";

/// Why there was no response on a connection.
fn failure_reason(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() { "the receiver did not answer in time" } else { "the connection closed before the receiver answered" }
}

#[cfg(test)]
#[path = "ssrf_tests.rs"]
mod ssrf;

#[cfg(test)]
mod tests {
    use feed::testing::time::{as_time_passes, stop_time};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    use super::*;

    /// A receiver of one message.
    struct Receiver {
        poster: Poster,
        to: Webhook,
        /// Sent when the whole request is there.
        is_heard: oneshot::Receiver<()>,
        /// Ends if there is another connection.
        answering: JoinHandle<()>,
    }

    impl Receiver {
        /// A receiver that answers with these pieces, the last one repeated for ever, with a pause before each but the first, and a poster to it.
        async fn start(pieces: &'static [&'static [u8]], pause: Duration, within: Duration) -> Self {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let at = listener.local_addr().unwrap();
            let (heard_all, is_heard) = oneshot::channel();
            let answering = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut heard = Vec::new();
                while !heard.ends_with(b"{}") {
                    assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0);
                }
                assert!(!String::from_utf8_lossy(&heard).to_lowercase().contains("accept-encoding"), "no compression is requested");
                heard_all.send(()).unwrap();
                let (last, first) = pieces.split_last().unwrap();
                for (at, piece) in first.iter().chain(std::iter::repeat(last)).enumerate() {
                    if at > 0 {
                        tokio::time::sleep(pause).await;
                    }
                    if stream.write_all(piece).await.is_err() {
                        break;
                    }
                }
                // A followed redirect would connect here.
                listener.accept().await.map(drop).unwrap();
            });
            let poster = Poster::with_timeout(within, TargetRules::new(true), Some(at)).unwrap();
            let to = Webhook::parse(&format!("http://{at}/"), &TargetRules::new(true)).unwrap();
            Self { poster, to, is_heard, answering }
        }

        /// Checks that the message was posted once.
        fn end(self) {
            assert!(!self.answering.is_finished(), "the message is posted once");
            self.answering.abort();
        }
    }

    /// Posts a message to a server that answers with these pieces; returns the outcome.
    async fn outcome_of(pieces: &'static [&'static [u8]], pause: Duration) -> DeliveryOutcome {
        // So long that a test which waits for it never ends.
        let receiver = Receiver::start(pieces, pause, Duration::from_secs(3600)).await;
        let outcome = receiver.poster.post(&receiver.to, "msg_1", Bytes::from_static(b"{}"), &[SigningSecret::of([7; 32])], 1).await;
        receiver.end();
        outcome
    }

    /// Proves that an endless or compressed response does not block the poster, and that a redirect is not followed.
    #[tokio::test]
    async fn answers_of_all_kinds() {
        const ENDLESS: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"5\r\naaaaa\r\n"];
        const NAMED_LONG: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", b"aaaaaaaa"];
        // The head of a gzip member, and an empty block, repeated.
        const PACKED: &[&[u8]] = &[
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\na\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03\r\n",
            b"5\r\n\0\0\0\xff\xff\r\n",
        ];
        const MOVED: &[&[u8]] = &[b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", b""];
        const OTHER: &[&[u8]] = &[b"SSH-2.0-OpenSSH_9.6\r\n"];
        for (pieces, wanted) in [
            (ENDLESS, DeliveryOutcome::Accepted(200)),
            (NAMED_LONG, DeliveryOutcome::Accepted(200)),
            (PACKED, DeliveryOutcome::Accepted(200)),
            (MOVED, DeliveryOutcome::Rejected(302, None)),
            (OTHER, DeliveryOutcome::NoResponse("the connection closed before the receiver answered")),
        ] {
            let pause = Duration::from_millis(u64::from(pieces == MOVED));
            assert_eq!(outcome_of(pieces, pause).await, wanted, "{}", String::from_utf8_lossy(pieces[0]));
        }
    }

    /// Proves that a response that is late is given up in time: without a status there is none, and a status that was received counts.
    #[tokio::test]
    async fn late_answers() {
        const HEAD_WITHOUT_END: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n"];
        const HEAD_ALONE: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", b""];
        const SILENT: &[&[u8]] = &[b""];
        let (pause, within) = (Duration::from_millis(100), Duration::from_secs(1));
        let (secrets, _stopped) = ([SigningSecret::of([7; 32])], stop_time());
        for pieces in [HEAD_WITHOUT_END, SILENT] {
            let mut receiver = Receiver::start(pieces, pause, within).await;
            let outcome = {
                let posting = receiver.poster.post(&receiver.to, "msg_1", Bytes::from_static(b"{}"), &secrets, 1);
                let mut posting = std::pin::pin!(posting);
                // Before the request is there, connecting could take the time.
                tokio::select! {
                    biased;
                    outcome = &mut posting => outcome,
                    heard = &mut receiver.is_heard => {
                        heard.unwrap();
                        as_time_passes(posting).await
                    }
                }
            };
            let late = DeliveryOutcome::NoResponse("the receiver did not answer in time");
            assert_eq!(outcome, late, "{}", String::from_utf8_lossy(pieces[0]));
            receiver.end();
        }
        let receiver = Receiver::start(HEAD_ALONE, pause, within).await;
        let answer = receiver.poster.send_request(&receiver.to, "msg_1", Bytes::from_static(b"{}"), &secrets, 1).await.unwrap();
        assert_eq!(as_time_passes(read_answer(answer, 1)).await, DeliveryOutcome::Accepted(200));
        receiver.end();
    }

    /// Proves that the rules are checked at each attempt: a target that they no longer permit gets nothing.
    #[tokio::test]
    async fn targets_are_checked_at_each_attempt() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let poster = Poster::new(TargetRules::default(), Some(at)).unwrap();
        for url in
            [format!("http://{at}/"), format!("https://{at}/"), "https://example.org:22/".to_owned(), "http://example.org/".to_owned()]
        {
            let to = Webhook::parse(&url, &TargetRules::new(true)).unwrap();
            let outcome = poster.post(&to, "msg_1", Bytes::from_static(b"{}"), &[SigningSecret::of([7; 32])], 1).await;
            assert_eq!(outcome, DeliveryOutcome::NoResponse(CANNOT_CONNECT), "{url}");
        }
        assert!(listener.accept().is_err(), "no connection was made");
    }

    /// Proves which values of `Retry-After` are understood: seconds, or a time that may be in the past.
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
            assert_eq!(parse_retry_after(text, at_s), pause, "{text}");
        }
    }
}
