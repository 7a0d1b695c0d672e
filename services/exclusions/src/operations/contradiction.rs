//! `GET /v1/contradiction` and the tool `contradiction_check`: what a company's annual report says about revenue from the government, next to what was
//! obligated to its group in the same years. A difference is a lead, not proof.

use std::collections::BTreeSet;

use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::facts::company_facts::{CONTRACTS, VEHICLES};
use schemas::names::hint;
use serde::{Deserialize, Serialize};
use serde_json::json;
use texts::crosswalk;
use texts::dollars::Dollars;
use texts::tickers::tickers;

use super::DISCLAIMER;
use super::filter::Filter;
use super::findings::hits_of_all_days;
use super::watchable_feed::Exclusions;
use crate::record::{Contradiction, CustomerPart, Exclusion, ticker_list, verdict};
use crate::rules::names_the_us;
use feed::places::Walk;
use reads::read::{Read, Reader};

/// The rule by which answers compare.
const RULE: &str = "contradiction/1";
/// What every answer says in addition.
const LEAD: &str = "Of two public sources: a difference is a lead, not proof.";
/// The most fiscal years of a company that are looked at.
const YEARS_MAX: usize = 50;
/// The address that is asked for obligations.
const ENDPOINT: &str = "https://api.usaspending.gov/api/v2/search/spending_by_category/recipient/";
/// How many years are compared if all are known.
const FULL_YEARS: i64 = 3;
/// The part of a whole, for shares.
const MILLIONTHS: f64 = 1_000_000.0;
/// The end of the federal fiscal year.
const FEDERAL_YEAR_END: &str = "-09-30";

/// In which direction a gap moves one side against the other.
mod direction {
    /// The report is higher.
    pub(super) const REPORT: &str = "report_higher";
    /// The awards are higher.
    pub(super) const AWARDS: &str = "awards_higher";
    /// Either.
    pub(super) const EITHER: &str = "either";
    /// THE LIST.
    pub(super) const ALL: [&str; 3] = [REPORT, AWARDS, EITHER];
}

/// The gaps that there always are between revenue and obligations.
const GAPS: [(&str, &str, &str); 8] = [
    (
        "OBLIGATION_IS_NOT_REVENUE",
        direction::EITHER,
        "an obligation is a promise, and revenue is work done; orders for several years are obligated early",
    ),
    ("SUBCONTRACT_REVENUE", direction::REPORT, "revenue as a subcontractor is obligated to another recipient"),
    ("WORK_PASSED_ON", direction::AWARDS, "what is passed on to subcontractors is obligated to this group"),
    (
        "FOREIGN_MILITARY_SALES",
        direction::AWARDS,
        "foreign military sales are contracts of the Department of Defense, and reports can call them foreign",
    ),
    (
        "NOT_PUBLISHED",
        direction::REPORT,
        "classified awards, purchases below the threshold and the awards of some bodies, such as the Postal Service, are not published",
    ),
    (
        "LATE_DATA",
        direction::AWARDS,
        "contracts of the Department of Defense are published ninety days late, and corrections come for years",
    ),
    ("OTHER_ASSISTANCE", direction::REPORT, "grants, loans, leases and health programs are no contracts"),
    ("GROUP_LIMITS", direction::EITHER, "joint ventures, and recipients whose parent is wrong, are on one side only"),
];

/// Arguments of `contradiction_check`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// The ticker symbol of a company of the crosswalk, which `/docs` shows.
    #[schemars(length(min = 1, max = 40))]
    pub ticker: String,
    /// The fiscal year as the annual report names it; the latest that is recorded without it.
    #[schemars(range(min = 2000, max = 2100))]
    pub fiscal_year: Option<i64>,
}

/// An annual report, compared with federal awards.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ContradictionCheck")]
pub struct Answer {
    /// The ticker symbol.
    pub ticker: String,
    /// The company's number with the securities regulator, 10 digits.
    pub cik: String,
    /// The company.
    pub company: String,
    /// The fiscal year, as the report names it.
    pub fiscal_year: i64,
    /// Last day of the fiscal year.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub period_end: String,
    /// What the report says about revenue from the government.
    pub gov: GovernmentRevenue,
    /// Revenue of the fiscal year in dollars; null if the report states none that a program can read.
    pub revenue: Option<Dollars>,
    /// Tag of the revenue.
    pub revenue_tag: String,
    /// What was obligated to the company's group.
    pub awards: GroupAwards,
    /// Both sides over the years that are compared.
    pub sums: ComparedSums,
    /// Obligations divided by revenue from the government, over these years; null if one of them is missing.
    pub ratio: Option<f64>,
    /// That ratio as it is for the fiscal year before; null if that year is not comparable.
    pub ratio_prev: Option<f64>,
    /// `not_comparable`, `consistent` or `differs`.
    #[schemars(extend("enum" = verdict::ALL))]
    pub verdict: String,
    /// Why: `NO_GOVERNMENT_REVENUE`, `NO_OBLIGATIONS`, `CROSSWALK_CONFIDENCE`, `BELOW_50_MILLION`, `YEAR_END_RECENT` or `MERGER` if they are not comparable, else
    /// `RATIO_IN_BAND`, `NEAR_OWN_RATIO` or `RATIO_OUT_OF_BAND`.
    pub reasons: Vec<String>,
    /// How sure it is that the recipients are the company's: `low`, `medium` or `high`.
    pub confidence: String,
    /// What makes the two sides differ without a contradiction.
    pub gaps: Vec<Gap>,
    /// The rule of the verdict.
    pub rule: &'static str,
    /// The version of the crosswalk.
    pub crosswalk_version: u32,
    /// What the answer is not.
    pub disclaimer: String,
}

/// What an annual report says about revenue from the government.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GovernmentRevenue {
    /// The revenue of the fiscal year in dollars; null if the report states none that a program can read.
    pub value: Option<Dollars>,
    /// The share of the revenue that comes from the government, if the report states the share instead of an amount.
    pub share: Option<f64>,
    /// Whether the value is the share of the revenue.
    pub from_percent: bool,
    /// The customer as the report tags it.
    pub member: String,
    /// The labels of the customer in the report.
    pub label: String,
    /// Tag of the fact.
    pub tag: String,
    /// Context of the fact in the instance.
    pub context: String,
    /// Accession number of the report.
    pub accession: String,
    /// Form type of the report.
    pub form: String,
    /// Day on which the report was filed.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub filed: String,
    /// The instance, or the page of the filing if it has none.
    pub source_url: String,
    /// The sentence of the report: always null, since the text of reports is not read.
    pub quote: Option<String>,
    /// Further facts about the government as a customer.
    pub parts: Vec<Part>,
}

/// A further fact about the government as a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "GovernmentRevenuePart")]
pub struct Part {
    /// The customer as the report tags it.
    pub member: String,
    /// The labels of the customer in the report.
    pub label: String,
    /// The revenue from the customer in dollars.
    pub value: Dollars,
}

/// What was obligated to a company's group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupAwards {
    /// Unique entity ids of the group's parents.
    pub parent_uei: Vec<String>,
    /// Obligations of the fiscal year in dollars; null if they are not recorded.
    pub obligations: Option<Dollars>,
    /// Payments of the fiscal year in dollars; null if they are not known.
    pub outlays: Option<Dollars>,
    /// Obligations of the Department of Defense: always null, since the sums are not read by department.
    #[serde(rename = "obligationsDoD")]
    pub obligations_dod: Option<Dollars>,
    /// First day of the years that are compared.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub window_start: String,
    /// Last day of the years that are compared.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub window_end: String,
    /// The day since which the obligations of the fiscal year are recorded as they are.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub as_of: String,
    /// How the obligations can be asked for again.
    pub query: AwardQuery,
}

/// How obligations can be asked for again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwardQuery {
    /// The address of a POST request.
    pub endpoint: &'static str,
    /// The values of the filter `recipient_id`, one request each.
    pub recipient_ids: Vec<String>,
    /// The groups of award types, one request each.
    pub groups: [&'static str; 2],
}

/// Both sides over the years that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedSums {
    /// How many fiscal years are added up: up to three, those of which both sides are known.
    pub years: i64,
    /// Revenue from the government in dollars.
    pub government_revenue: Option<Dollars>,
    /// Obligations in dollars.
    pub obligations: Option<Dollars>,
}

/// What makes the two sides differ without a contradiction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gap {
    /// The kind of the gap.
    pub kind: &'static str,
    /// Which side the gap makes higher.
    #[schemars(extend("enum" = direction::ALL))]
    pub direction: &'static str,
    /// What the gap is.
    pub detail: &'static str,
}

impl Answer {
    /// The answer that shows a record; `None` if it is no contradiction.
    fn new(record: Exclusion) -> Option<Self> {
        let found = *record.contradiction?;
        let gaps = gaps(&found);
        let dollars = |cents: Option<i64>| cents.map(|cents| Dollars { cents });
        // A percentage has two digits after the point, as cents do.
        let ratio = |percent: Option<i64>| percent.map(|cents| Dollars { cents }.as_f64());
        let share = found.share_millionths.and_then(|share| i32::try_from(share).ok()).map(|share| f64::from(share) / MILLIONTHS);
        let source_url = source_url(&found);
        let parents = crosswalk::by_cik(&found.cik).map(|company| company.parents.as_slice()).unwrap_or_default();
        let part = |CustomerPart { member, label, cents }: CustomerPart| Part { member, label, value: Dollars { cents } };
        Some(Self {
            ticker: record.ticker,
            cik: found.cik,
            company: record.name,
            fiscal_year: found.fiscal_year,
            period_end: found.period_end,
            gov: GovernmentRevenue {
                value: dollars(found.government_cents),
                share,
                from_percent: share.is_some(),
                member: found.member,
                label: found.label,
                tag: found.tag,
                context: found.context,
                accession: found.accession,
                form: found.form,
                filed: found.filed,
                source_url,
                quote: None,
                parts: found.parts.into_iter().map(part).collect(),
            },
            revenue: dollars(found.revenue_cents),
            revenue_tag: found.revenue_tag,
            awards: GroupAwards {
                obligations: dollars(found.obligated_cents),
                outlays: dollars(found.outlays_cents),
                obligations_dod: None,
                window_start: found.window_start,
                window_end: found.window_end,
                as_of: found.obligated_since,
                query: AwardQuery {
                    endpoint: ENDPOINT,
                    recipient_ids: parents.iter().map(|parent| parent.recipient_id.clone()).collect(),
                    groups: [CONTRACTS, VEHICLES],
                },
                parent_uei: found.parent_ueis,
            },
            sums: ComparedSums {
                years: found.years,
                government_revenue: dollars(found.government_sum_cents),
                obligations: dollars(found.obligated_sum_cents),
            },
            ratio: ratio(found.ratio_percent),
            ratio_prev: ratio(found.ratio_before_percent),
            verdict: found.verdict,
            reasons: found.reasons,
            confidence: found.confidence,
            gaps,
            rule: RULE,
            crosswalk_version: crosswalk::version(),
            disclaimer: format!("{DISCLAIMER} {LEAD}"),
        })
    }
}

/// What is said about a ticker that no company of the crosswalk has.
fn unknown_ticker(ticker: &str) -> String {
    let known = [false, true].into_iter().flat_map(crosswalk::companies).map(|company| company.ticker.as_str());
    let hint = hint(&ticker.trim().to_uppercase(), known);
    format!("no company with the ticker {ticker:?} is in the crosswalk of companies and recipients{hint}")
}

/// Where the facts of a report can be read.
fn source_url(found: &Contradiction) -> String {
    let (cik, plain) = (found.cik.trim_start_matches('0'), found.accession.replace('-', ""));
    let file = if found.file.is_empty() { format!("{}-index.htm", found.accession) } else { found.file.clone() };
    format!("https://www.sec.gov/Archives/edgar/data/{cik}/{plain}/{file}")
}

/// The gaps of a comparison: those that there always are, and those that its own data shows.
fn gaps(found: &Contradiction) -> Vec<Gap> {
    let own = [
        (
            !found.period_end.is_empty() && !found.period_end.ends_with(FEDERAL_YEAR_END),
            ("FISCAL_YEAR", direction::EITHER, "the fiscal year of the company is not the federal one"),
        ),
        (
            found.share_millionths.is_some(),
            ("FROM_PERCENT", direction::EITHER, "the revenue from the government is computed from a share that the report rounds"),
        ),
        (
            !found.member.is_empty() && !names_the_us(&found.member, &found.label),
            (
                "OTHER_GOVERNMENTS",
                direction::REPORT,
                "the customer that the report names can include other governments than that of the United States",
            ),
        ),
        (
            (1..FULL_YEARS).contains(&found.years),
            ("FEWER_YEARS", direction::EITHER, "both sides are known of fewer than three years, so that early orders count more"),
        ),
    ];
    let own = own.into_iter().filter(|(applies, _)| *applies).map(|(_, gap)| gap);
    GAPS.into_iter().chain(own).map(|(kind, direction, detail)| Gap { kind, direction, detail }).collect()
}

impl Read for Arguments {
    type Service = Exclusions;
    type Answer = Answer;

    fn definition() -> Definition {
        Definition {
            name: "contradiction_check",
            path: "/v1/contradiction",
            summary: "What a company's annual report says about revenue from the US government, next to the federal awards of its group.",
            when: "Use it for a lead on a listed contractor, or to see whether its report and its awards fit together.",
            description: "Sums of up to three fiscal years are compared. `consistent`: obligations are 0.4 to 2.5 times the revenue, or the ratio is within \
                35 % of that of the year before. `not_comparable`: a side is missing, the revenue from the government is below 50 million dollars, the \
                obligations were read less than 120 days after the end of the year, the group changed, or its recipients are not sure enough. Else \
                `differs`: a lead, not proof. `gaps` says what makes the two sides differ anyway. Only companies of the crosswalk are known, which `/docs` \
                shows.",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::NotFound],
            example: json!({ "ticker": "DEMOA" }),
            aliases: &[("fiscal_year", "fiscalYear")],
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Answer, Problem> {
        let Self { ticker, fiscal_year } = self;
        if tickers(&ticker).is_empty() {
            return Err(Problem::parameter("ticker", format!("{ticker:?} is not a ticker symbol")));
        }
        let not_found = |words: String| Problem::new(ErrorCode::NotFound, words).about("ticker");
        let Some(company) = crosswalk::by_ticker(&ticker) else {
            return Err(not_found(unknown_ticker(&ticker)));
        };
        let list = ticker_list(&company.ticker);
        let walk = Walk { list: &list, part: hits_of_all_days(), filter: "contradiction", limit: YEARS_MAX, after: None };
        let records = reader.ranked(walk, None).await?.items;
        if records.is_empty() {
            return Err(not_found(format!("no annual report of {} is recorded", company.ticker)));
        }
        let is_wanted = |record: &Exclusion| {
            record.contradiction.as_ref().is_some_and(|found| fiscal_year.is_none_or(|wanted| found.fiscal_year == wanted))
        };
        let years: BTreeSet<i64> = records.iter().filter_map(|record| Some(record.contradiction.as_ref()?.fiscal_year)).collect();
        let found = records.into_iter().find(is_wanted).and_then(Answer::new);
        let answer = found.ok_or_else(|| {
            let recorded: Vec<String> = years.iter().map(i64::to_string).collect();
            let (ticker, wanted, recorded) = (&company.ticker, fiscal_year.unwrap_or_default(), recorded.join(", "));
            let words = format!("no annual report of {ticker} for the fiscal year {wanted} is recorded; recorded are those for {recorded}");
            Problem::new(ErrorCode::NotFound, words).about("fiscalYear")
        })?;
        if company.is_simulated {
            reader.note("the company is one of the demo: its report and its awards are simulated".to_owned());
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CONTRADICTION, reason};

    /// Proves that an unknown ticker is answered with the nearest known one, if one is near.
    #[test]
    fn unknown_tickers() {
        assert!(unknown_ticker(" demoz").ends_with("recipients, did you mean \"DEMOA\"?"), "{}", unknown_ticker(" demoz"));
        assert!(unknown_ticker("QQQQQQQQQQ").ends_with("recipients"));
    }

    fn found() -> Contradiction {
        Contradiction {
            cik: "0999999901".into(),
            fiscal_year: 2024,
            period_end: "2024-09-30".into(),
            accession: "0999999901-24-000001".into(),
            file: "x_htm.xml".into(),
            revenue_cents: Some(5_000_000_000_001),
            government_cents: Some(3_000_000_000_000),
            member: "x:USGovernmentMember".into(),
            obligated_cents: Some(2_400_000_000_000),
            years: 3,
            government_sum_cents: Some(3_000_000_000_000),
            obligated_sum_cents: Some(2_400_000_000_000),
            ratio_percent: Some(80),
            verdict: verdict::CONSISTENT.into(),
            reasons: vec![reason::RATIO_IN_BAND.into()],
            ..Contradiction::default()
        }
    }

    fn shown(found: Contradiction) -> serde_json::Value {
        let record = Exclusion {
            kind: CONTRADICTION.into(),
            name: "EXAMPLE".into(),
            ticker: "DEMOA".into(),
            contradiction: Some(Box::new(found)),
            ..Exclusion::default()
        };
        serde_json::to_value(Answer::new(record).unwrap()).unwrap()
    }

    /// Proves that an answer has both numbers exactly, the ratio, the sources of both sides, and the sentence about differences after the constant.
    #[test]
    fn answers() {
        let answer = shown(found());
        let dollars = [&answer["revenue"], &answer["gov"]["value"], &answer["awards"]["obligations"]].map(|value| value.as_f64().unwrap());
        assert_eq!(dollars, [50_000_000_000.01, 30_000_000_000.0, 24_000_000_000.0]);
        assert_eq!((&answer["ratio"], &answer["ratioPrev"], &answer["verdict"]), (&json!(0.8), &json!(null), &json!("consistent")));
        assert_eq!(answer["gov"]["sourceUrl"], "https://www.sec.gov/Archives/edgar/data/999999901/099999990124000001/x_htm.xml");
        assert_eq!(answer["awards"]["query"]["recipientIds"], json!(["00000000-0000-0000-0000-000000000001-P"]));
        let disclaimer = answer["disclaimer"].as_str().unwrap();
        assert!(disclaimer.starts_with(DISCLAIMER) && disclaimer.contains("a difference is a lead, not proof"), "{disclaimer}");
        assert_eq!(answer["awards"]["obligationsDoD"], json!(null));
        let unread = shown(Contradiction { file: String::new(), ..found() });
        assert!(unread["gov"]["sourceUrl"].as_str().unwrap().ends_with("/0999999901-24-000001-index.htm"));
        assert!(Answer::new(Exclusion::default()).is_none());
    }

    /// Proves that the gaps that always exist are named, and which ones the data of a comparison adds.
    #[test]
    fn gaps_of_a_comparison() {
        let added = |found: Contradiction| -> Vec<&'static str> { gaps(&found).into_iter().skip(GAPS.len()).map(|gap| gap.kind).collect() };
        assert_eq!(gaps(&found()).len(), GAPS.len());
        assert_eq!(added(Contradiction { period_end: "2024-12-31".into(), ..found() }), ["FISCAL_YEAR"]);
        assert_eq!(added(Contradiction { share_millionths: Some(440_000), ..found() }), ["FROM_PERCENT"]);
        assert_eq!(added(Contradiction { member: "ba:GovernmentCustomersMember".into(), ..found() }), ["OTHER_GOVERNMENTS"]);
        assert_eq!([0, 1, 2, 3].map(|years| added(Contradiction { years, ..found() }).len()), [0, 1, 1, 0]);
        let from_share = shown(Contradiction { share_millionths: Some(440_000), ..found() });
        assert_eq!((&from_share["gov"]["share"], &from_share["gov"]["fromPercent"]), (&json!(0.44), &json!(true)));
    }
}
