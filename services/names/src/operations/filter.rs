//! The filter of the names service's feeds.

use crate::record::{DEAD, STATUSES, Trademark};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use texts::plain_words::plain_words;

use super::name_arguments::{ClassList, read_name};
use super::similar::{MinTier, Wanted};
use feed::filter::{self, Element, Field, Fields, TermQuery};
use feed::text_field;
use operation::problem::Problem;

/// Other names of its fields.
pub(crate) const ALIASES: &[(&str, &str)] = &[("min_tier", "minTier")];

/// A filter: trademarks match if they match every given field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// A name. Marks match that are not dead and that a rule makes similar to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub name: Option<String>,
    /// International classes, at most 5. Marks match that have one of them.
    #[serde(skip_serializing_if = "ClassList::is_empty")]
    pub class: ClassList,
    /// How similar to `name` a mark must be at least; `strong` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tier: Option<MinTier>,
    /// `live`, `unknown` or `dead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub status: Option<String>,
    /// Part of the name of the owner, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 200))]
    pub owner: Option<String>,
    /// Words of the mark, in any case: all of them must occur.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub word: Option<String>,
    /// Whether to include late news: marks that were filed more than 180 days before they were recorded. By default it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_backfill: bool,
}

impl Filter {
    /// What `name` and `class` select; `None` without a name.
    pub(crate) fn wanted(&self) -> Option<Wanted> {
        Wanted::new(self.name.as_deref()?, &self.class, self.min_tier.unwrap_or_default()).ok()
    }
}

impl filter::Filter for Filter {
    type Record = Trademark;

    const FIELDS: Fields<Self> = &[
        Field::<Self, Trademark>::new("class")
            .selecting_by(|filter, mark| {
                let mut classes = filter.class.numbers().iter();
                filter.class.is_empty() || classes.any(|class| mark.intl_class.contains(&i64::from(*class)))
            })
            .found_by(3, |filter| {
                let classes = filter.class.numbers().iter().map(ToString::to_string).collect();
                (!filter.class.is_empty()).then_some(TermQuery::Exact("class", classes))
            }),
        text_field!(status).one_of(&STATUSES).equal_to(|mark| &mark.status).found_by_term(4, "status"),
        text_field!(owner).part_of(|mark| &mark.owner).found_by_part(2, "owner").with_names("owner"),
        text_field!(word)
            .read_by(word)
            .selecting(|mark, words| {
                let own = plain_words(&mark.mark);
                words.split(' ').all(|word| own.iter().any(|own| own == word))
            })
            .found_by(1, |filter| filter.word.as_deref().map(|words| TermQuery::Exact("token", longest(words))))
            .with_names("token"),
        Field::<Self, Trademark>::backfill(|filter| filter.include_backfill),
    ];

    fn normalize(mut self) -> Result<Self, Problem> {
        match &self.name {
            Some(name) => drop(read_name(name)?),
            None if self.min_tier.is_some() => return Err(Problem::parameter("minTier", "minTier: only with `name`")),
            None => {}
        }
        self.read_fields()?;
        Ok(self)
    }

    fn contradiction(&self) -> Option<String> {
        let is_dead = self.name.is_some() && self.status.as_deref() == Some(DEAD);
        is_dead.then(|| format!("no mark can match: `name` selects marks that are not dead, `status` {DEAD} those that are"))
    }

    fn criteria(&self) -> filter::Criteria<'_, Trademark> {
        // The name is read once, not for each change.
        let wanted = self.wanted();
        filter::Criteria::new(self.term_queries(), move |change| {
            self.takes(&change.record) && wanted.as_ref().is_none_or(|wanted| wanted.similarity(&change.record).is_some())
        })
    }

    fn matches(&self, change: &Element<Trademark>) -> bool {
        self.takes(&change.record) && self.wanted().is_none_or(|wanted| wanted.similarity(&change.record).is_some())
    }
}

/// Words, as marks are split into words, with blanks between them.
fn word(parameter: &'static str, text: &str) -> Result<String, Problem> {
    let words = plain_words(text);
    if words.is_empty() {
        return Err(Problem::parameter(parameter, format!("word: {text:?} has no word")));
    }
    Ok(words.join(" "))
}

/// The longest of some words, which the fewest marks have.
fn longest(words: &str) -> Vec<String> {
    words.split(' ').max_by_key(|word| word.chars().count()).map(str::to_owned).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::filter::Filter as _;

    /// Proves which changes match which filters, and how they are found.
    #[test]
    fn conditions() {
        let change = serde_json::json!({
            "event": "modified", "seq": 1, "recordedAt": "", "statusBefore": "dead",
            "record": { "serial": "97000001", "mark": "TRU Cool", "owner": "Hill Foods LLC", "intlClass": [9, 35], "status": "live" }
        });
        let change: Element<Trademark> = serde_json::from_value(change).unwrap();
        let filter_from = |json: serde_json::Value| serde_json::from_value::<Filter>(json).unwrap().normalize();
        for (filter, expected) in [
            (serde_json::json!({}), true),
            (serde_json::json!({ "name": "Turcool" }), true),
            (serde_json::json!({ "name": "Turcool", "minTier": "exact" }), false),
            (serde_json::json!({ "name": "Turcool", "class": 25 }), false),
            (serde_json::json!({ "class": [25, 35], "status": "LIVE", "owner": "hill", "word": "Cool" }), true),
            (serde_json::json!({ "status": "dead" }), false),
            (serde_json::json!({ "word": "coo" }), false),
            (serde_json::json!({ "word": "Cool, TRU" }), true),
            (serde_json::json!({ "word": "tru cold" }), false),
        ] {
            let read = filter_from(filter.clone()).unwrap();
            assert_eq!((read.matches(&change), read.criteria().selects(&change)), (expected, expected), "{filter}");
        }
        let all = filter_from(serde_json::json!({ "class": [35, 9], "owner": "Hill", "word": "Cool" })).unwrap();
        assert_eq!(all.term_queries().len(), 3);
        assert_eq!(all.canonical(), r#"{"class":[9,35],"owner":"hill","word":"cool"}"#);
        let words = filter_from(serde_json::json!({ "word": "Tru  Cooler" })).unwrap();
        assert_eq!(words.canonical(), r#"{"word":"tru cooler"}"#);
        assert!(matches!(&words.term_queries()[..], [TermQuery::Exact("token", values)] if values == &["cooler"]));
        for (filter, is_noted) in [
            (serde_json::json!({ "name": "Turcool", "status": "Dead" }), true),
            (serde_json::json!({ "name": "Turcool", "status": "unknown" }), false),
            (serde_json::json!({ "word": "cool", "status": "dead" }), false),
        ] {
            assert_eq!(filter_from(filter.clone()).unwrap().contradiction().is_some(), is_noted, "{filter}");
        }
        for (filter, parameter) in [
            (serde_json::json!({ "name": "?" }), "name"),
            (serde_json::json!({ "minTier": "exact" }), "minTier"),
            (serde_json::json!({ "status": "alive" }), "status"),
            (serde_json::json!({ "word": "?!" }), "word"),
        ] {
            assert_eq!(filter_from(filter).unwrap_err().parameter, parameter);
        }
    }
}
