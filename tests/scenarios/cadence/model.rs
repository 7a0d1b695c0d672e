//! A model of the restocks of one store, written from the rules and independently of the service.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of variants, by product and variant: whether they can be bought.
pub(super) type Availability = BTreeMap<(String, String), bool>;

/// A model of the restocks of one store, written from the rules and independently of the service.
#[derive(Default)]
pub(super) struct Model {
    /// What is known after each complete poll, with its time.
    pub(super) polls: Vec<(i64, Availability)>,
    /// The variants that the last poll did not show.
    missed: BTreeSet<(String, String)>,
}

impl Model {
    /// Adds a complete poll. A variant that only one poll lacks was skipped.
    pub(super) fn poll(&mut self, at_ms: i64, mut shown: Availability) {
        let before = self.polls.last().map(|(_, known)| known.clone()).unwrap_or_default();
        let missing: BTreeMap<_, _> = before.into_iter().filter(|(variant, _)| !shown.contains_key(variant)).collect();
        let skipped: BTreeMap<_, _> = missing.into_iter().filter(|(variant, _)| !self.missed.contains(variant)).collect();
        self.missed = skipped.keys().cloned().collect();
        shown.extend(skipped);
        self.polls.push((at_ms, shown));
    }

    /// The restocks of each product: the polls around them, how many variants, and whether they are trickles.
    pub(super) fn restocks(&self) -> BTreeMap<String, Vec<(i64, i64, i64, bool)>> {
        let mut out: BTreeMap<String, Vec<(i64, i64, i64, bool)>> = BTreeMap::new();
        let known = |at: usize, variant: &(String, String)| self.polls.get(at).and_then(|(_, shown)| shown.get(variant).copied());
        for at in 1..self.polls.len() {
            let mut up: BTreeMap<&str, Vec<&(String, String)>> = BTreeMap::new();
            for (variant, is_available) in &self.polls[at].1 {
                // Sold out at the poll before, available now, and available at some earlier poll.
                let was_ever = (0..at).any(|earlier| known(earlier, variant) == Some(true));
                if *is_available && known(at - 1, variant) == Some(false) && was_ever {
                    up.entry(&variant.0).or_default().push(variant);
                }
            }
            for (product, variants) in up {
                let is_trickle = variants.len() == 1 && known(at + 1, variants[0]) == Some(false);
                let restock = (self.polls[at - 1].0, self.polls[at].0, variants.len() as i64, is_trickle);
                out.entry(product.to_owned()).or_default().push(restock);
            }
        }
        out
    }
}
