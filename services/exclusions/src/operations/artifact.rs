//! The artifact: dated evidence about one entity, its exclusion and its federal awards. Everything here follows from records and the time of the answer.

use std::collections::BTreeSet;

use crate::record::{BY_CAGE, BY_UEI, Exclusion};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::views::awards::Award;
use serde::Serialize;
use texts::dollars::Dollars;

use super::{DISCLAIMER, award_url, source_url};

/// An excluded entity has running awards under its UEI.
pub const WHILE_ACTIVE: &str = "EXCLUDED_WHILE_ACTIVE";
/// An entity is excluded and has no running award.
pub const NO_ACTIVE_AWARD: &str = "EXCLUDED_NO_ACTIVE_AWARD";
/// An excluded party has the name, and nothing else says that it is the same.
pub const NAME_MATCH_ONLY: &str = "NAME_MATCH_ONLY";
/// No active exclusion is on the index.
pub const NO_SIGNAL: &str = "NO_SIGNAL";
/// The match by name, which proves nothing.
pub const BY_NAME: &str = "name";
/// THE LIST of signals.
pub const SIGNALS: [&str; 4] = [WHILE_ACTIVE, NO_ACTIVE_AWARD, NAME_MATCH_ONLY, NO_SIGNAL];

/// The exclusion has no active date; the day on which it was entered is used.
pub const ACTIVE_DATE_FROM_CREATION: &str = "ACTIVE_DATE_FROM_CREATION";
/// Payments of an award are not known, so its whole obligation counts as at risk.
pub const DOLLARS_FROM_OBLIGATIONS: &str = "DOLLARS_FROM_OBLIGATIONS";
/// The exclusion is a prohibition or restriction, which can be partial.
pub const PARTIAL_PROHIBITION: &str = "PARTIAL_PROHIBITION";
/// The entity has more awards than are read, or more recipients have its name; the sums are too low.
pub const AWARDS_INCOMPLETE: &str = "AWARDS_INCOMPLETE";
/// The index has active entries of the entity that raise no signal: of a ship, or of a party that the agency does not exclude itself.
pub const LISTED_WITHOUT_SIGNAL: &str = "LISTED_WITHOUT_SIGNAL";
/// Exclusions of the entity are hidden on request and left out.
pub const EXCLUSIONS_HIDDEN: &str = "EXCLUSIONS_HIDDEN";

/// What the law says of awards that began before an exclusion.
const CONTINUATION: &str = "FAR 9.405-1: contracts in existence when a contractor is excluded may be continued unless the agency head directs \
    otherwise.";
/// The type of an exclusion that can be partial.
const PROHIBITION: &str = "Prohibition/Restriction";
/// The actions after which an award is not running: terminations (E, F, X, N) and the close-out (K).
const ENDED: [&str; 5] = ["E", "F", "X", "N", "K"];
/// An award without an end is running if its latest action is at most so many days ago.
const ACTION_DAYS_MAX: i32 = 400;

/// Evidence about one entity, as of a time. It is hashed in its canonical form (RFC 8785) without `artifactHash`, `permalink` and `receipt`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ExclusionArtifact")]
pub struct Artifact {
    /// `EXCLUDED_WHILE_ACTIVE`, `EXCLUDED_NO_ACTIVE_AWARD`, `NAME_MATCH_ONLY` or `NO_SIGNAL`.
    #[schemars(extend("enum" = SIGNALS))]
    pub signal: &'static str,
    /// The time of the evidence, RFC 3339 in UTC.
    pub as_of: String,
    /// The entity.
    pub entity: Entity,
    /// The earliest active exclusion of the entity; null if it has none.
    pub exclusion: Option<ShownExclusion>,
    /// The other active exclusions of the entity.
    pub other_exclusions: Vec<ShownExclusion>,
    /// By which exclusion and awards are of one entity: `uei`, `cage` or `name`; empty without an exclusion.
    #[serde(rename = "match")]
    pub matched_by: &'static str,
    /// Its federal awards, those that are running first, then by the day they were signed, the newest first. Empty unless the signal is
    /// `EXCLUDED_WHILE_ACTIVE` or `NAME_MATCH_ONLY`.
    pub federal_awards: Vec<FederalAward>,
    /// Sums over the running awards.
    pub summary: Summary,
    /// How many of the running awards were signed when.
    pub split: Split,
    /// What limits the evidence.
    pub flags: Vec<&'static str>,
    /// The entities on the index that have the name, if a name was given that fits several; or the recipients of the awards, if these are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// The evidence in one sentence.
    pub statement: String,
    /// What the evidence is not.
    pub disclaimer: String,
    /// The ids of the awards that are recorded, also of those that are not listed. No part of the evidence.
    #[serde(skip)]
    pub recorded: Vec<String>,
}

/// An entity. Unknown fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ExcludedEntity")]
pub struct Entity {
    /// Name.
    pub name: String,
    /// Unique entity id.
    pub uei: String,
    /// CAGE code.
    pub cage: String,
}

/// An entity that has a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "EntityCandidate")]
pub struct Candidate {
    /// Name.
    pub name: String,
    /// Unique entity id; empty if the exclusion has none.
    pub uei: String,
}

/// An exclusion in an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ArtifactExclusion")]
pub struct ShownExclusion {
    /// The excluding agency, a short code.
    pub excluding_agency: String,
    /// Type of the exclusion.
    pub exclusion_type: String,
    /// Day since which it is active, or the day on which it was entered if the list gives none.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub active_date: String,
    /// Where to verify it.
    pub source_url: String,
}

/// A federal award in an artifact.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FederalAward {
    /// The award's permanent id.
    pub award_id: String,
    /// The awarding agency.
    pub agency: String,
    /// The period of performance.
    pub period_of_performance: Period,
    /// Whether it is running at the time of the evidence: the period is not over, and it was not terminated or closed out.
    pub still_running: bool,
    /// Whether it was signed after the exclusion became active.
    pub signed_after_exclusion: bool,
    /// The obligated amount in dollars; null if it is unknown.
    pub obligated: Option<Dollars>,
    /// The amount paid out in dollars; null if it is unknown.
    pub outlays: Option<Dollars>,
    /// The page of the award.
    pub source_url: String,
}

/// A period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PeriodOfPerformance")]
pub struct Period {
    /// First day of the period.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub start: String,
    /// Last day of the periods exercised so far.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub end: String,
}

/// Sums over running awards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ArtifactSummary")]
pub struct Summary {
    /// The number of running awards.
    pub active_awards_now: usize,
    /// The dollars that are obligated on them and not paid out yet; the whole obligation where payments are not known.
    pub total_active_dollars_at_risk: Dollars,
}

/// How many running awards were signed when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Split {
    /// Signed after the exclusion became active.
    pub signed_after_exclusion: usize,
    /// Signed before. These may lawfully continue.
    pub running_since_before: usize,
}

/// What an artifact is made of.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The entity, as far as it is known.
    pub entity: Entity,
    /// The active exclusions of the entity, the earliest first.
    pub exclusions: Vec<Exclusion>,
    /// How many more are hidden on request.
    pub hidden: usize,
    /// Why its other active entries of the index raise no signal, one reason for each.
    pub without_signal: Vec<&'static str>,
    /// `uei`, `cage` or `name`.
    pub matched_by: &'static str,
    /// The awards of the entity.
    pub awards: Vec<Award>,
    /// Whether it has more awards.
    pub is_cut: bool,
    /// The entities that have the name, if they are several.
    pub candidates: Vec<Candidate>,
}

/// Whether an award is running on a day.
#[must_use]
pub fn is_running(award: &Award, day: Date) -> bool {
    let date = |text: &str| text.parse::<Date>().ok();
    let start = date(&award.start).or_else(|| date(&award.signed));
    let has_action_lately =
        || date(award.last_day()).is_some_and(|action| day.since(action).is_ok_and(|span| span.get_days() <= ACTION_DAYS_MAX));
    let is_before_end = date(&award.end).map_or_else(has_action_lately, |end| day <= end);
    start.is_some_and(|start| start <= day) && is_before_end && !ENDED.contains(&award.action_type.as_str()) && !award.withdrawn
}

impl ShownExclusion {
    fn new(exclusion: &Exclusion) -> Self {
        Self {
            excluding_agency: exclusion.excluding_agency.clone(),
            exclusion_type: exclusion.exclusion_type.clone(),
            active_date: exclusion.since().to_owned(),
            source_url: source_url(if exclusion.uei.is_empty() { &exclusion.name } else { &exclusion.uei }),
        }
    }
}

impl FederalAward {
    fn new(award: &Award, since: &str, day: Date) -> Self {
        let url = if award.url.contains(&award.id) { award.url.clone() } else { award_url(&award.id) };
        Self {
            award_id: award.id.clone(),
            agency: award.agency.clone(),
            period_of_performance: Period { start: award.start.clone(), end: award.end.clone() },
            still_running: is_running(award, day),
            // Days in this form are in the order of their texts.
            signed_after_exclusion: !since.is_empty() && award.signed.as_str() > since,
            obligated: award.amount_cents.map(|cents| Dollars { cents }),
            outlays: award.outlays_cents.map(|cents| Dollars { cents }),
            source_url: url,
        }
    }

    /// The dollars that are obligated and not paid out.
    fn at_risk(&self) -> Dollars {
        let obligated = self.obligated.unwrap_or_default().cents;
        Dollars { cents: obligated.saturating_sub(self.outlays.unwrap_or_default().cents).max(0) }
    }
}

impl Artifact {
    /// The name of the entity as the caller gave it, if nothing on the index names the entity. It is needed to make the artifact again.
    #[must_use]
    pub fn name_asked(&self) -> Option<&str> {
        Some(self.entity.name.as_str()).filter(|name| self.exclusion.is_none() && !name.is_empty())
    }

    /// Makes the artifact of what was found, as of a time in milliseconds since 1970. `EXCLUDED_NO_ACTIVE_AWARD` has no list of awards.
    #[must_use]
    pub fn new(findings: Findings, as_of_ms: i64) -> Self {
        let artifact = Self::whole(findings, as_of_ms);
        let federal_awards = if artifact.signal == NO_ACTIVE_AWARD { Vec::new() } else { artifact.federal_awards };
        Self { federal_awards, ..artifact }
    }

    /// The artifact in its earlier form, in which `EXCLUDED_NO_ACTIVE_AWARD` lists the awards that ended, and nothing names the recipients of awards by name.
    /// Permalinks with the hash of that form still open it.
    #[must_use]
    pub fn in_earlier_form(findings: Findings, as_of_ms: i64) -> Self {
        let artifact = Self::whole(findings, as_of_ms);
        let candidates = if artifact.recorded.is_empty() { artifact.candidates } else { Vec::new() };
        Self { candidates, ..artifact }
    }

    fn whole(findings: Findings, as_of_ms: i64) -> Self {
        let Findings { entity, exclusions, hidden, without_signal, matched_by, awards, is_cut, candidates } = findings;
        let day = day_of(as_of_ms);
        let first = exclusions.first();
        let since = first.map(|exclusion| exclusion.since().to_owned()).unwrap_or_default();
        let awards = if first.is_some() { shown_awards(&awards, &since, day) } else { Vec::new() };
        let running = || awards.iter().filter(|award| award.still_running);
        let active_awards_now = running().count();
        let signed_after_exclusion = running().filter(|award| award.signed_after_exclusion).count();
        let split = Split { signed_after_exclusion, running_since_before: active_awards_now - signed_after_exclusion };
        let summary = Summary { active_awards_now, total_active_dollars_at_risk: Dollars::total(running().map(FederalAward::at_risk)) };
        let is_by_id = [BY_UEI, BY_CAGE].contains(&matched_by);
        let signal = match first {
            None => NO_SIGNAL,
            Some(_) if !is_by_id => NAME_MATCH_ONLY,
            Some(_) if active_awards_now > 0 => WHILE_ACTIVE,
            Some(_) => NO_ACTIVE_AWARD,
        };
        let has = |condition: bool, flag: &'static str| condition.then_some(flag);
        let flags = [
            has(first.is_some_and(|one| one.active_date.is_empty() && !one.creation_date.is_empty()), ACTIVE_DATE_FROM_CREATION),
            has(running().any(|award| award.outlays.is_none()), DOLLARS_FROM_OBLIGATIONS),
            has(first.is_some_and(|one| one.exclusion_type == PROHIBITION), PARTIAL_PROHIBITION),
            has(is_cut, AWARDS_INCOMPLETE),
            has(!without_signal.is_empty(), LISTED_WITHOUT_SIGNAL),
            has(hidden > 0, EXCLUSIONS_HIDDEN),
        ];
        let statement = match first {
            Some(first) => statement(signal, &entity, first, day, summary.active_awards_now, split.signed_after_exclusion),
            None => no_signal(&entity, day, &without_signal, if matched_by == BY_NAME { "name" } else { "UEI" }, hidden),
        };
        Self {
            signal,
            as_of: rfc3339(as_of_ms),
            entity,
            exclusion: first.map(ShownExclusion::new),
            other_exclusions: exclusions.iter().skip(1).map(ShownExclusion::new).collect(),
            matched_by: if first.is_some() { matched_by } else { "" },
            recorded: awards.iter().map(|award| award.award_id.clone()).collect(),
            federal_awards: awards,
            summary,
            split,
            flags: flags.into_iter().flatten().collect(),
            candidates,
            statement,
            disclaimer: format!("{DISCLAIMER} {CONTINUATION}"),
        }
    }
}

/// The awards as an artifact shows them, in its order.
fn shown_awards(awards: &[Award], since: &str, day: Date) -> Vec<FederalAward> {
    let mut all: Vec<(&Award, FederalAward)> = awards.iter().map(|award| (award, FederalAward::new(award, since, day))).collect();
    all.sort_by(|(one, shown), (other, other_shown)| {
        let running = other_shown.still_running.cmp(&shown.still_running);
        running.then_with(|| other.signed.cmp(&one.signed)).then_with(|| one.id.cmp(&other.id))
    });
    all.into_iter().map(|(_, shown)| shown).collect()
}

/// The day of a time, in UTC.
fn day_of(ms: i64) -> Date {
    Timestamp::from_millisecond(ms).map(|at| at.to_zoned(TimeZone::UTC).date()).unwrap_or_default()
}

fn name_of(entity: &Entity) -> &str {
    if entity.name.is_empty() { &entity.uei } else { &entity.name }
}

/// The sentence about an entity without an exclusion that raises a signal. `key` is what its entries have in common with it.
fn no_signal(entity: &Entity, day: Date, without_signal: &[&'static str], key: &str, hidden: usize) -> String {
    let reasons: BTreeSet<&str> = without_signal.iter().copied().collect();
    let reasons: Vec<&str> = reasons.into_iter().collect();
    let which = if reasons.is_empty() { "" } else { " that raises a signal" };
    let place = if hidden == 0 { "on the index" } else { "shown" };
    let entries = if reasons.is_empty() {
        String::new()
    } else {
        format!("; active entries with this {key} that raise none: {} ({})", without_signal.len(), reasons.join("; "))
    };
    let requests = if hidden == 0 { String::new() } else { format!("; hidden on request: {hidden}") };
    format!("As of {day}, no active exclusion of {}{which} is {place}{entries}{requests}.", name_of(entity))
}

fn statement(signal: &str, entity: &Entity, exclusion: &Exclusion, day: Date, running: usize, signed_after: usize) -> String {
    let name = name_of(entity);
    let (agency, kind, since) = (&exclusion.excluding_agency, &exclusion.exclusion_type, exclusion.since());
    if signal == NAME_MATCH_ONLY {
        return format!(
            "As of {day}, a party named {name} is listed as excluded by {agency} ({kind}) since {since}. The name is the only thing in common with the \
             {running} running award(s) found: neither a UEI nor a CAGE code says that it is the same entity."
        );
    }
    format!(
        "As of {day}, {name} (UEI {}) is listed as excluded by {agency} ({kind}) since {since}; public award data show {running} award(s) still running, \
         {signed_after} of them signed after that date.",
        entity.uei
    )
}

#[cfg(test)]
mod tests;
