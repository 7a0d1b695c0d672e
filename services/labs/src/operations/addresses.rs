//! The address of a lead: the funder's number of the award.

use texts::numbers::has_only_digits;

/// The ids that a text can mean: `nih:11223344` of `11223344` and `NIH:11223344`.
pub(crate) fn ids_of(text: &str) -> Vec<String> {
    let number = text.trim().rsplit([':', '/']).next().unwrap_or_default();
    let is_number = has_only_digits(number);
    if is_number { vec![format!("nih:{number}")] } else { Vec::new() }
}
