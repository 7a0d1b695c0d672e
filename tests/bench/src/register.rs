//! The facts of a register of trademarks.

use rand::RngExt;
use schemas::facts::FactData;
use schemas::facts::marks::{MarkClass, MarkFact};

use crate::loads::Observed;
use crate::names::words;
use crate::{Settings, sample};

/// The serial number of the first mark.
const FIRST_SERIAL: u64 = 90_000_000;
/// What sets the random numbers of marks apart.
const MARK: u64 = 7;

/// A live mark for each record, in one class.
pub(crate) fn facts(settings: &Settings) -> impl Iterator<Item = Observed> + use<> {
    (0..settings.records).map(|n| {
        let mut random = sample::random(MARK, n);
        let class = MarkClass { code: format!("{:03}", random.random_range(1..46)), status_code: "6".to_owned(), ..MarkClass::default() };
        let fact = MarkFact {
            serial: format!("{:08}", FIRST_SERIAL + n),
            mark: words(&mut random),
            drawing_code: "4".to_owned(),
            status_code: "700".to_owned(),
            filing_date: "2021-08-26".to_owned(),
            owners: vec![sample::business(&mut random).name],
            classes: vec![class],
            transaction_date: "2026-10-01".to_owned(),
            ..MarkFact::default()
        };
        Observed::now(format!("uspto_trademarks/{}", fact.serial), FactData::Mark(Box::new(fact)))
    })
}
