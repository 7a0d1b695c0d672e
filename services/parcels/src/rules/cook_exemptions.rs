//! Exemptions of residences in Cook County, which a server reads that has the file PTAXSIM, and the only rule that follows from them: `X4`. The others need
//! mailing addresses, owners and buyers, which are not requested, or the use of an exempt parcel, which is not published.

use crate::record::flag::{ExemptionYear, Flag, exemption_year, flag_counts};
use fold::records::{DecisionRow, State};
use fold::undecided::Undecided;
use property::exemptions::is_no_home;
use schemas::clock::day_of;
use schemas::facts::parcels::ParcelFact;
use texts::cook::{COUNTY, class_label};

use super::exemptions::{id, set};
use super::state::ParcelsRules;

const RULE: &str = "X4";

/// The rows that the decision of an exemption reads.
pub(super) fn reads(pin: &str) -> Vec<DecisionRow> {
    let keys = [exemption_year(COUNTY), flag_counts(COUNTY)].map(DecisionRow::State);
    keys.into_iter().chain([DecisionRow::Record(id(pin, RULE))]).collect()
}

/// Decides the flag of a parcel by what is known of the newest tax year. Earlier years say nothing more.
pub(super) fn decide(state: &mut State<'_, ParcelsRules>, fact: &ParcelFact, at_ms: i64) -> Result<(), Undecided> {
    let (newest, known) = (state.get::<ExemptionYear>(&exemption_year(COUNTY)), state.record(&id(&fact.pin, RULE)));
    let (newest, known) = (newest?.unwrap_or_default().tax_year, known?.and_then(|record| record.flag).filter(|flag| !flag.is_over));
    if fact.year < newest {
        return Ok(());
    }
    state.change(&exemption_year(COUNTY), |newest: &mut ExemptionYear| newest.tax_year = fact.year)?;
    let label = class_label(&fact.class);
    let exempt_since = known.as_ref().map_or_else(|| day_of(at_ms).to_string(), |flag| flag.exempt_since.clone());
    let (year, class) = (fact.year, &fact.class);
    let statement = format!("the record shows an exemption of a residence for the tax year {year}, and the class {class}: {label}");
    let evidence = vec![format!("year: {year}"), "exe_* of a residence: above 0".to_owned(), format!("class: {class}")];
    let flag = || Flag { rule: RULE.to_owned(), statement, evidence, exempt_since, ..Flag::default() };
    let flags: Vec<Flag> = (fact.is_homestead && is_no_home(label)).then(flag).into_iter().collect();
    let before: Vec<String> = known.into_iter().map(|flag| flag.rule).collect();
    set(state, (COUNTY, fact.pin.as_str()), &before, flags).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::{Parcels, ParcelsFact};
    use super::*;
    use fold::testing::{self, Folded};
    use schemas::event::FactKind;
    use schemas::facts::parcels::EXEMPTION;

    /// Proves which classes flag an exemption, that the newest tax year alone decides, and that a flag says what the record shows and since when it was read.
    #[test]
    fn the_newest_year_decides() {
        let mut engine: Folded<Parcels> = Folded::default();
        let mut flagged = |pin: &str, year: i64, class: &str, is_homestead: bool| {
            let kind = EXEMPTION.to_owned();
            let fact = ParcelFact { kind, pin: pin.into(), year, class: class.into(), is_homestead, ..ParcelFact::default() };
            let at_ms = 1_795_176_000_000 + (year - 2023) * 86_400_000;
            engine.decide(&testing::fact(format!("{pin}{year}"), FactKind::Observed, at_ms, Some(ParcelsFact::Parcel(Box::new(fact)))));
            let mut listed = engine.records().into_values().filter(|record| record.pin == pin && record.county == COUNTY);
            listed.find_map(|record| record.flag.filter(|flag| !flag.is_over))
        };
        let pin = |at: usize| format!("160121600{at:02}000");
        for (at, class) in ["100", "190", "241", "313", "318", "391", "396"].into_iter().enumerate() {
            let flag = flagged(&pin(at), 2023, class, true).unwrap();
            assert!(flag.statement.starts_with("the record shows ") && flag.evidence.len() == 3 && flag.rule == "X4", "{flag:?}");
        }
        for class in ["203", "211", "213", "299", "399", "517", "EX", "none"] {
            assert_eq!(flagged(&pin(10), 2023, class, true), None, "{class}");
        }
        assert_eq!(flagged(&pin(11), 2023, "100", false), None);
        let later = flagged(&pin(0), 2024, "100", true).unwrap();
        assert!(later.statement.contains("2024") && later.exempt_since == "2026-11-20", "{later:?}");
        assert_eq!(flagged(&pin(1), 2024, "190", false), None);
        assert_eq!((flagged(&pin(1), 2023, "190", true), flagged(&pin(11), 2023, "100", true)), (None, None));
        assert_eq!(flagged(&pin(0), 2023, "100", false), Some(later));
    }
}
