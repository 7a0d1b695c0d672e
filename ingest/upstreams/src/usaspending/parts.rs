//! The fields that all records share: ids, amounts, and codes with their descriptions.

use schemas::facts::awards::AwardFact;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::{Field, Object};
use crate::text;

pub(super) const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// A longer id is invalid.
const ID_BYTES_MAX: usize = 200;
/// The placeholder for a missing parent.
const NONE: &str = "-NONE-";
/// The largest amount accepted, in dollars: a thousand times the federal budget.
const DOLLARS_MAX: i64 = 10_000_000_000_000_000;

/// Checks an award's id and fills in the fields that it contains: id, number, agencies, address.
pub(super) fn identify(fact: &mut AwardFact, id: &str) -> Result<(), String> {
    let id = id.trim();
    let fits = !id.is_empty() && id.len() <= ID_BYTES_MAX && !id.contains(|c: char| c.is_control() || c.is_whitespace());
    let parts = if !fits {
        None
    } else if let Some(rest) = id.strip_prefix("CONT_AWD_") {
        let mut parts = rest.rsplitn(4, '_');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(parent_agency), Some(parent), Some(agency), Some(piid)) => Some((piid, agency, parent, parent_agency)),
            _ => None,
        }
    } else {
        id.strip_prefix("CONT_IDV_").and_then(|rest| rest.rsplit_once('_')).map(|(piid, agency)| (piid, agency, NONE, NONE))
    };
    let Some((piid, agency, parent, parent_agency)) = parts else {
        return Err("not the id of a contract (CONT_AWD_…, CONT_IDV_…)".to_owned());
    };
    let known = |part: &str| if part == NONE { String::new() } else { part.to_owned() };
    (fact.piid, fact.agency_code) = (known(piid), known(agency));
    (fact.parent_piid, fact.parent_agency_code) = (known(parent), known(parent_agency));
    let mut url = "https://www.usaspending.gov/award/".to_owned();
    url.extend(form_urlencoded::byte_serialize(id.as_bytes()));
    fact.url = url;
    id.clone_into(&mut fact.award_id);
    Ok(())
}

/// Converts an amount in dollars to cents, exactly; `None` where there is none. Further digits are artefacts of summation and are rounded.
pub(super) fn cents(field: &Field<'_>) -> Result<Option<i64>, String> {
    let text = field.text().trim();
    if text.is_empty() {
        return Ok(None);
    }
    read_cents(text).map(Some).ok_or_else(|| format!("{:?} is not an amount", text::cut(text.to_owned(), 40)))
}

fn read_cents(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let digits = digits.strip_prefix('$').unwrap_or(digits);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let whole = whole.replace(',', "");
    if (whole.is_empty() && fraction.is_empty()) || !is_number(&whole) || !is_number(fraction) {
        return None;
    }
    let dollars: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |byte| i64::from(byte - b'0'));
    let cents = digit(0) * 10 + digit(1) + i64::from(digit(2) >= 5);
    if dollars > DOLLARS_MAX {
        return None;
    }
    let cents = dollars * 100 + cents;
    Some(if negative { -cents } else { cents })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pair<'a> {
    #[serde(borrow)]
    code: Field<'a>,
    #[serde(borrow)]
    description: Field<'a>,
}

/// A code and its description, which come as an object, or the code alone.
#[derive(Debug, Default)]
pub(super) struct Coded {
    /// Whether the record has it, at least as null.
    pub(super) is_there: bool,
    code: String,
    description: String,
}

impl Coded {
    /// Whether there is a code.
    pub(super) fn is_filled(&self) -> bool {
        !self.code.is_empty()
    }

    /// Returns the code and its description.
    pub(super) fn cloned(&self) -> (String, String) {
        (self.code.clone(), self.description.clone())
    }
}

impl<'de> Deserialize<'de> for Coded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        if text.starts_with('{') {
            let Pair { code, description } = serde_json::from_str(text).map_err(Error::custom)?;
            return Ok(Self { is_there: true, code: code.clean(), description: description.clean() });
        }
        let code: Field<'_> = serde_json::from_str(text).map_err(Error::custom)?;
        Ok(Self { is_there: true, code: code.clean(), description: String::new() })
    }
}

/// A location.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Location<'a> {
    #[serde(borrow)]
    location_country_code: Field<'a>,
    #[serde(borrow)]
    state_code: Field<'a>,
    #[serde(borrow)]
    city_name: Field<'a>,
    #[serde(borrow)]
    county_name: Field<'a>,
    #[serde(borrow)]
    zip5: Field<'a>,
}

pub(super) fn place_of_performance(fact: &mut AwardFact, place: &Object<Location<'_>>) {
    let Some(place) = &place.0 else { return };
    fact.place_city = place.city_name.clean();
    fact.place_county = place.county_name.clean();
    fact.place_state = place.state_code.clean();
    fact.place_zip = place.zip5.clean();
    fact.place_country = place.location_country_code.clean();
}

pub(super) fn recipients_place(fact: &mut AwardFact, place: &Object<Location<'_>>) {
    let Some(place) = &place.0 else { return };
    fact.recipient_city = place.city_name.clean();
    fact.recipient_state = place.state_code.clean();
    fact.recipient_country = place.location_country_code.clean();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that amounts are exact to the cent in every notation, and that other texts give none.
    #[test]
    fn amounts_are_exact() {
        for (text, expected) in [
            ("15639242.36", Some(1_563_924_236)),
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("-28909.0", Some(-2_890_900)),
            ("-0.01", Some(-1)),
            (".5", Some(50)),
            ("4345585999.0100002", Some(434_558_599_901)),
            ("0.295", Some(30)),
            ("1.999", Some(200)),
            ("$1,234.5", Some(123_450)),
            ("10000000000000000.99", Some(1_000_000_000_000_000_099)),
            ("10000000000000001", None),
            ("99999999999999999999999999", None),
            ("1e5", None),
            ("--1", None),
            ("1.2.3", None),
            (".", None),
            ("NaN", None),
            ("１", None),
        ] {
            assert_eq!(read_cents(text), expected, "{text}");
        }
        let number = |json: &str| cents(&serde_json::from_str(json).unwrap());
        assert_eq!(number("172213419.67"), Ok(Some(17_221_341_967)));
        assert_eq!(number("10489314619.0"), Ok(Some(1_048_931_461_900)));
        assert_eq!((number("null"), number("\"\"")), (Ok(None), Ok(None)));
        assert!(number("1e300").is_err() && number("\"x\"").is_err());
    }

    /// Proves that an id is split from its end, since a number may contain the separator, and that other ids are refused.
    #[test]
    fn ids_are_taken_apart() {
        let parts = |id: &str| {
            let mut fact = AwardFact::default();
            identify(&mut fact, id).map(|()| [fact.piid, fact.agency_code, fact.parent_piid, fact.parent_agency_code])
        };
        let same = |parts: [&str; 4]| Ok(parts.map(str::to_owned));
        assert_eq!(parts("CONT_AWD_0148_9700_MDA22001D0002_9700"), same(["0148", "9700", "MDA22001D0002", "9700"]));
        assert_eq!(parts(" CONT_AWD_80GSFC18C0008_8000_-NONE-_-NONE- "), same(["80GSFC18C0008", "8000", "", ""]));
        assert_eq!(parts("CONT_AWD_A_B_8000_-NONE-_-NONE-"), same(["A_B", "8000", "", ""]));
        assert_eq!(parts("CONT_IDV_80JSC019C0012_8000"), same(["80JSC019C0012", "8000", "", ""]));
        for bad in ["", "CONT_AWD_", "CONT_AWD_1_2_3", "CONT_IDV_1", "ASST_NON_80NSSC24K0522_080", "CONT_IDV_a b_8000", "80GSFC18C0008"] {
            assert!(parts(bad).is_err(), "{bad}");
        }
        assert!(parts(&format!("CONT_IDV_{}_8000", "9".repeat(200))).is_err());
    }
}
