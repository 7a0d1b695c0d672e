//! Recalls and public health alerts of the Food Safety and Inspection Service (meat, poultry, eggs), in one document.
//!
//! Each run reads all there is. The service has changed the type of ten fields from text to lists without notice, so that any
//! field is read either way and gives the same fact. Its host is guarded: an HTML page instead of JSON is common and means
//! "later", never "no recalls".

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;
use schemas::position::UpstreamCursor;
use schemas::topics::RECALLS;
use serde::{Deserialize, Serialize};

use crate::cpsc::JSON_MEDIA_TYPES;
use crate::json::{self, Field, Records};
use crate::{Answer, Door, Manifest, Observation, Page, Request, Settings, Upstream, UpstreamError, Window, text};

const ORIGIN: &str = "https://www.fsis.usda.gov";
/// Where a notice without an address of its own is listed.
const LIST_URL: &str = "https://www.fsis.usda.gov/recalls";
const PRODUCTS_CHARS_MAX: usize = 2_000;

/// What a summary may name, in the order in which a hazard lists it.
const NAMED: &[&str] = &[
    "Listeria",
    "Salmonella",
    "E. coli",
    "Campylobacter",
    "Clostridium botulinum",
    "Staphylococcus",
    "norovirus",
    "hepatitis A",
    "milk",
    "egg",
    "wheat",
    "soy",
    "peanut",
    "tree nuts",
    "fish",
    "shellfish",
    "sesame",
];
/// Those from here on are foods: a hazard only where a summary speaks of an ingredient that was not declared.
const FIRST_ALLERGEN: usize = 8;
/// The longest word that [`named_by`] knows.
const WORD_BYTES_MAX: usize = 16;

/// The place in [`NAMED`] of what a word, in lower case, names. Of names of several words the one that tells is enough.
fn named_by(word: &str) -> Option<usize> {
    Some(match word {
        "listeria" => 0,
        "salmonella" => 1,
        "coli" | "escherichia" | "stec" => 2,
        "campylobacter" => 3,
        "botulinum" | "botulism" => 4,
        "staphylococcus" | "staphylococcal" => 5,
        "norovirus" => 6,
        "hepatitis" => 7,
        "milk" | "dairy" | "whey" | "casein" => 8,
        "egg" | "eggs" => 9,
        "wheat" => 10,
        "soy" | "soya" | "soybean" | "soybeans" => 11,
        "peanut" | "peanuts" => 12,
        "nut" | "nuts" | "almond" | "almonds" | "cashew" | "cashews" | "pecan" | "pecans" | "walnut" | "walnuts" | "pistachio"
        | "pistachios" | "hazelnut" | "hazelnuts" => 13,
        "fish" | "anchovy" | "anchovies" => 14,
        "shellfish" | "shrimp" | "crab" | "lobster" | "crawfish" | "crustacean" => 15,
        "sesame" | "tahini" => 16,
        _ => return None,
    })
}

/// Whether a word, in lower case, speaks of an ingredient that was not declared.
fn speaks_of_allergens(word: &str) -> bool {
    ["allergen", "declare", "undeclare", "misbrand", "unreported"].iter().any(|start| word.starts_with(start))
}

static MANIFEST: Manifest = Manifest {
    name: "fsis",
    doors: &[Door {
        name: "fsis",
        topic: &RECALLS,
        every: Duration::ZERO,
        snapshot: true,
        answer_bytes_max: 96 << 20,
        answer_timeout: Duration::from_secs(180),
    }],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Fsis;

/// There is one request; its cursor says no more.
#[derive(Serialize, Deserialize)]
struct Cursor {}

impl Upstream for Fsis {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _door: &Door, _window: &Window, _settings: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor {})
    }

    fn request(&self, door: &Door, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let Cursor {} = json::read_cursor(door.name, cursor)?;
        Ok(Request {
            origin: ORIGIN.to_owned(),
            path: "/fsis/api/recall/v/1".to_owned(),
            body: None,
            headers: vec![("accept", "application/json".to_owned()), ("accept-language", "en-US,en;q=0.9".to_owned())],
            accepts_statuses: &[],
            media_types: JSON_MEDIA_TYPES,
            // 304 was seen while records had changed.
            conditional: false,
            wall: None,
        })
    }

    fn map(&self, door: &Door, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let Cursor {} = json::read_cursor(door.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let records = Records::of_array(door.name, &body)?;
        let (dated, rejects) = records.map(door.name, EXPECTED, |notice: &Notice<'_>| observe(door, notice, today))?;
        if dated.is_empty() && rejects.is_empty() {
            warnings.push("the document holds no records".to_owned());
        }
        let observations = distinct(dated, &mut warnings);
        Ok(Page { observations, rejects, next: None, through: None, warnings })
    }
}

/// An observation and the day it was last modified, or published.
type Dated = (Observation, String);

/// Of records with the same number and language the one with the later date, or the greater content where dates agree, so that
/// the document's order does not matter. The order is that of first appearance.
fn distinct(dated: Vec<Dated>, warnings: &mut Vec<String>) -> Vec<Observation> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept: Vec<Dated> = Vec::with_capacity(dated.len());
    let (mut same, mut different) = (0_usize, Vec::new());
    for (observation, date) in dated {
        match places.entry(observation.key.clone()) {
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push((observation, date));
            }
            Entry::Occupied(place) => {
                let Some(known) = kept.get_mut(*place.get()) else { continue };
                if known.0.data == observation.data {
                    same += 1;
                } else {
                    different.push(observation.key.clone());
                }
                if (&date, observation.data.canonical()) > (&known.1, known.0.data.canonical()) {
                    *known = (observation, date);
                }
            }
        }
    }
    if same > 0 {
        warnings.push(format!("{same} records occur more than once with the same content"));
    }
    if !different.is_empty() {
        different.sort();
        different.dedup();
        let some = different.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        warnings.push(format!("{} keys occur with different contents, of which the later was taken: {some}", different.len()));
    }
    kept.into_iter().map(|(observation, _)| observation).collect()
}

type Holds = fn(&Notice<'_>) -> bool;

const EXPECTED: &[(&str, Holds)] = &[
    ("field_recall_number", |notice| notice.field_recall_number.is_text_or_list()),
    ("field_title", |notice| notice.field_title.is_text_or_list()),
    ("field_recall_date", |notice| notice.field_recall_date.is_text_or_list()),
    ("field_recall_type", |notice| notice.field_recall_type.is_text_or_list()),
    ("field_recall_reason", |notice| notice.field_recall_reason.is_text_or_list()),
    ("langcode", |notice| notice.langcode.is_text_or_list()),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Notice<'a> {
    #[serde(borrow)]
    field_recall_number: Field<'a>,
    #[serde(borrow)]
    field_title: Field<'a>,
    #[serde(borrow)]
    field_recall_url: Field<'a>,
    #[serde(borrow)]
    field_recall_date: Field<'a>,
    #[serde(borrow)]
    field_last_modified_date: Field<'a>,
    #[serde(borrow)]
    field_recall_type: Field<'a>,
    #[serde(borrow)]
    field_recall_classification: Field<'a>,
    #[serde(borrow)]
    field_recall_reason: Field<'a>,
    #[serde(borrow)]
    field_summary: Field<'a>,
    #[serde(borrow)]
    field_product_items: Field<'a>,
    #[serde(borrow)]
    field_processing: Field<'a>,
    #[serde(borrow)]
    field_establishment: Field<'a>,
    #[serde(borrow)]
    field_states: Field<'a>,
    #[serde(borrow)]
    langcode: Field<'a>,
}

fn observe(door: &Door, notice: &Notice<'_>, today: Date) -> Result<Dated, (String, String)> {
    let (number, title) = (notice.field_recall_number.clean(), notice.field_title.clean());
    if number.is_empty() || number.len() > 64 || number.contains(['/', ' ']) {
        return Err((text::cut(title, 100), "field_recall_number is absent, empty or no number".to_owned()));
    }
    let raw_url = notice.field_recall_url.text();
    let lang = match notice.langcode.clean().to_lowercase().as_str() {
        "english" | "en" => "en",
        "spanish" | "es" | "español" => "es",
        "" if raw_url.contains("/es/") => "es",
        "" => "en",
        other => return Err((number, format!("langcode is neither English nor Spanish but {}", text::cut(other.to_owned(), 40)))),
    };
    let status = notice.field_recall_type.clean();
    let url = Some(text::https(raw_url, ORIGIN)).filter(|url| !url.is_empty());
    let data = RecallFact {
        stream: door.name.to_owned(),
        agency: "USDA".to_owned(),
        number: number.clone(),
        lang: lang.to_owned(),
        brand: brand(notice, &title),
        hazard: hazard(notice, lang),
        date: text::plausible_date(notice.field_recall_date.text(), today),
        url: url.unwrap_or_else(|| LIST_URL.to_owned()),
        product_type: text::join_distinct(words(&notice.field_processing), "; "),
        // A space, as in the one text that the service used to send: the other form must not read as a change.
        products: text::cut(text::join_distinct(notice.field_product_items.list(), " "), PRODUCTS_CHARS_MAX),
        alert: status.eq_ignore_ascii_case("Public Health Alert"),
        status,
        classification: notice.field_recall_classification.clean(),
        distribution: text::join_distinct(words(&notice.field_states), ", "),
        title,
        ..RecallFact::default()
    };
    let dated = Some(text::plausible_date(notice.field_last_modified_date.text(), today)).filter(|date| !date.is_empty());
    let dated = dated.unwrap_or_else(|| data.date.clone());
    let key = format!("{}/{number}/{lang}", door.name);
    Ok((Observation { key, data: FactData::Recall(Box::new(data)), replaces: Vec::new() }, dated))
}

/// The entries of a list of short words, which the service used to send as one text with commas.
fn words(field: &Field<'_>) -> Vec<String> {
    match field {
        Field::Text(text) => text::clean(text).split(", ").map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect(),
        field => field.list(),
    }
}

/// The establishment; else what stands before " Recalls " in the title. An alert's title begins with the service's own name.
fn brand(notice: &Notice<'_>, title: &str) -> String {
    if let Some(establishment) = notice.field_establishment.list().into_iter().next() {
        return establishment;
    }
    match title.split_once(" Recalls ") {
        Some((brand, _)) if !brand.starts_with("FSIS Issues") => brand.trim_end_matches([',', ' ']).to_owned(),
        _ => String::new(),
    }
}

/// The reasons, and the pathogens and allergens that only the summary names.
fn hazard(notice: &Notice<'_>, lang: &str) -> String {
    let mut hazards = words(&notice.field_recall_reason);
    if lang == "en" {
        let mut found = Found::default();
        match &notice.field_summary {
            Field::List(parts) => parts.iter().for_each(|part| found.read(part.text())),
            field => found.read(field.text()),
        }
        let reasons = hazards.join("; ").to_lowercase();
        found.read(&reasons);
        for (at, name) in NAMED.iter().enumerate() {
            if found.named[at] && (at < FIRST_ALLERGEN || found.undeclared) && !reasons.contains(&name.to_lowercase()) {
                hazards.push((*name).to_owned());
            }
        }
    }
    text::join_distinct(hazards, "; ")
}

/// What texts name, found in one pass over their words; what stands inside tags is no word.
#[derive(Default)]
struct Found {
    named: [bool; NAMED.len()],
    undeclared: bool,
}

impl Found {
    fn read(&mut self, text: &str) {
        let mut in_tag = false;
        for part in text.split_inclusive(['<', '>']) {
            if !in_tag {
                for word in part.split(|c: char| !c.is_alphanumeric()) {
                    self.word(word);
                }
            }
            in_tag = part.ends_with('<') || (in_tag && !part.ends_with('>'));
        }
    }

    fn word(&mut self, word: &str) {
        let mut lower = [0; WORD_BYTES_MAX];
        let Some(lower) = lower.get_mut(..word.len()).filter(|_| word.len() >= 3) else { return };
        lower.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        // Only ASCII letters change, so that it is still UTF-8.
        let Ok(lower) = std::str::from_utf8(lower) else { return };
        if let Some(named) = named_by(lower).and_then(|at| self.named.get_mut(at)) {
            *named = true;
        }
        self.undeclared |= speaks_of_allergens(lower);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that words are found whole, in any case, and not inside tags.
    #[test]
    fn finds_words_outside_tags() {
        let mut found = Found::default();
        found.read("<p>Misbranded. Contains<a href=\"/wheat.pdf\">MILK</a>, eggplant &amp; <b>peanuts</b>; E. coli O157 3 < 4 soyé</p>");
        let named: Vec<_> = NAMED.iter().zip(found.named).filter(|(_, found)| *found).map(|(name, _)| *name).collect();
        assert_eq!(named, ["E. coli", "milk", "peanut"]);
        assert!(found.undeclared);
    }
}
