//! The velocity of phrases at a position, with the notes that belong to it.

use std::sync::Arc;

use feed::position::Position;
use operation::context::Context;
use operation::problem::Problem;
use velocity::calendar::{HOUR_MS, time};
use velocity::grams::is_stop_phrase;
use velocity::label::{Label, confirmed};
use velocity::measure::{Measure, Question};
use velocity::views::ViewsMeasure;

use super::answer::{SourceMeasure, Velocity, Window};
use super::ledger::Ledger;
use super::samples::samples;
use reads::number::Number;

/// Without a complete hour for so many hours, a note says so.
const LATE_HOURS: i64 = 4;

/// A phrase with what its sources say.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) phrase: String,
    pub(crate) measure: Measure,
    views: Option<ViewsMeasure>,
}

impl Measured {
    /// The label that all sources give.
    pub(crate) fn label(&self) -> Label {
        confirmed(self.measure.label(), self.views.map(|views| views.label))
    }

    /// The order of answers: the highest multiple, then the highest count, then the phrase.
    pub(crate) fn is_before(&self, other: &Self) -> std::cmp::Ordering {
        let (own, others) = (&self.measure, &other.measure);
        others
            .rank_multiple()
            .total_cmp(&own.rank_multiple())
            .then_with(|| others.counted.count.cmp(&own.counted.count))
            .then_with(|| self.phrase.cmp(&other.phrase))
    }

    /// What answers show.
    pub(crate) async fn shown(&self, at: &Position, ledger: &Ledger, question: Question) -> Result<Velocity, Problem> {
        let shown = samples(at, ledger, &self.phrase).await?;
        Ok(Velocity { samples: shown, ..self.without_samples(ledger, question) })
    }

    fn without_samples(&self, ledger: &Ledger, question: Question) -> Velocity {
        let Self { phrase, measure, views } = self;
        let thousandths = |value: f64| Number::rounded(value, 3);
        let hn = SourceMeasure {
            name: "hn",
            label: measure.label(),
            multiple: measure.labelled.multiple.map(thousandths),
            count: measure.counted.count,
            baseline: measure.baseline.map(thousandths),
        };
        let wikimedia = views.map(|views| SourceMeasure {
            name: "wikimedia",
            label: views.label,
            multiple: Some(thousandths(views.multiple)),
            count: u64::try_from(views.views).unwrap_or_default(),
            baseline: Some(thousandths(views.baseline)),
        });
        let window =
            Window { from: time(ledger.newest + 1 - question.window_hours), to: time(ledger.newest + 1), hours: question.window_hours };
        Velocity {
            phrase: phrase.clone(),
            label: self.label(),
            multiple: hn.multiple,
            count: hn.count,
            baseline: hn.baseline,
            p_value: measure.labelled.p_value.map(|p| Number::rounded(p, 6)),
            authors: measure.counted.authors,
            insufficient: measure.baseline.is_none(),
            updated: window.to.clone(),
            window,
            min_multiple: thousandths(question.min_multiple),
            confirmed: measure.label().is_up() && views.is_some_and(|views| views.label == Label::Rising),
            sources: std::iter::once(hn).chain(wikimedia).collect(),
            samples: Vec::new(),
        }
    }
}

/// Measures phrases in their normal form, in their order.
pub(crate) async fn measure(ledger: &Ledger, phrases: Vec<String>, question: Question) -> Result<Vec<Measured>, Problem> {
    let measures = ledger.measure(&phrases, question).await?;
    with_views(ledger, phrases.into_iter().zip(measures).collect(), question).await
}

/// Adds what page views say to measures of phrases.
pub(crate) async fn with_views(ledger: &Ledger, measures: Vec<(String, Measure)>, question: Question) -> Result<Vec<Measured>, Problem> {
    let phrases: Vec<String> = measures.iter().map(|(phrase, _)| phrase.clone()).collect();
    let views = ledger.views(&phrases, question.min_multiple).await?;
    Ok(measures.into_iter().zip(views).map(|((phrase, measure), views)| Measured { phrase, measure, views }).collect())
}

/// The velocity of one phrase in its normal form, and what to know about it.
pub(crate) async fn velocity(ctx: &Context, at: &Position, phrase: String, question: Question) -> Result<(Velocity, Vec<String>), Problem> {
    let Some(ledger) = Ledger::of(ctx, at, question.window_hours).await? else {
        return Ok((unknown(phrase, question), vec![NOTHING_READ.to_owned()]));
    };
    let mut notes = notes(at, &ledger, question);
    if is_stop_phrase(&phrase) {
        notes.push("the phrase consists of stop words alone, which are not counted".to_owned());
    }
    let found = measure(&ledger, vec![phrase.clone()], question).await?;
    let Some(found) = found.first() else { return Ok((unknown(phrase, question), notes)) };
    if found.measure.baseline.is_none() {
        notes.push(format!("{FEW_WINDOWS}, so the label is FLAT"));
    }
    Ok((found.shown(at, &ledger, question).await?, notes))
}

/// Why nothing is measured against its own past.
const FEW_WINDOWS: &str = "fewer than 5 of the 14 windows before are complete";

/// Why no phrase can have a label in a window; `None` if one can.
pub(crate) async fn no_baseline(ledger: &Ledger, question: Question) -> Result<Option<String>, Problem> {
    // The past of the window is that of every phrase, also of one that no story has.
    let found = measure(ledger, vec![UNUSED.to_owned()], question).await?;
    let has_none = found.first().is_none_or(|found| found.measure.baseline.is_none());
    Ok(has_none.then(|| format!("{FEW_WINDOWS}, so no phrase has a label; ask for a shorter window")))
}

/// A phrase that stands for any.
const UNUSED: &str = "qqq zzz";

/// The note before the first complete hour.
pub(crate) const NOTHING_READ: &str = "no hour of stories has been read completely yet";

/// The velocity of a phrase before the first complete hour.
pub(crate) fn unknown(phrase: String, question: Question) -> Velocity {
    Velocity {
        phrase,
        label: Label::Flat,
        multiple: None,
        count: 0,
        baseline: None,
        p_value: None,
        authors: 0,
        insufficient: true,
        window: Window { from: String::new(), to: String::new(), hours: question.window_hours },
        min_multiple: Number::rounded(question.min_multiple, 3),
        sources: Vec::new(),
        confirmed: false,
        samples: Vec::new(),
        updated: String::new(),
    }
}

/// What to know about all answers from a ledger.
pub(crate) fn notes(at: &Position, ledger: &Ledger, question: Question) -> Vec<String> {
    let end = ledger.newest + 1;
    let behind_hours = at.now.as_millisecond().div_euclid(HOUR_MS) - end;
    let late = (behind_hours >= LATE_HOURS)
        .then(|| format!("stories have been read completely until {} only, which is the end of the window", time(end)));
    let cut = (!ledger.scale(question).is_complete()).then(|| "some hours of the window have not been read completely".to_owned());
    late.into_iter().chain(cut).collect()
}

/// A ledger that several calls share.
pub(crate) type Shared = Arc<Ledger>;
