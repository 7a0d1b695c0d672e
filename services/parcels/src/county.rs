//! Counties: how arguments name a class, a township and a parcel of either one.

use operation::problem::Problem;
pub use property::counties::County;
use property::counties::is_allegheny_class;
use texts::numbers::has_only_digits;
use texts::{allegheny, cook};

/// Reads a class of either county.
///
/// # Errors
/// `parameter-invalid`, naming the parameter.
pub(crate) fn class(given: &str) -> Result<String, Problem> {
    let class = cook::class(given);
    if cook::is_class(&class) || is_allegheny_class(&class) {
        return Ok(class);
    }
    let reason = match (cook::first_class_of(&class), class.as_bytes()) {
        (Some(first), _) => format!("is only the beginning of classes of Cook County: give a whole class, such as {first}"),
        (None, [letter]) if letter.is_ascii_uppercase() => {
            "is only the letter of classes of Allegheny County: give it with the code of the use, such as C411".to_owned()
        }
        _ => "is neither a class of Cook County, such as 517, nor one of Allegheny County, such as C411".to_owned(),
    };
    Err(Problem::parameter("class", format!("class: {given:?} {reason}")))
}

/// Reads a township of either county: in Cook County its code or name, in Allegheny County the three digits of a municipality or ward.
///
/// # Errors
/// `parameter-invalid`, naming the parameter.
pub(crate) fn township(given: &str) -> Result<String, Problem> {
    let text = given.trim();
    if text.len() == 3 && has_only_digits(text) {
        return Ok(text.to_owned());
    }
    cook::township_code(text).map(str::to_owned).ok_or_else(|| {
        let names: Vec<String> = cook::TOWNSHIPS.iter().map(|(code, name)| format!("{name} ({code})")).collect();
        let reason = "nor the three digits of a municipality or ward of Allegheny County, such as 104";
        Problem::parameter("township", format!("township: {given:?} is not one of {}, {reason}", names.join(", ")))
    })
}

/// Reads a PIN of either county.
///
/// # Errors
/// `parameter-invalid`, naming the parameter.
pub(crate) fn pin(parameter: &'static str, given: &str) -> Result<String, Problem> {
    if let Ok(pin) = allegheny::parse_pin(given) {
        return Ok(pin);
    }
    cook::parse_pin(given).map_err(|reason| Problem::parameter(parameter, format!("{parameter}: {given:?}: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how arguments of both counties are read, and that bad ones name their parameter.
    #[test]
    fn arguments() {
        assert_eq!((township("104").unwrap(), township("west chicago").unwrap()), ("104".into(), "77".into()));
        assert_eq!((class("c411").unwrap(), class("5.17").unwrap()), ("C411".into(), "517".into()));
        assert_eq!(pin("pin", "0028-F-00194-0000-00").unwrap(), "0028F00194000000");
        let problems = [township("Atlantis").unwrap_err(), class("zzz").unwrap_err(), pin("pin", "1601216001").unwrap_err()];
        assert_eq!(problems.map(|problem| problem.parameter), ["township", "class", "pin"]);
    }

    /// Proves that a major class, and a letter without a use, are refused with what is missing.
    #[test]
    fn parts_of_classes() {
        for (given, part) in [
            ("3", "a whole class, such as 300"),
            ("51", "a whole class, such as 51"),
            ("c", "the code of the use, such as C411"),
            ("316", "neither a class of Cook County"),
            ("-", "neither a class of Cook County"),
        ] {
            let problem = class(given).unwrap_err();
            assert!(problem.parameter == "class" && problem.detail.contains(part), "{given}: {}", problem.detail);
        }
    }
}
