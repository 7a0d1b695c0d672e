//! `GET /v1/velocity`: how fast one phrase rises.

use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answer::Velocity;
use super::filter::Filter;
use super::measured_phrases;
use super::question::{ALIASES, MeasureArguments, normal_phrase};
use super::watchable_feed::Phrases;
use reads::read::{Completeness, Read, Reader};

/// Arguments of `phrase_velocity`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments {
    /// The phrase: 1 to 6 words, in any case. Hyphens are blanks, and a match is a run of whole words.
    #[schemars(length(min = 1, max = 100))]
    pub phrase: String,
    /// The window, and the least multiple of RISING.
    #[serde(flatten)]
    pub measure: MeasureArguments,
}

/// The velocity of a phrase.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PhraseVelocity")]
pub struct Answer {
    /// The velocity.
    #[serde(flatten)]
    pub velocity: Velocity,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
}

impl Read for Arguments {
    type Service = Phrases;
    type Answer = Answer;

    fn definition() -> Definition {
        Definition {
            name: "phrase_velocity",
            path: "/v1/velocity",
            when: "Use it for one phrase.",
            summary: "How fast a phrase rises in the titles of Hacker News: its label, count, baseline and multiple.",
            description: "The window ends with the last hour that was read completely. `count` counts at most 3 stories of one author. The baseline \
                is the median over the 14 windows before of the share of stories with the phrase, times the stories of this window; for 24 hours \
                the windows of the same weekday count twice. `multiple` = (count + 2) / (baseline + 2), and `pValue` is the probability of so many \
                stories by chance. RISING: multiple >= `min_multiple`, count >= 3, pValue <= 0.01, two authors and two domains. WARMING: multiple \
                >= the square root of `min_multiple`, count >= 3, pValue <= 0.05, two authors. COOLING: multiple <= one over that root, and a \
                baseline of 3 or more. Page views of the article whose title is the phrase lift WARMING to RISING if they rise, too.",
            errors: &[ErrorCode::AsOfInvalid],
            example: json!({ "phrase": "agent mesh" }),
            aliases: ALIASES,
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Phrases>) -> Result<Answer, Problem> {
        let phrase = normal_phrase(&self.phrase)?;
        let (velocity, notes) = measured_phrases::velocity(reader.context(), &reader.at, phrase, self.measure.question()).await?;
        notes.into_iter().for_each(|note| reader.note(note));
        Ok(Answer { velocity, completeness: reader.completeness().await? })
    }
}
