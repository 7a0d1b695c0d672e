//! `GET /v1/rising`: the phrases that rise.

use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use velocity::calendar::time;

use super::answer::{Velocity, Window};
use super::filter::Filter;
use super::ledger::Ledger;
use super::measured_phrases::{self, NOTHING_READ};
use super::question::{ALIASES, MeasureArguments};
use super::survey::survey;
use super::watchable_feed::Phrases;
use reads::read::{Completeness, Read, Reader, hidden_note};

/// Arguments of `rising_phrases`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments {
    /// The window, and the least multiple of RISING.
    #[serde(flatten)]
    pub measure: MeasureArguments,
}

/// The phrases that rise.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "RisingPhrases")]
pub struct Rising {
    /// The end of the window, RFC 3339; empty before the first complete hour.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub updated: String,
    /// The window.
    pub window: Window,
    /// The number of phrases shown.
    pub count: usize,
    /// Phrases that are RISING or WARMING: the highest multiple first, then the highest count, then by phrase.
    pub phrases: Vec<Velocity>,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
}

impl Read for Arguments {
    type Service = Phrases;
    type Answer = Rising;

    const LIMIT: Option<usize> = Some(25);

    fn definition() -> Definition {
        Definition {
            name: "rising_phrases",
            path: "/v1/rising",
            when: "Use it to find what begins to be talked about.",
            summary: "The phrases that rise in the titles of Hacker News, the fastest first.",
            description: "Phrases of 1 to 4 words that are RISING or WARMING, see `/v1/velocity`. Of phrases that contain each other with equal counts \
                only the longest is shown. Stop words, numbers, months and labels of titles alone are no phrase.",
            list: "phrases",
            errors: &[ErrorCode::AsOfInvalid],
            example: json!({ "limit": 10 }),
            aliases: ALIASES,
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Phrases>) -> Result<Rising, Problem> {
        let question = self.measure.question();
        let completeness = reader.completeness().await?;
        // The same number whatever is asked, as of any time, and whether a hidden phrase rises or not: it must not tell when one does.
        let note = hidden_note("phrases, rising or not,", reader.at.view.suppressed_keys());
        reader.note(note);
        let Some(ledger) = Ledger::of(reader.context(), &reader.at, question.window_hours).await? else {
            reader.note(NOTHING_READ.to_owned());
            let window = Window { from: String::new(), to: String::new(), hours: question.window_hours };
            return Ok(Rising { updated: String::new(), window, count: 0, phrases: Vec::new(), completeness });
        };
        for note in measured_phrases::notes(&reader.at, &ledger, question) {
            reader.note(note);
        }
        let survey = survey(reader.context(), &reader.at, &ledger, question).await?;
        survey.notes.iter().for_each(|note| reader.note(note.clone()));
        let limit = reader.limit();
        let phrases = survey.shown(&reader.at, &ledger, question, limit).await?;
        if phrases.is_empty() {
            let note = measured_phrases::no_baseline(&ledger, question).await?;
            reader.note(note);
        }
        let end = ledger.newest + 1;
        Ok(Rising {
            updated: time(end),
            window: Window { from: time(end - question.window_hours), to: time(end), hours: question.window_hours },
            count: phrases.len(),
            phrases,
            completeness,
        })
    }
}
