//! That each lead names the record from which it follows and the rule, for every source, trigger and line.

use super::*;

/// The fields of the numbers of a record.
const NUMBERS: &[&str] =
    &["accountnumber", "corp_number", "docket_number", "dos_id", "dot_number", "entityid", "policy_no", "registry_number", "usdot_number"];
/// The fields of the day of a trigger.
const DAYS: &[&str] = &[
    "add_date",
    "cancl_effective_date",
    "date_registration",
    "effective_date",
    "entityformdate",
    "filing_date",
    "registry_date",
    "status_change_date",
];

/// Fails unless leads name their records and rules.
fn assert_named(leads: &[Lead]) {
    for lead in leads {
        let has = |fields: &[&str]| lead.evidence.iter().any(|fact| fields.contains(&fact.field.as_str()));
        assert!(has(NUMBERS) && has(DAYS), "{lead:?}");
        let is_filled = |fact: &Evidence| [&fact.field, &fact.value, &fact.dataset].into_iter().all(|text| !text.is_empty());
        assert!(lead.evidence.iter().all(is_filled), "{lead:?}");
        let fields: BTreeSet<(&str, &str)> = lead.evidence.iter().map(|fact| (fact.field.as_str(), fact.value.as_str())).collect();
        assert_eq!(fields.len(), lead.evidence.len(), "each fact once: {lead:?}");
        let Mandate { rule, rule_id, follows, citation, url, .. } = &lead.mandate;
        assert!(!rule.is_empty() && !rule_id.is_empty() && follows.contains(rule.as_str()), "{lead:?}");
        assert!(!follows.contains("the registration"), "{follows}");
        let is_cited = !citation.is_empty() && !url.is_empty();
        assert!(is_cited || ["LIKELY", "POSSIBLE"].contains(&lead.basis.as_str()), "{lead:?}");
    }
}

/// Proves that each lead of a register names its record and its rule, also one of a line for which no fact but the registration is needed.
#[test]
fn leads_of_registers_name_their_records() {
    for (stream, entity_type, place) in [
        ("sos.co", "DLLC", "CO"),
        ("sos.ct", "LLC", "CT"),
        ("sos.ia", "DOMESTIC NON PROFIT", ""),
        ("sos.ny", "DOMESTIC LIMITED LIABILITY COMPANY", ""),
        ("sos.or", "DOMESTIC BUSINESS CORPORATION", ""),
    ] {
        for is_foreign in [false, true] {
            let filed = if is_foreign { "APPLICATION OF AUTHORITY" } else { "ARTICLES OF ORGANIZATION" };
            let data = BusinessFact {
                stream: stream.into(),
                entity_type: entity_type.into(),
                is_foreign,
                jurisdiction: if is_foreign && !place.is_empty() { "DE".into() } else { place.into() },
                event: if stream == "sos.ny" { "260101000001".into() } else { String::new() },
                filing_type: if stream == "sos.ny" { filed.into() } else { String::new() },
                ..colorado("7000001", "Copper Mug Brewery LLC", "2026-11-16")
            };
            let leads = engine(&[of_entity(&format!("{stream}/7000001"), data)]).leads();
            let lines: Vec<&str> = leads.iter().map(|lead| lead.coverage_line.as_str()).collect();
            assert!(lines.contains(&"GENERAL_LIABILITY") && lines.contains(&"WORKERS_COMP") != is_foreign, "{lines:?}");
            assert_named(&leads);
        }
    }
}

/// Proves the evidence and the sentence of the lines that follow from a registration alone.
#[test]
fn a_registration_alone_is_evidence() {
    let leads = engine(&[co(colorado("20261812345", "Blue Mesa LLC", "2026-11-16"))]).leads();
    let lead_of = |line: &str| leads.iter().find(|lead| lead.coverage_line == line).unwrap();
    let expected = [("entitytype", "DLLC"), ("entityid", "20261812345"), ("entityformdate", "2026-11-16")];
    for line in ["GENERAL_LIABILITY", "WORKERS_COMP"] {
        let evidence: Vec<(&str, &str)> = lead_of(line).evidence.iter().map(|fact| (fact.field.as_str(), fact.value.as_str())).collect();
        assert_eq!(evidence, expected);
        assert!(lead_of(line).evidence.iter().all(|fact| fact.dataset == "4ykn-tg5h"));
    }
    let facts = "entitytype DLLC, entityid 20261812345, entityformdate 2026-11-16";
    assert_eq!(
        lead_of("GENERAL_LIABILITY").mandate.follows,
        format!("GENERAL_LIABILITY follows from the rule \"a new business: no statute demands it\" and {facts}")
    );
    assert_eq!(lead_of("WORKERS_COMP").mandate.follows, format!("WORKERS_COMP follows from C.R.S. 8-44-101 (if it hires) and {facts}"));
}

/// Proves that each lead of a carrier names its record and its rule: a new carrier, an authority, a lapse, and one that is merged with a company's.
#[test]
fn leads_of_carriers_name_their_records() {
    let several = CarrierFact { cargo: vec!["crgo_household".into()], total_drivers: "3".into(), ..carrier() };
    for data in [
        several,
        CarrierFact { hm_ind: "Y".into(), ..carrier() },
        CarrierFact { classdef: "PRIVATE PROPERTY".into(), ..carrier() },
        CarrierFact { carrier_operation: "C".into(), ..carrier() },
    ] {
        let leads = engine(&[census(data)]).leads();
        assert!(!leads.is_empty());
        assert_named(&leads);
    }
    let granted = engine(&[looked_up(), authority("Broker of Property (Except Household Goods)", "Active", "GRANTED")]).leads();
    let evidence: Vec<&str> = granted[0].evidence.iter().map(|fact| fact.field.as_str()).collect();
    assert_eq!(evidence, ["op_auth_type", "usdot_number", "docket_number", "op_auth_status", "reason", "status_change_date"]);
    let lapsed = engine(&[looked_up(), cancellation("2026-11-25"), on_file("0")]).leads();
    let evidence: Vec<&str> = lapsed[0].evidence.iter().map(|fact| fact.field.as_str()).collect();
    assert_eq!(evidence, ["ins_form_code", "min_cov_amount", "usdot_number", "policy_no", "cancl_effective_date", "bipd_file"]);
    let merged = engine(&[census(carrier()), co(colorado("20261812345", "Blue Mesa Freight, L.L.C.", "2026-11-16"))]).leads();
    let both = merged.iter().find(|lead| lead.sources.len() == 2).unwrap();
    let numbers = ["dot_number", "entityid"].map(|field| both.evidence.iter().filter(|fact| fact.field == field).count());
    assert_eq!(numbers, [1, 1], "{both:?}");
    assert_named(&[granted, lapsed, merged].concat());
}

/// Proves that an amount of a cancelled filing that no paragraph names is not shown, since it can be in another unit.
#[test]
fn unknown_amounts_of_lapses_are_not_shown() {
    let Some(CoverageFact::Carrier(row)) = on_file("0").data else { panic!("no carrier") };
    let row = of_carrier("fmcsa.cancellations/on_file/4312345|MC1234567|X", CarrierFact { bipd_required: "750".into(), ..*row });
    let lapsed = engine(&[looked_up(), cancellation("2026-11-25"), row]).short();
    assert_eq!(lapsed, ["AUTO_LIABILITY_BIPD MANDATED insurance_lapse 2026-11-25 fmcsa -"]);
}
