//! Leases, counters and kept values.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Failure, promise};
use crate::store::{Error, ViewStore};

/// Far in the future, so that rows of an earlier run, on a store that keeps them, are given back or expired first.
const NOW_MS: i64 = 4_000_000_000_000;

/// How long a lease that must end may take for it.
const END_MAX: Duration = Duration::from_secs(30);
/// Between two looks whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One holder at a time; it may renew; giving back and the end of its time make room.
///
/// # Errors
/// What was promised and not kept.
pub async fn leases(store: &dyn ViewStore) -> Result<(), Failure> {
    let (rows, name) = (store.coordination(), "contract/lease");
    let (hour, second) = (Duration::from_secs(3_600), Duration::from_secs(1));
    for holder in ["a", "b"] {
        rows.release(name, holder).await?;
    }
    promise!(rows.holder(name).await?.is_none(), "a free lease is held by nobody");
    promise!(rows.lease(name, "a", hour).await?, "a free lease is granted");
    promise!(!rows.lease(name, "b", hour).await?, "a held lease is not granted to another");
    promise!(rows.holder(name).await?.as_deref() == Some("a"), "its holder is known");
    promise!(rows.lease("contract/lease-2", "b", hour).await?, "leases of other names are apart");
    rows.release("contract/lease-2", "b").await?;
    promise!(rows.lease(name, "a", hour).await?, "a holder may renew");
    rows.release(name, "b").await?;
    promise!(!rows.lease(name, "b", hour).await?, "only the holder can give a lease back");
    let begun = Instant::now();
    promise!(rows.lease(name, "a", second).await?, "a renewal may shorten");
    while !rows.lease(name, "b", hour).await? {
        promise!(begun.elapsed() < END_MAX, "a lease ends by itself");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    promise!(begun.elapsed() >= second, "a lease lasts its time");
    promise!(!rows.lease(name, "a", hour).await?, "its former holder has lost it");
    rows.release(name, "b").await?;
    promise!(rows.lease(name, "a", hour).await?, "a lease given back is free at once");
    rows.release(name, "a").await?;
    Ok(())
}

/// Counters never pass their maximum, also under concurrent takers; what is given back can be taken again; expiry empties them.
/// A counter that was given back wholly is forgotten with its expiry.
///
/// # Errors
/// What was promised and not kept.
pub async fn counters(store: &Arc<dyn ViewStore>) -> Result<(), Failure> {
    let rows = store.coordination();
    let until = NOW_MS + 1_000;
    let name = "contract/counter";
    rows.take(name, i64::MIN, 0, NOW_MS, until).await?;
    promise!(rows.take(name, 6, 10, NOW_MS, until).await? == 6, "what fits is taken");
    promise!(rows.take(name, 6, 10, NOW_MS, until).await? == 4, "of what does not fit, the part that does");
    promise!(rows.take(name, 1, 10, NOW_MS, until).await? == 0, "at the maximum nothing is taken");
    promise!(rows.take(name, 1, 5, NOW_MS, until).await? == 0, "a lowered maximum takes nothing away");
    promise!(rows.take(name, -3, 10, NOW_MS, until).await? == -3, "giving back gives back");
    promise!(rows.take(name, 9, 10, NOW_MS, until).await? == 3, "what was given back can be taken again");
    promise!(rows.take(name, -99, 10, NOW_MS, until).await? == -10, "no more is given back than was taken");
    promise!(rows.take(name, 7, 10, until, until).await? == 7, "a counter counts until it expires");
    promise!(rows.take(name, 10, 10, until + 1, until + 1_000).await? == 10, "after that it begins again");
    promise!(rows.take(name, 10, 10, until + 2_000, until).await? == 0, "nothing is taken from a counter that expired before now");
    promise!(rows.take(name, -10, 10, until + 2, until).await? == -10, "all may be given back");
    promise!(rows.take(name, 2, 10, NOW_MS, until).await? == 2, "a counter given back wholly begins anew");
    promise!(rows.take(name, 10, 10, until + 1, until + 1_000).await? == 10, "with the expiry of its first taker");

    let mut takers = tokio::task::JoinSet::new();
    rows.take("contract/shared", i64::MIN, 0, NOW_MS, until).await?;
    for _ in 0..8 {
        let store = Arc::clone(store);
        takers.spawn(async move {
            let mut taken = 0;
            for _ in 0..20 {
                taken += store.coordination().take("contract/shared", 3, 100, NOW_MS, until).await?;
            }
            Ok::<i64, Error>(taken)
        });
    }
    let mut taken = 0;
    while let Some(taker) = takers.join_next().await {
        taken += taker.map_err(|error| Failure::Broken(format!("a taker ends: {error}")))??;
    }
    promise!(taken == 100, "concurrent takers get the maximum together, not {taken}");

    // More expired counters than one sweep looks at must not get in the way of the living.
    for i in 0..60 {
        rows.take(&format!("contract/short/{i}"), 1, 1, NOW_MS, NOW_MS + 1).await?;
    }
    for _ in 0..60 {
        rows.take("contract/long", 1, 100, NOW_MS + 2, until).await?;
    }
    promise!(rows.take("contract/long", 100, 100, NOW_MS + 2, until).await? == 40, "sweeping the expired leaves the living");
    rows.take("contract/long", i64::MIN, 0, NOW_MS + 2, until).await?;
    Ok(())
}

/// The first value is the one that is kept, until it is replaced; values of other names are apart, and all are found.
///
/// # Errors
/// What was promised and not kept.
pub async fn kept(store: &dyn ViewStore) -> Result<(), Failure> {
    let rows = store.coordination();
    // A store that keeps the rows of an earlier run has them still.
    let names = ["contract/kept/1", "contract/kept/2"];
    for name in names {
        rows.replace(name, "first").await?;
    }
    promise!(rows.kept("contract/kept/none").await?.is_none(), "nothing is kept under a name that was never given");
    promise!(rows.keep(names[0], "second").await? == "first", "what is kept stays");
    rows.replace(names[0], "third").await?;
    promise!(rows.kept(names[0]).await?.as_deref() == Some("third"), "until it is replaced");
    promise!(rows.keep(names[0], "fourth").await? == "third", "and then the new one stays");
    promise!(rows.kept(names[1]).await?.as_deref() == Some("first"), "values of other names are apart");
    rows.replace(names[1], "").await?;
    promise!(rows.keep(names[1], "fifth").await?.is_empty(), "an empty value is one");
    promise!(!rows.replace_if(names[0], Some("first"), "sixth").await?, "a value is not replaced by who knows another one");
    promise!(!rows.replace_if(names[0], None, "sixth").await?, "nor by who knows none");
    promise!(rows.replace_if(names[0], Some("third"), "sixth").await?, "who knows it replaces it");
    promise!(rows.kept(names[0]).await?.as_deref() == Some("sixth"), "and it is kept");
    promise!(rows.replace_if(names[0], Some("sixth"), "third").await?, "as often as one knows it");
    let fresh = format!("contract/kept/{}", rows.all_kept().await?.len());
    if rows.kept(&fresh).await?.is_none() {
        let (one, two) = tokio::join!(rows.replace_if(&fresh, None, "one"), rows.replace_if(&fresh, None, "two"));
        promise!(one? != two?, "of two who know that nothing is kept one keeps its value");
    }
    let all = rows.all_kept().await?;
    for (name, value) in [(names[0], "third"), (names[1], "")] {
        promise!(all.iter().any(|(kept, held)| (kept.as_str(), held.as_str()) == (name, value)), "all are found");
    }
    Ok(())
}
