//! What the register says of a name at one position: counts, verdict and the similar marks. The check answers with it, and other services may ask
//! for it ([`Trademarks`]).

use async_trait::async_trait;
use clearance::{Clearance, Comparison, Counts, Extent, OtherCounts};
use feed::position::{Position, position};
use feed::{Feeds, RecordFeed};
use marks::index::{Corpus, Hit};
use marks::{Classes, Mark, Rule, Status, Tier, Verdict};
use operation::context::{Context, Part};
use operation::problem::Problem;
use schemas::position::Seq;

use super::name_arguments::{ClassList, read_name};
use super::register::{Register, position_of};
use crate::rules::NamesRules;

/// The register of trademarks, for other services.
pub struct Trademarks;

#[async_trait]
impl clearance::Register for Trademarks {
    async fn has_marks(&self, ctx: &Context, as_of: Option<&str>) -> Result<bool, Problem> {
        let is_served = ctx.settings.services.get(NamesRules::FEED.source.service).is_some_and(|service| service.enabled);
        Ok(is_served && position(ctx, &NamesRules::FEED.source, as_of).await?.seq != Seq(0))
    }

    async fn extent(&self, ctx: &Context, as_of: Option<&str>) -> Result<Extent, Problem> {
        let at = position(ctx, &NamesRules::FEED.source, as_of).await?;
        let reached = Register::of(ctx).reach(ctx, at.seq, as_of.is_none()).await?;
        let corpus = reached.index.corpus(position_of(at.seq.min(reached.seq)));
        let standing = Feeds::of(ctx).completeness(&NamesRules::FEED.source, at.view.as_ref(), at.seq.min(reached.seq), at.last).await?;
        Ok(Extent { corpus, through_date: standing.through_date })
    }

    async fn clearance(&self, ctx: &Context, name: &str, classes: &[u8], as_of: Option<&str>) -> Result<Clearance, Problem> {
        let mut at = position(ctx, &NamesRules::FEED.source, as_of).await?;
        let name = read_name(name)?;
        let (comparison, lag) = compare(ctx, &mut at, &name, &ClassList::new(classes), as_of.is_none()).await?;
        let notes = notes(&name, &comparison, lag);
        let standing = Feeds::of(ctx).completeness(&NamesRules::FEED.source, at.view.as_ref(), at.seq, at.last).await?;
        Ok(Clearance { comparison, through_date: standing.through_date, notes })
    }
}

/// What to know about a comparison. `lag` is the note of [`compare`].
pub(crate) fn notes(name: &Mark, found: &Comparison, lag: Option<String>) -> Vec<String> {
    let mut notes: Vec<String> = lag.into_iter().collect();
    if found.corpus.marks == 0 {
        notes.push("no marks are recorded yet, so the name was compared with none".to_owned());
    }
    if !name.is_latin() {
        notes.push("names that are not written in Latin letters are compared by rules E1, E2 and S1 to S3 only".to_owned());
    }
    notes
}

/// Compares a name with the register at a position. If `may_move`, the position becomes an earlier one while the index is behind; a note says so.
///
/// # Errors
/// `unavailable` while the index is being built.
pub(crate) async fn compare(
    ctx: &Context,
    at: &mut Position,
    name: &Mark,
    classes: &ClassList,
    may_move: bool,
) -> Result<(Comparison, Option<String>), Problem> {
    let register = Register::of(ctx);
    let reached = register.reach(ctx, at.seq, may_move).await?;
    at.seq = at.seq.min(reached.seq);
    let (hits, corpus) = register.find(reached.index, name.clone(), at.seq).await?;
    Ok((judge(hits, corpus, classes.classes()), reached.note))
}

fn judge(hits: Vec<Hit>, corpus: Corpus, classes: Classes) -> Comparison {
    let (mut counts, mut other_counts, mut contained) = (Counts::default(), OtherCounts::default(), 0);
    let mut counted = Vec::new();
    for hit in hits {
        let status = if hit.is_live { Status::Live } else { Status::Unknown };
        let Some(tier) = hit.rule.tier().counted(status) else { continue };
        match (classes.meets(hit.classes), tier) {
            (true, Tier::Exact) => counts.exact += 1,
            (true, Tier::Strong) => counts.strong += 1,
            (true, Tier::Partial) => {
                counts.partial += 1;
                contained += u64::from(hit.rule == Rule::P1);
            }
            (false, Tier::Exact) => other_counts.exact += 1,
            (false, Tier::Strong) => other_counts.strong += 1,
            (false, Tier::Partial) => {}
        }
        if classes.meets(hit.classes) {
            counted.push((tier, hit));
        }
    }
    counted.sort_unstable_by_key(|(tier, hit)| (*tier, hit.distance, hit.serial));
    let verdict = Verdict::of(counts.exact, counts.strong, contained, classes != Classes::NONE);
    Comparison { verdict, counts, other_counts, hits: counted, corpus }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(serial: u32, rule: Rule, class: u8, is_live: bool, distance: u32) -> Hit {
        Hit { serial, rule, classes: Classes::of(&[class]), is_live, distance }
    }

    /// Proves what counts in which tier, the order of the marks, and what classes change.
    #[test]
    fn counts_and_order() {
        let hits = vec![
            hit(1, Rule::P1, 9, true, 6),
            hit(2, Rule::E1, 25, true, 0),
            hit(3, Rule::S3, 9, false, 1),
            hit(4, Rule::S3, 9, true, 2),
            hit(5, Rule::S4, 9, true, 1),
            hit(6, Rule::P2, 9, false, 3),
            hit(7, Rule::E1, 9, false, 0),
        ];
        let all = judge(hits.clone(), Corpus::default(), Classes::NONE);
        assert_eq!(all.counts, Counts { exact: 1, strong: 3, partial: 2 });
        assert_eq!(all.hits.iter().map(|(_, hit)| hit.serial).collect::<Vec<_>>(), [2, 7, 5, 4, 3, 1]);
        assert_eq!((all.verdict, all.other_counts), (Verdict::LikelyTaken, OtherCounts::default()));
        let of_nine = judge(hits.clone(), Corpus::default(), Classes::of(&[9]));
        assert_eq!(
            (of_nine.counts, of_nine.other_counts),
            (Counts { exact: 0, strong: 3, partial: 2 }, OtherCounts { exact: 1, strong: 0 })
        );
        assert_eq!(of_nine.verdict, Verdict::Caution);
        let contained = vec![hits[0]];
        assert_eq!(judge(contained.clone(), Corpus::default(), Classes::NONE).verdict, Verdict::LikelyAvailable);
        assert_eq!(judge(contained, Corpus::default(), Classes::of(&[9])).verdict, Verdict::Caution);
    }

    /// Proves what is noted: an index that is behind, a register without marks, and a name that only some rules compare.
    #[test]
    fn notes_of_a_comparison() {
        let cleared = |name: &str, marks, lag: Option<&str>| {
            let found = judge(Vec::new(), Corpus { marks, live_marks: 0 }, Classes::NONE);
            notes(&Mark::new(name).unwrap(), &found, lag.map(str::to_owned))
        };
        assert_eq!(cleared("Acme", 1, None), Vec::<String>::new());
        let all = cleared("\u{732b}", 0, Some("behind"));
        assert_eq!((all.len(), all[0].as_str()), (3, "behind"));
        assert!(all[1].contains("no marks") && all[2].contains("Latin"), "{all:?}");
    }

    /// Proves for all numbers of marks of each kind that one more live mark never makes a verdict better, that one more of unknown status never
    /// does so either, and that fewer classes never count more marks.
    #[test]
    fn more_marks_and_fewer_classes() {
        let kinds = [(Rule::E1, 9), (Rule::S3, 9), (Rule::P1, 9), (Rule::P2, 9), (Rule::E1, 25), (Rule::S3, 25), (Rule::P1, 25)];
        let rank = |found: &Comparison| match found.verdict {
            Verdict::LikelyAvailable => 0,
            Verdict::Caution => 1,
            Verdict::LikelyTaken => 2,
        };
        let questions = [Classes::NONE, Classes::of(&[9, 25]), Classes::of(&[9]), Classes::of(&[25]), Classes::of(&[42])];
        for chosen in 0_u32..1 << kinds.len() {
            let is_chosen = |at: u32| chosen >> at & 1 == 1;
            let hits: Vec<Hit> =
                (0..).zip(kinds).filter(|(at, _)| is_chosen(*at)).map(|(at, (rule, class))| hit(at, rule, class, true, 1)).collect();
            for classes in questions {
                let found = judge(hits.clone(), Corpus::default(), classes);
                for (rule, class) in kinds {
                    for is_live in [true, false] {
                        let more = [hits.clone(), vec![hit(99, rule, class, is_live, 1)]].concat();
                        assert!(rank(&judge(more, Corpus::default(), classes)) >= rank(&found), "{hits:?} and {rule:?} of {class}");
                    }
                }
            }
            let counts = |classes| judge(hits.clone(), Corpus::default(), classes).counts;
            let is_within =
                |less: Counts, more: Counts| less.exact <= more.exact && less.strong <= more.strong && less.partial <= more.partial;
            for (fewer, more) in [(2, 1), (3, 1), (1, 0), (4, 0)] {
                assert!(is_within(counts(questions[fewer]), counts(questions[more])), "{hits:?}");
            }
        }
    }
}
