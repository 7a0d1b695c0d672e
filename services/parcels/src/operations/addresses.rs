//! The addresses of parcels, permits, liens and flags: a PIN as people write it, or an id in any case.

use crate::county::{self, County};
use crate::record::id;
use crate::record::permit::permit_id;

/// The ids that a text can mean: `cook-il/16012160010000` of `16-01-216-001-0000`. Permits have the numbers that cities give them, in most cases with capitals.
pub(crate) fn ids_of(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.trim().splitn(4, '/').collect();
    let is = |part: &str, word: &str| part.eq_ignore_ascii_case(word);
    let ids = match parts.as_slice() {
        [pin] => parcel("", pin).map(|(county, pin)| vec![id(county, &pin)]),
        [lien, hash] if is(lien, "lien") => Some(vec![format!("lien/{}", hash.to_lowercase())]),
        [county, pin] => parcel(county, pin).map(|(county, pin)| vec![id(county, &pin)]),
        [flag, pin, rule] if is(flag, "flag") => parcel("", pin).map(|(_, pin)| vec![format!("flag/{pin}/{}", rule.to_uppercase())]),
        [county, pin, permit, number] if is(permit, "permit") => parcel(county, pin).map(|(county, pin)| {
            let capitals = number.to_uppercase();
            vec![permit_id(county, &pin, number), permit_id(county, &pin, &capitals)]
        }),
        _ => None,
    };
    ids.unwrap_or_default()
}

/// The county and the PIN of a parcel, by a PIN and the county that stands before it, if one does.
fn parcel(given: &str, pin: &str) -> Option<(&'static str, String)> {
    let pin = county::pin("id", pin).ok()?;
    let county = County::of_pin(&pin).name();
    (given.is_empty() || given.eq_ignore_ascii_case(county)).then_some((county, pin))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which records the numbers of parcels name.
    #[test]
    fn numbers_of_parcels() {
        for (text, expected) in [
            ("16-01-216-001-0000", "cook-il/16012160010000"),
            (" 16012160010000", "cook-il/16012160010000"),
            ("COOK-IL/16-01-216-001-0000", "cook-il/16012160010000"),
            ("0028-f-00194-0000-00", "allegheny-pa/0028F00194000000"),
            ("allegheny-pa/0028f00194000000", "allegheny-pa/0028F00194000000"),
        ] {
            assert_eq!(ids_of(text), [expected], "{text}");
        }
        let permits = ["cook-il/16012160010000/permit/b-1", "cook-il/16012160010000/permit/B-1"];
        assert_eq!(ids_of("Cook-IL/16-01-216-001-0000/Permit/b-1"), permits);
        for none in ["1601216001", "allegheny-pa/16012160010000", "allegheny-pa/16012160010000/permit/1", "cook-il/16012160010000/1", ""] {
            assert_eq!(ids_of(none), Vec::<String>::new(), "{none}");
        }
    }
}
