//! Tests of the matchers: watches found by keys are those found by comparing all, a watch sends nothing that is recorded after its end, and no late news,
//! and a daily watch sends a day when it is over.

use std::collections::BTreeSet;

use feed::filter::Element;
use feed::testing::{Chance, SOURCE, START_MS, WORDS, World, fill};
use proofs::hash::Hash32;
use schemas::views::recalls::Recall;
use view_store::ViewStore;

use super::*;

/// The recalls' changes, of which a watch selects those whose hazard has a word. `KEYED` says whether watches are found by keys.
struct ByWord<const KEYED: bool>;

fn key(word: &str) -> u64 {
    let hash = Hash32::of(word.to_lowercase().as_bytes()).0;
    u64::from_be_bytes(std::array::from_fn(|at| hash[at]))
}

impl<const KEYED: bool> WebhookFeed for ByWord<KEYED> {
    type Subscription = String;
    type Record = Recall;

    const SOURCE: Source = SOURCE;

    fn subscription(watch: &SavedItem) -> Option<String> {
        Some(watch.filter.clone()).filter(|filter| !filter.is_empty())
    }

    fn selects(word: &String, change: &Element<Recall>) -> bool {
        change.record.hazard.split(' ').any(|own| own.eq_ignore_ascii_case(word))
    }

    fn subscription_keys(word: &String) -> Option<Vec<u64>> {
        // A watch of "fire" is compared with every change, next to others that have keys.
        (KEYED && word != "fire").then(|| vec![key(word), key("a word of no change")])
    }

    fn change_keys(change: &Element<Recall>) -> Vec<u64> {
        change.record.hazard.split(' ').map(key).collect()
    }

    async fn find(ctx: &Context, word: &String, after: Seq, upto: Seq) -> MatchingChanges<Recall> {
        let (mut changes, to) = page::<Recall>(ctx, &SOURCE, ctx.live(SOURCE.view).await?, after, upto).await?;
        changes.retain(|change| Self::selects(word, change));
        Ok((changes, to))
    }

    fn message(_: &SavedItem, changes: Vec<Element<Recall>>) -> Option<Value> {
        Some(changes.iter().map(|change| change.seq.0).collect())
    }
}

fn watch(number: usize, word: &str, until: i64) -> SavedItem {
    SavedItem { id: format!("watch_{number}"), filter: word.to_owned(), until, ..SavedItem::default() }
}

/// Proves that watches found by their keys are those that select a change of the page, also after watches were replaced and removed; and that neither
/// way finds a watch that had ended when the change was recorded, or whose only changes are late news.
#[tokio::test]
async fn keys_find_what_a_comparison_finds() {
    let (mut world, mut chance) = (World::new().await, Chance(11));
    fill(&mut world, &mut chance, 600, 200).await;
    let ctx = world.context(START_MS);
    let (mut keyed, mut compared) = (matcher::<ByWord<true>>(), matcher::<ByWord<false>>());
    let mut watches = BTreeMap::new();
    let words: Vec<&str> = WORDS.iter().flat_map(|text| text.split(' ')).collect();
    for number in 0..240 {
        let until = if number % 3 == 0 { START_MS + 600_000 * i64::try_from(number).unwrap() } else { 0 };
        // Every fifth one replaces an earlier one, every seventh one is removed at once.
        let own = watch(if number % 5 == 4 { number / 2 } else { number }, words[number % words.len()], until);
        assert!(keyed.add(&own) && compared.add(&own));
        watches.insert(own.id.clone(), own.clone());
        if number % 7 == 6 {
            keyed.remove(&own.id);
            compared.remove(&own.id);
            watches.remove(&own.id);
        }
    }
    assert!(!keyed.add(&watch(999, "", 0)), "a filter that cannot be read");
    let upto = world.checkpoint.seq;
    let view = world.store.live(SOURCE.view).await.unwrap();
    let (mut changes, mut after) = (Vec::new(), Seq(0));
    while after < upto {
        let (found, to) = page::<Recall>(&ctx, &SOURCE, Arc::clone(&view), after, upto).await.unwrap();
        changes.extend(found);
        after = to;
    }
    let is_waiting = |id: &str| !id.ends_with('8');
    let (mut after, mut ended, mut late) = (Seq(0), 0, 0);
    while after < upto {
        let find =
            async |matcher: &dyn WatchMatcher| matcher.matching_watches(&ctx, Arc::clone(&view), after, upto, &is_waiting).await.unwrap();
        let ((by_keys, to), (by_comparison, _)) = (find(&*keyed).await, find(&*compared).await);
        let in_page = changes.iter().filter(|change| change.seq > after && change.seq <= to);
        let mut expected = BTreeSet::new();
        for change in in_page {
            for own in watches.values().filter(|own| is_waiting(&own.id) && ByWord::<true>::selects(&own.filter, change)) {
                if change.is_backfill() {
                    late += 1;
                } else if own.until == 0 || change.recorded_at <= rfc3339(own.until) {
                    expected.insert(own.id.clone());
                } else {
                    ended += 1;
                }
            }
        }
        assert_eq!((by_keys.into_iter().collect::<BTreeSet<_>>(), by_comparison.into_iter().collect()), (expected.clone(), expected));
        after = to;
    }
    assert!(ended > 100 && late > 100, "too few watches ended, or too little late news: {ended}, {late}");

    // The next message, and its body, leave out what was recorded after the end, and late news.
    let own = watch(7_000, "fire", START_MS + 600_000 * 300);
    let selected: Vec<u64> = changes
        .iter()
        .filter(|change| ByWord::<true>::selects(&own.filter, change) && change.recorded_at <= rfc3339(own.until) && !change.is_backfill())
        .map(|change| change.seq.0)
        .collect();
    keyed.add(&own);
    let (mut after, mut found) = (Seq(0), Vec::new());
    while after < upto {
        after = match keyed.next(&ctx, &own.id, after, upto).await.unwrap() {
            NextMessage::NoneUpTo(to) => to,
            NextMessage::NotBefore(due_ms) => panic!("the message is due at {due_ms}"),
            NextMessage::Span(_, last) => {
                let message = Delivery { done: after, upto: last, ..Delivery::default() };
                let body = keyed.body(&ctx, &own, &message).await.unwrap().unwrap();
                found.extend(serde_json::from_slice::<Vec<u64>>(&body).unwrap());
                last
            }
        };
    }
    assert!(selected.len() > 5);
    assert_eq!(found, selected);
    let late = Delivery { done: Seq(selected[selected.len() - 1]), upto, ..Delivery::default() };
    assert_eq!(keyed.body(&ctx, &own, &late).await.unwrap(), None);
}

/// The same changes, a day at once.
struct ByDay;

impl WebhookFeed for ByDay {
    type Subscription = String;
    type Record = Recall;

    const SOURCE: Source = SOURCE;
    const IS_DAILY: bool = true;

    fn subscription(watch: &SavedItem) -> Option<String> {
        ByWord::<false>::subscription(watch)
    }

    fn selects(word: &String, change: &Element<Recall>) -> bool {
        ByWord::<false>::selects(word, change)
    }

    async fn find(ctx: &Context, word: &String, after: Seq, upto: Seq) -> MatchingChanges<Recall> {
        ByWord::<false>::find(ctx, word, after, upto).await
    }

    fn message(watch: &SavedItem, changes: Vec<Element<Recall>>) -> Option<Value> {
        let days: BTreeSet<&str> = changes.iter().map(|change| &change.recorded_at[..10]).collect();
        assert_eq!(days.len(), 1, "a message has changes of one day");
        ByWord::<false>::message(watch, changes)
    }
}

/// Proves that a daily watch sends each change once, in messages of one day each, and nothing of a day that is not over; and that it says when that is.
#[tokio::test]
async fn a_daily_watch_sends_days_that_are_over() {
    let (mut world, mut chance) = (World::new().await, Chance(12));
    fill(&mut world, &mut chance, 600, 200).await;
    let (mut daily, own) = (matcher::<ByDay>(), watch(1, "fire", 0));
    assert!(daily.add(&own));
    let upto = world.checkpoint.seq;
    // The changes are recorded every ten minutes from midnight on, so 144 of them a day.
    let sent_at = async |now_ms: i64| {
        let ctx = world.context(now_ms);
        let (mut after, mut messages) = (Seq(0), Vec::new());
        while after < upto {
            after = match daily.next(&ctx, &own.id, after, upto).await.unwrap() {
                NextMessage::NoneUpTo(to) => to,
                NextMessage::NotBefore(due_ms) => return (messages, Some(due_ms)),
                NextMessage::Span(_, last) => {
                    let message = Delivery { done: after, upto: last, ..Delivery::default() };
                    messages.push(daily.body(&ctx, &own, &message).await.unwrap().unwrap());
                    last
                }
            };
        }
        (messages, None)
    };
    let (all, none) = sent_at(START_MS + 10 * DAY_MS).await;
    assert!(none.is_none() && all.len() >= 4, "{}", all.len());
    let noon_of_second = START_MS + DAY_MS + DAY_MS / 2;
    let (first, due_ms) = sent_at(noon_of_second).await;
    assert_eq!(due_ms, Some(START_MS + 2 * DAY_MS));
    assert!(!first.is_empty() && first.len() < all.len() && all.starts_with(&first));
    assert_eq!(sent_at(START_MS + 2 * DAY_MS - 1).await.0, first, "a millisecond before midnight");
    assert!(sent_at(START_MS + 2 * DAY_MS).await.0.len() > first.len());
}
