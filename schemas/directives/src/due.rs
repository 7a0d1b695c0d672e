//! Computes when a directive is next due on an aircraft, from its limits and a record of compliance. Hours are whole hundredths, so that the
//! same numbers give the same answer everywhere.
//!
//! The answer compares limits with a record. It does not say whether the aircraft may be flown.

use jiff::Span;
use jiff::civil::Date;

use crate::directive::{Anchor, Directive, Joiner, Limit, LimitKind, Recurring, Unit};

/// From so many hours left on, a directive is due soon.
const SOON_HOURS: i64 = 50;
/// From so many cycles or landings left on, a directive is due soon.
const SOON_CYCLES: i64 = 50;
/// From so many days left on, a directive is due soon.
const SOON_DAYS: i32 = 30;
/// The most hours that an aircraft has.
const HOURS_MAX: f64 = 200_000.0;

/// Hours time-in-service in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hours(i64);

impl Hours {
    /// Reads hours, rounded to hundredths. `None` if they are negative, more than 200,000, or no number.
    #[must_use]
    pub fn new(hours: f64) -> Option<Self> {
        let is_valid = (0.0..=HOURS_MAX).contains(&hours);
        is_valid.then(|| Self((hours * 100.0).round() as i64))
    }

    /// The hours in hundredths.
    #[must_use]
    pub fn hundredths(self) -> i64 {
        self.0
    }

    /// The hours as a number for an answer.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 100.0
    }

    fn plus(self, hours: i64) -> Self {
        Self(self.0.saturating_add(hours.saturating_mul(100)))
    }

    fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// How much an aircraft was used, and the day of the answer.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Hours time-in-service.
    pub hours: Option<Hours>,
    /// Cycles or landings.
    pub cycles: Option<u32>,
    /// The day.
    pub date: Date,
}

/// When a directive was last complied with.
#[derive(Clone, Copy, Debug, Default)]
pub struct DoneWork {
    /// The day.
    pub date: Option<Date>,
    /// Hours time-in-service at that time.
    pub hours: Option<Hours>,
    /// Cycles or landings at that time.
    pub cycles: Option<u32>,
    /// Whether a terminating action was done.
    pub is_terminated: bool,
}

/// Whether a directive is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DueStatus {
    /// The directive is superseded.
    Closed,
    /// A terminating action was done.
    Terminated,
    /// A directive without repetition, with a record.
    Done,
    /// Not due soon.
    NotDue,
    /// There is no record, or a limit cannot be computed.
    DueUnknown,
    /// At most 50 hours, 50 cycles or 30 days are left.
    DueSoon,
    /// A limit has passed.
    Overdue,
}

impl DueStatus {
    /// The name of the status in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Terminated => "TERMINATED",
            Self::Done => "DONE",
            Self::NotDue => "NOT_DUE",
            Self::DueUnknown => "DUE_UNKNOWN",
            Self::DueSoon => "DUE_SOON",
            Self::Overdue => "OVERDUE",
        }
    }
}

/// What one limit says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitDue {
    /// The position of the limit in the directive's list.
    pub limit: usize,
    /// Due at so many hours.
    pub by_hours: Option<Hours>,
    /// Due at so many cycles or landings.
    pub by_cycles: Option<i64>,
    /// Due on this day.
    pub by_date: Option<Date>,
    /// The status of the limit alone.
    pub status: DueStatus,
}

/// When a directive is next due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The status.
    pub status: DueStatus,
    /// The hours that rule: the earliest, or the latest where the text says "whichever occurs later".
    pub by_hours: Option<Hours>,
    /// The cycles that rule.
    pub by_cycles: Option<i64>,
    /// The day that rules.
    pub by_date: Option<Date>,
    /// Hours left, in hundredths; negative when passed.
    pub hours_left: Option<i64>,
    /// Cycles left; negative when passed.
    pub cycles_left: Option<i64>,
    /// Days left; negative when passed.
    pub days_left: Option<i32>,
    /// What the answer is based on, in a sentence.
    pub basis: &'static str,
    /// Each limit.
    pub limits: Vec<LimitDue>,
}

/// Computes when a directive is next due. `is_superseded` says whether a later directive replaces it.
#[must_use]
pub fn due(directive: &Directive, record: Option<&DoneWork>, usage: &Usage, is_superseded: bool) -> Due {
    let compliance = &directive.compliance;
    let without = |status: DueStatus, basis: &'static str| Due {
        status,
        by_hours: None,
        by_cycles: None,
        by_date: None,
        hours_left: None,
        cycles_left: None,
        days_left: None,
        basis,
        limits: Vec::new(),
    };
    if is_superseded {
        return without(DueStatus::Closed, "superseded by a later directive");
    }
    if record.is_some_and(|record| record.is_terminated) {
        return without(DueStatus::Terminated, "a terminating action is recorded");
    }
    let Some(record) = record else {
        let effective = directive.effective.map(|(date, _)| date);
        let initial = of_kind(&compliance.limits, LimitKind::Initial);
        let limits: Vec<LimitDue> = initial.filter_map(|(at, limit)| initial_due(at, limit, effective, usage)).collect();
        let mut due = combined(&compliance.limits, limits, usage);
        due.status = DueStatus::DueUnknown;
        due.basis = if due.limits.is_empty() {
            "no record of compliance"
        } else {
            "no record of compliance; the first limits of the directive are shown"
        };
        return due;
    };
    match compliance.recurring {
        Recurring::No => without(DueStatus::Done, "a directive without repetition, with a record of compliance"),
        Recurring::Unknown => without(DueStatus::DueUnknown, "the text does not say whether the actions recur"),
        Recurring::Yes => {
            let recurring = of_kind(&compliance.limits, LimitKind::Recurring);
            let limits: Vec<LimitDue> = recurring.map(|(at, limit)| next_due(at, limit, record, usage)).collect();
            if limits.is_empty() {
                return without(DueStatus::DueUnknown, "the interval is in another document or could not be read");
            }
            let is_partial = limits.iter().any(|due| due.status == DueStatus::DueUnknown);
            let mut due = combined(&compliance.limits, limits, usage);
            due.basis = if is_partial {
                "the last record of compliance and the intervals; some need hours, cycles or a date that were not given"
            } else {
                "the last record of compliance and the intervals of the directive"
            };
            due
        }
    }
}

/// The limits of a kind, each with its position.
fn of_kind(limits: &[Limit], kind: LimitKind) -> impl Iterator<Item = (usize, &Limit)> {
    limits.iter().enumerate().filter(move |(_, limit)| limit.kind == kind)
}

/// The limit of a repetition: the record and the interval.
fn next_due(at: usize, limit: &Limit, record: &DoneWork, usage: &Usage) -> LimitDue {
    let mut due = LimitDue { limit: at, by_hours: None, by_cycles: None, by_date: None, status: DueStatus::DueUnknown };
    if limit.unit.is_hours() {
        due.by_hours = record.hours.map(|hours| hours.plus(i64::from(limit.value)));
    } else if limit.unit.is_cycles() {
        due.by_cycles = record.cycles.map(|cycles| i64::from(cycles) + i64::from(limit.value));
    } else {
        due.by_date = record.date.and_then(|date| after(date, limit));
    }
    due.status = status_of(&due, usage);
    due
}

/// The first limit: from the effective date for calendar time, from new for totals. Hours after the effective date are not known.
fn initial_due(at: usize, limit: &Limit, effective: Option<Date>, usage: &Usage) -> Option<LimitDue> {
    let mut due = LimitDue { limit: at, by_hours: None, by_cycles: None, by_date: None, status: DueStatus::DueUnknown };
    match (limit.unit, limit.anchor) {
        (unit, Anchor::Total) if unit.is_hours() => due.by_hours = Some(Hours(0).plus(i64::from(limit.value))),
        (unit, Anchor::Total) if unit.is_cycles() => due.by_cycles = Some(i64::from(limit.value)),
        (unit, Anchor::EffectiveDate) if !unit.is_hours() && !unit.is_cycles() => due.by_date = after(effective?, limit),
        _ => return None,
    }
    due.status = status_of(&due, usage);
    Some(due)
}

/// The day on which a calendar limit ends.
fn after(date: Date, limit: &Limit) -> Option<Date> {
    let value = i64::from(limit.value);
    match limit.unit {
        Unit::Days => date.checked_add(Span::new().try_days(value).ok()?).ok(),
        Unit::Months => date.checked_add(Span::new().try_months(value).ok()?).ok(),
        Unit::CalendarMonths => date.checked_add(Span::new().try_months(value).ok()?).ok().map(Date::last_of_month),
        Unit::Years => date.checked_add(Span::new().try_years(value).ok()?).ok(),
        Unit::Hours | Unit::FlightHours | Unit::Cycles | Unit::Landings => None,
    }
}

fn days_between(from: Date, to: Date) -> i32 {
    to.since(from).map_or(0, |span| span.get_days())
}

fn status_of(due: &LimitDue, usage: &Usage) -> DueStatus {
    let left = |left: i64, soon: i64| match left {
        left if left < 0 => DueStatus::Overdue,
        left if left <= soon => DueStatus::DueSoon,
        _ => DueStatus::NotDue,
    };
    if let Some((by, now)) = due.by_hours.zip(usage.hours) {
        return left(by.minus(now).hundredths(), SOON_HOURS * 100);
    }
    if let Some((by, now)) = due.by_cycles.zip(usage.cycles) {
        return left(by - i64::from(now), SOON_CYCLES);
    }
    due.by_date.map_or(DueStatus::DueUnknown, |by| left(i64::from(days_between(usage.date, by)), i64::from(SOON_DAYS)))
}

/// Joins limits: within a group by its joiner, and the groups by the nearest one.
fn combined(all: &[Limit], limits: Vec<LimitDue>, usage: &Usage) -> Due {
    let mut groups: Vec<(u32, Vec<LimitDue>)> = Vec::new();
    for due in &limits {
        let group = all.get(due.limit).map_or(0, |limit| limit.group);
        match groups.iter_mut().find(|(number, _)| *number == group) {
            Some((_, members)) => members.push(*due),
            None => groups.push((group, vec![*due])),
        }
    }
    let mut status: Option<DueStatus> = None;
    let (mut by_hours, mut by_cycles, mut by_date) = (None, None, None);
    for (_, members) in &groups {
        let is_later = members.iter().any(|due| all.get(due.limit).is_some_and(|limit| limit.joiner == Joiner::Later));
        let own = group_status(members, is_later);
        status = Some(status.map_or(own, |status| nearer(status, own)));
        let hours = members.iter().filter_map(|due| due.by_hours);
        let cycles = members.iter().filter_map(|due| due.by_cycles);
        let dates = members.iter().filter_map(|due| due.by_date);
        if is_later {
            by_hours = earliest(by_hours, hours.max());
            by_cycles = earliest(by_cycles, cycles.max());
            by_date = earliest(by_date, dates.max());
        } else {
            by_hours = earliest(by_hours, hours.min());
            by_cycles = earliest(by_cycles, cycles.min());
            by_date = earliest(by_date, dates.min());
        }
    }
    Due {
        status: status.unwrap_or(DueStatus::DueUnknown),
        hours_left: by_hours.zip(usage.hours).map(|(by, now)| by.minus(now).hundredths()),
        cycles_left: by_cycles.zip(usage.cycles).map(|(by, now)| by - i64::from(now)),
        days_left: by_date.map(|by| days_between(usage.date, by)),
        by_hours,
        by_cycles,
        by_date,
        basis: "",
        limits,
    }
}

fn earliest<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The status of limits that belong together. Whichever occurs first: the worst. Whichever occurs later: the best of those that are known; it is
/// only overdue or due soon if all are.
fn group_status(members: &[LimitDue], is_later: bool) -> DueStatus {
    let statuses = || members.iter().map(|due| due.status);
    if is_later {
        return statuses().min().unwrap_or(DueStatus::DueUnknown);
    }
    statuses().reduce(nearer).unwrap_or(DueStatus::DueUnknown)
}

/// The status that rules of two: overdue before due soon before unknown before not due.
fn nearer(one: DueStatus, other: DueStatus) -> DueStatus {
    one.max(other)
}
