//! `GET /v1/exclusion_check`: whether a party is on the index of exclusions.

use std::collections::BTreeSet;

use crate::record::{Exclusion, name_list, near_list, uei_list};
use futures_util::future::try_join_all;
use jiff::civil::Date;
use matching::company::{CompanyName, Grade, NameMatch, compare};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::{self, Filter, keys_of};
use super::findings::{Counted, MATCHES_MAX, earliest, of_lists, whole_list};
use super::watchable_feed::Exclusions;
use super::{DISCLAIMER, source_url};
use crate::rules::ExclusionsRules;
use feed::RecordFeed;
use feed::derived_lists::Derived;
use feed::places::{Total, Walk};
use operation::problem::Problem;
use operation::{Definition, Price};
use reads::read::{Read, Reader, hidden_note};

/// The match by a name of the same letters or words.
const NAME_EXACT: &str = "name_exact";
/// The match by a name that is spelled a little differently.
const NAME_STRONG: &str = "name_strong";
/// The most exclusions of a list of near names that are compared.
const NEAR_MAX: usize = 200;
/// What a match by name says in addition.
const NAME_ALONE: &str = "matched by name alone: two parties can have one name, so verify the identity before acting";

/// Arguments of `exclusion_check`; one of them is required.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The whole name of a company or person. Legal forms, case, accents and signs do not matter; of a company neither does a small error in a long word.
    #[schemars(length(min = 2, max = 300))]
    pub entity: Option<String>,
    /// Unique entity id, 12 letters and digits. It takes precedence over the name.
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
}

/// Whether a party is on the index.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExclusionCheck {
    /// Whether an active exclusion matches. Null if those that match are all hidden on request: `hidden` says how many, and no answer says of whom they are.
    pub on_index: Option<bool>,
    /// The active exclusions that match: by the UEI or the exact name the earliest active date first, then those whose name is spelled otherwise.
    pub matches: Vec<Matched>,
    /// How many more active exclusions match, and are hidden on request.
    pub hidden: usize,
    /// The last day for which the index is complete; empty before the first complete sync run.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
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
    /// How it matches: `uei`, `name_exact` (the same letters or words) or `name_strong` (as many words, each within a few edits of its partner).
    #[serde(rename = "match")]
    #[schemars(extend("enum" = ["uei", NAME_EXACT, NAME_STRONG]))]
    pub matched_by: &'static str,
    /// Why it matches.
    pub reason: String,
    /// The excluding agency, a short code.
    pub excluding_agency: String,
    /// Type of the exclusion.
    pub exclusion_type: String,
    /// Day since which it is active.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
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
                name, and no address is shown. `name_strong` is a name of a company with as many words, each equal or within one edit (5 to 8 letters) or two (9 or \
                more). A match by name is a lead, not evidence: two parties can have one name.",
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
        Ok(ExclusionCheck { on_index: on_index(matches.len(), hidden), matches, hidden, index_as_of, disclaimer: DISCLAIMER })
    }
}

/// Whether a party is on the index by the numbers of exclusions that match and are shown, and of those that are hidden. Of hidden ones alone the answer draws
/// no conclusion: neither that the party is on the index, which is hidden on request, nor that it is not.
fn on_index(shown: usize, hidden: usize) -> Option<bool> {
    (shown > 0 || hidden == 0).then_some(shown > 0)
}

/// The exclusions whose name matches, and how many more are hidden.
async fn by_name(reader: &mut Reader<Exclusions>, name: &str, day: Date) -> Result<(Vec<Matched>, usize), Problem> {
    let found = Counted::of(of_lists(reader, keys_of(name).iter().map(|key| name_list(key)).collect(), day, true).await?);
    let company = CompanyName::new(name);
    let near = match &company {
        Some(company) => near_names(reader, company, day).await?,
        None => Vec::new(),
    };
    let exact = found.shown.into_iter().map(|record| {
        let reason = if record.is_person() {
            "the same whole name".to_owned()
        } else {
            company.as_ref().and_then(|company| compared(company, &record)).map(|found| found.to_string()).unwrap_or_default()
        };
        Matched::new(record, NAME_EXACT, reason)
    });
    Ok((exact.chain(near).collect(), found.hidden))
}

fn compared(company: &CompanyName, record: &Exclusion) -> Option<NameMatch> {
    compare(company, &CompanyName::new(&record.name)?)
}

/// An exclusion with its name as it is compared.
struct Named {
    company: Option<CompanyName>,
    record: Exclusion,
}

impl Derived<Exclusion> for Named {
    fn of(record: Exclusion) -> Self {
        Self { company: CompanyName::new(&record.name), record }
    }

    fn bytes(&self) -> u64 {
        let record = &self.record;
        let lists: usize = record.other_names.iter().chain(&record.name_keys).map(|text| size_of::<String>() + text.len()).sum();
        // A name is kept once more in the words that are compared.
        (size_of::<Self>() + record.id.len() + 3 * record.name.len() + record.program.len() + record.comments.len() + lists) as u64
    }
}

/// The active exclusions of companies whose name is spelled a little differently, the earliest first.
async fn near_names(reader: &mut Reader<Exclusions>, company: &CompanyName, day: Date) -> Result<Vec<Matched>, Problem> {
    let (mut ids, mut is_cut) = (BTreeSet::new(), false);
    for group in company.near_lists() {
        let lists: Vec<String> = group.iter().map(|list| near_list(list)).collect();
        let walks = lists.iter().map(|list| Walk { list, part: whole_list(), filter: "", limit: NEAR_MAX, after: None });
        let (feed, ctx, at) = (&ExclusionsRules::FEED, reader.context(), &reader.at);
        let pages = try_join_all(walks.map(|walk| feed.ranked_ids::<Exclusion>(ctx, at, walk, Total::Omitted))).await?;
        is_cut = pages.iter().any(|page| page.next.is_some());
        if !is_cut {
            // The lists of one word hold all near names.
            ids.clear();
        }
        ids.extend(pages.into_iter().flat_map(|page| page.items));
        if !is_cut {
            break;
        }
    }
    if is_cut {
        reader.note("so many exclusions have similar names that not all were compared; give the UEI".to_owned());
    }
    let ids: Vec<String> = ids.into_iter().collect();
    let named = ExclusionsRules::FEED.derived::<Exclusion, Named>(reader.context(), &reader.at, &ids).await?;
    Ok(strong_matches(company, named.iter().map(|named| &**named), day))
}

/// The matches among records, without those whose name is exactly the same. Hidden records have no name.
fn strong_matches<'a>(company: &CompanyName, records: impl Iterator<Item = &'a Named>, day: Date) -> Vec<Matched> {
    let strong = |named: &'a Named| {
        let found = compare(company, named.company.as_ref()?).filter(|found| found.grade == Grade::Strong)?;
        let record = &named.record;
        (record.is_active_on(day) && !record.is_person()).then_some((record, found))
    };
    let mut found: Vec<(&Exclusion, NameMatch)> = records.filter_map(strong).collect();
    found.sort_by_key(|(record, _)| earliest(record));
    found.truncate(MATCHES_MAX);
    found.into_iter().map(|(record, found)| Matched::new(record.clone(), NAME_STRONG, found.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use schemas::facts::exclusions::classification::{FIRM, INDIVIDUAL};

    use super::*;

    fn record(name: &str, active: &str) -> Exclusion {
        Exclusion {
            id: format!("sam:{name}"),
            name: name.into(),
            classification: FIRM.into(),
            active_date: active.into(),
            termination_date: "Indefinite".into(),
            ..Exclusion::default()
        }
    }

    /// Proves that an answer says of no party that it is not on the index while what matches is hidden, and that the field is null then.
    #[test]
    fn hidden_exclusions_decide_nothing() {
        for (shown, hidden, expected) in [(0, 0, json!(false)), (1, 0, json!(true)), (2, 3, json!(true)), (0, 1, json!(null))] {
            let answer = ExclusionCheck {
                on_index: on_index(shown, hidden),
                matches: Vec::new(),
                hidden,
                index_as_of: String::new(),
                disclaimer: DISCLAIMER,
            };
            assert_eq!(json!(answer)["onIndex"], expected, "{shown} shown, {hidden} hidden");
        }
    }

    /// Proves which names match strongly: one edit in a word of 5 letters, two in one of 9, none in a shorter one; and that names that match exactly, persons,
    /// hidden records and exclusions that are not active are left out.
    #[test]
    fn names_that_are_spelled_otherwise() {
        let day = Date::constant(2026, 11, 20);
        let answer_for = |name: &str, records: Vec<Exclusion>| {
            let named: Vec<Named> = records.into_iter().map(Named::of).collect();
            let found = strong_matches(&CompanyName::new(name).unwrap(), named.iter(), day);
            found.into_iter().map(|found| format!("{} {}: {}", found.matched_by, found.name, found.reason)).collect::<Vec<_>>()
        };
        let (name, late) = (record("CRISTALORD LIMITED", "2026-02-01"), record("CRYSTALLORD INC", "2026-03-01"));
        let found = answer_for("Crystalord Ltd", vec![late, name.clone(), record("CRYSTALORD LLC", "2026-01-01")]);
        let expected = [
            "name_strong CRISTALORD LIMITED: similar words: CRYSTALORD and CRISTALORD (1 edit)",
            "name_strong CRYSTALLORD INC: similar words: CRYSTALORD and CRYSTALLORD (1 edit)",
        ];
        assert_eq!(found, expected);
        for other in [
            Exclusion { classification: INDIVIDUAL.into(), ..name.clone() },
            Exclusion { suppressed: true, name: String::new(), ..name.clone() },
            Exclusion { withdrawn: true, ..name.clone() },
            Exclusion { termination_date: "2026-11-19".into(), ..name },
            record("CRISTALORD SHIPPING LTD", "2026-02-01"),
        ] {
            assert_eq!(answer_for("Crystalord Ltd", vec![other.clone()]), [""; 0], "{other:?}");
        }
        for (one, other) in [("LXC Aviation", "LAU Aviation"), ("BAE Industries", "BWI Industries"), ("Acme", "Acne")] {
            assert_eq!(answer_for(one, vec![record(other, "2026-02-01")]), [""; 0], "{one} {other}");
        }
    }
}
