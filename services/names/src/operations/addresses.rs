//! The address of a mark: its serial number as people write it.

use texts::numbers::has_only_digits;

/// The digits of a serial number.
const SERIAL_DIGITS: usize = 8;
/// The words that stand before a serial number.
const WORDS: [&str; 5] = ["US", "SN", "SERIAL", "NO", "NUMBER"];

/// The ids that a text can mean: `98123456` of `98/123,456` and `Serial No. 98123456`.
pub(crate) fn ids_of(text: &str) -> Vec<String> {
    let upper = text.trim().to_ascii_uppercase();
    let number = upper.trim_start_matches(|c: char| !c.is_ascii_digit());
    let words = upper.strip_suffix(number).unwrap_or_default().replace(['.', ':', '#'], " ");
    let is_serial = words.split_whitespace().all(|word| WORDS.contains(&word));
    let digits: String = number.chars().filter(|c| !['/', ',', '-', ' '].contains(c)).collect();
    let is_number = is_serial && digits.len() == SERIAL_DIGITS && has_only_digits(&digits);
    is_number.then_some(digits).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which records the numbers of marks name.
    #[test]
    fn numbers_of_marks() {
        for text in ["97000001", "97/000,001", "97/000001", "SN 97000001", "Serial No. 97-000-001", "US Serial Number: 97000001"] {
            assert_eq!(ids_of(text), ["97000001"], "{text}");
        }
        for none in ["", "9700001", "Reg. No. 5,123,456", "Lutexal 97000001", "97000001x", "\u{732b}97000001"] {
            assert_eq!(ids_of(none), Vec::<String>::new(), "{none}");
        }
    }
}
