//! Which records of two sources are one lead although they write name or address in two ways.

use super::*;

/// The sources of the liability leads that the records of a carrier and of a company lead to.
fn sources(carrier: CarrierFact, company: BusinessFact) -> Vec<String> {
    let engine = engine(&[census(carrier), co(company)]);
    let leads = engine.leads().into_iter().filter(|lead| lead.coverage_line == "AUTO_LIABILITY_BIPD");
    leads.map(|lead| lead.sources.join("+")).collect()
}

fn company() -> BusinessFact {
    colorado("20261812345", "Blue Mesa Freight, L.L.C.", "2026-11-16")
}

/// Proves that a post office box speaks against a place in another city only, and that a missing ZIP code does not make two cities one.
#[test]
fn addresses_that_say_little() {
    let at = |street: &str, city: &str, zip: &str| BusinessFact { street: street.into(), city: city.into(), zip: zip.into(), ..company() };
    let one: &[&str] = &["sos-co+fmcsa"];
    let two: &[&str] = &["fmcsa", "sos-co"];
    for (street, city, zip, expected) in [
        ("PO Box 42", "Denver", "80201", one),
        ("PO Box 42", "Pueblo", "81002", two),
        ("East Carter Street", "Denver", "80202", one),
        ("", "Denver", "", one),
        ("", "Pueblo", "", two),
        ("312 Carter St Ste 900", "Denver", "80202", one),
    ] {
        assert_eq!(sources(carrier(), at(street, city, zip)), expected, "{street}, {city} {zip}");
    }
}

/// Proves that a person who does business under the name of a company is that company, and that another name of a company or of a person does not matter.
#[test]
fn persons_under_the_name_of_a_company() {
    let person = |legal_name: &str, dba: &str| CarrierFact {
        legal_name: legal_name.into(),
        dba_name: dba.into(),
        is_person: true,
        street: String::new(),
        ..carrier()
    };
    assert_eq!(sources(person("JANE SMITH", "BLUE MESA FREIGHT LLC"), company()), ["sos-co+fmcsa"]);
    assert_eq!(sources(person("JANE SMITH", "BLUE MESA FREIGHT CO"), company()), ["fmcsa", "sos-co"]);
    assert_eq!(sources(person("SMITH HAULING LLC", "BLUE MESA FREIGHT LLC"), company()), ["fmcsa", "sos-co"]);
    let other = CarrierFact { legal_name: "SMITH HAULING LLC".into(), dba_name: "BLUE MESA FREIGHT LLC".into(), ..carrier() };
    assert_eq!(sources(other, company()), ["fmcsa", "sos-co"]);
}
