//! What a directive says, as far as it can be read: plain values, each with the span of the text that it was read from.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// A range of bytes of the cleaned text of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

impl Span {
    /// The range between two offsets.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The text of the span; empty if the span is not one of this text.
    #[must_use]
    pub fn of<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// How the text of a directive is arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Lettered paragraphs: (a) effective date, (b) affected directives, (c) applicability, and so on.
    Lettered,
    /// The layout before lettered paragraphs. Models that it names are read; everything else stays possible for the make.
    Older,
}

/// What kind of product a directive is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// Airplanes, helicopters, gliders, balloons, airships.
    Aircraft,
    /// Engines.
    Engine,
    /// Propellers.
    Propeller,
    /// Anything that is installed in aircraft of several makes.
    Appliance,
}

/// Which aircraft of the named models a directive applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All of them.
    All,
    /// Aircraft with certain serial numbers, parts or modifications.
    Certain,
    /// The text could not be read.
    Unknown,
}

/// What a list of models says about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The directive is for them.
    Applies,
    /// An engine, propeller or appliance may be installed on them.
    InstalledOn,
    /// They are a part that an aircraft has: "equipped with".
    Equipment,
    /// They are excepted.
    Excepted,
    /// They are excepted if a condition holds: "except those on which …".
    ExceptedIf,
}

/// A model that a directive names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedModel {
    /// The model as one writes it in full: `A319-112` for the `-112` of a list.
    pub name: String,
    /// The compact form: `A319112`.
    pub form: String,
    /// The series of the model: `A319`.
    pub series: String,
    /// Whether the text names a whole series: "Model 737-800 series".
    pub is_series: bool,
    /// Compact forms that the text gives in parentheses: `OH58A` for "206A-1 (OH-58A)".
    pub also: Vec<String>,
    /// What the text says about the model.
    pub role: Role,
    /// The text that names the model. In a list it begins at the model whose first part is shared.
    pub span: Span,
}

/// A word that looks like a model and is not part of a list that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// The compact form.
    pub form: String,
    /// Where it is.
    pub span: Span,
}

/// A range of serial numbers, as the text writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SerialRange {
    /// The first serial number.
    pub from: String,
    /// The last one: `Some(from)` for a single one, `None` for "and subsequent".
    pub to: Option<String>,
}

/// The serial numbers of the models named before them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serials {
    /// The ranges. Empty for "all serial numbers".
    pub ranges: Vec<SerialRange>,
    /// Whether the text says that all serial numbers are affected.
    pub is_all: bool,
    /// Whether the whole list could be read.
    pub is_complete: bool,
    /// Positions in the list of models to which they belong.
    pub models: Vec<usize>,
    /// Where they are.
    pub span: Span,
}

/// The paragraph that says to what a directive applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applicability {
    /// The paragraph; empty if the text has none that could be found.
    pub span: Span,
    /// Which aircraft of the models are affected.
    pub scope: Scope,
    /// The models that were read, in the order of the text.
    pub models: Vec<NamedModel>,
    /// Other words that look like models.
    pub mentions: Vec<Mention>,
    /// Serial numbers.
    pub serials: Vec<Serials>,
    /// Where the text limits the affected aircraft other than by serial numbers: "equipped with", "on which".
    pub condition: Option<Span>,
    /// Whether the appliance may be installed on aircraft that the text does not name: it names none, or engines and propellers only, its list is "not limited
    /// to" those that it names, or it could not be read. False for other products.
    pub is_open: bool,
}

/// Whether the actions of a directive recur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recurring {
    /// They recur.
    Yes,
    /// The actions were read and none recurs.
    No,
    /// The text does not say.
    Unknown,
}

/// Whether a limit is for the first action or for its repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// The first action.
    Initial,
    /// Each repetition.
    Recurring,
}

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Hours time-in-service.
    Hours,
    /// Flight hours.
    FlightHours,
    /// Flight cycles and engine cycles.
    Cycles,
    /// Landings.
    Landings,
    /// Days.
    Days,
    /// Months, to the same day.
    Months,
    /// Calendar months, to the end of the month.
    CalendarMonths,
    /// Years, to the same day.
    Years,
}

impl Unit {
    /// The name of the unit in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hours => "hours",
            Self::FlightHours => "flight_hours",
            Self::Cycles => "cycles",
            Self::Landings => "landings",
            Self::Days => "days",
            Self::Months => "months",
            Self::CalendarMonths => "calendar_months",
            Self::Years => "years",
        }
    }

    /// Whether the unit counts hours.
    #[must_use]
    pub fn is_hours(self) -> bool {
        matches!(self, Self::Hours | Self::FlightHours)
    }

    /// Whether the unit counts flights: cycles or landings.
    #[must_use]
    pub fn is_cycles(self) -> bool {
        matches!(self, Self::Cycles | Self::Landings)
    }
}

/// From when a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// From the effective date.
    EffectiveDate,
    /// From the last time that the action was done.
    LastDone,
    /// From new: a total.
    Total,
}

/// How a limit is joined with the others of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Joiner {
    /// The text does not say, or there is only one limit.
    #[default]
    #[serde(rename = "")]
    None,
    /// Whichever occurs first.
    #[serde(rename = "FIRST")]
    First,
    /// Whichever occurs later.
    #[serde(rename = "LATER")]
    Later,
}

/// A limit of time in service, flights or calendar time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// For the first action or its repetition.
    pub kind: LimitKind,
    /// The value in `unit`, from 1 on.
    pub value: u32,
    /// The unit.
    pub unit: Unit,
    /// From when it counts.
    pub anchor: Anchor,
    /// How it is joined with the other limits of its group.
    pub joiner: Joiner,
    /// Limits with the same number belong to one phrase.
    pub group: u32,
    /// The phrase.
    pub span: Span,
}

/// What has to be done when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compliance {
    /// The paragraphs of required actions; empty if none could be found.
    pub span: Span,
    /// Whether the actions recur.
    pub recurring: Recurring,
    /// The limits in the order of the text.
    pub limits: Vec<Limit>,
    /// Where the text says that an action ends the repetitions.
    pub terminating: Option<Span>,
    /// Where the text takes its actions or times from another document.
    pub referenced: Option<Span>,
}

/// How a directive relates to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// It replaces or supersedes it.
    Replaces,
    /// It affects it in another way.
    Affects,
}

/// An earlier directive that a directive names as affected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Affected {
    /// The number of the earlier directive.
    pub number: String,
    /// How it is affected.
    pub relation: Relation,
    /// Where it is named.
    pub span: Span,
}

/// Why a part of the text was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UnreadReason {
    /// No applicability paragraph was found.
    NoApplicability,
    /// The applicability names no model that could be read, or one with gaps: `( )HC-( )2Y`.
    NoModels,
    /// The layout is an older one.
    OlderLayout,
    /// A list of serial numbers could not be read to its end.
    Serials,
    /// The effective date is not a day.
    EffectiveDate,
    /// The required actions could not be found.
    NoActions,
    /// The text is longer than what is read, or a list has more entries than are kept.
    TooLong,
}

/// A part of the text that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Why.
    pub reason: UnreadReason,
    /// The part.
    pub span: Span,
}

/// A directive as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directive {
    /// The number: `2026-15-05`, `87-20-03 R2`.
    pub number: String,
    /// The number in the header.
    pub number_span: Span,
    /// The holder of the type certificate as the header names it.
    pub holder: String,
    /// The keys of the makes: those of the header, the former holders and the makes in the applicability, sorted.
    pub makes: Vec<String>,
    /// The kind of product.
    pub product: Product,
    /// The layout of the text.
    pub layout: Layout,
    /// The effective date, with its span if it was read from the text.
    pub effective: Option<(Date, Option<Span>)>,
    /// The earlier directives that are affected.
    pub affected: Vec<Affected>,
    /// To what the directive applies.
    pub applicability: Applicability,
    /// Designations of the abstract, sorted by their forms, each once. Their spans are of the abstract.
    pub named_in_summary: Vec<Mention>,
    /// The ATA chapter, two digits; empty if unknown.
    pub ata: String,
    /// The paragraph on the unsafe condition; empty if there is none.
    pub unsafe_condition: Span,
    /// What has to be done when.
    pub compliance: Compliance,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

impl Directive {
    /// Whether a part was not read for this reason.
    #[must_use]
    pub fn has_unread(&self, reason: UnreadReason) -> bool {
        self.unread.iter().any(|unread| unread.reason == reason)
    }
}
