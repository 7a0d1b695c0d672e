//! When a directive is next due, as answers show it.

use directives::{Due, Hours};
use jiff::civil::Date;
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
    #[schemars(with = "Option<String>")]
    pub by_date: Option<Date>,
    /// Hours left; negative when they have passed.
    pub hours_left: Option<Number>,
    /// Cycles or landings left; negative when they have passed.
    pub cycles_left: Option<i64>,
    /// Days left; negative when they have passed.
    pub days_left: Option<i32>,
    /// What the answer is based on.
    pub basis: &'static str,
}

/// The JSON between the basis and the status if nothing else is known.
const WITHOUT_NUMBERS: &str =
    r#"","byCycles":null,"byDate":null,"byHours":null,"cyclesLeft":null,"daysLeft":null,"hoursLeft":null,"status":""#;

/// The same with its fields in the order of answers, which is that of their names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenDue {
    basis: &'static str,
    by_cycles: Option<i64>,
    by_date: Option<Date>,
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
            by_date: due.by_date,
            hours_left: due.hours_left.map(Number::hundredths),
            cycles_left: due.cycles_left,
            days_left: due.days_left,
            basis: due.basis,
        }
    }

    /// Adds its JSON to a text, with the fields in the order of answers. Of most directives there is no record of compliance, so that nothing is known but
    /// the status and its basis, which are texts of this program that JSON does not escape.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if self.has_numbers() {
            write_json("due", &self.written(), out);
        } else {
            let texts = ["{\"basis\":\"", self.basis, WITHOUT_NUMBERS, self.status, "\"}"];
            texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
        }
    }

    fn has_numbers(&self) -> bool {
        let Self { by_hours, by_cycles, by_date, hours_left, cycles_left, days_left, .. } = self;
        by_hours.is_some()
            || by_cycles.is_some()
            || by_date.is_some()
            || hours_left.is_some()
            || cycles_left.is_some()
            || days_left.is_some()
    }

    fn written(&self) -> WrittenDue {
        WrittenDue {
            basis: self.basis,
            by_cycles: self.by_cycles,
            by_date: self.by_date,
            by_hours: self.by_hours,
            cycles_left: self.cycles_left,
            days_left: self.days_left,
            hours_left: self.hours_left,
            status: self.status,
        }
    }
}

/// Adds the JSON of the value of a field to a text.
pub(crate) fn write_json<T: Serialize + ?Sized>(name: &str, value: &T, out: &mut Vec<u8>) {
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        tracing::error!(%error, name, "a field of a directive cannot be written");
    }
}

/// Hours as a number of an answer.
pub(crate) fn hours_number(hours: Hours) -> Number {
    Number::hundredths(hours.hundredths())
}

#[cfg(test)]
mod tests {
    use directives::DueStatus;
    use serde_json::json;

    use super::*;

    /// Proves that the text is that of the value, byte for byte, with each number alone and without any, for every status.
    #[test]
    fn texts_are_those_of_values() {
        let without = |status: DueStatus| NextDue {
            status: status.as_str(),
            by_hours: None,
            by_cycles: None,
            by_date: None,
            hours_left: None,
            cycles_left: None,
            days_left: None,
            basis: "no record of compliance; the first limits of the directive are shown",
        };
        let statuses = [
            DueStatus::Closed,
            DueStatus::Terminated,
            DueStatus::Done,
            DueStatus::NotDue,
            DueStatus::DueUnknown,
            DueStatus::DueSoon,
            DueStatus::Overdue,
        ];
        for due in statuses.into_iter().map(without).chain([
            NextDue { by_hours: Some(Number::hundredths(126_250)), ..without(DueStatus::NotDue) },
            NextDue { by_cycles: Some(7), ..without(DueStatus::NotDue) },
            NextDue { by_date: Some(Date::constant(2027, 3, 31)), ..without(DueStatus::NotDue) },
            NextDue { hours_left: Some(Number::hundredths(-50)), ..without(DueStatus::Overdue) },
            NextDue { cycles_left: Some(-1), ..without(DueStatus::Overdue) },
            NextDue { days_left: Some(0), ..without(DueStatus::DueSoon) },
        ]) {
            let mut text = Vec::new();
            due.write(&mut text);
            assert_eq!(String::from_utf8(text).unwrap(), json!(due).to_string());
        }
    }
}
