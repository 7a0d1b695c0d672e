//! What is done to keys: each act is a command on the `accounts` topic, and answers once the accounts view has passed it.

use std::net::IpAddr;

use schemas::error_code::ErrorCode;
use schemas::hash::{Hash32, hex};
use schemas::views::accounts::{self, AccountCommand, ApiKey, Tier};
use view_store::store::Span;

use super::append::{Once, command};
use super::keys::{Key, account_id, checked_email, key_id};
use super::quota::minting_subject;
use super::{Access, DAY_MS, is_working, key_row, read_row};
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::tiers::MINTS_PER_ADDRESS_MAX;

/// Rows of one page of a listing.
pub(super) const PAGE_ROWS: usize = 500;

/// A key just made. The only time that it is shown.
#[derive(Clone, Debug)]
pub struct MintedKey {
    /// The key.
    pub key: Key,
    /// How it stands.
    pub row: ApiKey,
}

/// What became of a request for a free key.
#[derive(Clone, Debug)]
pub enum FreeKey {
    /// A key was minted, and is shown this once.
    Minted(MintedKey),
    /// The request was answered before: the row of the key that it minted then, which is not shown again.
    Repeated(ApiKey),
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
        let email_hash = if email.trim().is_empty() { String::new() } else { Self::email_hash(ctx, email)? };
        let key = Key::random();
        let id = key_id(&key.hash(&ctx.secrets));
        self.mint_key(ctx, id, key, tier, email_hash).await
    }

    /// Mints a free key for a caller. How many is limited by the caller's network address alone: anybody can type a stranger's e-mail address,
    /// and must not use up a limit of theirs. A request repeated on the same UTC day with the same idempotency key mints nothing: it gets the
    /// row of the key, never the key, which is random and kept nowhere.
    ///
    /// # Errors
    /// As [`Self::mint`], and `rate-limited`.
    pub async fn mint_free(&self, ctx: &Context, email: &str, address: IpAddr, idempotency_key: Option<&str>) -> Result<FreeKey, Problem> {
        let email_hash = Self::email_hash(ctx, email)?;
        let (now_ms, subject) = (ctx.clock.now_ms(), minting_subject(address));
        let day = now_ms.div_euclid(DAY_MS);
        let key = Key::random();
        let id = match idempotency_key {
            None => key_id(&key.hash(&ctx.secrets)),
            Some(text) => {
                let parts = [b"mint".as_slice(), text.as_bytes(), email_hash.as_bytes(), subject.as_bytes(), &day.to_be_bytes()];
                let id = key_id(&Hash32(ctx.secrets.repeat(&parts)));
                if let Some(row) = key_row(ctx, &id).await? {
                    return Ok(FreeKey::Repeated(row));
                }
                id
            }
        };
        let (name, expires_ms) = (format!("mint/{subject}/{day}"), (day + 2) * DAY_MS);
        let taken =
            ctx.store.coordination().add_to_counter(&name, 1, MINTS_PER_ADDRESS_MAX, now_ms, expires_ms).await.map_err(store_problem)?;
        if taken == 0 {
            let rest_s = u64::try_from(((day + 1) * DAY_MS - now_ms + 999) / 1_000).unwrap_or(1);
            let detail = format!("this address made {MINTS_PER_ADDRESS_MAX} keys today; use one of them, or come back tomorrow");
            return Err(Problem::new(ErrorCode::RateLimited, detail).retry_after(rest_s));
        }
        let minted = self.mint_key(ctx, id, key, Tier::Free, email_hash).await?;
        // Of two copies of a request that come at once, the first to be recorded has minted the key.
        let is_own = minted.row.key_hash == minted.key.hash(&ctx.secrets).to_string();
        Ok(if is_own { FreeKey::Minted(minted) } else { FreeKey::Repeated(minted.row) })
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
        let hash = key.hash(&ctx.secrets);
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

    fn email_hash(ctx: &Context, email: &str) -> Result<String, Problem> {
        let email = checked_email(email).map_err(|reason| Problem::parameter("email", reason))?;
        Ok(hex(&ctx.secrets.email(&email)))
    }

    /// Mints a key under an id. The row answered is of another key where one was minted under that id before.
    async fn mint_key(&self, ctx: &Context, id: String, key: Key, tier: Tier, email_hash: String) -> Result<MintedKey, Problem> {
        let mint = AccountCommand {
            verb: "mint".to_owned(),
            key_id: id.clone(),
            key_hash: key.hash(&ctx.secrets).to_string(),
            account: account_id(),
            tier: tier.as_str().to_owned(),
            email_hash,
            ..AccountCommand::default()
        };
        command(ctx, &accounts::VIEW, &id, Once::Yes, &mint).await?;
        Ok(MintedKey { row: read_back(ctx, &id).await?, key })
    }
}

/// A key that works.
async fn live_key(ctx: &Context, id: &str) -> Result<ApiKey, Problem> {
    let row = key_row(ctx, id).await?.filter(|row| is_working(row, ctx.clock.now_ms()));
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
