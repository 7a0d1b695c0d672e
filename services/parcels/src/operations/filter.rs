//! Filters of parcels.

use crate::county::{self, County};
use crate::record::{COUNTIES, Parcel, TIERS, strength};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use texts::cook;

use feed::filter::{self, Fields, Named, TermQuery};
use feed::text_field;
use operation::problem::Problem;

/// A filter of parcels: a parcel matches if it matches every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(rename = "ParcelFilter")]
pub struct Filter {
    /// The county: `cook-il` or `allegheny-pa`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub county: Option<String>,
    /// The township: its code or its name, in any case: `77`, `West Chicago`; in Allegheny County the code of the municipality or ward: `104`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub township: Option<String>,
    /// The whole class: `517`, not the major class `5` alone; in Allegheny County the letter of the class and the code of the use: `C411`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    pub class: Option<String>,
    /// The lowest tier: `low`, `medium` or `high`. Parcels without a tier do not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub min_tier: Option<String>,
    /// The number of the parcel: 14 digits in Cook County, 16 characters in Allegheny County, also with dashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 30))]
    pub pin: Option<String>,
}

impl Filter {
    /// The county of the parcels that match: the one that is given, else that of the township or the class, which are of one county each; `None` if parcels of
    /// both can match.
    #[must_use]
    pub(crate) fn county(&self) -> Option<&str> {
        let of_township = || self.township.as_deref().map(County::of_township);
        let of_both = || of_township().or_else(|| self.class.as_deref().map(County::of_class)).map(County::name);
        self.county.as_deref().or_else(of_both)
    }

    /// Reads the filter of a tool that has parcels of Cook County only.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the parameter, also for a township of the other county.
    pub(crate) fn of_cook(self) -> Result<Self, Problem> {
        let filter = filter::Filter::normalize(self)?;
        if let Some(code) = filter.township.as_deref().filter(|code| County::of_township(code) != County::Cook) {
            let reason = "is a municipality or ward of Allegheny County. Permits are listed for Cook County, Illinois";
            return Err(Problem::parameter("township", format!("township: {code:?} {reason} ({}), only", cook::COUNTY)));
        }
        Ok(filter)
    }
}

/// Reads the PIN of a parcel of Cook County.
///
/// # Errors
/// `parameter-invalid`, naming the parameter.
pub(crate) fn pin(parameter: &'static str, text: &str) -> Result<String, Problem> {
    cook::parse_pin(text).map_err(|reason| Problem::parameter(parameter, format!("{parameter}: {text:?}: {reason}")))
}

impl filter::Filter for Filter {
    type Record = Parcel;

    const NAMED: &'static [Named] = &[Named::code("pin", "pin"), Named::code("class", "class")];

    const FIELDS: Fields<Self> = &[
        text_field!(county).one_of(&COUNTIES).equal_to(|parcel| &parcel.county),
        text_field!("minTier", min_tier)
            .one_of(&TIERS)
            .selecting(|parcel, least| strength(&parcel.tier) >= strength(least))
            .found_by(2, |filter| filter.min_tier.as_deref().map(|least| TermQuery::Exact("tier", tiers_from(least)))),
        text_field!(township)
            .read_by(|_, given| county::township(given))
            .equal_to(|parcel| &parcel.township_code)
            .found_by_term(4, "township"),
        text_field!(class).read_by(|_, given| county::class(given)).equal_to(|parcel| &parcel.class).found_by_term(3, "class"),
        text_field!(pin).read_by(county::pin).equal_to(|parcel| &parcel.pin).found_by_term(1, "pin"),
    ];

    fn contradiction(&self) -> Option<String> {
        let fields = [
            self.county.as_deref().map(|county| ("county", county, county)),
            self.township.as_deref().map(|code| ("township", code, County::of_township(code).name())),
            self.class.as_deref().map(|class| ("class", class, County::of_class(class).name())),
            self.pin.as_deref().map(|pin| ("pin", pin, County::of_pin(pin).name())),
        ];
        let mut fields = fields.into_iter().flatten();
        let (_, _, county) = fields.next()?;
        let (name, value, other) = fields.find(|(_, _, other)| *other != county)?;
        Some(format!("`{name}` {value} is of {other}, so no parcel of {county} matches"))
    }
}

/// The tiers from one on.
fn tiers_from(least: &str) -> Vec<String> {
    TIERS.iter().filter(|tier| strength(tier) >= strength(least)).map(|tier| (*tier).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;
    use serde_json::json;

    /// Proves that every condition counts, and that values are checked and normalized.
    #[test]
    fn conditions() {
        let parcel = Parcel {
            pin: "16012160010000".into(),
            county: "cook-il".into(),
            township_code: "77".into(),
            class: "517".into(),
            tier: "medium".into(),
            ..Parcel::default()
        };
        let filter_from = |json: serde_json::Value| serde_json::from_value::<Filter>(json).unwrap().normalize();
        for (filter, fits) in [
            (json!({}), true),
            (
                json!({"county": "COOK-IL", "township": "west chicago", "class": "5.17", "minTier": "Medium", "pin": "16-01-216-001-0000"}),
                true,
            ),
            (json!({"minTier": "low"}), true),
            (json!({"minTier": "high"}), false),
            (json!({"township": "70"}), false),
            (json!({"class": "518A"}), false),
            (json!({"class": "391"}), false),
            (json!({"pin": "16012160010001"}), false),
        ] {
            match filter_from(filter.clone()) {
                Ok(normal) => assert_eq!(normal.takes(&parcel), fits, "{filter}"),
                Err(problem) => assert!(!fits && problem.parameter == "class", "{filter}"),
            }
        }
        for (filter, parameter, part) in [
            (json!({"county": "lake-il"}), "county", "cook-il"),
            (json!({"township": "Atlantis"}), "township", "Hyde Park (70)"),
            (json!({"class": "zzz"}), "class", "517"),
            (json!({"minTier": "top"}), "minTier", "high, medium, low"),
            (json!({"pin": "1601216001000"}), "pin", "14 digits"),
            (json!({"pin": "1601216001"}), "pin", "give all 14"),
        ] {
            let problem = filter_from(filter).unwrap_err();
            assert_eq!(problem.parameter, parameter);
            assert!(problem.detail.contains(part), "{}", problem.detail);
        }
        let filter = filter_from(json!({"township": "77", "minTier": "medium"})).unwrap();
        assert_eq!(filter.canonical(), r#"{"township":"77","minTier":"medium"}"#);
        assert_eq!(filter.term_queries().first(), Some(&TermQuery::Exact("tier", vec!["high".to_owned(), "medium".to_owned()])));
    }

    /// Proves that the county follows from the township or the class where none is given, and that the one that is given counts.
    #[test]
    fn the_county_of_a_filter() {
        let county_of = |json: serde_json::Value| {
            let filter = serde_json::from_value::<Filter>(json).unwrap().normalize().unwrap();
            filter.county().map(str::to_owned)
        };
        for (filter, county) in [
            (json!({}), None),
            (json!({"minTier": "high"}), None),
            (json!({"township": "104"}), Some("allegheny-pa")),
            (json!({"class": "c411"}), Some("allegheny-pa")),
            (json!({"township": "West Chicago"}), Some("cook-il")),
            (json!({"class": "517"}), Some("cook-il")),
            (json!({"class": "EX"}), Some("cook-il")),
            (json!({"county": "cook-il", "township": "104"}), Some("cook-il")),
            (json!({"county": "allegheny-pa", "class": "517"}), Some("allegheny-pa")),
        ] {
            assert_eq!(county_of(filter.clone()).as_deref(), county, "{filter}");
        }
    }

    /// Proves that fields of two counties are noted, and that a township of Allegheny County is refused where only Cook County is listed.
    #[test]
    fn fields_of_two_counties() {
        let filter_from = |json: serde_json::Value| serde_json::from_value::<Filter>(json).unwrap();
        for (filter, noted) in [
            (json!({"county": "cook-il", "township": "104"}), Some("`township` 104 is of allegheny-pa, so no parcel of cook-il matches")),
            (json!({"county": "allegheny-pa", "class": "517"}), Some("`class` 517 is of cook-il, so no parcel of allegheny-pa matches")),
            (json!({"township": "77", "class": "C411"}), Some("`class` C411 is of allegheny-pa, so no parcel of cook-il matches")),
            (json!({"county": "cook-il", "township": "77", "class": "517"}), None),
            (
                json!({"county": "allegheny-pa", "pin": "16-01-216-001-0000"}),
                Some("`pin` 16012160010000 is of cook-il, so no parcel of allegheny-pa matches"),
            ),
            (
                json!({"township": "104", "pin": "16012160010000"}),
                Some("`pin` 16012160010000 is of cook-il, so no parcel of allegheny-pa matches"),
            ),
            (json!({"township": "104", "pin": "0028F00194000000"}), None),
            (json!({"class": "EX"}), None),
            (json!({}), None),
        ] {
            assert_eq!(filter_from(filter.clone()).normalize().unwrap().contradiction().as_deref(), noted, "{filter}");
        }
        let refused = filter_from(json!({"township": "104"})).of_cook().unwrap_err();
        assert!(refused.parameter == "township" && refused.detail.contains("cook-il"), "{}", refused.detail);
        assert_eq!(filter_from(json!({"township": "West Chicago"})).of_cook().unwrap().township.as_deref(), Some("77"));
    }

    /// Proves that parcels without a tier match only a filter without one.
    #[test]
    fn parcels_without_a_tier() {
        for tier in ["none", "insufficient", ""] {
            let parcel = Parcel { tier: tier.into(), ..Parcel::default() };
            let low = Filter { min_tier: Some("low".to_owned()), ..Filter::default() };
            assert!(!low.takes(&parcel) && Filter::default().takes(&parcel), "{tier}");
        }
    }
}
