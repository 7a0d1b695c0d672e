//! The businesses that have a part to play: one for each peculiarity of a dataset. Days are counted from the first day of the simulation.

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::json::joined;
use simulated_world::world::{World, compact};

use super::register::{Register, stamp};

/// The rows of a dataset that are published by now.
pub(super) fn rows(world: &World, register: Register) -> Vec<Value> {
    let all: Vec<(i64, Value)> = match register {
        Register::Census => census(world),
        Register::Authority => authority(world),
        Register::Cancellations => cancellations(world),
        Register::Filings => filings(world),
        Register::OnFile => on_file(),
        Register::Colorado => colorado(world),
        Register::Connecticut => vec![(-6, connecticut(world))],
        Register::NewYork => new_york(world),
        Register::Oregon => Vec::new(),
    };
    all.into_iter().filter(|(day, _)| at(world, *day) <= world.today).map(|(_, row)| row).collect()
}

/// A day of the simulation.
fn at(world: &World, day: i64) -> Date {
    world.first_today.saturating_add(day.days())
}

fn carrier(world: &World, day: i64, dot: &str, name: &str, more: Value) -> (i64, Value) {
    let row = json!({
        "dot_number": dot, "legal_name": name, "business_org_desc": "Limited Liability Company", "phy_street": "312 E CARTER ST", "phy_city": "DENVER",
        "phy_state": "CO", "phy_zip": "80202", "phy_country": "US", "phone": "5555550100", "status_code": "A", "add_date": compact(at(world, day)),
        "carrier_operation": "A", "classdef": "AUTHORIZED FOR HIRE", "hm_ind": "N", "power_units": "2", "truck_units": "2", "total_drivers": "1",
        "prior_revoke_flag": "N",
    });
    (day, joined(row, more))
}

fn census(world: &World) -> Vec<(i64, Value)> {
    let carrier_on = |day, dot, name, more| carrier(world, day, dot, name, more);
    let old = |dot, name| {
        let (_, row) = carrier(world, -900, dot, name, json!({"docket1prefix": "MC", "docket1": "900001"}));
        (-900, row)
    };
    vec![
        // Also in the register of Colorado, two days before.
        carrier_on(-2, "4312345", "BLUE MESA FREIGHT LLC", json!({"docket1prefix": "MC", "docket1": "1234567"})),
        carrier_on(-3, "4312346", "CARRYALL MOVERS LLC", json!({"crgo_household": "X", "phy_street": "88 PACK RD"})),
        carrier_on(-3, "4312347", "TANKER TRAIL LLC", json!({"hm_ind": "Y", "phy_street": "4 DEPOT RD"})),
        carrier_on(-3, "4312348", "PRIVATE ORCHARD LLC", json!({"classdef": "PRIVATE PROPERTY", "phy_street": "7 APPLE WAY"})),
        carrier_on(
            -3,
            "4312349",
            "TWO CLASSES LLC",
            json!({"classdef": "AUTHORIZED FOR HIRE;PRIVATE PROPERTY", "phy_street": "9 SPLIT RD"}),
        ),
        carrier_on(
            -3,
            "4312350",
            "NONSENSE FLEET LLC  ",
            json!({"power_units": "92901", "truck_units": "92901", "total_drivers": "110113"}),
        ),
        carrier_on(-3, "4312351", "CHAMELEON HAULING LLC", json!({"prior_revoke_flag": "Y", "prior_revoke_dot_number": "00344554"})),
        carrier_on(
            -3,
            "4312352",
            "PAT EXAMPLE",
            json!({"business_org_desc": "Individual (Sole Proprietor)", "phy_street": "5 HOME LN", "phy_zip": "802031234"}),
        ),
        carrier_on(-3, "4312353", "NORTHERN LIGHTS TRANSPORT INC", json!({"phy_state": "ON", "phy_country": "CA", "phy_zip": "K1A 0B1"})),
        carrier_on(1, "4312354", "LATER FREIGHT LLC", json!({"phy_street": "1 LATER ST"})),
        old("3100001", "LAPSED LINES LLC"),
        old("3100002", "REPLACED ROADWAYS LLC"),
        old("3100003", "BROKERAGE BRIGHT LLC"),
        old("3100004", "REINSTATED RIGS LLC"),
        old("3100005", "STILL ON FILE LLC"),
        old("3100006", "TWICE CANCELLED LLC"),
    ]
}

fn authority(world: &World) -> Vec<(i64, Value)> {
    let docket_on = |day: i64, dot: &str, docket: &str, kind: &str, status: &str, reason: &str| {
        let row = json!({
            "usdot_number": dot, "docket_number": docket, "op_auth_type": kind, "op_auth_status": status, "reason": reason,
            "status_change_date": compact(at(world, day)),
        });
        (day, row)
    };
    const PROPERTY: &str = "Motor Carrier of Property (Except Household Goods)";
    const BROKER: &str = "Broker of Property (Except Household Goods)";
    vec![
        // The number of the carrier is padded in some rows.
        docket_on(-4, "03100003", "MC900003", BROKER, "Inactive", "PENDING"),
        docket_on(-2, "3100003", "MC-900003", BROKER, "Active", "GRANTED"),
        docket_on(-2, "3100004", "MC900004", PROPERTY, "Active", "REINSTATED"),
        docket_on(2, "3100003", "MC900003", BROKER, "Inactive", "REVOKED"),
    ]
}

fn cancellations(world: &World) -> Vec<(i64, Value)> {
    let policy_until = |published: i64, cancelled: i64, dot: &str, policy: &str| {
        let row = json!({
            "usdot_number": dot, "docket_number": "MC900001", "ins_form_code": "BMC-91X", "ins_type_code": "1", "policy_no": policy,
            "insurance_company_name": "Example Mutual", "effective_date": compact(at(world, cancelled - 365)),
            "cancl_effective_date": compact(at(world, cancelled)), "filing_status_reason": "CANCEL", "max_cov_amount": "750000.00",
        });
        (published, row)
    };
    vec![
        policy_until(-2, 5, "3100001", "S-LHMI2518-00"),
        policy_until(-2, 5, "3100002", "OLD-77"),
        policy_until(-2, -1, "3100005", "KEPT-5"),
        // Two policies are cancelled one after the other: the first is replaced by the second, the second by none.
        policy_until(-2, 3, "3100006", "FIRST-1"),
        policy_until(-2, 5, "3100006", "SECOND-2"),
    ]
}

fn filings(world: &World) -> Vec<(i64, Value)> {
    let policy_from = |dot: &str, policy: &str, effective: i64| {
        let row = json!({
            "usdot_number": dot, "docket_number": "MC900001", "ins_form_code": "BMC-91X", "ins_type_code": "1", "policy_no": policy,
            "insurance_company_name": "Example Mutual", "effective_date": compact(at(world, effective)), "trans_date": compact(at(world, effective)),
            "max_cov_amount": "750000.00",
        });
        (-2, row)
    };
    // The cancelled filing itself, in another spelling; and a replacement.
    vec![
        policy_from("3100001", "SLHMI251800", -360),
        policy_from("03100002", "NEW-78", 3),
        policy_from("3100006", "FIRST1", -362),
        policy_from("3100006", "SECOND2", -360),
    ]
}

fn on_file() -> Vec<(i64, Value)> {
    let insurance_of = |dot: &str, on_file: &str| {
        let row = json!({
            "usdot_number": dot, "docket_number": "MC900001", "op_auth_type": "Motor Carrier of Property (Except Household Goods)",
            "op_auth_status": "Active", "min_cov_amount": "750000", "bipd_file": on_file, "cargo_req": "N", "cargo_file": "N", "bond_req": "N", "bond_file": "N",
        });
        (-2, row)
    };
    // Nothing on file is a fact, not a blank.
    vec![
        insurance_of("03100001", "00000"),
        insurance_of("3100002", "00000"),
        insurance_of("3100005", "750000"),
        insurance_of("3100006", "00000"),
    ]
}

fn colorado(world: &World) -> Vec<(i64, Value)> {
    let entity_on = |day: i64, id: &str, name: &str, more: Value| {
        let row = json!({
            "entityid": id, "entityname": name, "entitytype": "DLLC", "entitystatus": "Good Standing", "jurisdictonofformation": "CO",
            "entityformdate": stamp(at(world, day)), "principaladdress1": "312 East Carter Street", "principalcity": "Denver", "principalstate": "CO",
            "principalzipcode": "80202", "agentorganizationname": "Example Agents Inc.", "agentprincipaladdress1": "1 Agent Plaza",
        });
        (day, joined(row, more))
    };
    let written = at(world, -5).strftime("%m/%d/%Y").to_string();
    let ended = format!("SHORT LIVED LLC, Dissolved {}", at(world, -1).strftime("%B %-d, %Y"));
    vec![
        entity_on(-4, "20269000001", "Blue Mesa Freight, L.L.C.", json!({})),
        entity_on(-5, "20269000002", "Written Otherwise LLC", json!({"entityformdate": written, "principaladdress1": "N/A"})),
        entity_on(-3, "20269000003", &ended, json!({"entitystatus": "Voluntarily Dissolved", "principaladdress1": "2 Brief St"})),
        entity_on(-3, "20269000004", "Copper Mug Brewery LLC", json!({"principaladdress1": "3 Hop St"})),
        entity_on(
            -3,
            "20269000005",
            "From Elsewhere LLC",
            json!({"entitytype": "FLLC", "jurisdictonofformation": "DE", "principalstate": "DE", "principalcity": "Dover", "principalzipcode": "19901"}),
        ),
        entity_on(-3, "20269000006", "Gentle Dental PC", json!({"entitytype": "DPC", "principaladdress1": "6 Molar Way"})),
        entity_on(
            1,
            "20269000007",
            "Delayed Effect LLC",
            json!({"entityformdate": stamp(at(world, 20)), "principaladdress1": "7 Later St"}),
        ),
    ]
}

fn connecticut(world: &World) -> Value {
    json!({
        "accountnumber": "US-CT.BER:3900001", "name": "Harbor Tavern LLC", "status": "Active", "business_type": "LLC", "date_registration": stamp(at(world, -6)),
        "billingstreet": "1 Main St", "billingcity": "Hartford", "billingstate": "CT", "billingpostalcode": "06103-0001",
        "naics_code": "Drinking Places (722410)", "citizenship": "Domestic",
    })
}

/// An event of an entity of New York. All rows have the address of the same agent.
pub(super) fn event(film: u64, entity: u64, filed: &str, day: Date, kind: &str, name: &str) -> Value {
    json!({
        "film_num": format!("2{film:011}"), "dos_id": entity.to_string(), "filing_type": filed, "filing_date": stamp(day), "eff_date": stamp(day), "entity_type": kind,
        "corp_name": name, "cnty_prin_ofc": "ALBANY", "sop_name": "EXAMPLE AGENTS INC", "sop_addr1": "1 AGENT PLAZA", "sop_city": "ALBANY", "sop_state": "NY",
        "sop_zip5": "12207", "filer_name": "PAT EXAMPLE",
    })
}

fn new_york(world: &World) -> Vec<(i64, Value)> {
    const LLC: &str = "DOMESTIC LIMITED LIABILITY COMPANY";
    let filing_of =
        |film: u64, entity: u64, filed: &str, kind: &str, name: &str| (-3, event(film, entity, filed, at(world, -3), kind, name));
    vec![
        filing_of(9_000_000_002, 7_900_001, "CERTIFICATE OF PUBLICATION", LLC, "HUDSON HAULING LLC"),
        filing_of(9_000_000_001, 7_900_001, "ARTICLES OF ORGANIZATION", LLC, "HUDSON HAULING LLC"),
        filing_of(9_000_000_003, 7_900_002, "CERTIFICATE OF AMENDMENT", LLC, "AMENDED GOODS LLC"),
        filing_of(9_000_000_004, 7_900_003, "CERTIFICATE OF ASSUMED NAME", LLC, "OTHERWISE CALLED LLC"),
        filing_of(9_000_000_005, 7_900_004, "APPLICATION OF AUTHORITY", "FOREIGN LIMITED LIABILITY COMPANY", "OUTSIDE IN LLC"),
    ]
}
