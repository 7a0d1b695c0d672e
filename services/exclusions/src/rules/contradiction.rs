//! What annual reports say about revenue from the government, compared with the obligations to the companies' groups.
//!
//! Obligations are promises and revenue is work done, so sums of up to three years are compared, and a company with its own years before. A ratio that the
//! known gaps do not explain is a lead, not proof. All of it follows from facts: obligations that were read too early say so themselves.

mod select;

use std::collections::BTreeMap;

use crate::record::{CONTRADICTION, Contradiction, Exclusion, reason, verdict};
use jiff::civil::Date;
use schemas::clock::day_of;
use schemas::facts::company_facts::{CompanyFact, GROUPS, REPORT, TOTAL};
use serde::{Deserialize, Serialize};
use texts::crosswalk::{self, Company, Confidence};

use self::select::{Selected, select};
use super::state::Decision;
use crate::record::CustomerPart;
use fold::records::DecisionRow;
use fold::undecided::Undecided;

pub(crate) use select::names_the_us;

/// How many fiscal years are added up.
const SUM_YEARS: i64 = 3;
/// The smallest revenue from the government that is compared: 50 million dollars.
const CENTS_MIN: i64 = 5_000_000_000;
/// A fiscal year of 52 or 53 weeks ends at most so many days before or after the day that the crosswalk names.
const END_DAYS_MAX: i32 = 14;
/// The most fiscal years that are remembered of a company: the newest.
const YEARS_MAX: usize = 20;
/// The most sums that are remembered of a company.
const TOTALS_MAX: usize = 400;

/// What is remembered of a company.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KnownCompany {
    /// The annual reports of the company by fiscal year.
    reports: BTreeMap<i64, KnownReport>,
    /// The sums of obligations by last day, parent and group.
    totals: BTreeMap<String, KnownTotal>,
}

/// What is remembered of an annual report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KnownReport {
    company: String,
    end: String,
    accession: String,
    form: String,
    filed: String,
    file: String,
    revenue_cents: Option<i64>,
    revenue_tag: String,
    government_cents: Option<i64>,
    share_millionths: Option<i64>,
    member: String,
    label: String,
    tag: String,
    context: String,
    parts: Vec<CustomerPart>,
}

/// What is remembered of a sum of obligations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KnownTotal {
    start: String,
    obligated_cents: i64,
    outlays_cents: Option<i64>,
    is_settled: bool,
    /// The day on which it was read.
    since: String,
}

/// The obligations of a fiscal year of a company.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct YearTotal {
    start: String,
    end: String,
    obligated_cents: i64,
    outlays_cents: Option<i64>,
    is_settled: bool,
    since: String,
    parents: Vec<String>,
}

/// The two sides over some years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    government_cents: i64,
    obligated_cents: i64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Compared {
    /// Whether the report states revenue from the government.
    has_government: bool,
    /// The sums; `None` without obligations or revenue of the fiscal year.
    sums: Option<Sums>,
    confidence: Confidence,
    is_settled: bool,
    is_merged: bool,
    /// The sums of the fiscal year before, if they are comparable.
    before: Option<Sums>,
}

fn cik_key(cik: &str) -> String {
    format!("cik/{cik}")
}

/// The id of the record of a company and fiscal year.
pub(super) fn contradiction_id(cik: &str, fiscal_year: i64) -> String {
    format!("annual:{cik}:{fiscal_year}")
}

/// The companies that a fact is about.
fn companies(fact: &CompanyFact) -> Vec<&'static Company> {
    match fact.kind.as_str() {
        REPORT => crosswalk::by_cik(&fact.cik).into_iter().collect(),
        TOTAL => crosswalk::by_parent(&fact.parent_uei).collect(),
        _ => Vec::new(),
    }
}

/// The rows that [`decide`] will certainly read.
pub(super) fn reads(fact: &CompanyFact) -> Vec<DecisionRow> {
    let own = companies(fact).into_iter().map(|company| DecisionRow::State(cik_key(&company.cik)));
    let record = (fact.kind == REPORT).then(|| DecisionRow::Record(contradiction_id(&fact.cik, fact.fiscal_year)));
    own.chain(record).collect()
}

/// Decides what an annual report or a sum means: the comparisons of its company.
pub(super) fn decide(state: Decision<'_, '_>, fact: &CompanyFact, observed_at: i64) -> Result<(), Undecided> {
    for company in companies(fact) {
        let key = cik_key(&company.cik);
        let before: KnownCompany = state.get(&key)?.unwrap_or_default();
        let mut now = before.clone();
        if fact.kind == REPORT {
            now.take_report(fact)
        } else {
            now.take_total(fact, &day_of(observed_at).to_string())
        }
        if now == before {
            continue;
        }
        state.remember(&key, Some(&now))?;
        for fiscal_year in now.reports.keys() {
            if let Some(record) = now.record(company, *fiscal_year) {
                state.put(record)?;
            }
        }
    }
    Ok(())
}

impl KnownCompany {
    /// Takes over an annual report. Of several of one year the one with revenue from the government counts, then the one with revenue, then the latest.
    fn take_report(&mut self, fact: &CompanyFact) {
        let Selected { revenue_cents, revenue_tag, government, parts } = select(&fact.facts, &fact.end);
        let (government_cents, government) = (government.as_ref().map(|one| one.cents), government.unwrap_or_default());
        let report = KnownReport {
            company: fact.company.clone(),
            end: fact.end.clone(),
            accession: fact.accession.clone(),
            form: fact.form.clone(),
            filed: fact.filed.clone(),
            file: fact.file.clone(),
            revenue_cents,
            revenue_tag,
            government_cents,
            share_millionths: government.share_millionths,
            member: government.member,
            label: government.label,
            tag: government.tag,
            context: government.context,
            parts,
        };
        let known = self.reports.entry(fact.fiscal_year).or_default();
        if report.rank() >= known.rank() {
            *known = report;
        }
        while self.reports.len() > YEARS_MAX {
            self.reports.pop_first();
        }
    }

    /// Takes over a sum of obligations.
    fn take_total(&mut self, fact: &CompanyFact, since: &str) {
        let Some(obligated_cents) = fact.obligated_cents else { return };
        let total = KnownTotal {
            start: fact.start.clone(),
            obligated_cents,
            outlays_cents: fact.outlays_cents,
            is_settled: fact.is_settled,
            since: since.to_owned(),
        };
        self.totals.insert(total_key(&fact.end, &fact.parent_uei, &fact.group), total);
        // Days in this form are in the order of their texts, so the oldest come first.
        while self.totals.len() > TOTALS_MAX {
            self.totals.pop_first();
        }
    }

    /// The obligations of a fiscal year; `None` if those of a parent or group are not recorded.
    fn year_total(&self, company: &Company, report: &KnownReport) -> Option<YearTotal> {
        let end: Date = report.end.parse().ok()?;
        let near = |text: &str| text.parse::<Date>().is_ok_and(|day| (day - end).get_days().abs() <= END_DAYS_MAX);
        // The sums of one year have the same last day.
        let last = self.totals.keys().filter_map(|key| key.split('/').next()).find(|day| near(day))?;
        let mut out = YearTotal { end: last.to_owned(), outlays_cents: Some(0), is_settled: true, ..YearTotal::default() };
        for parent in &company.parents {
            for group in GROUPS {
                let total = self.totals.get(&total_key(last, &parent.uei, group))?;
                if !parent.is_valid(&total.start, last) {
                    continue;
                }
                out.start.clone_from(&total.start);
                out.obligated_cents = out.obligated_cents.checked_add(total.obligated_cents)?;
                out.outlays_cents = out.outlays_cents.zip(total.outlays_cents).and_then(|(sum, more)| sum.checked_add(more));
                out.is_settled &= total.is_settled;
                out.since = std::mem::take(&mut out.since).max(total.since.clone());
                if !out.parents.contains(&parent.uei) {
                    out.parents.push(parent.uei.clone());
                }
            }
        }
        (!out.parents.is_empty()).then_some(out)
    }

    /// The years of a comparison of which both sides are known, the newest first; none if one side of the fiscal year itself is missing.
    fn years(&self, company: &Company, fiscal_year: i64) -> Vec<(i64, YearTotal)> {
        let both = |year: i64| {
            let report = self.reports.get(&year)?;
            Some((report.government_cents?, self.year_total(company, report)?))
        };
        let Some(own) = both(fiscal_year) else { return Vec::new() };
        let earlier = (1..SUM_YEARS).filter_map(|back| both(fiscal_year - back));
        std::iter::once(own).chain(earlier).collect()
    }

    /// What is compared for a fiscal year, without the year before, and the years of it.
    fn compared(&self, company: &Company, fiscal_year: i64) -> (Compared, Vec<(i64, YearTotal)>) {
        let years = self.years(company, fiscal_year);
        let government = sum(years.iter().map(|(government, _)| *government));
        let obligated = sum(years.iter().map(|(_, total)| total.obligated_cents));
        let sums = government.zip(obligated).filter(|_| !years.is_empty());
        let (start, end) =
            (years.last().map_or("", |(_, total)| total.start.as_str()), years.first().map_or("", |(_, total)| total.end.as_str()));
        let is_within = |day: &str| !start.is_empty() && start <= day && day <= end;
        let is_changed = company.parents.iter().any(|parent| {
            // The first day that can be asked about is no change.
            let is_begun = parent.valid_from > FIRST_DAY && is_within(&parent.valid_from.to_string());
            is_begun || (is_within(&parent.valid_to) && parent.valid_to.as_str() < end)
        });
        let compared = Compared {
            has_government: self.reports.get(&fiscal_year).is_some_and(|report| report.government_cents.is_some()),
            sums: sums.map(|(government_cents, obligated_cents)| Sums { government_cents, obligated_cents }),
            confidence: company.confidence,
            is_settled: years.iter().all(|(_, total)| total.is_settled),
            is_merged: is_changed || company.mergers.iter().any(|day| is_within(day)),
            before: None,
        };
        (compared, years)
    }

    /// The record of a fiscal year.
    fn record(&self, company: &Company, fiscal_year: i64) -> Option<Exclusion> {
        let report = self.reports.get(&fiscal_year)?;
        let (compared, years) = self.compared(company, fiscal_year);
        let before = self.compared(company, fiscal_year - 1).0;
        let before = before.sums.filter(|_| before.obstacles().is_empty());
        let compared = Compared { before, ..compared };
        let (found, reasons) = compared.verdict();
        let own = self.year_total(company, report);
        let contradiction = Contradiction {
            cik: company.cik.clone(),
            fiscal_year,
            period_end: report.end.clone(),
            accession: report.accession.clone(),
            form: report.form.clone(),
            filed: report.filed.clone(),
            file: report.file.clone(),
            revenue_cents: report.revenue_cents,
            revenue_tag: report.revenue_tag.clone(),
            government_cents: report.government_cents,
            share_millionths: report.share_millionths,
            member: report.member.clone(),
            label: report.label.clone(),
            tag: report.tag.clone(),
            context: report.context.clone(),
            parts: report.parts.clone(),
            parent_ueis: company.parents.iter().map(|parent| parent.uei.clone()).collect(),
            obligated_cents: own.as_ref().map(|own| own.obligated_cents),
            outlays_cents: own.as_ref().and_then(|own| own.outlays_cents),
            obligated_since: own.map(|own| own.since).unwrap_or_default(),
            window_start: years.last().map(|(_, total)| total.start.clone()).unwrap_or_default(),
            window_end: years.first().map(|(_, total)| total.end.clone()).unwrap_or_default(),
            years: i64::try_from(years.len()).unwrap_or_default(),
            government_sum_cents: compared.sums.map(|sums| sums.government_cents),
            obligated_sum_cents: compared.sums.map(|sums| sums.obligated_cents),
            ratio_percent: compared.sums.and_then(Sums::ratio_percent),
            ratio_before_percent: before.and_then(Sums::ratio_percent),
            verdict: found.to_owned(),
            reasons: reasons.into_iter().map(str::to_owned).collect(),
            confidence: company.confidence.as_str().to_owned(),
        };
        let name = if report.company.is_empty() { &company.company } else { &report.company };
        Some(Exclusion {
            id: contradiction_id(&company.cik, fiscal_year),
            kind: CONTRADICTION.to_owned(),
            name: name.clone(),
            ticker: company.ticker.clone(),
            contradiction: Some(Box::new(contradiction)),
            ..Exclusion::default()
        })
    }
}

/// The first day that the upstream can be asked about.
pub(crate) const FIRST_DAY: Date = Date::constant(2007, 10, 1);

/// The sum of some amounts; `None` if it is too large.
fn sum(mut values: impl Iterator<Item = i64>) -> Option<i64> {
    values.try_fold(0_i64, i64::checked_add)
}

fn total_key(end: &str, uei: &str, group: &str) -> String {
    format!("{end}/{uei}/{group}")
}

impl KnownReport {
    /// What decides between the reports of one year.
    fn rank(&self) -> (bool, bool, &str, &str) {
        (self.government_cents.is_some(), self.revenue_cents.is_some(), &self.filed, &self.accession)
    }
}

impl Sums {
    /// Obligations as a percentage of the revenue, rounded; `None` without revenue.
    fn ratio_percent(self) -> Option<i64> {
        let (government, obligated) = (i128::from(self.government_cents), i128::from(self.obligated_cents));
        if government <= 0 {
            return None;
        }
        i64::try_from((obligated * 200 + government).div_euclid(government * 2)).ok()
    }

    /// Whether obligations are 0.4 to 2.5 times the revenue.
    fn is_in_band(self) -> bool {
        let (government, obligated) = (i128::from(self.government_cents), i128::from(self.obligated_cents));
        obligated * 10 >= government * 4 && obligated * 10 <= government * 25
    }

    /// Whether the ratio is within 35 % of another one.
    fn is_near(self, other: Self) -> bool {
        let product = |one: i64, other: i64| i128::from(one) * i128::from(other);
        let (own, before) = (product(self.obligated_cents, other.government_cents), product(other.obligated_cents, self.government_cents));
        before > 0 && (own - before).abs() * 100 <= before * 35
    }
}

impl Compared {
    /// Why the two sides are not comparable; nothing if they are.
    fn obstacles(&self) -> Vec<&'static str> {
        let below = self.sums.is_some_and(|sums| sums.government_cents < CENTS_MIN);
        let all = [
            (!self.has_government, reason::NO_GOVERNMENT_REVENUE),
            (self.has_government && self.sums.is_none(), reason::NO_OBLIGATIONS),
            (self.confidence < Confidence::Medium, reason::CROSSWALK_CONFIDENCE),
            (below, reason::BELOW_50_MILLION),
            (!self.is_settled, reason::YEAR_END_RECENT),
            (self.is_merged, reason::MERGER),
        ];
        all.into_iter().filter(|(applies, _)| *applies).map(|(_, reason)| reason).collect()
    }

    /// The verdict, and why.
    fn verdict(&self) -> (&'static str, Vec<&'static str>) {
        let obstacles = self.obstacles();
        match self.sums {
            Some(sums) if obstacles.is_empty() => {
                if sums.is_in_band() {
                    (verdict::CONSISTENT, vec![reason::RATIO_IN_BAND])
                } else if self.before.is_some_and(|before| sums.is_near(before)) {
                    (verdict::CONSISTENT, vec![reason::NEAR_OWN_RATIO])
                } else {
                    (verdict::DIFFERS, vec![reason::RATIO_OUT_OF_BAND])
                }
            }
            _ => (verdict::NOT_COMPARABLE, obstacles),
        }
    }
}

#[cfg(test)]
mod tests;
