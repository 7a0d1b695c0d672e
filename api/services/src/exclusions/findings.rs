//! What is known of an entity at one position: its active exclusions and its awards.

use std::collections::BTreeSet;

use feed::filter::{Criteria, TermQuery};
use feed::places::Segment;
use feed::position::{Position, position};
use feed::query::{DIGEST_MAX, newest};
use jiff::civil::Date;
use matching::company::{CompanyName, Grade, compare};
use operation::context::Context;
use operation::problem::Problem;
use schemas::clock::rfc3339;
use schemas::position::Seq;
use schemas::views::awards::Award;
use schemas::views::exclusions::{BY_CAGE, BY_UEI, Exclusion, hit_id, name_list, uei_list};

use super::artifact::{Artifact, BY_NAME, Candidate, Entity, Findings};
use super::check::of_lists;
use super::filter::keys_of;
use super::followed::Exclusions;
use super::{FEED, SOURCE};
use crate::awards;
use crate::common::read::Reader;

/// The first day on which an exclusion can have begun, and one after all others.
const FIRST_DAY: Date = Date::constant(1900, 1, 1);
const LAST_DAY: Date = Date::constant(2199, 12, 31);

/// Who is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The entity with a UEI, in capitals.
    Uei(String),
    /// The entities with a name.
    Name(String),
}

/// The time of an answer in milliseconds since 1970, and the positions of both services at that time. The same time always gives the same positions.
pub(super) struct Moment {
    as_of_ms: i64,
    awards: Position,
}

impl Moment {
    /// The time of a reader's answer. Sets the reader's position to that of the time, to a millisecond.
    pub(super) async fn of(reader: &mut Reader<Exclusions>) -> Result<Self, Problem> {
        let as_of_ms = reader.at.now.as_millisecond();
        let text = rfc3339(as_of_ms);
        reader.at = position(reader.context(), &SOURCE, Some(&text)).await?;
        let awards = position(reader.context(), &awards::SOURCE, Some(&text)).await?;
        Ok(Self { as_of_ms, awards })
    }

    /// Makes the artifact about a subject.
    pub(super) async fn artifact(&self, reader: &mut Reader<Exclusions>, subject: &Subject) -> Result<Artifact, Problem> {
        let day = reader.today();
        let findings = match subject {
            Subject::Uei(uei) => self.by_uei(reader, uei, day).await?,
            Subject::Name(name) => self.by_name(reader, name, day).await?,
        };
        Ok(Artifact::new(findings, self.as_of_ms))
    }

    /// What is known of the entity with a UEI.
    async fn by_uei(&self, reader: &mut Reader<Exclusions>, uei: &str, day: Date) -> Result<Findings, Problem> {
        let own = of_lists(reader, vec![uei_list(uei)], day, false).await?;
        let mut exclusions: Vec<Exclusion> = own.into_iter().filter(Exclusion::can_signal).collect();
        let mut matched_by = BY_UEI;
        if exclusions.is_empty() {
            // An exclusion without a UEI may have its CAGE code.
            matched_by = BY_CAGE;
            let hit = hits_of(reader, &[uei]).await?.into_iter().find(|hit| hit.matched_by == BY_CAGE);
            exclusions = match hit {
                Some(hit) => exclusions_of(reader, &hit, day).await?,
                None => Vec::new(),
            };
        }
        let (awards, is_cut) = if exclusions.is_empty() { (Vec::new(), false) } else { self.awards_of(reader.context(), uei).await? };
        let first = exclusions.first();
        let entity = Entity {
            name: first.map(|one| one.name.clone()).unwrap_or_default(),
            uei: uei.to_owned(),
            cage: first.map(|one| one.cage.clone()).unwrap_or_default(),
        };
        Ok(Findings { entity, exclusions, matched_by, awards, is_cut, candidates: Vec::new() })
    }

    /// What is known of the entities with a name. A name that has one UEI only is that entity; then the UEI joins its exclusions and awards.
    async fn by_name(&self, reader: &mut Reader<Exclusions>, name: &str, day: Date) -> Result<Findings, Problem> {
        let lists = keys_of(name).iter().map(|key| name_list(key)).collect();
        let found = of_lists(reader, lists, day, false).await?;
        let exclusions: Vec<Exclusion> = found.into_iter().filter(Exclusion::can_signal).collect();
        let candidates: BTreeSet<Candidate> =
            exclusions.iter().map(|one| Candidate { name: one.name.clone(), uei: one.uei.clone() }).collect();
        let ueis: BTreeSet<&String> = exclusions.iter().map(|one| &one.uei).collect();
        if let ([uei], true) = (ueis.iter().collect::<Vec<_>>().as_slice(), ueis.iter().all(|uei| !uei.is_empty())) {
            reader.note(format!("one UEI on the index has this name: {uei}; verify that it is the entity that you mean"));
            let uei = (**uei).clone();
            return self.by_uei(reader, &uei, day).await;
        }
        let entity = Entity { name: name.to_owned(), ..Entity::default() };
        if ueis.len() > 1 {
            // Which of them is meant is not known, so nothing is said of any.
            let candidates = candidates.into_iter().collect();
            return Ok(Findings { entity, exclusions, matched_by: BY_NAME, candidates, ..Findings::default() });
        }
        let (awards, is_cut) = if exclusions.is_empty() { (Vec::new(), false) } else { self.awards_named(reader.context(), name).await? };
        Ok(Findings { entity, exclusions, matched_by: BY_NAME, awards, is_cut, candidates: Vec::new() })
    }

    /// The awards of the entity with a UEI, and whether it has more. A UEI of a parent counts as another one.
    async fn awards_of(&self, ctx: &Context, uei: &str) -> Result<(Vec<Award>, bool), Problem> {
        let query = TermQuery::Exact("uei", vec![uei.to_owned()]);
        self.awards(ctx, Criteria::new(vec![query], |change: &awards::Change| change.record.recipient_uei == uei)).await
    }

    /// The awards of recipients with exactly a name.
    async fn awards_named(&self, ctx: &Context, name: &str) -> Result<(Vec<Award>, bool), Problem> {
        let Some(company) = CompanyName::new(name) else { return Ok((Vec::new(), false)) };
        let Some(word) = company.normal().split(' ').max_by_key(|word| word.len()).map(str::to_lowercase) else {
            return Ok((Vec::new(), false));
        };
        let is_named = |recipient: &str| {
            CompanyName::new(recipient).and_then(|other| compare(&company, &other)).is_some_and(|found| found.grade == Grade::Exact)
        };
        let query = TermQuery::Part("recipient", word);
        self.awards(ctx, Criteria::new(vec![query], |change: &awards::Change| is_named(&change.record.recipient))).await
    }

    async fn awards(&self, ctx: &Context, criteria: Criteria<'_, Award>) -> Result<(Vec<Award>, bool), Problem> {
        let found = newest(ctx, &awards::FEED, &self.awards, criteria, Seq(0), DIGEST_MAX).await?;
        let is_cut = !found.is_complete();
        let mut awards = awards::FEED.still_current(&self.awards, found.changes).await?;
        awards.retain(|award| !award.withdrawn);
        Ok((awards, is_cut))
    }
}

/// The hits of some entities, by their UEIs. Those that are suppressed are left out.
pub(super) async fn hits_of(reader: &Reader<Exclusions>, ueis: &[&str]) -> Result<Vec<Exclusion>, Problem> {
    let ids: Vec<String> = ueis.iter().map(|uei| hit_id(uei)).collect();
    let hits: Vec<Option<Exclusion>> = FEED.records_by_id(&reader.at, &ids).await?;
    Ok(hits.into_iter().flatten().filter(|hit| !hit.withdrawn && !hit.suppressed).collect())
}

/// The exclusions of a hit that are active on a day, the earliest first.
pub(super) async fn exclusions_of(reader: &Reader<Exclusions>, hit: &Exclusion, day: Date) -> Result<Vec<Exclusion>, Problem> {
    let found: Vec<Option<Exclusion>> = FEED.records_by_id(&reader.at, &hit.exclusions).await?;
    Ok(found.into_iter().flatten().filter(|one| one.is_active_on(day) && one.can_signal() && !one.suppressed).collect())
}

/// The part of the list of hits with every day on which an exclusion can have begun.
#[must_use]
pub fn hits_of_all_days() -> Segment {
    Segment::newest_first(&(FIRST_DAY..=LAST_DAY))
}
