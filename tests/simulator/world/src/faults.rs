//! Faults: which ones occur, with which probability, and how many times.

use crate::json::Schema;
use crate::random::Random;

/// The name of a fault or of a parameter that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(
    /// The name as it was given.
    pub String,
);

impl std::fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "no fault or parameter is called {:?}; there are: {}, each also with .count, and {}",
            self.0,
            NAMES.join(", "),
            PARAMETERS.join(", ")
        )
    }
}

impl std::error::Error for UnknownFault {}

/// The names of the faults, in the order of [`Fault`].
pub const NAMES: [&str; 18] = [
    "429",
    "429_retry_after",
    "500",
    "503",
    "html",
    "truncated",
    "truncated_length",
    "slow",
    "duplicated_page",
    "shifted_page",
    "touch",
    "vanished",
    "schema_missing",
    "schema_retyped",
    "fsis_flip",
    "outage",
    "202",
    "error_object",
];

/// The names of numeric fault parameters.
pub const PARAMETERS: [&str; 3] = ["retry_after_s", "slow_ms", "vanished_share"];

/// The faults, in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Status 429.
    TooMany,
    /// Status 429 with `Retry-After`.
    TooManyRetryAfter,
    /// Status 500.
    Error500,
    /// Status 503.
    Error503,
    /// A page of HTML instead of data.
    Html,
    /// A body that ends early.
    Truncated,
    /// A body that is shorter than its `Content-Length`.
    TruncatedLength,
    /// A body that arrives slowly.
    Slow,
    /// The page before the requested one.
    DuplicatedPage,
    /// A page that begins one record early.
    ShiftedPage,
    /// Dates of change that change without any change.
    Touch,
    /// Records that are missing from one answer.
    Vanished,
    /// A field that is missing.
    SchemaMissing,
    /// A field of another type.
    SchemaRetyped,
    /// Lists of FSIS in their former shape, a text.
    FsisFlip,
    /// An answer without records.
    Outage,
    /// Status 202 without data.
    Accepted,
    /// An object that describes an error, with status 200.
    ErrorObject,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Odds {
    probability: f64,
    /// How many more times the fault may occur; `None` means without limit.
    remaining: Option<u64>,
}

/// All faults with their probabilities. None occurs by default.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    odds: [Odds; NAMES.len()],
    /// The seconds in the `Retry-After` of `429_retry_after`.
    pub retry_after_s: u64,
    /// The total duration of a slow body, in milliseconds.
    pub slow_ms: u64,
    /// The share of records that `vanished` removes from an answer.
    pub vanished_share: f64,
    /// The field that the schema faults change; `None` means the date field of each upstream.
    pub schema_field: Option<String>,
    /// The only upstream (`openfda`) or stream (`openfda.food`) with faults.
    pub only: Option<String>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { odds: Default::default(), retry_after_s: 1, slow_ms: 5_000, vanished_share: 0.5, schema_field: None, only: None }
    }
}

impl Faults {
    /// Sets a probability (`html` = 0.1), a count (`html.count` = 2, with a probability of 1 unless one was set) or a parameter
    /// (`retry_after_s` = 5).
    ///
    /// # Errors
    /// When the name does not exist.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), UnknownFault> {
        match name {
            "retry_after_s" => self.retry_after_s = value as u64,
            "slow_ms" => self.slow_ms = value as u64,
            "vanished_share" => self.vanished_share = value.clamp(0.0, 1.0),
            _ => {
                let (fault, counted) = name.strip_suffix(".count").map_or((name, false), |fault| (fault, true));
                let at = NAMES.iter().position(|known| *known == fault).ok_or_else(|| UnknownFault(name.to_owned()))?;
                let odds = &mut self.odds[at];
                if counted {
                    odds.remaining = Some(value as u64);
                    if odds.probability == 0.0 {
                        odds.probability = 1.0;
                    }
                } else {
                    odds.probability = value;
                }
            }
        }
        Ok(())
    }

    /// Sets a text parameter: `schema_field` or `only`. An empty text unsets it.
    ///
    /// # Errors
    /// When the name does not exist.
    pub fn set_text(&mut self, name: &str, value: &str) -> Result<(), UnknownFault> {
        let value = Some(value.to_owned()).filter(|value| !value.is_empty());
        match name {
            "schema_field" => self.schema_field = value,
            "only" => self.only = value,
            _ => return Err(UnknownFault(name.to_owned())),
        }
        Ok(())
    }

    /// Chooses the faults of one request and counts them down.
    pub fn draw(&mut self, stream: &'static str, date_field: &str, random: Random) -> Plan {
        let upstream = stream.split('.').next().unwrap_or(stream);
        if self.only.as_deref().is_some_and(|only| only != stream && only != upstream) {
            return Plan::default();
        }
        let mut plan = Plan::default();
        for (at, odds) in self.odds.iter_mut().enumerate() {
            let occurs = odds.probability > 0.0 && odds.remaining != Some(0) && random.unit(at as u64) < odds.probability;
            plan.occurs[at] = occurs;
            if let Some(remaining) = odds.remaining.as_mut().filter(|_| occurs) {
                *remaining -= 1;
            }
        }
        let field = || Some(self.schema_field.clone().unwrap_or_else(|| date_field.to_owned()));
        plan.schema.missing = field().filter(|_| plan.has(Fault::SchemaMissing));
        plan.schema.retyped = field().filter(|_| plan.has(Fault::SchemaRetyped));
        plan.retry_after_s = self.retry_after_s;
        plan.slow_ms = self.slow_ms;
        plan.vanished_share = if plan.has(Fault::Vanished) { self.vanished_share } else { 0.0 };
        plan
    }
}

/// The faults of one request.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    occurs: [bool; NAMES.len()],
    /// What happens to the fields of records.
    pub schema: Schema,
    /// The seconds of a `Retry-After`.
    pub retry_after_s: u64,
    /// The total duration of a slow body, in milliseconds.
    pub slow_ms: u64,
    /// The share of records that are missing from the answer.
    pub vanished_share: f64,
}

impl Plan {
    /// Whether a fault occurs.
    #[must_use]
    pub fn has(&self, fault: Fault) -> bool {
        self.occurs[fault as usize]
    }

    /// Whether the answer has no fault in its content.
    pub fn is_clean(&self) -> bool {
        self.occurs.iter().all(|occurs| !occurs)
    }

    /// Returns the offset at which a page begins that should begin at `start`.
    pub fn start(&self, start: u64, limit: u64) -> u64 {
        let start = if self.has(Fault::DuplicatedPage) { start.saturating_sub(limit) } else { start };
        if self.has(Fault::ShiftedPage) { start.saturating_sub(1) } else { start }
    }

    /// Whether a record is missing from this answer.
    pub fn vanishes(&self, random: Random) -> bool {
        self.vanished_share > 0.0 && random.unit(990) < self.vanished_share
    }
}
