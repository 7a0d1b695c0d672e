//! Names and limits of the wire that the documents state and the surfaces keep: media types, headers, lengths.

/// The media type of an Atom document.
pub const ATOM: &str = "application/atom+xml";
/// The media type of server-sent events, by which callers ask for them.
pub const EVENTS: &str = "text/event-stream";
/// The media type of NDJSON.
pub const NDJSON: &str = "application/x-ndjson";
/// The header with the note of an answer that states its own hash.
pub const ANSWER_NOTE: &str = "Answer-Note";
/// The longest `Idempotency-Key`, in characters.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 200;
