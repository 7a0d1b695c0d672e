//! `GET /v1/exclusion_check`: whether a party is on the index of exclusions.

use std::collections::HashSet;

use jiff::civil::Date;
use matching::company::{CompanyName, compare};
use schemars::JsonSchema;
use schemas::views::exclusions::{Exclusion, name_list, uei_list};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::{self, Filter, keys_of};
use super::findings::{Counted, hidden_note};
use super::followed::Exclusions;
use super::{DISCLAIMER, source_url};
use crate::common::read::{Read, Reader};
use feed::places::{Segment, Walk};
use operation::problem::Problem;
use operation::{Definition, Price};

/// The most exclusions that a key finds.
const MATCHES_MAX: usize = 50;
/// What a match by name says in addition.
const NAME_ALONE: &str = "matched by name alone: two parties can have one name, so verify the identity before acting";

/// Arguments of `exclusion_check`; one of them is required.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The whole name of a company or person. Legal forms, case, accents and signs do not matter.
    #[schemars(length(min = 2, max = 300))]
    pub entity: Option<String>,
    /// Unique entity id, 12 letters and digits. It goes before the name.
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
}

/// Whether a party is on the index.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExclusionCheck {
    /// Whether at least one active exclusion matches that is shown.
    pub on_index: bool,
    /// The active exclusions that match, the earliest active date first.
    pub matches: Vec<Matched>,
    /// How many more active exclusions match, and are hidden on request.
    pub hidden: usize,
    /// The last day for which the index is complete; empty before the first complete sync run.
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
    pub index_as_of: String,
    /// What the answer is not.
    pub disclaimer: &'static str,
}

/// An exclusion that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MatchedExclusion")]
pub struct Matched {
    /// Id of the exclusion.
    pub id: String,
    /// Name of the party.
    pub name: String,
    /// Unique entity id.
    pub uei: String,
    /// `Firm`, `Individual`, `Special Entity Designation`, `Vessel`, or empty.
    pub classification: String,
    /// How it matches: `uei` or `name_exact` (the same letters or words).
    #[serde(rename = "match")]
    #[schemars(extend("enum" = ["uei", "name_exact"]))]
    pub matched_by: &'static str,
    /// Why it matches.
    pub reason: String,
    /// The excluding agency, a short code.
    pub excluding_agency: String,
    /// Type of the exclusion.
    pub exclusion_type: String,
    /// Day since which it is active.
    #[schemars(with = "schemas::json_type::DayOrEmpty")]
    pub active_date: String,
    /// Day on which it ends, or `Indefinite`.
    pub termination_date: String,
    /// Where to verify it.
    pub source_url: String,
}

impl Matched {
    fn new(record: Exclusion, matched_by: &'static str, reason: String) -> Self {
        let source_url = source_url(if record.uei.is_empty() { &record.name } else { &record.uei });
        Self {
            id: record.id,
            name: record.name,
            uei: record.uei,
            classification: record.classification,
            matched_by,
            reason,
            excluding_agency: record.excluding_agency,
            exclusion_type: record.exclusion_type,
            active_date: record.active_date,
            termination_date: record.termination_date,
            source_url,
        }
    }
}

/// The exclusions of some lists that are active on a day, each once, the earliest first; also those that are hidden on request. Persons are left out if
/// `has_persons` is false. A note says if there are more.
pub(super) async fn of_lists(
    reader: &mut Reader<Exclusions>,
    lists: Vec<String>,
    day: Date,
    has_persons: bool,
) -> Result<Vec<Exclusion>, Problem> {
    let (mut found, mut seen, mut is_cut) = (Vec::new(), HashSet::new(), false);
    for list in lists {
        let part = Segment { buckets: 0..=0, ranks: 0..=0 };
        let page = reader.ranked(Walk { list: &list, part, filter: "", limit: MATCHES_MAX, after: None }, None).await?;
        is_cut |= page.next.is_some();
        found.extend(page.items.into_iter().filter(|record| seen.insert(record.id.clone())));
    }
    if is_cut {
        reader.note(format!("more than {MATCHES_MAX} exclusions match; some are left out"));
    }
    found.retain(|record| record.is_active_on(day) && (has_persons || !record.is_person()));
    found.sort_by_key(|record| (record.since().is_empty(), record.since().to_owned(), record.id.clone()));
    Ok(found)
}

impl Read for Arguments {
    type Service = Exclusions;
    type Answer = ExclusionCheck;

    fn definition() -> Definition {
        Definition {
            name: "exclusion_check",
            path: "/v1/exclusion_check",
            summary: "Whether a company or person is on the index of parties that are excluded from federal awards.",
            when: "Use it before a contract or subcontract, with the UEI if it is known.",
            description: "A UEI matches exactly. A company matches by its whole name without legal forms (`reason` says how); a person only by the whole \
                name, and no address is shown. A name that is spelled otherwise is not found. A match by name is a lead, not evidence: two parties can have one name.",
            price: Price::Free,
            example: json!({ "entity": "Sparrowpoint Analytics" }),
            ..Definition::read()
        }
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Exclusions>) -> Result<ExclusionCheck, Problem> {
        let day = reader.today();
        let (matches, hidden) = match (&self.uei, &self.entity) {
            (Some(text), _) => {
                let uei = filter::uei("uei", text)?;
                // Persons are found by their whole name only.
                let found = Counted::of(of_lists(reader, vec![uei_list(&uei)], day, false).await?);
                let matched = found.shown.into_iter().map(|record| Matched::new(record, "uei", "the same UEI".to_owned()));
                (matched.collect(), found.hidden)
            }
            (None, Some(text)) => by_name(reader, &filter::name("entity", text)?, day).await?,
            (None, None) => return Err(Problem::parameter("entity", "`entity` or `uei` is required: who is checked")),
        };
        if matches.iter().any(|one: &Matched| one.matched_by != "uei") {
            reader.note(NAME_ALONE.to_owned());
        }
        reader.note(hidden_note("exclusions", hidden));
        let index_as_of = reader.completeness().await?.through_date;
        if index_as_of.is_empty() {
            reader.note("the list of exclusions has not been read completely yet, so that a party can be missing".to_owned());
        }
        Ok(ExclusionCheck { on_index: !matches.is_empty(), matches, hidden, index_as_of, disclaimer: DISCLAIMER })
    }
}

/// The exclusions whose name matches, and how many more are hidden.
async fn by_name(reader: &mut Reader<Exclusions>, name: &str, day: Date) -> Result<(Vec<Matched>, usize), Problem> {
    let found = Counted::of(of_lists(reader, keys_of(name).iter().map(|key| name_list(key)).collect(), day, true).await?);
    let company = CompanyName::new(name);
    let matched = found.shown.into_iter().map(|record| {
        let reason = if record.is_person() {
            "the same whole name".to_owned()
        } else {
            let compared = company.as_ref().zip(CompanyName::new(&record.name)).and_then(|(one, other)| compare(one, &other));
            compared.map(|found| found.to_string()).unwrap_or_default()
        };
        Matched::new(record, "name_exact", reason)
    });
    Ok((matched.collect(), found.hidden))
}
