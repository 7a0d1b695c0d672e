//! The address of a lead: its id in any case. A number of the business alone is none, because a business can have several leads.

/// The ids that a text can mean, from its source, number, line, trigger and day. Registers write their numbers with digits and capitals.
pub(crate) fn ids_of(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.trim().split(':').collect();
    let [source, number, line, trigger, day] = parts.as_slice() else { return Vec::new() };
    let (source, line, trigger) = (source.to_lowercase(), line.to_uppercase(), trigger.to_lowercase());
    let of_number = |number: &str| format!("{source}:{number}:{line}:{trigger}:{day}");
    vec![of_number(number), of_number(&number.to_uppercase())]
}
