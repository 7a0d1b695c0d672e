//! Answers that need no key and count against no quota. Each kind has a limit per address, so that no caller makes the server work without a limit.
//! ops/docs/security.md says what each kind costs.
//!
//! The limits protect a process, so each process counts by itself, in memory: probes and documents are answered while the store is not available.

use std::net::IpAddr;

use operation::context::Context;
use operation::problem::Problem;
use operation::tiers::Window;
use schemas::error_code::ErrorCode;

use crate::Access;
use crate::open_tallies::MINUTE_MS;
use crate::subjects::{subjects_of, used_up};

/// A kind of answer that needs no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Liveness and readiness.
    Probe,
    /// A page or a document that is rendered at start.
    Document,
    /// A file of a service: a checkpoint, a tile, the page of a record.
    File,
    /// A page of the site, which is made from the answers of operations, or its stream of changes.
    Page,
    /// A checkpoint that is submitted to this witness.
    Checkpoint,
    /// A path that does not exist.
    UnknownPath,
    /// A message of MCP that calls no operation.
    Message,
    /// A call of an operation that counts against no quota.
    Call,
    /// Such a call as of an earlier time, whose answer is not cached.
    PastCall,
    /// The refusal of a call that counts against no quota, for example because of an invalid argument or key.
    Refusal,
}

impl Open {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Probe,
        Self::Document,
        Self::File,
        Self::Page,
        Self::Checkpoint,
        Self::UnknownPath,
        Self::Message,
        Self::Call,
        Self::PastCall,
        Self::Refusal,
    ];

    /// The name of the kind in the counters of addresses.
    fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Document => "document",
            Self::File => "file",
            Self::Page => "page",
            Self::Checkpoint => "checkpoint",
            Self::UnknownPath => "unknown",
            Self::Message => "message",
            Self::Call => "open",
            Self::PastCall => "open-past",
            Self::Refusal => "refused",
        }
    }

    /// The most answers of this kind to one address in a minute.
    #[must_use]
    pub fn per_minute_max(self) -> i64 {
        match self {
            Self::Probe => 12_000,
            Self::Call | Self::Refusal => 6_000,
            Self::Message => 1_200,
            Self::Document | Self::File | Self::Checkpoint | Self::UnknownPath => 600,
            Self::Page => 300,
            Self::PastCall => 60,
        }
    }
}

impl Access {
    /// Admits an answer that needs no key. It counts against the limit of the address.
    ///
    /// # Errors
    /// `rate-limited`.
    pub fn admit_open(&self, ctx: &Context, kind: Open, address: IpAddr) -> Result<(), Problem> {
        let now_ms = ctx.clock.now_ms();
        if self.open.count(&subjects_of(&format!("{}/", kind.name()), address), kind.per_minute_max(), now_ms) {
            return Ok(());
        }
        let window = Window { name: "minute", length_s: MINUTE_MS / 1_000, calls_max: kind.per_minute_max() };
        Err(used_up(window, u64::try_from((MINUTE_MS - now_ms.rem_euclid(MINUTE_MS) + 999) / 1_000).unwrap_or(1)))
    }

    /// The refusal of a call, or `rate-limited` for an address that had too many refusals. A refusal does not count if its call counted against a
    /// quota, or against the limits of unpaid calls, or is not the caller's fault.
    pub fn limit_refusal(&self, ctx: &Context, refusal: Problem, address: IpAddr) -> Problem {
        let is_counted = refusal.headers.iter().any(|(name, _)| *name == "ratelimit")
            || matches!(refusal.code, ErrorCode::RateLimited | ErrorCode::PaymentRequired)
            || refusal.code.status() >= 500;
        if is_counted {
            return refusal;
        }
        self.admit_open(ctx, Open::Refusal, address).err().unwrap_or(refusal)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use feed::testing::accounts::world;
    use operation::context::Part;
    use operation::tiers::NETWORKS_PER_SITE;

    use super::*;

    /// Proves that each kind has a limit of its own for each address, and that its refusal says when to come back.
    #[tokio::test]
    async fn each_kind_is_limited_by_address() {
        let (_world, ctx) = world().await;
        let access = Access::of(&ctx);
        let [own, other] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        for kind in Open::ALL {
            for _ in 0..kind.per_minute_max() {
                access.admit_open(&ctx, kind, own).unwrap();
            }
            let refused = access.admit_open(&ctx, kind, own).unwrap_err();
            assert_eq!((refused.code, refused.retry_after_s > 0), (ErrorCode::RateLimited, true), "{kind:?}");
            assert_eq!(access.admit_open(&ctx, kind, other), Ok(()), "{kind:?}");
        }
        assert_eq!(Open::ALL.map(Open::name).into_iter().collect::<BTreeSet<_>>().len(), Open::ALL.len());
    }

    /// Proves that the addresses of an IPv6 /48 share a second, wider limit, which a used up /64 does not use, and that IPv4 addresses do not.
    #[tokio::test]
    async fn sites_are_limited() {
        let (_world, ctx) = world().await;
        let access = Access::of(&ctx);
        let spend = |address: String| access.admit_open(&ctx, Open::PastCall, address.parse().unwrap()).is_ok();
        let each = Open::PastCall.per_minute_max();
        // More than the /64 has: the rest does not count for its /48.
        for call in 0..2 * each {
            assert_eq!(spend("2001:db8:1::1".to_owned()), call < each);
        }
        for network in 1..NETWORKS_PER_SITE {
            for _ in 0..each {
                assert!(spend(format!("2001:db8:1:{network:x}::1")), "{network}");
            }
        }
        assert!(!spend("2001:db8:1:ffff::1".to_owned()));
        assert!(spend("2001:db8:2::1".to_owned()), "another /48");
        for last in 0..=NETWORKS_PER_SITE {
            for _ in 0..each {
                assert!(spend(format!("192.0.2.{last}")));
            }
        }
    }

    /// Proves that refusals of calls are limited, except those whose calls are limited otherwise.
    #[tokio::test]
    async fn refusals_are_limited() {
        let (_world, ctx) = world().await;
        let access = Access::of(&ctx);
        let address = "192.0.2.1".parse().unwrap();
        let refusal = |code| Problem::new(code, "no");
        let counted = refusal(ErrorCode::ParameterInvalid).header("ratelimit", "\"day\";r=1;t=1");
        let others = [counted, refusal(ErrorCode::PaymentRequired), refusal(ErrorCode::RateLimited), refusal(ErrorCode::Unavailable)];
        for refusal in others.iter().cycle().take(7_000) {
            assert_eq!(access.limit_refusal(&ctx, refusal.clone(), address), *refusal);
        }
        for code in [ErrorCode::ParameterInvalid, ErrorCode::KeyInvalid, ErrorCode::TierTooLow].into_iter().cycle().take(6_000) {
            assert_eq!(access.limit_refusal(&ctx, refusal(code), address).code, code);
        }
        assert_eq!(access.limit_refusal(&ctx, refusal(ErrorCode::KeyInvalid), address).code, ErrorCode::RateLimited);
    }
}
