//! `GET /v1/scan`: all excluded entities with awards, for a paid key or a payment.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::record::{BY_CAGE, BY_UEI, Exclusion, hits_list};
use operation::known_values::known_value;
use operation::problem::Problem;
use operation::tiers::SAVED_ITEMS_MIN_TIER;
use operation::{Definition, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::artifact::{Entity, NO_SIGNAL, ShownExclusion, Summary};
use super::filter::Filter;
use super::findings::{Moment, cut_note, hits_of_all_days};
use super::scan_rows;
use super::watchable_feed::Exclusions;
use crate::rules::ExclusionsRules;
use feed::places::{Selects, Walk};
use fold::records::Rules;
use reads::read::{Read, Reader, hidden_note};

/// Arguments of `scan`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Only hits by this: `uei` or `cage`, in any case.
    #[serde(rename = "match")]
    #[schemars(length(min = 1, max = 10))]
    pub matched_by: Option<String>,
    /// Where to continue: the `next` of an earlier answer to the same query.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

/// The price of a page of the scan in millionths of a US dollar.
const SCAN_MICROS: u64 = 20_000;
/// How many rows a preview shows.
const PREVIEW_ROWS: usize = 3;

/// The free preview of a page.
#[derive(Serialize)]
struct Preview {
    total: Option<u64>,
    rows: Vec<ScanRow>,
}

/// A page of excluded entities.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ExclusionScan")]
pub struct Scan {
    /// The number of rows of this page.
    pub count: usize,
    /// How many hits match, over all pages, those without an active exclusion on this day included; null if they are more than 2,000.
    pub total: Option<u64>,
    /// Send it as `after` to get the next page; null on the last one.
    pub next: Option<String>,
    /// The rows, the newest active date first.
    pub rows: Vec<ScanRow>,
}

/// An excluded entity with awards.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScanRow {
    /// `EXCLUDED_WHILE_ACTIVE` or `EXCLUDED_NO_ACTIVE_AWARD`.
    pub signal: &'static str,
    /// The entity.
    pub entity: Entity,
    /// The earliest active exclusion of the entity.
    pub exclusion: Option<ShownExclusion>,
    /// Sums over its running awards.
    pub summary: Summary,
    /// `uei` or `cage`: by which exclusion and awards are of one entity.
    #[serde(rename = "match")]
    pub matched_by: &'static str,
    /// The call that shows the artifact of the entity.
    pub url: String,
}

impl Read for Arguments {
    type Service = Exclusions;
    type Answer = Scan;

    const FILTER: &'static [&'static str] = &["agency"];
    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "scan",
            path: "/v1/scan",
            surface: Surface::Route,
            summary: "All excluded entities that have federal awards, the newest exclusions first.",
            description: "Joined by UEI or CAGE code alone. A row has no list of awards and no hash; `url` is the call that shows them. Page with `after`; \
                a page can have fewer rows than `limit`. Unpaid calls get the payment terms with a preview: the first 3 rows, and `total`.",
            price: Price::PerCall { micros: SCAN_MICROS, free_from: SAVED_ITEMS_MIN_TIER },
            list: "rows",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "limit": 10 }),
            ..Definition::read()
        }
    }

    async fn preview(self, filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Option<Value>, Problem> {
        let bound = bound(&filter, self.known_match()?);
        reader.check_after(&hits_list(filter.agency.as_deref()), &bound, self.after.as_deref())?;
        let Scan { total, rows, .. } = Self { after: None, ..self }.page(filter, PREVIEW_ROWS, reader).await?;
        Ok(serde_json::to_value(Preview { total, rows }).ok())
    }

    async fn answer(self, filter: Filter, reader: &mut Reader<Exclusions>) -> Result<Scan, Problem> {
        let limit = reader.limit();
        self.page(filter, limit, reader).await
    }
}

/// Whether an exclusion of a hit that is active on some day can be one by UEI or CAGE code. Of those of a hit by UEI the ones by CAGE code alone can be
/// active.
fn can_match(hit: &Exclusion, by: &str) -> bool {
    hit.matched_by == by || (by == BY_CAGE && hit.exclusions.len() > 1)
}

/// Whether records decide which hits of a list are in a page: under `match`, or if any records are hidden on request, as a view's `rendition` says.
fn has_condition(matched_by: Option<&str>, rendition: u64) -> bool {
    matched_by.is_some() || rendition != 0
}

/// What `after` belongs to, next to the list.
fn bound(filter: &Filter, matched_by: Option<&str>) -> String {
    format!("{}/{}", filter.agency.as_deref().unwrap_or_default(), matched_by.unwrap_or_default())
}

impl Arguments {
    /// The argument `match`, as records write it.
    fn known_match(&self) -> Result<Option<&'static str>, Problem> {
        self.matched_by.as_deref().map(|text| known_value("match", text, &[BY_UEI, BY_CAGE])).transpose()
    }

    /// The page that the arguments ask for.
    async fn page(self, filter: Filter, limit: usize, reader: &mut Reader<Exclusions>) -> Result<Scan, Problem> {
        let matched_by = self.known_match()?;
        let moment = Moment::of(reader).await?;
        let bound = bound(&filter, matched_by);
        // A walk can look at a hit twice.
        let hidden = Mutex::new(BTreeSet::new());
        let is_selected = |hit: &Exclusion| {
            let is_wanted = matched_by.is_none_or(|by| can_match(hit, by));
            if is_wanted && hit.is_hidden() {
                hidden.lock().unwrap_or_else(PoisonError::into_inner).insert(hit.id.clone());
            }
            is_wanted && !hit.is_hidden()
        };
        let list = hits_list(filter.agency.as_deref());
        let walk = Walk { list: &list, part: hits_of_all_days(), filter: &bound, limit, after: self.after.as_deref() };
        // Without a condition only the records of the page are read.
        let selects: Option<Selects<'_, Exclusion>> =
            if has_condition(matched_by, reader.at.view.rendition()) { Some(&is_selected) } else { None };
        let page = reader.ranked(walk, selects).await?;
        let hidden = hidden.into_inner().unwrap_or_else(PoisonError::into_inner);
        reader.note(hidden_note("excluded entities", hidden.len()));
        let base_url = reader.context().settings.services.get(ExclusionsRules::NAME).map_or(String::new(), |own| own.base_url.clone());
        let ueis: Vec<String> = page.items.into_iter().map(|hit| hit.uei).collect();
        let found = scan_rows::found(&moment, reader, &ueis).await?;
        let mut rows = Vec::with_capacity(ueis.len());
        for (uei, found) in ueis.iter().zip(found) {
            reader.note(found.is_cut.then(cut_note));
            if found.signal != NO_SIGNAL && matched_by.is_none_or(|by| found.matched_by == by) {
                rows.push(ScanRow {
                    signal: found.signal,
                    entity: found.entity.clone(),
                    exclusion: found.exclusion.clone(),
                    summary: found.summary,
                    matched_by: found.matched_by,
                    url: format!("{base_url}/v1/entity_watch?uei={uei}"),
                });
            }
        }
        reader.note_empty_page(rows.len(), page.next.as_deref());
        // Entities whose exclusions have ended or are hidden are in the list that was counted.
        let total = page.total.filter(|_| rows.len() == ueis.len());
        Ok(Scan { count: rows.len(), total, next: page.next, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a hit by UEI is looked at for `match=cage` if it has further exclusions, and a hit by CAGE code never for `match=uei`.
    #[test]
    fn hits_of_a_match() {
        let can_match_by = |by: &str, exclusions: usize| {
            let hit = Exclusion { matched_by: by.into(), exclusions: vec![String::new(); exclusions], ..Exclusion::default() };
            [BY_UEI, BY_CAGE].map(|by| can_match(&hit, by))
        };
        assert_eq!(
            [can_match_by(BY_UEI, 1), can_match_by(BY_UEI, 2), can_match_by(BY_CAGE, 2)],
            [[true, false], [true, true], [false, true]]
        );
    }

    /// Proves that only `match` and hidden records make a page read records that it does not show.
    #[test]
    fn pages_with_a_condition() {
        let read = [(None, 0), (Some(BY_UEI), 0), (None, 7)];
        assert_eq!(read.map(|(by, rendition)| has_condition(by, rendition)), [false, true, true]);
    }

    /// Proves that a preview has rows as the paid page has them, without a list of awards or a hash.
    #[test]
    fn previews() {
        let row = ScanRow {
            signal: NO_SIGNAL,
            entity: Entity::default(),
            exclusion: None,
            summary: Summary::default(),
            matched_by: BY_UEI,
            url: String::new(),
        };
        let shown = serde_json::to_value(Preview { total: Some(1), rows: vec![row] }).unwrap();
        let fields: BTreeSet<&str> = shown["rows"][0].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["signal", "entity", "exclusion", "summary", "match", "url"]));
    }
}
