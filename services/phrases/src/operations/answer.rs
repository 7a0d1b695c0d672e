//! What answers show of a phrase.

use schemars::JsonSchema;
use serde::Serialize;
use velocity::label::Label;

use reads::number::Number;

/// How fast a phrase rises.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Velocity {
    /// The phrase in its normal form.
    pub phrase: String,
    /// RISING, WARMING, FLAT or COOLING.
    pub label: Label,
    /// `(count + 2) / (baseline + 2)`; null without a baseline.
    pub multiple: Option<Number>,
    /// The stories of the window with the phrase, at most 3 of one author.
    pub count: u64,
    /// How many are usual: the median over the 14 windows before; null if fewer than 5 of them are complete.
    pub baseline: Option<Number>,
    /// The probability of so many stories by chance; null without a baseline.
    #[serde(rename = "pValue")]
    pub p_value: Option<Number>,
    /// The authors of these stories.
    pub authors: usize,
    /// Whether the history is too short for a baseline. The label is FLAT then.
    pub insufficient: bool,
    /// The window.
    pub window: Window,
    /// The least multiple of RISING.
    pub min_multiple: Number,
    /// What each source says.
    pub sources: Vec<SourceMeasure>,
    /// Whether page views rise, too.
    pub confirmed: bool,
    /// The newest stories with the phrase, at most 3.
    pub samples: Vec<Sample>,
    /// The end of the window, RFC 3339; empty before the first complete hour.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub updated: String,
}

/// A window of whole hours.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "VelocityWindow")]
pub struct Window {
    /// The beginning of the window, RFC 3339; empty before the first complete hour.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub from: String,
    /// The end of the window: that of the last hour that was read completely.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub to: String,
    /// The length of the window in hours.
    pub hours: i64,
}

/// What one source says of a phrase.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceMeasure {
    /// `hn`, or `wikimedia` for the views of the article whose title is the phrase.
    pub name: &'static str,
    /// The label by this source alone.
    pub label: Label,
    /// How many times as much as usual; null without a baseline.
    pub multiple: Option<Number>,
    /// Stories of the window, or views of the newest day.
    pub count: u64,
    /// What is usual; null without a baseline.
    pub baseline: Option<Number>,
}

/// A story with the phrase.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// The title of the story.
    pub title: String,
    /// The URL of the story; empty for a text post.
    pub url: String,
    /// When it was published, RFC 3339.
    pub published_at: String,
}
