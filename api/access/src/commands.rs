//! Commands on API keys. Each is appended to the `accounts` topic and answered once the accounts view has processed it.

use std::net::IpAddr;

use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::tiers::MINTS_PER_ADDRESS_MAX;
use proofs::hash::{Hash32, hex};
use schemas::error_code::ErrorCode;
use schemas::views::accounts::{self, AccountCommand, ApiKey, KeyOfAccount, NewKey, Tier};
use view_store::store::Span;

use super::append::{CommandPolicy, append_command};
use super::keys::{Key, account_id, checked_email, key_id};
use super::quota::minting_subject;
use super::saved_items::idempotency_mismatch;
use super::{Access, DAY_MS, is_working, key_row, read_row};

/// How many rows are read per page.
pub(super) const PAGE_ROWS: usize = 500;

/// A new key. It is shown only this once.
#[derive(Clone, Debug)]
pub struct MintedKey {
    /// The key.
    pub key: Key,
    /// The row of the key.
    pub row: ApiKey,
}

/// The result of a request for a key.
#[derive(Clone, Debug)]
pub enum MintOutcome {
    /// A key was minted, and is shown this once.
    Minted(MintedKey),
    /// The request is a repetition: the row of the key that was minted before. The key itself is not shown again.
    Repeated(ApiKey),
}

/// A key and its replacement.
#[derive(Clone, Debug)]
pub struct RotatedKey {
    /// The new key.
    pub minted: MintedKey,
    /// The old key, with the time when it stops working.
    pub old: ApiKey,
}

impl MintedKey {
    /// What the request for the key comes to: of concurrent copies of a request, the first to be recorded mints the key.
    pub(super) fn outcome(self, ctx: &Context) -> MintOutcome {
        let is_own = self.row.key_hash == self.key.hash(&ctx.secrets).to_string();
        if is_own { MintOutcome::Minted(self) } else { MintOutcome::Repeated(self.row) }
    }
}

impl Access {
    /// Mints a key of any tier. The e-mail address may be empty; only its hash is stored.
    ///
    /// # Errors
    /// `parameter-invalid` for the address or tier; `unavailable` when the command is not projected in time.
    pub async fn mint(&self, ctx: &Context, tier: Tier, email: &str) -> Result<MintedKey, Problem> {
        if tier == Tier::Anonymous {
            return Err(Problem::parameter("tier", "anonymous callers have no key"));
        }
        let email_hash = if email.trim().is_empty() { String::new() } else { Self::email_hash(ctx, email)? };
        let key = Key::random();
        let id = key_id(&key.hash(&ctx.secrets));
        self.mint_key(ctx, id, key, Owner { account: account_id(), tier: tier.as_str().to_owned(), email_hash }).await
    }

    /// Mints a free key for a caller. The number of keys is limited by network address only, because a limit by e-mail address could be used up by
    /// strangers. A request that is repeated on the same UTC day with the same idempotency key mints nothing and returns the row of the first key,
    /// but not the key, which is random and not stored.
    ///
    /// # Errors
    /// As [`Self::mint`], `rate-limited`, and `idempotency-mismatch` if the idempotency key was used for another e-mail address.
    pub async fn mint_free(
        &self,
        ctx: &Context,
        email: &str,
        address: IpAddr,
        idempotency_key: Option<&str>,
    ) -> Result<MintOutcome, Problem> {
        let email_hash = Self::email_hash(ctx, email)?;
        let (now_ms, subject) = (ctx.clock.now_ms(), minting_subject(address));
        let day = now_ms.div_euclid(DAY_MS);
        let key = Key::random();
        let id = match idempotency_key {
            None => key_id(&key.hash(&ctx.secrets)),
            Some(text) => {
                let parts = [b"mint".as_slice(), text.as_bytes(), subject.as_bytes(), &day.to_be_bytes()];
                let id = key_id(&Hash32(ctx.secrets.repeat(&parts)));
                if let Some(row) = key_row(ctx, &id).await? {
                    return repeated(row, &email_hash);
                }
                id
            }
        };
        if let Some(rest_s) = count_on_day(ctx, &format!("mint/{subject}"), MINTS_PER_ADDRESS_MAX, now_ms).await? {
            let detail = format!(
                "this network address created {MINTS_PER_ADDRESS_MAX} keys today, the most allowed; use one of them, or try again tomorrow"
            );
            return Err(Problem::new(ErrorCode::RateLimited, detail).retry_after(rest_s));
        }
        let owner = Owner { account: account_id(), tier: Tier::Free.as_str().to_owned(), email_hash: email_hash.clone() };
        let minted = self.mint_key(ctx, id, key, owner).await?;
        match minted.outcome(ctx) {
            MintOutcome::Repeated(row) => repeated(row, &email_hash),
            minted @ MintOutcome::Minted(_) => Ok(minted),
        }
    }

    /// Lists all keys, including revoked and replaced ones, sorted by id.
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

    /// Gives a key's account a new key. The old key works for one more day.
    ///
    /// # Errors
    /// `not-found` for a key that is unknown or does not work any more, `parameter-invalid` for one that was rotated before; otherwise as [`Self::mint`].
    pub async fn rotate(&self, ctx: &Context, id: &str) -> Result<RotatedKey, Problem> {
        let old = live_key(ctx, id).await?;
        let key = Key::random();
        let new_id = key_id(&key.hash(&ctx.secrets));
        self.replace_key(ctx, old, key, &new_id, None).await
    }

    /// Replaces a key that works by a new one. The old one works for so many seconds more, or for a day.
    pub(super) async fn replace_key(
        &self,
        ctx: &Context,
        old: ApiKey,
        key: Key,
        new_id: &str,
        overlap_s: Option<i64>,
    ) -> Result<RotatedKey, Problem> {
        let id = old.id.clone();
        if old.ends_at != 0 {
            return Err(Problem::parameter("id", format!("key {id} has been rotated already")));
        }
        let successor = Owner::of(old).new_key(ctx, new_id.to_owned(), &key);
        let rotate = AccountCommand::Rotate { key_id: id.clone(), overlap_s, successor };
        append_command(ctx, &accounts::VIEW, &id, CommandPolicy::Always, &rotate).await?;
        self.forget(&id);
        let old = read_back(ctx, &id).await?;
        // If another command ended the key in the meantime, it was not replaced.
        let row = key_row(ctx, new_id).await?.ok_or_else(|| no_such_key(&id))?;
        Ok(RotatedKey { minted: MintedKey { key, row }, old })
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// `not-found` for a key that is unknown or does not work any more; otherwise as [`Self::mint`].
    pub async fn revoke(&self, ctx: &Context, id: &str) -> Result<(), Problem> {
        let old = live_key(ctx, id).await?;
        self.end_key(ctx, old).await
    }

    /// Ends a key, whose row this is.
    pub(super) async fn end_key(&self, ctx: &Context, old: ApiKey) -> Result<(), Problem> {
        let id = old.id.clone();
        let revoke = AccountCommand::Revoke(KeyOfAccount { key_id: old.id, account: old.account, tier: old.tier });
        append_command(ctx, &accounts::VIEW, &id, CommandPolicy::Always, &revoke).await?;
        self.forget(&id);
        Ok(())
    }

    fn email_hash(ctx: &Context, email: &str) -> Result<String, Problem> {
        let email = checked_email(email).map_err(|reason| Problem::parameter("email", reason))?;
        Ok(hex(&ctx.secrets.email(&email)))
    }

    /// Mints a key under an id. Returns the row of another key if one was minted under that id before.
    pub(super) async fn mint_key(&self, ctx: &Context, id: String, key: Key, owner: Owner) -> Result<MintedKey, Problem> {
        let mint = AccountCommand::Mint(owner.new_key(ctx, id.clone(), &key));
        append_command(ctx, &accounts::VIEW, &id, CommandPolicy::OncePerSubject, &mint).await?;
        Ok(MintedKey { row: read_back(ctx, &id).await?, key })
    }
}

/// Whose key is created, and of which tier.
pub(super) struct Owner {
    pub(super) account: String,
    pub(super) tier: String,
    pub(super) email_hash: String,
}

impl Owner {
    /// The owner of a key.
    pub(super) fn of(key: ApiKey) -> Self {
        Self { account: key.account, tier: key.tier, email_hash: key.email_hash }
    }

    fn new_key(self, ctx: &Context, id: String, key: &Key) -> NewKey {
        let Self { account, tier, email_hash } = self;
        NewKey { id, key_hash: key.hash(&ctx.secrets).to_string(), account, tier, email_hash, key_end: key.end().to_owned() }
    }
}

/// Counts one more use by a subject that has so many a day (UTC). Returns the seconds until the next day if none was left.
pub(super) async fn count_on_day(ctx: &Context, subject: &str, uses_max: i64, now_ms: i64) -> Result<Option<u64>, Problem> {
    let day = now_ms.div_euclid(DAY_MS);
    let (name, expires_ms) = (format!("{subject}/{day}"), (day + 2) * DAY_MS);
    let taken = ctx.store.coordination().add_to_counter(&name, 1, uses_max, now_ms, expires_ms).await.map_err(store_problem)?;
    Ok((taken <= 0).then(|| u64::try_from(((day + 1) * DAY_MS - now_ms + 999) / 1_000).unwrap_or(1)))
}

/// The result of a request whose idempotency key was used before, for this key. An erased key has no address to compare.
fn repeated(row: ApiKey, email_hash: &str) -> Result<MintOutcome, Problem> {
    if row.email_hash.is_empty() || row.email_hash == email_hash { Ok(MintOutcome::Repeated(row)) } else { Err(idempotency_mismatch()) }
}

/// Finds a key that works.
async fn live_key(ctx: &Context, id: &str) -> Result<ApiKey, Problem> {
    let row = key_row(ctx, id).await?.filter(|row| is_working(row, ctx.clock.now_ms()));
    row.ok_or_else(|| no_such_key(id))
}

pub(super) fn no_such_key(id: &str) -> Problem {
    Problem::new(ErrorCode::NotFound, format!("there is no working key {id}")).about("id")
}

/// The row that a command created.
async fn read_back(ctx: &Context, id: &str) -> Result<ApiKey, Problem> {
    key_row(ctx, id).await?.ok_or_else(|| {
        tracing::error!(key = id, "a projected command created no row");
        Problem::new(ErrorCode::Internal, "the command created no key")
    })
}
