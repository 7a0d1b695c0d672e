//! The states of the United States, by name and by their two letters.

/// Two letters and name, of the states and the territories that are counted with them.
const STATES: &str = "AL Alabama;AK Alaska;AZ Arizona;AR Arkansas;CA California;CO Colorado;CT Connecticut;DE Delaware;DC District of Columbia;\
    FL Florida;GA Georgia;HI Hawaii;ID Idaho;IL Illinois;IN Indiana;IA Iowa;KS Kansas;KY Kentucky;LA Louisiana;ME Maine;MD Maryland;\
    MA Massachusetts;MI Michigan;MN Minnesota;MS Mississippi;MO Missouri;MT Montana;NE Nebraska;NV Nevada;NH New Hampshire;NJ New Jersey;\
    NM New Mexico;NY New York;NC North Carolina;ND North Dakota;OH Ohio;OK Oklahoma;OR Oregon;PA Pennsylvania;RI Rhode Island;\
    SC South Carolina;SD South Dakota;TN Tennessee;TX Texas;UT Utah;VT Vermont;VA Virginia;WA Washington;WV West Virginia;WI Wisconsin;\
    WY Wyoming;AS American Samoa;GU Guam;MP Northern Mariana Islands;PR Puerto Rico;VI Virgin Islands";

/// The states by the first digit of their ZIP codes.
const BY_ZIP: [&str; 10] = [
    "CT MA ME NH NJ NY PR RI VI VT",
    "DE NY PA",
    "DC MD NC SC VA WV",
    "AL FL GA MS TN",
    "IN KY MI OH",
    "DC IA MN MT ND SD WI",
    "IL KS MO NE",
    "AR LA OK TX",
    "AZ CO ID NM NV TX UT WY",
    "AK AS CA GU HI MP OR WA",
];

/// Whether a ZIP code can be one of a state, given its two letters, by the first of five digits.
#[must_use]
pub(crate) fn has_zip(letters: &str, zip: &str) -> bool {
    let first = zip.chars().next().and_then(|digit| digit.to_digit(10));
    let states = first.and_then(|digit| BY_ZIP.get(usize::try_from(digit).ok()?));
    zip.len() == 5 && states.is_some_and(|states| states.split(' ').any(|state| state == letters))
}

/// Returns the two letters of a state, given its name or its letters, ignoring case.
#[must_use]
pub(crate) fn letters(text: &str) -> Option<&'static str> {
    let text = text.trim();
    STATES
        .split(';')
        .filter_map(|state| state.split_once(' '))
        .find_map(|(letters, name)| (letters.eq_ignore_ascii_case(text) || name.eq_ignore_ascii_case(text)).then_some(letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names and letters are recognised in any case, and nothing else.
    #[test]
    fn reads_names_and_letters() {
        assert_eq!(
            [letters("Massachusetts"), letters("new york"), letters(" wv "), letters("Puerto Rico")],
            [Some("MA"), Some("NY"), Some("WV"), Some("PR")]
        );
        assert_eq!([letters(""), letters("Ile-de-France"), letters("Vir")], [None; 3]);
        let mut all: Vec<&str> = STATES.split(';').filter_map(|state| state.get(..2)).collect();
        all.sort_unstable();
        assert_eq!(all, texts::values::US_STATES, "filters know other states than records can have");
        assert!(
            all.iter().all(|state| BY_ZIP.iter().any(|states| states.split(' ').any(|known| known == *state))),
            "a state without ZIP codes"
        );
    }

    /// Proves that a ZIP code is one of its state, and a text that is none of no state.
    #[test]
    fn zips_have_states() {
        for (state, zip, has) in [
            ("PA", "15213", true),
            ("MD", "15213", false),
            ("MA", "02134", true),
            ("DC", "20500", true),
            ("PA", "1521", false),
            ("PA", "", false),
            ("PA", "PITTS", false),
        ] {
            assert_eq!(has_zip(state, zip), has, "{state} {zip}");
        }
    }
}
