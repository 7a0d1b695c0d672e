//! The session of a person who signed in with a key: a sealed text that the browser keeps in a cookie.
//!
//! Promises: the key is not readable in the text, which is encrypted under a key derived from the master key. A session ends [`SESSION_HOURS_MAX`] hours
//! after it began, whatever the browser keeps. The key in it is checked with each request, so a revoked key ends its sessions.

use operation::context::Context;
use operation::problem::Problem;
use operation::secrets::Secrets;
use proofs::hash::hex;
use schemas::clock::HOUR_MS;
use schemas::error_code::ErrorCode;

use crate::Credentials;
use crate::keys::Key;
use crate::webhook::Sealing;

/// After how many hours a session ends.
pub const SESSION_HOURS_MAX: i64 = 12;
/// The owner that sealed sessions are bound to. No account has this name.
const OWNER: &str = "sessions";
/// The id that sealed sessions are bound to.
const ID: &str = "session";

/// Begins a session with a key, and returns its sealed text, which is safe in a cookie.
///
/// # Errors
/// `internal`, which does not happen: a key is short.
pub fn begin(ctx: &Context, key: &Key) -> Result<String, Problem> {
    let sealing = sealing(&ctx.secrets).ok_or_else(|| Problem::new(ErrorCode::Internal, "the session could not be sealed"))?;
    sealing.seal_text(&format!("{} {}", ctx.clock.now_ms(), key.reveal()), ID)
}

/// The credentials in a sealed session; `None` if it has ended, or was sealed under another master key.
#[must_use]
pub fn open(ctx: &Context, sealed: &str) -> Option<Credentials> {
    let text = sealing(&ctx.secrets)?.open_text(ID, sealed)?;
    let (begun_ms, key) = text.split_once(' ')?;
    let age_ms = ctx.clock.now_ms().checked_sub(begun_ms.parse::<i64>().ok()?)?;
    // A clock that was set back does not end a session.
    (age_ms < SESSION_HOURS_MAX * HOUR_MS).then(|| Credentials { key: Some(key.to_owned()) })
}

/// A random text of letters and digits, by which a form that is sent twice is recognized.
#[must_use]
pub fn nonce() -> String {
    hex(&rand::random::<[u8; 12]>())
}

fn sealing(secrets: &Secrets) -> Option<Sealing> {
    Sealing::with_key(OWNER, &secrets.derive("session", 1))
}

#[cfg(test)]
mod tests {
    use feed::testing::START_MS;
    use feed::testing::accounts::world;

    use super::*;

    /// Proves that a session gives its key back for some hours, hides it, and cannot be changed.
    #[tokio::test]
    async fn sessions_hide_their_key_and_end() {
        let (world, _) = world().await;
        let at = |since_ms: i64| world.context(START_MS + since_ms);
        let ctx = at(0);
        let key = Key::random();
        let sealed = begin(&ctx, &key).unwrap();
        assert!(!sealed.contains(&key.reveal()[8..]) && sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        assert_ne!(sealed, begin(&ctx, &key).unwrap(), "two sessions look alike");
        assert_eq!(open(&ctx, &sealed).unwrap().key.as_deref(), Some(key.reveal()));
        for at_byte in [0, 10, 40, sealed.len() - 2] {
            let mut changed = sealed.clone().into_bytes();
            changed[at_byte] = if changed[at_byte] == b'A' { b'B' } else { b'A' };
            assert!(open(&ctx, std::str::from_utf8(&changed).unwrap()).is_none(), "{at_byte}");
        }
        for wrong in ["", "x", "é", key.reveal()] {
            assert!(open(&ctx, wrong).is_none(), "{wrong}");
        }
        let length_ms = SESSION_HOURS_MAX * HOUR_MS;
        assert!(open(&at(length_ms - 1), &sealed).is_some() && open(&at(length_ms), &sealed).is_none());
    }
}
