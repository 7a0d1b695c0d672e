//! Exemptions in Allegheny County: which rules flag the record of a parcel, and by which of its fields. A flag says what the record shows, and draws no
//! conclusion. Those of Cook County are decided in `cook_exemptions`.

use std::collections::BTreeSet;

use crate::record::Parcel;
use crate::record::flag::{Flag, flag_counts};
use property::exemptions::{Details, found};
use serde::{Deserialize, Serialize};
use texts::allegheny::COUNTY;

use super::roll::Roll;
use super::state::{ParcelsRules, roll_key};
use fold::records::State;
use fold::undecided::{Undecided, all};

/// The most parcels of a mailing address that are remembered. Those beyond are flagged when their own rows change, not when others do.
const SHARED_MAX: usize = 50;

/// The parcels with a homestead exclusion that have one mailing address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Shared(BTreeSet<String>);

pub(super) fn shared_key(hash: &str) -> String {
    format!("mailing/{hash}")
}

/// The id of the record of a flag: the parcel and the rule.
pub(super) fn id(pin: &str, rule: &str) -> String {
    format!("flag/{pin}/{rule}")
}

/// Decides the flags of a parcel again after a row of it, and of the parcels that share its mailing address or did before.
pub(super) fn decide(state: &mut State<'_, ParcelsRules>, pin: &str, before: Option<&Details>) -> Result<(), Undecided> {
    let roll: Roll = state.get(&roll_key(pin))?.unwrap_or_default();
    let Some(now) = &roll.details else { return Ok(()) };
    let hashes = [before.map_or("", |before| before.mailing_hash.as_str()), now.mailing_hash.as_str()];
    let mut pins = BTreeSet::from([pin.to_owned()]);
    if hashes[0] != hashes[1] {
        for (hash, is_in) in [(hashes[0], false), (hashes[1], true)] {
            if hash.is_empty() {
                continue;
            }
            state.change(&shared_key(hash), |shared: &mut Shared| {
                if is_in && shared.0.len() < SHARED_MAX {
                    shared.0.insert(pin.to_owned());
                } else if !is_in {
                    shared.0.remove(pin);
                }
            })?;
            pins.extend(state.get::<Shared>(&shared_key(hash))?.unwrap_or_default().0);
        }
    }
    all(pins.iter().map(|pin| flag(state, pin))).map(drop)
}

/// Sets the flags of a parcel. One that no longer applies is over.
fn flag(state: &mut State<'_, ParcelsRules>, pin: &str) -> Result<(), Undecided> {
    let key = roll_key(pin);
    let mut roll: Roll = state.get(&key)?.unwrap_or_default();
    let Some(details) = roll.details.as_mut() else { return Ok(()) };
    let shared: Shared = match details.mailing_hash.as_str() {
        "" => Shared::default(),
        hash => state.get(&shared_key(hash))?.unwrap_or_default(),
    };
    let flags: Vec<Flag> = found(details, shared.0.len())
        .into_iter()
        .map(|(rule, statement, evidence)| Flag {
            rule: rule.to_owned(),
            statement,
            evidence,
            owner: details.owner_kind.clone(),
            mailing: match rule {
                "X1" => format!("{} {}", details.mailing_city, details.mailing_state).trim().to_owned(),
                _ => String::new(),
            },
            exempt_since: details.homestead_since.clone(),
            is_over: false,
        })
        .collect();
    if let Some(rules) = set(state, (COUNTY, pin), &details.flags, flags)? {
        details.flags = rules;
        state.remember(&key, Some(&roll))?;
    }
    Ok(())
}

/// Sets the flags of a parcel of a county, given the rules that flagged it before. A flag that no longer applies is over. Returns the rules if they are others
/// than before.
pub(super) fn set(
    state: &mut State<'_, ParcelsRules>,
    (county, pin): (&str, &str),
    before: &[String],
    flags: Vec<Flag>,
) -> Result<Option<Vec<String>>, Undecided> {
    let rules: Vec<String> = flags.iter().map(|flag| flag.rule.clone()).collect();
    for rule in before.iter().filter(|rule| !rules.contains(rule)) {
        if let Some(mut record) = state.record(&id(pin, rule))? {
            if let Some(flag) = record.flag.as_mut() {
                flag.is_over = true;
            }
            state.put(record)?;
        }
    }
    for flag in flags {
        let id = id(pin, &flag.rule);
        state.put(Parcel { id, pin: pin.to_owned(), county: county.to_owned(), flag: Some(Box::new(flag)), ..Parcel::default() })?;
    }
    if *before == *rules {
        return Ok(None);
    }
    let changes = [(before, -1), (&*rules, 1)];
    state.count(
        &flag_counts(county),
        changes.into_iter().flat_map(|(rules, change)| rules.iter().map(move |rule| (rule.clone(), change))),
    )?;
    Ok(Some(rules))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemas::event::FactKind;
    use schemas::facts::parcels::{ASSESSMENT, EXEMPT, ParcelFact, VALUE};
    use schemas::position::Seq;
    use schemas::tables::Datum;
    use schemas::views::records::Record;

    use super::super::{Parcels, ParcelsFact};
    use super::*;
    use crate::record::TABLES;
    use fold::records::Rules;
    use fold::service::Service;
    use fold::testing::{self, Folded};

    type Engine = Folded<Parcels>;

    /// A home with a homestead exclusion and nothing to flag.
    fn home(pin: &str) -> ParcelFact {
        ParcelFact {
            kind: ASSESSMENT.into(),
            pin: pin.into(),
            year: 2026,
            class: "R010".into(),
            township: "104".into(),
            city: "PITTSBURGH".into(),
            state: "PA".into(),
            use_class: "RESIDENTIAL".into(),
            use_label: "SINGLE FAMILY".into(),
            owner_kind: "REGULAR".into(),
            is_homestead: true,
            mailing_city: "PITTSBURGH".into(),
            mailing_state: "PA".into(),
            mailing_hash: format!("hash of {pin}"),
            sale_date: "2015-03-01".into(),
            ..ParcelFact::default()
        }
    }

    fn decide(engine: &mut Engine, fact: ParcelFact) {
        let key = format!("allegheny.assessments/{}", fact.pin);
        engine.decide(&testing::fact(key, FactKind::Observed, 1_795_176_000_000, Some(ParcelsFact::Parcel(Box::new(fact)))));
    }

    /// The flags of a parcel that are not over, with what they say.
    fn flags(engine: &Engine, pin: &str) -> Vec<(String, String)> {
        let records = engine.records().into_values().filter(|record| record.is_listed() && record.pin == pin);
        records.filter_map(|record| record.flag.map(|flag| (flag.rule, flag.statement))).collect()
    }

    /// The last row of the index with the counts of flags, which is that of the records.
    fn counted(engine: &Engine) -> BTreeMap<String, i64> {
        let name = Datum::Text(flag_counts(COUNTY));
        let last = engine.table(TABLES.terms).rfind(|(key, _)| key[0] == name);
        let counts: BTreeMap<String, i64> = last.map(|(_, value)| serde_json::from_slice(value).unwrap()).unwrap_or_default();
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for flag in engine.records().into_values().filter(|record| record.is_listed()).filter_map(|record| record.flag) {
            *expected.entry(flag.rule).or_default() += 1;
        }
        assert_eq!(counts, expected);
        counts
    }

    /// Proves that the counts of each rule follow the flags: those of a parcel that is flagged, flagged by another rule, flagged no longer, or flagged because of
    /// another parcel.
    #[test]
    fn flags_are_counted() {
        let mut engine = Engine::default();
        let counts_of =
            |counts: &[(&str, i64)]| counts.iter().map(|(rule, count)| ((*rule).to_owned(), *count)).collect::<BTreeMap<_, _>>();
        decide(&mut engine, home(PIN));
        assert_eq!(counted(&engine), counts_of(&[]));
        let company = || ParcelFact { owner_kind: "CORPORATION".into(), ..home(PIN) };
        decide(&mut engine, company());
        assert_eq!(counted(&engine), counts_of(&[("X3", 1)]));
        decide(&mut engine, ParcelFact { owner_kind: "CORPORATION".into(), use_label: "VACANT LAND".into(), ..home(OTHER) });
        assert_eq!(counted(&engine), counts_of(&[("X3", 2), ("X4", 1)]));
        // The same row again counts nothing.
        decide(&mut engine, company());
        assert_eq!(counted(&engine), counts_of(&[("X3", 2), ("X4", 1)]));
        decide(&mut engine, ParcelFact { mailing_hash: home(PIN).mailing_hash, ..home(OTHER) });
        assert_eq!(counted(&engine), counts_of(&[("X2", 2), ("X3", 1)]));
        decide(&mut engine, ParcelFact { is_homestead: false, mailing_hash: String::new(), ..company() });
        assert_eq!(counted(&engine), counts_of(&[]));
    }

    fn rules_of(fact: ParcelFact) -> Vec<String> {
        let (mut engine, pin) = (Engine::default(), fact.pin.clone());
        decide(&mut engine, fact);
        flags(&engine, &pin).into_iter().map(|(rule, _)| rule).collect()
    }

    const PIN: &str = "0028F00194000000";
    const OTHER: &str = "0028F00195000000";

    /// Proves which fields each rule flags, and which near ones it does not.
    #[test]
    fn each_rule_flags_its_fields() {
        let flags_after = |change: fn(&mut ParcelFact)| {
            let mut fact = home(PIN);
            change(&mut fact);
            rules_of(fact)
        };
        let none: [&str; 0] = [];
        assert_eq!(flags_after(|_| ()), none);
        assert_eq!(flags_after(|fact| fact.mailing_city = "BOCA RATON".into()), ["X1"]);
        assert_eq!(flags_after(|fact| fact.mailing_state = "OH".into()), ["X1"]);
        assert_eq!(flags_after(|fact| (fact.mailing_city, fact.mailing_state) = (String::new(), String::new())), none);
        assert_eq!(flags_after(|fact| (fact.mailing_city, fact.mailing_state) = ("C/O JOHN SMITH".into(), String::new())), none);
        assert_eq!(flags_after(|fact| (fact.mailing_city, fact.mailing_state) = ("JOHN SMITH".into(), "OH".into())), none);
        assert_eq!(flags_after(|fact| (fact.mailing_city, fact.mailing_state) = ("ANN ARBOR".into(), "MI".into())), ["X1"]);
        assert_eq!(flags_after(|fact| fact.owner_kind = "CORPORATION".into()), ["X3"]);
        assert_eq!(flags_after(|fact| (fact.owner_kind, fact.sale_date) = ("CORPORATION".into(), "2027-01-02".into())), ["X3", "X5"]);
        assert_eq!(flags_after(|fact| (fact.owner_kind, fact.sale_date) = ("CORPORATION".into(), "2026-12-31".into())), ["X3"]);
        assert_eq!(flags_after(|fact| fact.sale_date = "2027-01-02".into()), none);
        for (label, expected) in [("VACANT LAND", &["X4"][..]), ("APART: 5-19 UNITS", &["X4"]), ("FOUR FAMILY", &[])] {
            assert_eq!(rules_of(ParcelFact { use_label: label.into(), ..home(PIN) }), expected, "{label}");
        }
        let exempt = |class: &str, label: &str| {
            let fact = ParcelFact { use_class: class.into(), use_label: label.into(), is_homestead: false, is_exempt: true, ..home(PIN) };
            rules_of(fact)
        };
        assert_eq!(exempt("COMMERCIAL", "RETL/STOR OVER"), ["X6"]);
        assert_eq!(exempt("GOVERNMENT", "OWNED BY COLLEGE/UNIV/ACADEMY"), none);
        assert_eq!(exempt("COMMERCIAL", "CHURCHES, PUBLIC WORSHIP"), none);
        // Without the exclusion nothing about the owner is flagged.
        let taxed = ParcelFact { is_homestead: false, owner_kind: "CORPORATION".into(), mailing_city: "BOCA RATON".into(), ..home(PIN) };
        assert_eq!(rules_of(taxed), none);
    }

    /// Proves that a sale to a company counts from the year after the first tax year with the exclusion, in any order of the rows and whenever they were read; and
    /// that the year begins again when the exclusion does.
    #[test]
    fn a_sale_counts_after_the_first_tax_year_of_the_exclusion() {
        let row = |year: i64, sold: &str, is_homestead: bool| {
            let (owner_kind, sale_date) = ("CORPORATION".into(), sold.into());
            ParcelFact { year, owner_kind, sale_date, is_homestead, ..home(PIN) }
        };
        let rules = |rows: &[ParcelFact]| {
            let mut engine = Engine::default();
            rows.iter().for_each(|row| decide(&mut engine, row.clone()));
            flags(&engine, PIN).into_iter().map(|(rule, statement)| format!("{rule} {statement}")).collect::<Vec<_>>()
        };
        let sold = "2027-06-01";
        for rows in [[row(2026, sold, true), row(2028, sold, true)], [row(2028, sold, true), row(2026, sold, true)]] {
            let found = rules(&rows);
            assert!(found.iter().any(|flag| flag.starts_with("X5 the record shows a sale on 2027-06-01, after 2026, ")), "{found:?}");
        }
        for rows in [
            &[row(2027, sold, true)][..],
            &[row(2026, sold, true), row(2027, sold, false), row(2028, sold, true)],
            &[row(2026, "2026-11-30", true), row(2028, "2026-11-30", true)],
        ] {
            assert!(rules(rows).iter().all(|flag| !flag.starts_with("X5")), "{rows:?}");
        }
    }

    /// Proves that no parcel of Cook County is flagged, also one that the table of exempt parcels has and that is assessed as commerce; and that its reasons name
    /// the table, in any order of its facts, unless the table is older than the year before.
    #[test]
    fn parcels_of_cook_county_are_not_flagged() {
        const COOK_PIN: &str = "16022010070000";
        let fact = |kind: &str, year: i64, class: &str| {
            let (township, neighborhood) = ("77".to_owned(), "020".to_owned());
            let (kind, pin, class) = (kind.to_owned(), COOK_PIN.to_owned(), class.to_owned());
            let key = format!("cook.{kind}/{pin}{year}");
            let data = ParcelFact { kind, pin, year, class, township, neighborhood, ..ParcelFact::default() };
            testing::fact(key, FactKind::Observed, 1_795_176_000_000, Some(ParcelsFact::Parcel(Box::new(data))))
        };
        let reasons = |engine: &Engine| {
            let records: Vec<Parcel> = engine.records().into_values().collect();
            assert!(records.len() == 1 && records[0].flag.is_none(), "{records:?}");
            records[0].reasons.iter().filter(|reason| reason.contains("exempt")).cloned().collect::<Vec<_>>()
        };
        let (value, exempt) = (fact(VALUE, 2026, "517"), fact(EXEMPT, 2026, ""));
        for facts in [[&value, &exempt], [&exempt, &value]] {
            let mut engine = Engine::default();
            facts.into_iter().for_each(|fact| engine.decide(fact));
            assert_eq!(reasons(&engine), ["the county's table of exempt parcels of 2026 has it"]);
            engine.decide(&fact(VALUE, 2027, "517"));
            assert_eq!(reasons(&engine).len(), 1, "the table is a year behind");
            engine.decide(&fact(VALUE, 2028, "517"));
            assert!(reasons(&engine).is_empty(), "the table is two years behind");
        }
    }

    /// Proves that deciding all facts again ends a flag that the rules of this version do not draw, once, and leaves every other record as it is; and that deleted
    /// counts are counts of nothing.
    #[test]
    fn deciding_again_ends_flags_of_earlier_rules() {
        let flag = |is_over: bool| Parcel {
            id: id("16022010070000", "X6"),
            pin: "16022010070000".into(),
            county: "cook-il".into(),
            flag: Some(Box::new(Flag { rule: "X6".into(), statement: "the record shows a fact".into(), is_over, ..Flag::default() })),
            ..Parcel::default()
        };
        let gone = |record: Parcel| {
            let id = record.id.clone();
            <Parcels as Service>::difference(&id, Some((record, Seq(5), Seq(0))), None).and_then(|draft| draft.after)
        };
        assert_eq!(gone(flag(false)), Some(flag(true)));
        assert!(!flag(true).is_listed());
        assert_eq!(gone(flag(true)), None);
        assert_eq!(gone(Parcel { flag: None, ..flag(false) }), None);
        let rows = ParcelsRules::index(&flag_counts("cook-il"), "", Seq(7));
        assert_eq!(rows[0].value.as_deref(), Some(&b"{}"[..]));
    }

    /// Proves that parcels with one mailing address are flagged together, whichever row comes last, and no longer when one of them moves its address; and
    /// that a flag that is over is in no list.
    #[test]
    fn shared_addresses_are_flagged_together() {
        let mut engine = Engine::default();
        let at = |pin: &str, hash: &str| ParcelFact { mailing_hash: hash.into(), ..home(pin) };
        decide(&mut engine, at(PIN, "a"));
        assert_eq!(flags(&engine, PIN), []);
        decide(&mut engine, at(OTHER, "a"));
        for pin in [PIN, OTHER] {
            let expected =
                ("X2".to_owned(), "the record shows a homestead exclusion on 2 parcels with the same mailing address".to_owned());
            assert_eq!(flags(&engine, pin), [expected], "{pin}");
        }
        decide(&mut engine, at(OTHER, "b"));
        assert_eq!((flags(&engine, PIN), flags(&engine, OTHER)), (Vec::new(), Vec::new()));
        let over: Vec<Parcel> = engine.records().into_values().filter(|record| record.flag.is_some()).collect();
        assert_eq!(over.len(), 2);
        assert!(over.iter().all(|record| !record.is_listed()));
    }
}
