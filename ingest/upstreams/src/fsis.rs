//! Recalls and public health alerts of the Food Safety and Inspection Service (meat, poultry, eggs), from a single JSON document.
//!
//! Each sync run reads the whole document. The service has changed the type of ten fields from text to list without notice, so every field
//! is accepted as either and gives the same fact. Its host has bot detection: an HTML page instead of JSON is common. It means "try later",
//! never "no recalls".

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;
use schemas::position::UpstreamCursor;
use schemas::topics::RECALLS;
use serde::{Deserialize, Serialize};

use crate::drift::FieldCounts;
use crate::json::{self, Field, Records};
use crate::{Answer, Licence, Manifest, Observation, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, text};

const ORIGIN: &str = "https://www.fsis.usda.gov";
/// The page that lists notices without an address of their own.
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
/// From this index on the names are foods. They are a hazard only if the summary speaks of an undeclared ingredient.
const FIRST_ALLERGEN: usize = 8;
/// The longest word that [`named_by`] knows.
const WORD_BYTES_MAX: usize = 16;

/// Returns the index in [`NAMED`] for a word in lower case. Of a name with several words the most specific one is enough.
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

/// Whether a word in lower case means an undeclared ingredient.
fn speaks_of_allergens(word: &str) -> bool {
    ["allergen", "declare", "undeclare", "misbrand", "unreported"].iter().any(|start| word.starts_with(start))
}

static MANIFEST: Manifest = Manifest {
    name: "fsis",
    licence: Licence::of_government("Food Safety and Inspection Service"),
    streams: &[Stream {
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

/// There is only one request, so the cursor is empty.
#[derive(Serialize, Deserialize)]
struct Cursor {}

impl Upstream for Fsis {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, _window: &Window, _settings: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor {})
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let Cursor {} = json::read_cursor(stream.name, cursor)?;
        let mut request = json::request(ORIGIN, "/fsis/api/recall/v/1");
        request.headers.push(("accept-language", "en-US,en;q=0.9".to_owned()));
        // The server has answered 304 although records had changed.
        request.conditional = false;
        Ok(request)
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let Cursor {} = json::read_cursor(stream.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let records = Records::of_array(stream.name, &body)?;
        let mut fields = FieldCounts::default();
        let (dated, rejects) = records.map(stream.name, EXPECTED, |notice: &Notice<'_>| {
            notice.count(&mut fields);
            observe(stream, notice, today)
        })?;
        if dated.is_empty() && rejects.is_empty() {
            warnings.push("the document holds no records".to_owned());
        }
        let observations = distinct(dated, &mut warnings);
        Ok(Page { observations, rejects, warnings, fields, ..Page::default() })
    }
}

/// An observation and the date of its last modification or publication.
type Dated = (Observation, String);

/// Removes duplicates. Of several records with the same number and language the one with the latest date is used, and with equal dates the
/// one with the greater content, so that the document's order does not matter. The result is in the order of first appearance.
fn distinct(dated: Vec<Dated>, warnings: &mut Vec<String>) -> Vec<Observation> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut distinct: Vec<Dated> = Vec::with_capacity(dated.len());
    let (mut same, mut different) = (0_usize, Vec::new());
    for (observation, date) in dated {
        match places.entry(observation.key.clone()) {
            Entry::Vacant(place) => {
                place.insert(distinct.len());
                distinct.push((observation, date));
            }
            Entry::Occupied(place) => {
                let Some(known) = distinct.get_mut(*place.get()) else { continue };
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
    distinct.into_iter().map(|(observation, _)| observation).collect()
}

type FieldCheck = fn(&Notice<'_>) -> bool;

const EXPECTED: &[(&str, FieldCheck)] = &[
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

impl Notice<'_> {
    /// Counts the mapped fields.
    fn count(&self, fields: &mut FieldCounts) {
        fields.count([
            ("field_title", self.field_title.is_filled()),
            ("field_recall_url", self.field_recall_url.is_filled()),
            ("field_recall_date", self.field_recall_date.is_filled()),
            ("field_recall_type", self.field_recall_type.is_filled()),
            ("field_recall_classification", self.field_recall_classification.is_filled()),
            ("field_recall_reason", self.field_recall_reason.is_filled()),
            ("field_summary", self.field_summary.is_filled()),
            ("field_product_items", self.field_product_items.is_filled()),
            ("field_processing", self.field_processing.is_filled()),
            ("field_establishment", self.field_establishment.is_filled()),
            ("field_states", self.field_states.is_filled()),
            ("langcode", self.langcode.is_filled()),
        ]);
    }
}

fn observe(stream: &Stream, notice: &Notice<'_>, today: Date) -> Result<Dated, (String, String)> {
    let (printed, title) = (notice.field_recall_number.clean(), notice.field_title.clean());
    let Some(number) = text::number(&printed) else {
        return Err((text::cut(title, 100), "field_recall_number is absent, empty or not a number".to_owned()));
    };
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
        stream: stream.name.to_owned(),
        agency: "USDA".to_owned(),
        number: number.clone(),
        aliases: Some(printed).into_iter().filter(|printed| *printed != number).collect(),
        lang: lang.to_owned(),
        brand: brand(notice, &title),
        hazard: hazard(sorted(words(&notice.field_recall_reason)), notice, lang),
        date: text::plausible_date(notice.field_recall_date.text(), today),
        url: url.unwrap_or_else(|| LIST_URL.to_owned()),
        product_type: text::join_distinct(sorted(words(&notice.field_processing)), "; "),
        // Joined with a space, as in the text that the service used to send, so that the new type does not count as a change.
        products: text::cut(text::join_distinct(notice.field_product_items.list(), " "), PRODUCTS_CHARS_MAX),
        alert: status.eq_ignore_ascii_case("Public Health Alert"),
        status,
        classification: notice.field_recall_classification.clean(),
        distribution: text::join_distinct(sorted(words(&notice.field_states)), ", "),
        title,
        ..RecallFact::default()
    };
    let dated = Some(text::plausible_date(notice.field_last_modified_date.text(), today)).filter(|date| !date.is_empty());
    let dated = dated.unwrap_or_else(|| data.date.clone());
    let key = format!("{}/{number}/{lang}", stream.name);
    let former = RecallFact {
        hazard: hazard(words(&notice.field_recall_reason), notice, lang),
        product_type: text::join_distinct(words(&notice.field_processing), "; "),
        distribution: text::join_distinct(words(&notice.field_states), ", "),
        ..data.clone()
    };
    let former = (former != data).then(|| FactData::Recall(Box::new(former)));
    Ok((Observation { former, ..Observation::new(key, FactData::Recall(Box::new(data))) }, dated))
}

/// Brings entries into a canonical order, because the service promises none.
fn sorted(mut entries: Vec<String>) -> Vec<String> {
    entries.sort();
    entries
}

/// Returns the entries of a list of short words. The service used to send them as one text with commas.
fn words(field: &Field<'_>) -> Vec<String> {
    match field {
        Field::Text(text) => text::clean(text).split(", ").map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect(),
        field => field.list(),
    }
}

/// Words of a title that separate the firm from what it recalls, in lower case: in English and in Spanish.
const RECALLING: &[&str] = &[" recalls ", " retira ", " retiran ", " retiró ", " retirará "];

/// Returns the establishment, or else the title before " Recalls " or its Spanish form. The title of an alert begins with the service's own
/// name.
fn brand(notice: &Notice<'_>, title: &str) -> String {
    if let Some(establishment) = notice.field_establishment.list().into_iter().next() {
        return establishment;
    }
    // Only ASCII letters change, so positions stay valid in the title.
    let lower = title.to_ascii_lowercase();
    let brand = RECALLING.iter().filter_map(|word| lower.find(word)).min().and_then(|at| title.get(..at)).unwrap_or_default();
    if brand.split(' ').any(|word| word == "FSIS") { String::new() } else { brand.trim_end_matches([',', ' ']).to_owned() }
}

/// Returns the reasons, and the pathogens and allergens that only the summary names.
fn hazard(reasons: Vec<String>, notice: &Notice<'_>, lang: &str) -> String {
    let mut hazards = reasons;
    if lang == "en" {
        let mut found = NamedHazards::default();
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

/// Finds the names in texts, in one pass over their words. Words inside tags do not count.
#[derive(Default)]
struct NamedHazards {
    named: [bool; NAMED.len()],
    undeclared: bool,
}

impl NamedHazards {
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
        // Only ASCII letters change, so the text is still UTF-8.
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

    /// Proves that whole words are found in any case, but not inside tags.
    #[test]
    fn finds_words_outside_tags() {
        let mut found = NamedHazards::default();
        found.read("<p>Misbranded. Contains<a href=\"/wheat.pdf\">MILK</a>, eggplant &amp; <b>peanuts</b>; E. coli O157 3 < 4 soyé</p>");
        let named: Vec<_> = NAMED.iter().zip(found.named).filter(|(_, found)| *found).map(|(name, _)| *name).collect();
        assert_eq!(named, ["E. coli", "milk", "peanut"]);
        assert!(found.undeclared);
    }
}
