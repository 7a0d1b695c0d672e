//! The filter of awards. Feeds, lists, digests, saved filters and watches use its fields.

use schemars::JsonSchema;
use schemas::views::awards::Award;
use serde::{Deserialize, Serialize};
use texts::folding::folded_words;
use texts::numbers::{compact, has_only_digits, number_of};

use super::records::dollars;
use feed::filter::{self, Field, Fields, TermQuery, contains, has_words};
use feed::text_field;
use operation::problem::Problem;

/// How many prefixes of industry codes a filter has at most.
pub(crate) const NAICS_MAX: usize = 50;

/// A filter of awards: an award matches if it matches every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// Prefixes of industry codes, two to six digits: `5415` matches all of computer systems design. Commas separate them in a query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub naics: Vec<String>,
    /// Part of the name of the awarding department, or of the agency within it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub agency: Option<String>,
    /// Part of the name of the recipient, or of its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub recipient: Option<String>,
    /// Words that must all occur in the description of the award, of its latest action or of its codes, each as a word or the beginning of one; or the
    /// number (PIID) of the award or of its vehicle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub keyword: Option<String>,
    /// The smallest total obligation in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_amount: Option<f64>,
    /// The largest total obligation in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<f64>,
    /// Whether to include late news: actions of more than 120 days before they were recorded, and old awards that were not recorded before. By default it is
    /// left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

/// Whether the words occur in one of the descriptions of an award, or name its number or that of its vehicle.
fn has_keyword(award: &Award, words: &str) -> bool {
    has_words(&[&award.description, &award.action_description, &award.naics_description, &award.psc_description], words)
        || number_of(words).is_some_and(|number| [&award.piid, &award.parent_piid].iter().any(|own| compact(own) == number))
}

/// The words that an award has if [`has_keyword`] selects it; none if it may be selected by its number.
fn needed_words(words: &str) -> Vec<String> {
    if number_of(words).is_some() { Vec::new() } else { folded_words(words) }
}

/// The total obligation of an award in dollars.
fn amount(award: &Award) -> Option<f64> {
    award.amount_cents.map(dollars)
}

impl filter::Filter for Filter {
    type Record = Award;

    const FIELDS: Fields<Self> = &[
        Field::<Self, Award>::new("naics")
            .selecting_by(|filter, award| filter.naics.is_empty() || filter.naics.iter().any(|prefix| award.naics.starts_with(prefix)))
            .found_by(2, |filter| (!filter.naics.is_empty()).then(|| TermQuery::Prefix("naics", filter.naics.clone())))
            .with_codes("naics"),
        text_field!(agency)
            .selecting(|award, part| [&award.agency, &award.sub_agency].iter().any(|name| contains(name, part)))
            .found_by_part(3, "agency")
            .with_names("agency"),
        text_field!(recipient)
            .selecting(|award, part| [&award.recipient, &award.parent_recipient].iter().any(|name| contains(name, part)))
            .found_by_part(1, "recipient")
            .with_names("recipient"),
        text_field!(keyword).selecting(has_keyword).needing_words(needed_words),
        Field::<Self, Award>::range("minAmount", "maxAmount", |filter| (filter.min_amount, filter.max_amount), amount),
        Field::<Self, Award>::backfill(|filter| filter.include_backfill),
    ];

    fn normalize(mut self) -> Result<Self, Problem> {
        for code in &mut self.naics {
            *code = code.trim().to_owned();
            if !(2..=6).contains(&code.len()) || !has_only_digits(code) {
                return Err(Problem::parameter("naics", format!("naics: {code:?} is not a prefix of an industry code, two to six digits")));
            }
        }
        if self.naics.len() > NAICS_MAX {
            return Err(Problem::parameter("naics", format!("naics: more than {NAICS_MAX} codes")));
        }
        self.naics.sort_unstable();
        self.naics.dedup();
        self.read_fields()?;
        filter::check_ranges(&self)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::{Element, Filter as _};
    use feed::testing::filters::{assert_takes, filter_of};

    /// Proves which awards match which conditions.
    #[test]
    fn conditions() {
        let award = Award {
            naics: "541512".into(),
            agency: "Department of Energy".into(),
            sub_agency: "Office of Science".into(),
            recipient: "ACME FEDERAL LLC".into(),
            parent_recipient: "ACME HOLDINGS INC".into(),
            description: "Cloud migration support".into(),
            piid: "W912DR20C0001".into(),
            parent_piid: "GS00Q14OADU402".into(),
            amount_cents: Some(1_250_000),
            ..Award::default()
        };
        let filter_from = |json: serde_json::Value| filter_of::<Filter>(&json).unwrap();
        let takes = [
            (serde_json::json!({}), true),
            (
                serde_json::json!({"naics": ["61", "5415"], "agency": "science", "recipient": "acme holdings", "keyword": "CLOUD migr"}),
                true,
            ),
            (serde_json::json!({"naics": ["5416"]}), false),
            (serde_json::json!({"agency": "defense"}), false),
            (serde_json::json!({"keyword": "loud"}), false),
            (serde_json::json!({"keyword": "w912dr-20-c-0001"}), true),
            (serde_json::json!({"keyword": "GS00Q14OADU402"}), true),
            (serde_json::json!({"keyword": "w912dr20c0002"}), false),
            (serde_json::json!({"keyword": "w912dr20c"}), false),
            (serde_json::json!({"minAmount": 12500, "maxAmount": 12500}), true),
            (serde_json::json!({"maxAmount": 12499.99}), false),
        ];
        assert_takes::<Filter>(&award, takes);
        assert_eq!(needed_words("cloud migr"), ["cloud", "migr"]);
        assert_eq!(needed_words("w912dr-20-c-0001"), Vec::<String>::new(), "a number is compared without its signs");
        for wrong in ["5", "5415123", "54x"] {
            let filter = Filter { naics: vec![wrong.into()], ..Filter::default() };
            assert_eq!(filter.normalize().unwrap_err().parameter, "naics", "{wrong}");
        }
        assert_eq!(filter_from(serde_json::json!({"naics": ["61", "54", "61"]})).canonical(), r#"{"naics":["54","61"]}"#);
    }

    /// Proves that changes of long ago match only if they are asked for, also those that older versions wrote; and that the default adds nothing to the
    /// canonical form, so that cursors of older versions stay valid.
    #[test]
    fn backfill() {
        let change = |more: serde_json::Value| -> Element<Award> {
            let mut change = serde_json::json!({ "event": "modified", "seq": 1, "recordedAt": "2026-11-24T00:00:00.000Z", "record": {} });
            change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(change).unwrap()
        };
        let (default, with_backfill) = (Filter::default(), Filter { include_backfill: true, ..Filter::default() });
        for (more, is_backfill) in [
            (serde_json::json!({}), false),
            (serde_json::json!({ "amountDelta": 5, "action": { "date": "2026-11-20" } }), false),
            (serde_json::json!({ "amountDelta": 5, "action": { "date": "2025-11-20" } }), true),
            (serde_json::json!({ "amountDelta": null, "action": { "date": "2025-11-20" }, "backfill": false }), false),
            (serde_json::json!({ "amountDelta": null, "backfill": true }), true),
        ] {
            let change = change(more);
            assert_eq!((default.selects(&change), default.news().selects(&change)), (!is_backfill, !is_backfill), "{change:?}");
            assert!(with_backfill.selects(&change) && with_backfill.news().selects(&change) && default.matches(&change), "{change:?}");
        }
        assert_eq!((default.canonical().as_str(), with_backfill.canonical().as_str()), ("", r#"{"includeBackfill":true}"#));
    }
}
