//! Keys under which a directive is found: lists of directives by make and by the first signs of a model.
//!
//! Promise: if [`compare`](crate::compare) finds a directive possible or matching for an aircraft, the two have a key in common. A test compares
//! all pairs of many texts and aircraft.

use std::collections::BTreeSet;

use crate::aliases::tails;
use crate::directive::{Directive, Product, UnreadReason};
use crate::matching::{ResolvedAircraft, ResolvedModel, is_of_unknown_holder};

/// The signs of a compact form that a key holds. Every relation between two models needs as many equal ones, or equal forms.
const SIGNS: usize = 2;
/// The make of a key that holds for all makes.
const ANY_MAKE: &str = "*";
/// The model of a key that holds for all models.
const ANY_MODEL: &str = "*";
/// The key of directives that may be for any aircraft: an appliance that may be installed anywhere, or a text that names no make and could not be read.
pub const ANY_AIRCRAFT: &str = "*/*";

/// The keys of a directive, sorted.
#[must_use]
pub fn keys_of(directive: &Directive) -> Vec<String> {
    let applicability = &directive.applicability;
    let mut signs = BTreeSet::new();
    for model in &applicability.models {
        signs.extend(std::iter::once(&model.form).chain(&model.also).chain([&model.series]).filter_map(|form| signs_of(form)));
    }
    signs.extend(applicability.mentions.iter().filter_map(|mention| signs_of(&mention.form)));
    let forms = applicability.models.iter().map(|model| &model.form).chain(applicability.mentions.iter().map(|mention| &mention.form));
    signs.extend(forms.flat_map(|form| tails(form)).filter_map(signs_of));
    let mut keys = BTreeSet::new();
    let add_all = |make: &str, keys: &mut BTreeSet<String>| keys.extend(signs.iter().map(|signs| key(make, signs)));
    // What cannot be read is possible for every model of its makes.
    let is_unread = directive.unread.iter().any(|unread| {
        use UnreadReason::{EffectiveDate, NoActions, NoApplicability, NoModels, OlderLayout, Serials, TooLong};
        match unread.reason {
            NoApplicability | NoModels | OlderLayout | TooLong => true,
            EffectiveDate | NoActions | Serials => false,
        }
    });
    for make in &directive.makes {
        add_all(make, &mut keys);
        if is_unread {
            keys.insert(key(make, ANY_MODEL));
        }
    }
    let is_for_any = match directive.product {
        Product::Appliance => applicability.is_open,
        Product::Aircraft | Product::Engine | Product::Propeller => directive.makes.is_empty() && is_unread,
    };
    if is_for_any {
        keys.insert(ANY_AIRCRAFT.to_owned());
    }
    if directive.makes.is_empty() || directive.product != Product::Aircraft || is_of_unknown_holder(directive) {
        add_all(ANY_MAKE, &mut keys);
        keys.extend(directive.named_in_summary.iter().filter_map(|mention| signs_of(&mention.form)).map(|signs| key(ANY_MAKE, signs)));
    }
    keys.into_iter().collect()
}

/// The keys under which the directives of an aircraft are found, sorted.
#[must_use]
pub fn keys_for(aircraft: &ResolvedAircraft) -> Vec<String> {
    let parts = [Some(&aircraft.airframe), aircraft.engine.as_ref(), aircraft.propeller.as_ref()];
    let keys: BTreeSet<String> = parts.into_iter().flatten().flat_map(keys_of_model).collect();
    keys.into_iter().collect()
}

fn keys_of_model(model: &ResolvedModel) -> BTreeSet<String> {
    let own = model.forms.iter().chain(&model.series).chain(&model.families).map(String::as_str);
    let signs: BTreeSet<&str> = own.chain(model.forms.iter().flat_map(|form| tails(form))).filter_map(signs_of).collect();
    let makes = model.makes.iter().map(String::as_str).chain([ANY_MAKE]);
    makes.flat_map(|make| signs.iter().map(move |signs| key(make, signs)).chain([key(make, ANY_MODEL)])).collect()
}

/// The first signs of a compact form, which consists of ASCII; a shorter form as a whole.
fn signs_of(form: &str) -> Option<&str> {
    form.get(..SIGNS.min(form.len())).filter(|signs| !signs.is_empty())
}

fn key(make: &str, signs: &str) -> String {
    format!("{make}/{signs}")
}
