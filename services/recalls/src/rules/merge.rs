//! Decides which facts are one recall, and what its record contains. The result does not depend on the order of arrival: every rule is a
//! function of the set of facts.
//!
//! 1. Facts of one agency with one number are one recall, in any stream or language. Each field comes from the first fact that has it, by
//!    rank of stream (and English before Spanish).
//! 2. Recalls of different agencies are one if brand and title are equal except for case, punctuation and white space, if no two neighbours
//!    by date are more than [`LIKE_DAYS_MAX`] days apart, and if the group has at most one recall of each agency (otherwise the match is too
//!    weak, and none is merged). The record has the smallest identity and that recall's fields; empty fields are filled from the others in
//!    order of identity.

use std::borrow::Cow;

use proofs::hash::Hash32;
use schemas::facts::recalls::RecallFact;
use schemas::views::recalls::{Recall, RememberedFact, day_of};

use super::category::Lexicon;

/// The most days between two agencies' dates of one recall.
pub const LIKE_DAYS_MAX: i64 = 7;
/// The most recalls that can be merged: one of each agency.
const GROUP_MAX: usize = 4;
/// The number of days that one `alike` set covers.
const BUCKET_DAYS: i64 = 256;
/// The number of days before and after a recall within which every recall lies that can be merged with it.
const REACH_DAYS: i64 = 40;
/// The most recalls in one `alike` set. Further ones with the same brand, title and weeks are not merged: a bound on cost that no real
/// agency comes near.
pub const BUCKET_MAX: usize = 4_096;

/// Builds the recall of one identity from its facts, before other agencies are considered. `None` without facts.
#[must_use]
pub fn recall(identity: &str, notes: &[Cow<'_, RememberedFact>], lexicon: &Lexicon) -> Option<Recall> {
    let gone = notes.iter().all(|note| note.gone);
    let mut facts: Vec<(&RememberedFact, &RecallFact)> =
        notes.iter().filter(|note| gone || !note.gone).filter_map(|note| Some((&**note, note.recall.as_ref()?))).collect();
    facts.sort_by(|a, b| (a.1.rank(), &a.0.key).cmp(&(b.1.rank(), &b.0.key)));
    let (_, first) = facts.first()?;
    let text = |field: fn(&RecallFact) -> &String| {
        facts.iter().map(|(_, fact)| field(fact)).find(|text| !text.is_empty()).cloned().unwrap_or_default()
    };
    let categories: Vec<(String, String)> = facts.iter().map(|(_, fact)| lexicon.category(fact)).collect();
    let (category, category_evidence) =
        categories.iter().find(|(category, _)| category == "baby").or(categories.first()).cloned().unwrap_or_default();
    let mut urls: Vec<String> = Vec::new();
    for url in facts.iter().map(|(_, fact)| &fact.url).chain(facts.iter().flat_map(|(_, fact)| &fact.links)) {
        if !url.is_empty() && !urls.contains(url) {
            urls.push(url.clone());
        }
    }
    Some(Recall {
        id: identity.to_owned(),
        agency: first.agency.clone(),
        category,
        title: text(|fact| &fact.title),
        brand: text(|fact| &fact.brand),
        hazard: text(|fact| &fact.hazard),
        date: text(|fact| &fact.date),
        url: text(|fact| &fact.url),
        remedy: text(|fact| &fact.remedy),
        agencies: vec![first.agency.clone()],
        numbers: vec![identity.to_owned()],
        urls,
        category_evidence,
        status: text(|fact| &fact.status),
        classification: text(|fact| &fact.classification),
        units: text(|fact| &fact.units),
        alert: facts.iter().any(|(_, fact)| fact.alert),
        withdrawn: gone,
        merged_into: String::new(),
    })
}

/// Returns a short hash of brand and title, which recalls of different agencies must share to be merged. `None` if the recall cannot be
/// merged.
#[must_use]
pub fn likeness(recall: &Recall) -> Option<String> {
    if recall.withdrawn { None } else { likeness_of(&recall.brand, &recall.title, &recall.date) }
}

/// Returns the hash for a recall that is not withdrawn, from the three fields on which it depends.
#[must_use]
pub fn likeness_of(brand: &str, title: &str, date: &str) -> Option<String> {
    if date.is_empty() {
        return None;
    }
    let (brand, title) = (normal(brand), normal(title));
    (!brand.is_empty() && !title.is_empty()).then(|| Hash32::of_parts(&[brand.as_bytes(), title.as_bytes()]).to_string()[..24].to_owned())
}

fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_separated = false;
    for c in text.chars() {
        if !c.is_alphanumeric() {
            is_separated = true;
            continue;
        }
        if std::mem::take(&mut is_separated) && !out.is_empty() {
            out.push(' ');
        }
        if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
        } else {
            out.extend(c.to_lowercase());
        }
    }
    out
}

/// The position of a recall among those with the same likeness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LikenessPlace {
    /// The hash that they share, see [`likeness`].
    pub likeness: String,
    /// The day of the recall, see [`day_of`].
    pub day: i64,
}

impl LikenessPlace {
    /// Returns the position of a recall; `None` if it cannot be merged.
    #[must_use]
    pub fn of(recall: &Recall) -> Option<Self> {
        likeness(recall).map(|likeness| Self { likeness, day: day_of(&recall.date) })
    }

    /// Returns the name of the `alike` set that contains the recall.
    #[must_use]
    pub fn set(&self) -> String {
        self.set_of(self.day.div_euclid(BUCKET_DAYS))
    }

    /// Returns the names of the `alike` sets with all recalls that can be merged with this one: usually one, near the end of a set two.
    pub fn sets(&self) -> impl Iterator<Item = String> + use<'_> {
        let bucket = |day: i64| day.div_euclid(BUCKET_DAYS);
        (bucket(self.day - REACH_DAYS)..=bucket(self.day + REACH_DAYS)).map(|bucket| self.set_of(bucket))
    }

    fn set_of(&self, bucket: i64) -> String {
        format!("alike/{}/{bucket}", self.likeness)
    }

    /// Returns the item of an `alike` set for a recall at this position.
    #[must_use]
    pub fn item(&self, identity: &str) -> String {
        format!("{} {identity}", self.day)
    }
}

/// Recalls with the same likeness, by day and identity.
#[derive(Clone, Debug, Default)]
pub struct Alike(Vec<(i64, String)>);

impl Alike {
    /// Adds the items of an `alike` set.
    pub fn extend<'a>(&mut self, items: impl IntoIterator<Item = &'a String>) {
        let read = |item: &'a String| item.split_once(' ').and_then(|(day, id)| Some((day.parse().ok()?, id.to_owned())));
        self.0.extend(items.into_iter().filter_map(read));
        self.0.sort_unstable();
    }

    /// Returns the identities that are one recall with `identity` on `day`, sorted; only `identity` if there are no others.
    #[must_use]
    pub fn group_of(&self, day: i64, identity: &str) -> Vec<String> {
        let at = self.0.binary_search_by(|(other, id)| (*other, id.as_str()).cmp(&(day, identity)));
        at.map_or_else(|_| vec![identity.to_owned()], |at| self.group_at(at))
    }

    /// Returns the identities whose group may change when a recall is added or removed at a position: its own group and those of its
    /// neighbours.
    #[must_use]
    pub fn around(&self, day: i64, identity: &str) -> Vec<String> {
        let at = self.0.binary_search_by(|(other, id)| (*other, id.as_str()).cmp(&(day, identity)));
        let (own, left, right) = match at {
            Ok(at) => (Some(at), at.checked_sub(1), at + 1),
            Err(at) => (None, at.checked_sub(1), at),
        };
        own.into_iter().chain(left).chain(Some(right).filter(|right| *right < self.0.len())).flat_map(|at| self.group_at(at)).collect()
    }

    fn group_at(&self, at: usize) -> Vec<String> {
        let alone = || vec![self.0[at].1.clone()];
        let near = |a: usize, b: usize| self.0[b].0 - self.0[a].0 <= LIKE_DAYS_MAX;
        let (mut from, mut to) = (at, at);
        while from > 0 && near(from - 1, from) && to - from < GROUP_MAX {
            from -= 1;
        }
        while to + 1 < self.0.len() && near(to, to + 1) && to - from < GROUP_MAX {
            to += 1;
        }
        if to == from || to - from >= GROUP_MAX {
            return alone();
        }
        let mut ids: Vec<String> = self.0[from..=to].iter().map(|(_, id)| id.clone()).collect();
        ids.sort_unstable();
        let agency = |id: &String| id.split(':').next().unwrap_or_default().to_owned();
        let one_of_each = ids.windows(2).all(|pair| agency(&pair[0]) != agency(&pair[1]));
        if one_of_each { ids } else { alone() }
    }
}

/// Merges recalls into one record. They are given in order of identity.
#[must_use]
pub fn merged(members: &[Recall]) -> Option<Recall> {
    let (first, others) = members.split_first()?;
    let mut out = first.clone();
    for other in others {
        for (field, gap) in [
            (&mut out.hazard, &other.hazard),
            (&mut out.url, &other.url),
            (&mut out.remedy, &other.remedy),
            (&mut out.status, &other.status),
            (&mut out.classification, &other.classification),
            (&mut out.units, &other.units),
        ] {
            if field.is_empty() {
                field.clone_from(gap);
            }
        }
        if other.category == "baby" && out.category != "baby" {
            out.category.clone_from(&other.category);
            out.category_evidence.clone_from(&other.category_evidence);
        }
        out.alert |= other.alert;
        out.agencies.extend(other.agencies.iter().cloned());
        out.numbers.extend(other.numbers.iter().cloned());
        for url in &other.urls {
            if !out.urls.contains(url) {
                out.urls.push(url.clone());
            }
        }
    }
    out.agencies.sort_unstable();
    out.agencies.dedup();
    out.numbers.sort_unstable();
    Some(out)
}
