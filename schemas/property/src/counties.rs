//! What there is to know of a county: how its parcels are classed, and at which level they are assessed.

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

/// Whether a class has the form of those of Allegheny County.
#[must_use]
pub fn is_allegheny_class(class: &str) -> bool {
    matches!(class.as_bytes(), [letter, code @ ..] if letter.is_ascii_uppercase()
        && (2..ALLEGHENY_CLASS_CHARS_MAX).contains(&code.len())
        && code.iter().all(u8::is_ascii_digit))
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
}
