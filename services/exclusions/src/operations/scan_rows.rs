//! What the scan says of an entity. A process keeps it for as long as neither the exclusions nor the awards have a further change and the day is the same, so
//! that pages which are read again need no awards.

use std::collections::HashMap;
use std::sync::Arc;

use feed::latest::LatestAt;
use futures_util::future::try_join_all;
use operation::context::Part;
use operation::problem::Problem;

use super::artifact::{Artifact, Entity, ShownExclusion, Summary};
use super::findings::{Basis, Moment};
use super::watchable_feed::Exclusions;
use reads::read::Reader;

/// The most entities that are kept. Each needs less than a kilobyte.
const ENTITIES_MAX: usize = 10_000;
/// How many entities are looked up at the same time.
const ENTITIES_AT_ONCE: usize = 8;

/// What the scan says of an entity.
#[derive(Clone, Debug)]
pub(super) struct ScanFinding {
    pub(super) signal: &'static str,
    pub(super) entity: Entity,
    pub(super) exclusion: Option<ShownExclusion>,
    pub(super) summary: Summary,
    pub(super) matched_by: &'static str,
    /// Whether exclusions of the entity are left out.
    pub(super) is_cut: bool,
}

impl ScanFinding {
    fn new((artifact, is_cut): (Artifact, bool)) -> Self {
        let Artifact { signal, entity, exclusion, summary, matched_by, .. } = artifact;
        Self { signal, entity, exclusion, summary, matched_by, is_cut }
    }
}

/// The entities of one basis that a process keeps, by their UEIs.
#[derive(Default)]
struct ScanRows(LatestAt<Basis, HashMap<String, Arc<ScanFinding>>>);

impl Part for ScanRows {}

impl ScanRows {
    /// What is known of some entities, by their UEIs.
    fn known(&self, basis: &Basis, ueis: &[String]) -> HashMap<String, Arc<ScanFinding>> {
        let known = |kept: &HashMap<String, Arc<ScanFinding>>| {
            ueis.iter().filter_map(|uei| Some((uei.clone(), Arc::clone(kept.get(uei)?)))).collect()
        };
        self.0.read(basis, known).unwrap_or_default()
    }

    /// Keeps what was found; what is of another basis, or too much, is dropped.
    fn keep(&self, basis: Basis, found: &[(String, Arc<ScanFinding>)], entities_max: usize) {
        self.0.update(basis, |kept| {
            if kept.len() + found.len() > entities_max {
                kept.clear();
            }
            kept.extend(found.iter().map(|(uei, found)| (uei.clone(), Arc::clone(found))));
        });
    }
}

/// What the scan says of some entities, by their UEIs, in their order.
pub(super) async fn found(moment: &Moment, reader: &Reader<Exclusions>, ueis: &[String]) -> Result<Vec<Arc<ScanFinding>>, Problem> {
    let (basis, rows) = (moment.basis(reader), ScanRows::of(reader.context()));
    let mut found = rows.known(&basis, ueis);
    let unknown: Vec<&String> = ueis.iter().filter(|uei| !found.contains_key(*uei)).collect();
    let mut made = Vec::with_capacity(unknown.len());
    for some in unknown.chunks(ENTITIES_AT_ONCE) {
        made.extend(try_join_all(some.iter().map(|uei| look_up(moment, reader, uei))).await?);
    }
    // Answers as of earlier times do not replace what most calls ask for.
    if reader.is_current() && !made.is_empty() {
        rows.keep(basis, &made, ENTITIES_MAX);
    }
    found.extend(made);
    Ok(ueis.iter().filter_map(|uei| found.get(uei).cloned()).collect())
}

async fn look_up(moment: &Moment, reader: &Reader<Exclusions>, uei: &str) -> Result<(String, Arc<ScanFinding>), Problem> {
    Ok((uei.to_owned(), Arc::new(ScanFinding::new(moment.artifact_of_uei(reader, uei).await?))))
}

#[cfg(test)]
mod tests {
    use super::super::artifact::Findings;
    use super::*;

    /// Proves that what was found is known for its basis alone, that another basis replaces it, and that it stays within its number.
    #[test]
    fn kept_for_one_basis() {
        let basis = Basis::for_test;
        let rows_for = |ueis: &[&str]| {
            let entity = |uei: &str| Entity { uei: uei.to_owned(), ..Entity::default() };
            let found = |uei: &&str| {
                let artifact = Artifact::new(Findings { entity: entity(uei), ..Findings::default() }, 0);
                ((*uei).to_owned(), Arc::new(ScanFinding::new((artifact, false))))
            };
            ueis.iter().map(found).collect::<Vec<_>>()
        };
        let known = |kept: &ScanRows, basis: &Basis| {
            let mut ueis: Vec<String> = kept.known(basis, &["A", "B", "C"].map(str::to_owned)).into_keys().collect();
            ueis.sort_unstable();
            ueis.concat()
        };
        let (kept, first) = (ScanRows::default(), basis(5, 7, 20));
        assert_eq!(known(&kept, &first), "");
        kept.keep(first, &rows_for(&["A"]), 3);
        kept.keep(first, &rows_for(&["B", "D"]), 3);
        assert_eq!(known(&kept, &first), "AB");
        for other in [basis(6, 7, 20), basis(5, 8, 20), basis(5, 7, 21)] {
            assert_eq!(known(&kept, &other), "", "{other:?}");
        }
        kept.keep(first, &rows_for(&["C"]), 3);
        assert_eq!(known(&kept, &first), "C");
        kept.keep(basis(6, 7, 20), &rows_for(&["A"]), 3);
        assert_eq!((known(&kept, &first), known(&kept, &basis(6, 7, 20))), (String::new(), "A".to_owned()));
    }
}
