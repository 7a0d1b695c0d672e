//! `GET /sample` and the tool `newly_funded_labs`: the newest leads of the free window, as signals alone.

use crate::record::{FREE_DAYS, Lead, Sample, list};
use schemars::JsonSchema;
use schemas::views::records::Redact;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::watchable_feed::Labs;
use feed::places::Segment;
use operation::problem::Problem;
use operation::{Definition, Surface};
use reads::read::{Difference, FreeRows, Read, Reader, Tool};

/// The most rows of an answer.
const ROWS_MAX: usize = 12;
/// What every answer says about its rows.
const NOTE: &str = "signal only: a key of tier pro or above, or a payment, shows the laboratory, the title, the exact amount and the days";

/// Arguments of `sample` and `newly_funded_labs`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// How many days back, today included. Days are hidden below tier pro, where the answer is about all 14 days.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 14))]
    pub days: i64,
}

fn days_default() -> i64 {
    FREE_DAYS
}

/// The newest leads as signals.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Samples {
    /// Day of the last refresh, YYYY-MM-DD; empty before the first.
    pub updated: String,
    /// The number of leads in this answer.
    pub count: usize,
    /// The tier of the caller's key; `free` without a key.
    pub tier: &'static str,
    /// The first day of the notices of award.
    pub from: String,
    /// The last day of the notices of award.
    pub to: String,
    /// The leads, the newest month first.
    pub leads: Vec<Sample>,
}

/// The rows of the whole free window.
pub(crate) async fn rows(filter: &Filter, reader: &Reader<Labs>) -> Result<FreeRows<Lead>, Problem> {
    rows_of(filter, FREE_DAYS, reader).await
}

async fn rows_of(filter: &Filter, days: i64, reader: &Reader<Labs>) -> Result<FreeRows<Lead>, Problem> {
    let list = list(filter.category.as_deref(), filter.state.as_deref());
    reader.free_rows((&list, Segment::newest_first(&reader.hidden_days(days))), ROWS_MAX, None).await
}

impl Read for Arguments {
    type Service = Labs;
    type Answer = Samples;

    const FILTER: &'static [&'static str] = &["category", "state"];
    const DIFFERENCES: &'static [Difference] = &[Difference::Without("days")];

    fn definition() -> Definition {
        Definition {
            name: "sample",
            path: "/sample",
            summary: "The newest leads of the last 14 days, at most 12: category, state, month and amount band.",
            when: "Use it to look at the service without a key.",
            description: "Signal only: no person, no organisation, no title, no exact amount, no day.",
            surface: Surface::Route,
            list: "leads",
            example: json!({ "category": "Microscopy and imaging" }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Labs>) -> Result<Samples, Problem> {
        // A choice of days would tell the hidden day of each lead.
        let days = if reader.is_limited() { FREE_DAYS } else { self.days };
        let found = rows_of(&filter, days, reader).await?;
        let days = reader.last_days(days);
        reader.note(NOTE.to_owned());
        Ok(Samples {
            updated: reader.updated().await?,
            count: found.records.len(),
            tier: reader.tier(),
            from: days.start().to_string(),
            to: days.end().to_string(),
            leads: found.records.iter().map(Redact::redacted).collect(),
        })
    }
}

impl Tool for Arguments {
    type ToolAnswer = Samples;

    const TOOL_FILTER: &'static [&'static str] = &["category"];
    const ABOUT_ARGUMENTS: &'static str = "Arguments of `newly_funded_labs`.";

    fn tool() -> Definition {
        Definition {
            name: "newly_funded_labs",
            path: "",
            summary: "A free preview of newly funded laboratories, at most 12: category, state, month and amount band.",
            when: "Use it to look at the service without a key.",
            description: "Signal only: no person, no organisation, no title, no exact amount, no day. `lab_lead_feed` has the whole leads.",
            surface: Surface::Tool,
            example: json!({ "days": 14 }),
            ..Definition::read()
        }
    }
}

#[cfg(test)]
mod tests {
    use reads::read::{operation, tool};

    use super::*;

    /// Proves that the route has the filter's fields and the tool the number of days, which the route leaves at all of the free window.
    #[test]
    fn arguments_of_route_and_tool() {
        let names = [operation::<Arguments>(), tool::<Arguments>()]
            .map(|operation| operation.input["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>());
        assert_eq!(names, [vec!["asOf", "category", "state"], vec!["asOf", "category", "days"]]);
        assert_eq!(serde_json::from_value::<Arguments>(json!({})).unwrap().days, FREE_DAYS);
    }
}
