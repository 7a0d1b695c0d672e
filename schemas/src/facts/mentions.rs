//! What a site said about one published story, one article's views on a day, or what was read of an hour or a day as a whole.
//!
//! A **doc** is a published story; its key is `hacker_news/ID`. An **hour** says how many stories an hour has, with the key `hacker_news/hour/HOUR`. It
//! follows its stories in the log, and comes again when their number changes. **Views** are those of one article on one day, with the key
//! `wikimedia/DAY/ARTICLE`; a **day**, with the key `wikimedia/day/DAY`, follows them.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// The values of [`MentionFact::kind`].
pub mod kind {
    /// A published story.
    pub const DOC: &str = "doc";
    /// The stories of an hour as a whole.
    pub const HOUR: &str = "hour";
    /// The views of an article on a day.
    pub const VIEWS: &str = "views";
    /// The articles of a day as a whole.
    pub const DAY: &str = "day";
}

/// A published story, an hour of stories, an article's views on a day, or a day of articles. Texts are trimmed, white space collapsed, tags removed
/// and entities resolved; they are not normalised otherwise. `""` means unknown. Hours and days are in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MentionFact {
    /// The stream: `hacker_news` or `wikimedia`.
    pub stream: String,
    /// `doc`, `hour`, `views` or `day`, see [`kind`].
    pub kind: String,

    /// Doc: its id.
    pub id: String,
    /// Doc: its title as published. Empty if it is removed.
    pub title: String,
    /// Doc: who posted it. Empty if it is removed.
    pub author: String,
    /// Doc: the host of its URL in lower case, without `www.`. Empty for a text post, and if it is removed.
    pub domain: String,
    /// Doc: the URL that it links to. Empty for a text post, and if it is removed.
    pub url: String,
    /// Doc: when it was published, RFC 3339 in UTC, but not after it was observed. Empty if it is removed.
    pub published_at: String,
    /// Doc: the hour of `publishedAt`, such as `2026-11-20T14`; known also if it is removed. Hour: itself.
    pub hour: String,
    /// Doc: its points when it was read. They are not compared, because they move all the time.
    pub points: Option<i64>,
    /// Doc: whether it is gone from its site. Such a fact has its id and its hour alone.
    pub removed: bool,

    /// Hour: how many stories were published in it.
    pub docs: i64,
    /// Hour: whether every story of it was shown. Only complete hours are compared with others.
    pub complete: bool,

    /// Views, day: the day, such as `2026-11-20`.
    pub day: String,
    /// Views: the title of the article as published, with `_` for blanks.
    pub article: String,
    /// Views: how often the article was read on that day.
    pub views: i64,
    /// Views: its rank on that day. Articles with equal views share a rank, and the next rank is left out.
    pub rank: i64,

    /// Day: the views of all pages that its list names.
    pub total: i64,
    /// Day: how many articles its list names. The main page and pages of other namespaces are none.
    pub articles: i64,
}

impl MentionFact {
    /// Returns the canonical form for the content hash: every field but `points`.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &["points"])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::{FactData, testing};

    /// Proves that a change of any field but `points` changes the canonical form.
    #[test]
    fn every_field_is_hashed() {
        testing::assert_all_fields_are_hashed(MentionFact::canonical, &["points"]);
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let mut value = serde_json::to_value(MentionFact::default()).unwrap();
        for (name, field) in value.as_object_mut().unwrap() {
            *field = match field {
                Value::String(_) => json!(format!("the {name}")),
                Value::Null | Value::Number(_) => json!(7),
                _ => json!(true),
            };
        }
        let record: MentionFact = serde_json::from_value(value).unwrap();
        let data = FactData::Mention(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}
