//! The keys of an account, which its owner lists, creates, rotates and revokes with any of them.
//!
//! Promises: a caller finds only the keys of the own account, and no key itself, which is not stored. All keys of an account share its tier and its quota.
//! The last key of an account ends only if the caller says that this is meant: nobody could sign in any more.

use operation::Caller;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use operation::tiers::{KEYS_EVER_MAX, KEYS_PER_ACCOUNT_MAX, NEW_KEYS_PER_DAY_MAX};
use proofs::hash::Hash32;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::tables::Key as RowKey;
use schemas::views::accounts::{self, ApiKey};
use view_store::Range;

use super::commands::{Owner, count_on_day, no_such_key};
use super::keys::{Key, key_id};
use super::saved_items::idempotency_mismatch;
use super::{Access, MintOutcome, is_working, key_row, read_row};

/// Whether a key works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It works, and has no end.
    Working,
    /// It was replaced, and still works for some time.
    Ending,
    /// It was revoked, or replaced some time ago.
    Ended,
    /// It is a free key that was not used for too long.
    Expired,
}

impl KeyState {
    /// The name in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Ending => "ending",
            Self::Ended => "ended",
            Self::Expired => "expired",
        }
    }
}

/// The state of a key at a time, in milliseconds since 1970.
#[must_use]
pub fn key_state(row: &ApiKey, now_ms: i64) -> KeyState {
    match (is_working(row, now_ms), row.ends_at) {
        (true, 0) => KeyState::Working,
        (true, _) => KeyState::Ending,
        (false, 0) => KeyState::Expired,
        (false, _) => KeyState::Ended,
    }
}

/// A rotated key, and the key that replaces it.
#[derive(Clone, Debug)]
pub struct RotatedAccountKey {
    /// The new key.
    pub new: MintOutcome,
    /// The old key, with the time when it stops working.
    pub old: ApiKey,
}

/// A revoked key.
#[derive(Clone, Debug)]
pub struct RevokedKey {
    /// The row of the key.
    pub row: ApiKey,
    /// How many other keys of the account work and have no end.
    pub working: usize,
}

impl Access {
    /// The keys of the caller's account, also those that ended, the newest first.
    ///
    /// # Errors
    /// `unavailable` when the rows cannot be read.
    pub async fn account_keys(&self, ctx: &Context, caller: &Caller) -> Result<Vec<ApiKey>, Problem> {
        let view = ctx.live(&accounts::VIEW).await?;
        let prefix = key![caller.account.as_str()];
        let range = Range { prefix, after: None, from: None, limit: KEYS_EVER_MAX + 1, reverse: false };
        let found = view.range(&accounts::BY_ACCOUNT, range).await.map_err(store_problem)?;
        let mut ids: Vec<RowKey> = found.into_iter().filter_map(|(mut row_key, _)| row_key.pop()).map(|id| vec![id]).collect();
        // A key of an older version is in the index once it was used.
        let own = key![caller.key_id.as_str()];
        if !ids.contains(&own) {
            ids.push(own);
        }
        let rows = view.get_many(&accounts::KEYS, &ids).await.map_err(store_problem)?;
        let all = rows.iter().flatten().map(|bytes| read_row(bytes)).collect::<Result<Vec<ApiKey>, Problem>>()?;
        let mut own: Vec<ApiKey> = all.into_iter().filter(|row| row.account == caller.account).collect();
        own.sort_by(|one, other| (other.minted_at, &other.id).cmp(&(one.minted_at, &one.id)));
        Ok(own)
    }

    /// Mints another key for the caller's account, of the tier of the caller's key. A repeated request mints nothing and returns the row of the first key.
    ///
    /// # Errors
    /// `limit-reached`, `rate-limited`, `unavailable`.
    pub async fn mint_another(&self, ctx: &Context, caller: &Caller, idempotency_key: Option<&str>) -> Result<MintOutcome, Problem> {
        let (key, id) = named_key(ctx, caller, "mint another", idempotency_key);
        if let Some(row) = own_key(ctx, caller, &id).await? {
            return Ok(MintOutcome::Repeated(row));
        }
        let all = self.account_keys(ctx, caller).await?;
        let now_ms = ctx.clock.now_ms();
        let working = all.iter().filter(|row| key_state(row, now_ms) == KeyState::Working).count();
        if working >= KEYS_PER_ACCOUNT_MAX {
            let detail = format!("the account has {working} keys that work, the most allowed; revoke one that is not used");
            return Err(Problem::new(ErrorCode::LimitReached, detail));
        }
        self.count_new_key(ctx, caller, all.len()).await?;
        let own = all.into_iter().find(|row| row.id == caller.key_id).ok_or_else(|| no_such_key(&caller.key_id))?;
        Ok(self.mint_key(ctx, id, key, Owner::of(own)).await?.outcome(ctx))
    }

    /// Replaces a key of the caller's account. The old key works for so many seconds more. A repeated request replaces nothing and returns the rows.
    ///
    /// # Errors
    /// `not-found` for a key of nobody, of somebody else, or that does not work any more; `parameter-invalid` for one that was rotated before;
    /// `idempotency-mismatch`, `limit-reached`, `rate-limited`, `unavailable`.
    pub async fn rotate_own(
        &self,
        ctx: &Context,
        caller: &Caller,
        id: &str,
        overlap_s: i64,
        idempotency_key: Option<&str>,
    ) -> Result<RotatedAccountKey, Problem> {
        let old = own_key(ctx, caller, id).await?.ok_or_else(|| no_such_key(id))?;
        let (key, new_id) = named_key(ctx, caller, "rotate", idempotency_key);
        if let Some(row) = own_key(ctx, caller, &new_id).await? {
            return repeated_rotation(row, old, overlap_s);
        }
        if !is_working(&old, ctx.clock.now_ms()) {
            return Err(no_such_key(id));
        }
        if old.ends_at == 0 {
            let ever = self.account_keys(ctx, caller).await?.len();
            self.count_new_key(ctx, caller, ever).await?;
        }
        let rotated = self.replace_key(ctx, old, key, &new_id, Some(overlap_s)).await?;
        Ok(RotatedAccountKey { new: rotated.minted.outcome(ctx), old: rotated.old })
    }

    /// Revokes a key of the caller's account. A key that does not work any more stays as it is.
    ///
    /// # Errors
    /// `not-found` for a key of nobody or of somebody else; `parameter-invalid` about `last` if no other key would work from then on, unless the caller says
    /// that this `is_meant`; `unavailable`.
    pub async fn revoke_own(&self, ctx: &Context, caller: &Caller, id: &str, is_meant: bool) -> Result<RevokedKey, Problem> {
        let row = own_key(ctx, caller, id).await?.ok_or_else(|| no_such_key(id))?;
        let now_ms = ctx.clock.now_ms();
        let all = self.account_keys(ctx, caller).await?;
        let working = all.iter().filter(|other| other.id != id && key_state(other, now_ms) == KeyState::Working).count();
        if !is_working(&row, now_ms) {
            return Ok(RevokedKey { row, working });
        }
        if working == 0 && !is_meant {
            let detail = "this is the last key of the account that works and has no end; without it nobody reaches the saved filters, watches and webhooks. \
                          Create another key first, or send last=true";
            return Err(Problem::parameter("last", detail));
        }
        self.end_key(ctx, row).await?;
        let row = key_row(ctx, id).await?.ok_or_else(|| no_such_key(id))?;
        Ok(RevokedKey { row, working })
    }

    /// Counts a key that the account is about to create.
    async fn count_new_key(&self, ctx: &Context, caller: &Caller, ever: usize) -> Result<(), Problem> {
        if ever >= KEYS_EVER_MAX {
            let detail = format!(
                "the account has had {KEYS_EVER_MAX} keys, the most allowed; the operator of this server can mint a key of a new account"
            );
            return Err(Problem::new(ErrorCode::LimitReached, detail));
        }
        let now_ms = ctx.clock.now_ms();
        let subject = format!("new-keys/{}", caller.account);
        let Some(rest_s) = count_on_day(ctx, &subject, NEW_KEYS_PER_DAY_MAX, now_ms).await? else { return Ok(()) };
        let detail = format!("the account created {NEW_KEYS_PER_DAY_MAX} keys today, the most allowed; try again tomorrow");
        Err(Problem::new(ErrorCode::RateLimited, detail).retry_after(rest_s))
    }
}

/// A random key and its id, which is the same for each repetition of a request with an idempotency key.
fn named_key(ctx: &Context, caller: &Caller, what: &str, idempotency_key: Option<&str>) -> (Key, String) {
    let key = Key::random();
    let id = match idempotency_key {
        Some(text) => key_id(&Hash32(ctx.secrets.repeat(&[what.as_bytes(), text.as_bytes(), caller.account.as_bytes()]))),
        None => key_id(&key.hash(&ctx.secrets)),
    };
    (key, id)
}

/// The row of a key of the caller's account.
async fn own_key(ctx: &Context, caller: &Caller, id: &str) -> Result<Option<ApiKey>, Problem> {
    Ok(key_row(ctx, id).await?.filter(|row| !caller.account.is_empty() && row.account == caller.account))
}

/// The result of a rotation whose idempotency key was used before, for this new key. The end of the old key tells whether it was the same request; a key
/// that was revoked meanwhile ended earlier.
fn repeated_rotation(new: ApiKey, old: ApiKey, overlap_s: i64) -> Result<RotatedAccountKey, Problem> {
    let end = new.minted_at.saturating_add(overlap_s.saturating_mul(1_000));
    if old.ends_at == 0 || old.ends_at < new.minted_at || old.ends_at > end {
        return Err(idempotency_mismatch());
    }
    Ok(RotatedAccountKey { new: MintOutcome::Repeated(new), old })
}
