//! `GET /x402/pay`: the answer of the paid tool, for a payment per call.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::filter::Filter;
use super::list::{Events, PREVIEW_ROWS};
use super::upcoming::{self, NAME, PRICE_MICROS};
use super::watchable_feed::Catalysts;
use operation::problem::Problem;
use operation::{Definition, Surface};
use reads::read::{Difference, Read, Reader, Tool};

/// The paid tool, with what a call costs in millionths of a US dollar.
pub const PRICES: &[(&str, u64)] = &[(NAME, PRICE_MICROS)];
/// The name of the paid tool.
const TOOLS: [&str; PRICES.len()] = [NAME];

/// Arguments of `x402_pay`: the name of the paid tool, and its arguments.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments {
    /// The paid tool.
    #[serde(default = "tool_default")]
    #[schemars(length(min = 1, max = 60), extend("enum" = TOOLS))]
    pub tool: String,
    /// The arguments of the tool.
    #[serde(flatten)]
    of_tool: upcoming::Arguments,
}

fn tool_default() -> String {
    NAME.to_owned()
}

impl Read for Arguments {
    type Service = Catalysts;
    type Answer = Events;

    const DIFFERENCES: &'static [Difference] = upcoming::Arguments::TOOL_DIFFERENCES;

    fn definition() -> Definition {
        Definition {
            name: "x402_pay",
            path: "/x402/pay",
            summary: "The answer of the paid tool `upcoming_catalysts` with its arguments, paid per call.",
            description: "Arguments, answer, price and preview are those of the tool that `tool` names.",
            surface: Surface::Route,
            example: json!({ "tool": NAME, "days": 365, "kind": "pdufa" }),
            ..upcoming::Arguments::tool()
        }
    }

    async fn preview(self, filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Option<Value>, Problem> {
        self.of_tool.preview(filter, reader).await
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Events, Problem> {
        self.of_tool.events(reader, Some(PREVIEW_ROWS)).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use reads::read::{operation, tool};

    use super::*;
    use crate::operations::{company, drug};

    /// Proves that the route and the paid answers have the same arguments, of which only the defaults, and what is said of `days`, differ.
    #[test]
    fn arguments_differ_by_surface() {
        let [route, tool, paid] = [operation::<upcoming::Arguments>(), tool::<upcoming::Arguments>(), operation::<Arguments>()]
            .map(|operation| operation.input["properties"].clone());
        let defaults = |days: &Value, limit: &Value| (days["default"].as_i64(), limit["default"].as_u64());
        assert_eq!(defaults(&route["days"], &route["limit"]), (Some(30), Some(50)));
        for other in [&tool, &paid] {
            assert_eq!(defaults(&other["days"], &other["limit"]), (Some(730), Some(200)));
            assert_eq!(other["days"]["description"], "How many days ahead an event's window may begin.");
            for same in ["kind", "phase", "after", "asOf"] {
                assert_eq!((&other[same], other[same].is_object()), (&route[same], true), "{same}");
            }
            assert_eq!((&other["days"]["maximum"], &other["limit"]["maximum"]), (&json!(730), &json!(200)));
        }
        let names = |properties: &Value| properties.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
        assert_eq!((names(&tool), paid["tool"]["default"].as_str()), (names(&route), Some(NAME)));
    }

    /// Proves that the tools for a company and a drug take their subject and the day alone, the company by one of three, the drug by its own name, and that
    /// the documents of tools that are sold name the tool.
    #[test]
    fn arguments_of_tools() {
        let [company, drug, route] = [tool::<company::Arguments>(), tool::<drug::Arguments>(), operation::<drug::Arguments>()];
        let names = |input: &Value| input["properties"].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let names_of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(
            (names(&company.input), names(&drug.input)),
            (names_of(&["asOf", "cik", "company", "ticker"]), names_of(&["asOf", "drug"]))
        );
        assert!(company.input["required"].as_array().is_none_or(Vec::is_empty) && drug.input["required"] == json!(["drug"]));
        assert_eq!(drug.input["properties"]["drug"], route.input["properties"]["name"]);
        assert_eq!(tool::<upcoming::Arguments>().input["description"], "Arguments of the tool `upcoming_catalysts`.");
    }
}
