//! No directive of the labelled cases is missed for an aircraft, an engine or a propeller that it is for.

use directives::{Aircraft, Publication, ResolvedAircraft, Verdict, clean, compare, read};
use serde_json::Value;

use crate::texts::Text;

fn pair(part: &Value) -> Option<(&str, &str)> {
    Some((part[0].as_str()?, part[1].as_str()?))
}

/// Proves that the cases of `data/cases.jsonl` have no silent miss: every aircraft that a case lists is found with the verdict that it should have, or at
/// least as possible, and one that should not be found is not.
#[test]
fn no_silent_miss() {
    let text_of = |case: &Value, name: &str| case[name].as_str().unwrap_or_default().to_owned();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for line in include_str!("../../data/cases.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let [title, holder, summary, whole] = ["title", "holder", "summary", "text"].map(|name| text_of(&case, name));
        let [applicability, actions] = ["applicability", "actions"].map(|name| text_of(&case, name));
        let parts = Text { holder: &holder, applicability: &applicability, actions: &actions, ..Text::default() };
        let text = clean(&if whole.is_empty() { parts.printed() } else { whole });
        let directive = read(&Publication { title: &title, summary: &summary, text: &text, effective_on: None }).unwrap().remove(0);
        for aircraft in case["aircraft"].as_array().into_iter().flatten() {
            let (make, model) = (text_of(aircraft, "make"), text_of(aircraft, "model"));
            let (engine, propeller) = (pair(&aircraft["engine"]), pair(&aircraft["propeller"]));
            let named = Aircraft { make: &make, model: &model, engine, propeller, ..Aircraft::default() };
            let verdict = compare(&directive, &ResolvedAircraft::new(&named)).verdict;
            let is_right = match aircraft["verdict"].as_str() {
                Some("NONE") => verdict == Verdict::None,
                Some("MATCH") => verdict == Verdict::Match,
                _ => verdict > Verdict::None,
            };
            compared += 1;
            if !is_right {
                wrong.push(format!("{}: {make} {model} {engine:?} {propeller:?} is {verdict:?}", case["id"]));
            }
        }
    }
    assert!(wrong.is_empty() && compared > 300, "{compared}: {wrong:#?}");
}
