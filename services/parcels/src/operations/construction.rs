//! The tool `construction_window_leads`, paid per call: permits for new construction and major improvements that were issued lately.

use crate::record::permit::{WINDOW_RULE, window_list};
use feed::places::{Ranked, Segment, Walk};
use jiff::ToSpan;
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
use super::permit_lead::{Medians, PREVIEW_WALK, PermitLead, PermitTerms, PermitsPage, RedactedLead, is_large};
use super::watchable_feed::Parcels;
use crate::record::Parcel;

/// The days in which a permit was issued, by default.
pub(super) const DAYS: i64 = 365;
/// The most days.
const DAYS_MAX: i64 = 730;
/// The name of the tool.
pub(super) const NAME: &str = "construction_window_leads";

/// What every preview says of its number, which is another one than that of the answer that is paid for.
const PREVIEW_NOTE: &str = "this preview counts the permits of this year and the last one, of any amount, whatever `days` and `minAmount` are; the answer \
    that is paid for has those that are asked for, and can be empty";

/// Arguments of the tool `construction_window_leads`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// Permits that were issued in the last so many days.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = DAYS_MAX))]
    pub days: i64,
    /// The least reported cost in dollars. With it, permits of unknown cost are left out.
    #[schemars(range(min = 0))]
    pub min_amount: Option<i64>,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

fn days_default() -> i64 {
    DAYS
}

/// Permits in their construction window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConstructionWindowLeads")]
pub struct Leads {
    /// What the page says about itself.
    #[serde(flatten)]
    pub page: PermitsPage,
    /// The permits, the latest issue first.
    pub leads: Vec<PermitLead>,
    /// The tier, the rule and the disclaimer.
    #[serde(flatten)]
    pub terms: PermitTerms,
}

impl Arguments {
    /// What `after` belongs to, next to the list.
    fn bound(&self) -> String {
        format!("days {} amount {:?}", self.days, self.min_amount)
    }

    async fn page(&self, filter: &Filter, reader: &Reader<Parcels>, limit: usize) -> Result<Ranked<Parcel>, Problem> {
        let list = window_list(cook::COUNTY, filter.township.as_deref());
        let today = reader.today();
        let part = Segment::newest_first(&(today.saturating_sub(self.days.days())..=today));
        let bound = self.bound();
        let selects = |record: &Parcel| is_shown(record) && is_large(record, self.min_amount);
        reader.ranked(Walk { list: &list, part, filter: &bound, limit, after: self.after.as_deref() }, Some(&selects)).await
    }
}

impl Read for Arguments {
    type Service = Parcels;
    type Answer = Leads;

    const FILTER: &'static [&'static str] = &["township"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: NAME,
            summary: "Fresh assessable construction permits of Cook County in the financing window, with the months that such projects take.",
            when: "Use it to find projects that need construction loans or builder's risk cover.",
            description: "New construction and major improvements that the assessor calls assessable, or the city new construction, that are not closed and whose \
                building has no higher assessed value since. `window` begins with the issue and has the median months to the first rise of that value \
                for the job code, or 24 where fewer than 30 projects are finished. A permit on several parcels has a row for each. Permits for which no \
                parcel is published are left out. Unpaid calls get the payment terms with a preview: the number of permits of this year and the \
                last one, of any amount, and 3 rows without PIN, day and amount.",
            list: "leads",
            surface: Surface::Tool,
            price: Price::PerCall { micros: PERMITS_MICROS, free_from: Tier::Pro },
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "days": 365, "limit": 10 }),
            aliases: &[("min_amount", "minAmount")],
            ..Definition::read()
        }
    }

    fn filter(&self, given: Filter) -> Result<Filter, Problem> {
        given.of_cook()
    }

    /// Rows show the year of issue only. The days and amounts that the caller gives would tell those of rows, and so would a count of the last days, as of one
    /// day and the next. So the preview has the permits of this year and the last one.
    async fn preview(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Option<Value>, Problem> {
        let list = window_list(cook::COUNTY, filter.township.as_deref());
        reader.check_after(&list, &self.bound(), self.after.as_deref())?;
        let this_year = reader.today().first_of_year();
        let part = Segment::newest_first(&(this_year.saturating_sub(1.day()).first_of_year()..=this_year.last_of_year()));
        let found = reader.ranked(Walk { list: &list, part, filter: "preview", limit: PREVIEW_WALK, after: None }, Some(&is_shown)).await?;
        reader.note(PREVIEW_NOTE.to_owned());
        Ok(Some(json!({ "total": found.total, "leads": RedactedLead::rows(&found.items) })))
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Parcels>) -> Result<Leads, Problem> {
        let limit = reader.limit();
        let medians = Medians::read(&reader.at).await?;
        medians.note(reader);
        let found = self.page(&filter, reader, limit).await?;
        let all_days = Segment::newest_first(&(reader.today().saturating_sub(DAYS_MAX.days())..=reader.today()));
        note_hidden(reader, "permits of any day and amount", &window_list(cook::COUNTY, filter.township.as_deref()), all_days).await?;
        Ok(Leads {
            page: PermitsPage::read(reader, &found).await?,
            leads: found.items.into_iter().map(|record| medians.lead(record)).collect(),
            terms: PermitTerms::new(reader, WINDOW_RULE),
        })
    }
}
