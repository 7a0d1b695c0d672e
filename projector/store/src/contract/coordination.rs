//! Checks of leases, counters and stored values.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Failure, promise};
use crate::store::{Error, ViewStore};

/// A time far in the future, so that rows of an earlier run, on a store that keeps them, are returned or expired first.
const NOW_MS: i64 = 4_000_000_000_000;

/// How long an expiring lease may take to expire. It is a guard against hangs only: a busy machine is slow.
const EXPIRY_TIMEOUT: Duration = Duration::from_secs(300);
/// How often to check whether it has expired.
const EXPIRY_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A lease has one holder at a time, who may renew it. After a release or its expiry another holder can acquire it.
///
/// # Errors
/// The violated guarantee.
pub async fn leases(store: &dyn ViewStore) -> Result<(), Failure> {
    let (rows, name) = (store.coordination(), "contract/lease");
    let (hour, second) = (Duration::from_secs(3_600), Duration::from_secs(1));
    for holder in ["a", "b"] {
        rows.release(name, holder).await?;
    }
    promise!(rows.holder(name).await?.is_none(), "a free lease has no holder");
    promise!(rows.lease(name, "a", hour).await?, "a free lease is granted");
    promise!(!rows.lease(name, "b", hour).await?, "a held lease is not granted to another");
    promise!(rows.holder(name).await?.as_deref() == Some("a"), "its holder is known");
    promise!(rows.lease("contract/lease-2", "b", hour).await?, "leases of other names are separate");
    rows.release("contract/lease-2", "b").await?;
    promise!(rows.lease(name, "a", hour).await?, "a holder may renew");
    rows.release(name, "b").await?;
    promise!(!rows.lease(name, "b", hour).await?, "only the holder can release a lease");
    let begun = Instant::now();
    promise!(rows.lease(name, "a", second).await?, "a renewal may shorten");
    while !rows.lease(name, "b", hour).await? {
        promise!(begun.elapsed() < EXPIRY_TIMEOUT, "a lease expires");
        tokio::time::sleep(EXPIRY_POLL_INTERVAL).await;
    }
    promise!(begun.elapsed() >= second, "a lease does not expire early");
    promise!(!rows.lease(name, "a", hour).await?, "its former holder has lost it");
    rows.release(name, "b").await?;
    promise!(rows.lease(name, "a", hour).await?, "a released lease is free at once");
    rows.release(name, "a").await?;
    Ok(())
}

/// Counters never exceed their maximum, also under concurrent callers; what is given back can be used again; an expired counter is empty. A
/// counter that was given back completely is deleted with its expiry.
///
/// # Errors
/// The violated guarantee.
pub async fn counters(store: &Arc<dyn ViewStore>) -> Result<(), Failure> {
    let rows = store.coordination();
    let until = NOW_MS + 1_000;
    let name = "contract/counter";
    rows.add_to_counter(name, i64::MIN, 0, NOW_MS, until).await?;
    promise!(rows.add_to_counter(name, 6, 10, NOW_MS, until).await? == 6, "an amount that fits is added");
    promise!(rows.add_to_counter(name, 6, 10, NOW_MS, until).await? == 4, "of an amount that does not fit, the part that fits is added");
    promise!(rows.add_to_counter(name, 1, 10, NOW_MS, until).await? == 0, "nothing is added at the maximum");
    promise!(rows.add_to_counter(name, 1, 5, NOW_MS, until).await? == 0, "a lowered maximum does not reduce the counter");
    promise!(rows.add_to_counter(name, -3, 10, NOW_MS, until).await? == -3, "a negative amount reduces the counter");
    promise!(rows.add_to_counter(name, 9, 10, NOW_MS, until).await? == 3, "an amount that was given back can be added again");
    promise!(rows.add_to_counter(name, -99, 10, NOW_MS, until).await? == -10, "no more is given back than was added");
    promise!(rows.add_to_counter(name, 7, 10, until, until).await? == 7, "a counter counts until it expires");
    promise!(rows.add_to_counter(name, 10, 10, until + 1, until + 1_000).await? == 10, "an expired counter starts again at 0");
    promise!(
        rows.add_to_counter(name, 10, 10, until + 2_000, until).await? == 0,
        "nothing is added to a counter with an expiry in the past"
    );
    promise!(rows.add_to_counter(name, -10, 10, until + 2, until).await? == -10, "all may be given back");
    promise!(rows.add_to_counter(name, 2, 10, NOW_MS, until).await? == 2, "a counter that was given back completely starts again");
    promise!(rows.add_to_counter(name, 10, 10, until + 1, until + 1_000).await? == 10, "with the expiry of its first caller");

    let mut takers = tokio::task::JoinSet::new();
    rows.add_to_counter("contract/shared", i64::MIN, 0, NOW_MS, until).await?;
    for _ in 0..8 {
        let store = Arc::clone(store);
        takers.spawn(async move {
            let mut taken = 0;
            for _ in 0..20 {
                taken += store.coordination().add_to_counter("contract/shared", 3, 100, NOW_MS, until).await?;
            }
            Ok::<i64, Error>(taken)
        });
    }
    let mut taken = 0;
    while let Some(taker) = takers.join_next().await {
        taken += taker.map_err(|error| Failure::Broken(format!("a concurrent caller panicked: {error}")))??;
    }
    promise!(taken == 100, "concurrent callers add the maximum in total, not {taken}");

    // More expired counters than one sweep examines must not affect the others.
    for i in 0..60 {
        rows.add_to_counter(&format!("contract/short/{i}"), 1, 1, NOW_MS, NOW_MS + 1).await?;
    }
    for _ in 0..60 {
        rows.add_to_counter("contract/long", 1, 100, NOW_MS + 2, until).await?;
    }
    promise!(
        rows.add_to_counter("contract/long", 100, 100, NOW_MS + 2, until).await? == 40,
        "a sweep of expired counters does not affect others"
    );
    rows.add_to_counter("contract/long", i64::MIN, 0, NOW_MS + 2, until).await?;
    Ok(())
}

/// A value that is stored first remains until it is replaced; values of other names are separate; all of them are listed.
///
/// # Errors
/// The violated guarantee.
pub async fn values(store: &dyn ViewStore) -> Result<(), Failure> {
    let rows = store.coordination();
    // On a store that keeps the rows of an earlier run, they still exist.
    let names = ["contract/values/1", "contract/values/2"];
    for name in names {
        rows.store(name, "first").await?;
    }
    promise!(rows.value("contract/values/none").await?.is_none(), "an unknown name has no value");
    promise!(rows.store_if_absent(names[0], "second").await? == "first", "a stored value remains");
    rows.store(names[0], "third").await?;
    promise!(rows.value(names[0]).await?.as_deref() == Some("third"), "until it is replaced");
    promise!(rows.store_if_absent(names[0], "fourth").await? == "third", "the new value remains");
    promise!(rows.value(names[1]).await?.as_deref() == Some("first"), "values of other names are separate");
    rows.store(names[1], "").await?;
    promise!(rows.store_if_absent(names[1], "fifth").await?.is_empty(), "an empty value is a value");
    promise!(!rows.compare_and_store(names[0], Some("first"), "sixth").await?, "a value is not replaced if another one is expected");
    promise!(!rows.compare_and_store(names[0], None, "sixth").await?, "a value is not replaced if none is expected");
    promise!(rows.compare_and_store(names[0], Some("third"), "sixth").await?, "a value is replaced if it is expected");
    promise!(rows.value(names[0]).await?.as_deref() == Some("sixth"), "the new value is stored");
    promise!(rows.compare_and_store(names[0], Some("sixth"), "third").await?, "a value can be replaced repeatedly");
    let fresh = format!("contract/values/{}", rows.values().await?.len());
    if rows.value(&fresh).await?.is_none() {
        let (one, two) = tokio::join!(rows.compare_and_store(&fresh, None, "one"), rows.compare_and_store(&fresh, None, "two"));
        promise!(one? != two?, "of two concurrent callers that expect no value, one succeeds");
    }
    let all = rows.values().await?;
    for (name, value) in [(names[0], "third"), (names[1], "")] {
        promise!(all.iter().any(|(stored, value_of)| (stored.as_str(), value_of.as_str()) == (name, value)), "all values are listed");
    }
    Ok(())
}
