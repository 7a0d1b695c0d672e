//! What is done to keys: each act is a command on the `accounts` topic, and answers once the accounts view has passed it.

use std::net::IpAddr;

use schemas::error_code::ErrorCode;
use schemas::hash::hex;
use schemas::key;
use schemas::tables::{Datum, Key as RowKey};
use schemas::views::accounts::{self, AccountCommand, ApiKey, Tier};
use view_store::Range;
use view_store::store::Span;

use super::append::{Once, command};
use super::keys::{Key, account_id, checked_email, key_id};
use super::quota::address_subject;
use super::tiers::{KEYS_PER_EMAIL_MAX, MINTS_PER_ADDRESS_MAX};
use super::{Access, key_row, read_row};
use crate::context::{Context, store_problem};
use crate::problem::Problem;

/// Rows of one page of a listing.
pub(super) const PAGE_ROWS: usize = 500;
/// Live and ended keys of one e-mail address that are looked at.
const KEYS_LOOKED_AT: usize = 200;
const DAY_MS: i64 = 86_400_000;

/// A key just made. The only time that it is shown.
#[derive(Clone, Debug)]
pub struct MintedKey {
    /// The key.
    pub key: Key,
    /// How it stands.
    pub row: ApiKey,
}

/// A key and the one that takes its place.
#[derive(Clone, Debug)]
pub struct RotatedKey {
    /// The new key.
    pub minted: MintedKey,
    /// The old one, with the time it ends.
    pub old: ApiKey,
}

impl Access {
    /// Mints a key of any tier. The e-mail address may be empty; it is hashed, not kept.
    ///
    /// # Errors
    /// `parameter-invalid` for the address or tier; `unavailable` when the command is not projected in time.
    pub async fn mint(&self, ctx: &Context, tier: Tier, email: &str) -> Result<MintedKey, Problem> {
        if tier == Tier::Anonymous {
            return Err(Problem::parameter("tier", "anonymous callers have no key"));
        }
        let email_hash = if email.trim().is_empty() { String::new() } else { self.email_hash(email)? };
        self.mint_key(ctx, Key::random(), tier, email_hash).await
    }

    /// Mints a free key for a caller, within the limits of e-mail address and caller's address. The same request with the same
    /// idempotency key gets the same API key again, on the same UTC day.
    ///
    /// # Errors
    /// As [`Self::mint`], and `rate-limited`.
    pub async fn mint_free(
        &self,
        ctx: &Context,
        email: &str,
        address: IpAddr,
        idempotency_key: Option<&str>,
    ) -> Result<MintedKey, Problem> {
        let email_hash = self.email_hash(email)?;
        let (now_ms, subject) = (ctx.clock.now_ms(), address_subject(address));
        let day = now_ms.div_euclid(DAY_MS);
        let key = match idempotency_key {
            None => Key::random(),
            Some(text) => {
                let parts = [b"mint".as_slice(), text.as_bytes(), email_hash.as_bytes(), subject.as_bytes(), &day.to_be_bytes()];
                let key = Key::from_seed(&self.secrets.repeat(&parts));
                if let Some(row) = key_row(ctx, &key_id(&key.hash(&self.secrets))).await? {
                    return Ok(MintedKey { key, row });
                }
                key
            }
        };
        let taken = [
            (format!("mint/{subject}/{day}"), MINTS_PER_ADDRESS_MAX, "address"),
            (format!("mint/email/{email_hash}/{day}"), KEYS_PER_EMAIL_MAX as i64, "e-mail address"),
        ];
        if self.live_keys_of(ctx, &email_hash).await? >= KEYS_PER_EMAIL_MAX {
            return Err(Problem::new(
                ErrorCode::RateLimited,
                format!("this e-mail address has {KEYS_PER_EMAIL_MAX} keys already; use one of them"),
            ));
        }
        for (name, max, of) in taken {
            let expires_ms = (day + 2) * DAY_MS;
            if ctx.store.coordination().take(&name, 1, max, now_ms, expires_ms).await.map_err(store_problem)? == 0 {
                let rest_s = u64::try_from(((day + 1) * DAY_MS - now_ms + 999) / 1_000).unwrap_or(1);
                let detail = format!("this {of} made {max} keys today; use one of them, or come back tomorrow");
                return Err(Problem::new(ErrorCode::RateLimited, detail).retry_after(rest_s));
            }
        }
        self.mint_key(ctx, key, Tier::Free, email_hash).await
    }

    /// All keys, in the order of their ids, ended ones too.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn list(&self, ctx: &Context) -> Result<Vec<ApiKey>, Problem> {
        let view = ctx.live(&accounts::VIEW).await?;
        let (mut keys, mut scan) = (Vec::new(), view.scan(&accounts::KEYS, Span::default()));
        loop {
            let rows = scan.next(PAGE_ROWS).await.map_err(store_problem)?;
            if rows.is_empty() {
                return Ok(keys);
            }
            for (_, bytes) in &rows {
                keys.push(read_row(bytes)?);
            }
        }
    }

    /// Gives a key's account a new key; the old one works for a day more.
    ///
    /// # Errors
    /// `not-found` for a key that is unknown or ended, `parameter-invalid` for one rotated before; as [`Self::mint`] else.
    pub async fn rotate(&self, ctx: &Context, id: &str) -> Result<RotatedKey, Problem> {
        let old = live_key(ctx, id).await?;
        if old.ends_at != 0 {
            return Err(Problem::parameter("id", format!("key {id} has been rotated already")));
        }
        let key = Key::random();
        let hash = key.hash(&self.secrets);
        let rotate = AccountCommand {
            verb: "rotate".to_owned(),
            key_id: old.id.clone(),
            key_hash: hash.to_string(),
            new_key_id: key_id(&hash),
            account: old.account.clone(),
            tier: old.tier.clone(),
            email_hash: old.email_hash.clone(),
            ..AccountCommand::default()
        };
        let new_id = rotate.new_key_id.clone();
        command(ctx, &accounts::VIEW, id, Once::No, &rotate).await?;
        self.forget(id);
        let old = read_back(ctx, id).await?;
        // A key that another command ended meanwhile has no heir.
        let row = key_row(ctx, &new_id).await?.ok_or_else(|| no_such_key(id))?;
        Ok(RotatedKey { minted: MintedKey { key, row }, old })
    }

    /// Ends a key now.
    ///
    /// # Errors
    /// `not-found` for a key that is unknown or ended; as [`Self::mint`] else.
    pub async fn revoke(&self, ctx: &Context, id: &str) -> Result<(), Problem> {
        let old = live_key(ctx, id).await?;
        let revoke =
            AccountCommand { verb: "revoke".to_owned(), key_id: old.id, account: old.account, tier: old.tier, ..AccountCommand::default() };
        command(ctx, &accounts::VIEW, id, Once::No, &revoke).await?;
        self.forget(id);
        Ok(())
    }

    fn email_hash(&self, email: &str) -> Result<String, Problem> {
        let email = checked_email(email).map_err(|reason| Problem::parameter("email", reason))?;
        Ok(hex(&self.secrets.email(&email)))
    }

    async fn mint_key(&self, ctx: &Context, key: Key, tier: Tier, email_hash: String) -> Result<MintedKey, Problem> {
        let hash = key.hash(&self.secrets);
        let id = key_id(&hash);
        let mint = AccountCommand {
            verb: "mint".to_owned(),
            key_id: id.clone(),
            key_hash: hash.to_string(),
            account: account_id(),
            tier: tier.as_str().to_owned(),
            email_hash,
            ..AccountCommand::default()
        };
        // The same request, sent twice: the first one's key is theirs both.
        command(ctx, &accounts::VIEW, &id, Once::Yes, &mint).await?;
        Ok(MintedKey { row: read_back(ctx, &id).await?, key })
    }

    /// How many keys of an e-mail address work.
    async fn live_keys_of(&self, ctx: &Context, email_hash: &str) -> Result<usize, Problem> {
        let view = ctx.live(&accounts::VIEW).await?;
        let range = Range { prefix: key![email_hash], after: None, from: None, limit: KEYS_LOOKED_AT, reverse: false };
        let rows = view.range(&accounts::BY_EMAIL, range).await.map_err(store_problem)?;
        let ids: Vec<RowKey> =
            rows.into_iter().filter_map(|(mut key, _)| key.pop().filter(|id| matches!(id, Datum::Text(_)))).map(|id| vec![id]).collect();
        let now_ms = ctx.clock.now_ms();
        let mut live = 0;
        for bytes in view.get_many(&accounts::KEYS, &ids).await.map_err(store_problem)?.into_iter().flatten() {
            let row = read_row(&bytes)?;
            live += usize::from(row.ends_at == 0 || row.ends_at > now_ms);
        }
        Ok(live)
    }
}

/// A key that works.
async fn live_key(ctx: &Context, id: &str) -> Result<ApiKey, Problem> {
    let row = key_row(ctx, id).await?.filter(|row| row.ends_at == 0 || row.ends_at > ctx.clock.now_ms());
    row.ok_or_else(|| no_such_key(id))
}

fn no_such_key(id: &str) -> Problem {
    Problem::new(ErrorCode::NotFound, format!("there is no key {id} that works"))
}

/// The row that a command made.
async fn read_back(ctx: &Context, id: &str) -> Result<ApiKey, Problem> {
    key_row(ctx, id).await?.ok_or_else(|| {
        tracing::error!(key = id, "a command was projected and left no row");
        Problem::new(ErrorCode::Internal, "the command left no key")
    })
}
