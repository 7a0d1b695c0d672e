//! The URL of a webhook. It is personal data, and often a secret. Fleets are encrypted in the same way, each with a secret of its own in addition.
//!
//! Promises: the format of a URL is checked before anything else is done with it. It is in no log, error or `Debug` output. It is stored encrypted,
//! under a key derived from the master key and a secret of the account that is in no log, and it is bound to one item. Encrypted form, in
//! base64url without padding: version u8, a random nonce of 12 bytes, the URL encrypted with ChaCha20-Poly1305, and its tag of 16 bytes. Host names
//! are not resolved here; the connection must check the addresses.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::secrets::Secrets;
use proofs::hash::{Hash32, hex};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use schemas::error_code::ErrorCode;
use schemas::views::watches::SavedItem;
use url::Url;

use crate::guard::TargetRules;
use crate::sign::SigningSecret;

/// The longest URL, in characters.
pub const URL_CHARS_MAX: usize = 2_000;
/// Why a host is refused. The reason is the same for its form, its name and an address, so that callers cannot use webhooks to map a network.
const NOT_PUBLIC: &str = "names a host that is not on the public internet";
/// The ports that webhooks may use.
const PORTS: [u16; 2] = [443, 8443];
/// The current version of the encrypted form. Version 1 did not use a secret of the account.
const VERSION: u8 = 2;
/// The prefix of the names under which the secrets of accounts are stored.
const STORE_PREFIX: &str = "webhook-secret/";
/// The secret of an account that was erased.
const ERASED: &str = "";

/// A webhook URL with a valid format.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook(Url);

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Webhook(…)")
    }
}

impl Webhook {
    /// Parses a URL. Rules that permit private targets also permit plain http, private networks and all ports.
    ///
    /// # Errors
    /// The reason, for the caller. It quotes nothing of the URL.
    pub fn parse(text: &str, rules: &TargetRules) -> Result<Self, &'static str> {
        if text.chars().count() > URL_CHARS_MAX {
            return Err("is longer than 2000 characters");
        }
        // The parser would silently remove these characters.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("contains white space or control characters");
        }
        let checked = Self(Url::parse(text).map_err(|_| "is not a URL")?);
        checked.check_permitted(rules)?;
        Ok(checked)
    }

    /// Checks that the rules permit the URL. They may have changed since it was stored.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn check_permitted(&self, rules: &TargetRules) -> Result<(), &'static str> {
        let (Self(url), private_targets) = (self, rules.has_private_targets());
        match url.scheme() {
            "https" => {}
            "http" if private_targets => {}
            "http" => return Err("must be https"),
            _ => return Err("is not https"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("contains a user name or password; put secrets into the path or the query");
        }
        if url.fragment().is_some() {
            return Err("contains a fragment, which is never sent");
        }
        let host = url.host().ok_or("has no host")?;
        if !rules.permits_host(&host) {
            return Err(NOT_PUBLIC);
        }
        if !private_targets && !url.port_or_known_default().is_some_and(|port| PORTS.contains(&port)) {
            return Err("has a port other than 443 and 8443");
        }
        Ok(())
    }

    /// The host. It is the only part that is shown.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The text of the URL, for delivery.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.as_str()
    }

    /// The parsed URL.
    pub fn url(&self) -> &Url {
        &self.0
    }
}

/// Encrypts and decrypts the webhook URLs and signing secrets of one account.
pub struct Sealing {
    account: String,
    key: LessSafeKey,
}

impl Sealing {
    /// Loads the secret of an account, or creates it.
    ///
    /// # Errors
    /// `not-found` for an account that was erased; `unavailable` when the store does not answer.
    pub async fn load_or_create(ctx: &Context, account: &str) -> Result<Self, Problem> {
        let secret = hex(&rand::random::<[u8; 32]>());
        let stored = ctx.store.coordination().store_if_absent(&format!("{STORE_PREFIX}{account}"), &secret).await.map_err(store_problem)?;
        Self::from_secret(&ctx.secrets, account, &stored).ok_or_else(|| Problem::new(ErrorCode::NotFound, "this account was erased"))
    }

    /// Loads the secret of an account; `None` if it has none, or was erased.
    ///
    /// # Errors
    /// `unavailable` when the store does not answer.
    pub async fn load(ctx: &Context, account: &str) -> Result<Option<Self>, Problem> {
        let stored = ctx.store.coordination().value(&format!("{STORE_PREFIX}{account}")).await.map_err(store_problem)?;
        Ok(stored.and_then(|secret| Self::from_secret(&ctx.secrets, account, &secret)))
    }

    /// Destroys the account's secret: nothing that was encrypted with it can be decrypted, and nothing new can be encrypted.
    ///
    /// # Errors
    /// `unavailable` when the store does not answer.
    pub async fn destroy(ctx: &Context, account: &str) -> Result<(), Problem> {
        ctx.store.coordination().store(&format!("{STORE_PREFIX}{account}"), ERASED).await.map_err(store_problem)
    }

    /// Loads the secret of one item of an account, or creates it, so that the item can be made unreadable by itself. An item that was deleted gets
    /// another secret.
    ///
    /// # Errors
    /// `not-found` for an account that was erased; `unavailable` when the store does not answer, or if the item is deleted at the same time.
    pub async fn load_or_create_for_item(ctx: &Context, account: &str, id: &str) -> Result<Self, Problem> {
        Self::load_or_create(ctx, account).await?;
        let (coordination, name) = (ctx.store.coordination(), format!("{STORE_PREFIX}{}", item_owner(account, id)));
        let secret = hex(&rand::random::<[u8; 32]>());
        if coordination.store_if_absent(&name, &secret).await.map_err(store_problem)? == ERASED {
            // Of several callers one succeeds; all use what is stored.
            coordination.compare_and_store(&name, Some(ERASED), &secret).await.map_err(store_problem)?;
        }
        let deleted = || Problem::new(ErrorCode::Unavailable, "it is being deleted; try again").retry_after(1);
        Self::load_for_item(ctx, account, id).await?.ok_or_else(deleted)
    }

    /// Loads the secret of one item; `None` if it has none, if it was deleted, or if its account was erased.
    ///
    /// # Errors
    /// `unavailable` when the store does not answer.
    pub async fn load_for_item(ctx: &Context, account: &str, id: &str) -> Result<Option<Self>, Problem> {
        let (coordination, owner) = (ctx.store.coordination(), item_owner(account, id));
        let of_account = coordination.value(&format!("{STORE_PREFIX}{account}")).await.map_err(store_problem)?;
        let of_item = coordination.value(&format!("{STORE_PREFIX}{owner}")).await.map_err(store_problem)?;
        let both = of_account.zip(of_item).filter(|(of_account, of_item)| of_account != ERASED && of_item != ERASED);
        Ok(both.and_then(|(of_account, of_item)| Self::from_secret(&ctx.secrets, &owner, &format!("{of_account}/{of_item}"))))
    }

    /// Destroys the secret of one item: no version of it can be decrypted any more.
    ///
    /// # Errors
    /// `unavailable` when the store does not answer.
    pub async fn destroy_for_item(ctx: &Context, account: &str, id: &str) -> Result<(), Problem> {
        Self::destroy(ctx, &item_owner(account, id)).await
    }

    /// Encrypts the contents of an item.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn seal_contents(&self, contents: &str, id: &str) -> Result<String, Problem> {
        self.seal_text(contents, &contents_of(id))
    }

    /// Decrypts the contents of an item; `None` if they belong to another item, account or secret.
    #[must_use]
    pub fn open_contents(&self, item: &SavedItem) -> Option<String> {
        self.open_text(&contents_of(&item.id), &item.entity)
    }

    fn from_secret(secrets: &Secrets, account: &str, secret: &str) -> Option<Self> {
        let bytes = secrets.derive(&format!("webhook-url/{account}/{secret}"), u32::from(VERSION));
        Self::with_key(account, &bytes).filter(|_| secret != ERASED)
    }

    /// Encrypts and decrypts what belongs to an owner with a key.
    pub(super) fn with_key(account: &str, key: &[u8; 32]) -> Option<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new);
        key.map(|key| Self { account: account.to_owned(), key })
    }

    /// Encrypts a URL for an item of the account.
    ///
    /// # Errors
    /// `internal`, which does not happen: a URL is short.
    pub fn seal(&self, url: &Webhook, id: &str) -> Result<String, Problem> {
        self.seal_text(url.reveal(), id)
    }

    /// The host of a watch's URL; empty if it has none, or if it cannot be decrypted.
    pub fn host(&self, item: &SavedItem) -> String {
        self.open(&item.id, &item.webhook).map_or_else(String::new, |url| url.host().to_owned())
    }

    /// Encrypts a signing secret for an item of the account.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn seal_secret(&self, secret: &SigningSecret, id: &str) -> Result<String, Problem> {
        self.seal_text(&secret.reveal(), &secret_of(id))
    }

    /// Encrypts a text that is bound to an id.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub(super) fn seal_text(&self, text: &str, id: &str) -> Result<String, Problem> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut text = text.as_bytes().to_vec();
        let sealed = self.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), self.bound_to(id), &mut text);
        sealed.map_err(|_| {
            tracing::error!("a private text could not be encrypted");
            Problem::new(ErrorCode::Internal, "the private text could not be stored")
        })?;
        Ok(URL_SAFE_NO_PAD.encode([&[VERSION][..], &nonce, &text].concat()))
    }

    /// Decrypts the URL of an item; `None` if it belongs to another item, account or master key.
    pub fn open(&self, id: &str, sealed: &str) -> Option<Webhook> {
        Url::parse(&self.open_text(id, sealed)?).ok().map(Webhook)
    }

    /// Decrypts the signing secret of an item; `None` if it belongs to another item, account or master key.
    pub fn open_secret(&self, id: &str, sealed: &str) -> Option<SigningSecret> {
        SigningSecret::parse(&self.open_text(&secret_of(id), sealed)?).ok()
    }

    /// Decrypts a text; `None` if it belongs to another id, owner or key.
    pub(super) fn open_text(&self, id: &str, sealed: &str) -> Option<String> {
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

    /// The associated data that binds an encrypted text to its item.
    fn bound_to(&self, id: &str) -> Aad<Vec<u8>> {
        Aad::from(format!("{VERSION}/{}/{id}", self.account).into_bytes())
    }
}

/// The id that the signing secret of an item is bound to.
fn secret_of(id: &str) -> String {
    format!("{id}/secret")
}

/// The id that the contents of an item are bound to.
fn contents_of(id: &str) -> String {
    format!("{id}/contents")
}

/// The name of the secret of an item, in the place of an account.
fn item_owner(account: &str, id: &str) -> String {
    format!("{account}/{id}")
}

/// Lists the secrets of all accounts and of their fleets, for export: (account, secret). The secret of a fleet has the name `account/fleet`. The secret
/// of an erased account, or of a deleted fleet, is empty.
///
/// # Errors
/// `unavailable` when the store does not answer.
pub async fn account_secrets(ctx: &Context) -> Result<Vec<(String, String)>, Problem> {
    let mut all = ctx.store.coordination().values().await.map_err(store_problem)?;
    all.retain_mut(|(name, _)| name.strip_prefix(STORE_PREFIX).map(str::to_owned).map(|account| *name = account).is_some());
    all.sort_unstable();
    Ok(all)
}

/// Imports the secret of an account or a fleet. An account that was erased, there or here, remains erased.
///
/// # Errors
/// `parameter-invalid` if the secret is malformed, or if the account has another secret; `unavailable` when the store does not answer.
pub async fn import_account_secret(ctx: &Context, account: &str, secret: &str) -> Result<(), Problem> {
    if secret == ERASED {
        return Sealing::destroy(ctx, account).await;
    }
    if Hash32::from_hex(secret).is_none() {
        return Err(Problem::parameter("secret", format!("the secret of account {account} is not 64 hex digits")));
    }
    let stored = ctx.store.coordination().store_if_absent(&format!("{STORE_PREFIX}{account}"), secret).await.map_err(store_problem)?;
    if stored == secret || stored == ERASED {
        return Ok(());
    }
    Err(Problem::parameter("secret", format!("account {account} has another secret, and private data is encrypted with it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which URLs are accepted, by default and with private targets, and that `Debug` output shows none.
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
            assert!(Webhook::parse(url, strict).is_ok() && Webhook::parse(url, lax).is_ok(), "{url}");
        }
        for url in private {
            assert!(Webhook::parse(url, strict).is_err() && Webhook::parse(url, lax).is_ok(), "{url}");
        }
        for url in never {
            for rules in [strict, lax] {
                assert!(Webhook::parse(url, rules).is_err(), "{url}");
            }
        }
        assert_eq!(format!("{:?}", Webhook::parse(public[0], strict).unwrap()), "Webhook(…)");
    }

    /// Proves that an encrypted URL can be decrypted for its account and watch, with its master key and account secret, unchanged, and not otherwise;
    /// that encrypting twice gives different texts, and that the URL is in none of them.
    #[test]
    fn sealed() {
        let secrets = Secrets::from_master(&[7; 32]).unwrap();
        let sealing = |secrets: &Secrets, account: &str, secret: &str| Sealing::from_secret(secrets, account, secret).unwrap();
        let own = sealing(&secrets, "a", "1");
        let webhook = Webhook::parse("https://example.org/hook?token=secret", &TargetRules::default()).unwrap();
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
