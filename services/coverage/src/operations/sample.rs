//! `GET /sample`: the week's leads without the businesses, and how many there are.

use crate::record::{FREE_DAYS, Lead, RedactedLead, list};
use feed::places::Segment;
use schemars::JsonSchema;
use schemas::views::records::Redact;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::DISCLAIMER;
use super::counts::Counts;
use super::filter::Filter;
use super::hidden_leads;
use super::sources;
use super::watchable_feed::Coverage;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Read, Reader};

/// The most rows of an answer.
const ROWS_MAX: usize = 8;
/// What every answer says about its rows.
const NOTE: &str = "names are masked: a key of tier pro or above, or a payment, shows the business, its numbers and the evidence";

/// Arguments of `coverage_sample`: none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// A redacted lead on a day.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CoverageSampleRow")]
pub struct Row {
    #[serde(flatten)]
    lead: RedactedLead,
    /// The tier by the age of the trigger on the day of the answer: `hot`, `warm` or `cool`.
    tier: &'static str,
}

impl Row {
    /// The redacted form of a lead on a day.
    pub(crate) fn new(lead: &Lead, today: jiff::civil::Date) -> Self {
        Self { tier: lead.tier(today), lead: lead.redacted() }
    }
}

/// The week's leads without the businesses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CoverageSample")]
pub struct Sample {
    /// Day of the last refresh, YYYY-MM-DD; empty before the first.
    pub updated: String,
    /// The first day of the triggers.
    pub from: String,
    /// The last day of the triggers.
    pub to: String,
    counts: Counts,
    /// The newest leads, at most 8.
    pub leads: Vec<Row>,
    /// What leads are not.
    pub disclaimer: &'static str,
}

impl Read for Arguments {
    type Service = Coverage;
    type Answer = Sample;

    fn definition() -> Definition {
        Definition {
            name: "coverage_sample",
            path: "/sample",
            summary: "The leads of the last 7 days: their counts, and at most 8 of them without the businesses.",
            when: "Use it to look at the service without a key.",
            description: "Of a business the first letters of its name are shown; no number, address or evidence. The rule and its citation are whole.",
            list: "leads",
            example: json!({}),
            ..Definition::read()
        }
    }

    async fn answer(self, _: Filter, reader: &mut Reader<Coverage>) -> Result<Sample, Problem> {
        let days = reader.last_days(FREE_DAYS);
        let counts = Counts::read(&reader.at, &days).await?;
        let all = list(None, None);
        let found = reader.free_rows((&all, Segment::newest_first(&days)), ROWS_MAX, None).await?;
        let note = sources::late_note(&reader.at).await?;
        let hidden = hidden_leads::counted(reader);
        reader.note(NOTE.to_owned());
        reader.note(hidden);
        reader.note(note);
        let today = reader.today();
        Ok(Sample {
            updated: reader.updated().await?,
            // As of a time before the free days there are none.
            from: days.start().min(days.end()).to_string(),
            to: days.end().to_string(),
            counts,
            leads: found.records.iter().map(|lead| Row::new(lead, today)).collect(),
            disclaimer: DISCLAIMER,
        })
    }
}
