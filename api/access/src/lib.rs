//! Access control: keys, tiers, quotas, and the secrets behind them.
//!
//! Promises: the format of a key is checked before anything is looked up, and keys are compared in constant time. A revoked key stops working
//! within [`KEY_CACHED_FOR_MAX`] on every node, immediately on the node that revoked it, and its waiting calls end within five seconds. Quotas are exact
//! (see [`quota`]).

mod account_keys;
pub mod append;
pub mod commands;
mod erase;
pub mod fleets;
pub mod guard;
pub mod keys;
mod open;
mod open_tallies;
pub mod quota;
pub mod saved_items;
pub mod session;
pub mod sign;
mod subjects;
pub mod suppressed_records;
pub mod suppression;
pub mod token;
pub mod webhook;
pub mod yearly;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use operation::context::{Context, Part, store_problem, stored};
use operation::metrics::{self, RoundTask};
use operation::problem::Problem;
use operation::tiers::{self, FREE_KEY_UNUSED_DAYS_MAX, Window};
use operation::{Caller, Operation, Price};
use proofs::hash::Hash32;
use schemas::clock::DAY_MS;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::accounts::{self, AccountCommand, ApiKey, Row, Tier, hour_of};
use subtle::ConstantTimeEq;

pub use self::account_keys::{KeyState, RevokedKey, RotatedAccountKey, key_state};
use self::append::append_commands;
pub use self::commands::{MintOutcome, MintedKey, RotatedKey};
pub use self::erase::ErasedAccount;
use self::keys::Key;
pub use self::open::Open;
use self::open_tallies::OpenTallies;
use self::quota::{Quotas, Spent, address_subject};
use self::subjects::{Subject, subjects_of, times, used_up};

/// The longest time for which the row of a key may be cached. How long it is cached is a setting.
pub const KEY_CACHED_FOR_MAX: Duration = Duration::from_secs(4);
/// How often the key of a waiting call is checked. With [`KEY_CACHED_FOR_MAX`], a revoked key ends such a call within five seconds.
const KEY_CHECK_INTERVAL: Duration = Duration::from_millis(500);
const _: () = assert!(KEY_CACHED_FOR_MAX.as_millis() + KEY_CHECK_INTERVAL.as_millis() < 5_000, "a waiting call ends too late");
/// The most uses of keys that are recorded per batch; the others are recorded with the next batch.
const USES_PER_BATCH_MAX: usize = 2_000;
/// How often uses of keys are recorded.
pub const USE_RECORDING_INTERVAL: Duration = Duration::from_secs(60);
/// The most rows of keys in the cache.
const KEYS_CACHED_MAX: usize = 10_000;

/// The credentials of a request.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The API key, from whichever header or parameter.
    pub key: Option<String>,
}

/// An admitted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The caller.
    pub caller: Caller,
    /// The header `RateLimit`; empty if the call does not count against a quota.
    pub rate_limit: String,
    /// The header `RateLimit-Policy`; empty if the call does not count against a quota.
    pub rate_limit_policy: String,
    /// Whether the call must be paid for.
    pub must_pay: bool,
}

/// What is left of the day's quota of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The caller.
    pub caller: Caller,
    /// The most calls of a UTC day.
    pub calls_max: i64,
    /// How many of them are left.
    pub remaining: i64,
    /// Seconds until the next day begins.
    pub reset_s: u64,
}

/// Calls that were counted and can be refunded: subject, window, and when they were counted (milliseconds since 1970).
#[derive(Debug, Default)]
pub struct Refundable(Vec<(String, Window, i64)>);

/// Keys, tiers, quotas, and the secrets behind cursors.
#[derive(Default)]
pub struct Access {
    cached: Mutex<HashMap<Hash32, (Instant, Arc<ApiKey>)>>,
    quotas: Quotas,
    /// Ids of keys whose use in this hour is not recorded yet.
    used: Mutex<BTreeSet<String>>,
    /// Answers without a key.
    open: OpenTallies,
}

impl Part for Access {}

impl Access {
    /// Admits a call of an operation. An admitted call counts against the quota, unless it `is_continuation` of a call that was counted, or comes without a
    /// key from this machine and the settings do not limit those.
    ///
    /// # Errors
    /// `key-invalid`, `tier-too-low`, `rate-limited` with the seconds to the next window, `unavailable`.
    pub async fn admit(
        &self,
        ctx: &Context,
        credentials: Credentials,
        address: IpAddr,
        operation: &Operation,
        is_continuation: bool,
    ) -> Result<Admission, Problem> {
        let caller = self.caller(ctx, credentials, address).await?;
        if let Price::Tier(least) = operation.price
            && caller.tier < least
        {
            let needs = format!("{} needs a key of tier", operation.name);
            return Err(ctx.settings.tier_too_low(&needs, least, &caller.tier_remark()));
        }
        if let Price::PerCall { free_from, .. } = operation.price
            && caller.tier < free_from
        {
            return Ok(Admission { caller, rate_limit: String::new(), rate_limit_policy: String::new(), must_pay: true });
        }
        let is_unlimited = ctx.settings.is_loopback_unlimited && caller.key_id.is_empty() && address.to_canonical().is_loopback();
        if !operation.counted || is_continuation || is_unlimited {
            return Ok(Admission { caller, rate_limit: String::new(), rate_limit_policy: String::new(), must_pay: false });
        }
        let limits = ctx.settings.tiers.of(caller.tier);
        let subjects = if caller.key_id.is_empty() { subjects_of("", address) } else { vec![(caller.account.clone(), 1)] };
        let mut policy = format!("\"day\";q={};w={}", limits.day.calls_max, limits.day.length_s);
        if let Some(minute) = limits.minute {
            policy.push_str(&format!(", \"minute\";q={};w={}", minute.calls_max, minute.length_s));
        }
        let spend = async |window| {
            self.spend_each(ctx, &subjects, window).await.map_err(|problem| problem.header("ratelimit-policy", policy.as_str()))
        };
        if let Some(minute) = limits.minute {
            spend(minute).await?;
        }
        let day = spend(limits.day).await?;
        let rate_limit = format!("\"day\";r={};t={}", day.remaining, day.reset_s);
        Ok(Admission { caller, rate_limit, rate_limit_policy: policy, must_pay: false })
    }

    /// Authenticates a caller and says what is left of the day's quota. Uses no call.
    ///
    /// # Errors
    /// `key-invalid`, `unavailable`.
    pub async fn usage(&self, ctx: &Context, credentials: Credentials, address: IpAddr) -> Result<Usage, Problem> {
        let caller = self.caller(ctx, credentials, address).await?;
        let day = ctx.settings.tiers.of(caller.tier).day;
        let subject = if caller.key_id.is_empty() { address_subject(address) } else { caller.account.clone() };
        let left = self.quotas.look(&ctx.store, &subject, day, ctx.clock.now_ms()).await.map_err(store_problem)?;
        Ok(Usage { caller, calls_max: day.calls_max, remaining: left.remaining, reset_s: left.reset_s })
    }

    /// Admits an unpaid call of an operation that must be paid for. Such calls have a generous limit per address.
    ///
    /// # Errors
    /// `rate-limited`, `unavailable`.
    pub async fn admit_unpaid(&self, ctx: &Context, address: IpAddr) -> Result<(), Problem> {
        self.spend_each(ctx, &subjects_of("unpaid/", address), tiers::UNPAID).await.map(drop)
    }

    /// Admits a call with a payment before the payment is read. Such calls have a limit per address that is higher than that of unpaid calls. The call
    /// is refunded unless the payment is refused.
    ///
    /// # Errors
    /// `rate-limited`, `unavailable`.
    pub async fn admit_call_with_payment(&self, ctx: &Context, address: IpAddr) -> Result<Refundable, Problem> {
        let mut spent = Refundable::default();
        self.spend_for(ctx, &mut spent, subjects_of("with-payment/", address), tiers::CALLS_WITH_PAYMENT).await?;
        Ok(spent)
    }

    /// Admits a payment before the facilitator is asked about it. Payments that are refused or not settled are limited per address and per payer; the
    /// payment is refunded when it is settled.
    ///
    /// # Errors
    /// `rate-limited`, `unavailable`.
    pub async fn admit_payment(&self, ctx: &Context, address: IpAddr, payer: &str) -> Result<Refundable, Problem> {
        let mut spent = Refundable::default();
        self.spend_for(ctx, &mut spent, subjects_of("payments/", address), tiers::PAYMENTS_PER_ADDRESS).await?;
        self.spend_for(ctx, &mut spent, vec![(format!("payer/{}", payer.to_ascii_lowercase()), 1)], tiers::PAYMENTS_PER_PAYER).await?;
        Ok(spent)
    }

    /// Admits a repetition of the answer of a settled payment.
    ///
    /// # Errors
    /// `rate-limited`, `unavailable`.
    pub async fn admit_repeat(&self, ctx: &Context, payment: &str) -> Result<(), Problem> {
        self.spend(ctx, &format!("repeat/{payment}"), tiers::REPEATS).await.map(|_| ())
    }

    /// Gives back calls that were counted.
    pub async fn refund(&self, spent: Refundable) {
        for (subject, window, at_ms) in spent.0 {
            self.quotas.unspend(&subject, window, at_ms).await;
        }
    }

    async fn spend_for(&self, ctx: &Context, spent: &mut Refundable, subjects: Vec<Subject>, window: Window) -> Result<(), Problem> {
        let now_ms = ctx.clock.now_ms();
        self.spend_each(ctx, &subjects, window).await?;
        spent.0.extend(subjects.into_iter().map(|(name, factor)| (name, times(window, factor), now_ms)));
        Ok(())
    }

    /// Waits until a key stops working because it was revoked, or replaced a day ago. Never completes without a key.
    pub async fn wait_for_key_end(&self, ctx: &Context, credentials: &Credentials, address: IpAddr) {
        if credentials.key.is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(KEY_CHECK_INTERVAL).await;
            let caller = self.caller(ctx, credentials.clone(), address).await;
            metrics::count_round(RoundTask::RevokedKeys);
            // A key that cannot be looked up now may still work.
            if caller.is_err_and(|problem| problem.code == ErrorCode::KeyInvalid) {
                return;
            }
        }
    }

    /// Returns the leased calls that were not used, for a clean shutdown.
    ///
    /// # Errors
    /// When the counters cannot be reached.
    pub async fn release_all(&self, ctx: &Context) -> Result<(), view_store::Error> {
        self.quotas.release_all(&ctx.store, ctx.clock.now_ms()).await
    }

    /// Uses one call of each of the subjects. The narrowest is the first, so that one that is used up takes nothing from the wider ones; if a wider one is
    /// used up, the narrower ones get their call back. Returns what is left to all of them.
    async fn spend_each(&self, ctx: &Context, subjects: &[Subject], window: Window) -> Result<Spent, Problem> {
        let mut least: Option<Spent> = None;
        let mut taken = Refundable::default();
        for (name, factor) in subjects {
            let (own, now_ms) = (times(window, *factor), ctx.clock.now_ms());
            let spent = match self.spend(ctx, name, own).await {
                Ok(spent) => spent,
                Err(problem) => {
                    self.refund(taken).await;
                    return Err(problem);
                }
            };
            taken.0.push((name.clone(), own, now_ms));
            least = Some(least.filter(|least| least.remaining <= spent.remaining).unwrap_or(spent));
        }
        least.ok_or_else(|| Problem::new(ErrorCode::Internal, "the call has no caller"))
    }

    async fn spend(&self, ctx: &Context, subject: &str, window: Window) -> Result<Spent, Problem> {
        let spent = self.quotas.spend(&ctx.store, subject, window, ctx.clock.now_ms()).await.map_err(store_problem)?;
        if spent.allowed {
            return Ok(spent);
        }
        Err(used_up(window, spent.reset_s))
    }

    /// Authenticates the caller.
    async fn caller(&self, ctx: &Context, credentials: Credentials, address: IpAddr) -> Result<Caller, Problem> {
        let Some(text) = credentials.key else {
            return Ok(Caller { tier: Tier::Anonymous, key_id: String::new(), account: String::new(), address });
        };
        let key = parse_key(&text)?;
        let hash = key.hash(&ctx.secrets);
        let row = match self.cached_key(ctx, &hash) {
            Some(row) => row,
            None => self.read_key(ctx, hash).await?,
        };
        let now_ms = ctx.clock.now_ms();
        if row.ends_at != 0 && row.ends_at <= now_ms {
            return Err(invalid("the API key was revoked or replaced"));
        }
        if unused_until(&row).is_some_and(|until| until <= now_ms) {
            return Err(invalid(&format!(
                "the API key expired after {FREE_KEY_UNUSED_DAYS_MAX} days without use; create a new one with POST /api/keys"
            )));
        }
        let tier = Tier::from_name(&row.tier).ok_or_else(|| {
            tracing::error!(key = row.id, tier = row.tier, "a key has a tier that this version does not support");
            Problem::new(ErrorCode::Internal, "the key's tier is not supported by this version")
        })?;
        if row.last_used_at < hour_of(ctx.clock.now_ms()) {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            // If the set is full, the use is recorded with a later call.
            if used.len() < KEYS_CACHED_MAX && !used.contains(&row.id) {
                used.insert(row.id.clone());
            }
        }
        Ok(Caller { tier, key_id: row.id.clone(), account: row.account.clone(), address })
    }

    /// Records which keys were used since the last time, once per key and hour. A use that cannot be recorded is recorded with the next ones.
    ///
    /// # Errors
    /// `unavailable` when a use is not recorded, or not projected in time.
    pub async fn record_uses(&self, ctx: &Context) -> Result<(), Problem> {
        let used: Vec<String> = self.used.lock().unwrap_or_else(PoisonError::into_inner).iter().take(USES_PER_BATCH_MAX).cloned().collect();
        if used.is_empty() {
            return Ok(());
        }
        let command = |key_id: &String| AccountCommand::Used { key_id: key_id.clone() };
        let all: Vec<(String, AccountCommand)> = used.iter().map(|key_id| (key_id.clone(), command(key_id))).collect();
        let applied = append_commands(ctx, &accounts::VIEW, &all).await?;
        let recorded: BTreeSet<String> =
            used.into_iter().zip(applied).filter_map(|(key_id, is_applied)| is_applied.then_some(key_id)).collect();
        self.used.lock().unwrap_or_else(PoisonError::into_inner).retain(|key_id| !recorded.contains(key_id));
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, (_, row)| !recorded.contains(&row.id));
        Ok(())
    }

    fn cached_key(&self, ctx: &Context, hash: &Hash32) -> Option<Arc<ApiKey>> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.get(hash).filter(|(read, _)| read.elapsed() < ctx.settings.rounds.revoked_keys).map(|(_, row)| Arc::clone(row))
    }

    /// Reads the row of a key and caches it.
    async fn read_key(&self, ctx: &Context, hash: Hash32) -> Result<Arc<ApiKey>, Problem> {
        let view = ctx.live(&accounts::VIEW).await?;
        let id = view.get(&accounts::BY_HASH, &key![hash.to_string().as_str()]).await.map_err(store_problem)?;
        let row = match id.as_deref().and_then(|id| std::str::from_utf8(id).ok()) {
            Some(id) => key_row(ctx, id).await?,
            None => None,
        };
        let known = row.filter(|row| Hash32::from_hex(&row.key_hash).is_some_and(|stored| bool::from(stored.0.ct_eq(&hash.0))));
        let row = Arc::new(known.ok_or_else(|| invalid("the API key is unknown"))?);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= KEYS_CACHED_MAX {
            cached.retain(|_, (read, _)| read.elapsed() < ctx.settings.rounds.revoked_keys);
            if cached.len() >= KEYS_CACHED_MAX {
                cached.clear();
            }
        }
        cached.insert(hash, (Instant::now(), Arc::clone(&row)));
        Ok(row)
    }

    /// Removes the row of a key from the cache, so that a command takes effect immediately on this node.
    fn forget(&self, key_id: &str) {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, (_, row)| row.id != key_id);
    }
}

/// When a free key expires unless it is used: milliseconds since 1970. `None` for keys of other tiers, which do not expire.
#[must_use]
pub fn unused_until(row: &ApiKey) -> Option<i64> {
    let since = row.minted_at.max(row.last_used_at);
    (row.tier == Tier::Free.as_str()).then(|| since.saturating_add(FREE_KEY_UNUSED_DAYS_MAX * DAY_MS))
}

/// Whether a key works at a time, in milliseconds since 1970: it has neither ended nor expired.
fn is_working(row: &ApiKey, now_ms: i64) -> bool {
    (row.ends_at == 0 || row.ends_at > now_ms) && unused_until(row).is_none_or(|until| until > now_ms)
}

/// Reads the current row of a key.
async fn key_row(ctx: &Context, id: &str) -> Result<Option<ApiKey>, Problem> {
    let view = ctx.live(&accounts::VIEW).await?;
    let Some(bytes) = view.get(&accounts::KEYS, &key![id]).await.map_err(store_problem)? else { return Ok(None) };
    read_row(&bytes).map(Some)
}

/// Decodes a stored row of a key.
fn read_row(bytes: &[u8]) -> Result<ApiKey, Problem> {
    stored(&accounts::KEYS, bytes).map(|row: Row| row.record)
}

/// Reads a key.
///
/// # Errors
/// `key-invalid` if its format or checksum is wrong.
pub fn parse_key(text: &str) -> Result<Key, Problem> {
    Key::parse(text).ok_or_else(|| invalid("the API key is malformed: its format or checksum is wrong"))
}

fn invalid(detail: &str) -> Problem {
    Problem::new(ErrorCode::KeyInvalid, detail)
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
