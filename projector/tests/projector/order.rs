//! One record per recall, whatever the order of arrival.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use schemas::facts::recalls::RecallFact;

use crate::harness::{Content, Engine, recall};

fn observed(key: &str, fact: RecallFact) -> (String, Content) {
    (key.to_owned(), Content::Observed(fact))
}

/// Returns a small set of facts: two streams of one agency, two languages, duplicates of two agencies, a pair that only looks like one, a
/// renumbered record, an edit that separates a pair, a withdrawal.
pub(crate) fn sample_facts() -> Vec<(String, Content)> {
    let mut spanish = recall("fsis", "USDA", "018-2026", "Carne", "Acme Foods", "2026-03-02");
    spanish.lang = "es".into();
    let mut flat = recall("nhtsa.flat", "NHTSA", "26V400000", "ACME: BRAKES", "ACME", "2026-02-01");
    flat.remedy = "Dealers will replace it.".into();
    vec![
        observed("openfda.food/F-1", recall("openfda.food", "FDA", "F-1", "Acme Foods: Beef Soup", "Acme Foods", "2026-03-01")),
        observed("fsis/018-2026/en", recall("fsis", "USDA", "018-2026", "Acme Foods: Beef  soup", "ACME FOODS", "2026-03-05")),
        observed("fsis/018-2026/es", spanish),
        observed("nhtsa.socrata/26V400000", recall("nhtsa.socrata", "NHTSA", "26V400000", "Acme: Brakes may fail", "Acme", "2026-02-01")),
        observed("nhtsa.flat/26V400000", flat),
        // Two recalls of one agency on one day: nothing determines which of them the other agency means.
        observed("openfda.food/F-2", recall("openfda.food", "FDA", "F-2", "Same Title", "Same", "2026-04-01")),
        observed("openfda.food/F-3", recall("openfda.food", "FDA", "F-3", "Same Title", "Same", "2026-04-01")),
        observed("fsis/020-2026/en", recall("fsis", "USDA", "020-2026", "Same Title", "Same", "2026-04-01")),
        // The same likeness, but too far apart in time.
        observed("cpsc/7", recall("cpsc", "CPSC", "7", "Seat", "Sitz", "2026-05-01")),
        observed("nhtsa.socrata/26C100000", recall("nhtsa.socrata", "NHTSA", "26C100000", "Seat", "Sitz", "2026-05-20")),
        // Renumbered later.
        observed("openfda.food/EVT-9-ab", recall("openfda.food", "FDA", "EVT-9-ab", "Firm: Ice", "Firm", "2026-06-01")),
        observed("openfda.food/H-9", recall("openfda.food", "FDA", "H-9", "Firm: Ice", "Firm", "2026-06-01")),
        ("openfda.food/EVT-9-ab".to_owned(), Content::Superseded("openfda.food/H-9".to_owned())),
        // A pair that an edit separates.
        observed("openfda.food/F-4", recall("openfda.food", "FDA", "F-4", "Pair", "Paar", "2026-07-01")),
        observed("fsis/030-2026/en", recall("fsis", "USDA", "030-2026", "Pair", "Paar", "2026-07-02")),
        observed("openfda.food/F-4", recall("openfda.food", "FDA", "F-4", "Another title", "Paar", "2026-07-01")),
        // Withdrawn.
        observed("fsis/040-2026/en", recall("fsis", "USDA", "040-2026", "Gone", "Weg", "2026-08-01")),
        ("fsis/040-2026/en".to_owned(), Content::Withdrawn),
        // A merged pair, one of which is withdrawn.
        observed("openfda.food/F-5", recall("openfda.food", "FDA", "F-5", "Half", "Halb", "2026-09-01")),
        observed("fsis/050-2026/en", recall("fsis", "USDA", "050-2026", "Half", "Halb", "2026-09-01")),
        ("fsis/050-2026/en".to_owned(), Content::Withdrawn),
        // A record that gets its number later, under the same key.
        observed("cpsc/10854", recall("cpsc", "CPSC", "10854", "Numbered later", "Acme", "2026-10-01")),
        observed("cpsc/10854", recall("cpsc", "CPSC", "26606", "Numbered later", "Acme", "2026-10-01")),
        // Five similar recalls within weeks of each other: too many to be merged, whichever is first.
        observed("cpsc/80", recall("cpsc", "CPSC", "80", "Chain", "Kette", "2026-01-01")),
        observed("openfda.food/F-6", recall("openfda.food", "FDA", "F-6", "Chain", "Kette", "2026-01-07")),
        observed("fsis/060-2026/en", recall("fsis", "USDA", "060-2026", "Chain", "Kette", "2026-01-13")),
        observed("nhtsa.socrata/26V600000", recall("nhtsa.socrata", "NHTSA", "26V600000", "Chain", "Kette", "2026-01-19")),
        observed("cpsc/81", recall("cpsc", "CPSC", "81", "Chain", "Kette", "2026-01-25")),
    ]
}

/// Returns a random order in which each key's own facts keep their order.
fn shuffled(world: &[(String, Content)], random: &mut StdRng) -> Vec<(String, Content)> {
    let mut left: Vec<(String, Content)> = world.to_vec();
    let mut out = Vec::new();
    while !left.is_empty() {
        let at = random.random_range(..left.len());
        let key = left[at].0.clone();
        let first = left.iter().position(|(other, _)| *other == key).unwrap();
        out.push(left.remove(first));
    }
    out
}

/// Proves the contents of the merged records.
#[tokio::test]
async fn one_record_per_recall() {
    let mut engine = Engine::new().await;
    engine.append_and_decide(&sample_facts()).await;
    let soup = engine.record("FDA:F-1").await.unwrap();
    assert_eq!(soup.agencies, ["FDA", "USDA"]);
    assert_eq!(soup.urls, ["https://example.org/openfda.food/F-1", "https://example.org/fsis/018-2026"]);
    assert!(engine.record("USDA:018-2026").await.is_none_or(|record| record.merged_into == "FDA:F-1"));
    let brakes = engine.record("NHTSA:26V400000").await.unwrap();
    assert_eq!((brakes.title.as_str(), brakes.remedy.as_str()), ("Acme: Brakes may fail", "Dealers will replace it."));
    for alone in [
        "FDA:F-5",
        "CPSC:26606",
        "CPSC:80",
        "CPSC:81",
        "USDA:060-2026",
        "FDA:F-2",
        "FDA:F-3",
        "USDA:020-2026",
        "CPSC:7",
        "NHTSA:26C100000",
        "FDA:H-9",
        "FDA:F-4",
        "USDA:030-2026",
    ] {
        let record = engine.record(alone).await.unwrap();
        assert!(record.is_listed() && record.agencies.len() == 1, "{alone}: {record:?}");
    }
    assert!(engine.record("FDA:EVT-9-ab").await.is_none_or(|record| record.merged_into == "FDA:H-9"));
    // A record whose number was replaced is no longer a separate record.
    assert_eq!(engine.record("CPSC:10854").await.unwrap().merged_into, "CPSC:26606");
    assert!(engine.record("USDA:040-2026").await.is_none_or(|record| record.withdrawn));
}

/// Proves that the final records do not depend on the order of arrival or on how it is split into batches.
#[tokio::test]
async fn records_do_not_depend_on_the_order_of_arrival() {
    let world = sample_facts();
    let mut random = StdRng::seed_from_u64(20_261_120);
    let mut expected = None;
    for round in 0..8 {
        let mut engine = Engine::new().await;
        let mut left = shuffled(&world, &mut random);
        while !left.is_empty() {
            let rest = left.split_off(random.random_range(1..=6).min(left.len()));
            engine.append_and_decide(&left).await;
            left = rest;
        }
        let digest = engine.digest().await;
        assert_eq!(expected.get_or_insert_with(|| digest.clone()), &digest, "round {round}");
    }
}
