//! The tool `stalled_surety`, paid per call: large permits that are not closed long after their window.

use crate::record::Parcel;
use crate::record::permit::{LARGE_AMOUNT, STALLED_RULE, stalled_list};
use feed::places::{Ranked, Segment, Walk};
use jiff::civil::Date;
use operation::problem::Problem;
use operation::{Definition, Price, Surface};
use reads::read::{Read, Reader};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use texts::cook;

use super::PERMITS_MICROS;
use super::filter::Filter;
use super::hidden_records::{is_shown, note_hidden};
use super::permit_lead::{MONTHS_PAST, Medians, PREVIEW_WALK, PermitLead, PermitTerms, PermitsPage, RedactedLead, is_large, later};
use super::watchable_feed::Parcels;

/// What every row says about itself.
pub(crate) const INFERENCE: &str = "an inference from status and recency, not a verified work stoppage";
/// The least amount, by default.
pub(super) const MIN_AMOUNT: i64 = LARGE_AMOUNT;
/// The name of the tool.
pub(super) const NAME: &str = "stalled_surety";
/// The first day of issue that a list can have.
const FIRST_DAY: Date = Date::constant(1900, 1, 1);

/// What every preview says of its number, which is another one than that of the answer that is paid for.
const PREVIEW_NOTE: &str = "this preview counts the permits of at least 250,000 dollars, each as if it was issued on the last day of its year, whatever \
    `minAmount` is; the answer that is paid for goes by the day of issue and `minAmount`, so it can have more permits, fewer or none";

/// Arguments of the tool `stalled_surety`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// The least reported cost in dollars.
    #[serde(default = "min_amount_default")]
    #[schemars(range(min = 0))]
    pub min_amount: i64,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

fn min_amount_default() -> i64 {
    MIN_AMOUNT
}

/// A permit that is past its window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StalledPermit {
    /// The permit.
    #[serde(flatten)]
    pub permit: PermitLead,
    /// The day six months after its window ended.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub past_since: String,
    /// What the row is not.
    pub statement: &'static str,
}

/// Permits that are past their window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StalledPermits")]
pub struct Stalled {
    /// What the page says about itself.
    #[serde(flatten)]
    pub page: PermitsPage,
    /// The permits, the earliest issue first.
    pub leads: Vec<StalledPermit>,
    /// The tier, the rule and the disclaimer.
    #[serde(flatten)]
    pub terms: PermitTerms,
}

impl Arguments {
    /// The list that has the permits.
    fn list(&self, filter: &Filter) -> String {
        stalled_list(cook::COUNTY, filter.township.as_deref(), self.min_amount >= LARGE_AMOUNT)
    }

    /// What `after` belongs to, next to the list.
    fn bound(&self) -> String {
        format!("amount {}", self.min_amount)
    }

    async fn page(&self, filter: &Filter, medians: &Medians, reader: &Reader<Parcels>, limit: usize) -> Result<Ranked<Parcel>, Problem> {
        let list = self.list(filter);
        let today = reader.today();
        // No window is shorter, so later permits need not be read.
        let last = later(today, -(medians.months_min() + MONTHS_PAST));
        let part = Segment::soonest_first(&(FIRST_DAY..=last));
        let bound = self.bound();
        let selects = |record: &Parcel| {
            let is_past = record.permit.as_ref().is_some_and(|permit| medians.is_past(permit, today));
            is_shown(record) && is_large(record, Some(self.min_amount)) && is_past
        };
        reader.ranked(Walk { list: &list, part, filter: &bound, limit, after: self.after.as_deref() }, Some(&selects)).await
    }
}

/// The row of a permit that is past its window.
fn stalled(medians: &Medians, record: Parcel) -> StalledPermit {
    let permit = medians.lead(record);
    let issued: Option<Date> = permit.issued.parse().ok();
    let past_since = issued.map(|issued| later(issued, permit.window.months + MONTHS_PAST).to_string()).unwrap_or_default();
    StalledPermit { permit, past_since, statement: INFERENCE }
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = Stalled;

    const FILTER: &'static [&'static str] = &["township"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: NAME,
            summary: "Large assessable permits of Cook County that are not closed more than six months after their build window: an inference from status and \
                recency, not a verified work stoppage.",
            when: "Use it to find projects that may need a completing contractor or a look at a bond.",
            description: "Permits of at least `minAmount` dollars that the assessor calls assessable, or the city new construction, that are not closed, whose \
                building has no higher assessed value since, and whose window ended more than six months ago. The window begins with the issue and has \
                the median months to the first rise of that value for the job code, or 24 where fewer than 30 projects are finished. Every row says \
                that it is an inference. Unpaid calls get the payment terms with a preview: the number of permits of at least 250,000 dollars, \
                each as if it was issued at the end of its year, and 3 rows without PIN, day and amount.",
            list: "leads",
            surface: Surface::Tool,
            price: Price::PerCall { micros: PERMITS_MICROS, free_from: Tier::Pro },
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "minAmount": LARGE_AMOUNT, "limit": 10 }),
            aliases: &[("min_amount", "minAmount")],
            ..Definition::read()
        }
    }

    fn filter(&self, given: Filter) -> Result<Filter, Problem> {
        given.of_cook()
    }

    /// Rows show the year of issue only. The amount that the caller gives would tell those of rows, and so would a count of those that are past their window on
    /// one day and the next. So the preview has the large permits that would be past it if they were issued on the last day of their year.
    async fn preview(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Option<Value>, Problem> {
        reader.check_after(&self.list(&filter), &self.bound(), self.after.as_deref())?;
        let (today, medians) = (reader.today(), Medians::read(&reader.at).await?);
        let list = stalled_list(cook::COUNTY, filter.township.as_deref(), true);
        let last = later(today, -(medians.months_min() + MONTHS_PAST));
        let part = Segment::soonest_first(&(FIRST_DAY..=last.last_of_year()));
        let selects =
            |record: &Parcel| is_shown(record) && record.permit.as_ref().is_some_and(|permit| medians.is_past_by_year(permit, today));
        let walk = Walk { list: &list, part, filter: "preview", limit: PREVIEW_WALK, after: None };
        let found = reader.ranked(walk, Some(&selects)).await?;
        reader.note(PREVIEW_NOTE.to_owned());
        Ok(Some(json!({ "total": found.total, "leads": RedactedLead::rows(&found.items), "statement": INFERENCE })))
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Stalled, Problem> {
        let limit = reader.limit();
        let medians = Medians::read(&reader.at).await?;
        medians.note(reader);
        let found = self.page(&filter, &medians, reader, limit).await?;
        let all_days = Segment::soonest_first(&(FIRST_DAY..=reader.today()));
        let list = stalled_list(cook::COUNTY, filter.township.as_deref(), false);
        note_hidden(reader, "unfinished permits of any day and amount", &list, all_days).await?;
        Ok(Stalled {
            page: PermitsPage::read(reader, &found).await?,
            leads: found.items.into_iter().map(|record| stalled(&medians, record)).collect(),
            terms: PermitTerms::new(reader, STALLED_RULE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::permit::Permit;

    /// Proves that every row, also one without a day, says that it is an inference, and since when it is past its window.
    #[test]
    fn rows_say_that_they_are_inferences() {
        let medians = Medians::default();
        for (permit, past_since) in
            [(Some(Permit { issued: "2023-01-31".into(), ..Permit::default() }), "2025-07-31"), (Some(Permit::default()), ""), (None, "")]
        {
            let row = stalled(&medians, Parcel { permit: permit.map(Box::new), ..Parcel::default() });
            assert_eq!((&*row.past_since, row.statement), (past_since, INFERENCE));
        }
        assert_eq!(INFERENCE, "an inference from status and recency, not a verified work stoppage");
    }
}
