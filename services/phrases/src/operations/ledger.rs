//! The counts of hours and phrases at a position. At the newest position they come from rows; as of an earlier one, and where rows do not
//! suffice, from the index. Both give the same numbers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::record::TABLES;
use feed::position::Position;
use futures_util::future::try_join_all;
use operation::context::{Context, Part, store_problem, stored};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use serde::de::DeserializeOwned;
use velocity::calendar::{DAY_HOURS, HOUR_MS};
use velocity::gram_rows::{GramRow, GramRows, RecentRow};
use velocity::grams::has_exact_row;
use velocity::hours::{DayRow, Hour, Hours};
use velocity::measure::{Measure, PAST_WINDOWS, Question, Scale};
use velocity::mentions::{Counted, KEPT_HOURS, Mentions};
use velocity::rows::{
    BOARD_KEY, BOARD_TERM, Board, CLOCK_KEY, Clock, DayEntry, HOURS_TERM, HourEntry, LOWEST_KEY, LOWEST_TERM, LowestRow, ViewsRow, day_key,
    gram_key, recent_key, views_key, views_term, week, week_of_day,
};
use velocity::views::{Lowest, PAST_DAYS, STALE_DAYS, Views, ViewsMeasure, newest_day};

use super::index;
use super::newest::Newest;
use reads::last_entry::last_entry;

/// As of an earlier time, the newest complete hour is searched in so many weeks before it.
const WEEKS_SEARCHED: i64 = 110;
/// How many ledgers a process keeps.
const LEDGERS_MAX: usize = 16;
/// How many phrases a ledger keeps the counts of.
const COUNTED_MAX: usize = 2_000;

/// The hours before a position, as the windows of one length need them.
pub(crate) struct Ledger {
    at: Position,
    /// The newest complete hour.
    pub(crate) newest: i64,
    /// The hours that the windows cover.
    pub(crate) hours: Hours,
    /// The length of a window.
    window_hours: i64,
    /// The windows of phrases that were counted from the index.
    counted: Mutex<HashMap<String, Vec<Counted>>>,
}

/// What a ledger is kept by: generation, seq and length of a window.
type LedgerKey = (u64, Seq, i64);

/// The ledgers that a process keeps; `None` if there was no complete hour.
#[derive(Default)]
struct Ledgers(Newest<LedgerKey, Option<Arc<Ledger>>, LEDGERS_MAX>);

impl Part for Ledgers {}

impl Ledger {
    /// The ledger at a position; `None` before the first complete hour.
    pub(crate) async fn of(ctx: &Context, at: &Position, window_hours: i64) -> Result<Option<Arc<Self>>, Problem> {
        let ledgers = Ledgers::of(ctx);
        let place = (at.view.generation(), at.seq, window_hours);
        if let Some(known) = ledgers.0.get(&place) {
            return Ok(known);
        }
        let by_rows = if at.seq == at.last { Self::by_rows(at, window_hours).await? } else { None };
        let read = match by_rows {
            Some(found) => Some(found),
            None => Self::by_index(at, window_hours).await?,
        };
        let ledger = read.map(|(newest, hours)| Arc::new(Self { at: at.clone(), newest, hours, window_hours, counted: Mutex::default() }));
        ledgers.0.put(place, ledger.clone());
        Ok(ledger)
    }

    /// The hours from rows; `None` if there is no complete hour, or if the view moved on meanwhile.
    async fn by_rows(at: &Position, window_hours: i64) -> Result<Option<(i64, Hours)>, Problem> {
        let clock: Option<Clock> = rows(at, &[CLOCK_KEY.to_owned()]).await?.pop().flatten();
        let Some(Clock { newest, .. }) = clock.filter(|clock| clock.newest > 0) else { return Ok(None) };
        let days = first_hour(newest, window_hours).div_euclid(DAY_HOURS)..=newest.div_euclid(DAY_HOURS);
        let keys: Vec<String> = days.clone().map(day_key).collect();
        let mut hours = Hours::default();
        for (day, row) in days.zip(rows::<DayRow>(at, &keys).await?) {
            hours.add_day(day, &row.unwrap_or_default());
        }
        Ok(is_unmoved(at).await?.then_some((newest, hours)))
    }

    /// The hours from the index; `None` if there was no complete hour at the position.
    async fn by_index(at: &Position, window_hours: i64) -> Result<Option<(i64, Hours)>, Problem> {
        let now = week(at.now.as_millisecond().div_euclid(HOUR_MS));
        let mut hours = Hours::default();
        for searched in (now - WEEKS_SEARCHED..=now).rev() {
            add_hours(&mut hours, at, searched..=searched).await?;
            if let Some(newest) = hours.newest() {
                let first = week(first_hour(newest, window_hours));
                if first < searched {
                    add_hours(&mut hours, at, first..=searched - 1).await?;
                }
                return Ok(Some((newest, hours)));
            }
        }
        Ok(None)
    }

    /// The windows of a question.
    pub(crate) fn scale(&self, question: Question) -> Scale {
        Scale::new(&self.hours, self.newest, question)
    }

    /// The hours that the windows cover.
    pub(crate) fn covered(&self) -> std::ops::RangeInclusive<i64> {
        first_hour(self.newest, self.window_hours)..=self.newest
    }

    /// The hours of the current window.
    pub(crate) fn current(&self) -> std::ops::RangeInclusive<i64> {
        self.newest - self.window_hours + 1..=self.newest
    }

    /// Measures phrases in their normal form, in their order.
    pub(crate) async fn measure(&self, phrases: &[String], question: Question) -> Result<Vec<Measure>, Problem> {
        let scale = self.scale(question);
        let known = self.mentions_by_rows(phrases).await?;
        let measures = phrases.iter().zip(known).map(async |(phrase, known)| {
            let windows = match known {
                Some(mentions) => self.windows(&mentions),
                None => self.counted(phrase).await?,
            };
            Ok::<_, Problem>(scale.measure_windows(&windows))
        });
        try_join_all(measures).await
    }

    /// The windows of a phrase, counted from the index and kept.
    async fn counted(&self, phrase: &str) -> Result<Vec<Counted>, Problem> {
        let known = self.counted.lock().unwrap_or_else(PoisonError::into_inner).get(phrase).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let windows = self.windows(&Mentions::of(index::mentions(&self.at, phrase, self.covered()).await?));
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() < COUNTED_MAX {
            counted.insert(phrase.to_owned(), windows.clone());
        }
        Ok(windows)
    }

    /// The current window and those before it.
    fn windows(&self, mentions: &Mentions) -> Vec<Counted> {
        mentions.windows(self.newest, self.window_hours, PAST_WINDOWS + 1)
    }

    /// The mentions of phrases from their rows; `None` for a phrase whose row does not suffice.
    async fn mentions_by_rows(&self, phrases: &[String]) -> Result<Vec<Option<Mentions>>, Problem> {
        let nothing = || vec![None; phrases.len()];
        let is_covered = self.newest - self.covered().start() < KEPT_HOURS;
        if self.at.seq != self.at.last || !is_covered {
            return Ok(nothing());
        }
        let keys: Vec<String> = phrases.iter().map(|phrase| gram_key(phrase)).collect();
        let found = rows::<GramRow>(&self.at, &keys).await?;
        let is_divided = |row: &Option<GramRow>| row.as_ref().is_some_and(GramRow::is_divided);
        let keys: Vec<String> =
            phrases.iter().zip(&found).filter(|(_, row)| is_divided(row)).map(|(phrase, _)| recent_key(phrase)).collect();
        let mut recent = rows::<RecentRow>(&self.at, &keys).await?.into_iter();
        if !is_unmoved(&self.at).await? {
            return Ok(nothing());
        }
        let mut out = Vec::with_capacity(phrases.len());
        for (phrase, row) in phrases.iter().zip(found) {
            let recent = if is_divided(&row) { recent.next().flatten() } else { None };
            let mentions = GramRows { row, recent }.mentions().ok_or_else(|| {
                tracing::error!(table = TABLES.state.name, "the mentions of a phrase cannot be decoded");
                Problem::new(ErrorCode::Internal, "a stored row cannot be read")
            })?;
            out.push(Some(mentions).filter(|mentions| has_exact_row(phrase) && mentions.is_exact(self.newest)));
        }
        Ok(out)
    }

    /// Compares the page views of the articles whose titles are the phrases with those of the weeks before.
    pub(crate) async fn views(&self, phrases: &[String], min_multiple: f64) -> Result<Vec<Option<ViewsMeasure>>, Problem> {
        let (lowest, views) = match self.views_by_rows(phrases).await? {
            Some(known) => known,
            None => self.views_by_index(phrases).await?,
        };
        let Some(day) = newest_day(&lowest, self.newest.div_euclid(DAY_HOURS)) else { return Ok(vec![None; phrases.len()]) };
        Ok(views.iter().map(|views| views.measure(day, &lowest, min_multiple)).collect())
    }

    /// The fewest views of each day and the views of the phrases, from rows; `None` if the view moved on, because rows hold the newest views only.
    async fn views_by_rows(&self, phrases: &[String]) -> Result<Option<(Lowest, Vec<Views>)>, Problem> {
        if self.at.seq != self.at.last {
            return Ok(None);
        }
        let lowest = rows::<LowestRow>(&self.at, &[LOWEST_KEY.to_owned()]).await?.pop().flatten().unwrap_or_default().days;
        let keys: Vec<String> = phrases.iter().map(|phrase| views_key(phrase)).collect();
        let views = rows::<ViewsRow>(&self.at, &keys).await?.into_iter().map(|row| row.unwrap_or_default().days).collect();
        Ok(is_unmoved(&self.at).await?.then_some((lowest, views)))
    }

    /// The fewest views of each day and the views of the phrases, from the index.
    async fn views_by_index(&self, phrases: &[String]) -> Result<(Lowest, Vec<Views>), Problem> {
        let today = self.newest.div_euclid(DAY_HOURS);
        let weeks = week_of_day(today - STALE_DAYS - PAST_DAYS)..=week_of_day(today);
        let lowest = index::entries::<DayEntry>(&self.at, LOWEST_TERM, weeks.clone()).await?.into_iter().collect();
        let read = phrases.iter().map(async |phrase| {
            let entries = index::entries::<DayEntry>(&self.at, &views_term(phrase), weeks.clone()).await?;
            Ok::<_, Problem>(Views(entries.into_iter().collect()))
        });
        Ok((lowest, try_join_all(read).await?))
    }

    /// The phrases that rise at the newest hour, for the default question.
    pub(crate) async fn board(&self) -> Result<Vec<String>, Problem> {
        if self.at.seq == self.at.last {
            let board = rows::<Board>(&self.at, &[BOARD_KEY.to_owned()]).await?.pop().flatten();
            if is_unmoved(&self.at).await? {
                return Ok(board.unwrap_or_default().phrases);
            }
        }
        let board: Option<Board> = last_entry(&self.at, TABLES.terms, BOARD_TERM, week(self.newest)).await?;
        Ok(board.unwrap_or_default().phrases)
    }
}

/// The first hour that the windows of a length cover.
fn first_hour(newest: i64, window_hours: i64) -> i64 {
    let windows = i64::try_from(PAST_WINDOWS + 1).unwrap_or(i64::MAX);
    newest - windows * window_hours + 1
}

async fn add_hours(hours: &mut Hours, at: &Position, weeks: std::ops::RangeInclusive<i64>) -> Result<(), Problem> {
    for (hour, stories, is_complete) in index::entries::<HourEntry>(at, HOURS_TERM, weeks).await? {
        hours.set(hour, Hour { stories, is_complete });
    }
    Ok(())
}

/// Whether the view has no change above the position yet, so that rows read until now are those of the position.
async fn is_unmoved(at: &Position) -> Result<bool, Problem> {
    Ok(at.view.checkpoint().await.map_err(store_problem)?.seq == at.seq)
}

/// Rows of decision state, in the order of their keys.
pub(crate) async fn rows<T: DeserializeOwned>(at: &Position, keys: &[String]) -> Result<Vec<Option<T>>, Problem> {
    let keys: Vec<_> = keys.iter().map(|key| key![key.as_str()]).collect();
    let rows = at.view.get_many(TABLES.state, &keys).await.map_err(store_problem)?;
    rows.into_iter().map(|row| row.map(|row| stored(TABLES.state, &row)).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use feed::testing::World;
    use fold::records::Rules;
    use schemas::tables::Write;
    use velocity::label::Label;
    use view_store::{Checkpoint, View, ViewStore};

    use super::*;
    use crate::rules::PhrasesRules;

    const NEWEST: i64 = 480_000;
    const TODAY: i64 = NEWEST.div_euclid(DAY_HOURS);

    /// Writes a row of decision state and its entries in the index, as a change with a seq does.
    async fn write(view: &dyn View, seq: u64, key: &str, value: &impl serde::Serialize) {
        let json = serde_json::to_string(value).unwrap();
        let mut writes = PhrasesRules::index(key, &json, Seq(seq));
        writes.push(Write::put(TABLES.state, key![key], Bytes::from(json)));
        view.commit(writes, &Checkpoint { seq: Seq(seq), ..Checkpoint::default() }).await.unwrap();
    }

    /// The views of an article: 100 on each day before the last one, and so many on that one.
    fn views_until(last: i64, views: i64) -> Views {
        Views((last - PAST_DAYS..last).map(|day| (day, 100)).chain([(last, views)]).collect())
    }

    /// Proves that a ledger that was kept since its position was the newest one does not read page views of later changes: the label of the views as of that
    /// position remains.
    #[tokio::test]
    async fn kept_ledgers_read_no_later_views() {
        let world = World::new().await;
        let view: Arc<dyn View> = world.store.live(TABLES.view).await.unwrap();
        let ctx = world.context((NEWEST + 1) * HOUR_MS);
        let mut seq = 0;
        let lowest = |last: i64| LowestRow { days: (last - PAST_DAYS..=last).map(|day| (day, 50)).collect(), day: last };
        for day in TODAY - PAST_DAYS - 1..TODAY {
            seq += 2;
            write(&*view, seq - 1, LOWEST_KEY, &lowest(day)).await;
            write(&*view, seq, &views_key("agent mesh"), &ViewsRow { days: views_until(day, 100), day }).await;
        }
        write(&*view, seq + 1, &day_key(TODAY), &DayRow::from([(0, Hour { stories: 50, is_complete: true })])).await;
        write(&*view, seq + 2, CLOCK_KEY, &Clock { newest: NEWEST, ..Clock::default() }).await;
        seq += 2;
        let views_at = async |at_seq: u64, last: u64| {
            let now = ctx.clock.now();
            let at = Position { view: Arc::clone(&view), seq: Seq(at_seq), last: Seq(last), now, clock_time: now };
            let ledger = Ledger::of(&ctx, &at, 24).await.unwrap().unwrap();
            ledger.views(&["agent mesh".to_owned()], 3.0).await.unwrap()[0].map(|views| (views.label, views.views))
        };
        assert_eq!(views_at(seq, seq).await, Some((Label::Flat, 100)));
        write(&*view, seq + 1, &views_key("agent mesh"), &ViewsRow { days: views_until(TODAY, 900), day: TODAY }).await;
        write(&*view, seq + 2, LOWEST_KEY, &lowest(TODAY)).await;
        assert_eq!(views_at(seq + 2, seq + 2).await, Some((Label::Rising, 900)));
        assert_eq!(views_at(seq, seq + 2).await, Some((Label::Flat, 100)));
    }
}
