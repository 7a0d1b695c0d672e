//! Verifies a webhook message with the Standard Webhooks library: `cargo add standardwebhooks http serde_json`

use http::HeaderMap;
use standardwebhooks::Webhook;

/// Returns the message, or an error if the signature is wrong or the timestamp is more than five minutes off.
///
/// `secret` is the one that the registration returned (`whsec_…`), `body` the request body as it arrived.
pub fn read_message(secret: &str, headers: &HeaderMap, body: &[u8]) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    Webhook::new(secret)?.verify(body, headers)?;
    Ok(serde_json::from_slice(body)?)
}
