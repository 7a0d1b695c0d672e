//! When facts are one recall, and what that recall says. None of it depends on the order of arrival: every rule is a function
//! of the set of facts.
//!
//! 1. Facts of one agency with one number are one recall, whatever the stream or language. Each field comes from the first fact,
//!    by rank of stream (and English before Spanish), that has it.
//! 2. Recalls of different agencies are one when brand and title are the same but for case, marks and white space, when no two
//!    neighbours in order of date are more than [`LIKE_DAYS_MAX`] days apart, and when the group holds at most one recall of
//!    each agency (else it says too little, and none is merged). The record takes the smallest identity; its own fields come
//!    from that recall, the gaps from the others in order of identity.

use std::borrow::Cow;

use schemas::facts::recalls::RecallFact;
use schemas::hash::Hash32;
use schemas::views::recalls::{Note, Recall, day_of};

use super::category::Lexicon;

/// How many days may lie between two agencies' dates of one recall.
pub const LIKE_DAYS_MAX: i64 = 7;
/// The most recalls that can be one: one of each agency.
const GROUP_MAX: usize = 4;
/// Days that one `alike` set covers.
const BUCKET_DAYS: i64 = 256;
/// Days around a recall within which every other one lies that can be one with it: a group's steps to either side, and some.
const REACH_DAYS: i64 = 40;
/// Recalls that one `alike` set holds at most. Further ones of the same brand, title and weeks are merged with none: a bound
/// on cost that no real agency comes near.
pub const BUCKET_MAX: usize = 4_096;

/// The rank of a fact among those of one recall: lower is preferred.
fn rank(fact: &RecallFact) -> (bool, usize) {
    const STREAMS: [&str; 8] =
        ["cpsc", "openfda.food", "openfda.drug", "openfda.device", "nhtsa.socrata", "nhtsa.flat", "nhtsa.flat_pre_2010", "fsis"];
    (fact.lang == "es", STREAMS.iter().position(|stream| *stream == fact.stream).unwrap_or(STREAMS.len()))
}

/// The recall that some facts of one identity tell of, before other agencies are looked at. `None` for no facts.
#[must_use]
pub fn recall(identity: &str, notes: &[Cow<'_, Note>], lexicon: &Lexicon) -> Option<Recall> {
    let gone = notes.iter().all(|note| note.gone);
    let mut said: Vec<(&Note, &RecallFact)> =
        notes.iter().filter(|note| gone || !note.gone).filter_map(|note| Some((&**note, note.recall.as_ref()?))).collect();
    said.sort_by(|a, b| (rank(a.1), &a.0.key).cmp(&(rank(b.1), &b.0.key)));
    let (_, first) = said.first()?;
    let text = |field: fn(&RecallFact) -> &String| {
        said.iter().map(|(_, fact)| field(fact)).find(|text| !text.is_empty()).cloned().unwrap_or_default()
    };
    let categories: Vec<(String, String)> = said.iter().map(|(_, fact)| lexicon.category(fact)).collect();
    let (category, category_evidence) =
        categories.iter().find(|(category, _)| category == "baby").or(categories.first()).cloned().unwrap_or_default();
    let mut urls: Vec<String> = Vec::new();
    for url in said.iter().map(|(_, fact)| &fact.url).chain(said.iter().flat_map(|(_, fact)| &fact.links)) {
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
        alert: said.iter().any(|(_, fact)| fact.alert),
        withdrawn: gone,
        merged_into: String::new(),
    })
}

/// What recalls of different agencies must share to be one: a short hash of brand and title. `None` when that says too little.
#[must_use]
pub fn likeness(recall: &Recall) -> Option<String> {
    if recall.withdrawn { None } else { likeness_of(&recall.brand, &recall.title, &recall.date) }
}

/// The likeness of a recall that is not withdrawn, from the three fields that it follows from.
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
    let mut is_apart = false;
    for c in text.chars() {
        if !c.is_alphanumeric() {
            is_apart = true;
            continue;
        }
        if std::mem::take(&mut is_apart) && !out.is_empty() {
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

/// Where a recall stands among those like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What it shares with them.
    pub likeness: String,
    /// Its day.
    pub day: i64,
}

impl Place {
    /// The place of a recall; `None` when it is like none.
    #[must_use]
    pub fn of(recall: &Recall) -> Option<Self> {
        likeness(recall).map(|likeness| Self { likeness, day: day_of(&recall.date) })
    }

    /// The `alike` set that holds it.
    #[must_use]
    pub fn set(&self) -> String {
        self.set_of(self.day.div_euclid(BUCKET_DAYS))
    }

    /// The `alike` sets that hold what can matter to it: mostly one, near an end of that two.
    pub fn sets(&self) -> impl Iterator<Item = String> + use<'_> {
        let bucket = |day: i64| day.div_euclid(BUCKET_DAYS);
        (bucket(self.day - REACH_DAYS)..=bucket(self.day + REACH_DAYS)).map(|bucket| self.set_of(bucket))
    }

    fn set_of(&self, bucket: i64) -> String {
        format!("alike/{}/{bucket}", self.likeness)
    }

    /// The item of an `alike` set for a recall at this place.
    #[must_use]
    pub fn item(&self, identity: &str) -> String {
        format!("{} {identity}", self.day)
    }
}

/// Recalls alike, by day and identity.
#[derive(Clone, Debug, Default)]
pub struct Alike(Vec<(i64, String)>);

impl Alike {
    /// Adds the items of an `alike` set.
    pub fn extend<'a>(&mut self, items: impl IntoIterator<Item = &'a String>) {
        let read = |item: &'a String| item.split_once(' ').and_then(|(day, id)| Some((day.parse().ok()?, id.to_owned())));
        self.0.extend(items.into_iter().filter_map(read));
        self.0.sort_unstable();
    }

    /// The identities that are one recall with `identity` on `day`, sorted; alone if there is none.
    #[must_use]
    pub fn group_of(&self, day: i64, identity: &str) -> Vec<String> {
        let at = self.0.binary_search_by(|(other, id)| (*other, id.as_str()).cmp(&(day, identity)));
        at.map_or_else(|_| vec![identity.to_owned()], |at| self.group_at(at))
    }

    /// The identities whose group may change when a recall comes to, or leaves, a place: its own group and its neighbours'.
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

/// The one record of recalls that are one, given in order of identity.
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
