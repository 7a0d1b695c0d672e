//! What became of a contract: the score that it had 180 days before its end, and whether the next award of its need went to others.
//!
//! The score is that of the candidate as it was recorded until that day, so that nothing counts that became known later; an exclusion that was lifted before
//! the next decision about the contract is not known any more, and does not count. A contract that was recorded later has none, and is not counted. The next
//! award is one of the same office, industry and service that was signed at most 180 days before or after the end and
//! that is of about the same size. Without one it is not known what became of the need. Places of performance are not compared.

use crate::record::outcomes::{FLIP, KEPT, SCORED_DAYS, cell, key, month_of, term};
use crate::record::{Contract, Exclusion, TABLES, score, signals};
use jiff::ToSpan;
use jiff::civil::Date;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Write;
use schemas::views::awards::Award;
use schemas::views::records::month_number;

use super::super::state::{Decision, Entity, uei_key};
use super::awards::{KnownAward, Need, Outlook, YEAR_DAYS, award_key, day, days_between, is_same};
use fold::undecided::Undecided;

/// The next award of a need is signed at most so many days before or after the end of a contract.
const NEXT_DAYS_MAX: i32 = 180;
/// The next award has between 4 and 25 tenths of the obligations for a year that the contract has.
const SIZE_TENTHS: (i128, i128) = (4, 25);

/// A decision about one contract.
pub(super) struct Step<'a> {
    pub(super) id: &'a str,
    /// The candidate of the award before the decision and after it.
    pub(super) before: Option<&'a Exclusion>,
    pub(super) now: Option<&'a Exclusion>,
    pub(super) need: &'a Need,
    /// The day of the decision.
    pub(super) today: Date,
}

impl Step<'_> {
    /// Takes the score of a contract that is due for it, and counts the contract if its outcome is known.
    pub(super) fn take(&self, state: Decision<'_, '_>, known: &KnownAward) -> Result<(), Undecided> {
        let mut now = known.clone();
        if let Some(contract) = contract(self.before)
            && let Some(due) = day(contract.end()).and_then(|end| end.checked_sub(SCORED_DAYS.days()).ok())
            && day(&known.decided).is_some_and(|decided| decided <= due)
            && self.today > due
            && known.outlook.as_ref().is_none_or(|outlook| outlook.end != contract.end())
        {
            let exclusion = exclusion_on(state, &contract.recipient_uei, due)?;
            let score = score(&signals(contract, due, exclusion.as_ref()));
            now.outlook = Some(Outlook { end: contract.end().to_owned(), score });
        }
        if self.now.is_some() && self.now != self.before {
            now.decided = self.today.to_string();
        }
        let counted = contract(self.now).and_then(|contract| {
            let outlook = now.outlook.as_ref().filter(|outlook| outlook.end == contract.end())?;
            let outcome = outcome(self.id, contract, self.need)?;
            Some((contract.end().get(..7)?.to_owned(), cell(outlook.score, outcome)))
        });
        if counted != now.counted {
            for (place, change) in [(now.counted.take(), -1), (counted.clone(), 1)] {
                let Some((month, cell)) = place else { continue };
                state.count(&key(&month), [(cell, change)])?;
            }
            now.counted = counted;
        }
        if now == *known { Ok(()) } else { state.remember(&award_key(self.id), Some(&now)) }
    }
}

/// The entries of the index that a row of decision state writes: the counts of a month.
pub(crate) fn index(row: &str, value: &str, seq: Seq) -> Vec<Write> {
    let write = |month| Write::put(TABLES.terms, key![term(), month_number(month), seq], value.to_owned().into());
    month_of(row).map(write).into_iter().collect()
}

/// What is obligated for a year of an award, in cents; `None` if that is not known.
pub(super) fn rate(award: &Award) -> Option<i64> {
    let start = if award.start.is_empty() { &award.signed } else { &award.start };
    let days = i128::from(days_between(start, &award.end)?) + 1;
    let cents = award.amount_cents.filter(|cents| *cents > 0 && days > 0)?;
    i64::try_from(i128::from(cents) * i128::from(YEAR_DAYS) / days).ok()
}

/// Whether an award was signed about when a contract ends.
pub(super) fn is_near(signed: &str, end: &str) -> bool {
    days_between(end, signed).is_some_and(|days| days.abs() <= NEXT_DAYS_MAX)
}

/// The contract of a candidate that is none of the past.
fn contract(record: Option<&Exclusion>) -> Option<&Contract> {
    record.filter(|record| !record.withdrawn)?.contract.as_deref()
}

/// The earliest known exclusion of an entity that was active on a day, and entered until then.
fn exclusion_on(state: Decision<'_, '_>, uei: &str, day: Date) -> Result<Option<Exclusion>, Undecided> {
    if uei.is_empty() {
        return Ok(None);
    }
    let (entity, text): (Entity, String) = (state.get(&uei_key(uei))?.unwrap_or_default(), day.to_string());
    let exclusions = entity.by_uei.into_values().chain(entity.by_cage.into_values()).map(|one| Exclusion {
        excluding_agency: one.agency,
        exclusion_type: one.exclusion_type,
        active_date: one.active_date,
        creation_date: one.creation_date,
        termination_date: one.termination_date,
        ..Exclusion::default()
    });
    Ok(exclusions.filter(|one| one.is_active_on(day) && one.creation_date <= text).min_by_key(|one| one.since().to_owned()))
}

/// What became of the need of a contract; `None` if no award of it follows that can be compared.
fn outcome(id: &str, contract: &Contract, need: &Need) -> Option<&'static str> {
    let rate = i128::from(need.get(id)?.rate?);
    let is_like = |other: i64| (rate * SIZE_TENTHS.0..=rate * SIZE_TENTHS.1).contains(&(i128::from(other) * 10));
    let mut next = need.iter().filter(|(other, one)| {
        let is_next = *other != id && !one.uei.is_empty() && one.signed > contract.signed;
        is_next && is_near(&one.signed, contract.end()) && one.rate.is_some_and(is_like)
    });
    let first = next.next().filter(|_| !contract.recipient_uei.is_empty())?;
    let is_kept = is_same(contract, first.1) || next.any(|(_, one)| is_same(contract, one));
    Some(if is_kept { KEPT } else { FLIP })
}

#[cfg(test)]
mod tests;
