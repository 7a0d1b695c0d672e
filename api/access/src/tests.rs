//! Admission and commands, with a small fold in the place of the projector.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use event_log::EventLog;
use feed::testing::START_MS;
use feed::testing::accounts::world;
use jiff::Timestamp;
use operation::context::Part;
use operation::{Definition, Method, Surface};
use schemas::clock::Clock;
use schemas::position::LogOffset;
use schemas::topics::ACCOUNTS;
use schemas::views::accounts::LAST_USED_PRECISION_MS;
use schemas::views::engine::{self, HeadRow};
use schemas::views::watches::SavedItem;
use serde_json::{Value, json};
use view_store::ViewStore;

use super::*;
use crate::Access;
use crate::webhook::Sealing;

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
}

fn operation(price: Price, counted: bool) -> Operation {
    let words = Definition {
        name: "test",
        method: Method::Get,
        path: "/test",
        summary: "",
        description: "",
        price,
        surface: Surface::Route,
        counted,
        list: "",
        errors: &[],
        example: json!({}),
        ..Definition::read()
    };
    Operation::define::<Value, Value, _, _>(words, |_, _| async { Err(Problem::new(ErrorCode::Internal, "not called")) })
}

async fn admit(ctx: &Context, key: &str, operation: &Operation) -> Result<Admission, Problem> {
    let key = Some(key.to_owned()).filter(|key| !key.is_empty());
    Access::of(ctx).admit(ctx, Credentials { key }, address(1), operation, false).await
}

/// Proves the life of a key: a minted key works and is stored as a hash, a rotated key and its replacement both work for a day, a revoked key stops at once.
#[tokio::test]
async fn keys_are_minted_rotated_and_revoked() {
    let (world, ctx) = world().await;
    let free = operation(Price::Free, true);
    let minted = Access::of(&ctx).mint(&ctx, Tier::Pro, "ann@example.org").await.unwrap();
    let admission = admit(&ctx, minted.key.reveal(), &free).await.unwrap();
    assert_eq!(
        (admission.caller.tier, &admission.caller.key_id, &admission.caller.account),
        (Tier::Pro, &minted.row.id, &minted.row.account)
    );
    assert_eq!(admission.rate_limit_policy, "\"day\";q=100000;w=86400, \"minute\";q=50000;w=60");
    assert_eq!(admission.rate_limit, "\"day\";r=99999;t=86400");
    assert!(minted.row.id.starts_with("key_") && minted.row.id.len() == 28 && minted.row.account.starts_with("acct_"));

    let rotated = Access::of(&ctx).rotate(&ctx, &minted.row.id).await.unwrap();
    assert_eq!((rotated.old.ends_at, &rotated.minted.row.account), (START_MS + DAY_MS, &minted.row.account));
    for key in [&minted.key, &rotated.minted.key] {
        assert!(admit(&ctx, key.reveal(), &free).await.is_ok());
    }
    let later = world.context(START_MS + DAY_MS);
    assert_eq!(admit(&later, minted.key.reveal(), &free).await.unwrap_err().code, ErrorCode::KeyInvalid);
    assert!(admit(&later, rotated.minted.key.reveal(), &free).await.is_ok());

    Access::of(&ctx).revoke(&ctx, &rotated.minted.row.id).await.unwrap();
    assert_eq!(admit(&ctx, rotated.minted.key.reveal(), &free).await.unwrap_err().code, ErrorCode::KeyInvalid);
    for id in [rotated.minted.row.id.as_str(), "key_000000000000000000000000", ""] {
        assert_eq!(Access::of(&ctx).revoke(&ctx, id).await.unwrap_err().code, ErrorCode::NotFound);
        assert_eq!(Access::of(&ctx).rotate(&ctx, id).await.unwrap_err().code, ErrorCode::NotFound);
    }
    assert_eq!(Access::of(&ctx).list(&ctx).await.unwrap().len(), 2);
    for stored in world.log.read(&ACCOUNTS, 0, LogOffset(0), 100, 1 << 20).await.unwrap() {
        let text = format!("{} {:?}", String::from_utf8_lossy(&stored.record.value), stored.record.headers);
        assert!(!text.contains("ann@") && !text.contains("example.org") && !text.contains("hw_live_"), "{text}");
        assert!(text.contains("highwater.accounts."));
    }
}

/// Proves that a node that has used a key notices that another node revoked it once the configured time is over, and not before.
#[tokio::test]
async fn keys_revoked_elsewhere_are_noticed_after_a_round() {
    let (world, ctx) = world().await;
    let free = operation(Price::Free, true);
    let minted = Access::of(&ctx).mint(&ctx, Tier::Pro, "ann@example.org").await.unwrap();
    let node = |round: Duration| {
        let mut context = Arc::into_inner(world.context(START_MS)).unwrap();
        context.settings.rounds.revoked_keys = round;
        context
    };
    let (long, none) = (node(Duration::from_secs(3_600)), node(Duration::ZERO));
    for context in [&long, &none] {
        assert!(admit(context, minted.key.reveal(), &free).await.is_ok());
    }
    Access::of(&ctx).revoke(&ctx, &minted.row.id).await.unwrap();
    assert!(admit(&long, minted.key.reveal(), &free).await.is_ok());
    assert_eq!(admit(&none, minted.key.reveal(), &free).await.unwrap_err().code, ErrorCode::KeyInvalid);
}

/// Proves that a caller sees what is left of the day without using a call, and that an unknown or revoked key sees nothing.
#[tokio::test]
async fn usage_is_seen_without_a_call() {
    let (_world, ctx) = world().await;
    let (access, free) = (Access::of(&ctx), operation(Price::Free, true));
    let minted = access.mint(&ctx, Tier::Pro, "").await.unwrap();
    let usage = async |key: &Key| access.usage(&ctx, Credentials { key: Some(key.reveal().to_owned()) }, address(1)).await;
    for _ in 0..2 {
        let seen = usage(&minted.key).await.unwrap();
        assert_eq!((seen.calls_max, seen.remaining, seen.reset_s), (100_000, 100_000, 86_400));
        assert_eq!((seen.caller.tier, &seen.caller.key_id), (Tier::Pro, &minted.row.id));
    }
    admit(&ctx, minted.key.reveal(), &free).await.unwrap();
    assert_eq!(usage(&minted.key).await.unwrap().remaining, 99_999);
    access.revoke(&ctx, &minted.row.id).await.unwrap();
    for key in [&minted.key, &Key::random()] {
        assert_eq!(usage(key).await.unwrap_err().code, ErrorCode::KeyInvalid);
    }
}

/// Proves that malformed, unknown and mistyped keys are refused, and so are tiers below the price, without counting against a quota.
#[tokio::test]
async fn refusals() {
    let (_world, ctx) = world().await;
    let free = operation(Price::Free, true);
    let business = operation(Price::Tier(Tier::Business), true);
    let unknown = Key::random();
    let mistyped = unknown.reveal().replacen(|c: char| c.is_ascii_digit(), "z", 1);
    for key in ["x", "hw_live_", unknown.reveal(), mistyped.as_str()] {
        assert_eq!(admit(&ctx, key, &free).await.unwrap_err().code, ErrorCode::KeyInvalid, "{key}");
    }
    let refused = admit(&ctx, "", &business).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::TierTooLow);
    let end = "this call has no key; a key of that tier comes from the operator of this server";
    assert!(refused.detail.ends_with(end), "{}", refused.detail);
    let pro = Access::of(&ctx).mint(&ctx, Tier::Pro, "").await.unwrap();
    let refused = admit(&ctx, pro.key.reveal(), &business).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::TierTooLow);
    assert!(refused.detail.contains("; this key has the tier pro; "), "{}", refused.detail);
    let owner = Access::of(&ctx).mint(&ctx, Tier::Business, "").await.unwrap();
    let policy = admit(&ctx, owner.key.reveal(), &business).await.unwrap().rate_limit_policy;
    assert_eq!(policy, "\"day\";q=100000;w=86400, \"minute\";q=50000;w=60");
    assert_eq!(admit(&ctx, "", &free).await.unwrap().rate_limit, "\"day\";r=99;t=86400");
    assert!(Access::of(&ctx).mint(&ctx, Tier::Anonymous, "").await.is_err());
}

/// Proves that the hour in which a key was used is recorded once, however often it is used, and that an unused key has none.
#[tokio::test]
async fn last_use() {
    let (world, ctx) = world().await;
    let free = operation(Price::Free, true);
    let [used, unused] =
        [Access::of(&ctx).mint(&ctx, Tier::Pro, "").await.unwrap(), Access::of(&ctx).mint(&ctx, Tier::Pro, "").await.unwrap()];
    let appended = async || ctx.log.end(&ACCOUNTS, 0).await.unwrap().0;
    let before = appended().await;
    for _ in 0..3 {
        admit(&ctx, used.key.reveal(), &free).await.unwrap();
    }
    Access::of(&ctx).record_uses(&ctx).await.unwrap();
    Access::of(&ctx).record_uses(&ctx).await.unwrap();
    assert_eq!(appended().await - before, 1);
    let last = async |id: &str| Access::of(&ctx).list(&ctx).await.unwrap().into_iter().find(|key| key.id == id).unwrap().last_used_at;
    assert_eq!((last(&used.row.id).await, last(&unused.row.id).await), (hour_of(START_MS), 0));

    // Within the same hour it is not recorded again, not even by another node; in the next hour it is.
    for (later_ms, uses) in [(0, 0), (LAST_USED_PRECISION_MS, 1)] {
        let other = world.context(START_MS + later_ms);
        admit(&other, used.key.reveal(), &free).await.unwrap();
        let before = appended().await;
        Access::of(&other).record_uses(&other).await.unwrap();
        assert_eq!(appended().await - before, uses, "{later_ms} ms later");
    }
    assert_eq!(last(&used.row.id).await, hour_of(START_MS + LAST_USED_PRECISION_MS));
}

/// Proves that 16 tasks together get exactly the 100 calls of an address, that the last one reads 0 and the next ones get 429 with the pause
/// to midnight; that calls which do not count are still answered, and that other callers are not affected.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exact_quota() {
    let (world, _) = world().await;
    let ctx = world.context(START_MS + DAY_MS - 90_500);
    let free = Arc::new(operation(Price::Free, true));
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (ctx, free) = (Arc::clone(&ctx), Arc::clone(&free));
            tokio::spawn(async move {
                let mut answers = Vec::new();
                for _ in 0..10 {
                    answers.push(admit(&ctx, "", &free).await);
                }
                answers
            })
        })
        .collect();
    let (mut left, mut refused) = (Vec::new(), 0);
    for task in tasks {
        for answer in task.await.unwrap() {
            match answer {
                Ok(admission) => left.push(admission.rate_limit),
                Err(problem) => {
                    assert_eq!((problem.code, problem.retry_after_s), (ErrorCode::RateLimited, 91));
                    refused += 1;
                }
            }
        }
    }
    let mut wanted: Vec<String> = (0..100).map(|r| format!("\"day\";r={r};t=91")).collect();
    left.sort();
    wanted.sort();
    assert_eq!((left, refused), (wanted, 60));
    assert_eq!(admit(&ctx, "", &operation(Price::Free, false)).await.unwrap().rate_limit, "");
    assert!(Access::of(&ctx).admit(&ctx, Credentials::default(), address(2), &free, false).await.is_ok());
    Access::of(&ctx).release_all(&ctx).await.unwrap();
    let next_day = world.context(START_MS + DAY_MS);
    assert_eq!(admit(&next_day, "", &free).await.unwrap().rate_limit, "\"day\";r=99;t=86400");
}

/// Proves that a call that the limit of an IPv6 /48 refuses takes nothing from the caller's /64, however often it is made.
#[tokio::test]
async fn refusals_of_a_site_take_nothing() {
    let (_world, ctx) = world().await;
    let access = Access::of(&ctx);
    let subjects = subjects_of("", "2001:db8:1:2::1".parse().unwrap());
    let [own, site] = [&subjects[0], &subjects[1]];
    let window = Window { name: "day", length_s: 86_400, calls_max: 3 };
    for _ in 0..3 * tiers::NETWORKS_PER_SITE {
        access.spend(&ctx, &site.0, times(window, site.1)).await.unwrap();
    }
    for _ in 0..5 {
        assert_eq!(access.spend_each(&ctx, &subjects, window).await.unwrap_err().code, ErrorCode::RateLimited);
    }
    for left in [2, 1, 0] {
        assert_eq!(access.spend(&ctx, &own.0, window).await.unwrap().remaining, left);
    }
}

fn minted(free: MintOutcome) -> MintedKey {
    match free {
        MintOutcome::Minted(minted) => minted,
        MintOutcome::Repeated(row) => panic!("{} was minted before", row.id),
    }
}

/// Proves that free keys are limited only by the caller's network address, IPv6 by /48, and that keys made for a stranger's e-mail address do not
/// prevent its owner from getting one.
#[tokio::test]
async fn minting_is_limited_by_address() {
    let (_world, ctx) = world().await;
    let mint = async |email: &str, address: IpAddr| Access::of(&ctx).mint_free(&ctx, email, address, None).await;
    for _ in 0..20 {
        mint("ann@example.org", address(1)).await.unwrap();
    }
    for email in ["ann@example.org", "bob@example.org"] {
        let problem = mint(email, address(1)).await.unwrap_err();
        assert_eq!((problem.code, problem.retry_after_s), (ErrorCode::RateLimited, 86_400));
    }
    let owner = minted(mint("Ann@example.org", address(2)).await.unwrap());
    assert!(admit(&ctx, owner.key.reveal(), &operation(Price::Free, true)).await.is_ok());

    let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
    for n in 0..20 {
        mint("c@example.org", v6(&format!("2001:db8:1:{n:x}::{n:x}"))).await.unwrap();
    }
    assert_eq!(mint("d@example.org", v6("2001:db8:1:ffff::1")).await.unwrap_err().code, ErrorCode::RateLimited);
    assert!(mint("d@example.org", v6("2001:db8:2::1")).await.is_ok());
    assert_eq!(mint("d@example.org", v6("::ffff:192.0.2.1")).await.unwrap_err().code, ErrorCode::RateLimited, "IPv4 within IPv6");
}

/// Proves that a repeated request gets the row of the key that it minted and never the key, immediately or later, that it does not count twice, and
/// that another request with its idempotency key is refused.
#[tokio::test]
async fn a_repeated_mint_shows_no_key() {
    let (_world, ctx) = world().await;
    let mint = async |email: &str, once: &str| Access::of(&ctx).mint_free(&ctx, email, address(3), Some(once)).await.unwrap();
    let both = tokio::join!(mint("a@example.org", "once"), mint("a@example.org", "once"));
    let (first, row) = match both {
        (MintOutcome::Minted(first), MintOutcome::Repeated(row)) | (MintOutcome::Repeated(row), MintOutcome::Minted(first)) => (first, row),
        other => panic!("one of two is minted, not {other:?}"),
    };
    assert_eq!(first.row, row);
    assert!(admit(&ctx, first.key.reveal(), &operation(Price::Free, true)).await.is_ok());
    for _ in 0..30 {
        let MintOutcome::Repeated(again) = mint("a@example.org", "once").await else { panic!("it was minted before") };
        assert_eq!((&again.id, &again.account, &again.tier), (&row.id, &row.account, &row.tier));
    }
    let other = minted(mint("a@example.org", "twice").await);
    assert_ne!((other.key.reveal(), &other.row.id), (first.key.reveal(), &first.row.id));
    let refused = Access::of(&ctx).mint_free(&ctx, "b@example.org", address(3), Some("once")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::IdempotencyMismatch);
}

/// Proves that a free key expires after 90 days without use, that it cannot be rotated then, and that other keys do not expire.
#[tokio::test]
async fn unused_free_keys_expire() {
    let (world, ctx) = world().await;
    let free = operation(Price::Free, true);
    let [used, unused] = ["a@example.org", "b@example.org"].map(|email| (email, address(4)));
    let used = minted(Access::of(&ctx).mint_free(&ctx, used.0, used.1, None).await.unwrap());
    let unused = minted(Access::of(&ctx).mint_free(&ctx, unused.0, unused.1, None).await.unwrap());
    let paid = Access::of(&ctx).mint(&ctx, Tier::Pro, "").await.unwrap();
    let last = world.context(START_MS + FREE_KEY_UNUSED_DAYS_MAX * DAY_MS - 1);
    for key in [&used.key, &paid.key] {
        admit(&last, key.reveal(), &free).await.unwrap();
    }
    Access::of(&last).record_uses(&last).await.unwrap();

    let later = world.context(START_MS + FREE_KEY_UNUSED_DAYS_MAX * DAY_MS);
    let problem = admit(&later, unused.key.reveal(), &free).await.unwrap_err();
    assert_eq!(problem.code, ErrorCode::KeyInvalid);
    assert!(problem.detail.contains("expired after 90 days without use"), "{}", problem.detail);
    assert_eq!(Access::of(&later).rotate(&later, &unused.row.id).await.unwrap_err().code, ErrorCode::NotFound);
    Access::of(&later).record_uses(&later).await.unwrap();
    assert!(admit(&later, unused.key.reveal(), &free).await.is_err(), "a refused use does not revive it");
    assert!(admit(&later, used.key.reveal(), &free).await.is_ok());

    let rows = Access::of(&later).list(&later).await.unwrap();
    let end_of = |id: &str| unused_until(rows.iter().find(|row| row.id == id).unwrap());
    assert_eq!(end_of(&unused.row.id), Some(START_MS + FREE_KEY_UNUSED_DAYS_MAX * DAY_MS));
    assert_eq!((end_of(&used.row.id) > end_of(&unused.row.id), end_of(&paid.row.id)), (true, None));
    let much_later = world.context(START_MS + 10 * 365 * DAY_MS);
    assert!(admit(&much_later, paid.key.reveal(), &free).await.is_ok());
    assert!(admit(&much_later, used.key.reveal(), &free).await.is_err());
}

/// Proves that two concurrent commands on one key both take effect, one on top of the other.
#[tokio::test]
async fn commands_chain() {
    let (world, ctx) = world().await;
    let minted = Access::of(&ctx).mint(&ctx, Tier::Free, "").await.unwrap();
    let access = Access::of(&ctx);
    let rotations = (0..4).map(|_| access.rotate(&ctx, &minted.row.id));
    let done = futures_util::future::join_all(rotations).await;
    assert!(done.iter().all(Result::is_ok));
    assert_eq!(Access::of(&ctx).list(&ctx).await.unwrap().len(), 5);
    let heads = world.store.live(&engine::VIEW).await.unwrap();
    let head = heads.get(&engine::HEADS, &key![ACCOUNTS.name, minted.row.id.as_str()]).await.unwrap().unwrap();
    assert_eq!(HeadRow::from_bytes(&head).unwrap().head.version, 5);
}

/// Proves that the system clock works as well (the other tests use a fixed one).
#[tokio::test]
async fn system_clock() {
    let (world, _) = world().await;
    let ctx = world.context(START_MS);
    let mut ctx = Arc::into_inner(ctx).unwrap();
    ctx.clock = Clock::System;
    let before = Timestamp::now().as_millisecond();
    let minted = Access::of(&ctx).mint(&ctx, Tier::Free, "").await.unwrap();
    // An hour, because the system's clock may be set while the test runs.
    assert!((minted.row.minted_at - before).abs() < 3_600_000, "{} {before}", minted.row.minted_at);
}

/// Proves that calls without a key from this machine are unlimited only if the settings say so, and that calls from elsewhere are counted then, too.
#[tokio::test]
async fn loopback_can_be_unlimited() {
    let (_world, mut ctx) = world().await;
    let free = operation(Price::Free, true);
    let limits = async |ctx: &Context, address: &str| {
        let admission = Access::of(ctx).admit(ctx, Credentials::default(), address.parse().unwrap(), &free, false).await.unwrap();
        admission.rate_limit
    };
    assert_eq!(limits(&ctx, "127.0.0.1").await, "\"day\";r=99;t=86400");
    Arc::get_mut(&mut ctx).unwrap().settings.is_loopback_unlimited = true;
    for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(limits(&ctx, address).await, "", "{address}");
    }
    assert_eq!(limits(&ctx, "192.0.2.1").await, "\"day\";r=99;t=86400");
    let minted = Access::of(&ctx).mint(&ctx, Tier::Pro, "").await.unwrap();
    assert!(admit(&ctx, minted.key.reveal(), &free).await.unwrap().rate_limit.starts_with("\"day\";r="), "a key keeps its limits");
}

/// Proves that the contents of an item can be read until the item is deleted or its account is erased, and not with the secret of another item; that a
/// deleted item which is stored again has another secret; and that an erased account can store nothing.
#[tokio::test]
async fn contents_of_items_are_readable_until_they_are_deleted() {
    let (_world, ctx) = world().await;
    let item = |id: &str, sealed: &str| SavedItem {
        id: id.to_owned(),
        account: "a".to_owned(),
        entity: sealed.to_owned(),
        ..SavedItem::default()
    };
    let load = async |id: &str| Sealing::load_for_item(&ctx, "a", id).await.unwrap();
    assert!(load("f").await.is_none());
    let first = Sealing::load_or_create_for_item(&ctx, "a", "f").await.unwrap();
    let text = r#"{"name":"mine","aircraft":[{"tail":"N5432W"}]}"#;
    let sealed = first.seal_contents(text, "f").unwrap();
    assert!(!sealed.contains("N5432W") && !String::from_utf8_lossy(&URL_SAFE_NO_PAD.decode(&sealed).unwrap()).contains("N5432W"));
    let again = Sealing::load_or_create_for_item(&ctx, "a", "f").await.unwrap();
    for sealing in [&again, &load("f").await.unwrap()] {
        assert_eq!(sealing.open_contents(&item("f", &sealed)).as_deref(), Some(text));
        assert_eq!(sealing.open_contents(&item("g", &sealed)), None);
    }
    let other = Sealing::load_or_create_for_item(&ctx, "a", "g").await.unwrap();
    assert_eq!((other.open_contents(&item("f", &sealed)), other.open_contents(&item("g", &sealed))), (None, None));

    Sealing::destroy_for_item(&ctx, "a", "f").await.unwrap();
    assert!(load("f").await.is_none());
    let new = Sealing::load_or_create_for_item(&ctx, "a", "f").await.unwrap();
    assert_eq!(new.open_contents(&item("f", &sealed)), None, "the first version of the item stays unreadable");
    let sealed = new.seal_contents(text, "f").unwrap();
    assert_eq!(load("f").await.unwrap().open_contents(&item("f", &sealed)).as_deref(), Some(text));

    Sealing::destroy(&ctx, "a").await.unwrap();
    assert!(load("f").await.is_none() && load("g").await.is_none());
    let Err(problem) = Sealing::load_or_create_for_item(&ctx, "a", "h").await else { panic!("an erased account stores a fleet") };
    assert_eq!(problem.code, ErrorCode::NotFound);
}
