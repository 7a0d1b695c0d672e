//! `GET /categories`: the categories of purchases with the phrases that speak for each.

use crate::record::lexicon::LEXICON;
use crate::record::list;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::filter::Filter;
use super::watchable_feed::Labs;
use feed::places::Segment;
use operation::Definition;
use operation::problem::Problem;
use reads::read::{Read, Reader};

/// The days whose leads are counted.
const DAYS: i64 = 30;
/// The most leads of a category that are counted.
const LEADS_MAX: usize = 20_000;

/// Arguments of `list_categories`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The categories.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Categories {
    /// The version of the lexicon.
    pub version: u32,
    /// The number of categories.
    pub count: usize,
    /// The categories, in the lexicon's order: of two with the same sum the first is chosen.
    pub categories: Vec<Category>,
}

/// A category of purchases.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Category {
    /// The name.
    pub name: String,
    /// What laboratories buy in it.
    pub about: String,
    /// Every phrase that speaks for it.
    pub words: Vec<String>,
    /// The number of leads with a notice of award within the last 30 days; null if they are too many to count.
    pub leads30d: Option<u64>,
}

impl Read for Arguments {
    type Service = Labs;
    type Answer = Categories;

    fn definition() -> Definition {
        Definition {
            name: "list_categories",
            path: "/categories",
            summary: "The categories of laboratory purchases, each with its phrases and the number of leads of the last 30 days.",
            when: "Use it to learn the names that `category` takes.",
            description: "A phrase in the title of an award counts 3, in the funder's terms or the summary 1, once a field. The category with the \
                highest sum is chosen; below 2 an award is `General laboratory`.",
            list: "categories",
            example: json!({}),
            ..Definition::read()
        }
    }

    async fn answer(self, _: Filter, reader: &mut Reader<Labs>) -> Result<Categories, Problem> {
        let part = Segment::newest_first(&reader.hidden_days(DAYS));
        let mut categories = Vec::with_capacity(LEXICON.entries.len());
        for category in &LEXICON.entries {
            categories.push(Category {
                name: category.name.clone(),
                about: category.about.clone(),
                words: category.words.clone(),
                leads30d: reader.count_places(&list(Some(&category.name), None), &part, LEADS_MAX).await?,
            });
        }
        Ok(Categories { version: LEXICON.version, count: categories.len(), categories })
    }
}
