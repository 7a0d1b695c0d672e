//! `GET /v1/drug` and the MCP tool `catalyst_for_drug`: the events of one drug.

use crate::record::Catalyst;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Deserialize;
use serde_json::json;

use super::filter::{Filter, drug_letters, names_drug};
use super::horizon::Horizon;
use super::list::{Events, Subject, of_subject};
use super::watchable_feed::Catalysts;
use feed::filter::Filter as _;
use operation::problem::Problem;
use operation::{Definition, Surface};
use reads::read::{Difference, Read, Reader, Tool};

/// Arguments of `drug`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments {
    /// Words of the drug's name: every word must begin a word of the name. One of them has at least three letters.
    #[schemars(length(min = 3, max = 100))]
    pub name: String,
    /// How far ahead, and which page.
    #[serde(flatten)]
    pub horizon: Horizon,
}

impl Read for Arguments {
    type Service = Catalysts;
    type Answer = Events;

    fn definition() -> Definition {
        Definition {
            name: "drug",
            path: "/v1/drug",
            summary: "Catalysts of one drug: upcoming ones first, then those that are over.",
            description: "Every word of the name must begin a word of the drug's name, in any case. A paid key also shows events that are over, the latest \
                first. Without one: the next 30 days.",
            list: "catalysts",
            surface: Surface::Route,
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "name": "calderinib" }),
            ..Definition::read()
        }
    }

    fn filter(&self, _: Filter) -> Result<Filter, Problem> {
        drug_letters("name", &self.name)?;
        Filter { drug: Some(self.name.clone()), ..Filter::default() }.normalize()
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Events, Problem> {
        let subject = Subject::in_lists(vec![format!("drug/{}", drug_letters("name", &self.name)?)]);
        let is_own = |record: &Catalyst| names_drug(&record.drug, &self.name);
        of_subject(reader, &subject, &self.horizon, &is_own).await
    }
}

impl Tool for Arguments {
    type ToolAnswer = Events;

    const TOOL_DIFFERENCES: &'static [Difference] = &[
        Difference::Renamed { argument: "name", name: "drug" },
        Difference::Without("days"),
        Difference::Without("limit"),
        Difference::Without("after"),
    ];
    const ABOUT_ARGUMENTS: &'static str = "Arguments of the tool `catalyst_for_drug`.";

    fn tool() -> Definition {
        Definition {
            name: "catalyst_for_drug",
            path: "",
            surface: Surface::Tool,
            when: "Use it for the next events of one drug.",
            example: json!({ "drug": "calderinib" }),
            ..Self::definition()
        }
    }
}
