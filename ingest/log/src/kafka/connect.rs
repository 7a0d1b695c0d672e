//! The first connection: checks whether a broker answers with the given settings, and explains why if none does.
//!
//! A librdkafka client retries forever and reports the reason only to its context. These reports are collected here, so that a wrong
//! address, a wrong password and a wrong certificate lead to different errors.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;

use super::settings::{Options, failed};
use crate::Error;

/// How long to wait for the first answer.
const CONNECT_MAX: Duration = Duration::from_secs(12);
/// How long the first attempt waits, and the longest one. Each waits as long as all before it, so that a slow broker is heard as well.
const TRY_MIN: Duration = Duration::from_secs(1);
const TRY_MAX: Duration = Duration::from_secs(5);

/// How long reports of the client are collected between attempts.
const REPORT_POLL: Duration = Duration::from_millis(100);

/// The last reason that the client reported.
#[derive(Default)]
struct Reason(Mutex<Option<(RDKafkaErrorCode, String)>>);

impl ClientContext for Reason {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "kafka client");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        // "All brokers down" follows from the reports about each broker and adds nothing.
        if code != RDKafkaErrorCode::AllBrokersDown {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, reason.to_owned()));
        }
    }
}

impl ConsumerContext for Reason {}

/// Waits until a broker answers.
pub(super) async fn wait_for_broker(options: &Options) -> Result<(), Error> {
    let made = options.consumer().create_with_context(Reason::default());
    let client: BaseConsumer<Reason> = made
        .map_err(|error| failed(options, "no client can be made of these settings ([kafka] security_protocol, ca_file, …)", Some(error)))?;
    let client = Arc::new(client);
    let requested = {
        let (client, name) = (Arc::clone(&client), options.topics.first().map(|topic| options.name_of(topic)));
        move || first_answer(&client, name.as_deref())
    };
    let answered = tokio::task::spawn_blocking(requested).await.map_err(|_| failed(options, "connecting was interrupted", None))?;
    answered.map_err(|error| {
        let reason = client.context().0.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed(options, &words(reason), Some(error))
    })
}

/// Requests the metadata of one topic, which need not exist, until a broker answers or the time is over. Blocks.
fn first_answer(client: &BaseConsumer<Reason>, name: Option<&str>) -> Result<(), KafkaError> {
    let begun = Instant::now();
    loop {
        let answered = client.fetch_metadata(name, begun.elapsed().clamp(TRY_MIN, TRY_MAX));
        // The client delivers one report per poll. A client that is refused at once reports without end, so the time is limited.
        let until = Instant::now() + REPORT_POLL;
        while client.poll(until.saturating_duration_since(Instant::now())).is_some() && Instant::now() < until {}
        match answered {
            Ok(_) => return Ok(()),
            Err(error) if begun.elapsed() >= CONNECT_MAX => return Err(error),
            Err(_) => {}
        }
    }
}

/// Explains why no broker answers, and names the settings to check.
fn words(reason: Option<(RDKafkaErrorCode, String)>) -> String {
    const NOBODY: &str = "no broker answers (is the address right, and [kafka] security_protocol?)";
    // A listener of another protocol closes the connection without a message.
    let Some((code, reason)) = reason else { return NOBODY.to_owned() };
    let settings = match code {
        RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SaslAuthenticationFailed => {
            "it refuses the user name or the password ([kafka] username, password, sasl_mechanism)"
        }
        // A failed TLS handshake may be reported as a connection that broke in that state.
        _ if code == RDKafkaErrorCode::SSL || reason.contains("SSL_HANDSHAKE") => {
            "its certificate or ours does not fit ([kafka] ca_file, security_protocol)"
        }
        _ => NOBODY,
    };
    format!("{settings}: {reason}")
}
