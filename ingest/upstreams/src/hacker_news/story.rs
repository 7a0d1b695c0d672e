//! The mapping of one published story, in the form of the search (`objectID`, `created_at_i`, `author`) or of the site's own API (`id`, `time`, `by`).

use jiff::Timestamp;
use schemas::facts::FactData;
use schemas::facts::mentions::{MentionFact, kind};
use serde::Deserialize;
use url::Url;

use crate::drift::FieldCounts;
use crate::json::Field;
use crate::{Observation, Stream, text};

const TITLE_CHARS_MAX: usize = 300;
const AUTHOR_CHARS_MAX: usize = 100;
/// A longer URL is not stored; its host is.
const URL_BYTES_MAX: usize = 2_000;
/// When the site opened, in seconds since 1970.
const FIRST_S: i64 = 1_160_352_000;
/// The largest id that is read. A JSON number holds it exactly.
const ID_MAX: u64 = 1 << 53;

type FieldCheck = fn(&Story<'_>) -> bool;

/// What every story of an answer has.
pub(super) const EXPECTED: &[(&str, FieldCheck)] = &[
    ("objectID", |story| !story.id().is_absent()),
    ("title", |story| story.title.is_text() || story.is_gone()),
    ("created_at_i", |story| story.created().is_integer()),
    ("author", |story| story.by().is_text() || story.is_gone()),
];

/// A published story as it is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Story<'a> {
    #[serde(borrow, rename = "objectID")]
    object_id: Field<'a>,
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    title: Field<'a>,
    #[serde(borrow)]
    url: Field<'a>,
    #[serde(borrow)]
    author: Field<'a>,
    #[serde(borrow, rename = "by")]
    posted_by: Field<'a>,
    #[serde(borrow)]
    created_at_i: Field<'a>,
    #[serde(borrow)]
    time: Field<'a>,
    #[serde(borrow)]
    points: Field<'a>,
    #[serde(borrow)]
    score: Field<'a>,
    #[serde(borrow, rename = "type")]
    item_type: Field<'a>,
    #[serde(borrow)]
    deleted: Field<'a>,
    #[serde(borrow)]
    dead: Field<'a>,
}

/// A published story with its place in time.
pub(super) struct Mapped {
    pub(super) id: u64,
    /// When it was published by its own account, in seconds since 1970.
    pub(super) created_s: i64,
    pub(super) observation: Observation,
}

impl Story<'_> {
    fn id(&self) -> &Field<'_> {
        if self.object_id.is_absent() { &self.id } else { &self.object_id }
    }

    fn created(&self) -> &Field<'_> {
        if self.created_at_i.is_absent() { &self.time } else { &self.created_at_i }
    }

    fn by(&self) -> &Field<'_> {
        if self.author.is_absent() { &self.posted_by } else { &self.author }
    }

    fn score(&self) -> &Field<'_> {
        if self.points.is_absent() { &self.score } else { &self.points }
    }

    /// Whether the site's own API says that it is no longer shown. The search leaves such stories out.
    fn is_gone(&self) -> bool {
        self.deleted.flag() || self.dead.flag()
    }

    /// Counts the mapped fields.
    pub(super) fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("title", self.title.is_filled()),
            ("url", self.url.is_filled()),
            ("author", self.by().is_filled()),
            ("points", self.score().is_filled()),
        ]);
    }

    /// Maps the story as it is seen at a time. `Ok(None)` is an item that is no story. The error names the story and the reason.
    pub(super) fn map(&self, stream: &Stream, at: Timestamp) -> Result<Option<Mapped>, (String, String)> {
        let reference = text::cut(self.id().text().trim().to_owned(), 40);
        let refuse = |reason: &str| (reference.clone(), reason.to_owned());
        let id = self.id().text().trim().parse::<u64>().ok().filter(|id| (1..=ID_MAX).contains(id));
        let id = id.ok_or_else(|| refuse("objectID is not a whole number"))?;
        if !self.item_type.is_absent() && self.item_type.text() != "story" {
            return Ok(None);
        }
        let created_s = self.created().integer().filter(|created_s| *created_s >= FIRST_S);
        let created_s = created_s.ok_or_else(|| refuse("created_at_i is absent or not a time since the site opened"))?;
        let created = Timestamp::from_second(created_s).map_err(|_| refuse("created_at_i is not a time"))?;
        if self.is_gone() {
            return Ok(Some(Mapped { id, created_s, observation: removed(stream, id, created.min(at)) }));
        }
        let title = text::cut(self.title.clean(), TITLE_CHARS_MAX);
        if title.is_empty() {
            return Err(refuse("title is absent or empty"));
        }
        let author = text::cut(self.by().clean(), AUTHOR_CHARS_MAX);
        if author.is_empty() {
            return Err(refuse("author is absent or empty"));
        }
        let (url, domain) = address(self.url.text());
        // A clock that is ahead dates a published story in the future.
        let published = created.min(at);
        let fact = MentionFact {
            stream: stream.name.to_owned(),
            kind: kind::DOC.to_owned(),
            id: id.to_string(),
            title,
            author,
            domain,
            url,
            published_at: format!("{published:.0}"),
            hour: hour_of(published),
            points: self.score().integer(),
            ..MentionFact::default()
        };
        Ok(Some(Mapped { id, created_s, observation: observation(stream, id, fact) }))
    }
}

/// The observation that a published story is gone. Its hour is that of a time.
pub(super) fn removed(stream: &Stream, id: u64, published: Timestamp) -> Observation {
    let fact = MentionFact {
        stream: stream.name.to_owned(),
        kind: kind::DOC.to_owned(),
        id: id.to_string(),
        hour: hour_of(published),
        removed: true,
        ..MentionFact::default()
    };
    observation(stream, id, fact)
}

fn observation(stream: &Stream, id: u64, fact: MentionFact) -> Observation {
    Observation::new(format!("{}/{id}", stream.name), FactData::Mention(Box::new(fact)))
}

/// The hour of a time, such as `2026-11-20T14`.
pub(super) fn hour_of(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H").to_string()
}

/// A URL that a browser follows, and its host in lower case without `www.`. Both are empty for any other text.
fn address(text: &str) -> (String, String) {
    let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = url.filter(|url| url.username().is_empty() && url.password().is_none()) else { return Default::default() };
    let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_lowercase();
    let domain = host.strip_prefix("www.").unwrap_or(&host).to_owned();
    if url.as_str().len() > URL_BYTES_MAX { (String::new(), domain) } else { (url.into(), domain) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which addresses are stored, and what their hosts are.
    #[test]
    fn addresses() {
        for (raw, url, domain) in [
            ("https://www.Example.org/a?b=c", "https://www.example.org/a?b=c", "example.org"),
            ("http://example.org.:8080/", "http://example.org.:8080/", "example.org"),
            ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4", "xn--bcher-kva.example"),
            ("ftp://example.org/a", "", ""),
            ("javascript:alert(1)", "", ""),
            ("https://user:word@example.org/", "", ""),
            ("https://", "", ""),
            ("/item?id=1", "", ""),
            ("", "", ""),
        ] {
            assert_eq!(address(raw), (url.to_owned(), domain.to_owned()), "{raw}");
        }
        let long = format!("https://example.org/{}", "a".repeat(URL_BYTES_MAX));
        assert_eq!(address(&long), (String::new(), "example.org".to_owned()));
    }
}
