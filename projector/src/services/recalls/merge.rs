//! When facts are one recall, and what that recall says. None of it depends on the order of arrival: every rule is a function
//! of the set of facts.
//!
//! 1. Facts of one agency with one number are one recall, whatever the door or language. Each field comes from the first fact,
//!    by rank of door (and English before Spanish), that has it.
//! 2. Recalls of different agencies are one when brand and title are the same but for case, marks and white space, when no two
//!    neighbours in order of date are more than [`LIKE_DAYS_MAX`] days apart, and when the group holds at most one recall of
//!    each agency (else it says too little, and none is merged). The record takes the smallest identity; its own fields come
//!    from that recall, the gaps from the others in order of identity.

use schemas::facts::recalls::RecallFact;
use schemas::hash::Hash32;
use schemas::views::recalls::{Note, Recall, day_of};

use super::category::Lexicon;

/// How many days may lie between two agencies' dates of one recall.
pub const LIKE_DAYS_MAX: i64 = 7;
/// A likeness that more recalls share than this is no likeness.
pub const LIKE_MEMBERS_MAX: usize = 64;

/// The rank of a fact among those of one recall: lower is preferred.
fn rank(fact: &RecallFact) -> (bool, usize) {
    const DOORS: [&str; 8] =
        ["cpsc", "openfda.food", "openfda.drug", "openfda.device", "nhtsa.socrata", "nhtsa.flat", "nhtsa.flat_pre_2010", "fsis"];
    (fact.lang == "es", DOORS.iter().position(|door| *door == fact.door).unwrap_or(DOORS.len()))
}

/// The recall that some facts of one identity tell of, before other agencies are looked at. `None` for no facts.
#[must_use]
pub fn recall(identity: &str, notes: &[Note], lexicon: &Lexicon) -> Option<Recall> {
    let gone = notes.iter().all(|note| note.gone);
    let mut said: Vec<(&Note, &RecallFact)> =
        notes.iter().filter(|note| gone || !note.gone).filter_map(|note| Some((note, note.recall.as_ref()?))).collect();
    said.sort_by(|a, b| (rank(a.1), &a.0.key).cmp(&(rank(b.1), &b.0.key)));
    let (_, first) = said.first()?;
    let text = |field: fn(&RecallFact) -> &String| said.iter().map(|(_, fact)| field(fact)).find(|text| !text.is_empty()).cloned().unwrap_or_default();
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

/// An item of an `alike` set: the recall's day and identity.
#[must_use]
pub fn alike_item(recall: &Recall) -> String {
    // Days before 1970 sort after the others; the set is sorted again by number where order matters.
    format!("{} {}", day_of(&recall.date), recall.id)
}

/// Of an `alike` set, the identities that are one recall with `identity`, sorted; alone if there is none.
#[must_use]
pub fn group_of(identity: &str, items: &[String]) -> Vec<String> {
    let alone = vec![identity.to_owned()];
    if items.len() < 2 || items.len() > LIKE_MEMBERS_MAX {
        return alone;
    }
    let mut dated: Vec<(i64, &str)> =
        items.iter().filter_map(|item| item.split_once(' ')).filter_map(|(day, id)| Some((day.parse().ok()?, id))).collect();
    dated.sort_unstable();
    let Some(at) = dated.iter().position(|(_, id)| *id == identity) else { return alone };
    let near = |a: usize, b: usize| dated[b].0 - dated[a].0 <= LIKE_DAYS_MAX;
    let (mut from, mut to) = (at, at);
    while from > 0 && near(from - 1, from) {
        from -= 1;
    }
    while to + 1 < dated.len() && near(to, to + 1) {
        to += 1;
    }
    let mut ids: Vec<&str> = dated[from..=to].iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    let agency = |id: &str| id.split(':').next().unwrap_or_default().to_owned();
    let mut agencies: Vec<String> = ids.iter().map(|id| agency(id)).collect();
    agencies.dedup();
    if ids.len() < 2 || agencies.len() < ids.len() { alone } else { ids.into_iter().map(str::to_owned).collect() }
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
