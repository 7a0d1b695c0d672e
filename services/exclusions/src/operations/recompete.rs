//! `GET /v1/recompete_flip`: contracts that end soon and can be bid again, and signs that the incumbent may lose them. A ranking, not a probability.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::record::{Contract, ContractSignal, Exclusion, naics_list, signal};
use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use schemas::dollars::Dollars;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::findings::{Counted, exclusions_of, hidden_note, hits_of};
use super::followed::Exclusions;
use crate::{SOURCE, award_url};
use feed::cursor;
use feed::places::{PLACES_MAX, Segment, Walk};
use operation::problem::Problem;
use operation::{Definition, Price};
use reads::read::{Completeness, Read, Reader};

/// The days until the end with all options in which a contract is a candidate.
const DAYS: (i64, i64) = (30, 540);
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
/// The most beginnings of industry codes of a call.
const NAICS_MAX: usize = 10;

/// The contract ends within a year and has no open option.
const TRUE_END: &str = "TRUE_END";
/// An option of the contract is open.
const OPTION_OPEN: &str = "OPTION_OPEN";
/// The recipient is excluded from federal awards.
const EXCLUSION: &str = "EXCLUSION";
/// The current end has passed, and no option was exercised although one is open.
const NO_OPTION: &str = "NO_OPTION_EXERCISED";
/// What every answer says about the score.
const RANKING: &str =
    "The score is a ranking by public award data, not a probability. Changes of set-aside and of eligibility are not among the signals.";
/// Why there is no calibration.
const UNCALIBRATED: &str =
    "not calibrated: that needs contracts that were recorded here 180 days before their end, and that ended 12 to 36 months ago";

/// Arguments of `recompete_flip`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Beginnings of industry codes (NAICS), 2 to 6 digits each, separated by commas; at most 10.
    #[schemars(length(min = 2, max = 80))]
    pub naics: String,
    /// The smallest score.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub min_score: i32,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

/// A page of candidates.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecompeteCandidates")]
pub struct Candidates {
    /// The number of candidates of this page.
    pub count: usize,
    /// How many candidates match, over all pages; null if more than 2,000 contracts of the industry codes end in the time.
    pub total: Option<u64>,
    /// Send it as `after` to get the next page; null on the last one.
    pub next: Option<String>,
    /// How often candidates of each score were lost.
    pub calibration: Calibration,
    /// The candidates, the highest score first, then those that end first.
    pub candidates: Vec<Candidate>,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
    /// What the score is not.
    pub disclaimer: &'static str,
}

/// How often candidates of each score were lost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "RecompeteCalibration")]
pub struct Calibration {
    /// Why there are no figures.
    pub note: &'static str,
}

/// A contract that ends soon and can be bid again.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecompeteCandidate")]
pub struct Candidate {
    /// The award's permanent id.
    pub id: String,
    /// Name of the incumbent.
    pub recipient: String,
    /// Unique entity id of the incumbent.
    pub recipient_uei: String,
    /// Name of the awarding department.
    pub agency: String,
    /// The awarding office, or the agency within the department if the office is unknown.
    pub office: String,
    /// Industry code (NAICS).
    pub naics: String,
    /// Product or service code (PSC).
    pub psc: String,
    /// The end with all options.
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
    pub end: String,
    /// The end of the periods exercised so far.
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
    pub current_end: String,
    /// The obligated amount in dollars.
    pub obligated: Dollars,
    /// The sum of the points of the signals, 0 to 100.
    pub score: i32,
    /// Why it has its score.
    pub signals: Vec<Signal>,
    /// The page of the award.
    pub url: String,
}

/// A reason for a score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecompeteSignal")]
pub struct Signal {
    /// The kind.
    #[schemars(extend("enum" = [
        TRUE_END, OPTION_OPEN, EXCLUSION, NO_OPTION, signal::BRIDGE, signal::RIVAL, signal::PARENT_CHANGED, signal::CEILING,
        signal::DEOBLIGATION, signal::SOLE_SOURCE, signal::RENEWED, signal::GROWTH
    ]))]
    pub kind: &'static str,
    /// What it adds to the score.
    pub points: i32,
    /// The award that shows it, which can be another one.
    pub award_id: String,
    /// The day of it.
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
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

/// The place of a candidate in the order of answers.
type Spot = (Reverse<i32>, String, String);

impl Candidate {
    fn new(record: &Exclusion, contract: &Contract, signals: Vec<Signal>) -> Self {
        Self {
            id: contract.award_id.clone(),
            recipient: record.name.clone(),
            recipient_uei: contract.recipient_uei.clone(),
            agency: contract.agency.clone(),
            office: contract.office.clone(),
            naics: contract.naics.clone(),
            psc: contract.psc.clone(),
            end: contract.end().to_owned(),
            current_end: contract.current_end.clone(),
            obligated: Dollars { cents: contract.obligated_cents },
            score: score(&signals),
            signals,
            url: award_url(&contract.award_id),
        }
    }

    fn spot(&self) -> Spot {
        (Reverse(self.score), self.end.clone(), self.id.clone())
    }
}

/// The beginnings of industry codes, each once; none that begins with another one.
fn prefixes(text: &str) -> Result<Vec<String>, Problem> {
    let given: BTreeSet<String> = text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    let is_wrong = |part: &&String| !(2..=6).contains(&part.len()) || !part.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(wrong) = given.iter().find(is_wrong) {
        return Err(Problem::parameter("naics", format!("{wrong:?} is no beginning of an industry code: 2 to 6 digits")));
    }
    if given.is_empty() || given.len() > NAICS_MAX {
        return Err(Problem::parameter("naics", format!("`naics` names 1 to {NAICS_MAX} industry codes, separated by commas")));
    }
    Ok(given.iter().filter(|part| !given.iter().any(|other| other != *part && part.starts_with(other.as_str()))).cloned().collect())
}

/// The earliest active exclusion of each of some recipients, by UEI. A note says how many recipients are left out because their exclusions are hidden.
async fn earliest_exclusions(
    reader: &mut Reader<Exclusions>,
    ueis: &BTreeSet<&str>,
    day: Date,
) -> Result<BTreeMap<String, Exclusion>, Problem> {
    let ueis: Vec<&str> = ueis.iter().copied().collect();
    let hits = hits_of(reader, &ueis).await?;
    let (mut found, mut hidden) = (BTreeMap::new(), hits.hidden);
    for hit in hits.shown {
        let own = exclusions_of(reader, &hit, &HashSet::new(), day).await?;
        match own.shown.into_iter().next() {
            Some(first) => _ = found.insert(hit.uei, first),
            None => hidden += usize::from(own.hidden > 0),
        }
    }
    reader.note(hidden_note("exclusions of recipients", hidden));
    Ok(found)
}

impl Read for Arguments {
    type Service = Exclusions;
    type Answer = Candidates;

    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "recompete_flip",
            path: "/v1/recompete_flip",
            summary: "Federal contracts that end soon and can be bid again, ranked by signs that the incumbent may lose them.",
            when: "Use it to find contracts of an industry that end in 1 to 18 months, and why the incumbent may lose them.",
            description: "A candidate is a contract of at least 250,000 dollars and 12 months that ends in 30 to 540 days with all its options, was not \
                terminated, and serves a repeated need or has options. Each signal names its award and day; `score` is the sum of their points, at \
                least 0 and at most 100. It is a ranking, not a probability.",
            price: Price::Free,
            list: "candidates",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "naics": "5415", "limit": 10 }),
            aliases: &[("min_score", "minScore")],
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Candidates, Problem> {
        let (day, limit, prefixes) = (reader.today(), reader.limit(), prefixes(&self.naics)?);
        let search = format!("recompete/{}/{}", prefixes.join(","), self.min_score);
        let after = self.after.as_deref().map(|text| cursor::read_place::<Spot>(&reader.context().secrets, SOURCE.service, &search, text));
        let after = after.transpose()?.map(|(_, spot)| spot);
        let days = day.saturating_add(DAYS.0.days())..=day.saturating_add(DAYS.1.days());
        let (mut records, mut is_cut) = (Vec::new(), false);
        for prefix in &prefixes {
            if records.len() >= PLACES_MAX {
                is_cut = true;
                break;
            }
            let list = naics_list(prefix);
            let walk = Walk {
                list: &list,
                part: Segment::soonest_first(&days),
                filter: "recompete",
                limit: PLACES_MAX - records.len(),
                after: None,
            };
            let page = reader.ranked(walk, None).await?;
            is_cut |= page.next.is_some();
            records.extend(page.items);
        }
        let Counted { shown: records, hidden } = Counted::of(records);
        reader.note(hidden_note("contracts", hidden));
        let contracts = || records.iter().filter_map(|record| record.contract.as_deref().map(|contract| (record, contract)));
        let ueis = contracts().map(|(_, contract)| contract.recipient_uei.as_str()).filter(|uei| !uei.is_empty()).collect();
        let excluded = earliest_exclusions(reader, &ueis, day).await?;
        let mut candidates: Vec<Candidate> = contracts()
            .map(|(record, contract)| Candidate::new(record, contract, signals(contract, day, excluded.get(&contract.recipient_uei))))
            .filter(|candidate| candidate.score >= self.min_score)
            .collect();
        candidates.sort_by_cached_key(Candidate::spot);
        if is_cut {
            reader.note(format!("more than {PLACES_MAX} contracts of the industry codes end in the time, and only so many are ranked. Give more digits or fewer codes"));
        }
        if candidates.is_empty() {
            let (least, most) = DAYS;
            let codes = prefixes.join(" or ");
            reader.note(format!("no contract with an industry code (NAICS) that begins with {codes} is a candidate: of those that end in {least} to {most} days, none has the score"));
        }
        let total = (!is_cut).then_some(candidates.len() as u64);
        let start = after.map_or(0, |after| candidates.partition_point(|candidate| candidate.spot() <= after));
        let is_last = candidates.len() - start <= limit;
        let candidates: Vec<Candidate> = candidates.into_iter().skip(start).take(limit).collect();
        let place = candidates.last().filter(|_| !is_last).map(Candidate::spot);
        let next = place.map(|place| cursor::encode_place(&reader.context().secrets, SOURCE.service, reader.at.seq, &search, &place));
        Ok(Candidates {
            count: candidates.len(),
            total,
            next,
            calibration: Calibration { note: UNCALIBRATED },
            candidates,
            completeness: reader.completeness().await?,
            disclaimer: RANKING,
        })
    }
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

    /// Proves which beginnings of industry codes are read, and that none is read twice.
    #[test]
    fn industry_codes() {
        assert_eq!(prefixes(" 5415, 541511,23 ").unwrap(), ["23", "5415"]);
        for wrong in ["5x", "5", "5415121", "", ",", "11,12,13,14,15,16,17,18,19,20,21"] {
            assert_eq!(prefixes(wrong).unwrap_err().parameter, "naics", "{wrong}");
        }
    }
}
