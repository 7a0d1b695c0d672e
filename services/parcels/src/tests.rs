//! What callers without a paid key see of parcels, in every form in which answers have them; and that the two faces of the paid tool agree.

use crate::record::flag::Flag;
use crate::record::lien::Lien;
use crate::record::permit::Permit;
use crate::record::{Appeal, Basis, Parcel, ParcelYear, TABLES};
use feed::free::FreeWindow;
use feed::redaction::Redaction;
use operation::context::ServiceSettings;
use schemas::event::FactKind;
use schemas::facts::FactData;
use schemas::facts::permits::PermitFact;
use schemas::suppressed_keys::SuppressedKeys;
use schemas::suppression::RECORD;
use serde_json::{Value, json};

use crate::operations::lead::LeadRow;
use crate::operations::{leads, lien_bundle, pay};
use crate::rules::{ParcelsFact, ParcelsRules};
use crate::service;
use feed::RecordFeed;
use reads::read::{Read, Tool};

/// A parcel with a value in every field, which depends on a number.
fn parcel(number: u64) -> Parcel {
    let text = |name: &str| format!("{name}{number:07}");
    let (amount, pin) = (700_000 + i64::try_from(number).unwrap() * 7, format!("1601216{number:07}"));
    Parcel {
        id: format!("cook-il/{pin}"),
        pin,
        county: "cook-il".into(),
        class: "517".into(),
        class_label: "One-story commercial building".into(),
        township: "West Chicago".into(),
        township_code: "77".into(),
        neighborhood: text("area"),
        address: text("CARTER ST"),
        tier: "high".into(),
        r: Some(1.3072),
        ratio: Some(1.333_3),
        peer_median: Some(1.020_1),
        peer_n: 41,
        peer_level: "neighborhood".into(),
        cod: Some(13.201),
        stage: "board".into(),
        assessed: Some(amount),
        level: Some(0.25),
        implied_market_value: Some(amount * 4),
        basis: Basis {
            kind: "own_sale".into(),
            sale_price: Some(amount + 1),
            sale_date: "2025-05-02".into(),
            doc_no: text("doc"),
            floor_area: Some(1_268),
            value_per_sqft: Some(157.728_7),
            peer_value_per_sqft: Some(120.25),
        },
        last_appeal: Appeal { year: Some(2025), result: text("result") },
        method: "the rule".into(),
        cycle: "2026-board".into(),
        tier_at_close: "high".into(),
        tier_before: "none".into(),
        class_at_close: "517".into(),
        class_before: "517".into(),
        history: vec![ParcelYear { year: 2026, class: "517".into(), mailed: Some(amount + 2), certified: None, board: None }],
        reasons: vec![text("reason")],
        url: text("https://example.com/"),
        permit: None,
        lien: None,
        flag: None,
        suppressed: false,
    }
}

/// The free window of an answer about now.
fn window() -> FreeWindow {
    let now = "2026-11-20T12:00:00Z".parse().unwrap();
    FreeWindow::new(now, now)
}

fn redaction() -> Redaction {
    ParcelsRules::FEED.source.redaction.unwrap()
}

/// A parcel in each form that unpaid answers have of it: in a list and a preview, as a record, in a version of its history, and in a change.
fn forms(parcel: &Parcel) -> Vec<Value> {
    let stored = serde_json::to_vec(parcel).unwrap();
    let change = json!({ "event": "modified", "seq": 7, "recordedAt": "2026-11-20T12:00:00Z", "record": parcel }).to_string();
    let change = redaction().change(change.as_bytes(), window()).unwrap();
    let mut forms = vec![serde_json::to_value(LeadRow::new(parcel.clone(), true)).unwrap(), redaction().form(&stored).unwrap()];
    forms.extend(redaction().record(&stored, window()).unwrap());
    forms.extend(change.map(|change| serde_json::from_slice::<Value>(&change).unwrap()["record"].take()));
    forms
}

/// Proves over many parcels that no form without a paid key has a full PIN, an address, a link or a number by which the parcel can be found, and that all
/// forms are the same.
#[test]
fn unpaid_forms_have_no_protected_value() {
    for number in (0..2_000).map(|step: u64| step * 4_999) {
        let parcel = parcel(number);
        let forms = forms(&parcel);
        assert_eq!(forms.len(), 4);
        assert!(forms.iter().all(|form| *form == forms[0]), "{forms:?}");
        let text = forms[0].to_string();
        let amounts = [parcel.assessed, parcel.implied_market_value, parcel.basis.sale_price, parcel.history[0].mailed];
        let amounts = amounts.map(|amount| amount.unwrap().to_string());
        let texts = [&parcel.pin, &parcel.address, &parcel.neighborhood, &parcel.basis.doc_no, &parcel.url, &parcel.reasons[0]];
        for protected in amounts.iter().chain(texts).map(String::as_str).chain([
            "1.3072",
            "1.3333",
            "1.0201",
            "13.201",
            "2025-05-02",
            "157.7287",
            "120.25",
        ]) {
            assert!(!text.contains(protected), "{protected} in {text}");
        }
        assert!(text.contains(&format!("\"{}*********\"", &parcel.pin[..5])), "{text}");
    }
}

/// Proves that a permit has the same redacted form everywhere, without its full PIN, number, day, amount, description and address.
#[test]
fn unpaid_forms_of_permits() {
    let text = |name: &str| format!("{name}7654321");
    let permit = Permit {
        number: text("number"),
        status: "RECHECK".into(),
        issued: "2024-03-17".into(),
        amount: Some(7_654_321),
        job_code: "COMMERCIAL PERMIT: NEW BUILDING".into(),
        description: text("description"),
        remarks: vec![text("remark")],
        ..Permit::default()
    };
    let whole = Parcel {
        id: "cook-il/16012167654321/permit/number7654321".into(),
        pin: "16012167654321".into(),
        county: "cook-il".into(),
        township: "West Chicago".into(),
        address: text("street"),
        url: text("https://example.com/"),
        permit: Some(Box::new(permit)),
        ..Parcel::default()
    };
    let forms = forms(&whole);
    assert!(forms.len() == 4 && forms.iter().all(|form| *form == forms[0]), "{forms:?}");
    let shown = forms[0].to_string();
    assert!(!shown.contains("7654321") && !shown.contains("2024-03"), "{shown}");
    assert_eq!(
        forms[0]["permit"],
        json!({ "status": "RECHECK", "jobCode": "COMMERCIAL PERMIT: NEW BUILDING", "issuedYear": 2024, "amountFrom": 1_000_000 })
    );
}

/// Proves that the schema of redacted rows names no field that only paying callers see.
#[test]
fn the_schema_of_redacted_rows_has_no_protected_field() {
    let schema = redaction().schema().to_string();
    for name in [
        "id",
        "address",
        "neighborhood",
        "basis",
        "docNo",
        "url",
        "assessed",
        "ratio",
        "history",
        "reasons",
        "impliedMarketValue",
        "floorArea",
    ] {
        assert!(!schema.contains(&format!("\"{name}\":")), "{name} in {schema}");
    }
}

/// Proves that answers name the rule of the rows and the version of the data file that documents show.
#[test]
fn answers_name_their_rule() {
    let rule = crate::operations::rule();
    let version = texts::cook::shown_classes().version;
    assert_eq!(rule, format!("over-assessment/1, value-per-sqft/1, cook_classes/{version}"));
}

/// Proves that the tool and the route that is paid per call cost the same, and that tools that are not built are not listed.
#[test]
fn paid_calls() {
    assert_eq!(leads::Arguments::tool().price, pay::Arguments::definition().price);
    let service = service().service;
    let settings = ServiceSettings::new(String::new(), String::new());
    let pay = service.operations.iter().find(|operation| operation.name == "x402_pay").unwrap();
    for (tool, micros) in pay::PRICES {
        assert_eq!(pay.price_of(&settings, Some(*tool)), Some(*micros));
        let own = service.operations.iter().find(|operation| operation.name == *tool).unwrap();
        assert_eq!(own.price_micros(&settings), Some(*micros));
    }
    assert_eq!(pay::PRICES.iter().map(|(_, micros)| *micros).collect::<Vec<_>>(), [200_000, 500_000, 20_000, 20_000, 20_000]);
    assert_eq!(lien_bundle::NAME, "lien_bundle_report");
    let tools: Vec<&str> = service.operations.iter().filter(|operation| operation.has_tool()).map(|operation| operation.name).collect();
    let tools_of_contract = [
        "construction_window_leads",
        "county_coverage",
        "exemption_flags",
        "lien_bundle_report",
        "overassessment_leads",
        "parcel_overassessment",
        "stalled_surety",
    ];
    for built in tools_of_contract.into_iter().chain(["changes"]) {
        assert!(tools.contains(&built), "{built} in {tools:?}");
    }
}

/// The record of a lien whose assignee is given and stands in its last entry, from the row of the table to the fold.
fn lien_of(assignee: &str) -> Parcel {
    let row = json!({
        "pin": "0028F00194000000", "block_lot": "28F194", "filing_date": "2019-04-02", "tax_year": 2018.0, "dtd": "DTD-19-000777",
        "lien_description": "Allegheny County Tax Lien", "last_docket_entry": format!("Suggestion of Bankruptcy - {assignee}"), "amount": 8_812.53, "assignee": assignee, "satisfied": false,
    });
    let body = json!({ "success": true, "result": { "records": [row], "total": 1 } }).to_string();
    let upstream = upstreams::by_name("allegheny").unwrap();
    let stream = upstream.manifest().streams.iter().find(|stream| stream.name == "allegheny.liens").unwrap();
    let day = jiff::civil::date(2026, 11, 20);
    let cursor = upstream.start(stream, &upstreams::Window { from: None, to: day }, &upstreams::Settings::default());
    let answer = upstreams::Answer { status: 200, link: None, body: body.into() };
    let mut page = upstream.map(stream, &cursor, &answer, day).unwrap();
    let observation = page.observations.remove(0);
    let FactData::Lien(data) = observation.data else { panic!("{observation:?}") };
    let fact = fold::testing::fact(observation.key, FactKind::Observed, 1_795_176_000_000, Some(ParcelsFact::Lien(data)));
    let mut engine: fold::testing::Folded<crate::rules::Parcels> = fold::testing::Folded::default();
    engine.decide(&fact);
    engine.records().into_values().next().unwrap()
}

/// Proves over many names that no form of a lien, whole or redacted, has a part of the name of a natural person, and that the redacted ones have neither PIN,
/// docket nor amount; and that a company is shown to those who pay.
#[test]
fn no_form_of_a_lien_names_a_person() {
    let first = ["JOHN", "Mary-Ann", "Zo\u{eb}", "BILL", "Patricia"];
    let last = ["SMITH", "O'Neil", "de la Cruz", "Kowalski", "NGUYEN", "Banks", "Church-Hill"];
    let names =
        first.iter().flat_map(|first| last.iter().flat_map(move |last| [format!("{last} {first} Q"), format!("{first} {last}, Jr")]));
    // A name also stands next to that of a company.
    let texts = |name: String| {
        let next_to = [format!("PNC BANK ATTN: {name}"), format!("{name} & MTAG SERVICES LLC"), format!("PNC BANK C/O {name}")];
        next_to.into_iter().chain([name.clone()]).map(move |text| (name.clone(), text))
    };
    for (name, text) in names.flat_map(texts) {
        let record = lien_of(&text);
        let whole = serde_json::to_string(&record).unwrap();
        let redacted = forms(&record).iter().map(Value::to_string).collect::<String>();
        assert!(!record.lien.as_ref().unwrap().assignee.is_empty(), "{name}");
        for word in name.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() > 2) {
            assert!(!whole.contains(word) && !redacted.contains(word), "{word} in {whole} or {redacted}");
        }
        for hidden in ["0028F00194000000", "DTD-19-000777", "881253", "8812.53", "28F194"] {
            assert!(!redacted.contains(hidden), "{hidden} in {redacted}");
        }
        assert!(redacted.contains("0028F***********"));
    }
    // The name of a family also is on its own next to that of an institution.
    let alone = |family: &'static str| [format!("{family} HUD"), format!("{family} & PNC BANK")].map(|text| (family, text));
    for (family, text) in last.into_iter().flat_map(alone) {
        let whole = serde_json::to_string(&lien_of(&text)).unwrap();
        for word in family.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() > 2) {
            assert!(!whole.contains(word), "{word} in {whole}");
        }
    }
    let company = lien_of("MTAG SERVICES LLC");
    assert!(serde_json::to_string(&company).unwrap().contains("MTAG SERVICES LLC"));
    assert!(forms(&company).iter().all(|form| !form.to_string().contains("MTAG")));
}

/// The record of a permit that was recorded with a description and an address.
fn permit_of(description: &str, address: &str) -> Parcel {
    let data = PermitFact {
        stream: "cook.permits".into(),
        pin: "16012160010000".into(),
        number: "P1".into(),
        issued: "2026-03-02".into(),
        status: "OPEN".into(),
        assessable: "Assessable".into(),
        description: description.into(),
        address: address.into(),
        ..PermitFact::default()
    };
    let data = Some(ParcelsFact::Permit(Box::new(data)));
    let fact = fold::testing::fact("cook.permits/16012160010000/P1/2026-03-02".to_owned(), FactKind::Observed, 1_795_176_000_000, data);
    let mut engine: fold::testing::Folded<crate::rules::Parcels> = fold::testing::Folded::default();
    engine.decide(&fact);
    engine.records().into_values().find(|record| record.permit.is_some()).unwrap()
}

/// Proves over many names and places of a name that no form of a permit, whole or redacted, has a part of the name of a natural person, and that usual words stay.
#[test]
fn no_form_of_a_permit_names_a_person() {
    for first in ["JOHN", "Mary-Ann", "Zo\u{eb}", "BILL", "Patricia"] {
        for last in ["SMITH", "O'Neil", "de la Cruz", "Kowalski", "NGUYEN", "Wood", "Church-Hill"] {
            for text in [
                format!("REMODEL KITCHEN FOR {first} {last}"),
                format!("OWNER: {last}, {first}. NEW PORCH"),
                format!("{first} {last} RESIDENCE - NEW PORCH"),
            ] {
                let record = permit_of(&text, &format!("12 OAK ST C/O {first} {last}"));
                assert_eq!(record.address, "12 OAK ST");
                let all = serde_json::to_string(&record).unwrap() + &forms(&record).iter().map(Value::to_string).collect::<String>();
                let name = format!("{first} {last}");
                for word in name.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() > 2) {
                    assert!(!all.contains(word), "{word} in {all}");
                }
                assert!(all.contains("KITCHEN") || all.contains("NEW PORCH"), "{all}");
            }
        }
    }
}

/// What readers see of a record when a key is suppressed; `None` if nothing of it is hidden.
fn suppressed(record: &Parcel, key: &str) -> Option<Parcel> {
    let keys = SuppressedKeys::new([(&RECORD, format!("parcels/{key}"))]);
    let hidden = keys.hide(TABLES.view, json!({ "record": record }).to_string().as_bytes()).unwrap()?;
    let mut row: Value = serde_json::from_slice(&hidden).unwrap();
    Some(serde_json::from_value(row["record"].take()).unwrap())
}

/// Proves that a parcel is hidden with its permits, liens and flags, by its PIN and by the id of its record; that the id of one of these hides that one; and that
/// nothing of another parcel is hidden.
#[test]
fn a_suppressed_parcel_hides_its_records() {
    const PIN: &str = "0028F00194000000";
    let lien = lien_of("MTAG SERVICES LLC");
    let flag = Flag { rule: "X3".into(), owner: "CORPORATION".into(), ..Flag::default() };
    let flag = Parcel { id: format!("flag/{PIN}/X3"), pin: PIN.into(), flag: Some(Box::new(flag)), ..Parcel::default() };
    let cook = parcel(7);
    let permit = Permit { number: "P1".into(), ..Permit::default() };
    let permit = Parcel { id: format!("{}/permit/P1", cook.id), permit: Some(Box::new(permit)), ..cook.clone() };
    for (record, parcel) in [
        (&lien, "allegheny-pa/0028F00194000000"),
        (&flag, "allegheny-pa/0028F00194000000"),
        (&cook, cook.id.as_str()),
        (&permit, cook.id.as_str()),
    ] {
        for key in [record.pin.as_str(), parcel, record.id.as_str()] {
            let hidden = suppressed(record, key).unwrap();
            let has_nothing = hidden.lien.as_deref().is_none_or(|lien| *lien == Lien::default())
                && hidden.flag.as_deref().is_none_or(|flag| *flag == Flag::default())
                && hidden.permit.as_deref().is_none_or(|permit| *permit == Permit::default());
            assert!(hidden.suppressed && has_nothing, "{key}: {hidden:?}");
            assert_eq!((&hidden.pin, &*hidden.address, &*hidden.url, &hidden.basis), (&record.pin, "", "", &Basis::default()), "{key}");
            assert_eq!(hidden.reasons, [""; 0], "{key}");
        }
        for other in ["0028F00195000000", "allegheny-pa/0028F00195000000", "cook-il/0028F00194000000", "16012160000008", "allegheny-pa"] {
            assert_eq!(suppressed(record, other), None, "{other}");
        }
    }
    // The id of a lien hides that lien alone.
    assert_eq!((suppressed(&flag, &lien.id), suppressed(&cook, &permit.id)), (None, None));
    let unmatched = Parcel { pin: String::new(), ..lien };
    assert_eq!(suppressed(&unmatched, PIN), None);
    assert!(suppressed(&unmatched, &unmatched.id).is_some());
}
