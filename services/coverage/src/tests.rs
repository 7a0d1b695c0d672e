//! What callers without a paid key see of leads, in every form in which answers have them.

use crate::record::{BusinessIds, Evidence, JoinedLead, Lead, Mandate};
use feed::free::FreeWindow;
use feed::redaction::Redaction;
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::operations::sample::Row;
use crate::rules::CoverageRules;
use feed::RecordFeed;

const TODAY: Date = Date::constant(2026, 11, 20);

/// A lead with a value in every field.
fn lead() -> Lead {
    let text = |text: &str| text.to_owned();
    Lead {
        id: text("fmcsa:4312345:CARGO:new_carrier:2026-11-18"),
        business: text("BLUE MESA FREIGHT LLC"),
        dba: text("MESA XPRESS"),
        state: text("CO"),
        city: text("PUEBLO"),
        zip: text("81001"),
        trigger: text("new_carrier"),
        trigger_date: text("2026-11-18"),
        source: text("fmcsa"),
        sources: vec![text("fmcsa"), text("sos-co")],
        coverage_line: text("CARGO"),
        mandate: Mandate {
            rule: text("household goods for hire, interstate"),
            rule_id: text("household-goods-cargo"),
            follows: text("CARGO follows from 49 CFR 387.303(c) and crgo_household X"),
            citation: text("49 CFR 387.303(c)"),
            amount: Some(5_000),
            form: text("BMC-34"),
            url: text("https://www.ecfr.gov/current/title-49/section-387.303"),
        },
        basis: text("MANDATED"),
        evidence: vec![Evidence { field: text("classdef"), value: text("AUTHORIZED FOR HIRE"), dataset: text("az4n-8mr2") }],
        ids: BusinessIds { dot: text("4312345"), mc: text("MC1234567"), entity_id: text("20261812345") },
        url: text("https://data.transportation.gov/resource/az4n-8mr2.json?dot_number=4312345"),
        joined: vec![JoinedLead { id: text("sos-co:20261812345:CARGO"), source: text("sos-co"), reason: text("two days apart") }],
        merged_into: String::new(),
        withdrawn: false,
        suppressed: false,
    }
}

/// The free window of an answer about now.
fn window() -> FreeWindow {
    let now = "2026-11-20T12:00:00Z".parse().unwrap();
    FreeWindow::new(now, now)
}

fn redaction() -> Redaction {
    CoverageRules::FEED.source.redaction.unwrap()
}

/// A lead in each form that unpaid answers have of it: in a preview and the sample, as a record, in a version of its history, and in a change.
fn forms(lead: &Lead) -> Vec<Value> {
    let stored = serde_json::to_vec(lead).unwrap();
    let change = json!({ "event": "modified", "seq": 7, "recordedAt": "2026-11-20T12:00:00Z", "record": lead }).to_string();
    let change = redaction().change(change.as_bytes(), window()).unwrap();
    let mut forms = vec![serde_json::to_value(Row::new(lead, TODAY)).unwrap(), redaction().form(&stored).unwrap()];
    forms.extend(redaction().record(&stored, window()).unwrap());
    forms.extend(change.map(|change| serde_json::from_slice::<Value>(&change).unwrap()["record"].take()));
    forms
}

/// Proves that every form of a lead has exactly the fields of the redacted form with the values that everybody may see.
#[test]
fn unpaid_forms_have_no_protected_field() {
    let expected = json!({
        "business": "B*** M*** F*** L***", "state": "CO", "trigger": "new_carrier", "triggerDate": "2026-11-18", "source": "fmcsa",
        "sources": ["fmcsa", "sos-co"], "coverageLine": "CARGO",
        "mandate": { "rule": "household goods for hire, interstate", "citation": "49 CFR 387.303(c)", "amount": 5_000, "form": "BMC-34" },
        "basis": "MANDATED", "withdrawn": false, "merged": false,
    });
    let mut forms = forms(&lead());
    assert_eq!(forms[0].as_object_mut().unwrap().remove("tier"), Some(json!("hot")));
    assert_eq!(forms, vec![expected; 4]);
}

/// Proves that a change and a record of a lead that was taken back are shown to everybody, and say so without the id of another lead; and that a lead
/// outside of the free window is shown in none.
#[test]
fn unpaid_changes_say_what_became_of_a_lead() {
    const OTHER: &str = "fmcsa:4399999:CARGO:new_carrier:2026-11-17";
    let flags = |lead: &Lead| {
        let forms = forms(lead);
        assert!(forms.iter().all(|form| !form.to_string().contains("4399999")), "{forms:?}");
        let flags_of =
            |form: &Value| ["withdrawn", "merged", "suppressed"].map(|name| form.get(name).and_then(Value::as_bool) == Some(true));
        forms.iter().map(flags_of).collect::<Vec<_>>()
    };
    assert_eq!(flags(&Lead { withdrawn: true, ..lead() }), [[true, false, false]; 4]);
    assert_eq!(flags(&Lead { merged_into: OTHER.to_owned(), ..lead() }), [[false, true, false]; 4]);
    assert_eq!(flags(&Lead { suppressed: true, business: String::new(), ..lead() }), [[false, false, true]; 4]);
    let old = Lead { trigger_date: "2026-11-13".to_owned(), withdrawn: true, ..lead() };
    assert_eq!(forms(&old).len(), 2, "neither a record nor a change is shown");
}

/// Proves that the schema of redacted rows names no field that only paying callers see.
#[test]
fn the_schema_of_redacted_rows_has_no_protected_field() {
    let schema = redaction().schema().to_string();
    for name in ["dba", "city", "zip", "ids", "dot", "mc", "entityId", "evidence", "joined", "mergedInto", "follows", "ruleId", "url"] {
        assert!(!schema.contains(&format!("\"{name}\":")), "{name} in {schema}");
    }
    assert!(["withdrawn", "merged", "suppressed"].iter().all(|name| schema.contains(&format!("\"{name}\":"))), "{schema}");
}
