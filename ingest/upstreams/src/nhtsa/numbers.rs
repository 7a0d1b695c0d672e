//! Numbers of campaigns: the agency's and the manufacturer's.

use crate::text;

/// The site of the notices.
pub(super) const SITE: &str = "https://www.nhtsa.gov";

/// Normalises a campaign number to nine characters: year, letter, serial, `000`. Some sources omit the zeros.
pub(super) fn campaign(text: &str) -> Option<String> {
    let mut number = text.trim().to_ascii_uppercase();
    let fits = matches!(number.as_bytes(), [y1, y2, letter, rest @ ..]
        if y1.is_ascii_digit() && y2.is_ascii_digit() && letter.is_ascii_uppercase()
            && matches!(rest.len(), 3 | 6) && rest.iter().all(u8::is_ascii_digit));
    if number.len() == 6 {
        number.push_str("000");
    }
    fits.then_some(number)
}

/// Returns the manufacturer's own campaign number, unless the text says that there is none.
pub(super) fn manufacturers_number(text: &str) -> Option<String> {
    let number = text::clean(text);
    let upper = number.to_ascii_uppercase();
    let none =
        number.is_empty() || upper.starts_with("NR (") || ["NR", "N/A", "NA", "NONE", "NOT REPORTED", "TBD", "UNKNOWN"].contains(&&*upper);
    (!none).then_some(number)
}
