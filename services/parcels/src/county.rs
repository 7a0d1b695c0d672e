//! What the rules and operations need to know of a county: how its parcels are classed, and at which level they are assessed.

use operation::problem::Problem;
use texts::numbers::has_only_digits;
use texts::{allegheny, cook};

/// A county that is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum County {
    /// Cook County, Illinois.
    Cook,
    /// Allegheny County, Pennsylvania.
    Allegheny,
}

/// The level of assessment of Allegheny County in hundredths of a percent: the whole value of the base year 2012.
const ALLEGHENY_LEVEL: i64 = 10_000;
/// The longest class of Allegheny County: the letter of a class and the code of a use.
const ALLEGHENY_CLASS_CHARS_MAX: usize = 6;

impl County {
    /// The county of a parcel, by the form of its PIN.
    #[must_use]
    pub fn of_pin(pin: &str) -> Self {
        if pin.len() == allegheny::PIN_CHARS { Self::Allegheny } else { Self::Cook }
    }

    /// The county with a name; Cook County for any other.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        if name == allegheny::COUNTY { Self::Allegheny } else { Self::Cook }
    }

    /// The county of a township, by the form of its code: those of Cook County have two digits.
    #[must_use]
    pub fn of_township(code: &str) -> Self {
        if code.len() > 2 { Self::Allegheny } else { Self::Cook }
    }

    /// The county of a class: those of Allegheny County are a letter and the code of a use.
    #[must_use]
    pub fn of_class(class: &str) -> Self {
        if is_allegheny_class(class) { Self::Allegheny } else { Self::Cook }
    }

    /// The name of the county, as answers have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cook => cook::COUNTY,
            Self::Allegheny => allegheny::COUNTY,
        }
    }

    /// The level of assessment of a class in hundredths of a percent; `None` if it is not known.
    #[must_use]
    pub fn level(self, class: &str) -> Option<i64> {
        match self {
            Self::Cook => cook::level(class),
            Self::Allegheny => Some(ALLEGHENY_LEVEL),
        }
    }

    /// Whether a class is commercial or industrial.
    #[must_use]
    pub fn is_commercial(self, class: &str) -> bool {
        match self {
            Self::Cook => cook::is_commercial(class),
            Self::Allegheny => class.starts_with(['C', 'I']) && is_allegheny_class(class),
        }
    }

    /// The row of the assessed values of a parcel at the publisher.
    #[must_use]
    pub fn url(self, pin: &str) -> String {
        match self {
            Self::Cook => format!("https://datacatalog.cookcountyil.gov/resource/uzyt-m557.json?pin={pin}"),
            Self::Allegheny => format!(
                "https://data.wprdc.org/api/3/action/datastore_search?resource_id=65855e14-549e-4992-b5be-d629afc676fa&filters=%7B%22PARID%22%3A%22{pin}%22%7D"
            ),
        }
    }
}

fn is_allegheny_class(class: &str) -> bool {
    matches!(class.as_bytes(), [letter, code @ ..] if letter.is_ascii_uppercase()
        && (2..ALLEGHENY_CLASS_CHARS_MAX).contains(&code.len())
        && code.iter().all(u8::is_ascii_digit))
}

/// Reads a class of either county.
///
/// # Errors
/// `parameter-invalid`, naming the parameter.
pub(crate) fn class(given: &str) -> Result<String, Problem> {
    let class = cook::class(given);
    if cook::is_class(&class) || is_allegheny_class(&class) {
        return Ok(class);
    }
    let reason = "is neither a class of Cook County, such as 517, nor one of Allegheny County, such as C411";
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

    /// Proves that parcels, townships and classes of both counties are distinguished by their form, and which are commercial.
    #[test]
    fn counties_differ() {
        assert_eq!([County::of_pin("16012160010000"), County::of_pin("0028F00194000000")], [County::Cook, County::Allegheny]);
        assert_eq!([County::of_township("77"), County::of_township("104")], [County::Cook, County::Allegheny]);
        assert_eq!(["517", "EX", "RR", "211A", "C411", "I300"].map(County::of_class)[..4], [County::Cook; 4]);
        assert_eq!(["C411", "I300"].map(County::of_class), [County::Allegheny; 2]);
        let commercial = ["C411", "I300", "R010", "G670", "C", "", "517"].map(|class| County::Allegheny.is_commercial(class));
        assert_eq!(commercial, [true, true, false, false, false, false, false]);
        assert!(County::Cook.is_commercial("517") && !County::Cook.is_commercial("C411"));
        assert_eq!(
            [County::Cook.level("517"), County::Cook.level("700"), County::Allegheny.level("C411")],
            [Some(2_500), None, Some(10_000)]
        );
    }

    /// Proves how arguments of both counties are read, and that bad ones name their parameter.
    #[test]
    fn arguments() {
        assert_eq!((township("104").unwrap(), township("west chicago").unwrap()), ("104".into(), "77".into()));
        assert_eq!((class("c411").unwrap(), class("5.17").unwrap()), ("C411".into(), "517".into()));
        assert_eq!(pin("pin", "0028-F-00194-0000-00").unwrap(), "0028F00194000000");
        let problems = [township("Atlantis").unwrap_err(), class("zzz").unwrap_err(), pin("pin", "1601216001").unwrap_err()];
        assert_eq!(problems.map(|problem| problem.parameter), ["township", "class", "pin"]);
    }
}
