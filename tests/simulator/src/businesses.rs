//! New businesses: the datasets of the regulator of motor carriers, and the registers of four states. All of them are on Socrata ([`crate::soda`]).
//!
//! Some businesses are added each day, and in Colorado one in each round. Next to them are those of [`cast`], one for each peculiarity of a dataset. Columns
//! with phone numbers, e-mail addresses, officers and agents exist: a client that requests them gets them. Every row has the same `:updated_at`, as after a
//! rebuild.

mod cast;
mod register;

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};
use simulated_world::answer::Answer;
use simulated_world::days::{Daily, DayPosition};
use simulated_world::faults::Plan;
use simulated_world::json::joined;
use simulated_world::query::Query;
use simulated_world::random::Random;
use simulated_world::words::CITIES;
use simulated_world::world::{World, brand, compact, day_before};

pub(crate) use self::register::Register;
use self::register::stamp;
use crate::soda::{self, Dataset};

/// The entities of Oregon's list. Each has four rows, so that the list has exactly as many rows as a page.
const OREGON_ENTITIES: u64 = 250;
const CARRIERS: Daily = Daily { kind: 400, a_day: 5 };
const COLORADO: Daily = Daily { kind: 401, a_day: 6 };
/// The first number of the entities that Colorado registers in rounds: above those of days.
const ROUNDS_FROM: u64 = 50_000_000;
const NEW_YORK: Daily = Daily { kind: 402, a_day: 6 };
const CONNECTICUT: Daily = Daily { kind: 403, a_day: 3 };

/// The rows that a dataset has apart from those of [`cast`].
fn rows(register: Register, world: &World) -> Vec<Value> {
    match register {
        Register::Census => CARRIERS.all(world).map(|place| carrier(CARRIERS.random(world, place), place.number(), place.day)).collect(),
        Register::Colorado => {
            let of_days = COLORADO.all(world).map(|place| colorado(COLORADO.random(world, place), place.number(), place.day));
            let of_rounds = (ROUNDS_FROM..).zip(&world.rounds).map(|(number, round)| {
                let random = Random::new(world.seed, 406, number);
                colorado(random, number, round.day)
            });
            of_days.chain(of_rounds).collect()
        }
        Register::Connecticut => {
            CONNECTICUT.all(world).map(|place| connecticut(CONNECTICUT.random(world, place), place.number(), place.day)).collect()
        }
        Register::NewYork => {
            let events = |place: DayPosition| new_york(NEW_YORK.random(world, place), place.number(), place.day);
            NEW_YORK.all(world).flat_map(events).collect()
        }
        Register::Oregon => (0..OREGON_ENTITIES).flat_map(|number| oregon(world, number)).collect(),
        // On each day the first carrier is granted authority as a broker, the second one as a carrier of property.
        Register::Authority => CARRIERS.all(world).filter(|place| place.index < 2).map(granted).collect(),
        Register::Cancellations | Register::Filings | Register::OnFile => Vec::new(),
    }
}

/// Answers a query of a dataset.
pub(crate) fn answer(world: &World, register: Register, query: &Query, token: Option<&str>, plan: &Plan) -> Answer {
    let mut rows = rows(register, world);
    rows.extend(cast::rows(world, register));
    let rebuilt = format!("{}T09:00:00.000Z", world.today);
    let rows = (0_u64..).zip(rows).map(|(number, row)| joined(row, json!({":id": format!("row-{number:08}"), ":updated_at": rebuilt})));
    let dataset = Dataset { columns: register.columns(), numbers: &["dot_number"], rows: rows.collect() };
    soda::answer(dataset, query, token, plan)
}

fn name(random: Random) -> String {
    let trade =
        random.pick(20, &["Goods", "Roofing", "Trucking", "Dental", "Brewery", "Studio", "Cleaning", "Freight", "Consulting", "Tavern"]);
    format!("{} {trade}", brand(random, 21))
}

fn street(random: Random) -> String {
    let street = random.pick(30, &["Carter St", "N Locust Avenue", "Mesa Blvd", "East 5th Street", "River Road"]);
    format!("{} {street}", 100 + random.below(31, 9_000))
}

fn carrier(random: Random, number: u64, day: Date) -> Value {
    let (city, state, zip) = *random.choose(1, CITIES);
    let units = (1 + random.below(2, 6)).to_string();
    let class = random.pick(3, &["AUTHORIZED FOR HIRE", "AUTHORIZED FOR HIRE", "PRIVATE PROPERTY", "EXEMPT FOR HIRE"]);
    json!({
        "dot_number": (4_400_000 + number).to_string(), "legal_name": format!("{} LLC", name(random).to_uppercase()), "business_org_desc": "Limited Liability Company",
        "phy_street": street(random).to_uppercase(), "phy_city": city.to_uppercase(), "phy_state": state, "phy_zip": zip, "phy_country": "US",
        "phone": "5555550100", "email_address": "owner@example.com", "company_officer_1": "PAT EXAMPLE", "status_code": "A", "add_date": compact(day),
        "mcs150_date": format!("{} 0000", compact(day)), "carrier_operation": random.pick(4, &["A", "A", "C"]), "classdef": class, "hm_ind": "N",
        "power_units": units, "truck_units": units, "total_drivers": units, "crgo_genfreight": "X", "docket1prefix": "MC", "docket1": (1_400_000 + number).to_string(),
        "prior_revoke_flag": "N",
    })
}

/// The authority that a carrier is granted on the day on which it is added.
fn granted(place: DayPosition) -> Value {
    let kind = ["Broker", "Motor Carrier"][usize::from(place.index > 0)];
    let number = place.number();
    json!({
        "usdot_number": (4_400_000 + number).to_string(), "docket_number": format!("MC{}", 1_400_000 + number),
        "op_auth_type": format!("{kind} of Property (Except Household Goods)"), "op_auth_status": "Active", "reason": "GRANTED",
        "status_change_date": compact(place.day),
    })
}

fn colorado(random: Random, number: u64, day: Date) -> Value {
    let kind = random.pick(5, &["DLLC", "DLLC", "DCORP", "DPC", "FLLC"]);
    let formed = if kind == "FLLC" { "DE" } else { "CO" };
    json!({
        "entityid": (20_260_000_000 + number).to_string(), "entityname": format!("{} LLC", name(random)), "entitytype": kind, "entitystatus": "Good Standing",
        "jurisdictonofformation": formed, "entityformdate": stamp(day), "principaladdress1": street(random), "principalcity": "Denver",
        "principalstate": "CO", "principalzipcode": "80202", "agentorganizationname": "Example Agents Inc.", "agentprincipaladdress1": "1 Agent Plaza",
    })
}

fn connecticut(random: Random, number: u64, day: Date) -> Value {
    let (kind, place) = if random.once_in(6, 5) { ("Foreign", Some("Delaware")) } else { ("Domestic", None) };
    let mut row = json!({
        "accountnumber": (3_000_000 + number).to_string(), "name": format!("{} LLC", name(random)), "status": "Active",
        "business_type": random.pick(7, &["LLC", "Stock", "Non-Stock"]), "date_registration": stamp(day), "billingstreet": street(random),
        "billingcity": "Hartford", "billingstate": "CT", "billingpostalcode": "06103", "business_email_address": "owner@example.com", "citizenship": kind,
    });
    if let Some(place) = place {
        row["formation_place"] = place.into();
    }
    row
}

/// The events of an entity: what formed it, and often a publication on the same day.
fn new_york(random: Random, number: u64, day: Date) -> Vec<Value> {
    let (filed, kind) = *random.choose(
        8,
        &[
            ("ARTICLES OF ORGANIZATION", "DOMESTIC LIMITED LIABILITY COMPANY"),
            ("CERTIFICATE OF INCORPORATION", "DOMESTIC BUSINESS CORPORATION"),
            ("APPLICATION OF AUTHORITY", "FOREIGN LIMITED LIABILITY COMPANY"),
            ("CERTIFICATE OF AMENDMENT", "DOMESTIC LIMITED LIABILITY COMPANY"),
        ],
    );
    let name = format!("{} LLC", name(random).to_uppercase());
    let event = |at: u64, filed: &str| cast::event(number * 10 + at, 7_000_000 + number, filed, day, kind, &name);
    let mut events = vec![event(0, filed)];
    if random.once_in(9, 2) {
        events.insert(random.below(10, 2) as usize, event(1, "CERTIFICATE OF PUBLICATION"));
    }
    events
}

/// The rows of an entity of Oregon's list, which has the entities of the month before.
fn oregon(world: &World, number: u64) -> Vec<Value> {
    let last_month = world.today.first_of_month().saturating_sub(1.day());
    let day = day_before(last_month, (number % 28) as i64);
    let random = Random::new(world.seed, 404, number + 1_000 * u64::from(last_month.month().unsigned_abs()));
    let month = u64::from(last_month.year().unsigned_abs()) * 100 + u64::from(last_month.month().unsigned_abs());
    let kind = random.pick(
        11,
        &[
            "DOMESTIC LIMITED LIABILITY COMPANY",
            "ASSUMED BUSINESS NAME",
            "DOMESTIC BUSINESS CORPORATION",
            "FOREIGN LIMITED LIABILITY COMPANY",
        ],
    );
    let row = |role: &str, address: &str| {
        json!({
            "registry_number": format!("{month}{number:04}-9{}", number % 10), "business_name": name(random).to_uppercase(), "entity_type": kind,
            "registry_date": format!("{day}T16:53:25.000"), "associated_name_type": role, "first_name": "PAT", "last_name": "EXAMPLE", "address_": address,
            "city": "SALEM", "state": "OR", "zip_code": "97301",
        })
    };
    vec![
        row("MAILING ADDRESS", "PO BOX 100"),
        row("REGISTERED AGENT", "1 AGENT PLAZA"),
        row("PRINCIPAL PLACE OF BUSINESS", &street(random).to_uppercase()),
        row("INDIVIDUAL WITH DIRECT KNOWLEDGE", "5 PRIVATE LN"),
    ]
}
