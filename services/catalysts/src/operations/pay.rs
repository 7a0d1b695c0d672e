//! `GET /x402/pay`: the answer of the paid tool, for a payment per call.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::filter::Filter;
use super::followed::Catalysts;
use super::list::Events;
use super::upcoming::{Kind, NAME, PRICE_MICROS, ToolArguments, horizon_default, rows_default};
use operation::problem::Problem;
use operation::{Definition, Surface};
use reads::read::{Read, Reader};

/// The paid tool, with what a call costs in millionths of a US dollar.
pub const PRICES: &[(&str, u64)] = &[(NAME, PRICE_MICROS)];
/// The name of the paid tool.
const TOOLS: [&str; PRICES.len()] = [NAME];

/// Arguments of `x402_pay`: the name of the paid tool, and its arguments.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The paid tool.
    #[serde(default = "tool_default")]
    #[schemars(length(min = 1, max = 60), extend("enum" = TOOLS))]
    pub tool: String,
    /// How many days ahead an event's window may begin.
    #[serde(default = "horizon_default")]
    #[schemars(range(min = 1, max = 730))]
    pub days: i64,
    /// Only events of this kind.
    pub kind: Option<Kind>,
    /// Only trials of this phase, in any case: PHASE2, PHASE3. A trial of two phases is found under either.
    #[schemars(length(min = 1, max = 20))]
    pub phase: Option<String>,
    /// How many events to return at most.
    #[serde(default = "rows_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// Where to continue: the `next` of the answer before, with the same other arguments.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

fn tool_default() -> String {
    NAME.to_owned()
}

impl Arguments {
    /// The arguments of the tool.
    fn of_tool(self) -> ToolArguments {
        let Self { tool: _, days, kind, phase, limit, after } = self;
        ToolArguments { days, kind, phase, limit, after }
    }
}

impl Read for Arguments {
    type Service = Catalysts;
    type Answer = Events;

    fn definition() -> Definition {
        Definition {
            name: "x402_pay",
            path: "/x402/pay",
            summary: "The answer of the paid tool `upcoming_catalysts` with its arguments, paid per call.",
            description: "Arguments, answer, price and preview are those of the tool that `tool` names.",
            surface: Surface::Route,
            example: json!({ "tool": NAME, "days": 365, "kind": "pdufa" }),
            ..ToolArguments::definition()
        }
    }

    async fn preview(self, filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Option<Value>, Problem> {
        self.of_tool().preview(filter, reader).await
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Events, Problem> {
        self.of_tool().answer(filter, reader).await
    }
}
