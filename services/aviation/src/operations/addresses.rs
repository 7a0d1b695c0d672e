//! The address of a directive: its number as people and lists write it.

use super::shared_directive::normal_number;

/// The digits of the cycle of a directive, and the most digits of its revision.
const CYCLE_DIGITS: usize = 2;
const REVISION_DIGITS_MAX: usize = 2;

/// The ids that a text can mean: `2026-15-05` of `AD 2026-15-05`, `87-20-03 R2` of `1987-20-03R2`. Directives of the last century have a year of two digits,
/// or of four.
pub(crate) fn ids_of(text: &str) -> Vec<String> {
    let number = normal_number(text);
    let (digits, revision) = number.split_at(number.bytes().take_while(u8::is_ascii_digit).count());
    let is_revision = |text: &&str| (1..=REVISION_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let revision = match revision.strip_prefix('R').filter(is_revision) {
        Some(revision) => format!(" R{revision}"),
        None if revision.is_empty() => String::new(),
        None => return Vec::new(),
    };
    let (year_digits, centuries) = match digits.len() {
        6 => (2, &["", "19"][..]),
        8 => (4, &[""][..]),
        _ => return Vec::new(),
    };
    let (year, rest) = digits.split_at(year_digits);
    let (cycle, order) = rest.split_at(CYCLE_DIGITS);
    centuries.iter().map(|century| format!("{century}{year}-{cycle}-{order}{revision}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which records the numbers of directives name.
    #[test]
    fn numbers_of_directives() {
        for (text, expected) in [
            ("AD 2026-15-05", &["2026-15-05"][..]),
            ("20261505", &["2026-15-05"]),
            ("ad 87-20-03 r2", &["87-20-03 R2", "1987-20-03 R2"]),
            ("1987-20-03R2", &["87-20-03 R2", "1987-20-03 R2"]),
        ] {
            assert_eq!(ids_of(text), expected, "{text}");
        }
        for none in ["", "AD", "2026-15-5", "2026-15-05 X", "2026-15-05 R", "2026-15-05 R123", "\u{732b}"] {
            assert_eq!(ids_of(none), Vec::<String>::new(), "{none}");
        }
    }
}
