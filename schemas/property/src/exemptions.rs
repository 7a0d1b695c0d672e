//! What a row of Allegheny County says of a parcel and of who owns it, and which rules flag its exemption for that; and which uses of both counties are no
//! home. A flag says what the record shows, and draws no conclusion.

use serde::{Deserialize, Serialize};
use texts::person_names::is_like_person;

/// The kinds of owners that are companies, as published, in capitals: words that they have.
const COMPANY_KINDS: [&str; 4] = ["CORPORATION", "COMPANY", "LLC", "PARTNERSHIP"];
/// The classes of uses that are no institution.
const OTHER_CLASSES: [&str; 3] = ["RESIDENTIAL", "COMMERCIAL", "INDUSTRIAL"];
/// Words of uses that are vacant land, or a building of more than 4 units, in capitals: those of Allegheny County, and of the classes of Cook County.
const NO_HOME: [&str; 3] = ["VACANT", "SEVEN OR MORE UNITS", "7 UNITS OR MORE"];
/// Words of uses of institutions, in capitals.
const INSTITUTION_WORDS: [&str; 16] = [
    "CHURCH",
    "WORSHIP",
    "SCHOOL",
    "COLLEGE",
    "UNIV",
    "ACADEMY",
    "HOSPITAL",
    "CEMETER",
    "GOVERNMENT",
    "MUNICIPAL",
    "AUTHORITY",
    "COUNTY",
    "CHARIT",
    "LIBRARY",
    "MUSEUM",
    "RELIGIOUS",
];

/// What a row of Allegheny County says of a parcel next to its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// The name of the municipality or ward.
    pub municipality: String,
    /// The city of the parcel itself.
    pub city: String,
    /// The state of the parcel itself.
    pub state: String,
    /// The class of the use: `COMMERCIAL`.
    pub use_class: String,
    /// What the use is called.
    pub use_label: String,
    /// The kind of the owner. No name.
    pub owner_kind: String,
    /// Whether its tax code says that it is exempt.
    pub is_exempt: bool,
    /// The first day on which the homestead exclusion that it has was read; empty if it has none.
    pub homestead_since: String,
    /// The first tax year whose row has that exclusion; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homestead_year: Option<i64>,
    /// A hash of the mailing address, of a parcel with a homestead exclusion.
    pub mailing_hash: String,
    /// The city of that address.
    pub mailing_city: String,
    /// The state of that address.
    pub mailing_state: String,
    /// The day of the last sale.
    pub sale_date: String,
    /// The rules that flag its exemption.
    pub flags: Vec<String>,
}

fn is_company(owner_kind: &str) -> bool {
    COMPANY_KINDS.iter().any(|kind| owner_kind.contains(kind))
}

/// Whether the name of a use or class is one of vacant land, or of a building of more than 4 units.
#[must_use]
pub fn is_no_home(label: &str) -> bool {
    let label = label.to_uppercase();
    NO_HOME.iter().any(|words| label.contains(words))
}

/// Whether a use of Allegheny County is no home. Its buildings of more than 4 units are `APART: 5-19 UNITS`; classes of Cook County that begin so have fewer.
fn is_no_home_of_allegheny(use_label: &str) -> bool {
    is_no_home(use_label) || use_label.to_uppercase().starts_with("APART")
}

fn is_other_use(details: &Details) -> bool {
    let label = details.use_label.to_uppercase();
    OTHER_CLASSES.contains(&details.use_class.as_str()) && !INSTITUTION_WORDS.iter().any(|word| label.contains(word))
}

/// The first tax year with the homestead exclusion, if the last sale is of a later year.
fn sold_after(details: &Details) -> Option<i64> {
    let sold: i64 = details.sale_date.get(..4)?.parse().ok()?;
    details.homestead_year.filter(|year| sold > *year)
}

/// The rules that flag a parcel, with what the record shows and the fields that show it. `shared` is the number of parcels with a homestead exclusion and
/// the same mailing address, this one included.
#[must_use]
pub fn found(details: &Details, shared: usize) -> Vec<(&'static str, String, Vec<String>)> {
    let mut found = Vec::new();
    let field = |name: &str, value: &str| format!("{name}: {value}");
    let mut flag =
        |rule: &'static str, shows: String, evidence: Vec<String>| found.push((rule, format!("the record shows {shows}"), evidence));
    let owner = field("OWNERDESC", &details.owner_kind);
    // Every flag of a residence says who owns it and when it was sold last, as far as that is published.
    let deed = [("OWNERDESC", &details.owner_kind), ("SALEDATE", &details.sale_date)];
    let of_home = |evidence: Vec<String>| {
        let known = deed.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| field(name, value));
        [field("HOMESTEADFLAG", "HOM")].into_iter().chain(evidence).chain(known).collect::<Vec<String>>()
    };
    if !details.homestead_since.is_empty() {
        let (city, state) = (&details.mailing_city, &details.mailing_state);
        let is_elsewhere = (!details.state.is_empty() && *state != details.state)
            || (!city.is_empty() && !details.city.is_empty() && !city.eq_ignore_ascii_case(&details.city));
        // A line without a state can be a name, and so can a city: facts and state that were recorded earlier have both.
        if is_elsewhere && !state.is_empty() && !is_like_person(city) {
            let places = format!("a mailing address in {city} {state}, and the parcel in {} {}", details.city, details.state);
            let evidence = of_home(vec![field("CHANGENOTICEADDRESS3", &format!("{city} {state}")), field("PROPERTYCITY", &details.city)]);
            flag("X1", format!("a homestead exclusion, {places}"), evidence);
        }
        if shared > 1 {
            let evidence = of_home(vec![field("parcels with the same mailing address", &shared.to_string())]);
            flag("X2", format!("a homestead exclusion on {shared} parcels with the same mailing address"), evidence);
        }
        if is_company(&details.owner_kind) {
            let shows = format!("a homestead exclusion, and an owner of the kind {}", details.owner_kind);
            flag("X3", shows, of_home(Vec::new()));
            if let Some(year) = sold_after(details) {
                let (sold, owner_kind) = (&details.sale_date, &details.owner_kind);
                let shows = format!(
                    "a sale on {sold}, after {year}, the first tax year with the homestead exclusion, and an owner of the kind {owner_kind}"
                );
                flag("X5", shows, of_home(vec![field("first TAXYEAR with HOMESTEADFLAG", &year.to_string())]));
            }
        }
        if is_no_home_of_allegheny(&details.use_label) {
            let shows = format!("a homestead exclusion, and the use {}", details.use_label);
            flag("X4", shows, of_home(vec![field("USEDESC", &details.use_label)]));
        }
    }
    if details.is_exempt && is_other_use(details) {
        let shows = format!("an exempt tax code, and the use {} of the class {}", details.use_label, details.use_class);
        let evidence = vec![field("TAXCODE", "E"), field("CLASSDESC", &details.use_class), field("USEDESC", &details.use_label), owner];
        flag("X6", shows, evidence);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Proves that every flag of a homestead has evidence of the owner and of the last sale, and one without a known sale that of the owner alone.
    #[test]
    fn flags_have_evidence_of_owner_and_deed() {
        let details = Details {
            homestead_since: "2026-02-01".into(),
            owner_kind: "CORPORATION".into(),
            use_label: "VACANT LAND".into(),
            homestead_year: Some(2026),
            sale_date: "2027-12-01".into(),
            mailing_state: "FL".into(),
            state: "PA".into(),
            ..Details::default()
        };
        let flags = found(&details, 2);
        assert_eq!(flags.iter().map(|(rule, ..)| *rule).collect::<Vec<_>>(), ["X1", "X2", "X3", "X5", "X4"]);
        for (rule, _, evidence) in flags {
            let last: Vec<&str> = evidence.iter().map(String::as_str).skip(evidence.len() - 2).collect();
            assert_eq!(
                (evidence[0].as_str(), &*last),
                ("HOMESTEADFLAG: HOM", &["OWNERDESC: CORPORATION", "SALEDATE: 2027-12-01"][..]),
                "{rule}"
            );
        }
        let unsold = Details { sale_date: String::new(), ..details };
        assert!(found(&unsold, 2).iter().all(|(.., evidence)| evidence.last().is_some_and(|last| last == "OWNERDESC: CORPORATION")));
    }

    /// Proves that each statement says what the record shows, and none of it a conclusion.
    #[test]
    fn statements_conclude_nothing() {
        let details = Details {
            homestead_since: "2026-02-01".into(),
            mailing_city: "BOCA RATON".into(),
            mailing_state: "FL".into(),
            city: "PITTSBURGH".into(),
            state: "PA".into(),
            owner_kind: "CORPORATION".into(),
            use_class: "COMMERCIAL".into(),
            use_label: "VACANT COMMERCIAL LAND".into(),
            homestead_year: Some(2026),
            sale_date: "2027-12-01".into(),
            is_exempt: true,
            ..Details::default()
        };
        let found = found(&details, 2);
        assert_eq!(found.iter().map(|(rule, ..)| *rule).collect::<BTreeSet<_>>(), BTreeSet::from(["X1", "X2", "X3", "X4", "X5", "X6"]));
        for (rule, statement, evidence) in found {
            assert!(statement.starts_with("the record shows ") && evidence.len() >= 2, "{rule}: {statement}");
            for word in ["false", "fraud", "ineligible", "illegal", "wrong"] {
                assert!(!statement.to_lowercase().contains(word), "{rule}: {statement}");
            }
        }
    }
}
