//! `GET /v1/pulse`: how many leads there are, by source, tier and line.

use schemars::JsonSchema;
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

/// Arguments of `coverage_pulse`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// How many days back, today included: leads with a trigger on one of these days. Triggers of later days are not counted.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 90))]
    pub days: i64,
}

pub(crate) fn days_default() -> i64 {
    7
}

/// Counts of leads.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CoveragePulse")]
pub struct Pulse {
    /// Day of the last refresh, YYYY-MM-DD; empty before the first.
    pub updated: String,
    /// The first day of the triggers.
    pub from: String,
    /// The last day of the triggers.
    pub to: String,
    #[serde(flatten)]
    counts: Counts,
    /// What leads are not.
    pub disclaimer: &'static str,
}

impl Read for Arguments {
    type Service = Coverage;
    type Answer = Pulse;

    fn definition() -> Definition {
        Definition {
            name: "coverage_pulse",
            path: "/v1/pulse",
            summary: "How many leads there are, by source, tier and line of insurance.",
            when: "Use it to see how many businesses have just come to need which insurance.",
            description: "A business in several sources counts once, under the source of its earliest trigger. Every sum is the total. Tiers are by \
                the age of the trigger: `hot` under 7 days, `warm` under 30, else `cool`.",
            example: json!({ "days": 30 }),
            ..Definition::read()
        }
    }

    async fn answer(self, _: Filter, reader: &mut Reader<Coverage>) -> Result<Pulse, Problem> {
        // Counts name nobody, so they are of any days.
        let days = reader.at.last_days(self.days);
        let counts = Counts::read(&reader.at, &days).await?;
        let hidden = hidden_leads::counted(reader);
        reader.note(hidden);
        let note = sources::late_note(&reader.at).await?;
        reader.note(note);
        Ok(Pulse {
            updated: reader.updated().await?,
            from: days.start().to_string(),
            to: days.end().to_string(),
            counts,
            disclaimer: DISCLAIMER,
        })
    }
}
