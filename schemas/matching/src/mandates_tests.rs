//! Tests of the lines of insurance that follow from facts: each row of the contract's table, what must hold for every rule, and hostile facts.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::*;

const CENSUS: &str = "az4n-8mr2";

fn facts(dataset: &str, values: &[(&str, &str)]) -> Vec<Fact> {
    values.iter().map(|(field, value)| Fact { field: (*field).into(), value: (*value).into(), dataset: dataset.into() }).collect()
}

fn short(lines: &[Line]) -> Vec<String> {
    let amount = |line: &Line| line.mandate.amount.map_or_else(|| "-".to_owned(), |amount| amount.to_string());
    lines
        .iter()
        .map(|line| format!("{} {} {} {}", line.line, line.basis.as_str(), amount(line), line.mandate.citation).trim_end().to_owned())
        .collect()
}

fn carrier(values: &[(&str, &str)]) -> Vec<String> {
    short(&lines("new_carrier", "CO", &facts(CENSUS, values)))
}

const FOR_HIRE: [(&str, &str); 4] =
    [("carrier_operation", "A"), ("classdef", "AUTHORIZED FOR HIRE"), ("truck_units", "2"), ("hm_ind", "N")];

fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    FOR_HIRE.iter().filter(|(field, _)| !more.iter().any(|(other, _)| other == field)).chain(more).copied().collect()
}

/// Proves the rows of the contract's table about carriers.
#[test]
fn carriers() {
    let liability = "AUTO_LIABILITY_BIPD MANDATED 750000 49 CFR 387.9; 387.303";
    assert_eq!(carrier(&FOR_HIRE), [liability, "CARGO LIKELY -"]);
    assert_eq!(carrier(&with(&[("crgo_household", "X")])), [liability, "CARGO MANDATED 5000 49 CFR 387.303(c)"]);
    assert_eq!(carrier(&with(&[("hm_ind", "Y")]))[0], "AUTO_LIABILITY_BIPD MANDATED - 49 CFR 387.9; 387.303");
    let hazmat = lines("new_carrier", "CO", &facts(CENSUS, &with(&[("hm_ind", "Y")])));
    assert!(hazmat[0].mandate.rule.contains("1,000,000 to 5,000,000 by class"));
    assert_eq!(carrier(&with(&[("classdef", "PRIVATE PROPERTY")])), ["AUTO_LIABILITY_BIPD POSSIBLE -"]);
    assert_eq!(carrier(&with(&[("classdef", "AUTHORIZED FOR HIRE;PRIVATE PROPERTY")])), [liability, "CARGO LIKELY -"]);
}

/// Proves the rows that the regulation adds: passengers, carriage without authority, within one state, hazardous materials of a private carrier, and a
/// carrier that reports no truck.
#[test]
fn other_carriers() {
    let passengers = "AUTO_LIABILITY_BIPD MANDATED - 49 CFR 387.33; 387.303";
    assert_eq!(carrier(&with(&[("truck_units", "0"), ("bus_units", "1")])), [passengers]);
    assert_eq!(carrier(&with(&[("truck_units", ""), ("crgo_passengers", "X")])), [passengers]);
    assert_eq!(carrier(&with(&[("classdef", "EXEMPT FOR HIRE")]))[0], "AUTO_LIABILITY_BIPD MANDATED 750000 49 CFR 387.9");
    assert_eq!(carrier(&with(&[("truck_units", "0")])), ["AUTO_LIABILITY_BIPD LIKELY - 49 CFR 387.9; 387.303"]);
    assert_eq!(carrier(&with(&[("carrier_operation", "C")])), ["AUTO_LIABILITY_BIPD POSSIBLE -"]);
    // Within one state the regulation demands it for hazardous materials in bulk only, which no field shows.
    let bulk = "AUTO_LIABILITY_BIPD CONDITIONAL - 49 CFR 387.3(c)(2); 387.9";
    assert_eq!(carrier(&with(&[("carrier_operation", "B"), ("hm_ind", "Y")])), [bulk]);
    assert_eq!(carrier(&with(&[("classdef", "PRIVATE PROPERTY"), ("hm_ind", "Y")])), ["AUTO_LIABILITY_BIPD MANDATED - 49 CFR 387.9"]);
    assert_eq!(carrier(&with(&[("total_drivers", "2")]))[2], "WORKERS_COMP LIKELY - C.R.S. 8-44-101");
    let elsewhere = lines("new_carrier", "WA", &facts(CENSUS, &with(&[("total_drivers", "2")])));
    assert_eq!((short(&elsewhere)[2].as_str(), elsewhere[2].mandate.rule.contains("state law")), ("WORKERS_COMP LIKELY -", true));
    assert_eq!(carrier(&with(&[("total_drivers", "1")])).len(), 2);
    assert!(carrier(&[("carrier_operation", "A"), ("classdef", "U. S. MAIL")]).is_empty());
}

/// Proves the lines of the carriers that were labelled by reading the regulation.
#[test]
fn labelled_carriers() {
    let cases: Vec<&str> = include_str!("../data/carrier_cases.txt").lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(cases.len(), 60);
    for case in cases {
        let [operation, class, trucks, buses, hazmat, flags, liability, cargo] =
            case.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let mut values =
            vec![("carrier_operation", operation), ("classdef", class), ("truck_units", trucks), ("bus_units", buses), ("hm_ind", hazmat)];
        // A field without a value is left out, as the dataset does.
        values.retain(|(_, value)| !value.is_empty());
        values.extend(flags.split_whitespace().map(|flag| (flag, "X")));
        let found = lines("new_carrier", "CO", &facts(CENSUS, &values));
        let shown = |name: &str| {
            let shown_line = |line: &Line| {
                let amount = line.mandate.amount.map_or("-".to_owned(), |amount| amount.to_string());
                format!("{} {amount}", &line.basis.as_str()[..1])
            };
            found.iter().find(|line| line.line == name).map_or("-".to_owned(), shown_line)
        };
        assert_eq!((shown("AUTO_LIABILITY_BIPD"), shown("CARGO")), (liability.to_owned(), cargo.to_owned()), "{case}");
        assert!(found.iter().all(|line| line.basis != Basis::Mandated || line.mandate.citation.starts_with("49 CFR 387.")), "{case}");
    }
}

/// Proves the lines of carriers, authorities and cancelled filings at the edges of the regulation, each with the paragraph that decides.
#[test]
fn edges_of_the_regulation() {
    let cases: Vec<&str> = include_str!("../data/regulation_cases.txt").lines().filter(|line| !line.starts_with('#')).collect();
    assert!(cases.len() >= 140, "{}", cases.len());
    for case in cases {
        let [trigger, values, expected, _paragraph] = case.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let values: Vec<(&str, &str)> = values.split(',').map(|value| value.trim().split_once('=').unwrap()).collect();
        let found = lines(trigger, "CO", &facts(CENSUS, &values));
        let shown_line = |line: &Line| {
            let amount = line.mandate.amount.map_or("-".to_owned(), |amount| amount.to_string());
            format!("{} {} {amount} {}", line.line, &line.basis.as_str()[..1], line.mandate.form).trim_end().to_owned()
        };
        let shown: Vec<String> = found.iter().map(shown_line).collect();
        let expected: Vec<&str> = expected.split(',').map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(shown, expected, "{case}");
        assert!(found.iter().all(|line| line.basis > Basis::Conditional || line.mandate.citation.starts_with("49 CFR 387.")), "{case}");
    }
}

/// Proves the rows about authority: broker, freight forwarder, property, household goods, passengers.
#[test]
fn authorities() {
    let authority = |kind: &str| short(&lines("authority_granted", "CO", &facts("yu5v-wbh6", &[("op_auth_type", kind)])));
    assert_eq!(authority("Broker of Property (Except Household Goods)"), ["SURETY_BOND MANDATED 75000 49 CFR 387.307"]);
    assert_eq!(authority("Broker of Household Goods"), ["SURETY_BOND MANDATED 75000 49 CFR 387.307"]);
    assert_eq!(authority("Freight Forwarder"), ["SURETY_BOND MANDATED 75000 49 CFR 387.403(c); 387.405; 387.307"]);
    let property = "AUTO_LIABILITY_BIPD MANDATED 750000 49 CFR 387.9; 387.303";
    assert_eq!(authority("Motor Carrier of Property (Except Household Goods)"), [property, "CARGO LIKELY -"]);
    assert_eq!(authority("Motor Carrier of Household Goods"), [property, "CARGO MANDATED 5000 49 CFR 387.303(c)"]);
    assert_eq!(authority("Motor Carrier of Passengers"), ["AUTO_LIABILITY_BIPD MANDATED - 49 CFR 387.33; 387.303"]);
    let bond = &lines("authority_granted", "CO", &facts("yu5v-wbh6", &[("op_auth_type", "Broker of Property")]))[0];
    assert_eq!((bond.mandate.form.as_str(), bond.rule_id), ("BMC-84/85", "authority-broker"));
}

/// Proves the row about cancelled filings, with the amount that is required if it is known.
#[test]
fn lapses() {
    let lapse = |values: &[(&str, &str)]| short(&lines("insurance_lapse", "CO", &facts("3uet-3z4i", values)));
    assert_eq!(lapse(&[("ins_form_code", "BMC-91X")]), ["AUTO_LIABILITY_BIPD MANDATED - 49 CFR 387.303; 387.313"]);
    assert_eq!(
        lapse(&[("ins_form_code", "91X"), ("min_cov_amount", "750000")]),
        ["AUTO_LIABILITY_BIPD MANDATED 750000 49 CFR 387.303; 387.313"]
    );
    assert_eq!(lapse(&[("ins_form_code", "BMC-84")]), ["SURETY_BOND MANDATED 75000 49 CFR 387.307"]);
    assert_eq!(
        lapse(&[("ins_form_code", "34"), ("op_auth_type", "Motor Carrier of Household Goods")]),
        ["CARGO MANDATED 5000 49 CFR 387.303(c); 387.313"]
    );
    // Others than carriers of household goods may file it, but need not.
    assert_eq!(lapse(&[("ins_form_code", "34")]), ["CARGO CONDITIONAL 5000 49 CFR 387.303(c); 387.313"]);
    assert!(lapse(&[("ins_form_code", "BMC-35")]).is_empty());
    // A rule says what is to be on file and what is on record, and never that a business has no insurance.
    for form in ["BMC-91X", "34", "BMC-84"] {
        let lines = lines("insurance_lapse", "CO", &facts("3uet-3z4i", &[("ins_form_code", form)]));
        let rule = &lines[0].mandate.rule;
        assert!(rule.contains("to be on file") && rule.contains("on record") && !rule.contains("no other"), "{rule}");
    }
}

/// Proves the rows about registrations: a new company, a word in its name with the word as evidence, professional and nonprofit companies, and a company
/// of another state.
#[test]
fn registrations() {
    let formed = |state: &str, values: &[(&str, &str)]| lines("entity_formed", state, &facts("4ykn-tg5h", values));
    let plain = ["WORKERS_COMP CONDITIONAL - C.R.S. 8-44-101", "GENERAL_LIABILITY LIKELY -"];
    assert_eq!(short(&formed("CO", &[("entitytype", "DLLC"), ("name", "Blue Mesa LLC")])), plain);
    assert_eq!(formed("CO", &[("entitytype", "DLLC")])[0].mandate.rule, "if it hires");
    let brewery = formed("CO", &[("entitytype", "DLLC"), ("name", "Copper Mug Brewery LLC")]);
    assert_eq!(short(&brewery), [plain[0], plain[1], "LIQUOR_LIABILITY LIKELY -"]);
    assert_eq!(brewery[2].evidence, facts("4ykn-tg5h", &[("name", "brewery")]));
    assert_eq!(short(&formed("WA", &[])), [plain[1]]);
    assert_eq!(short(&formed("CO", &[("entitytype", "DPC")]))[2], "PROFESSIONAL_LIABILITY LIKELY -");
    assert_eq!(short(&formed("NY", &[("entity_type", "Domestic Not-for-Profit Corporation")]))[2], "DIRECTORS_OFFICERS POSSIBLE -");
    assert_eq!(short(&formed("CO", &[("name", "Mesa Trucking LLC")]))[0], "AUTO_LIABILITY_BIPD LIKELY -");
    // A word within another is none.
    assert_eq!(short(&formed("CO", &[("name", "Barber Publishing LLC")])), plain);
    assert_eq!(
        short(&lines("foreign_registration", "NY", &facts("k4vb-judh", &[("name", "Brewery LLC")]))),
        ["GENERAL_LIABILITY POSSIBLE -"]
    );
}

/// Proves that signs, case and blanks do not matter where values are compared, that classes in a carrier's own words are not read, and that numbers are
/// compared as numbers.
#[test]
fn values_are_compared_without_signs() {
    for (value, expected) in [
        ("Private(Property)", "PRIVATE PROPERTY"),
        (" Auth. For-Hire ", "AUTH FOR HIRE"),
        ("FED. GOV'T", "FED GOVT"),
        ("U. S. MAIL", "U S MAIL"),
        ("--", ""),
        ("\u{fb01}", "FI"),
    ] {
        assert_eq!(compared(value), expected);
    }
    for (value, expected) in [
        ("AUTHORIZED FOR HIRE;OTHER-FARMER", "AUTHORIZED FOR HIRE"),
        ("PRIVATE PROPERTY; Other: Gov't work ;EXEMPT FOR HIRE", "PRIVATE PROPERTY;EXEMPT FOR HIRE"),
        ("OTHER", ""),
        ("OTHERWISE", "OTHERWISE"),
    ] {
        assert_eq!(compared_classes(value), expected);
    }
    let number = |value: &str| ComparableFact::new(&Fact { value: value.to_owned(), ..Fact::default() }).number();
    assert_eq!(["2", " 002 ", "2.0", "2.", "0"].map(number), [Some(2), Some(2), Some(2), Some(2), Some(0)]);
    assert_eq!(["", "-1", "2.5", "two", "1,000", "99999999999999999999"].map(number), [None; 6]);
}

/// Proves that evidence is what the rule read: the value as the dataset has it, each fact once; also the fact with the amount.
#[test]
fn evidence() {
    let found = lines("new_carrier", "CO", &facts(CENSUS, &FOR_HIRE));
    assert_eq!(found[0].evidence, facts(CENSUS, &FOR_HIRE));
    let filing = [("ins_form_code", "BMC-91X"), ("min_cov_amount", "750000")];
    assert_eq!(lines("insurance_lapse", "CO", &facts("3uet-3z4i", &filing))[0].evidence, facts("3uet-3z4i", &filing));
    assert_eq!(
        found[0].mandate,
        Mandate {
            rule: "for-hire interstate property, 10,001 lb or more".into(),
            citation: "49 CFR 387.9; 387.303".into(),
            amount: Some(750_000),
            form: "BMC-91/91X".into(),
            url: "https://www.ecfr.gov/current/title-49/section-387.303".into(),
        }
    );
}

/// Proves the rules of the file: known lines and triggers, a citation with an address for each line that a rule demands, no demand by a word of a name, and
/// values in the form in which they are compared.
#[test]
fn the_file_is_sound() {
    assert_eq!(RULES.check(), Ok(()));
    assert!(version() > 0 && shown().entries.len() == RULES.entries.len());
    for rule in &RULES.entries {
        assert!(LINES.contains(&rule.line.as_str()), "{}", rule.id);
        assert!(!rule.triggers.is_empty() && rule.triggers.iter().all(|trigger| TRIGGERS.contains(&trigger.as_str())), "{}", rule.id);
        let is_cited = !rule.citation.is_empty() && rule.url.starts_with("https://");
        assert!(is_cited || rule.basis > Basis::Conditional, "{}: a demand is cited", rule.id);
        assert!(
            rule.basis > Basis::Conditional || rule.when.iter().all(|condition| condition.words.is_empty()),
            "{}: a word demands nothing",
            rule.id
        );
        assert!(rule.basis != Basis::Mandated || !rule.when.is_empty(), "{}: a fact is needed", rule.id);
        let is_read = rule.when.iter().any(|condition| condition.fields == [rule.amount_field.clone()] && !condition.is.is_empty());
        assert!(rule.amount_field.is_empty() || is_read, "{}: an amount is one of those that the rule reads", rule.id);
        for condition in &rule.when {
            let kinds = [&condition.is, &condition.is_not, &condition.has, &condition.has_not, &condition.words]
                .iter()
                .filter(|list| !list.is_empty())
                .count();
            let numbers = [condition.at_least.is_some(), condition.at_most.is_some(), condition.is_unknown];
            let numbers = numbers.into_iter().filter(|is_set| *is_set).count();
            assert_eq!(kinds + numbers, 1, "{}: one kind of condition", rule.id);
            assert!(!condition.fields.is_empty(), "{}", rule.id);
            let values = [&condition.is, &condition.is_not, &condition.has, &condition.has_not, &condition.words];
            assert!(values.into_iter().flatten().all(|value| *value == compared(value)), "{}", rule.id);
            assert!(condition.words.iter().all(|word| all_words(word) == [word.clone()]), "{}", rule.id);
        }
    }
    assert!(LINES.iter().all(|line| RULES.entries.iter().any(|rule| rule.line == *line)), "each line has a rule");
    assert!(TRIGGERS.iter().all(|trigger| RULES.entries.iter().any(|rule| rule.triggers.contains(&(*trigger).to_owned()))));
}

/// Proves what holds for any facts: each line once and in order, a demand has a citation and evidence, the order of facts does not matter to which lines
/// follow, and hostile values are only compared.
#[test]
fn invariants() {
    const FIELDS: &[&str] = &[
        "carrier_operation",
        "classdef",
        "truck_units",
        "bus_units",
        "hm_ind",
        "crgo_household",
        "op_auth_type",
        "ins_form_code",
        "name",
        "entitytype",
    ];
    let long = "BREWERY ".repeat(2_000);
    let values = [
        "A",
        "B",
        "Y",
        "N",
        "X",
        "2",
        "92901",
        "-1",
        "AUTHORIZED FOR HIRE",
        "PRIVATE PROPERTY",
        "BROKER",
        "BMC-91",
        "DPC",
        "",
        "\u{301}",
        "Acme Brewery",
        &long,
    ];
    let mut random = StdRng::seed_from_u64(11);
    let mut mandated = 0;
    for _ in 0..20_000 {
        let count = random.random_range(0..8);
        let mut all: Vec<Fact> = Vec::new();
        for _ in 0..count {
            let field = *FIELDS.choose(&mut random).unwrap();
            if !all.iter().any(|fact| fact.field == field) {
                all.push(Fact { field: field.into(), value: (*values.choose(&mut random).unwrap()).into(), dataset: "d".into() });
            }
        }
        let trigger = *TRIGGERS.choose(&mut random).unwrap();
        let found = lines(trigger, "CO", &all);
        let order: Vec<usize> = found.iter().map(|line| LINES.iter().position(|known| *known == line.line).unwrap()).collect();
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
        for line in found.iter().filter(|line| line.basis == Basis::Mandated) {
            assert!(!line.mandate.citation.is_empty() && !line.evidence.is_empty(), "{line:?}");
            mandated += 1;
        }
        let backwards: Vec<Fact> = all.iter().rev().cloned().collect();
        assert_eq!(lines(trigger, "CO", &backwards), found);
    }
    assert!(mandated > 50, "{mandated} demands were drawn");
    assert!(lines("", "", &[]).is_empty() && lines("new_carrier", "", &vec![Fact::default(); 10_000]).is_empty());
}
