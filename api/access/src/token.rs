//! Tokens of watches: a buyer without an account gets one, and it alone opens the watch. Tokens are never stored, only their SHA-256.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use operation::problem::Problem;
use schemas::views::watches::token_owner;

/// The header that carries the token.
pub const HEADER: &str = "X-Watch-Token";
/// The beginning of a token.
const PREFIX: &str = "wt_";
/// How many random bytes a token has.
const BYTES: usize = 32;

/// A well-formed token: `wt_` and 43 characters of base64url. Hidden in `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct WatchToken(String);

impl std::fmt::Debug for WatchToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchToken(…)")
    }
}

impl WatchToken {
    /// Creates a token from random bytes.
    #[must_use]
    pub fn of(bytes: [u8; BYTES]) -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Reads the token of a call, from its header or from an argument; `None` if it has neither.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the header or the argument, if a token is malformed or the two differ. The problem quotes nothing of a token.
    pub fn of_call(header: Option<&str>, argument: Option<&str>) -> Result<Option<Self>, Problem> {
        let read = |name: &'static str, text: &str| {
            Self::parse(text).ok_or_else(|| {
                Problem::parameter(
                    name,
                    format!("{name}: is not a token: `wt_` and 43 characters of base64url that encode 32 bytes; copy the whole token"),
                )
            })
        };
        let header = header.map(|text| read(HEADER, text)).transpose()?;
        let argument = argument.map(|text| read("token", text)).transpose()?;
        match (header, argument) {
            (Some(header), Some(argument)) if header != argument => {
                Err(Problem::parameter("token", format!("token: differs from the header {HEADER}")))
            }
            (header, argument) => Ok(header.or(argument)),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (bytes.len() == BYTES).then(|| Self(text.to_owned()))
    }

    /// The text of the token, to be shown once to the buyer.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The owner of what the token opens, as it is stored.
    #[must_use]
    pub fn owner(&self) -> String {
        token_owner(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proofs::hash::Hash32;
    use schemas::views::watches::is_token_owner;

    use super::*;

    /// Proves the form of tokens, that `Debug` output and stored owners do not contain them, and what is refused.
    #[test]
    fn form() {
        let token = WatchToken::of([7; 32]);
        let text = token.reveal();
        assert_eq!((text.len(), &text[..3]), (46, "wt_"));
        assert!(!format!("{token:?}").contains(&text[4..20]));
        assert_eq!(token.owner(), format!("token_{}", Hash32::of(text.as_bytes())));
        assert!(is_token_owner(&token.owner()) && !is_token_owner("acct_1"));
        assert_eq!(WatchToken::of_call(Some(text), None), Ok(Some(token.clone())));
        assert_eq!(WatchToken::of_call(Some(text), Some(text)), Ok(Some(token.clone())));
        assert_eq!(WatchToken::of_call(None, None), Ok(None));
        for wrong in ["", "wt_", &text[..45], &format!("{text}A"), &text.replace("wt_", "xx_"), &text.replace('B', "+")] {
            let problem = WatchToken::of_call(Some(wrong), None).unwrap_err();
            assert_eq!(problem.parameter, HEADER, "{wrong}");
            assert_eq!(WatchToken::of_call(None, Some(wrong)).unwrap_err().parameter, "token");
        }
        let other = WatchToken::of([8; 32]);
        assert_eq!(WatchToken::of_call(Some(text), Some(other.reveal())).unwrap_err().parameter, "token");
    }
}
