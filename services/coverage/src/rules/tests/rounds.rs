//! How often a decision is repeated because rows are missing.

use fold::rows::Rows;
use fold::service::Service as _;

use super::*;

/// How often a fact is decided, if the rows that it names are fetched before and the missing ones after each time.
fn rounds(engine: &Engine, fact: &Fact<CoverageFact>) -> usize {
    let (mut rows, mut wanted, mut rounds) = (Rows::default(), Coverage::reads(fact), 1);
    loop {
        for (table, key) in wanted {
            let value = engine.rows.get(&(table.name, key.clone())).cloned();
            rows.write(Write { table, key, value, at: 0 });
        }
        match Coverage::decide(&mut rows, fact) {
            Ok(_) => return rounds,
            Err(Undecided::Miss) => (wanted, rounds) = (rows.take_missing(), rounds + 1),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Proves that a fact about a business of which nothing is known is decided with the rows that are fetched for its batch, and that one which joins leads of
/// another source, or takes its own back, is decided once more.
#[test]
fn few_rounds_for_a_fact() {
    let brewery = || co(colorado("1", "Copper Mug Brewery LLC", "2026-11-16"));
    let nothing = Engine::default();
    for fact in [census(carrier()), brewery(), new_york("1", "ARTICLES OF ORGANIZATION")] {
        assert_eq!(rounds(&nothing, &fact), 1, "{}", fact.key);
    }
    let known = engine(&[census(carrier()), brewery()]);
    assert_eq!(rounds(&known, &co(colorado("20261812345", "Blue Mesa Freight, L.L.C.", "2026-11-16"))), 2);
    let dissolved = BusinessFact { status: "Voluntarily Dissolved".into(), ..colorado("1", "Copper Mug Brewery LLC", "2026-11-16") };
    assert_eq!(rounds(&known, &co(dissolved)), 2);
}
