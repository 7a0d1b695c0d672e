//! Tests of addresses: the worked example of the contract, the forms that registers write, and what must hold for any texts.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::*;

fn at(street: &str) -> Address {
    Address::new(street, "Des Moines", "IA", "50309")
}

fn key(street: &str) -> Option<String> {
    at(street).key()
}

fn close(one: &Address, other: &Address) -> (Closeness, &'static str) {
    let found = compare(one, other);
    assert_eq!(found, compare(other, one), "the same in both directions");
    assert_eq!(found.to_string(), found.reason);
    (found.closeness, found.reason)
}

/// Proves the worked example of the contract: two spellings of one address have one key.
#[test]
fn worked_example() {
    let (one, other) = (at("312 CARTER ST"), at("312 EAST CARTER STREET"));
    assert_eq!((one.key().as_deref(), other.key().as_deref()), (Some("312 carter 50309"), Some("312 carter 50309")));
    assert_eq!(close(&one, &other), (Closeness::Same, "the same house number, street and ZIP code"));
}

/// Proves the keys of addresses as registers write them: suffixes, directions, parts of buildings, boxes, numbers.
#[test]
fn keys() {
    for (street, expected) in [
        ("312 Carter Street, Suite 200", "312 carter"),
        ("312 CARTER ST STE 200 BLDG B", "312 carter"),
        ("312 Carter St #5", "312 carter"),
        ("312 Carter St. Apt. B", "312 carter"),
        ("312 Carter St Apt-5", "312 carter"),
        ("312 Carter St 200", "312 carter"),
        ("312 Carter St Rear", "312 carter"),
        ("SUITE 200, 312 CARTER ST", "312 carter"),
        ("C/O Jane Smith 312 Carter St", "312 carter"),
        ("312 N.W. Carter St", "312 carter"),
        ("312 N W Carter St", "312 carter"),
        ("312 Carter St NW", "312 carter"),
        ("312A Carter St", "312a carter"),
        ("312-A Carter St", "312a carter"),
        ("312 1/2 Carter St", "312 1/2 carter"),
        ("312½ Carter St", "312 1/2 carter"),
        ("31-12 Carter Ave", "31-12 carter"),
        ("One Carter Plaza", "1 carter"),
        ("500 Fifth Avenue", "500 5th"),
        ("500 5TH AVE", "500 5th"),
        ("100 Saint Charles Ave", "100 st charles"),
        ("100 St. Charles Avenue", "100 st charles"),
        ("100 Avenue A", "100 ave a"),
        ("100 Avenue of the Americas", "100 ave of the americas"),
        ("100 East Street", "100 east"),
        ("100 North Ave", "100 north"),
        ("100 Park Place", "100 park"),
        ("100 Broadway", "100 broadway"),
        ("100 Front Street", "100 front"),
        ("100 Lot St", "100 lot"),
        ("PO Box 0042", "42 po box"),
        ("P.O. BOX 42", "42 po box"),
        ("Post Office Box #42", "42 po box"),
        ("312 Carter St PO Box 42", "312 carter"),
        ("312 Müller Straße", "312 muller strasse"),
        ("312 Carter St STE200", "312 carter"),
        ("312 Carter St Apt5B", "312 carter"),
        ("312 Carter St 2nd Floor", "312 carter"),
        ("No. 312 Carter St", "312 carter"),
        ("#312 Carter St", "312 carter"),
        ("#5, 312 Carter St", "312 carter"),
        ("PO Box 42, 312 Carter St", "312 carter"),
        ("POB 42", "42 po box"),
        ("Box 42", "42 po box"),
        ("312 Box Elder Rd", "312 box elder"),
        ("RR 2 Box 15", "15 rural route 2"),
        ("R.R. #2, Box 015", "15 rural route 2"),
        ("Rural Route 2 Box 15", "15 rural route 2"),
        ("Route 2 Box 15", "15 rural route 2"),
        ("HC 1 Box 5", "5 highway contract 1"),
        ("312 Route 2", "312 rte 2"),
    ] {
        assert_eq!(key(street), Some(format!("{expected} 50309")), "{street}");
    }
    for street in ["", "  ", "Carter St", "42", "#", "PO BOX", "N/A", &"312 Carter ".repeat(30), "5th Ave"] {
        assert_eq!(key(street), None, "{street}");
    }
    for street in ["N/A", "none", "UNKNOWN", "Same as above", "General Delivery"] {
        assert!(at(street).is_missing(), "{street}");
    }
}

/// Proves which addresses are the same, near, not comparable or different, with the reason.
#[test]
fn reasons() {
    use Closeness::{Different, Missing, Near, Same};
    let whole = at("312 Carter St");
    for (other, expected) in [
        (at("312 CARTER STREET APT 9"), (Same, "the same house number, street and ZIP code")),
        (Address::new("312 Carter St", "", "", "50309-1234"), (Same, "the same house number, street and ZIP code")),
        (at("312 Carter Ave"), (Near, "the same house number and ZIP code; the streets have other suffixes")),
        (at("312 Locust St"), (Near, "the same house number and ZIP code; the streets differ")),
        (Address::new("312 Carter St", "DES MOINES", "IA", ""), (Near, "the same house number, street and city; a ZIP code is missing")),
        (Address::new("312 Carter St", "Ames", "IA", ""), (Different, "a ZIP code is missing, and the streets or cities differ")),
        (at("314 Carter St"), (Different, "another house number")),
        (Address::new("312 Carter St", "Des Moines", "IA", "50310"), (Different, "another ZIP code")),
        (Address::new("312 Carter St", "Des Moines", "NE", "50309"), (Different, "another state")),
        (Address::new("", "", "IA", ""), (Missing, "one address is missing")),
        (Address::default(), (Missing, "one address is missing")),
        (Address::new("", "", "IA", "50310"), (Different, "another ZIP code")),
        (at("PO Box 312"), (Missing, "a post office box, and a street in the same city or ZIP code")),
        (Address::new("PO Box 42", "DES MOINES", "IA", "50301"), (Missing, "a post office box, and a street in the same city or ZIP code")),
        (Address::new("PO Box 42", "Ames", "IA", "50010"), (Different, "a post office box and a street in another place")),
        (Address::new("PO Box 42", "", "IA", ""), (Different, "a post office box and a street in another place")),
        (Address::new("", "Ames", "IA", ""), (Different, "another city, and one address is missing")),
        (Address::new("", "DesMoines", "IA", ""), (Missing, "one address is missing")),
        (Address::new("", "West Des Moines", "IA", "50309"), (Missing, "one address is missing")),
        (at("Carter St"), (Near, "the same street and ZIP code; a house number is missing")),
        (at("Carter Ave"), (Different, "a house number is missing, and the streets or ZIP codes differ")),
        (at("Locust St"), (Different, "a house number is missing, and the streets or ZIP codes differ")),
    ] {
        assert_eq!(close(&whole, &other), expected, "{other:?}");
    }
    assert_eq!(
        close(&at("312 N Main St"), &at("312 S Main St")).1,
        "the same house number and ZIP code; the streets have other directions"
    );
    assert_eq!(close(&at("PO Box 1"), &at("POBOX 1")), (Same, "the same post office box and ZIP code"));
    assert_eq!(close(&at("PO Box 1"), &at("PO Box 2")), (Different, "another post office box"));
    assert_eq!(close(&at("RR 2 Box 15"), &at("Rural Route 2, Box 15")).0, Same);
    for other in ["RR 3 Box 15", "RR 2 Box 16", "HC 2 Box 15", "15 Carter St", "PO Box 15"] {
        assert_eq!(close(&at("RR 2 Box 15"), &at(other)).0, Different, "{other}");
    }
    for (one, other, expected) in [
        ("312A Carter St", "312 Carter St", Near),
        ("312-314 Carter St", "312 Carter St", Near),
        ("0312 Carter St", "312 Carter St", Same),
        ("312A Carter St", "312B Carter St", Different),
        ("31-12 Carter St", "31 Carter St", Different),
        ("312-314 Carter St", "314 Carter St", Different),
        ("Industrial Park", "INDUSTRIAL PARK", Near),
        ("Industrial Park", "Airport Park", Different),
    ] {
        assert_eq!(close(&at(one), &at(other)).0, expected, "{one} and {other}");
    }
}

/// Proves how states and ZIP codes are read: with four more digits, with zeros that were lost, and none from other texts.
#[test]
fn states_and_zip_codes() {
    for (zip, expected) in [
        ("50309", "50309"),
        ("50309-1234", "50309"),
        ("503091234", "50309"),
        ("6103", "06103"),
        ("61031234", "06103"),
        ("00000", ""),
        ("0", ""),
        ("K1A 0B1", ""),
        ("N/A", ""),
        ("", ""),
        ("123456789012345678901", ""),
    ] {
        assert_eq!(Address::new("", "", "", zip).zip(), expected, "{zip}");
    }
    assert_eq!(["ia", " CO ", "Iowa", "I", "ÄÖ"].map(|state| Address::new("", "", state, "").state().to_owned()), ["IA", "CO", "", "", ""]);
}

/// Proves what holds for any texts: reading never fails, comparing is symmetric, an address is the same as itself if it has a key, and two addresses
/// are near or the same whenever their keys are equal.
#[test]
fn invariants() {
    const PARTS: &[&str] = &[
        "312", "314", "Carter", "East", "N", "St", "Street", "Ave", "Apt", "5", "#", "PO", "Box", "C/O", "Suite", "1/2", "½", "One",
        "First", "-", "/", ".", "É", "\u{301}", "Rear", "Lot", "Saint", "Avenue", "of", "the", "12-34", "A", "5TH",
    ];
    let mut random = StdRng::seed_from_u64(7);
    let text = |random: &mut StdRng| {
        let count = random.random_range(0..8);
        let any = (0..count).map(|_| *PARTS.choose(random).unwrap()).collect::<Vec<_>>().join(" ");
        let [number, name] = [["312", "314"], ["Carter", "Saint Carter"]].map(|list| *list.choose(random).unwrap());
        let [before, suffix, after] =
            [["", "East", "N"], ["St", "Street", "Ave"], ["", "Apt 5", "#5"]].map(|list| *list.choose(random).unwrap());
        if random.random_bool(0.5) { any } else { format!("{number} {before} {name} {suffix} {after}") }
    };
    let mut same = 0;
    for _ in 0..20_000 {
        let (one, other) = (at(&text(&mut random)), at(&text(&mut random)));
        let found = close(&one, &other).0;
        if let Some(key) = one.key() {
            assert_eq!(close(&one, &one).0, Closeness::Same, "{one:?}");
            if other.key() == Some(key) {
                same += 1;
                assert!(found <= Closeness::Near, "{one:?} and {other:?}");
            }
        }
    }
    assert!(same > 20, "{same} pairs with one key were drawn");
    for hostile in ["a".repeat(10_000), "1 ".repeat(5_000), format!("312 {}", "\u{301}".repeat(10_000)), "\u{fdfa}".repeat(200)] {
        let address = Address::new(&hostile, &hostile, &hostile, &hostile);
        assert_eq!(close(&address, &Address::default()).0, Closeness::Missing, "or no street was read");
    }
}
