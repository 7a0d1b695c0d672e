//! `GET /v1/feed`: whole leads, for a paid key or a payment.

use std::ops::RangeInclusive;

use crate::record::{FREE_DAYS, HOT_DAYS, Lead, TIERS, WARM_DAYS, list};
use feed::filter::Filter as _;
use feed::places::{Ranked, Segment, Selects, Walk};
use jiff::ToSpan;
use jiff::civil::Date;
use matching::mandates;
use operation::known_values::known_value;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DISCLAIMER;
use super::counts::Counts;
use super::filter::Filter;
use super::hidden_leads;
use super::pulse::days_default;
use super::sample::Row;
use super::sources;
use super::watchable_feed::Coverage;
use reads::read::{Completeness, FreeRows, LeadsPage, Read, Reader};

/// The price of a call of the lead feed in millionths of a US dollar.
const FEED_MICROS: u64 = 20_000;
/// How many rows a preview shows.
const PREVIEW_ROWS: usize = 3;
/// Triggers of later days are shown up to so many days ahead, which is as far as leads are decided.
const AHEAD_DAYS: i64 = 366;

/// Arguments of `coverage_feed`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// How many days back, today included: leads with a trigger on one of these days or on a later one.
    #[serde(default = "days_default")]
    #[schemars(range(min = 1, max = 90))]
    pub days: i64,
    /// Only leads of a tier: `hot` (trigger under 7 days ago, or later than today), `warm` (under 30) or `cool`.
    #[schemars(length(min = 1, max = 10))]
    pub tier: Option<String>,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

/// A lead on a day.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ShownCoverageLead")]
pub struct ShownLead {
    /// The lead.
    #[serde(flatten)]
    pub lead: Lead,
    /// The tier by the age of the trigger on the day of the answer: `hot`, `warm` or `cool`.
    pub tier: &'static str,
}

/// A page of leads.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CoverageLeads")]
pub struct Leads {
    /// What the page says about itself.
    #[serde(flatten)]
    pub page: LeadsPage,
    /// The leads, newest trigger first, ties by id.
    pub leads: Vec<ShownLead>,
    /// How complete the data is.
    #[serde(flatten)]
    pub completeness: Completeness,
    /// The rules: `mandates/` and the version of the data file, which `/docs` shows.
    pub rule: String,
    /// What leads are not.
    pub disclaimer: &'static str,
}

/// The free preview of a page.
#[derive(Serialize)]
struct Preview {
    leads: Vec<Row>,
    total: Option<u64>,
    counts: Counts,
}

/// What an answer says of leads that were not compared with others of their name; `None` if there are none.
fn not_compared_note(leads: &[Lead]) -> Option<String> {
    let count = leads.iter().filter(|lead| !lead.is_compared()).count();
    (count > 0).then(|| format!("leads whose name has too many leads to compare all, so that two can be about one business: {count}"))
}

/// The fields of a filter that no list has.
fn rest_of(filter: &Filter) -> Filter {
    Filter { state: None, coverage_line: None, ..filter.clone() }
}

impl Arguments {
    /// The days of the triggers; `None` if there are none.
    fn days(&self, today: Date) -> Result<Option<RangeInclusive<Date>>, Problem> {
        let ago = |days: i64| today.saturating_sub(days.days());
        let (mut first, mut last) = (ago(self.days - 1), today.saturating_add(AHEAD_DAYS.days()));
        if let Some(given) = &self.tier {
            match known_value("tier", given, &TIERS)? {
                "hot" => first = first.max(ago(HOT_DAYS - 1)),
                "warm" => (first, last) = (first.max(ago(WARM_DAYS - 1)), ago(HOT_DAYS)),
                _ => last = ago(WARM_DAYS),
            }
        }
        Ok((first <= last).then_some(first..=last))
    }

    /// What an answer says if none of the days that are asked for is of the tier that is asked for.
    fn no_day_note(&self, today: Date) -> Result<Option<String>, Problem> {
        let Some(tier) = &self.tier else { return Ok(None) };
        let is_none = self.days(today)?.is_none();
        Ok(is_none.then(|| {
            format!("no day of the last {} is {}, so there are no leads; ask for more `days`", self.days, tier.trim().to_lowercase())
        }))
    }

    /// What `after` belongs to, next to the list. `rest` are the fields of the filter that no list has.
    fn bound(&self, rest: &Filter) -> String {
        format!("{}/{:?}/{}", self.days, self.tier, feed::filter::Filter::canonical(rest))
    }

    /// The page that the arguments ask for, without leads that are hidden on request, which `total` does not count either. For callers below the paid tier
    /// it is the first one, in an order that follows from what they see.
    async fn page(&self, filter: &Filter, limit: usize, reader: &Reader<Coverage>) -> Result<Ranked<Lead>, Problem> {
        let Some(days) = self.days(reader.today())? else { return Ok(Ranked { items: Vec::new(), total: Some(0), next: None }) };
        let list = list(filter.state.as_deref(), filter.coverage_line.as_deref());
        let rest = rest_of(filter);
        let bound = self.bound(&rest);
        // The id of a lead has the number of its business.
        let is_wanted = |lead: &Lead| !lead.suppressed && rest.takes(lead);
        let may_be_hidden = reader.at.view.rendition() != 0;
        // Without a condition only the records of the page are read.
        let selects: Option<Selects<'_, Lead>> = if rest == Filter::default() && !may_be_hidden { None } else { Some(&is_wanted) };
        let part = Segment::newest_first(&days);
        if reader.is_limited() {
            let FreeRows { records: items, total } = reader.free_rows((&list, part), limit, selects).await?;
            return Ok(Ranked { items, total, next: None });
        }
        reader.ranked(Walk { list: &list, part, filter: &bound, limit, after: self.after.as_deref() }, selects).await
    }
}

impl Read for Arguments {
    type Service = Coverage;
    type Answer = Leads;

    const FILTER: &'static [&'static str] = &["state", "coverageLine", "source", "basis", "trigger"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "coverage_feed",
            path: "/v1/feed",
            summary: "Businesses that have just come to need a line of insurance, with the rule and the facts, newest trigger first.",
            when: "Use it to find businesses to which insurance can be offered, and why.",
            description: "All filters must fit. `mandate` names the rule with its citation, and `evidence` the facts that it read and the record; the \
                data file of rules is at `/docs`. `basis` says how firmly the line follows: `MANDATED` is only said where a federal or state rule and a fact \
                of a registration demand it; a word in a name gives `LIKELY` at most. A business in several sources is one lead, and `joined` says \
                why. Nothing here says that a business has no insurance. Triggers that were taken back are left out; `changes` has them. Unpaid calls \
                get the payment terms with a preview of the last 7 days: 3 rows without the businesses, `total` and the counts. Page with `after`.",
            price: Price::PerCall { micros: FEED_MICROS, free_from: SAVED_ITEMS_MIN_TIER },
            list: "leads",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "state": "CO", "days": 90, "limit": 10 }),
            aliases: &[("coverage_line", "coverageLine")],
            ..Definition::read()
        }
    }

    /// Every filter is by a field that the redacted form shows. No more than the free window is shown and counted.
    async fn preview(self, filter: Filter, reader: &mut Reader<Coverage>) -> Result<Option<Value>, Problem> {
        let list = list(filter.state.as_deref(), filter.coverage_line.as_deref());
        reader.check_after(&list, &self.bound(&rest_of(&filter)), self.after.as_deref())?;
        let is_longer = self.days > FREE_DAYS;
        reader.note(is_longer.then(|| format!("this preview is of the last {FREE_DAYS} days; the answer that is paid for has all `days`")));
        let free = Self { days: self.days.min(FREE_DAYS), after: None, ..self };
        let page = free.page(&filter, PREVIEW_ROWS, reader).await?;
        let counts = Counts::read(&reader.at, &reader.last_days(free.days)).await?;
        let today = reader.today();
        let leads = page.items.iter().map(|lead| Row::new(lead, today)).collect();
        Ok(serde_json::to_value(Preview { leads, total: page.total, counts }).ok())
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Coverage>) -> Result<Leads, Problem> {
        let limit = reader.limit();
        let Ranked { items, total, next } = self.page(&filter, limit, reader).await?;
        let no_day = self.no_day_note(reader.today())?;
        reader.note(no_day);
        let hidden = hidden_leads::left_out(reader);
        reader.note(hidden);
        reader.note(not_compared_note(&items));
        reader.note_empty_page(items.len(), next.as_deref());
        let note = sources::late_note(&reader.at).await?;
        reader.note(note);
        let today = reader.today();
        let shown = |lead: Lead| ShownLead { tier: lead.tier(today), lead };
        Ok(Leads {
            page: reader.leads_page(items.len(), total, next).await?,
            leads: items.into_iter().map(shown).collect(),
            completeness: reader.completeness().await?,
            rule: format!("mandates/{}", mandates::version()),
            disclaimer: DISCLAIMER,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use feed::testing::{HOUR_MS, START_MS, World, call, text, value};
    use operation::context::Context;
    use operation::{Call, Caller};
    use reads::read::operation;
    use schemas::key;
    use schemas::suppression::{COMPANY, KeyKind, RECORD, SuppressionRow};
    use schemas::tables::Write;
    use schemas::views::accounts::{SUPPRESSIONS, Tier, VIEW as ACCOUNTS};

    use super::*;
    use crate::operations::{pulse, sample};
    use crate::record::{Evidence, NOT_COMPARED, TABLES};

    /// A lead of a carrier with a number and a line, triggered on a day of November.
    fn lead(dot: u32, day: u8, basis: &str) -> Lead {
        let date = format!("2026-11-{day:02}");
        Lead {
            id: format!("fmcsa:{dot}:CARGO:new_carrier:{date}"),
            business: format!("CARRIER {dot} LLC"),
            state: "CO".into(),
            trigger: "new_carrier".into(),
            trigger_date: date,
            source: "fmcsa".into(),
            sources: vec!["fmcsa".into()],
            coverage_line: "CARGO".into(),
            basis: basis.into(),
            ..Lead::default()
        }
    }

    /// Hides names or records on request.
    async fn hide(context: &Context, keys: &[(&KeyKind, String)]) {
        let row = Bytes::from(serde_json::to_vec(&SuppressionRow::default()).unwrap());
        let key = |(kind, key): &(&KeyKind, String)| key![kind.name, kind.normalize(key).unwrap()];
        let writes = keys.iter().map(|hidden| Write::put(&SUPPRESSIONS, key(hidden), row.clone())).collect();
        let accounts = context.store.live(&ACCOUNTS).await.unwrap();
        let mut checkpoint = accounts.checkpoint().await.unwrap();
        checkpoint.seq = checkpoint.seq.next();
        accounts.commit(writes, &checkpoint).await.unwrap();
    }

    /// The feed for a caller with a key of tier pro.
    async fn paid(context: &Arc<Context>, arguments: Value) -> Value {
        let free = call(context);
        let paying = Call { caller: Caller { tier: Tier::Pro, ..free.caller.clone() }, ..free };
        serde_json::from_str(&text((operation::<Arguments>().run)(paying, arguments).await.unwrap())).unwrap()
    }

    /// Proves that hidden leads are in no page and in no total, that every answer says the same of them whatever is asked, and that no `next` can be read.
    #[tokio::test]
    async fn hidden_leads_are_nowhere() {
        let world = World::new().await;
        let leads: Vec<Lead> = (0..6).map(|n| lead(4_312_340 + n, 10 + n as u8, if n % 2 == 0 { "LIKELY" } else { "MANDATED" })).collect();
        world.fill_records(&TABLES, &leads).await;
        let context = world.context(START_MS + 19 * 24 * HOUR_MS);
        let all = paid(&context, json!({ "days": 90 })).await;
        assert_eq!((&all["total"], all["note"].as_str().unwrap_or_default().contains("hidden")), (&json!(6), false), "{all}");
        // The second of the six, the fifth, and a name that no lead has.
        let hidden =
            [(&RECORD, format!("coverage/{}", leads[1].id)), (&COMPANY, leads[4].business.clone()), (&COMPANY, "Nobody LLC".to_owned())];
        hide(&context, &hidden).await;
        for (arguments, total) in [
            (json!({ "days": 90 }), 4),
            (json!({ "days": 90, "limit": 1 }), 4),
            (json!({ "days": 7 }), 1),
            (json!({ "days": 90, "state": "CO", "basis": "LIKELY" }), 2),
            (json!({ "days": 90, "basis": "MANDATED" }), 2),
            (json!({ "days": 90, "state": "NY" }), 0),
        ] {
            let (mut found, mut after) = (Vec::new(), Value::Null);
            loop {
                let mut arguments = arguments.clone();
                if !after.is_null() {
                    arguments["after"] = after;
                }
                let page = paid(&context, arguments.clone()).await;
                assert_eq!(page["total"], total, "{arguments}");
                let note = page["note"].as_str().unwrap();
                assert!(
                    note.contains("also those that no lead here has, that are hidden on request and left out: 3"),
                    "{arguments}: {note}"
                );
                found.extend(page["leads"].as_array().unwrap().iter().map(|lead| lead["id"].as_str().unwrap().to_owned()));
                after = page["next"].clone();
                if let Some(next) = after.as_str() {
                    let read = feed::cursor::read(&context.secrets, "coverage", next).unwrap_err();
                    assert_eq!(read.code, ErrorCode::CursorInvalid);
                }
                if after.is_null() {
                    break;
                }
            }
            assert_eq!(found.len(), total, "{arguments}: {found:?}");
            assert!(!found.contains(&leads[1].id) && !found.contains(&leads[4].id), "{found:?}");
        }
    }

    /// Proves that the counts say that they have hidden leads, how many names and leads are hidden, and nothing while none are.
    #[tokio::test]
    async fn counts_say_that_they_have_hidden_leads() {
        let world = World::new().await;
        let leads = [lead(4_312_340, 10, "LIKELY")];
        world.fill_records(&TABLES, &leads).await;
        let context = world.context(START_MS + 19 * 24 * HOUR_MS);
        let notes = async || {
            let pulse = value(&context, &operation::<pulse::Arguments>(), json!({ "days": 90 })).await;
            let sample = value(&context, &operation::<sample::Arguments>(), json!({})).await;
            [pulse, sample].map(|answer| answer["note"].as_str().unwrap_or_default().to_owned())
        };
        assert!(notes().await.iter().all(|note| !note.contains("hidden")));
        hide(&context, &[(&COMPANY, leads[0].business.clone()), (&COMPANY, "Nobody LLC".to_owned())]).await;
        for note in notes().await {
            assert!(note.contains("hidden on request") && note.contains("also those that no lead here has: 2"), "{note}");
        }
    }

    /// Proves that a page says how many of its leads were not compared with others of their name.
    #[test]
    fn leads_that_were_not_compared_are_said() {
        let lead_with =
            |field: &str| Lead { evidence: vec![Evidence { field: field.to_owned(), ..Evidence::default() }], ..Lead::default() };
        assert_eq!(not_compared_note(&[lead_with("classdef"), Lead::default()]), None);
        let note = not_compared_note(&[lead_with("classdef"), lead_with(NOT_COMPARED), lead_with(NOT_COMPARED)]).unwrap();
        assert!(note.ends_with("one business: 2"), "{note}");
    }

    /// Proves the days of each tier within the days that are asked for, and that a tier outside of them has none, which an answer says.
    #[test]
    fn days_of_tiers() {
        let today = Date::constant(2026, 11, 20);
        let range_of = |days, tier: Option<&str>| {
            let arguments = Arguments { days, tier: tier.map(str::to_owned), after: None };
            arguments.days(today).unwrap().map(|range| format!("{}..{}", range.start(), range.end()))
        };
        assert_eq!(range_of(7, None).as_deref(), Some("2026-11-14..2027-11-21"));
        assert_eq!(range_of(90, Some("HOT")).as_deref(), Some("2026-11-14..2027-11-21"));
        assert_eq!(range_of(3, Some("hot")).as_deref(), Some("2026-11-18..2027-11-21"));
        assert_eq!(range_of(90, Some("warm")).as_deref(), Some("2026-10-22..2026-11-13"));
        assert_eq!(range_of(90, Some("cool")).as_deref(), Some("2026-08-23..2026-10-21"));
        assert_eq!((range_of(7, Some("warm")), range_of(30, Some("cool"))), (None, None));
        let note = |days, tier: Option<&str>| Arguments { days, tier: tier.map(str::to_owned), after: None }.no_day_note(today).unwrap();
        assert_eq!(note(7, Some("WARM")).as_deref(), Some("no day of the last 7 is warm, so there are no leads; ask for more `days`"));
        assert_eq!((note(8, Some("warm")), note(1, Some("hot")), note(1, None)), (None, None, None));
        let wrong = Arguments { days: 7, tier: Some("tepid".to_owned()), after: None };
        assert_eq!(wrong.days(today).unwrap_err().parameter, "tier");
    }
}
