//! Filings of insurance of motor carriers: policy numbers in one form, and whether a cancelled filing is a lapse.

use jiff::civil::Date;

/// Returns a policy number in the form in which numbers are compared: its letters and digits in capitals (`S-LHMI2518-00` is `SLHMI251800`).
pub(super) fn policy_key(policy: &str) -> String {
    policy.chars().filter(char::is_ascii_alphanumeric).take(100).collect::<String>().to_ascii_uppercase()
}

/// What a filing is about, by its form: with or without `BMC-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Liability for injury and damage.
    Liability,
    /// Cargo.
    Cargo,
    /// The bond or trust fund of a broker.
    Bond,
}

impl Subject {
    /// Returns what a form is about; `None` for other forms.
    pub(super) fn of_form(form: &str) -> Option<Self> {
        let form = form.trim().to_ascii_uppercase();
        match form.strip_prefix("BMC-").unwrap_or(&form) {
            "82" | "91" | "91X" => Some(Self::Liability),
            "34" | "83" => Some(Self::Cargo),
            "84" | "85" => Some(Self::Bond),
            _ => None,
        }
    }
}

/// A filing of a carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filing {
    /// What it is about.
    pub(super) subject: Subject,
    /// The policy number as the dataset has it.
    pub(super) policy: String,
    /// The first day on which it is in force.
    pub(super) effective: Date,
    /// The day from which on it is cancelled.
    pub(super) cancelled: Option<Date>,
}

/// Returns filings with the days on which they end by cancellations of the same carrier. A cancellation ends the filings with its subject and policy
/// number that are in force before its day; a filing that begins on its day or later renews the policy. Of several days the earliest counts, also that
/// of the filing itself. A cancellation without a policy number ends none, since it does not say which.
pub(super) fn with_cancellations(filings: &[Filing], cancellations: &[Filing]) -> Vec<Filing> {
    let ends: Vec<(Subject, String, Date)> = cancellations
        .iter()
        .filter_map(|cancellation| Some((cancellation.subject, policy_key(&cancellation.policy), cancellation.cancelled?)))
        .filter(|(_, key, _)| !key.is_empty())
        .collect();
    let ended = |filing: &Filing| {
        let key = policy_key(&filing.policy);
        let is_own =
            |(subject, policy, day): &&(Subject, String, Date)| *subject == filing.subject && *policy == key && filing.effective < *day;
        let own = ends.iter().filter(is_own).map(|(_, _, day)| *day);
        Filing { cancelled: own.chain(filing.cancelled).min(), ..filing.clone() }
    };
    filings.iter().map(ended).collect()
}

/// What a cancelled filing means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lapse {
    /// No filing is in force from the day of the cancellation on.
    Lapsed,
    /// Another filing is in force on that day.
    Replaced,
    /// The regulator still shows an amount on file, so that it was probably renewed.
    AmountOnFile,
    /// It is not known what is on file.
    Unknown,
    /// The filing is not cancelled.
    InForce,
}

/// Decides what a cancelled filing means, given all filings of the carrier with the days on which they end (see [`with_cancellations`]), and the amount
/// that the regulator shows on file, in dollars.
pub(super) fn lapse(cancelled: &Filing, filings: &[Filing], on_file: Option<u64>) -> Lapse {
    let Some(day) = cancelled.cancelled else { return Lapse::InForce };
    let key = policy_key(&cancelled.policy);
    let is_in_force = |filing: &&Filing| {
        let is_other = policy_key(&filing.policy) != key || filing.effective >= day;
        filing.subject == cancelled.subject && is_other && filing.effective <= day && filing.cancelled.is_none_or(|end| end > day)
    };
    match (filings.iter().any(|filing| is_in_force(&filing)), on_file) {
        (true, _) => Lapse::Replaced,
        (false, Some(0)) => Lapse::Lapsed,
        (false, Some(_)) => Lapse::AmountOnFile,
        (false, None) => Lapse::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use jiff::civil::date;

    use super::*;

    /// Proves that two spellings of a policy number are one, and which forms are about what.
    #[test]
    fn policies_and_forms() {
        assert_eq!(policy_key("S-LHMI2518-00"), policy_key("SLHMI251800"));
        assert_eq!(policy_key(&"a".repeat(10_000)).len(), 100);
        let subjects = ["BMC-91X", "91x", "BMC-82", "BMC-34", "83", "84", "BMC-85", "BMC-35", ""].map(Subject::of_form);
        let expected = [
            Some(Subject::Liability),
            Some(Subject::Liability),
            Some(Subject::Liability),
            Some(Subject::Cargo),
            Some(Subject::Cargo),
            Some(Subject::Bond),
            Some(Subject::Bond),
            None,
            None,
        ];
        assert_eq!(subjects, expected);
    }

    fn filing(policy: &str, effective: Date, cancelled: Option<Date>) -> Filing {
        Filing { subject: Subject::Liability, policy: policy.to_owned(), effective, cancelled }
    }

    /// Proves the rows of the contract's table: a cancellation without another filing and with nothing on file is a lapse; with another policy in
    /// force it is none. The cancelled filing itself, in another spelling, is no other one.
    #[test]
    fn lapses() {
        let day = date(2026, 11, 25);
        let old = filing("S-LHMI2518-00", date(2025, 11, 25), Some(day));
        let same = filing("SLHMI251800", date(2025, 11, 25), None);
        let with = |others: &[Filing], on_file| lapse(&old, &[slice::from_ref(&old), others].concat(), on_file);
        assert_eq!(with(&[], Some(0)), Lapse::Lapsed);
        assert_eq!(with(&[same], Some(0)), Lapse::Lapsed);
        assert_eq!(with(&[filing("B-1", date(2026, 11, 20), None)], Some(0)), Lapse::Replaced);
        assert_eq!(with(&[filing("B-1", day, Some(date(2027, 1, 1)))], None), Lapse::Replaced);
        assert_eq!(with(&[filing("SLHMI251800", day, None)], Some(0)), Lapse::Replaced, "renewed under the same number");
        assert_eq!(with(&[filing("B-1", date(2026, 11, 26), None)], Some(0)), Lapse::Lapsed, "begins a day too late");
        assert_eq!(with(&[filing("B-1", date(2026, 1, 1), Some(day))], Some(0)), Lapse::Lapsed, "ends on the same day");
        let cargo = Filing { subject: Subject::Cargo, ..filing("B-1", date(2026, 1, 1), None) };
        assert_eq!(with(&[cargo], Some(0)), Lapse::Lapsed);
        assert_eq!((with(&[], Some(750_000)), with(&[], None)), (Lapse::AmountOnFile, Lapse::Unknown));
        assert_eq!(lapse(&filing("B-1", day, None), &[], Some(0)), Lapse::InForce);
    }

    /// Proves that a filing is ended by a cancellation of its own policy, in another spelling and of the same subject only, and on which day: it counts as a
    /// replacement up to the day before its own cancellation.
    #[test]
    fn cancelled_filings_replace_nothing() {
        let second = filing("B-1", date(2026, 1, 1), None);
        let lapse_of = |end: Date, day: Date| {
            let old = filing("A-1", date(2025, 11, 25), Some(day));
            let ended = with_cancellations(slice::from_ref(&second), &[filing("b1", date(2026, 1, 1), Some(end)), old.clone()]);
            (ended[0].cancelled, lapse(&old, &ended, Some(0)))
        };
        let day = date(2026, 11, 25);
        assert_eq!(lapse_of(date(2026, 11, 24), day), (Some(date(2026, 11, 24)), Lapse::Lapsed), "cancelled the day before");
        assert_eq!(lapse_of(day, day), (Some(day), Lapse::Lapsed), "both are cancelled on one day");
        assert_eq!(lapse_of(date(2026, 11, 26), day), (Some(date(2026, 11, 26)), Lapse::Replaced), "still in force on the day");

        let ends = |filings: &[Filing], cancellations: &[Filing]| {
            with_cancellations(filings, cancellations).into_iter().map(|filing| filing.cancelled).collect::<Vec<_>>()
        };
        let cancelled = filing("B-1", date(2026, 1, 1), Some(day));
        let cargo = Filing { subject: Subject::Cargo, ..cancelled.clone() };
        assert_eq!(ends(slice::from_ref(&second), &[cargo]), [None], "of another subject");
        assert_eq!(ends(&[filing("B-2", date(2026, 1, 1), None)], slice::from_ref(&cancelled)), [None], "of another policy");
        let unnamed = |cancelled| filing("-", date(2026, 1, 1), cancelled);
        assert_eq!(ends(&[unnamed(None)], &[unnamed(Some(day))]), [None], "a cancellation without a policy number");
        let renewed = [filing("B-1", date(2026, 11, 24), None), filing("B-1", day, None), filing("B-1", date(2026, 11, 26), None)];
        assert_eq!(ends(&renewed, slice::from_ref(&cancelled)), [Some(day), None, None], "renewed on the day of the cancellation or later");
        let (earlier, later) = (date(2026, 11, 20), date(2026, 11, 30));
        let again = filing("B-1", date(2026, 1, 1), Some(later));
        assert_eq!(ends(&[second], &[again.clone(), cancelled.clone()]), [Some(day)], "the earliest of several");
        assert_eq!(ends(&[filing("B-1", date(2026, 1, 1), Some(earlier))], &[again, cancelled]), [Some(earlier)], "its own day is earlier");
    }
}
