//! Contracts of an excluded entity that USAspending shows and that are not recorded here, for example because they are older than the history. They are no
//! part of the artifact, which everybody can make again of what is recorded: a note next to the artifact names them.

use std::collections::BTreeSet;

use reads::live::look_up;
use schemas::facts::FactData;
use upstreams::live::{AwardOrder, LivePage, Question};

use super::artifact::Artifact;
use super::watchable_feed::Exclusions;
use crate::rules::FIRST_DAY;
use reads::read::Reader;

/// The most contracts that a note names.
const NAMED_MAX: usize = 5;

/// What an answer about now says of contracts of its entity that are not recorded; `None` for an entity without an active exclusion or without a UEI, and if
/// there are none.
pub(crate) async fn note(reader: &Reader<Exclusions>, artifact: &Artifact) -> Option<String> {
    let uei = Some(&artifact.entity.uei).filter(|uei| !uei.is_empty() && artifact.exclusion.is_some() && reader.is_current())?;
    let question = Question::Awards {
        naics: Vec::new(),
        recipient: uei.clone(),
        agencies: Vec::new(),
        start: FIRST_DAY,
        end: reader.today(),
        order: AwardOrder::Newest,
        page: String::new(),
    };
    match look_up(reader.context(), question, reader.at.now).await {
        Ok(found) => further(&found, artifact),
        Err(reason) => Some(format!("USAspending was not asked for contracts that are not recorded here: {reason}")),
    }
}

/// The note about contracts that were found and that are not recorded.
fn further(found: &LivePage, artifact: &Artifact) -> Option<String> {
    let recorded: BTreeSet<&str> = artifact.recorded.iter().map(String::as_str).collect();
    // The search looks for words, so it can find other recipients.
    let own = found.facts.iter().filter_map(|fact| match fact {
        FactData::Award(award) if award.recipient_uei == artifact.entity.uei => Some(award.award_id.as_str()),
        _ => None,
    });
    let others: BTreeSet<&str> = own.filter(|id| !recorded.contains(id)).collect();
    if others.is_empty() {
        return None;
    }
    let named = others.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    let (more, at_least) = (if others.len() > NAMED_MAX { ", …" } else { "" }, if found.has_more { "at least " } else { "" });
    let words = "not recorded here and no part of the artifact: it can have more running awards than the summary says";
    Some(format!("USAspending shows {at_least}{} contracts of this UEI that are {words} ({named}{more})", others.len()))
}

#[cfg(test)]
mod tests {
    use schemas::facts::awards::AwardFact;
    use schemas::views::awards::Award;

    use super::super::artifact::{Entity, Findings};
    use super::*;
    use crate::record::{BY_UEI, Exclusion};

    const UEI: &str = "ABCDEF123456";

    fn found(awards: &[(&str, &str)], has_more: bool) -> LivePage {
        let fact = |(id, uei): &(&str, &str)| {
            FactData::Award(Box::new(AwardFact { award_id: (*id).into(), recipient_uei: (*uei).into(), ..AwardFact::default() }))
        };
        LivePage { facts: awards.iter().map(fact).collect(), has_more, ..LivePage::default() }
    }

    /// Proves that a note names the contracts of the entity alone that are not recorded, that it is bounded, and that there is none without any.
    #[test]
    fn contracts_that_are_not_recorded() {
        let findings = Findings {
            entity: Entity { uei: UEI.into(), ..Entity::default() },
            exclusions: vec![Exclusion::default()],
            matched_by: BY_UEI,
            awards: vec![Award { id: "A".into(), recipient_uei: UEI.into(), ..Award::default() }],
            ..Findings::default()
        };
        let artifact = Artifact::new(findings, 0);
        assert_eq!((artifact.federal_awards.len(), artifact.recorded.len()), (0, 1), "an award that is recorded and not listed");
        assert_eq!(further(&found(&[("A", UEI), ("B", "GHIJKL123456")], false), &artifact), None);
        let note = further(&found(&[("A", UEI), ("C", UEI), ("B", UEI), ("B", UEI)], false), &artifact).unwrap();
        assert!(note.contains("shows 2 contracts") && note.ends_with("(B, C)"), "{note}");
        let many: Vec<(String, &str)> = (0..9).map(|number| (format!("N{number}"), UEI)).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(id, uei)| (id.as_str(), *uei)).collect();
        let note = further(&found(&many, true), &artifact).unwrap();
        assert!(note.contains("at least 9 contracts") && note.ends_with("(N0, N1, N2, N3, N4, …)"), "{note}");
    }
}
