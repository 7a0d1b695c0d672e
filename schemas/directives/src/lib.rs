//! Reads the text of airworthiness directives, and says whether one may apply to an aircraft and when it is next due.
//!
//! [`read`] turns the regulatory text of a document into [`Directive`]s. Each value carries the [`Span`] of the text that it was read from. What
//! cannot be read is kept as [`Unread`] with its span, so that [`compare`] answers `POSSIBLE` for it and never stays silent. [`due`] computes
//! the next due hours, cycles and date from the limits and a compliance record.
//!
//! Nothing here does input or output, reads a clock or uses floating point in a decision: the same texts give the same answers everywhere. The
//! time that a text takes grows with its length, and every list has a limit.
//!
//! [`RULES_VERSION`] changes when the result for any text can change. The data file of makes and models has a version of its own.
//!
//! The answers are informational. They do not decide whether a serial number or an installed appliance is affected.

mod aliases;
mod applicability;
mod clean;
mod compliance;
mod designation_words;
mod designations;
mod directive;
mod document;
mod due;
mod lookup;
mod matching;
mod paragraphs;
mod read;
mod record;
mod serials;
mod tokens;

pub use aliases::{
    ALIASES, Maker, aliases_version, compact_form, is_known_make, nearest_makes, nearest_models, resolve_makes, series_of, shown_aliases,
};
pub use clean::clean;
pub use directive::{
    Affected, Anchor, Applicability, Compliance, Directive, Joiner, Layout, Limit, LimitKind, Mention, NamedModel, Product, Recurring,
    Relation, Role, Scope, SerialRange, Serials, Span, Unit, Unread, UnreadReason,
};
pub use document::{DirectiveText, ReadError, split};
pub use due::{DoneWork, Due, DueStatus, Hours, LimitDue, Usage, due};
pub use lookup::{ANY_AIRCRAFT, keys_for, keys_of};
pub use matching::{Aircraft, CannotDecide, Outcome, Reason, ResolvedAircraft, ResolvedModel, Verdict, compare};
pub use read::{Publication, read};
pub use record::{StoredDirective, record_of};

/// The version of the rules of this crate.
pub const RULES_VERSION: u32 = 8;
