//! What is known of an entity at one position: its active exclusions and its awards.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::record::{BY_CAGE, BY_UEI, Exclusion, hit_id, name_list, uei_list};
use feed::filter::{Criteria, Element, TermQuery};
use feed::latest::PositionKey;
use feed::places::{Segment, Walk};
use feed::position::{Position, position};
use feed::query::{DIGEST_MAX, Feed, newest};
use jiff::civil::Date;
use matching::company::CompanyName;
use operation::context::Context;
use operation::problem::Problem;
use schemas::clock::rfc3339;
use schemas::position::Seq;
use schemas::views::awards::{Award, TABLES as AWARD_TABLES};

use super::artifact::{Artifact, BY_NAME, Candidate, Entity, Findings};
use super::filter::keys_of;
use super::recipients::{self, AWARDS, NAMES_PER_SEARCH, is_named};
use super::watchable_feed::Exclusions;
use crate::rules::ExclusionsRules;
use feed::RecordFeed;
use reads::read::Reader;

/// The first day on which an exclusion can have begun, and one after all others.
const FIRST_DAY: Date = Date::constant(1900, 1, 1);
const LAST_DAY: Date = Date::constant(2199, 12, 31);

/// The feed of the changes of the awards service under a filter.
const AWARDS_FEED: Feed = Feed { source: AWARDS, tables: &AWARD_TABLES, list: "changes" };

/// The most recipients of a name whose hits are read.
const RECIPIENTS_MAX: usize = 100;
/// The most exclusions that a key finds.
pub(crate) const MATCHES_MAX: usize = 50;

/// What an answer without an exclusion says that looked for a name.
const WITHOUT_PERSONS: &str = "natural persons are not looked up here; `exclusion_check` finds one by the whole name";

/// Why some exclusions give their party no signal, one reason for each that gives none and is shown.
fn reasons_without_signal(exclusions: &[Exclusion]) -> Vec<&'static str> {
    exclusions.iter().filter(|one| !one.is_hidden()).filter_map(Exclusion::reason_without_signal).collect()
}

/// Who is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The entity with a UEI.
    Uei {
        /// The UEI, in capitals.
        uei: String,
        /// The name that the caller gave, which the entity has if it is not on the index; empty for none.
        asked: String,
    },
    /// The entities with a name.
    Name(String),
}

impl Subject {
    /// The entity with a UEI, in capitals, of which the caller gave no name.
    pub(crate) fn of_uei(uei: String) -> Self {
        Self::Uei { uei, asked: String::new() }
    }
}

/// Records that count for an answer, without those that are hidden on request.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// The exclusions that are shown.
    pub(crate) shown: Vec<Exclusion>,
    /// How many are hidden.
    pub(crate) hidden: usize,
}

impl Counted {
    /// Separates the hidden records from the others, whose order stays.
    pub(crate) fn of(records: impl IntoIterator<Item = Exclusion>) -> Self {
        let (hidden, shown): (Vec<Exclusion>, Vec<Exclusion>) = records.into_iter().partition(Exclusion::is_hidden);
        Self { shown, hidden: hidden.len() }
    }
}

/// The place of an exclusion among others: the earliest first, those without a day last.
pub(crate) fn earliest(record: &Exclusion) -> (bool, String, String) {
    (record.since().is_empty(), record.since().to_owned(), record.id.clone())
}

/// The part of a list that is looked up as a whole.
pub(crate) fn whole_list() -> Segment {
    Segment { buckets: 0..=0, ranks: 0..=0 }
}

/// The exclusions of some lists that are active on a day, each once, the earliest first; also those that are hidden on request. Persons are left out if
/// `has_persons` is false. A note says if there are more.
pub(crate) async fn of_lists(
    reader: &mut Reader<Exclusions>,
    lists: Vec<String>,
    day: Date,
    has_persons: bool,
) -> Result<Vec<Exclusion>, Problem> {
    let (found, is_cut) = active_of_lists(reader, lists, day, has_persons).await?;
    reader.note(is_cut.then(cut_note));
    Ok(found)
}

/// What an answer says that leaves out exclusions.
pub(crate) fn cut_note() -> String {
    format!("more than {MATCHES_MAX} exclusions match; some are left out")
}

/// The exclusions of [`of_lists`], and whether there are more.
async fn active_of_lists(
    reader: &Reader<Exclusions>,
    lists: Vec<String>,
    day: Date,
    has_persons: bool,
) -> Result<(Vec<Exclusion>, bool), Problem> {
    let (mut found, mut seen, mut is_cut) = (Vec::new(), HashSet::new(), false);
    for list in lists {
        let walk = Walk { list: &list, part: whole_list(), filter: "", limit: MATCHES_MAX, after: None };
        let page = reader.ranked_page(walk, None).await?;
        is_cut |= page.next.is_some();
        found.extend(page.items.into_iter().filter(|record| seen.insert(record.id.clone())));
    }
    found.retain(|record| record.is_active_on(day) && (has_persons || !record.is_person()));
    found.sort_by_key(earliest);
    Ok((found, is_cut))
}

/// What an artifact follows from next to its subject: the positions of both services, and the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Basis {
    exclusions: PositionKey,
    awards: PositionKey,
    day: Date,
}

#[cfg(test)]
impl Basis {
    /// The basis at two positions on a day of November 2026.
    pub(crate) fn for_test(exclusions: u64, awards: u64, day: i8) -> Self {
        let key = |seq: u64| PositionKey { generation: 1, rendition: 0, seq: Seq(seq) };
        Self { exclusions: key(exclusions), awards: key(awards), day: Date::constant(2026, 11, day) }
    }
}

/// The time of an answer in milliseconds since 1970, and the positions of both services at that time. The same time always gives the same positions.
pub(crate) struct Moment {
    as_of_ms: i64,
    awards: Position,
}

impl Moment {
    /// The time of a reader's answer. Sets the reader's position to that of the time, to a millisecond.
    pub(crate) async fn of(reader: &mut Reader<Exclusions>) -> Result<Self, Problem> {
        let as_of_ms = reader.at.now.as_millisecond();
        let text = rfc3339(as_of_ms);
        reader.at = position(reader.context(), &ExclusionsRules::FEED.source, Some(&text)).await?;
        let awards = position(reader.context(), &AWARDS, Some(&text)).await?;
        Ok(Self { as_of_ms, awards })
    }

    /// Makes the artifact about a subject.
    pub(crate) async fn artifact(&self, reader: &mut Reader<Exclusions>, subject: &Subject) -> Result<Artifact, Problem> {
        Ok(Artifact::new(self.findings(reader, subject).await?, self.as_of_ms))
    }

    /// What the artifacts of this time follow from.
    pub(crate) fn basis(&self, reader: &Reader<Exclusions>) -> Basis {
        Basis { exclusions: reader.at.key(), awards: self.awards.key(), day: reader.today() }
    }

    /// Makes the artifact about the entity with a UEI, and says whether it leaves out exclusions.
    pub(crate) async fn artifact_of_uei(&self, reader: &Reader<Exclusions>, uei: &str) -> Result<(Artifact, bool), Problem> {
        let (findings, is_cut) = self.of_uei(reader, uei, "", reader.today()).await?;
        Ok((Artifact::new(findings, self.as_of_ms), is_cut))
    }

    /// Makes the artifact about a subject in each form that a permalink can name, the present one first.
    pub(crate) async fn forms(&self, reader: &mut Reader<Exclusions>, subject: &Subject) -> Result<[Artifact; 2], Problem> {
        let findings = self.findings(reader, subject).await?;
        Ok([Artifact::new(findings.clone(), self.as_of_ms), Artifact::in_earlier_form(findings, self.as_of_ms)])
    }

    /// What is known of a subject.
    async fn findings(&self, reader: &mut Reader<Exclusions>, subject: &Subject) -> Result<Findings, Problem> {
        let day = reader.today();
        match subject {
            Subject::Uei { uei, asked } => self.by_uei(reader, uei, asked, day).await,
            Subject::Name(name) => self.by_name(reader, name, day).await,
        }
    }

    /// What is known of the entity with a UEI.
    async fn by_uei(&self, reader: &mut Reader<Exclusions>, uei: &str, asked: &str, day: Date) -> Result<Findings, Problem> {
        let (findings, is_cut) = self.of_uei(reader, uei, asked, day).await?;
        reader.note(is_cut.then(cut_note));
        Ok(findings)
    }

    /// What is known of the entity with a UEI, and whether exclusions are left out.
    async fn of_uei(&self, reader: &Reader<Exclusions>, uei: &str, asked: &str, day: Date) -> Result<(Findings, bool), Problem> {
        let (own, is_own_cut) = active_of_lists(reader, vec![uei_list(uei)], day, false).await?;
        let without_signal = reasons_without_signal(&own);
        let own_ids: HashSet<String> = own.iter().map(|one| one.id.clone()).collect();
        let Counted { shown: mut exclusions, mut hidden } = Counted::of(own.into_iter().filter(Exclusion::can_signal));
        let hits = hits_of(reader, &[uei]).await?;
        if hidden == 0 && hits.hidden > 0 {
            // The hit itself is hidden: that these exclusions are of this entity is not said.
            hidden = exclusions.len();
            exclusions.clear();
        }
        let mut matched_by = BY_UEI;
        if exclusions.is_empty() {
            // An exclusion without a UEI may have its CAGE code. Those with its UEI have ended, or are counted already.
            matched_by = BY_CAGE;
            if let Some(hit) = hits.shown.first() {
                let by_cage = exclusions_of(reader, hit, &own_ids, day).await?;
                hidden += by_cage.hidden;
                exclusions = by_cage.shown;
            } else if hidden == 0 {
                // Of a hidden hit it is not known by what it is one.
                hidden += hits.hidden;
            }
        }
        let (awards, is_cut) = if exclusions.is_empty() { (Vec::new(), false) } else { self.awards_of(reader.context(), uei).await? };
        let first = exclusions.first();
        let entity = Entity {
            name: first.map_or(asked, |one| one.name.as_str()).to_owned(),
            uei: uei.to_owned(),
            cage: first.map(|one| one.cage.clone()).unwrap_or_default(),
        };
        Ok((Findings { entity, exclusions, hidden, without_signal, matched_by, awards, is_cut, candidates: Vec::new() }, is_own_cut))
    }

    /// What is known of the entities with a name. A name that has one UEI only is that entity; then the UEI joins its exclusions and awards.
    async fn by_name(&self, reader: &mut Reader<Exclusions>, name: &str, day: Date) -> Result<Findings, Problem> {
        let lists = keys_of(name).iter().map(|key| name_list(key)).collect();
        let found = of_lists(reader, lists, day, false).await?;
        let without_signal = reasons_without_signal(&found);
        let Counted { shown: exclusions, hidden } = Counted::of(found.into_iter().filter(Exclusion::can_signal));
        let candidates: BTreeSet<Candidate> =
            exclusions.iter().map(|one| Candidate { name: one.name.clone(), uei: one.uei.clone() }).collect();
        let ueis: BTreeSet<&String> = exclusions.iter().map(|one| &one.uei).collect();
        if let ([uei], true) = (ueis.iter().collect::<Vec<_>>().as_slice(), ueis.iter().all(|uei| !uei.is_empty())) {
            reader.note(format!("one UEI on the index has this name: {uei}; verify that it is the entity that you mean"));
            let uei = (**uei).clone();
            return self.by_uei(reader, &uei, name, day).await;
        }
        let entity = Entity { name: name.to_owned(), ..Entity::default() };
        if ueis.len() > 1 {
            // Which of them is meant is not known, so nothing is said of any.
            let candidates = candidates.into_iter().collect();
            return Ok(Findings { entity, exclusions, hidden, matched_by: BY_NAME, candidates, ..Findings::default() });
        }
        if exclusions.is_empty() {
            reader.note(WITHOUT_PERSONS.to_owned());
            return Ok(Findings { entity, hidden, without_signal, matched_by: BY_NAME, ..Findings::default() });
        }
        let (awards, is_cut) = self.awards_named(reader.context(), name).await?;
        if let Some(uei) = by_cage(reader, &exclusions, &awards).await? {
            reader.note(format!(
                "an exclusion with this name has the CAGE code of the entity {uei}; verify that it is the entity that you mean"
            ));
            return self.by_uei(reader, &uei, name, day).await;
        }
        let candidates = several_recipients(&awards);
        Ok(Findings { entity, exclusions, hidden, matched_by: BY_NAME, awards, is_cut, candidates, ..Findings::default() })
    }

    /// The awards of the entity with a UEI, and whether it has more. A UEI of a parent counts as another one.
    async fn awards_of(&self, ctx: &Context, uei: &str) -> Result<(Vec<Award>, bool), Problem> {
        let query = TermQuery::Exact("uei", vec![uei.to_owned()]);
        self.awards(ctx, Criteria::new(vec![query], |change: &Element<Award>| change.record.recipient_uei == uei)).await
    }

    /// The awards of recipients with exactly a name.
    async fn awards_named(&self, ctx: &Context, name: &str) -> Result<(Vec<Award>, bool), Problem> {
        let Some(company) = CompanyName::new(name) else { return Ok((Vec::new(), false)) };
        let named = recipients::named(ctx, &self.awards, company.clone()).await?;
        let mut found: Vec<Element<Award>> = Vec::new();
        let mut is_cut = named.is_cut;
        for names in named.names.chunks(NAMES_PER_SEARCH) {
            let query = TermQuery::Exact("recipient", names.to_vec());
            let criteria = Criteria::new(vec![query], |change: &Element<Award>| is_named(&company, &change.record.recipient));
            let some = newest(ctx, &AWARDS_FEED, &self.awards, criteria, Seq(0), DIGEST_MAX).await?;
            is_cut |= !some.is_complete();
            found.extend(some.changes);
        }
        // An award has one recipient, so that no two searches find the same change.
        is_cut |= keep_newest(&mut found, |change| change.seq, DIGEST_MAX);
        Ok((self.current(found).await?, is_cut))
    }

    async fn awards(&self, ctx: &Context, criteria: Criteria<'_, Award>) -> Result<(Vec<Award>, bool), Problem> {
        let found = newest(ctx, &AWARDS_FEED, &self.awards, criteria, Seq(0), DIGEST_MAX).await?;
        let is_cut = !found.is_complete();
        Ok((self.current(found.changes).await?, is_cut))
    }

    /// The awards of some changes that are their latest ones, without those that are withdrawn.
    async fn current(&self, changes: Vec<Element<Award>>) -> Result<Vec<Award>, Problem> {
        let mut awards = AWARDS_FEED.still_current(&self.awards, changes).await?;
        awards.retain(|award| !award.withdrawn);
        Ok(awards)
    }
}

/// Keeps so many of the changes of several searches, the newest first. Returns whether some were left out.
fn keep_newest<T>(found: &mut Vec<T>, seq: impl Fn(&T) -> Seq, most: usize) -> bool {
    found.sort_by_key(|change| Reverse(seq(change)));
    let is_cut = found.len() > most;
    found.truncate(most);
    is_cut
}

/// The recipients of some awards if they are several by their UEIs, each with the first of its names in their order; none if they are one.
fn several_recipients(awards: &[Award]) -> Vec<Candidate> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for award in awards.iter().filter(|award| !award.recipient_uei.is_empty()) {
        let name = names.entry(&award.recipient_uei).or_insert(&award.recipient);
        *name = (*name).min(award.recipient.as_str());
    }
    if names.len() < 2 {
        return Vec::new();
    }
    names.into_iter().map(|(uei, name)| Candidate { name: name.to_owned(), uei: uei.to_owned() }).collect()
}

/// The hits of some entities, by their UEIs.
pub(crate) async fn hits_of(reader: &Reader<Exclusions>, ueis: &[&str]) -> Result<Counted, Problem> {
    let ids: Vec<String> = ueis.iter().map(|uei| hit_id(uei)).collect();
    let hits: Vec<Option<Exclusion>> = ExclusionsRules::FEED.records_by_id(&reader.at, &ids).await?;
    Ok(Counted::of(hits.into_iter().flatten().filter(|hit| !hit.withdrawn)))
}

/// The UEI of the one recipient of some awards that has the CAGE code of one of some exclusions; `None` if there is none, or more than one.
async fn by_cage(reader: &Reader<Exclusions>, exclusions: &[Exclusion], awards: &[Award]) -> Result<Option<String>, Problem> {
    let ueis: BTreeSet<&str> = awards.iter().map(|award| award.recipient_uei.as_str()).filter(|uei| !uei.is_empty()).collect();
    let hits = hits_of(reader, &ueis.into_iter().take(RECIPIENTS_MAX).collect::<Vec<_>>()).await?.shown;
    // The exclusions have no UEI, so they are of a hit by its CAGE code.
    let is_own = |hit: &&Exclusion| exclusions.iter().any(|one| hit.exclusions.contains(&one.id));
    let mut own = hits.iter().filter(is_own);
    Ok(own.next().filter(|_| own.next().is_none()).map(|hit| hit.uei.clone()))
}

/// The exclusions of a hit that are active on a day, without those with some ids, in its order.
pub(crate) async fn exclusions_of(
    reader: &Reader<Exclusions>,
    hit: &Exclusion,
    except: &HashSet<String>,
    day: Date,
) -> Result<Counted, Problem> {
    let ids: Vec<String> = hit.exclusions.iter().filter(|id| !except.contains(*id)).cloned().collect();
    let found: Vec<Option<Exclusion>> = ExclusionsRules::FEED.records_by_id(&reader.at, &ids).await?;
    Ok(Counted::of(found.into_iter().flatten().filter(|one| one.is_active_on(day) && one.can_signal())))
}

/// The part of the list of hits with every day on which an exclusion can have begun.
#[must_use]
pub fn hits_of_all_days() -> Segment {
    Segment { ranks: Segment::newest_first(&(FIRST_DAY..=LAST_DAY)).ranks, ..whole_list() }
}

#[cfg(test)]
mod tests {
    use schemas::facts::exclusions::classification::{FIRM, VESSEL};

    use super::*;

    /// Proves that each entry without a signal has a reason, unless it is hidden.
    #[test]
    fn entries_without_a_signal() {
        let exclusion_of =
            |classification: &str, suppressed| Exclusion { classification: classification.into(), suppressed, ..Exclusion::default() };
        let found = [exclusion_of(FIRM, false), exclusion_of(VESSEL, false), exclusion_of(VESSEL, true), exclusion_of("", false)];
        assert_eq!(reasons_without_signal(&found), ["a vessel", "the list gives no class of party"]);
    }

    /// Proves that of several searches the newest changes are kept, and that it is said if some are left out.
    #[test]
    fn newest_of_several_searches() {
        let kept = |most: usize| {
            let mut found = vec![Seq(7), Seq(3), Seq(9), Seq(5)];
            let is_cut = keep_newest(&mut found, |seq| *seq, most);
            (found, is_cut)
        };
        assert_eq!(kept(4), (vec![Seq(9), Seq(7), Seq(5), Seq(3)], false));
        assert_eq!(kept(2), (vec![Seq(9), Seq(7)], true));
    }

    /// Proves that awards of several recipients name each once, and that those of one recipient, or of unknown ones, name none.
    #[test]
    fn a_name_of_several_recipients() {
        let named_among = |recipients: &[(&str, &str)]| {
            let award = |(name, uei): &(&str, &str)| Award { recipient: (*name).into(), recipient_uei: (*uei).into(), ..Award::default() };
            let found = several_recipients(&recipients.iter().map(award).collect::<Vec<_>>());
            found.into_iter().map(|found| format!("{} {}", found.uei, found.name)).collect::<Vec<_>>()
        };
        assert_eq!(named_among(&[("ACME INC", "B"), ("ACME, LLC", "A"), ("ACME LLC", "A"), ("ACME", "")]), ["A ACME LLC", "B ACME INC"]);
        assert_eq!(named_among(&[("ACME INC", "B"), ("ACME", "B"), ("ACME", "")]), [""; 0]);
    }

    /// Proves that hidden records are counted and not shown, and that the others keep their order.
    #[test]
    fn hidden_records_are_counted() {
        let shown_among = |ids: &[(&str, bool)]| {
            let record = |(id, suppressed): &(&str, bool)| Exclusion { id: (*id).into(), suppressed: *suppressed, ..Exclusion::default() };
            let counted = Counted::of(ids.iter().map(record));
            (counted.shown.into_iter().map(|record| record.id).collect::<Vec<_>>().join(","), counted.hidden)
        };
        assert_eq!(shown_among(&[]), (String::new(), 0));
        assert_eq!(shown_among(&[("c", false), ("a", true), ("b", false), ("d", true)]), ("c,b".to_owned(), 2));
    }
}
