//! The numbers by which people know records: of recalls, awards and trials, and of companies (CIK). They write them in any case, with and without signs between
//! their parts, with and without zeros before them.

/// The fewest characters of a number.
const NUMBER_CHARS_MIN: usize = 4;
/// The most characters of a number.
const NUMBER_CHARS_MAX: usize = 60;
/// How many digits the number of a company (CIK) has in records, and has at most where its zeros are left out.
pub const CIK_DIGITS: usize = 10;

/// Whether a text is a number without signs: one ASCII digit or more, and nothing else.
#[must_use]
pub fn has_only_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the letters and digits of a number, in lower case: `z03152026` of `Z-0315-2026`.
#[must_use]
pub fn compact(number: &str) -> String {
    number.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns the compact form of a text that can be a number: one word with a digit, without the name before a colon. `None` for any other text.
#[must_use]
pub fn number_of(text: &str) -> Option<String> {
    let text = text.trim();
    let number = compact(text.rsplit(':').next().unwrap_or_default());
    let is_number = text.is_ascii()
        && !text.contains(char::is_whitespace)
        && number.bytes().any(|byte| byte.is_ascii_digit())
        && (NUMBER_CHARS_MIN..=NUMBER_CHARS_MAX).contains(&number.len());
    is_number.then_some(number)
}

/// Returns the whole number of a campaign of NHTSA that is given without its zeros: `26v360000` of `26v360`.
#[must_use]
pub fn campaign(number: &str) -> Option<String> {
    let bytes = number.as_bytes();
    let is_short = bytes.len() == 6
        && bytes.iter().enumerate().all(|(at, byte)| if at == 2 { byte.is_ascii_alphabetic() } else { byte.is_ascii_digit() });
    is_short.then(|| format!("{number}000"))
}

/// Returns the number of a trial in a text, with or without a prefix that ends in a slash or a colon: `NCT04207047` of `trial/nct04207047`.
#[must_use]
pub fn trial_number(text: &str) -> Option<String> {
    let number = text.trim().rsplit(['/', ':']).next().unwrap_or_default().to_ascii_uppercase();
    let digits = number.strip_prefix("NCT")?;
    (digits.len() == 8 && has_only_digits(digits)).then_some(number)
}

/// Pads the number of a company (CIK) with zeros to the form that records have: `0000320193` of `320193`. `None` for a text that is not a number of up to
/// [`CIK_DIGITS`] digits.
#[must_use]
pub fn pad_cik(text: &str) -> Option<String> {
    let digits = text.trim();
    (digits.len() <= CIK_DIGITS && has_only_digits(digits)).then(|| format!("{digits:0>CIK_DIGITS$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a number without signs has a digit, and nothing else, also no digit of another script.
    #[test]
    fn numbers_without_signs() {
        for (text, is_number) in
            [("0", true), ("0123456789", true), ("", false), (" 1", false), ("-1", false), ("1a", false), ("\u{661}", false)]
        {
            assert_eq!(has_only_digits(text), is_number, "{text:?}");
        }
    }

    /// Proves that a number of a company has ten digits, however many of its zeros are written, and which texts are none.
    #[test]
    fn numbers_of_companies() {
        for text in ["320193", "0000320193", " 00320193\n"] {
            assert_eq!(pad_cik(text).as_deref(), Some("0000320193"), "{text:?}");
        }
        assert_eq!((pad_cik("0").as_deref(), pad_cik("9999999999").as_deref()), (Some("0000000000"), Some("9999999999")));
        for text in ["", " ", "x", "-1", "1 2", "12345678901", "\u{661}"] {
            assert_eq!(pad_cik(text), None, "{text:?}");
        }
    }

    /// Proves which texts are numbers, and how they are compared.
    #[test]
    fn numbers() {
        for (text, expected) in [
            ("26V360000", Some("26v360000")),
            (" z-0315-2026 ", Some("z03152026")),
            ("NHTSA:26v360000", Some("26v360000")),
            ("W912-DR-20-C-0001", Some("w912dr20c0001")),
            ("009-2026", Some("0092026")),
            ("peanut", None),
            ("child seat 2", None),
            ("18", None),
            ("\u{661}\u{662}\u{663}\u{664}", None),
        ] {
            assert_eq!(number_of(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!((campaign("26v360").as_deref(), campaign("26v360000"), campaign("123456")), (Some("26v360000"), None, None));
        for text in ["NCT04207047", "nct04207047", "trial/NCT04207047", "ctgov:nct04207047"] {
            assert_eq!(trial_number(text).as_deref(), Some("NCT04207047"), "{text}");
        }
        assert_eq!((trial_number("NCT1"), trial_number("grant/12345678")), (None, None));
    }
}
