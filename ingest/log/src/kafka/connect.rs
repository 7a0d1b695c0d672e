//! The first contact: whether a broker answers under the settings given, and if none does, why.
//!
//! A client of librdkafka tries again without end and says why only beside its calls. Here what it says is kept, so that a wrong
//! address, a wrong password and a wrong certificate are told apart.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;

use super::settings::{Options, failed};
use crate::Error;

/// How long the first answer may take.
const CONNECT_MAX: Duration = Duration::from_secs(12);
/// How long one try waits for it.
const TRY_MAX: Duration = Duration::from_secs(1);

/// How long what a client says meanwhile is taken in.
const TAKE_IN: Duration = Duration::from_millis(100);

/// The last reason that a client gave.
#[derive(Default)]
struct Reason(Mutex<Option<(RDKafkaErrorCode, String)>>);

impl ClientContext for Reason {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "kafka client");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        // That all are down follows from what was said of each.
        if code != RDKafkaErrorCode::AllBrokersDown {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, reason.to_owned()));
        }
    }
}

impl ConsumerContext for Reason {}

/// Waits for a broker's first answer.
pub(super) async fn reach(options: &Options) -> Result<(), Error> {
    let made = options.consumer().create_with_context(Reason::default());
    let client: BaseConsumer<Reason> = made
        .map_err(|error| failed(options, "no client can be made of these settings ([kafka] security_protocol, ca_file, …)", Some(error)))?;
    let client = Arc::new(client);
    let asked = {
        let (client, name) = (Arc::clone(&client), options.topics.first().map(|topic| options.name_of(topic)));
        move || first_answer(&client, name.as_deref())
    };
    let answered = tokio::task::spawn_blocking(asked).await.map_err(|_| failed(options, "connecting was interrupted", None))?;
    answered.map_err(|error| {
        let reason = client.context().0.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed(options, &words(reason), Some(error))
    })
}

/// Asks for one topic, there or not, until a broker answers or the time is over. Blocks.
fn first_answer(client: &BaseConsumer<Reason>, name: Option<&str>) -> Result<(), KafkaError> {
    let begun = Instant::now();
    loop {
        let answered = client.fetch_metadata(name, TRY_MAX);
        // What went wrong meanwhile comes to the context, an event a poll; a client that is refused at once never runs out of them.
        let until = Instant::now() + TAKE_IN;
        while client.poll(until.saturating_duration_since(Instant::now())).is_some() && Instant::now() < until {}
        match answered {
            Ok(_) => return Ok(()),
            Err(error) if begun.elapsed() >= CONNECT_MAX => return Err(error),
            Err(_) => {}
        }
    }
}

/// Why no broker answers, and which settings to look at.
fn words(reason: Option<(RDKafkaErrorCode, String)>) -> String {
    const NOBODY: &str = "no broker answers (is the address right, and [kafka] security_protocol?)";
    // A listener of another protocol hangs up, of which a client says nothing.
    let Some((code, reason)) = reason else { return NOBODY.to_owned() };
    let settings = match code {
        RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SaslAuthenticationFailed => {
            "it refuses the user name or the password ([kafka] username, password, sasl_mechanism)"
        }
        // A handshake that fails may be told as a connection that broke in that state.
        _ if code == RDKafkaErrorCode::SSL || reason.contains("SSL_HANDSHAKE") => {
            "its certificate or ours does not fit ([kafka] ca_file, security_protocol)"
        }
        _ => NOBODY,
    };
    format!("{settings}: {reason}")
}
