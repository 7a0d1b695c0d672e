//! The phrases service: how often phrases occur in the titles of stories, and the label of each phrase whose label is not FLAT.
//!
//! A story changes the counts of its phrases; a story that is edited or removed takes its phrases back. The fact of an hour is the clock: when
//! an hour is complete, the phrases that may have a label are measured, and each whose label changed becomes a change. Page views confirm phrases
//! that warm. See [`velocity::rows`] for the rows.

mod docs;
mod gram_rows;
mod index;
mod labels;
mod prune;
mod state;

use crate::record::{Phrase, PhraseDetails, TABLES, details};
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::mentions::{MentionFact, kind};
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::topics::{CHANGES_PHRASES, MENTIONS, Topic};
use schemas::views::records::{RecordChange, RecordTables};
use velocity::calendar::{DAY_HOURS, day_of, hour_of};
use velocity::grams::{grams, normal};
use velocity::hours::{DayRow, Hour};
use velocity::mentions::KEPT_HOURS;
use velocity::rows::{
    CLOCK_KEY, Clock, HOUR_KEY, HourEntry, LOWEST_KEY, LowestRow, ViewsRow, article_part, articles_key, day_key, doc_key, doc_list_key,
    doc_part, gram_key, open_day_key, recent_key, views_key,
};
use velocity::views::set_lowest;

pub use self::state::PhrasesRules;
use self::state::{Rows, add_to_list, hour};
use fold::records::{DecisionRow, Records, Rules};
use fold::service::Undecided;

/// The service's two folds.
pub type Phrases = Records<PhrasesRules>;

impl Rules for PhrasesRules {
    type Fact = MentionFact;
    type Record = Phrase;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[MENTIONS];
    const CHANGES: &'static Topic = &CHANGES_PHRASES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<MentionFact>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<MentionFact>) -> Vec<DecisionRow> {
        let keys = match &fact.data {
            Some(data) if data.kind == kind::DOC => {
                let title = normal(&data.title);
                let list = hour_of(&data.hour).map(|hour| doc_list_key(hour, doc_part(&data.id)));
                // A frequent phrase, which has two rows, mostly is a word.
                let phrases = grams(&title).into_iter();
                let phrases = phrases.flat_map(|phrase| [Some(gram_key(phrase)), (!phrase.contains(' ')).then(|| recent_key(phrase))]);
                [CLOCK_KEY.to_owned(), doc_key(&data.id)].into_iter().chain(list).chain(phrases.flatten()).collect()
            }
            Some(data) if data.kind == kind::HOUR => {
                let days = hour_of(&data.hour).map(|hour| hour.div_euclid(DAY_HOURS)).into_iter();
                let days = days.flat_map(|day| (day - labels::DAYS_READ..=day).map(day_key));
                [CLOCK_KEY.to_owned(), LOWEST_KEY.to_owned()].into_iter().chain(days).collect()
            }
            Some(data) if data.kind == kind::VIEWS => {
                let (day, title) = (day_of(&data.day), normal(&data.article));
                let of_day = day.map(|day| [open_day_key(day), articles_key(day, article_part(&title))]);
                of_day.into_iter().flatten().chain([views_key(&title)]).collect()
            }
            Some(data) => day_of(&data.day).map(open_day_key).into_iter().chain([LOWEST_KEY.to_owned()]).collect(),
            None => vec![CLOCK_KEY.to_owned()],
        };
        keys.into_iter().map(DecisionRow::State).collect()
    }

    fn change_details(_record: &Phrase, change: &RecordChange<Phrase>) -> PhraseDetails {
        details(change.before.as_ref())
    }

    fn index(key: &str, value: &str, seq: Seq) -> Vec<Write> {
        index::entries(key, value, seq)
    }

    fn decide(state: &mut Rows<'_>, fact: &Fact<MentionFact>) -> Result<(), Undecided> {
        match (fact.kind, &fact.data) {
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            (FactKind::Observed, Some(data)) => match data.kind.as_str() {
                kind::DOC => docs::decide(state, data),
                kind::HOUR => decide_hour(state, data),
                kind::VIEWS => decide_views(state, data),
                kind::DAY => decide_day(state, data),
                other => Err(Undecided::Poison(format!("the kind {other:?} is unknown"))),
            },
            // A key of a story is the stream and its id; hours and days are not withdrawn.
            (FactKind::Withdrawn | FactKind::Superseded, _) => match fact.key.split_once('/') {
                Some((_, id)) if !id.contains('/') => docs::remove(state, id),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Parses a day of a fact.
fn day(text: &str) -> Result<i64, Undecided> {
    day_of(text).ok_or_else(|| Undecided::Poison(format!("{text:?} is no day")))
}

/// Remembers the stories of an hour. A complete hour moves the clock, or adds to an earlier window; either way the phrases are labelled.
fn decide_hour(state: &mut Rows<'_>, data: &MentionFact) -> Result<(), Undecided> {
    let hour = hour(&data.hour)?;
    let (day, of_day) = (hour.div_euclid(DAY_HOURS), hour.rem_euclid(DAY_HOURS));
    let mut clock: Clock = state.get(CLOCK_KEY)?.unwrap_or_default();
    let mut row: DayRow = state.get(&day_key(day))?.unwrap_or_default();
    row.insert(of_day, Hour { stories: data.docs, is_complete: data.complete });
    state.remember(&day_key(day), Some(&row))?;
    let entry: HourEntry = (hour, data.docs, data.complete);
    state.remember(HOUR_KEY, Some(&entry))?;
    if !data.complete {
        return Ok(());
    }
    if clock.newest == 0 {
        clock = Clock { newest: hour, pruned: hour - prune::DELETED_AFTER_HOURS, labelled_day: day };
    }
    clock.newest = clock.newest.max(hour);
    // First, because the rows that it misses make the decision start again, and labels take longer.
    prune::decide(state, &mut clock)?;
    if hour > clock.newest - KEPT_HOURS {
        labels::decide(state, &mut clock)?;
    }
    state.remember(CLOCK_KEY, Some(&clock))
}

/// Remembers the views of an article. Articles whose titles have the same normal form count as the one with more views.
fn decide_views(state: &mut Rows<'_>, data: &MentionFact) -> Result<(), Undecided> {
    let day = day(&data.day)?;
    let open: i64 = state.get(&open_day_key(day))?.unwrap_or(i64::MAX);
    let phrase = normal(&data.article);
    if !phrase.is_empty() {
        let mut row: ViewsRow = state.get(&views_key(&phrase))?.unwrap_or_default();
        let most = row.days.0.get(&day).copied().unwrap_or(0).max(data.views);
        row.days.set(day, most);
        row.day = day;
        state.remember(&views_key(&phrase), Some(&row))?;
        add_to_list(state, &articles_key(day, article_part(&phrase)), &phrase)?;
    }
    state.remember(&open_day_key(day), Some(&open.min(data.views)))
}

/// Closes a day of page views.
fn decide_day(state: &mut Rows<'_>, data: &MentionFact) -> Result<(), Undecided> {
    let day = day(&data.day)?;
    let Some(fewest) = state.get::<i64>(&open_day_key(day))? else { return Ok(()) };
    let mut row: LowestRow = state.get(LOWEST_KEY)?.unwrap_or_default();
    set_lowest(&mut row.days, day, fewest);
    row.day = day;
    state.remember(LOWEST_KEY, Some(&row))?;
    prune::views(state, day)
}

#[cfg(test)]
mod tests;
