//! Names of persons in the rows of counties' rolls: no stream of parcels stores one, wherever it stands.

use serde_json::{Value, json};

use crate::common::*;

/// The name of a person: that of the family, as it must not be stored, and how a row has it.
const PERSONS: [(&str, &str); 5] = [
    ("KOWALSKI", "JOHN KOWALSKI"),
    ("kowalski", "kowalski, john"),
    ("Garc\u{ed}a", "Mar\u{ed}a Pe\u{f1}a-Garc\u{ed}a"),
    ("BRIEN", "O'BRIEN PATRICK J JR"),
    ("KOWALSKI", "KOWALSKI JOHN & JANE"),
];

/// A row of each stream with a name in every column in which one can stand, next to what else is there, and in columns that are not requested.
fn rows(name: &str) -> Vec<(&'static str, Value)> {
    let (pin, day) = ("16012160010000", "2026-03-02T00:00:00.000");
    let (care_of, after) = (format!("C/O {name} 12 MAIN ST"), format!("12 MAIN ST c/o {name}"));
    let work = format!("REMODEL KITCHEN FOR {name}");
    vec![
        (
            "allegheny.liens",
            json!({"pin": "0028F00194000000", "block_lot": "28F194", "dtd": "DTD-19-000001", "lien_description": "City Tax Lien", "satisfied": "f",
                "last_docket_entry": format!("Suggestion of Bankruptcy {name}"), "assignee": format!("PNC BANK ATTN: {name}"), "owner": name}),
        ),
        (
            "allegheny.assessments",
            json!({"PARID": "0028F00194000000", "MUNICODE": "104", "USECODE": "010", "CLASSDESC": "RESIDENTIAL", "TAXYEAR": 2026.0, "HOMESTEADFLAG": "HOM",
                "PROPERTYHOUSENUM": "0", "PROPERTYADDRESS": care_of, "OWNERDESC": name, "CHANGENOTICEADDRESS1": name, "CHANGENOTICEADDRESS2": care_of,
                "CHANGENOTICEADDRESS3": name, "CHANGENOTICEADDRESS4": "PITTSBURGH PA 15213"}),
        ),
        (
            "allegheny.sales",
            json!({"PARID": "0028F00194000000", "MUNICODE": "104", "SALEDATE": "03-02-2026", "PRICE": 1.0, "SALEDESC": "VALID SALE", "GRANTOR": name}),
        ),
        (
            "allegheny.pli",
            json!({"permit_id": "1", "permit_type": "BUILDING", "issue_date": "2026-03-31", "status": "Issued", "parcel_num": "0028F00194000000",
                "address": after, "work_description": work, "owner_name": name, "contractor_name": name}),
        ),
        ("cook.addresses", json!({"row_id": "1", "pin": pin, "year": "2026", "prop_address_full": after, "mail_address_name": name})),
        ("cook.sales", json!({"row_id": "1", "pin": pin, "sale_date": day, "sale_price": "1", "seller_name": name, "buyer_name": name})),
        ("cook.exempt", json!({"pin": pin, "year": "2026", "class": "EX", "owner_name": name})),
        (
            "cook.permits",
            json!({"row_id": "1", "pin": pin, "date_issued": day, "status": "OPEN", "property_address": care_of, "work_description": work,
                "applicant_name": name, "mailing_address": care_of}),
        ),
        (
            "chicago.permits",
            json!({"id": "1", "permit_": "1", "permit_type": "PERMIT - NEW CONSTRUCTION", "issue_date": day, "pin_list": pin, "street_number": "12",
                "street_name": format!("MAIN ST C/O {name}"), "work_description": work, "contact_1_name": name}),
        ),
    ]
}

fn body(stream: &str, row: &Value) -> String {
    match stream.starts_with("allegheny.") {
        true => json!({"success": true, "result": {"records": [row], "total": 1}}).to_string(),
        false => json!([row]).to_string(),
    }
}

/// Proves that no stream stores the name of a person, in a fact or in a rejected row: as a recipient, an owner, a buyer of a lien, an applicant, or in a text.
#[test]
fn no_name_is_stored() {
    for (family, name) in PERSONS {
        for (stream, row) in rows(name) {
            let page = map(stream, body(stream, &row)).unwrap();
            assert_eq!((page.observations.is_empty(), page.rejects.len()), (false, 0), "{stream}");
            let mut without_pin = row;
            let columns = without_pin.as_object_mut().unwrap();
            let is_reject = ["pin", "PARID"].iter().any(|column| columns.contains_key(*column)) && stream != "allegheny.liens";
            for column in ["pin", "PARID"] {
                columns.get_mut(column).into_iter().for_each(|pin| *pin = json!("x"));
            }
            let rejecting = map(stream, body(stream, &without_pin)).unwrap();
            assert_eq!(rejecting.rejects.len(), usize::from(is_reject), "{stream}");
            let raw: Vec<String> = rejecting.rejects.iter().map(|reject| String::from_utf8_lossy(&reject.raw).into_owned()).collect();
            let stored = format!("{:?} {:?} {raw:?} {:?}", page.observations, rejecting.observations, page.warnings).to_lowercase();
            assert!(!stored.contains(&family.to_lowercase()), "{stream}: {stored}");
        }
    }
}
