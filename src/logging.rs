//! Logging to standard error: one line per event, for people or as JSON.
//!
//! Promises: API keys and bearer tokens are hidden in every field of every event. A field that a library logs may repeat what a caller sent, so it is
//! cut after [`LIBRARY_FIELD_CHARS_MAX`] characters. Control characters are escaped: a logged text cannot start a new line or move a terminal's cursor.

use std::error::Error as StdError;
use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;

use operation::redaction::hide_keys;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt as lines};

use crate::config::{Config, LogFormat};

/// The longest field of an event of a library, in characters.
const LIBRARY_FIELD_CHARS_MAX: usize = 200;
/// The longest field of an event of our crates, in characters.
const OWN_FIELD_CHARS_MAX: usize = 10_000;
/// Our crates but those of the services, by the first part of an event's target.
const OWN_CRATES: [&str; 24] = [
    "access",
    "clearance",
    "disk_files",
    "event_log",
    "feed",
    "fold",
    "highwater",
    "ingest",
    "listener",
    "operation",
    "pages",
    "payments",
    "projector",
    "reads",
    "schemas",
    "scylla_store",
    "services",
    "simulated_agencies",
    "simulator",
    "surfaces",
    "transparency",
    "upstreams",
    "view_store",
    "webhooks",
];

/// Starts logging as configured.
///
/// # Errors
/// `logging.level` is not a filter.
pub(crate) fn start(config: &Config) -> Result<(), Box<dyn StdError>> {
    let logging = &config.sections.logging;
    let filter = EnvFilter::try_new(&logging.level).map_err(|error| config.invalid("logging.level", error.to_string()))?;
    let layer = lines::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr).event_format(logging.format);
    tracing_subscriber::registry().with(layer.with_filter(filter.and(filter_fn(is_no_step)))).init();
    Ok(())
}

/// Whether an event may be logged at all. From the level info on, the scheduler logs each of its steps. The MCP library warns of each message of any
/// caller that it refuses, and below that level logs several lines for each message, and whole calls with their arguments, keys and payments.
fn is_no_step(metadata: &Metadata<'_>) -> bool {
    let least_severe = match metadata.target().split("::").next() {
        Some("rmcp") => Level::ERROR,
        Some("tokio_cron_scheduler") => Level::WARN,
        _ => Level::TRACE,
    };
    *metadata.level() <= least_severe
}

impl<S, N> FormatEvent<S, N> for LogFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        let mut fields = Fields { chars_max: chars_max(target), all: Map::new() };
        event.record(&mut fields);
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        match self {
            Self::Json => {
                let mut line = Map::new();
                line.insert("timestamp".to_owned(), time.into());
                line.insert("level".to_owned(), level.as_str().into());
                line.insert("fields".to_owned(), fields.all.into());
                line.insert("target".to_owned(), target.into());
                writeln!(writer, "{}", Value::Object(line))
            }
            Self::Text => {
                let (dim, colour, plain) = if writer.has_ansi_escapes() { ("\x1b[2m", colour(level), "\x1b[0m") } else { ("", "", "") };
                write!(writer, "{dim}{time}{plain} {colour}{level:>5}{plain} {dim}{target}:{plain}")?;
                if let Some(message) = fields.all.remove("message") {
                    write!(writer, " {}", message.as_str().unwrap_or_default())?;
                }
                for (name, value) in fields.all {
                    match value {
                        // In quotes if the text could be read as further fields.
                        Value::String(text) if text.is_empty() || text.contains([' ', '"', '=']) => {
                            write!(writer, " {dim}{name}={plain}\"{}\"", text.replace('"', "\\\""))?;
                        }
                        Value::String(text) => write!(writer, " {dim}{name}={plain}{text}")?,
                        value => write!(writer, " {dim}{name}={plain}{value}")?,
                    }
                }
                writeln!(writer)
            }
        }
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

/// Characters of one field of an event with this target.
fn chars_max(target: &str) -> usize {
    let name = target.split("::").next().unwrap_or_default();
    let is_own = OWN_CRATES.contains(&name) || services::views().iter().any(|view| view.name == name);
    if is_own { OWN_FIELD_CHARS_MAX } else { LIBRARY_FIELD_CHARS_MAX }
}

/// The fields of an event as they are written: texts are cut, and have no secrets and no control characters.
struct Fields {
    chars_max: usize,
    all: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.all.insert(field.name().to_owned(), value);
    }

    fn put_text(&mut self, field: &Field, value: &dyn fmt::Display) {
        let mut cut = Cut { text: String::new(), left: self.chars_max, is_cut: false };
        // Writing fails at the cut, so that the rest is not formatted.
        let written = write!(cut, "{value}");
        let mut text = without_bearer_tokens(hide_keys(cut.text));
        if cut.is_cut || written.is_err() {
            text.push('…');
        }
        self.put(field, text.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, &format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, &value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn StdError + 'static)) {
        self.put_text(field, &ingest::reason(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

/// Collects a text up to a number of characters, and escapes control characters.
struct Cut {
    text: String,
    left: usize,
    is_cut: bool,
}

impl fmt::Write for Cut {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for character in piece.chars() {
            if self.left == 0 {
                self.is_cut = true;
                return Err(fmt::Error);
            }
            self.left -= 1;
            if character.is_control() {
                self.text.extend(character.escape_default());
            } else {
                self.text.push(character);
            }
        }
        Ok(())
    }
}

/// Replaces each token after the word "bearer" by an ellipsis.
fn without_bearer_tokens(text: String) -> String {
    const SCHEME: &str = "bearer ";
    // Has the same length in bytes, because only ASCII letters change.
    let lower = text.to_ascii_lowercase();
    if !lower.contains(SCHEME) {
        return text;
    }
    let is_of_token = |character: char| character.is_ascii_alphanumeric() || "-._~+/=…".contains(character);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(found) = lower[at..].find(SCHEME) {
        let begin = at + found + SCHEME.len();
        out.push_str(&text[at..begin]);
        let rest = text[begin..].trim_start_matches(is_of_token);
        if rest.len() < text.len() - begin {
            out.push('…');
        }
        at = text.len() - rest.len();
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// A writer that keeps what is written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Written {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    /// The log lines of a function.
    fn logged(format: LogFormat, act: impl FnOnce()) -> String {
        let written = Written::default();
        let layer = lines::layer().with_ansi(false).with_writer(written.clone()).event_format(format);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer.with_filter(filter_fn(is_no_step))), act);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// Proves that fields of any type in a library's events are cut to 200 characters, and that fields of our events are whole.
    #[test]
    fn library_fields_are_cut() {
        let long = "é".repeat(100_000);
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = logged(format, || {
                tracing::info!(target: "hyper::proto", path = long.as_str(), shown = %long, debug = ?long, "read {long}");
            });
            let chars: Vec<usize> = line.split(|c| c != 'é').map(str::len).filter(|len| *len > 0).map(|len| len / 2).collect();
            assert_eq!(chars.len(), 4, "{line}");
            assert!(chars.iter().all(|count| (190..=200).contains(count)), "{chars:?}");
            let line = logged(format, || tracing::info!(target: "surfaces::server", path = &long[..2_000], "asked"));
            assert!(line.contains(&long[..2_000]));
        }
    }

    /// Proves that keys and bearer tokens are hidden in messages and in fields of any type, in events of libraries and of our crates, also where a key is
    /// cut.
    #[test]
    fn keys_are_hidden() {
        let key = access::keys::Key::random();
        let key = key.reveal();
        let (padded, header) = (format!("{}{key}", "a".repeat(180)), format!("Authorization: BEARER abc.DEF-{key}, Bearer x/y+z=="));
        let error = io::Error::other(key);
        for target in ["rmcp", "surfaces::server"] {
            for format in [LogFormat::Text, LogFormat::Json] {
                let line = logged(format, || match target {
                    "rmcp" => {
                        tracing::error!(target: "rmcp::service", key, shown = %key, debug = ?Some(key), padded, header, error = &error as &dyn StdError, "got {key}")
                    }
                    _ => {
                        tracing::warn!(target: "surfaces::server", key, shown = %key, debug = ?Some(key), padded, header, error = &error as &dyn StdError, "got {key}")
                    }
                });
                for at in [8, 12, 20] {
                    assert!(!line.contains(&key[at..at + 6]), "{line}");
                }
                for hidden in ["abc.DEF", "x/y+z"] {
                    assert!(!line.contains(hidden), "{line}");
                }
                assert!(line.contains("hw_live_…") && line.contains("BEARER …, Bearer …"), "{line}");
            }
        }
    }

    /// Proves that the libraries which log each step, or what any caller does wrong, log only what an operator should see, however much else is logged, and
    /// that others are not limited.
    #[test]
    fn steps_of_libraries_are_not_logged() {
        macro_rules! assert_logged {
            ($target:literal, $levels:expr) => {
                let lines = logged(LogFormat::Text, || {
                    tracing::error!(target: $target, "level=ERROR");
                    tracing::warn!(target: $target, "level=WARN");
                    tracing::info!(target: $target, "level=INFO");
                    tracing::debug!(target: $target, "level=DEBUG");
                });
                let levels: Vec<&str> = lines.lines().map(|line| line.rsplit_once('=').unwrap().1).collect();
                assert_eq!(levels, $levels, "{}", $target);
            };
        }
        assert_logged!("rmcp::service", ["ERROR"]);
        assert_logged!("rmcp", ["ERROR"]);
        assert_logged!("tokio_cron_scheduler::job", ["ERROR", "WARN"]);
        assert_logged!("surfaces::mcp", ["ERROR", "WARN", "INFO", "DEBUG"]);
        assert_logged!("rmcpx", ["ERROR", "WARN", "INFO", "DEBUG"]);
    }

    /// Proves that every event is one line without control characters, and that JSON fields keep their types.
    #[test]
    fn each_event_is_one_line() {
        let evil = "a\n2026-01-01T00:00:00Z ERROR api: all is lost\r\x1b[2J\u{9b}2J";
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = logged(format, || tracing::error!(target: "surfaces", text = evil, count = 7_u64, is_new = true, "said {evil}"));
            assert_eq!(line.lines().count(), 1, "{line}");
            assert!(line.ends_with('\n') && !line.contains(['\r', '\x1b', '\u{9b}']), "{line:?}");
            if matches!(format, LogFormat::Json) {
                let value: Value = serde_json::from_str(&line).unwrap();
                assert_eq!((&value["level"], &value["target"]), (&"ERROR".into(), &"surfaces".into()));
                assert_eq!((&value["fields"]["count"], &value["fields"]["is_new"]), (&7.into(), &true.into()));
                assert!(value["timestamp"].as_str().unwrap().ends_with('Z'));
            } else {
                assert!(line.contains(" ERROR surfaces: said a\\n2026"), "{line}");
                assert!(line.contains(" count=7 is_new=true"), "{line}");
                assert!(line.contains(" text=\"a\\n2026"), "{line}");
            }
        }
    }
}
