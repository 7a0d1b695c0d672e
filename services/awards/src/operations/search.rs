//! `GET /v1/search_awards`: contract awards, from USAspending as it is now.

use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use schemas::views::awards::Award;
use schemas::views::records::normal;
use serde::{Deserialize, Serialize};
use serde_json::json;
use upstreams::live::{AwardAgency, AwardOrder, Question};

use super::filter::Filter;
use super::records::ShownAward;
use super::watchable_feed::Awards;
use feed::filter::{Criteria, Element, Filter as _, TermQuery};
use feed::position::parse_day;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Extent, Read, Reader, Search};

/// The name of the upstream in notes.
pub(crate) const USASPENDING: &str = "USAspending";
/// The most names of agencies that one search asks for.
const AGENCIES_MAX: usize = 20;
/// How many days ago a search starts by default.
const DAYS_DEFAULT: i64 = 30;

/// Arguments of `search_awards`, besides those of the filter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The first day of an action, YYYY-MM-DD, inclusive. By default 30 days ago.
    pub start: Option<String>,
}

/// The awards that match.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct FoundAwards {
    /// Awards, the last modified first.
    pub awards: Vec<ShownAward>,
    /// How many awards are in this answer.
    pub count: usize,
    /// The first day of an action that was searched.
    pub start: String,
    /// Which part of all awards these are.
    #[serde(flatten)]
    pub extent: Extent,
}

impl Read for Arguments {
    type Service = Awards;
    type Answer = FoundAwards;

    const FILTER: &'static [&'static str] = &["naics", "agency"];
    const LIMIT: Option<usize> = Some(50);
    const HAS_PAGES: bool = true;

    fn definition() -> Definition {
        Definition {
            name: "search_awards",
            path: "/v1/search_awards",
            summary: "Searches USAspending now: contract awards by industry code, agency and day.",
            when: "Use it to find contracts, also ones that did not change lately.",
            description: "The contracts modified last come first. If there are more than `limit`, `truncated` is true, and `next` continues as `after`. \
                USAspending filters by whole names of agencies: `agency` is looked up among the names recorded here, and the note lists those that were \
                asked for. Fields that its search does not have are those recorded here. Answers are cached for five minutes. If USAspending does not \
                answer in time, `live` is false, the note says why, and the answer holds what is recorded here. With `asOf` the answer always holds \
                what was recorded at that time.",
            list: "awards",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid, ErrorCode::Unavailable],
            example: json!({ "naics": "54", "limit": 5 }),
            ..Definition::read()
        }
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Awards>) -> Result<FoundAwards, Problem> {
        let limit = reader.limit();
        let today = reader.today();
        let first = match self.start.as_deref() {
            Some(text) => parse_day(text).filter(|start| *start <= today).ok_or_else(|| {
                Problem::parameter("start", format!("{text:?} is neither a date YYYY-MM-DD nor an RFC 3339 time, up to today"))
            })?,
            None => today.saturating_sub(DAYS_DEFAULT.days()),
        };
        let start = first.to_string();
        let agencies = match filter.agency.as_deref() {
            Some(part) => agencies(part, reader).await?,
            None => Vec::new(),
        };
        let live_from = reader.live_from(first, today);
        let question = question(filter.naics.clone(), String::new(), agencies, (live_from, today), AwardOrder::Newest);
        let of_agency = Filter { agency: filter.agency.clone(), ..Filter::default() };
        let found = reader
            .search(Search {
                upstream: USASPENDING,
                question,
                is_wanted: &|award| of_agency.takes(award),
                limit,
                recorded: filter.criteria().and(|change| change.record.last_day() >= start.as_str()),
                order: |a, b| (b.last_day(), &a.id).cmp(&(a.last_day(), &b.id)),
            })
            .await?;
        let awards: Vec<ShownAward> = found.records.into_iter().map(ShownAward::from).collect();
        let start = if found.extent.live { live_from.to_string() } else { start };
        Ok(FoundAwards { count: awards.len(), awards, start, extent: found.extent })
    }
}

/// The agencies of which USAspending is asked for a part of their name: those recorded here. None if too many match, or none is recorded; then its
/// answers are filtered here.
async fn agencies(part: &str, reader: &mut Reader<Awards>) -> Result<Vec<AwardAgency>, Problem> {
    let names = reader.names("agency", part, AGENCIES_MAX).await?;
    let mut agencies = BTreeSet::new();
    for name in names.into_iter().flatten() {
        // Names are indexed in lower case. An award has the name as the upstream writes it, and says whether it is a department.
        let of_name = Criteria::new(vec![TermQuery::Exact("agency", vec![name.clone()])], |change: &Element<Award>| {
            [&change.record.agency, &change.record.sub_agency].iter().any(|own| normal(own) == name)
        });
        for award in reader.newest(of_name, Seq(0), 1).await?.changes.into_iter().map(|change| change.record) {
            for (own, is_within_department) in [(award.agency, false), (award.sub_agency, true)] {
                if normal(&own) == name {
                    agencies.insert(AwardAgency { is_within_department, name: own });
                }
            }
        }
    }
    if reader.is_current() && !agencies.is_empty() {
        let names: BTreeSet<&str> = agencies.iter().map(|agency| agency.name.as_str()).collect();
        reader.note(format!("{USASPENDING} was asked for {}", names.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Ok(agencies.into_iter().collect())
}

/// A search at the upstream, between two days.
pub(crate) fn question(
    naics: Vec<String>,
    recipient: String,
    agencies: Vec<AwardAgency>,
    (start, end): (Date, Date),
    order: AwardOrder,
) -> Question {
    Question::Awards { naics, recipient, agencies, start, end, order, page: String::new() }
}

#[cfg(test)]
mod tests {
    use feed::testing::{HOUR_MS, START_MS, World, call};
    use reads::read::pages::Collected;
    use schemas::facts::FactData;
    use schemas::facts::awards::AwardFact;
    use schemas::views::accounts::Tier;

    use super::*;

    /// Proves that of what an upstream shows, a caller without a key gets the records of the last days, today included, and no total; and that a caller
    /// with a key gets all.
    #[tokio::test]
    async fn live_records_have_the_free_window() {
        let world = World::new().await;
        let ctx = world.context(START_MS + 30 * 24 * HOUR_MS);
        let fact =
            |signed: &str| FactData::Award(Box::new(AwardFact { award_id: "A".into(), signed: signed.into(), ..AwardFact::default() }));
        let days = ["2026-06-01", "2026-11-24", "2026-11-25", "2026-12-01", ""];
        for (tier, key_id, shown, total, first) in [
            (Tier::Anonymous, "", &["2026-11-25", "2026-12-01"][..], None, "2026-11-25"),
            (Tier::Free, "key_test", &days[..], Some(5), "2026-06-01"),
        ] {
            let mut call = call(&ctx);
            (call.caller.tier, call.caller.key_id) = (tier, key_id.to_owned());
            let reader = Reader::<Awards>::as_of(call, None).await.unwrap();
            let seen: Vec<&str> = days.into_iter().filter(|day| reader.record_of(&fact(day)).is_some()).collect();
            let mut collected = Collected::nothing();
            collected.total = Some(5);
            reader.hide_total(&mut collected);
            assert_eq!((seen.as_slice(), collected.total), (shown, total), "{tier:?}");
            assert_eq!(reader.live_from("2026-06-01".parse().unwrap(), "2026-12-01".parse().unwrap()).to_string(), first, "{tier:?}");
        }
    }
}
