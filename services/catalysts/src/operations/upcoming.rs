//! `GET /v1/upcoming`, free and capped without a paid key, and the MCP tool `upcoming_catalysts`, paid per call: upcoming events by window.

use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filter::{Filter, PHASES};
use super::horizon::Horizon;
use super::list::{Chosen, DAYS_MAX, Events, FREE_DAYS, PREVIEW_ROWS, ROWS_MAX, extent, upcoming};
use super::watchable_feed::Catalysts;
use operation::known_values::known_value;
use operation::problem::Problem;
use operation::{Definition, Price, Surface};
use reads::read::{Difference, Read, Reader, Tool};

/// The name of the tool.
pub(super) const NAME: &str = "upcoming_catalysts";
/// The price of a call of the tool, in millionths of a dollar.
pub(super) const PRICE_MICROS: u64 = 20_000;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The end of data taking of a trial.
    Readout,
    /// A decision date of the FDA (PDUFA date).
    Pdufa,
    /// A meeting of an advisory committee of the FDA.
    Adcom,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Readout => "readout",
            Self::Pdufa => "pdufa",
            Self::Adcom => "adcom",
        }
    }
}

/// Arguments of `upcoming`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments {
    /// Only events of this kind.
    pub kind: Option<Kind>,
    /// Only trials of this phase, in any case: PHASE2, PHASE3. A trial of two phases is found under either.
    #[schemars(length(min = 1, max = 20))]
    pub phase: Option<String>,
    /// How far ahead, and which page.
    #[serde(flatten)]
    pub horizon: Horizon,
}

impl Read for Arguments {
    type Service = Catalysts;
    type Answer = Events;

    /// A call without `days` gets the days that are served without a paid key.
    const DIFFERENCES: &'static [Difference] = &[Difference::Default {
        argument: "days",
        default: || FREE_DAYS.into(),
        description: Some("How many days ahead an event's window may begin. Without a paid key at most 30 are served."),
    }];

    fn definition() -> Definition {
        Definition {
            name: "upcoming",
            path: "/v1/upcoming",
            summary: "Upcoming catalysts: readouts, decision dates of the FDA and advisory committee meetings, soonest first.",
            description: "Events whose window has not ended and begins within `days`. Each names the sentence or field of a public document that states its \
                date, with its hash (`verifyBody`, `verifyHash`). A date that is less precise than a day has a window and no `date`. Without a \
                paid key: the next 30 days, 25 rows.",
            list: "catalysts",
            surface: Surface::Route,
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "days": 365, "limit": 10 }),
            ..Definition::read()
        }
    }

    async fn preview(self, _filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Option<Value>, Problem> {
        self.chosen()?.check_after(&reader.context().secrets, &self.horizon)?;
        let first = Self { horizon: Horizon { after: None, ..self.horizon }, ..self };
        Ok(serde_json::to_value(first.events(reader, Some(PREVIEW_ROWS)).await?).ok())
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Events, Problem> {
        let free_rows_max = reader.is_tool().then_some(PREVIEW_ROWS);
        self.events(reader, free_rows_max).await
    }
}

impl Arguments {
    /// Which events the arguments ask for.
    fn chosen(&self) -> Result<Chosen, Problem> {
        let phase = self.phase.as_deref().map(|text| known_value("phase", text, &PHASES)).transpose()?;
        Ok(Chosen { kind: self.kind.map(|kind| kind.as_str().to_owned()), phase: phase.map(str::to_owned) })
    }

    /// The events that the arguments ask for. `free_rows_max` is the most rows that a caller without a paid key gets; `None` for as many as its tier gets.
    pub(super) async fn events(self, reader: &mut Reader<Catalysts>, free_rows_max: Option<usize>) -> Result<Events, Problem> {
        let chosen = self.chosen()?;
        let extent = extent(reader, &self.horizon, free_rows_max);
        upcoming(reader, &chosen, extent, self.horizon.after.as_deref()).await
    }
}

impl Tool for Arguments {
    type ToolAnswer = Events;

    /// The arguments of the paid answer reach over the full horizon.
    const TOOL_DIFFERENCES: &'static [Difference] = &[
        Difference::Default {
            argument: "days",
            default: || DAYS_MAX.into(),
            description: Some("How many days ahead an event's window may begin."),
        },
        Difference::Default { argument: "limit", default: || ROWS_MAX.into(), description: None },
    ];
    const ABOUT_ARGUMENTS: &'static str = "Arguments of the tool `upcoming_catalysts`.";

    fn tool() -> Definition {
        Definition {
            name: NAME,
            summary: "Upcoming catalysts over the full horizon: readouts, decision dates of the FDA and advisory committee meetings, soonest first.",
            when: "Use it for all events of a time window, up to two years ahead.",
            description: "Up to two years ahead and 200 events an answer, each with the sentence or field of a public document that states its date, and its \
                hash. The preview shows five events of the next 30 days and their number.",
            list: "catalysts",
            surface: Surface::Tool,
            price: Price::PerCall { micros: PRICE_MICROS, free_from: Tier::Pro },
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "days": 365, "kind": "pdufa" }),
            ..Definition::read()
        }
    }
}
