//! Variants whose newest fact is from an outdated copy of the list.
//!
//! Such a fact says nothing, but the variant's next fact is compared with it: a store whose present state equals the outdated one gives no new
//! fact. The first later poll that read a present copy, and gave no fact for the variant, therefore confirms what the outdated copy said.

use crate::record::StoreState;
use serde::{Deserialize, Serialize};

use super::batch::{self, Observed};
use super::{CadenceRules, VariantState, variant_key};
use fold::records::State;
use fold::undecided::{self, Undecided};

/// How many variants of a store can wait for a present copy. Those beyond it wait for their next fact.
const OUTDATED_MAX: usize = 2_000;

/// What an outdated copy said about a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outdated {
    product: String,
    observed: Observed,
}

fn outdated_key(host: &str) -> String {
    format!("outdated/{host}")
}

/// Keeps what an outdated copy said about a variant.
pub(super) fn add(state: &mut State<'_, CadenceRules>, host: &str, product: &str, observed: Observed) -> Result<(), Undecided> {
    let key = outdated_key(host);
    let mut all: Vec<Outdated> = state.get(&key)?.unwrap_or_default();
    all.retain(|known| known.observed.variant != observed.variant);
    if all.len() < OUTDATED_MAX {
        all.push(Outdated { product: product.to_owned(), observed: Observed { before: None, ..observed } });
    }
    state.remember(&key, Some(&all))
}

/// At a complete poll of a present copy: adds to the open batch what outdated copies of earlier polls said about variants without a fact since.
pub(super) fn settle(state: &mut State<'_, CadenceRules>, host: &str, at_ms: i64, earlier: &StoreState) -> Result<(), Undecided> {
    let key = outdated_key(host);
    let all: Vec<Outdated> = state.get(&key)?.unwrap_or_default();
    let last_ms = earlier.polls.last().map_or(i64::MIN, |poll| poll.at_ms);
    // What this poll itself read from an outdated page waits for the next one.
    let (settled, waiting): (Vec<Outdated>, Vec<Outdated>) = all.into_iter().partition(|outdated| outdated.observed.seen_ms <= last_ms);
    if settled.is_empty() {
        return Ok(());
    }
    let variants = settled.iter().map(|outdated| state.get::<VariantState>(&variant_key(host, &outdated.observed.variant)));
    let variants = undecided::all(variants)?;
    for (Outdated { product, observed }, variant) in settled.into_iter().zip(variants) {
        let Some(before) = variant.filter(|variant| variant.is_outdated) else { continue };
        let available = observed.available.unwrap_or_default();
        let now = VariantState {
            available,
            ever: before.ever || available,
            removed: false,
            is_outdated: false,
            since_ms: if before.available == available && !before.removed { before.since_ms } else { at_ms },
            ..before.clone()
        };
        state.remember(&variant_key(host, &observed.variant), Some(&now))?;
        batch::add(state, host, &product, Observed { before: Some(before), seen_ms: at_ms, ..observed })?;
    }
    state.remember(&key, (!waiting.is_empty()).then_some(&waiting))
}
