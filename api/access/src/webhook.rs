//! The URL that an account wants something delivered to: personal, and often a secret by itself.
//!
//! Promises: it is checked for its form before anything else is done with it; it is in no log, error or `Debug` output; what is kept is
//! sealed under a key that follows from the master key and a secret of the account that is in no log, bound to the one thing that it belongs
//! to. Sealed form, in base64url without padding: version u8, a nonce of 12 bytes by chance, the URL under ChaCha20-Poly1305, whose tag of 16
//! bytes ends it. What a name stands for is not looked up here: whoever connects must look, at the time.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use schemas::error_code::ErrorCode;
use schemas::hash::{Hash32, hex};
use schemas::views::watches::SavedItem;
use url::Url;

use crate::guard::TargetRules;
use crate::sign::SigningSecret;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::secrets::Secrets;

/// The longest URL, in characters.
pub const URL_CHARS_MAX: usize = 2_000;
/// Why a host is refused, whether its form, its name or what the name leads to is to blame: which of them is not told, and no address, since that
/// would map a network for whoever asks.
pub const NOT_PUBLIC: &str = "names a host that is not on the public internet";
/// The ports that are posted to.
const PORTS: [u16; 2] = [443, 8443];
/// How it is sealed today. Version 1 had no secret of the account.
const VERSION: u8 = 2;
/// What the name begins with that an account's secret is kept under in the store.
const KEPT: &str = "webhook-secret/";
/// The secret of an account that was erased.
const ERASED: &str = "";

/// A URL that was checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook(Url);

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Webhook(…)")
    }
}

impl Webhook {
    /// Reads a URL. Rules that permit private targets let plain http, this machine's own networks and all ports pass.
    ///
    /// # Errors
    /// Words for the caller, which repeat nothing of it.
    pub fn checked(text: &str, rules: &TargetRules) -> Result<Self, &'static str> {
        if text.chars().count() > URL_CHARS_MAX {
            return Err("is longer than 2000 characters");
        }
        // The parser would drop these where they are.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("holds white space or control characters");
        }
        let checked = Self(Url::parse(text).map_err(|_| "is no URL")?);
        checked.permitted(rules)?;
        Ok(checked)
    }

    /// Whether it may be delivered to: what was permitted once may not be now.
    ///
    /// # Errors
    /// As [`Self::checked`].
    pub fn permitted(&self, rules: &TargetRules) -> Result<(), &'static str> {
        let (Self(url), private_targets) = (self, rules.has_private_targets());
        match url.scheme() {
            "https" => {}
            "http" if private_targets => {}
            "http" => return Err("must be https"),
            _ => return Err("is not https"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("holds a user name or password: put a secret into the path or the query");
        }
        if url.fragment().is_some() {
            return Err("holds a fragment, which is never sent");
        }
        let host = url.host().ok_or("names no host")?;
        if !rules.permits_host(&host) {
            return Err(NOT_PUBLIC);
        }
        if !private_targets && !url.port_or_known_default().is_some_and(|port| PORTS.contains(&port)) {
            return Err("names a port other than 443 and 8443");
        }
        Ok(())
    }

    /// The host it names: all of it that is shown.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The URL, for whoever delivers to it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.as_str()
    }

    /// The same, in its parts.
    pub fn url(&self) -> &Url {
        &self.0
    }
}

/// What the URLs of one account are sealed with.
pub struct Sealing {
    account: String,
    key: LessSafeKey,
}

impl Sealing {
    /// That of an account, made if it has none yet.
    ///
    /// # Errors
    /// `not-found` for an account that was erased; `unavailable` when the store does not answer.
    pub async fn made(ctx: &Context, account: &str) -> Result<Self, Problem> {
        let secret = hex(&rand::random::<[u8; 32]>());
        let kept = ctx.store.coordination().store_if_absent(&format!("{KEPT}{account}"), &secret).await.map_err(store_problem)?;
        Self::from_secret(&ctx.secrets, account, &kept).ok_or_else(|| Problem::new(ErrorCode::NotFound, "this account was erased"))
    }

    /// That of an account; `None` for one that has none, or was erased.
    ///
    /// # Errors
    /// `unavailable` when the store does not answer.
    pub async fn of(ctx: &Context, account: &str) -> Result<Option<Self>, Problem> {
        let kept = ctx.store.coordination().value(&format!("{KEPT}{account}")).await.map_err(store_problem)?;
        Ok(kept.and_then(|secret| Self::from_secret(&ctx.secrets, account, &secret)))
    }

    /// Destroys the account's secret: nothing that was sealed with it is read again, nor sealed anew.
    ///
    /// # Errors
    /// `unavailable` when the store does not answer.
    pub async fn destroy(ctx: &Context, account: &str) -> Result<(), Problem> {
        ctx.store.coordination().store(&format!("{KEPT}{account}"), ERASED).await.map_err(store_problem)
    }

    fn from_secret(secrets: &Secrets, account: &str, secret: &str) -> Option<Self> {
        let bytes = secrets.derive(&format!("webhook-url/{account}/{secret}"), u32::from(VERSION));
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok().map(LessSafeKey::new);
        key.filter(|_| secret != ERASED).map(|key| Self { account: account.to_owned(), key })
    }

    /// A URL sealed for one thing of the account.
    ///
    /// # Errors
    /// `internal`, which does not happen: a URL is short.
    pub fn seal(&self, url: &Webhook, id: &str) -> Result<String, Problem> {
        self.seal_text(url.reveal(), id)
    }

    /// The host of a watch's URL; empty where there is none, or none that can be read.
    pub fn host(&self, kept: &SavedItem) -> String {
        self.open(&kept.id, &kept.webhook).map_or_else(String::new, |url| url.host().to_owned())
    }

    /// What signs the messages to that thing, sealed likewise.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn seal_secret(&self, secret: &SigningSecret, id: &str) -> Result<String, Problem> {
        self.seal_text(&secret.reveal(), &secret_of(id))
    }

    fn seal_text(&self, text: &str, id: &str) -> Result<String, Problem> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut text = text.as_bytes().to_vec();
        let sealed = self.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), self.bound_to(id), &mut text);
        sealed.map_err(|_| {
            tracing::error!("a webhook's address could not be sealed");
            Problem::new(ErrorCode::Internal, "the webhook could not be kept")
        })?;
        Ok(URL_SAFE_NO_PAD.encode([&[VERSION][..], &nonce, &text].concat()))
    }

    /// What was sealed for that thing of this account; `None` for anything else, or under another master key.
    pub fn open(&self, id: &str, sealed: &str) -> Option<Webhook> {
        Url::parse(&self.open_text(id, sealed)?).ok().map(Webhook)
    }

    /// The secret that was sealed for that thing, likewise.
    pub fn open_secret(&self, id: &str, sealed: &str) -> Option<SigningSecret> {
        SigningSecret::parse(&self.open_text(&secret_of(id), sealed)?).ok()
    }

    /// The text of the secret that a watch was made with; `None` once it has another one.
    pub fn first_secret(&self, kept: &SavedItem) -> Option<String> {
        let secret = self.open_secret(&kept.id, &kept.secret).filter(|_| kept.changed_at == kept.made_at)?;
        Some(secret.reveal())
    }

    fn open_text(&self, id: &str, sealed: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (version, rest) = bytes.split_first()?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
        if *version != VERSION {
            return None;
        }
        let mut text = text.to_vec();
        let text = self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), self.bound_to(id), &mut text).ok()?;
        Some(std::str::from_utf8(text).ok()?.to_owned())
    }

    /// What is authenticated beside the URL: it opens nowhere else.
    fn bound_to(&self, id: &str) -> Aad<Vec<u8>> {
        Aad::from(format!("{VERSION}/{}/{id}", self.account).into_bytes())
    }
}

/// What the secret of a thing is bound to.
fn secret_of(id: &str) -> String {
    format!("{id}/secret")
}

/// The secrets of all accounts that have one, for moving them: (account, secret); an empty one for an account that was erased.
///
/// # Errors
/// `unavailable` when the store does not answer.
pub async fn account_secrets(ctx: &Context) -> Result<Vec<(String, String)>, Problem> {
    let mut all = ctx.store.coordination().values().await.map_err(store_problem)?;
    all.retain_mut(|(name, _)| name.strip_prefix(KEPT).map(str::to_owned).map(|account| *name = account).is_some());
    all.sort_unstable();
    Ok(all)
}

/// Takes an account's secret from elsewhere. One that was erased, there or here, stays so.
///
/// # Errors
/// `parameter-invalid` for what is no secret, or where the account has another one; `unavailable` when the store does not answer.
pub async fn take_account_secret(ctx: &Context, account: &str, secret: &str) -> Result<(), Problem> {
    if secret == ERASED {
        return Sealing::destroy(ctx, account).await;
    }
    if Hash32::from_hex(secret).is_none() {
        return Err(Problem::parameter("secret", format!("the secret of account {account} is not 64 hex digits")));
    }
    let kept = ctx.store.coordination().store_if_absent(&format!("{KEPT}{account}"), secret).await.map_err(store_problem)?;
    if kept == secret || kept == ERASED {
        return Ok(());
    }
    Err(Problem::parameter("secret", format!("account {account} has another secret here: addresses are sealed with it already")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which URLs are taken, by default and where private targets are, and that none shows itself.
    #[test]
    fn forms() {
        let (strict, lax) = (&TargetRules::new(false), &TargetRules::new(true));
        let long = format!("https://example.org/{}", "a".repeat(URL_CHARS_MAX));
        let public = ["https://example.org/hook?token=secret", "https://example.org:8443/", "https://8.8.8.8/x", "https://[2606:4700::1]/"];
        let private = [
            "http://example.org/secret",
            "http://127.0.0.1:9/secret",
            "https://example.org:22/secret",
            "https://example.org:80/secret",
            "https://example.org:9200/secret",
            "https://localhost/secret",
            "https://intranet/secret",
            "https://a.internal./secret",
            "https://10.0.0.1/secret",
            "https://100.64.0.1/secret",
            "https://169.254.169.254/secret",
            "https://0x7f000001/secret",
            "https://[::1]/secret",
            "https://[::ffff:10.0.0.1]/secret",
            "https://[fd00::1]/secret",
            "https://[fe80::1]/secret",
            "https://[64:ff9b::a00:1]/secret",
        ];
        let never = [
            "",
            "secret",
            "ftp://example.org/secret",
            "https:///",
            "https://secret@example.org/",
            "https://a:secret@example.org/",
            "https://example.org/#secret",
            "https://example.org/a secret",
            " https://example.org/secret",
            "https://example.org/\tsecret",
            &long,
        ];
        for url in public {
            assert!(Webhook::checked(url, strict).is_ok() && Webhook::checked(url, lax).is_ok(), "{url}");
        }
        for url in private {
            assert!(Webhook::checked(url, strict).is_err() && Webhook::checked(url, lax).is_ok(), "{url}");
        }
        for url in never {
            for rules in [strict, lax] {
                assert!(Webhook::checked(url, rules).is_err(), "{url}");
            }
        }
        assert_eq!(format!("{:?}", Webhook::checked(public[0], strict).unwrap()), "Webhook(…)");
    }

    /// Proves that a sealed URL opens for its account and its watch, under its master key and the account's secret, unchanged, and nowhere else;
    /// that two seals differ, and that the URL is in none.
    #[test]
    fn sealed() {
        let secrets = Secrets::from_master(&[7; 32]).unwrap();
        let sealing = |secrets: &Secrets, account: &str, secret: &str| Sealing::from_secret(secrets, account, secret).unwrap();
        let own = sealing(&secrets, "a", "1");
        let webhook = Webhook::checked("https://example.org/hook?token=secret", &TargetRules::default()).unwrap();
        let sealed = own.seal(&webhook, "w").unwrap();
        assert_ne!(sealed, own.seal(&webhook, "w").unwrap());
        let opened = own.open("w", &sealed).unwrap();
        assert_eq!((opened.reveal(), opened.host()), (webhook.reveal(), "example.org"));
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("secret") && bytes.len() > webhook.reveal().len());
        for (account, secret, id) in [("b", "1", "w"), ("a", "2", "w"), ("a", "1", "v"), ("a/w", "1", ""), ("", "a/1", "w")] {
            assert_eq!(sealing(&secrets, account, secret).open(id, &sealed), None, "{account} {secret} {id}");
        }
        assert_eq!(sealing(&Secrets::from_master(&[8; 32]).unwrap(), "a", "1").open("w", &sealed), None);
        assert!(Sealing::from_secret(&secrets, "a", ERASED).is_none());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(own.open("w", &URL_SAFE_NO_PAD.encode(&changed)), None, "byte {at}");
            assert_eq!(own.open("w", &URL_SAFE_NO_PAD.encode(&bytes[..at])), None, "{at} bytes");
        }
    }
}
