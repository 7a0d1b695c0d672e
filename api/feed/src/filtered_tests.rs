//! Pages under filters, over a view of simple records: which changes are found, what cursors hold, what a changed filter returns, and who is woken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Poll;

use operation::context::Part;
use operation::signing_state::SigningState;
use operation::{Body, Call, Form};
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{Field, Fields, Filter};
use super::late_news::late_news_note;
use super::position::position;
use super::query::Query;
use super::query::newest;
use super::redaction::Redaction;
use super::select::{Direction, Selection};
use super::testing::records::RecordView;
use super::testing::{Chance, call};
use super::things::{
    LARGE, SMALL, Thing, Things, Wants, after, answer, at_cursor, at_ms, filters, keyed, page, query, seqs, thing_by_chance,
};
use super::unknown::{Recorded, unknown_values};
use super::{Source, cursor, names};
use crate::Feeds;

/// Proves that pages of any size under any filter join without a gap and contain each matching change once, in order, with the previous version of
/// the record: when terms are read over many partitions, when one has more than is read at once, and when all changes are read.
#[tokio::test]
async fn pages_join_under_every_filter() {
    for (tables, changes) in [(&SMALL, 900), (&LARGE, 4_500)] {
        let things = Things::filled(tables, 11, changes).await;
        let (ctx, feed, mut chance) = (things.context(), things.feed(Some(7)), Chance(12));
        for wants in filters() {
            let expected: Vec<Value> = things
                .shown(&wants, Seq(u64::MAX))
                .into_iter()
                .map(|change| {
                    let event = if change.before.is_some() { "modified" } else { "new" };
                    json!({ "event": event, "seq": change.seq, "record": change.after, "before": change.before })
                })
                .collect();
            let (mut got, mut to, mut question) = (Vec::new(), 0, query(wants.clone()));
            question.request.before = true;
            loop {
                question.request.page.limit = 1 + chance.below(200);
                let page = page(&keyed(&ctx), &feed, question.clone()).await;
                assert_eq!(page["from"], to + 1, "{wants:?}");
                let (end, own) = (page["to"].as_u64().unwrap(), seqs(&page));
                assert!(
                    own.len() <= question.request.page.limit && own.iter().all(|seq| (to + 1..=end).contains(seq)),
                    "{wants:?}: {page}"
                );
                assert_eq!(page["hasMore"], Seq(end) < things.checkpoint.seq);
                assert!(end > to, "a page gets on: {wants:?}");
                got.extend(page["things"].as_array().unwrap().clone());
                (to, question) = (end, after(question, &page));
                if page["hasMore"] == false {
                    break;
                }
            }
            assert_eq!(got, expected, "{wants:?}");
            let end = page(&keyed(&ctx), &feed, question).await;
            assert_eq!((&end["from"], &end["to"], seqs(&end).len()), (&json!(to + 1), &json!(to), 0));
        }
    }
}

/// Proves the same for reading backwards, from any change on, and that the newest changes are those of the model.
#[tokio::test]
async fn backwards() {
    for (tables, changes) in [(&SMALL, 900), (&LARGE, 4_500)] {
        let things = Things::filled(tables, 13, changes).await;
        let (ctx, feed, mut chance) = (things.context(), things.feed(None), Chance(14));
        let at = position(&ctx, &feed.source, None).await.unwrap();
        for wants in filters() {
            let selection = Selection::new(&ctx, &feed.source, tables, &at, vec![wants.criteria()]).await.unwrap();
            let begin = 1 + chance.below(changes);
            let (low, begin) = (Seq(chance.below(begin) as u64), Seq(begin as u64));
            let (mut upto, mut got) = (begin, Vec::new());
            while upto > low {
                let limit = 1 + chance.below(60);
                let found = selection.find(low, upto, limit, Direction::Backwards).await.unwrap();
                assert!(found.to <= upto && found.to > low && found.changes.len() <= limit, "{wants:?}");
                assert!(found.changes.iter().all(|change| (found.to..=upto).contains(&change.seq)));
                got.extend(found.changes.into_iter().map(|change| change.seq));
                upto = found.to.previous();
            }
            let mut expected: Vec<Seq> =
                things.shown(&wants, begin).into_iter().map(|change| change.seq).filter(|seq| *seq > low).collect();
            expected.reverse();
            assert_eq!(got, expected, "{wants:?} {low}..={begin}");
            let found = newest(&ctx, &feed, &at, wants.criteria(), Seq(0), 40).await.unwrap();
            let note = found.list_note();
            let newest: Vec<Seq> = things.shown(&wants, Seq(u64::MAX)).into_iter().rev().take(40).map(|change| change.seq).collect();
            assert_eq!((found.changes.into_iter().map(|change| change.seq).collect::<Vec<_>>(), note), (newest, None), "{wants:?}");
        }
    }
}

/// Proves that a search for no changes ends, finds none and covers nothing, so that another one continues where it began.
#[tokio::test]
async fn a_search_for_no_changes() {
    let things = Things::filled(&SMALL, 33, 100).await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let at = position(&ctx, &feed.source, None).await.unwrap();
    for wants in filters() {
        let selection = Selection::new(&ctx, &feed.source, things.tables, &at, vec![wants.criteria()]).await.unwrap();
        for (direction, to) in [(Direction::Forwards, Seq(10)), (Direction::Backwards, Seq(51))] {
            let found = selection.find(Seq(10), Seq(50), 0, direction).await.unwrap();
            assert_eq!((found.changes.len(), found.to), (0, to), "{wants:?}");
        }
        let found = newest(&ctx, &feed, &at, wants.criteria(), Seq(0), 0).await.unwrap();
        assert_eq!((found.changes.len(), found.complete_from()), (0, at.seq.next()), "{wants:?}");
    }
}

/// Proves that parts of names find names that were written after the names were first read, by applying the feed; another generation reads its own
/// names again.
#[tokio::test]
async fn names_are_followed() {
    let mut things = Things::filled(&SMALL, 15, 100).await;
    let mut chance = Chance(16);
    let (ctx, feed) = (things.context(), things.feed(None));
    let wants = Wants { name: Some("odd".to_owned()), ..Wants::default() };
    let mut seen = query(wants.clone());
    for round in 0..40 {
        let found = page(&keyed(&ctx), &feed, seen.clone()).await;
        seen = after(seen, &found);
        let odd = Thing { name: format!("An ODD one {round}"), ..thing_by_chance(&mut chance) };
        let seq = things.change(&odd);
        things.fill(&mut chance, 5).await;
        let found = page(&keyed(&ctx), &feed, seen.clone()).await;
        assert!(seqs(&found).contains(&seq.0), "{found}");
        let view = Arc::clone(&things.view);
        let all: Arc<names::Names<Thing>> = Feeds::of(&ctx).names(&feed.source, things.tables, &*view);
        let reader = Feeds::of(&ctx).reader(&feed.source, Arc::clone(&things.view));
        let values = all.at(&reader, "name", things.checkpoint.seq).await.unwrap();
        let known: BTreeSet<String> = things.changes.iter().map(|change| schemas::views::records::normal(&change.after.name)).collect();
        assert!(values.iter().eq(&known), "{values:?}");
        let fresh: Arc<names::Names<Thing>> = Feeds::of(&things.context()).names(&feed.source, things.tables, &*view);
        assert!(fresh.at(&reader, "name", things.checkpoint.seq).await.unwrap().iter().eq(&known), "read from the table");
    }
}

/// Proves that a cursor is refused under another filter, and that with `rebase` the pages, of any size, contain exactly the difference between the
/// two filters over the things as they were at the cursor, however they changed since; then the feed continues at the cursor.
#[tokio::test]
async fn rebase_returns_the_difference() {
    let things = Things::filled(&SMALL, 17, 1_200).await;
    let (ctx, feed, mut chance) = (things.context(), things.feed(None), Chance(18));
    let (all, last) = (filters(), things.checkpoint.seq);
    for _ in 0..60 {
        let (old, new) = (all[chance.below(all.len())].clone(), all[chance.below(all.len())].clone());
        let at = [Seq(0), last, Seq(chance.below(1_200) as u64)][chance.below(3)];
        let stands = cursor::encode(&ctx.secrets, "things", at, &crate::filter::Filter::canonical(&old));
        let mut question = at_cursor(query(new.clone()), stands);
        if old == new {
            question.request.rebase = chance.below(2) == 0;
        } else {
            let problem = answer(&keyed(&ctx), &feed, question.clone()).await.unwrap_err();
            assert_eq!((problem.code, problem.parameter.as_str()), (ErrorCode::FilterChanged, "cursor"));
            question.request.rebase = true;
            let mut events = keyed(&ctx);
            events.form = Form::Events;
            assert_eq!(answer(&events, &feed, question.clone()).await.unwrap_err().parameter, "rebase");
            let mut differences: BTreeMap<String, (String, Value)> = BTreeMap::new();
            loop {
                question.request.page.limit = 1 + chance.below(90);
                let page = page(&keyed(&ctx), &feed, question.clone()).await;
                assert_eq!((&page["from"], &page["to"]), (&json!(at.next()), &json!(at)), "nothing behind the cursor is covered yet");
                for item in page["things"].as_array().unwrap() {
                    let previous = differences.insert(
                        item["record"]["id"].as_str().unwrap().to_owned(),
                        (item["event"].as_str().unwrap().to_owned(), item["record"].clone()),
                    );
                    assert_eq!(previous, None, "each once");
                }
                question = after(question, &page);
                // A rebase continues without the parameter; under a third filter it does not.
                question.request.rebase = chance.below(2) == 0;
                let made_under = cursor::read(&ctx.secrets, "things", question.request.page.cursor.as_deref().unwrap()).unwrap().1;
                if !made_under.starts_with('\u{1}') {
                    assert_eq!(page["hasMore"], at < last);
                    break;
                }
                assert_eq!(page["hasMore"], true);
                let third = Wants { kind: Some("third".to_owned()), ..Wants::default() };
                let mut other = Query { filter: third, ..question.clone() };
                other.request.rebase = true;
                let refused = answer(&keyed(&ctx), &feed, other).await.unwrap_err();
                let advises_what_is_given = refused.detail.contains("rebase=true");
                assert_eq!((refused.code, advises_what_is_given), (ErrorCode::FilterChanged, false), "{}", refused.detail);
            }
            let standing = things.standing(at);
            let differ = standing.into_values().filter_map(|thing| match (old.takes(thing), new.takes(thing)) {
                (true, false) => Some((thing.id.clone(), ("removed".to_owned(), json!(thing)))),
                (false, true) => Some((thing.id.clone(), ("added".to_owned(), json!(thing)))),
                _ => None,
            });
            assert_eq!(differences, differ.collect(), "{old:?} to {new:?} at {at}");
        }
        question.request.page.limit = 7;
        let next_page = page(&keyed(&ctx), &feed, question).await;
        let later = things.shown(&new, Seq(u64::MAX)).into_iter().map(|change| change.seq).filter(|seq| *seq > at);
        let next: Vec<u64> = later.map(|seq| seq.0).take(7).collect();
        assert_eq!((&next_page["from"], seqs(&next_page)), (&json!(at.next()), next), "{new:?} after {at}");
    }
}

/// Proves that a reader without a key sees only the last days, in pages and in the difference of a changed filter, and gets a note about it.
#[tokio::test]
async fn callers_without_a_key_see_the_last_days() {
    let things = Things::filled(&SMALL, 19, 1_500).await;
    let (ctx, feed, last) = (things.context(), things.feed(Some(7)), things.checkpoint.seq);
    // One change every ten minutes; now is ten minutes after the last.
    let begin = last.0 + 1 - 7 * 144;
    let wants = Wants { kind: Some("b".to_owned()), ..Wants::default() };
    let mut question = query(wants.clone());
    let (mut got, mut from) = (Vec::new(), begin);
    loop {
        let page = page(&call(&ctx), &feed, question.clone()).await;
        assert_eq!(page["from"], from);
        // Only a page that is cut says how many items a page has.
        let note = page["note"].as_str().unwrap();
        assert_eq!((note.contains("7 days"), note.contains("25")), (true, page["hasMore"] == true), "{page}");
        assert!(seqs(&page).len() <= 25);
        got.extend(seqs(&page));
        from = page["to"].as_u64().unwrap() + 1;
        question = after(question, &page);
        if page["hasMore"] == false {
            break;
        }
    }
    let all = things.shown(&wants, Seq(u64::MAX)).into_iter().map(|change| change.seq.0);
    let expected: Vec<u64> = all.filter(|seq| *seq >= begin).collect();
    assert_eq!(got, expected);

    question.filter = Wants { kind: Some("c".to_owned()), ..Wants::default() };
    question.request.rebase = true;
    let mut shown = 0;
    loop {
        let page = page(&call(&ctx), &feed, question.clone()).await;
        assert!(seqs(&page).iter().all(|seq| *seq >= begin), "{page}");
        shown += seqs(&page).len();
        question = after(question, &page);
        if page["hasMore"] == false {
            break;
        }
    }
    assert!(shown > 0);
}

/// Proves that `asOf` shows the changes recorded until then and no later ones, also for a later cursor and after new changes.
#[tokio::test]
async fn as_of_pages_end_at_that_time() {
    let things = Things::filled(&SMALL, 20, 700).await;
    let (ctx, feed, mut chance) = (things.context(), things.feed(None), Chance(21));
    for wants in filters() {
        let seq = Seq(1 + chance.below(usize::try_from(things.checkpoint.seq.0).unwrap()) as u64);
        let as_of = schemas::clock::rfc3339(at_ms(seq) + i64::try_from(chance.below(600_000)).unwrap());
        let mut question = query(wants.clone());
        (question.request.page.as_of, question.request.page.wait) = (Some(as_of), 30);
        let mut got = Vec::new();
        let (mut to, mut more) = (0, true);
        while more {
            let page = page(&keyed(&ctx), &feed, question.clone()).await;
            got.extend(seqs(&page));
            (to, more) = (page["to"].as_u64().unwrap(), page["hasMore"] == true);
            question = after(question, &page);
        }
        assert_eq!((to, got), (seq.0, things.shown(&wants, seq).into_iter().map(|change| change.seq.0).collect()), "{wants:?}");
        let beyond = cursor::encode(&ctx.secrets, "things", things.checkpoint.seq, &crate::filter::Filter::canonical(&wants));
        let page = page(&keyed(&ctx), &feed, at_cursor(question.clone(), beyond)).await;
        assert_eq!((seqs(&page).len(), &page["hasMore"]), (0, &json!(false)));
        let mut events = keyed(&ctx);
        events.form = Form::Events;
        assert_eq!(answer(&events, &feed, question).await.unwrap_err().parameter, "asOf");
    }
}

/// Proves that a waiting reader is woken by a matching change, skips other changes, and gets an answer when the server stops.
#[tokio::test]
async fn a_reader_that_waits_is_woken() {
    let mut things = Things::filled(&SMALL, 22, 100).await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let wants = Wants { kind: Some("awaited".to_owned()), ..Wants::default() };
    let begun = page(&keyed(&ctx), &feed, query(wants.clone())).await;
    assert_eq!(begun["to"], things.checkpoint.seq.0);
    let mut question = after(query(wants), &begun);
    question.request.page.wait = 30;
    for form in [Form::Json, Form::Events] {
        let caller = Call { form, ..keyed(&ctx) };
        let mut waiting = std::pin::pin!(answer(&caller, &feed, question.clone()));
        let is_waiting = futures_util::poll!(waiting.as_mut());
        assert!(matches!(is_waiting, Poll::Pending));
        for _ in 0..3 {
            things.fill(&mut Chance(things.checkpoint.seq.0), 4).await;
            tokio::task::yield_now().await;
            assert!(matches!(futures_util::poll!(waiting.as_mut()), Poll::Pending), "nothing fits");
        }
        let awaited = Thing { id: format!("awaited/{}", form.as_str()), kind: "awaited".to_owned(), ..Thing::default() };
        let seq = things.change(&awaited);
        things.commit().await;
        let answered = waiting.await.unwrap();
        question.request.page.cursor = Some(answered.next_cursor.clone());
        match answered.body {
            Body::Json(page) => {
                assert_eq!((&page["from"], seqs(&page)), (&json!(begun["to"].as_u64().unwrap() + 1), vec![seq.0]));
            }
            Body::Events { items: events, .. } => {
                let last: Value = serde_json::from_slice(&events.last().unwrap().data).unwrap();
                assert_eq!(last["seq"], seq.0);
                let (stands, _) = cursor::read(&ctx.secrets, "things", &events.last().unwrap().id).unwrap();
                assert_eq!(stands, seq);
            }
            body => panic!("{body:?}"),
        }
    }
    // Nothing follows: a reader that waits here gets its answer at the stop.
    let caller = keyed(&ctx);
    let mut waiting = std::pin::pin!(answer(&caller, &feed, question));
    assert!(matches!(futures_util::poll!(waiting.as_mut()), Poll::Pending));
    ctx.stopping.send_replace(true);
    let Body::Json(page) = waiting.await.unwrap().body else { panic!() };
    assert_eq!((seqs(&page).len(), &page["hasMore"]), (0, &json!(false)));
}

/// Proves that an Atom document without a position has the newest matching changes under every filter, oldest first.
#[tokio::test]
async fn atom_documents_begin_with_the_newest() {
    let things = Things::filled(&SMALL, 35, 900).await;
    let (ctx, feed) = (things.context(), things.feed(None));
    for wants in filters() {
        let mut question = query(wants.clone());
        (question.request.page.start, question.request.page.limit) = (None, 40);
        let answered = answer(&Call { form: Form::Atom, ..keyed(&ctx) }, &feed, question).await.unwrap();
        let Body::Events { items, .. } = answered.body else { panic!("{:?}", answered.body) };
        let got: Vec<Seq> = items.iter().map(|item| cursor::read(&ctx.secrets, "things", &item.id).unwrap().0).collect();
        let all: Vec<Seq> = things.shown(&wants, Seq(u64::MAX)).into_iter().map(|change| change.seq).collect();
        assert_eq!(got, all[all.len().saturating_sub(40)..], "{wants:?}");
        assert!(!answered.etag.is_empty());
    }
}

/// Proves that pages with the last changes lead to those before them: under every filter each matching change comes once, the newest ones first, up to the
/// first one or the free window, and pages join without a gap; that no page leads to an empty one; and that a cursor of another filter is refused.
#[tokio::test]
async fn pages_lead_backwards() {
    let things = Things::filled(&SMALL, 36, 1_500).await;
    let (ctx, feed, last, mut chance) = (things.context(), things.feed(Some(7)), things.checkpoint.seq.0, Chance(37));
    let mut question = query(Wants::default());
    question.request.page.start = Some("newest".to_owned());
    for wants in filters() {
        // One change every ten minutes; now is ten minutes after the last.
        for (caller, begin) in [(keyed(&ctx), 1), (call(&ctx), last + 1 - 7 * 144)] {
            (question.filter, question.request.page.cursor) = (wants.clone(), None);
            let (mut got, mut end) = (Vec::new(), last);
            loop {
                question.request.page.limit = 1 + chance.below(40);
                let page = page(&caller, &feed, question.clone()).await;
                assert_eq!((&page["to"], &page["hasMore"]), (&json!(end), &json!(end < last)), "{wants:?}");
                assert!(question.request.page.cursor.is_none() || !seqs(&page).is_empty(), "a page leads to changes: {wants:?}");
                got.extend(seqs(&page).into_iter().rev());
                let Some(older) = page["older"].as_str() else { break };
                end = page["from"].as_u64().unwrap() - 1;
                question.request.page.cursor = Some(older.to_owned());
            }
            let all = things.shown(&wants, Seq(u64::MAX)).into_iter().rev().map(|change| change.seq.0);
            assert_eq!(got, all.filter(|seq| *seq >= begin).collect::<Vec<u64>>(), "{wants:?}");
        }
    }
    question.filter = Wants { kind: Some("rare".to_owned()), ..Wants::default() };
    let rare = things.shown(&question.filter, Seq(u64::MAX)).len();
    for (limit, leads_on) in [(rare, false), (rare - 1, true)] {
        (question.request.page.cursor, question.request.page.limit) = (None, limit);
        let page = page(&keyed(&ctx), &feed, question.clone()).await;
        assert_eq!((seqs(&page).len(), page["older"].is_string()), (limit, leads_on), "{page}");
    }
    question.filter = Wants { kind: Some("b".to_owned()), ..Wants::default() };
    question.request.page.cursor = Some(cursor::encode(&ctx.secrets, "things", Seq(9), ""));
    question.request.rebase = true;
    assert_eq!(answer(&keyed(&ctx), &feed, question).await.unwrap_err().code, ErrorCode::FilterChanged);
}

/// Proves that a page under a filter says that its changes are not signed while the checkpoints of its service are withheld.
#[tokio::test]
async fn unsigned_changes_say_so() {
    let things = Things::filled(&SMALL, 5, 60).await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let note = async || page(&keyed(&ctx), &feed, query(Wants::default())).await["note"].as_str().unwrap_or_default().to_owned();
    let signed = note().await;
    SigningState::of(&ctx).refuse_tree("things", Some("secret".to_owned()));
    let unsigned = note().await;
    assert!(!signed.contains("not signed") && unsigned.contains("not signed") && !unsigned.contains("secret"), "{signed}; {unsigned}");
}

/// Proves that a first page with the last changes that had to wait, because the search for them stopped before it found one, leads to those before it.
#[tokio::test]
async fn pages_that_waited_lead_backwards() {
    let mut things = Things::new(&SMALL).await;
    let large = |id: &str| Thing { id: id.to_owned(), size: 97, ..Thing::default() };
    let first = things.change(&large("thing/first"));
    // No term exists for the size, and a search reads 10,000 changes at most.
    for n in 0..10_100 {
        things.hidden();
        if n % 61 == 0 {
            things.commit().await;
        }
    }
    things.commit().await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let mut question = query(Wants { size: Some(97), ..Wants::default() });
    (question.request.page.start, question.request.page.wait) = (Some("newest".to_owned()), 30);
    let caller = keyed(&ctx);
    let mut waiting = std::pin::pin!(page(&caller, &feed, question.clone()));
    assert!(matches!(futures_util::poll!(waiting.as_mut()), Poll::Pending));
    let second = things.change(&large("thing/second"));
    things.commit().await;
    let found = waiting.await;
    assert_eq!((seqs(&found), &found["hasMore"]), (vec![second.0], &json!(false)), "{found}");
    assert!(
        found["note"].as_str().unwrap().contains("a narrower query searches further back, and `older` continues the search"),
        "{found}"
    );
    (question.request.page.cursor, question.request.page.wait) = (found["older"].as_str().map(str::to_owned), 0);
    let before = page(&caller, &feed, question).await;
    assert_eq!((seqs(&before), &before["to"]), (vec![first.0], &json!(found["from"].as_u64().unwrap() - 1)), "{before}");
    assert!(before["older"].is_null(), "{before}");
}

/// Proves that an empty page names a value that nothing recorded has, with the nearest recorded ones, also of a name that was recorded a moment ago;
/// that a page without news about a known value says nothing; and that a value that nothing has is noted before the limits of the search.
#[tokio::test]
async fn unknown_values_are_noted() {
    let mut things = Things::filled(&SMALL, 31, 300).await;
    things.change(&Thing { id: "thing/x".to_owned(), kind: "a".to_owned(), name: "Häagen Dairy".to_owned(), size: 5 });
    things.change(&Thing { id: "thing/y".to_owned(), kind: "a".to_owned(), name: "Name 7".to_owned(), size: 5 });
    things.commit().await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let note = async |wants: Value, start: &str| {
        let mut question = query(serde_json::from_value(wants).unwrap());
        question.request.page.start = Some(start.to_owned());
        page(&keyed(&ctx), &feed, question).await["note"].as_str().unwrap_or_default().to_owned()
    };
    for (wants, expected) in [
        (json!({ "name": "Nmae 7" }), Some("nothing recorded has the name \"Nmae 7\", the nearest known are \"name 7\"")),
        (json!({ "name": "dairi" }), Some("nothing recorded has the name \"dairi\", the nearest known are \"häagen dairy\"")),
        (json!({ "kind": "qqq", "name": "name" }), Some("nothing recorded has the kind \"qqq\"")),
        (json!({ "name": "name 7" }), None),
        (json!({ "kind": "A" }), None),
    ] {
        let said = note(wants.clone(), "latest").await;
        assert_eq!(expected.is_some(), said.contains("nothing recorded has"), "{wants}: {said}");
        assert!(said.contains(expected.unwrap_or_default()), "{wants}: {said}");
    }
    assert!(!note(json!({ "kind": "a" }), "earliest").await.contains("nothing recorded has"));
}

/// Proves that a caller who sees redacted records learns nothing about recorded values from a note: a known and an unknown value get the same words.
#[tokio::test]
async fn notes_reveal_nothing_to_limited_callers() {
    let mut things = Things::filled(&SMALL, 32, 200).await;
    things.change(&Thing { id: "thing/y".to_owned(), kind: "a".to_owned(), name: "Name 7".to_owned(), size: 5 });
    things.commit().await;
    let (ctx, feed) = (things.context(), things.feed(None));
    let source = Source { redaction: Some(Redaction::of::<Thing>()), ..feed.source };
    let at = position(&ctx, &source, None).await.unwrap();
    let recorded = Recorded { ctx: &ctx, source: &source, tables: things.tables, at: &at };
    let said = async |name: &str, call: &Call, is_empty: bool| {
        let wants = Wants { name: Some(name.to_owned()), ..Wants::default() };
        unknown_values(call, &recorded, &wants, is_empty).await.unwrap().join("; ")
    };
    let (free, paid) = (call(&ctx), keyed(&ctx));
    for name in ["name 7", "nmae 7"] {
        assert_eq!(said(name, &free, true).await, format!("this tier is shown nothing with the name {name:?}"));
        assert_eq!(said(name, &free, false).await, "");
    }
    assert_eq!(said("name 7", &paid, true).await, "");
    assert!(said("nmae 7", &paid, true).await.contains("\"name 7\""));
    // The same holds for callers without a key, who see only the last days.
    let (source, wants) = (things.feed(Some(7)).source, |name: &str| Wants { name: Some(name.to_owned()), ..Wants::default() });
    let recorded = Recorded { source: &source, ..recorded };
    for name in ["name 7", "nmae 7"] {
        let said = unknown_values(&free, &recorded, &wants(name), true).await.unwrap();
        assert_eq!(said, [format!("this tier is shown nothing with the name {name:?}")]);
    }
    assert!(unknown_values(&paid, &recorded, &wants("nmae 7"), true).await.unwrap().concat().contains("\"name 7\""));
}

/// A filter of things that selects late news only if asked to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct News {
    include_backfill: bool,
}

impl Filter for News {
    type Record = Thing;

    const FIELDS: Fields<Self> = &[Field::<Self, Thing>::backfill(|filter| filter.include_backfill)];
}

/// Proves that the note about late news counts late news alone, whatever other changes match in the range.
#[tokio::test]
async fn only_late_news_is_noted() {
    let things = Things::new(&SMALL).await;
    let mut records = RecordView::<Thing>::new(&*things.world.store, &SMALL).await;
    for (id, backfill) in [("thing/1", false), ("thing/2", true), ("thing/3", false)] {
        let thing = Thing { id: id.to_owned(), ..Thing::default() };
        records.change_with(at_ms(records.checkpoint.seq.next()), &thing, |_| json!({ "backfill": backfill }));
    }
    records.commit().await;
    let (ctx, source) = (things.world.context(at_ms(Seq(9))), things.feed(None).source);
    let at = position(&ctx, &source, None).await.unwrap();
    let recorded = Recorded { ctx: &ctx, source: &source, tables: things.tables, at: &at };
    for (after, upto, include_backfill, is_noted) in
        [(0, 1, false, false), (2, 3, false, false), (1, 2, false, true), (0, 3, false, true), (0, 3, true, false)]
    {
        let note = late_news_note(&recorded, &News { include_backfill }, Seq(after), Seq(upto)).await.unwrap();
        assert_eq!(note.is_some(), is_noted, "{after} {upto} {include_backfill}");
    }
}
