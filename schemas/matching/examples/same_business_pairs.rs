//! Decides for pairs of leads whether they are about one business: reads a JSON array of two objects (`business`, `state`, `street`, `city`, `zip`, `day`)
//! from each line of standard input, and prints `same` or `other`, a tab, and the reason. `ops/checks/same-business-yardstick` runs it.

#![expect(clippy::print_stdout, reason = "the decisions are the result")]

use std::io::BufRead;

use jiff::civil::Date;
use matching::address::Address;
use matching::mandates::Basis;
use matching::same_business::{LeadKey, compare, same_key};
use serde::Deserialize;

#[derive(Deserialize)]
struct Lead {
    business: String,
    state: String,
    street: String,
    city: String,
    zip: String,
    day: Date,
}

impl Lead {
    fn key(&self) -> Option<LeadKey> {
        Some(LeadKey {
            id: String::new(),
            source: String::new(),
            same: same_key(&self.business, &self.state, "GENERAL_LIABILITY", "entity_formed")?,
            day: self.day,
            address: Address::new(&self.street, &self.city, &self.state, &self.zip),
            basis: Basis::Likely,
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let (one, other): (Lead, Lead) = serde_json::from_str(&line?)?;
        match one.key().zip(other.key()).and_then(|(one, other)| compare(&one, &other)) {
            Some((_, reason)) => println!("same\t{reason}"),
            None => println!("other\t"),
        }
    }
    Ok(())
}
