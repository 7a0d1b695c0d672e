//! When a directive is next due, as answers show it.

use directives::{Due, Hours};
use schemars::JsonSchema;
use serde::Serialize;

use reads::number::Number;

/// When a directive is next due.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextDue {
    /// `DUE_UNKNOWN`, `OVERDUE`, `DUE_SOON` (at most 50 hours, 50 cycles or 30 days), `NOT_DUE`, `DONE`, `TERMINATED` or `CLOSED`.
    pub status: &'static str,
    /// The hours at which it is due; null if no limit in hours can be computed.
    pub by_hours: Option<Number>,
    /// The cycles or landings at which it is due; null if no limit in cycles can be computed.
    pub by_cycles: Option<i64>,
    /// The day on which it is due; null if no limit in days can be computed.
    pub by_date: Option<String>,
    /// Hours left; negative when they have passed.
    pub hours_left: Option<Number>,
    /// Cycles or landings left; negative when they have passed.
    pub cycles_left: Option<i64>,
    /// Days left; negative when they have passed.
    pub days_left: Option<i32>,
    /// What the answer is based on.
    pub basis: String,
}

/// The same with its fields in the order of answers, which is that of their names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenDue<'a> {
    basis: &'a str,
    by_cycles: Option<i64>,
    by_date: Option<&'a str>,
    by_hours: Option<Number>,
    cycles_left: Option<i64>,
    days_left: Option<i32>,
    hours_left: Option<Number>,
    status: &'static str,
}

impl NextDue {
    /// Makes it of what the rules computed.
    #[must_use]
    pub fn of(due: Due) -> Self {
        Self {
            status: due.status.as_str(),
            by_hours: due.by_hours.map(hours_number),
            by_cycles: due.by_cycles,
            by_date: due.by_date.map(|day| day.to_string()),
            hours_left: due.hours_left.map(Number::hundredths),
            cycles_left: due.cycles_left,
            days_left: due.days_left,
            basis: due.basis,
        }
    }

    /// The same, to be written as the text of an answer.
    pub(crate) fn written(&self) -> WrittenDue<'_> {
        WrittenDue {
            basis: &self.basis,
            by_cycles: self.by_cycles,
            by_date: self.by_date.as_deref(),
            by_hours: self.by_hours,
            cycles_left: self.cycles_left,
            days_left: self.days_left,
            hours_left: self.hours_left,
            status: self.status,
        }
    }
}

/// Hours as a number of an answer.
pub(crate) fn hours_number(hours: Hours) -> Number {
    Number::hundredths(hours.hundredths())
}
