//! `GET /v1/radar`: how fast a phrase rises, and whether it is free as a trademark.

use operation::problem::Problem;
use operation::{Definition, Price};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::Velocity;
use super::clearance::{Clearance, DISCLAIMER, clearance};
use super::filter::Filter;
use super::measured_phrases;
use super::question::{ALIASES, MeasureArguments, normal_phrase};
use super::watchable_feed::Phrases;
use reads::read::{Completeness, Read, Reader};

/// The price of an answer in millionths of a US dollar.
const PRICE_MICROS: u64 = 20_000;

/// Arguments of `phrase_radar`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments {
    /// The phrase: 1 to 6 words, in any case. Hyphens are blanks, and a match is a run of whole words.
    #[schemars(length(min = 1, max = 100))]
    pub phrase: String,
    /// The window, and the least multiple of RISING.
    #[serde(flatten)]
    pub measure: MeasureArguments,
    /// The class of goods and services (Nice Classification) that the phrase is wanted for.
    #[schemars(range(min = 1, max = 45))]
    pub class: Option<u8>,
}

/// The velocity of a phrase, and its clearance.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PhraseRadar")]
pub struct Answer {
    /// The phrase in its normal form.
    pub phrase: String,
    /// How fast it rises.
    pub velocity: Velocity,
    /// Whether it is free as a trademark.
    pub clearance: Clearance,
    /// What the answer is not.
    pub disclaimer: &'static str,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
}

impl Read for Arguments {
    type Service = Phrases;
    type Answer = Answer;

    fn definition() -> Definition {
        Definition {
            name: "phrase_radar",
            path: "/v1/radar",
            when: "Use it before naming a product after a phrase.",
            summary: "How fast a phrase rises, and whether it is free as a US trademark.",
            description: "The velocity of `/v1/velocity`, and the counts of live marks that are equal, similar or partly similar. `status`: CLEAR, \
                SIMILAR, TAKEN, or UNVERIFIED with a link for manual verification, if no register is loaded or it is older than 14 days. The result \
                is not legal advice.",
            price: Price::PerCall { micros: PRICE_MICROS, free_from: Tier::Pro },
            errors: &[ErrorCode::AsOfInvalid],
            example: json!({ "phrase": "agent mesh", "class": 9 }),
            aliases: ALIASES,
            ..Definition::read()
        }
    }

    async fn preview(self, _filter: Filter, reader: &mut Reader<Phrases>) -> Result<Option<Value>, Problem> {
        let phrase = normal_phrase(&self.phrase)?;
        let (velocity, notes) = measured_phrases::velocity(reader.context(), &reader.at, phrase, self.measure.question()).await?;
        notes.into_iter().for_each(|note| reader.note(note));
        // Nothing of the clearance.
        Ok(serde_json::to_value(velocity).ok())
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Phrases>) -> Result<Answer, Problem> {
        let phrase = normal_phrase(&self.phrase)?;
        let (velocity, notes) = measured_phrases::velocity(reader.context(), &reader.at, phrase.clone(), self.measure.question()).await?;
        notes.into_iter().for_each(|note| reader.note(note));
        let as_of = (!reader.is_current()).then(|| reader.at.now.to_string());
        let (clearance, notes) = clearance(reader.context(), &reader.at, &self.phrase, self.class, as_of.as_deref()).await?;
        notes.into_iter().for_each(|note| reader.note(note));
        Ok(Answer { phrase, velocity, clearance, disclaimer: DISCLAIMER, completeness: reader.completeness().await? })
    }
}
