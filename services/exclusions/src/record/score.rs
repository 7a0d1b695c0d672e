//! The score of a contract on a day: the sum of the points of its signals, by which contracts that end are ranked.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Contract, ContractSignal, Exclusion, signal};

/// A contract without an open option ends soon within so many days.
const SOON_DAYS: i32 = 365;
/// An option is open if the potential end is more than so many days after the current one.
const OPEN_OPTION_DAYS: i32 = 30;
/// An option that is due is exercised at most so many days before the current end.
const DUE_DAYS: i32 = 60;
/// The department whose actions are published late, and by how many days.
const LATE: (&str, i32) = ("Department of Defense", 120);
/// The days for which an award of a rival, and an action that took money back, count.
const RECENT_DAYS: i32 = 365;
/// The largest score.
const SCORE_MAX: i32 = 100;

/// The contract ends within a year and has no open option.
const TRUE_END: &str = "TRUE_END";
/// An option of the contract is open.
const OPTION_OPEN: &str = "OPTION_OPEN";
/// The recipient is excluded from federal awards.
const EXCLUSION: &str = "EXCLUSION";
/// The current end has passed, and no option was exercised although one is open.
const NO_OPTION: &str = "NO_OPTION_EXERCISED";

/// A reason for a score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecompeteSignal")]
pub struct Signal {
    /// The kind of the signal.
    #[schemars(extend("enum" = [
        TRUE_END, OPTION_OPEN, EXCLUSION, NO_OPTION, signal::BRIDGE, signal::RIVAL, signal::PARENT_CHANGED, signal::CEILING,
        signal::DEOBLIGATION, signal::SOLE_SOURCE, signal::RENEWED, signal::GROWTH
    ]))]
    pub kind: &'static str,
    /// What the signal adds to the score.
    pub points: i32,
    /// The award that shows it, which can be another one.
    pub award_id: String,
    /// The day that the signal is about, such as that of the action, of the end or of the exclusion.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// What the data says.
    pub detail: String,
}

/// What a kind of stored signal adds to the score, and for how many days.
fn weight(kind: &str) -> Option<(&'static str, i32, Option<i32>)> {
    let table = [
        (signal::BRIDGE, 15, None),
        (signal::RIVAL, 10, Some(RECENT_DAYS)),
        (signal::PARENT_CHANGED, 10, None),
        (signal::CEILING, 10, None),
        (signal::DEOBLIGATION, 10, Some(RECENT_DAYS)),
        (signal::SOLE_SOURCE, -15, None),
        (signal::RENEWED, -15, None),
        (signal::GROWTH, -10, None),
    ];
    table.into_iter().find(|(known, ..)| *known == kind)
}

fn days_between(from: Date, to: &str) -> Option<i32> {
    Some((to.parse::<Date>().ok()? - from).get_days())
}

/// The signals of a contract on a day, the largest weight first. `exclusion` is the earliest active exclusion of the recipient.
#[must_use]
pub fn signals(contract: &Contract, day: Date, exclusion: Option<&Exclusion>) -> Vec<Signal> {
    let own = |kind, points, date: &str, detail: String| Signal {
        kind,
        points,
        award_id: contract.award_id.clone(),
        date: date.to_owned(),
        detail,
    };
    let is_open = contract.current_end.parse().is_ok_and(|end| days_between(end, &contract.potential_end) > Some(OPEN_OPTION_DAYS));
    let mut all = Vec::new();
    if is_open {
        all.push(own(OPTION_OPEN, 10, &contract.potential_end, format!("options are open until {}", contract.potential_end)));
        let wait = if contract.agency == LATE.0 { LATE.1 } else { 0 };
        let has_passed = days_between(day, &contract.current_end).is_some_and(|days| days < -wait);
        let is_exercised = contract.last_option.parse().is_ok_and(|option| days_between(option, &contract.current_end) <= Some(DUE_DAYS));
        if has_passed && !is_exercised {
            all.push(own(NO_OPTION, 20, &contract.current_end, format!("no option was exercised up to {}", contract.current_end)));
        }
    } else if days_between(day, contract.end()).is_some_and(|days| days <= SOON_DAYS) {
        all.push(own(TRUE_END, 20, contract.end(), "it ends within 12 months and has no open option".to_owned()));
    }
    if let Some(exclusion) = exclusion {
        let detail = format!("the recipient is excluded by {} ({})", exclusion.excluding_agency, exclusion.exclusion_type);
        all.push(own(EXCLUSION, 40, exclusion.since(), detail));
    }
    all.extend(contract.signals.iter().filter_map(|stored: &ContractSignal| {
        let (kind, points, days) = weight(&stored.kind)?;
        // Of days in the future nothing is known yet.
        let age = -days_between(day, &stored.date)?;
        (days.is_none_or(|days| age <= days) && age >= 0).then(|| Signal {
            kind,
            points,
            award_id: stored.award_id.clone(),
            date: stored.date.clone(),
            detail: stored.detail.clone(),
        })
    }));
    all
}

/// The score of signals: the sum of their points, at least 0 and at most 100.
#[must_use]
pub fn score(signals: &[Signal]) -> i32 {
    signals.iter().map(|signal| signal.points).sum::<i32>().clamp(0, SCORE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    fn stored(kind: &str, date: &str) -> ContractSignal {
        ContractSignal { kind: kind.into(), award_id: "A2".into(), date: date.into(), detail: String::new() }
    }

    /// A contract whose data is that of a real one: 172213419.67 of 172272419.67 dollars are obligated.
    fn contract() -> Contract {
        Contract {
            award_id: "A1".into(),
            agency: "Department of Commerce".into(),
            current_end: "2025-08-19".into(),
            potential_end: "2025-08-23".into(),
            signals: vec![stored(signal::CEILING, "2025-02-01")],
            ..Contract::default()
        }
    }

    fn of(contract: &Contract, today: &str) -> (i32, Vec<&'static str>) {
        let found = signals(contract, day(today), None);
        (score(&found), found.iter().map(|signal| signal.kind).collect())
    }

    /// Proves the worked example: a true end within 12 months and a reached ceiling make 30, an exclusion makes 70.
    #[test]
    fn worked_example() {
        assert_eq!(of(&contract(), "2025-03-01"), (30, vec![TRUE_END, signal::CEILING]));
        let exclusion = Exclusion { active_date: "2025-02-02".into(), excluding_agency: "EPA".into(), ..Exclusion::default() };
        let found = signals(&contract(), day("2025-03-01"), Some(&exclusion));
        assert_eq!((score(&found), found[1].date.as_str()), (70, "2025-02-02"));
        // An end that is more than a year away adds nothing.
        assert_eq!(
            of(&Contract { potential_end: "2026-03-02".into(), current_end: "2026-03-02".into(), ..contract() }, "2025-03-01").0,
            10
        );
    }

    /// Proves when an option is open and when one counts as not exercised: after the current end, or 120 days later at the Department of Defense.
    #[test]
    fn options() {
        let open = Contract { potential_end: "2026-08-19".into(), signals: Vec::new(), ..contract() };
        assert_eq!(of(&open, "2025-08-19"), (10, vec![OPTION_OPEN]));
        assert_eq!(of(&open, "2025-08-20"), (30, vec![OPTION_OPEN, NO_OPTION]));
        let exercised = Contract { last_option: "2025-06-20".into(), ..open.clone() };
        assert_eq!(of(&exercised, "2025-08-20").0, 10);
        assert_eq!(of(&Contract { last_option: "2025-06-19".into(), ..open.clone() }, "2025-08-20").0, 30);
        let late = Contract { agency: LATE.0.into(), ..open };
        assert_eq!((of(&late, "2025-12-17").0, of(&late, "2025-12-18").0), (10, 30));
    }

    /// Proves what each stored signal adds and for how long, and that the score stays between 0 and 100.
    #[test]
    fn weights() {
        let with = |signals: Vec<ContractSignal>| Contract { signals, ..contract() };
        for (kind, points, points_after_a_year) in [
            (signal::BRIDGE, 35, 35),
            (signal::RIVAL, 30, 20),
            (signal::PARENT_CHANGED, 30, 30),
            (signal::CEILING, 30, 30),
            (signal::DEOBLIGATION, 30, 20),
            (signal::SOLE_SOURCE, 5, 5),
            (signal::RENEWED, 5, 5),
            (signal::GROWTH, 10, 10),
        ] {
            assert_eq!(of(&with(vec![stored(kind, "2025-01-01")]), "2025-03-01").0, points, "{kind}");
            assert_eq!(of(&with(vec![stored(kind, "2024-01-01")]), "2025-03-01").0, points_after_a_year, "{kind}");
            assert_eq!(of(&with(vec![stored(kind, "2025-03-02")]), "2025-03-01").0, 20, "{kind} of a later day");
        }
        let all: Vec<ContractSignal> = signal::ALL.iter().map(|kind| stored(kind, "2025-01-01")).collect();
        assert_eq!(of(&with(all), "2025-03-01").0, 20 + 15 + 10 + 10 + 10 + 10 - 15 - 15 - 10);
        let down = vec![stored(signal::SOLE_SOURCE, "2025-01-01"), stored(signal::RENEWED, "2025-01-01")];
        assert_eq!(of(&with(down), "2025-03-01").0, 0);
    }
}
