//! `GET /v1/recompete_flip`: contracts that end soon and can be bid again, and signs that the incumbent may lose them. A ranking, not a probability.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::record::{Contract, Exclusion, Signal, naics_list, score, signals};
use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use texts::dollars::Dollars;
use texts::numbers::has_only_digits;

use super::award_url;
use super::calibration::Calibration;
use super::filter::Filter;
use super::findings::{Counted, exclusions_of, hits_of};
use super::watchable_feed::Exclusions;
use crate::rules::ExclusionsRules;
use feed::cursor;
use feed::places::{PLACES_MAX, Segment, Walk};
use fold::records::Rules;
use operation::problem::Problem;
use operation::{Definition, Price};
use reads::read::{Completeness, Read, Reader, hidden_note};

/// The days until the end with all options in which a contract is a candidate.
const DAYS: (i64, i64) = (30, 540);
/// The most beginnings of industry codes of a call.
const NAICS_MAX: usize = 10;

/// What every answer says about the score.
const RANKING: &str =
    "The score is a ranking by public award data, not a probability. Changes of set-aside and of eligibility are not among the signals.";

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
    /// How often contracts of each score were lost.
    pub calibration: Calibration,
    /// The candidates, the highest score first, then those that end first.
    pub candidates: Vec<Candidate>,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
    /// What the score is not.
    pub disclaimer: &'static str,
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
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub end: String,
    /// The end of the periods exercised so far.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub current_end: String,
    /// The obligated amount in dollars.
    pub obligated: Dollars,
    /// The sum of the points of the signals, 0 to 100.
    pub score: i32,
    /// Why the contract has its score.
    pub signals: Vec<Signal>,
    /// The page of the award.
    pub url: String,
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
    let is_wrong = |part: &&String| !(2..=6).contains(&part.len()) || !has_only_digits(part);
    if let Some(wrong) = given.iter().find(is_wrong) {
        return Err(Problem::parameter("naics", format!("{wrong:?} is not the beginning of an industry code: 2 to 6 digits")));
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
                least 0 and at most 100. It is a ranking, not a probability. `calibration` counts, for contracts that ended 12 to 36 months ago, how many of each \
                score were lost.",
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
        let after =
            self.after.as_deref().map(|text| cursor::read_place::<Spot>(&reader.context().secrets, ExclusionsRules::NAME, &search, text));
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
        let next =
            place.map(|place| cursor::encode_place(&reader.context().secrets, ExclusionsRules::NAME, reader.at.seq, &search, &place));
        Ok(Candidates {
            count: candidates.len(),
            total,
            next,
            calibration: Calibration::read(&reader.at).await?,
            candidates,
            completeness: reader.completeness().await?,
            disclaimer: RANKING,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which beginnings of industry codes are read, and that none is read twice.
    #[test]
    fn industry_codes() {
        assert_eq!(prefixes(" 5415, 541511,23 ").unwrap(), ["23", "5415"]);
        for wrong in ["5x", "5", "5415121", "", ",", "11,12,13,14,15,16,17,18,19,20,21"] {
            assert_eq!(prefixes(wrong).unwrap_err().parameter, "naics", "{wrong}");
        }
    }
}
