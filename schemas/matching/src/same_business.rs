//! Which leads of several sources are about one business. Two leads are, if they have the same line of insurance and trigger family, the same
//! name without legal forms and the same state, days within [`WINDOW_DAYS`] of each other, and addresses that are the same, near, or of which one
//! is missing. A register gives each business a number, so leads of one source with two numbers need the same address.
//!
//! The relation is not transitive: a lead without an address goes with each of two leads at different places. So leads are put into groups in
//! which every two belong together. The groups depend on the set of leads only, not on the order in which sources delivered them.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::address::{self, Address, Closeness};
use crate::business_name;
use crate::mandates::Basis;

/// How many days the triggers of one business may be apart.
pub const WINDOW_DAYS: i32 = 30;
/// The most leads that are grouped at once. Of more, each further one in their order is a group of its own.
pub const LEADS_MAX: usize = 200;

/// What is compared of a lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeadKey {
    /// The id of the lead, unique.
    pub id: String,
    /// The source (`fmcsa`, `sos-co`).
    pub source: String,
    /// What [`same_key`] returned.
    pub same: String,
    /// The day of the trigger.
    pub day: Date,
    /// Where the business is.
    pub address: Address,
    /// How firmly the line follows.
    pub basis: Basis,
}

impl LeadKey {
    /// Whether two leads are of one source, whose ids show that it gave the businesses two numbers (`sos-ny:7000001:…`).
    fn has_other_number(&self, other: &Self) -> bool {
        // The number itself can have a colon; line, trigger and day have none.
        let business = |id: &str| id.rsplitn(4, ':').nth(3).map(str::to_owned);
        self.source == other.source && business(&self.id).zip(business(&other.id)).is_some_and(|(own, others)| own != others)
    }
}

/// The family of a trigger: cancellation and lapse are one, and a new carrier and a new company are one, since the same founding shows in the register
/// of carriers and in that of a state. Every other trigger is a family of its own.
#[must_use]
pub fn trigger_family(trigger: &str) -> &str {
    match trigger {
        "cancellation" | "insurance_lapse" => "insurance_lapse",
        "entity_formed" | "new_carrier" => "new_business",
        other => other,
    }
}

/// Returns the key that all leads about one business share: the letters of its name without legal forms, state, line and trigger family. `None` for a name
/// that matches none.
#[must_use]
pub fn same_key(business: &str, state: &str, line: &str, trigger: &str) -> Option<String> {
    name_key(business).map(|name| same_key_of(&name, state, line, trigger))
}

/// Returns the letters of the name of a business without legal forms, from which [`same_key_of`] makes the keys of its leads. `None` for a name that matches
/// none.
#[must_use]
pub fn name_key(business: &str) -> Option<String> {
    business_name::key(business)
}

/// Returns what [`same_key`] does, for a name of which [`name_key`] is known: a business has several leads, and its name is read once.
#[must_use]
pub fn same_key_of(name: &str, state: &str, line: &str, trigger: &str) -> String {
    format!("{name}|{}|{line}|{}", state.trim().to_uppercase(), trigger_family(trigger))
}

/// Why a lead is in a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Joined {
    /// The id of the lead.
    pub id: String,
    /// Why it is about the same business as the first, as answers show it.
    pub reason: String,
}

/// The leads that are about one business.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The id of the earliest lead, which leads the group.
    pub first: String,
    /// The source of the earliest lead.
    pub source: String,
    /// All sources, each once, in the order of their earliest leads.
    pub sources: Vec<String>,
    /// The strongest basis of the leads.
    pub basis: Basis,
    /// The other leads, in the order of their days.
    pub joined: Vec<Joined>,
}

/// Returns how well two leads go together, with the reason; `None` if they are about two businesses.
#[must_use]
pub fn compare(one: &LeadKey, other: &LeadKey) -> Option<(Closeness, String)> {
    let days = (one.day - other.day).get_days().abs();
    if one.same != other.same || days > WINDOW_DAYS {
        return None;
    }
    let addresses = address::compare(&one.address, &other.address);
    if addresses.closeness != Closeness::Same && one.has_other_number(other) {
        return None;
    }
    let apart = match days {
        0 => "on the same day".to_owned(),
        1 => "1 day apart".to_owned(),
        days => format!("{days} days apart"),
    };
    let reason = format!("the same name and state, {apart}; {addresses}");
    (addresses.closeness != Closeness::Different).then_some((addresses.closeness, reason))
}

/// Puts leads into groups of one business each. Leads are taken by day, source and id; each goes to the group with all of whose leads it goes
/// together, the one with the closest address first, else it begins a group. Groups are in the order of their first leads.
#[must_use]
pub fn group(leads: &[LeadKey]) -> Vec<Group> {
    let mut sorted: Vec<&LeadKey> = leads.iter().collect();
    sorted.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
    sorted.dedup_by(|one, other| one.id == other.id);
    let mut groups: Vec<Vec<&LeadKey>> = Vec::new();
    for (at, lead) in sorted.iter().enumerate() {
        let found = groups.iter_mut().take(if at < LEADS_MAX { usize::MAX } else { 0 }).filter_map(|group| {
            let closeness: Option<Vec<Closeness>> = group.iter().map(|member| compare(member, lead).map(|(close, _)| close)).collect();
            Some((closeness?.into_iter().min()?, group))
        });
        // The first of several that are equally close.
        match found.min_by_key(|(closeness, _)| *closeness) {
            Some((_, group)) => group.push(lead),
            None => groups.push(vec![lead]),
        }
    }
    groups.iter().filter_map(|members| merge(members)).collect()
}

/// The order in which leads are taken.
fn order(lead: &LeadKey) -> (Date, &str, &str) {
    (lead.day, &lead.source, &lead.id)
}

fn merge(members: &[&LeadKey]) -> Option<Group> {
    let (first, others) = members.split_first()?;
    let mut sources: Vec<String> = Vec::new();
    for member in members {
        if !sources.contains(&member.source) {
            sources.push(member.source.clone());
        }
    }
    let joined = others.iter().filter_map(|other| Some(Joined { id: other.id.clone(), reason: compare(first, other)?.1 })).collect();
    let basis = members.iter().map(|member| member.basis).min()?;
    Some(Group { first: first.id.clone(), source: first.source.clone(), sources, basis, joined })
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;
    use jiff::civil::date;
    use rand::rngs::StdRng;
    use rand::seq::{IndexedRandom, SliceRandom};
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn lead(id: &str, source: &str, business: &str, day: i32, street: &str) -> LeadKey {
        LeadKey {
            id: id.to_owned(),
            source: source.to_owned(),
            same: same_key(business, "CO", "AUTO_LIABILITY_BIPD", "new_carrier").unwrap(),
            day: date(2026, 11, 1) + day.days(),
            address: Address::new(street, "Denver", "CO", if street.is_empty() { "" } else { "80202" }),
            basis: Basis::Likely,
        }
    }

    fn groups(leads: &[LeadKey]) -> Vec<String> {
        let shown = |group: &Group| {
            let ids: Vec<&str> =
                std::iter::once(group.first.as_str()).chain(group.joined.iter().map(|joined| joined.id.as_str())).collect();
            format!("{} from {}", ids.join("+"), group.sources.join("+"))
        };
        group(leads).iter().map(shown).collect()
    }

    /// Proves the rule of the contract: one business in two sources, two days apart and written in two ways, is one lead that names both sources; the
    /// earliest leads, and the stronger basis wins.
    #[test]
    fn one_business_in_two_sources() {
        let state = lead("s", "sos-co", "Blue Mesa Freight, L.L.C.", 0, "312 CARTER ST");
        let carrier = LeadKey { basis: Basis::Mandated, ..lead("f", "fmcsa", "BLUE MESA FREIGHT LLC", 2, "312 EAST CARTER STREET") };
        let expected = Group {
            first: "s".into(),
            source: "sos-co".into(),
            sources: vec!["sos-co".into(), "fmcsa".into()],
            basis: Basis::Mandated,
            joined: vec![Joined {
                id: "f".into(),
                reason: "the same name and state, 2 days apart; the same house number, street and ZIP code".into(),
            }],
        };
        assert_eq!(group(&[carrier, state]), [expected]);
    }

    /// Proves when leads are about two businesses: another name, state, line, trigger family, place or more than 30 days; and that one missing address
    /// or the same ZIP code and house number suffices.
    #[test]
    fn boundaries() {
        let first = lead("a", "sos-co", "Acme LLC", 0, "312 Carter St");
        for (other, is_same) in [
            (lead("b", "fmcsa", "ACME INC", 30, "312 Carter St"), true),
            (lead("b", "fmcsa", "Acme LLC", 31, "312 Carter St"), false),
            (lead("b", "fmcsa", "Acme LLC", -30, ""), true),
            (lead("b", "fmcsa", "Acme LLC", 1, "312 Locust St"), true),
            (lead("b", "fmcsa", "Acme LLC", 1, "314 Carter St"), false),
            (lead("b", "fmcsa", "Acme Bio LLC", 1, "312 Carter St"), false),
        ] {
            assert_eq!(group(&[first.clone(), other.clone()]).len() == 1, is_same, "{other:?}");
        }
        let key = |state, line, trigger| same_key("Acme LLC", state, line, trigger).unwrap();
        assert_eq!(key("CO", "CARGO", "insurance_lapse"), key("co ", "CARGO", "cancellation"));
        let all = [
            ("CO", "CARGO", "new_carrier"),
            ("NY", "CARGO", "new_carrier"),
            ("CO", "SURETY_BOND", "new_carrier"),
            ("CO", "CARGO", "authority_granted"),
        ];
        let all: std::collections::BTreeSet<String> = all.into_iter().map(|(state, line, trigger)| key(state, line, trigger)).collect();
        assert_eq!(all.len(), 4);
        assert_eq!(key("CO", "CARGO", "new_carrier"), key("CO", "CARGO", "entity_formed"));
        assert_eq!(same_key("--", "CO", "CARGO", "new_carrier"), None);
        let known = name_key("Acme LLC").map(|name| same_key_of(&name, "co ", "CARGO", "cancellation"));
        assert_eq!(known.unwrap(), key("CO", "CARGO", "insurance_lapse"));
    }

    /// Proves that two numbers of one register are two businesses unless their address is the same, and that those of two registers are not compared.
    #[test]
    fn numbers_of_one_register() {
        let at =
            |number: &str, source: &str, street: &str| lead(&format!("{source}:{number}:CARGO:new_carrier:1"), source, "Acme", 0, street);
        let closeness_of = |one: &LeadKey, other: &LeadKey| compare(one, other).map(|(closeness, _)| closeness);
        assert_eq!(closeness_of(&at("1", "sos-ny", ""), &at("2", "sos-ny", "")), None);
        assert_eq!(closeness_of(&at("1", "sos-ny", ""), &at("1", "sos-ny", "")), Some(Closeness::Missing));
        assert_eq!(closeness_of(&at("US-CT.BER:1", "sos-ct", ""), &at("US-CT.BER:2", "sos-ct", "")), None);
        assert_eq!(closeness_of(&at("1", "sos-ny", ""), &at("2", "fmcsa", "312 Carter St")), Some(Closeness::Missing));
        assert_eq!(closeness_of(&at("1", "fmcsa", "312 Carter St"), &at("2", "fmcsa", "312 Locust St")), None);
        assert_eq!(closeness_of(&at("1", "fmcsa", "312 Carter St"), &at("2", "fmcsa", "312 E Carter Street")), Some(Closeness::Same));
    }

    /// Proves the decision of each labelled pair of leads.
    #[test]
    fn labelled_pairs() {
        let pairs: Vec<&str> = include_str!("../data/business_pairs.txt").lines().filter(|line| !line.starts_with('#')).collect();
        let (mut found, mut wrong, mut missed) = (0, Vec::<&&str>::new(), Vec::<&&str>::new());
        for pair in &pairs {
            let [label, one, other] = pair.split(" || ").collect::<Vec<_>>().try_into().unwrap();
            let key = |text: &str, source: &str| {
                let [name, street, city, zip] = text.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
                let address = Address::new(street, city, "CO", zip);
                LeadKey {
                    source: source.to_owned(),
                    same: same_key(name, "CO", "CARGO", "new_carrier").unwrap(),
                    address,
                    ..lead("", "", "X", 0, "")
                }
            };
            let is_same = compare(&key(one, "fmcsa"), &key(other, "sos-co")).is_some();
            assert!(["other", "same"].contains(&label), "{pair}");
            found += usize::from(is_same);
            wrong.extend((is_same && label == "other").then_some(pair));
            missed.extend((!is_same && label == "same").then_some(pair));
        }
        assert!(pairs.len() >= 100 && found > 50, "{found} of {} pairs were found", pairs.len());
        assert!(wrong.is_empty() && missed.is_empty(), "wrong: {wrong:#?}, missed: {missed:#?}");
    }

    /// Proves that a lead without an address joins one group only, and never leads of two places into one.
    #[test]
    fn a_missing_address_joins_no_two_places() {
        let (here, there) = (lead("a", "fmcsa", "Acme", 1, "312 Carter St"), lead("b", "sos-co", "Acme", 2, "9 Locust St"));
        let nowhere = lead("c", "sos-ny", "Acme", 0, "");
        assert_eq!(groups(&[here.clone(), there.clone(), nowhere]), ["c+a from sos-ny+fmcsa", "b from sos-co"]);
        let later = lead("c", "sos-ny", "Acme", 3, "9 Locust St");
        assert_eq!(groups(&[here, there, later]), ["a from fmcsa", "b+c from sos-co+sos-ny"]);
    }

    /// Proves that the groups do not depend on the order of leads or on repeats, that each lead is in one group, that every two leads of a group go
    /// together, and that the first is the earliest.
    #[test]
    fn groups_depend_on_the_set_only() {
        let mut random = StdRng::seed_from_u64(3);
        let mut merged = 0;
        for _ in 0..300 {
            let count = random.random_range(0..12);
            let mut leads: Vec<LeadKey> = (0..count)
                .map(|at| {
                    let business = ["Acme", "Acme LLC", "Bee"].choose(&mut random).unwrap();
                    let street = ["", "", "1 A St", "1 East A Street", "1 Other Rd", "2 A St"].choose(&mut random).unwrap();
                    let source = ["fmcsa", "sos-co", "sos-ny"].choose(&mut random).unwrap();
                    let day = random.random_range(0..70);
                    let basis = *[Basis::Mandated, Basis::Likely, Basis::Possible].choose(&mut random).unwrap();
                    LeadKey { basis, ..lead(&format!("{at}"), source, business, day, street) }
                })
                .collect();
            let expected = group(&leads);
            let by_id: std::collections::BTreeMap<String, LeadKey> = leads.iter().map(|lead| (lead.id.clone(), lead.clone())).collect();
            leads.shuffle(&mut random);
            leads.extend(leads.first().cloned());
            assert_eq!(group(&leads), expected);
            let mut ids: Vec<&String> = Vec::new();
            for group in &expected {
                let members: Vec<&LeadKey> =
                    std::iter::once(&group.first).chain(group.joined.iter().map(|joined| &joined.id)).map(|id| &by_id[id]).collect();
                ids.extend(members.iter().map(|member| &member.id));
                for one in &members {
                    assert!(members.iter().all(|other| compare(one, other).is_some()) && order(members[0]) <= order(one));
                    assert!(group.sources.contains(&one.source) && group.basis <= one.basis);
                }
                merged += members.len() - 1;
            }
            ids.sort_unstable();
            assert_eq!(ids.len(), count);
            ids.dedup();
            assert_eq!(ids.len(), count);
        }
        assert!(merged > 200, "{merged} leads were merged");
    }

    /// Proves that many leads of one name are grouped within bounds: the further ones are groups of their own.
    #[test]
    fn many_leads_are_bounded() {
        let leads: Vec<LeadKey> = (0..LEADS_MAX + 50).map(|at| lead(&format!("{at:04}"), "fmcsa", "Acme", 0, "")).collect();
        let groups = group(&leads);
        assert_eq!((groups.len(), groups[0].joined.len()), (51, LEADS_MAX - 1));
    }
}
