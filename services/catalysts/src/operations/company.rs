//! `GET /v1/company` and the MCP tool `catalyst_for_company`: the events of one company.

use crate::record::Catalyst;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Deserialize;
use serde_json::json;
use texts::tickers::{names_ticker, tickers};

use super::filter::{Filter, ticker};
use super::horizon::Horizon;
use super::list::{Events, PREVIEW_ROWS, extent, of_lists};
use super::watchable_feed::Catalysts;
use feed::filter::Filter as _;
use operation::problem::Problem;
use operation::{Definition, Surface};
use reads::read::{Difference, Read, Reader, Tool};

/// Arguments of `company`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments {
    /// Ticker of the company in any spelling: BRK-B, also brk.b, NYSE: BRK/B.
    #[schemars(length(min = 1, max = 60))]
    pub ticker: String,
    /// How far ahead, and which page.
    #[serde(flatten)]
    pub horizon: Horizon,
}

impl Read for Arguments {
    type Service = Catalysts;
    type Answer = Events;

    fn definition() -> Definition {
        Definition {
            name: "company",
            path: "/v1/company",
            summary: "Catalysts of one company: upcoming ones first, then those that are over.",
            description: "A company is found by a ticker of the SEC's list, which matches the sponsor of a trial only if the names are equal. A paid key also \
                shows events that are over, the latest first. Without one: the next 30 days.",
            list: "catalysts",
            surface: Surface::Route,
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "ticker": "CLDB" }),
            ..Definition::read()
        }
    }

    fn filter(&self, _: Filter) -> Result<Filter, Problem> {
        Filter { ticker: Some(ticker("ticker", &self.ticker)?), ..Filter::default() }.normalize()
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Events, Problem> {
        let free_rows_max = reader.is_tool().then_some(PREVIEW_ROWS);
        let extent = extent(reader, self.horizon.days, self.horizon.limit, free_rows_max);
        let wanted = tickers(&self.ticker);
        let is_own = |record: &Catalyst| names_ticker(&record.ticker, &wanted);
        let lists: Vec<String> = wanted.iter().map(|ticker| format!("ticker/{ticker}")).collect();
        of_lists(reader, &lists, extent, self.horizon.after.as_deref(), &is_own).await
    }
}

impl Tool for Arguments {
    const TOOL_DIFFERENCES: &'static [Difference] =
        &[Difference::Without("days"), Difference::Without("limit"), Difference::Without("after")];
    const ABOUT_ARGUMENTS: &'static str = "Arguments of the tool `catalyst_for_company`.";

    fn tool() -> Definition {
        Definition {
            name: "catalyst_for_company",
            path: "",
            surface: Surface::Tool,
            when: "Use it for the next events of one listed company.",
            ..Self::definition()
        }
    }
}
