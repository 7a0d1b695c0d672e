//! The rows of the labs service: one lead per newly awarded grant to a laboratory.

pub mod lexicon;

use std::cmp::Ordering;

use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use schemas::details::{ChangeRecord, LinkDetails};
use schemas::news::{FUNDING_NEWS_DAYS, News};
use schemas::suppression::{Hides, PERSON, RECORD};
use schemas::views::accounts::Tier;
use schemas::views::records::{Place, Record, Redact, Term};

/// The days of the free window: today and the 13 days before.
pub const FREE_DAYS: i64 = 14;

/// A newly funded laboratory as a lead for suppliers: our reading of one award. `""` and empty lists mean unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Lead {
    /// Id of the lead: `nih:` and the funder's number of the award.
    pub id: String,
    /// The contact principal investigator.
    pub pi: String,
    /// The funded organisation.
    pub org: String,
    /// City of the organisation.
    pub city: String,
    /// State of the organisation, two letters.
    pub state: String,
    /// Amount of this fiscal year in whole dollars.
    pub amount: i64,
    /// Day of the notice of award, `YYYY-MM-DD`; the first day of the budget if the funder gives no notice date.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub notice_date: String,
    /// Project number: `1R01CA300001-01`.
    pub project_number: String,
    /// Title.
    pub title: String,
    /// Activity code: `R01`.
    pub activity_code: String,
    /// The likely category of purchases, a name of `/categories`.
    pub category: String,
    /// The phrases that decided the category; empty for `General laboratory`.
    pub category_evidence: Vec<Evidence>,
    /// The names of other categories with a score of 2 or more.
    pub other_categories: Vec<String>,
    /// `new_lab`, `new_project`, `instrument` or `unknown_pi`.
    pub signal: String,
    /// Why the lead has this signal.
    pub signal_evidence: String,
    /// When the money is likely to be spent.
    pub spend_window: SpendWindow,
    /// The amount in bands: `<100k`, `100k-250k`, `250k-500k`, `500k-1M`, `1M+`; the lower end belongs to a band.
    pub amount_band: String,
    /// URL of the award's page at the funder.
    pub url: String,
    /// Whether the funder took the award back, or amended it so that it is no lead any more.
    pub withdrawn: bool,
    /// True if fields are hidden on request; only then present.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppressed: bool,
}

/// A phrase that speaks for a category.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// The phrase as the lexicon contains it.
    pub phrase: String,
    /// The field of the award in which it occurs: `title`, `terms` or `summary`.
    pub field: String,
    /// How much it counts.
    pub weight: i64,
}

/// The days in which the money of an award is likely to be spent, first and last included, `YYYY-MM-DD`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SpendWindow {
    /// The first day: the later one of the notice of award and the start of the budget.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub from: String,
    /// The last day: the end of the budget.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub to: String,
    /// The last day of the peak, 90 days after the first. That spending peaks then is our assumption.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub peak_to: String,
}

/// A lead as callers without a paid key see it: the signal alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// The likely category of purchases.
    pub category: String,
    /// State of the organisation, two letters.
    pub state: String,
    /// Month of the notice of award, `YYYY-MM`.
    pub month: String,
    /// The amount in bands.
    pub amount_band: String,
}

impl ChangeRecord for Lead {
    type Details = LinkDetails;

    fn is_in_tables(&self) -> bool {
        self.is_listed()
    }

    /// By the day of the notice of award.
    fn news(&self) -> Option<News> {
        News::of_text(&self.notice_date, FUNDING_NEWS_DAYS)
    }
}

impl Record for Lead {
    const SEARCHED: &'static [&'static str] = &["org", "pi", "activity"];

    fn id(&self) -> &str {
        &self.id
    }

    fn is_listed(&self) -> bool {
        !self.withdrawn
    }

    fn terms(&self) -> Vec<Term> {
        let terms =
            [("category", &self.category), ("state", &self.state), ("org", &self.org), ("pi", &self.pi), ("activity", &self.activity_code)];
        terms.into_iter().filter_map(|(dimension, value)| Term::new(dimension, value)).collect()
    }

    fn places(&self) -> Vec<Place> {
        let (category, state) = (Some(self.category.as_str()), Some(self.state.as_str()));
        let lists = [list(None, None), list(category, None), list(None, state), list(category, state)];
        lists.into_iter().filter_map(|list| Place::newest_first(list, &self.notice_date)).collect()
    }
}

impl Redact for Lead {
    type Redacted = Sample;

    const WHOLE_FROM: Tier = Tier::Pro;
    const FREE_DAYS: i64 = FREE_DAYS;
    const IDS_ARE_PUBLIC: bool = true;

    /// A notice of a later day is free, too: its day is hidden, and readers would learn it if the lead came into view on it. Lists end at the day of the clock.
    fn is_free(&self, today: Date) -> bool {
        let first = today.saturating_sub((FREE_DAYS - 1).days());
        self.notice_date.parse::<Date>().is_ok_and(|day| day >= first)
    }

    fn redacted(&self) -> Sample {
        Sample {
            category: self.category.clone(),
            state: self.state.clone(),
            month: self.notice_date.chars().take("2026-11".len()).collect(),
            amount_band: self.amount_band.clone(),
        }
    }

    /// The newest month first.
    fn order(one: &Sample, other: &Sample) -> Ordering {
        other.month.cmp(&one.month)
    }
}

/// The name of the list of a category and a state; `None` for all.
#[must_use]
pub fn list(category: Option<&str>, state: Option<&str>) -> String {
    match (category, state) {
        (None, None) => "all".to_owned(),
        (Some(category), None) => format!("category/{category}"),
        (None, Some(state)) => format!("state/{state}"),
        (Some(category), Some(state)) => format!("category+state/{category}/{state}"),
    }
}

/// What is hidden of the lead of a suppressed person: the name alone.
const HIDES: &[Hides] = &[Hides { kind: &PERSON, field: "pi", hidden: &["pi"] }, Hides { kind: &RECORD, field: "id", hidden: &["pi"] }];

schemas::record_tables!("labs", places, hides: HIDES);

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use schemas::views::testing;

    fn lead() -> Lead {
        let text = |text: &str| text.to_owned();
        Lead {
            id: text("nih:11223344"),
            pi: text("Ada I Quill"),
            org: text("RIVERTON CHILDRENS HOSPITAL"),
            city: text("RIVERTON"),
            state: text("OH"),
            amount: 612_345,
            notice_date: text("2026-11-14"),
            project_number: text("1R01CA300001-01"),
            title: text("Single-cell RNA sequencing of papilloma"),
            activity_code: text("R01"),
            category: text("Sequencing and genomics"),
            category_evidence: vec![Evidence { phrase: text("single-cell"), field: text("title"), weight: 3 }],
            other_categories: vec![text("Computing")],
            signal: text("new_project"),
            signal_evidence: text("earlier core project R21CA290000"),
            spend_window: SpendWindow { from: text("2026-12-01"), to: text("2027-11-30"), peak_to: text("2027-03-01") },
            amount_band: text("500k-1M"),
            url: text("https://reporter.nih.gov/project-details/11223344"),
            withdrawn: true,
            suppressed: false,
        }
    }

    /// Proves that a change with a value in every field reads back as written.
    #[test]
    fn changes_read_back() {
        let record = lead();
        let before = Lead { withdrawn: false, ..record.clone() };
        testing::assert_change_reads_back("changes.labs", &record.id.clone(), before, record);
    }

    /// Proves that a lead is in the list of all, of its category, of its state and of both, and free until 13 days after its notice.
    #[test]
    fn lists_and_the_free_window() {
        let record = Lead { withdrawn: false, ..lead() };
        let lists: Vec<String> = record.places().into_iter().map(|place| place.list).collect();
        assert_eq!(lists, ["all", "category/Sequencing and genomics", "state/OH", "category+state/Sequencing and genomics/OH"]);
        let free: Vec<i8> = (1..=30).filter(|day| record.is_free(Date::constant(2026, 11, *day))).collect();
        assert_eq!(free, (1..=27).collect::<Vec<i8>>());
    }

    /// Proves that the redacted form of a lead contains no value of another field, no day, and no id.
    #[test]
    fn samples_hold_nothing_protected() {
        let record = lead();
        let sample = serde_json::to_value(record.redacted()).unwrap();
        let expected =
            serde_json::json!({ "category": "Sequencing and genomics", "state": "OH", "month": "2026-11", "amountBand": "500k-1M" });
        assert_eq!(sample, expected);
        let text = sample.to_string();
        for protected in
            [&record.id, &record.pi, &record.org, &record.city, &record.title, &record.notice_date, &record.project_number, &record.url]
        {
            assert!(!text.contains(protected.as_str()), "{protected}");
        }
        assert!(!text.contains("612345") && !text.contains("-14"));
    }

    /// Proves that a lead is late by the day of its notice of award.
    #[test]
    fn late_leads() {
        for (notice, is_late) in [("2026-07-26", true), ("2026-07-27", false), ("", false)] {
            let lead = Lead { notice_date: notice.into(), ..Lead::default() };
            assert_eq!(lead.is_backfill(&LinkDetails::default(), true, date(2026, 11, 24)), is_late, "{notice}");
        }
    }
}
