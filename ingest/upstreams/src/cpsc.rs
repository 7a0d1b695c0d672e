//! Recalls of consumer products by the Consumer Product Safety Commission, since 1973.
//!
//! The service has no paging: one answer holds all matches, so a full read uses windows of five years. An incremental sync makes two
//! queries, by recall date and by publication date, because old recalls are published again. Edits do not reliably change a date; only the
//! weekly full read finds all of them.
//!
//! Two kinds of answers look successful and are not: a misspelled or ignored filter returns all recalls, and a server fault returns one
//! record with id 0. An answer that has nothing else is refused; among other records such a record is rejected.

use std::fmt;
use std::time::Duration;

use std::borrow::Cow;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::recalls::RecallFact;
use schemas::position::UpstreamCursor;
use schemas::topics::RECALLS;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::drift::FieldCounts;
use crate::json::{self, Field, Records};
use crate::{Answer, Licence, Manifest, Observation, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, drift, text};

const ORIGIN: &str = "https://www.saferproducts.gov";
/// The site of notices whose URL is given as a path.
const SITE: &str = "https://www.cpsc.gov";
const FIRST_DAY: Date = Date::constant(1973, 1, 1);
/// How many years one request covers.
const WINDOW_YEARS: i16 = 5;
/// A longer "option" is a paragraph in the wrong field; a shorter one ("R") has no meaning.
const OPTION_CHARS: std::ops::RangeInclusive<usize> = 3..=40;
const PRODUCTS_CHARS_MAX: usize = 2_000;
const UNITS_CHARS_MAX: usize = 500;
const DISTRIBUTION_CHARS_MAX: usize = 2_000;

static MANIFEST: Manifest = Manifest {
    name: "cpsc",
    licence: Licence::of_government("Consumer Product Safety Commission"),
    streams: &[Stream {
        name: "cpsc",
        topic: &RECALLS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 64 << 20,
        answer_timeout: Duration::from_secs(180),
    }],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Cpsc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    RecallDate,
    LastPublishDate,
}

impl By {
    fn parameter(self) -> &'static str {
        match self {
            Self::RecallDate => "RecallDate",
            Self::LastPublishDate => "LastPublishDate",
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cursor {
    by: By,
    /// The days that this request asks for.
    from: Date,
    to: Date,
    /// The last day of the sync run.
    stop: Date,
    /// The first day to read again by publication date; none in a full read.
    again_from: Option<Date>,
}

impl Cursor {
    fn new(by: By, from: Date, stop: Date, again_from: Option<Date>) -> Self {
        let last = Date::new(from.year().saturating_add(WINDOW_YEARS - 1), 12, 31).unwrap_or(Date::MAX);
        Self { by, from, to: last.min(stop), stop, again_from }
    }

    fn next(self) -> Option<Self> {
        if self.to < self.stop {
            return Some(Self::new(self.by, self.to.saturating_add(1.day()), self.stop, self.again_from));
        }
        let from = self.again_from.filter(|_| self.by == By::RecallDate)?;
        Some(Self::new(By::LastPublishDate, from, self.stop, self.again_from))
    }
}

impl Upstream for Cpsc {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, window: &Window, _settings: &Settings) -> UpstreamCursor {
        let again_from = window.from.map(|from| from.min(window.to));
        json::write_cursor(Cursor::new(By::RecallDate, again_from.unwrap_or(FIRST_DAY.min(window.to)), window.to, again_from))
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let Cursor { by, from, to, .. } = json::read_cursor(stream.name, cursor)?;
        let by = by.parameter();
        // Without `format=json` the answer is XML.
        Ok(json::request(ORIGIN, format!("/RestWebServices/Recall?format=json&{by}Start={from}&{by}End={to}")))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let records = Records::of_array(stream.name, &body)?;
        let (mut fault, mut outside, mut fields) = (None, 0, FieldCounts::default());
        let (observations, rejects) = records.map(stream.name, EXPECTED, |record: &Recall<'_>| {
            if let Some(words) = fault_of(record) {
                fault.get_or_insert_with(|| words.clone());
                return Err((text::cut(record.recall_number.clean(), 100), words));
            }
            record.count(&mut fields);
            let day = match cursor.by {
                By::RecallDate => text::date(record.recall_date.text()),
                By::LastPublishDate => text::date(record.last_publish_date.text()),
            };
            outside += usize::from(day.is_some_and(|day| day < cursor.from || day > cursor.to));
            observe(stream, record, today)
        })?;
        if let Some(fault) = fault.filter(|_| observations.is_empty()) {
            return Err(json::later(stream.name, fault));
        }
        let parameter = format!("{}Start", cursor.by.parameter());
        warnings.extend(drift::outside(stream.name, &parameter, outside, records.len())?);
        Ok(Page { observations, rejects, next: cursor.next().map(json::write_cursor), warnings, fields, ..Page::default() })
    }
}

type FieldCheck = fn(&Recall<'_>) -> bool;

/// Fields that every record has. Lists are checked only for their type, because copies of old records lack them.
const EXPECTED: &[(&str, FieldCheck)] = &[
    ("RecallID", |recall| recall.recall_id.is_integer()),
    ("RecallNumber", |recall| recall.recall_number.is_text()),
    ("RecallDate", |recall| recall.recall_date.is_text()),
    ("LastPublishDate", |recall| recall.last_publish_date.is_text()),
    ("Title", |recall| recall.title.is_text()),
    ("URL", |recall| recall.url.is_text()),
    ("Products", |recall| !recall.products.wrong),
    ("Hazards", |recall| !recall.hazards.wrong),
    ("Remedies", |recall| !recall.remedies.wrong),
    ("RemedyOptions", |recall| !recall.remedy_options.wrong),
    ("Importers", |recall| !recall.importers.wrong),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Recall<'a> {
    #[serde(borrow, rename = "RecallID")]
    recall_id: Field<'a>,
    #[serde(borrow, rename = "RecallNumber")]
    recall_number: Field<'a>,
    #[serde(borrow, rename = "RecallDate")]
    recall_date: Field<'a>,
    #[serde(borrow, rename = "LastPublishDate")]
    last_publish_date: Field<'a>,
    #[serde(borrow, rename = "Title")]
    title: Field<'a>,
    #[serde(borrow, rename = "Description")]
    description: Field<'a>,
    #[serde(borrow, rename = "URL")]
    url: Field<'a>,
    #[serde(borrow, rename = "Products")]
    products: Items<'a>,
    #[serde(borrow, rename = "Inconjunctions")]
    inconjunctions: Items<'a>,
    #[serde(borrow, rename = "Manufacturers")]
    manufacturers: Items<'a>,
    #[serde(borrow, rename = "Retailers")]
    retailers: Items<'a>,
    #[serde(borrow, rename = "Importers")]
    importers: Items<'a>,
    #[serde(borrow, rename = "Distributors")]
    distributors: Items<'a>,
    #[serde(borrow, rename = "Hazards")]
    hazards: Items<'a>,
    #[serde(borrow, rename = "Remedies")]
    remedies: Items<'a>,
    #[serde(borrow, rename = "RemedyOptions")]
    remedy_options: Items<'a>,
}

/// One of the record's lists. All lists contain small objects; this type has the members of all of them.
#[derive(Debug, Default)]
struct Items<'a> {
    list: Vec<Item<'a>>,
    /// The field was present with another type than list or null.
    wrong: bool,
}

#[derive(Debug, Default)]
struct Item<'a> {
    name: Field<'a>,
    option: Field<'a>,
    url: Field<'a>,
    kind: Field<'a>,
    units: Field<'a>,
}

impl Items<'_> {
    fn texts<'s>(&'s self, member: fn(&'s Item<'_>) -> &'s Field<'s>) -> impl Iterator<Item = String> + 's {
        self.list.iter().map(move |item| member(item).clean()).filter(|text| !text.is_empty())
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.list.iter().map(|item| item.name.clean()).filter(|text| !text.is_empty())
    }
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum Key {
    Name,
    Option,
    #[serde(rename = "URL")]
    Url,
    Type,
    NumberOfUnits,
    #[serde(other)]
    Other,
}

struct ItemsVisitor<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ItemsVisitor<'a> {
    type Value = Items<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'a>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(Items { list, wrong: false })
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Items<'a>, A::Error> {
        Ok(Items { list: vec![ItemVisitor(self.0).visit_map(map)?], wrong: true })
    }
    fn visit_str<E>(self, text: &str) -> Result<Items<'a>, E> {
        Ok(Items { list: vec![Item::of_text(text)], wrong: true })
    }
    fn visit_unit<E>(self) -> Result<Items<'a>, E> {
        Ok(Items::default())
    }
    fn visit_u64<E>(self, _: u64) -> Result<Items<'a>, E> {
        Ok(Items { list: Vec::new(), wrong: true })
    }
    fn visit_i64<E>(self, _: i64) -> Result<Items<'a>, E> {
        Ok(Items { list: Vec::new(), wrong: true })
    }
    fn visit_f64<E>(self, _: f64) -> Result<Items<'a>, E> {
        Ok(Items { list: Vec::new(), wrong: true })
    }
    fn visit_bool<E>(self, _: bool) -> Result<Items<'a>, E> {
        Ok(Items { list: Vec::new(), wrong: true })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemsVisitor(std::marker::PhantomData))
    }
}

impl Item<'_> {
    /// Makes an item from a bare text.
    fn of_text(text: &str) -> Self {
        let text = || Field::Text(Cow::Owned(text.to_owned()));
        Self { name: text(), option: text(), url: text(), ..Self::default() }
    }
}

struct ItemVisitor<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ItemVisitor<'a> {
    type Value = Item<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item<'a>, A::Error> {
        let mut item = Item::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::Name => item.name = map.next_value()?,
                Key::Option => item.option = map.next_value()?,
                Key::Url => item.url = map.next_value()?,
                Key::Type => item.kind = map.next_value()?,
                Key::NumberOfUnits => item.units = map.next_value()?,
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(item)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Item<'a>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Item::default())
    }
    fn visit_str<E>(self, text: &str) -> Result<Item<'a>, E> {
        Ok(Item::of_text(text))
    }
    fn visit_unit<E>(self) -> Result<Item<'a>, E> {
        Ok(Item::default())
    }
    fn visit_u64<E>(self, _: u64) -> Result<Item<'a>, E> {
        Ok(Item::default())
    }
    fn visit_i64<E>(self, _: i64) -> Result<Item<'a>, E> {
        Ok(Item::default())
    }
    fn visit_f64<E>(self, _: f64) -> Result<Item<'a>, E> {
        Ok(Item::default())
    }
    fn visit_bool<E>(self, _: bool) -> Result<Item<'a>, E> {
        Ok(Item::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Item<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor(std::marker::PhantomData))
    }
}

/// Detects a server fault, which is sent as HTTP 200 with a fake record, and returns its words.
fn fault_of(record: &Recall<'_>) -> Option<String> {
    let title = record.title.text().trim_start();
    let is_fault = title.starts_with("Error retrieving Recalls") || record.recall_id.text().trim() == "0";
    is_fault.then(|| format!("an error record instead of a recall: {}", text::cut(text::clean(title), 200)))
}

impl Recall<'_> {
    /// Counts the mapped fields.
    fn count(&self, fields: &mut FieldCounts) {
        let named = |items: &Items<'_>| items.list.iter().any(|item| item.name.is_filled());
        fields.count([
            ("RecallNumber", self.recall_number.is_filled()),
            ("RecallDate", self.recall_date.is_filled()),
            ("Title", self.title.is_filled()),
            ("Description", self.description.is_filled()),
            ("URL", self.url.is_filled()),
            ("Products", named(&self.products)),
            ("Products.Type", self.products.list.iter().any(|item| item.kind.is_filled())),
            ("Products.NumberOfUnits", self.products.list.iter().any(|item| item.units.is_filled())),
            ("Inconjunctions", self.inconjunctions.list.iter().any(|item| item.url.is_filled())),
            ("Manufacturers", named(&self.manufacturers)),
            ("Retailers", named(&self.retailers)),
            ("Importers", named(&self.importers)),
            ("Distributors", named(&self.distributors)),
            ("Hazards", named(&self.hazards)),
            ("Remedies", named(&self.remedies)),
            ("RemedyOptions", self.remedy_options.list.iter().any(|item| item.option.is_filled())),
        ]);
    }

    /// Returns the name of a list that has another type and of which nothing could be read.
    fn unreadable(&self) -> Option<&'static str> {
        let lists = [
            ("Products", &self.products),
            ("Inconjunctions", &self.inconjunctions),
            ("Manufacturers", &self.manufacturers),
            ("Retailers", &self.retailers),
            ("Importers", &self.importers),
            ("Distributors", &self.distributors),
            ("Hazards", &self.hazards),
            ("Remedies", &self.remedies),
            ("RemedyOptions", &self.remedy_options),
        ];
        lists.into_iter().find(|(_, items)| items.wrong && items.list.is_empty()).map(|(name, _)| name)
    }
}

/// The order in which entries of a list are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// By the alphabet, because the service promises no order.
    Canonical,
    /// As they came, as earlier versions of this program stored them.
    Former,
}

impl Order {
    fn of(self, entries: impl Iterator<Item = String>) -> Vec<String> {
        let mut entries: Vec<String> = entries.collect();
        if self == Self::Canonical {
            entries.sort();
        }
        entries
    }
}

fn observe(stream: &Stream, recall: &Recall<'_>, today: Date) -> Result<Observation, (String, String)> {
    let id = recall.recall_id.text().trim();
    if !recall.recall_id.is_integer() || id.len() > 18 {
        let reference = text::cut(recall.recall_number.clean(), 100);
        return Err((reference, "RecallID is not a whole number".to_owned()));
    }
    if let Some(list) = recall.unreadable() {
        return Err((id.to_owned(), format!("{list} is not a list")));
    }
    let data = recall_fact(stream, recall, id, today, Order::Canonical);
    let former = Some(recall_fact(stream, recall, id, today, Order::Former)).filter(|former| *former != data);
    let former = former.map(|former| FactData::Recall(Box::new(former)));
    Ok(Observation { former, ..Observation::new(format!("{}/{id}", stream.name), FactData::Recall(Box::new(data))) })
}

/// Builds the record with the entries of its lists in an order. The order of firms is that of the service: the first one gives the brand.
fn recall_fact(stream: &Stream, recall: &Recall<'_>, id: &str, today: Date, order: Order) -> RecallFact {
    let names = order.of(recall.products.names());
    let title = Some(recall.title.clean()).filter(|title| !title.is_empty());
    let title = title.or_else(|| names.first().cloned()).unwrap_or_default();
    let number = Some(recall.recall_number.clean()).filter(|number| !number.is_empty()).unwrap_or_else(|| id.to_owned());
    let mut products = text::join_distinct(names, "; ");
    if products.is_empty() {
        products = recall.description.clean();
    }
    RecallFact {
        stream: stream.name.to_owned(),
        agency: "CPSC".to_owned(),
        aliases: Some(id.to_owned()).into_iter().filter(|id| *id != number).collect(),
        lang: "en".to_owned(),
        brand: brand(recall, &title),
        hazard: hazard(order.of(recall.hazards.names()), &title),
        date: text::plausible_date(recall.recall_date.text(), today),
        url: text::https(recall.url.text(), SITE),
        remedy: remedy(recall, order),
        product_type: text::join_distinct(order.of(recall.products.texts(|item| &item.kind)), "; "),
        products: text::cut(products, PRODUCTS_CHARS_MAX),
        units: text::cut(text::join_distinct(order.of(recall.products.texts(|item| &item.units)), "; "), UNITS_CHARS_MAX),
        distribution: text::cut(text::join_prose(order.of(recall.retailers.names())), DISTRIBUTION_CHARS_MAX),
        links: order.of(recall.inconjunctions.list.iter().map(|item| text::https(item.url.text(), SITE)).filter(|url| !url.is_empty())),
        title,
        number,
        ..RecallFact::default()
    }
}

/// Finds the brand: the title before " Recalls "; else the trade name of a firm; else the first firm's name without its location.
fn brand(recall: &Recall<'_>, title: &str) -> String {
    if let Some((brand, _)) = title.split_once(" Recalls ") {
        return brand.trim_end_matches([',', ' ']).to_owned();
    }
    let firms = || [&recall.importers, &recall.distributors, &recall.manufacturers].into_iter().flat_map(Items::names);
    firms()
        .find_map(|firm| text::doing_business_as(&firm))
        .or_else(|| firms().next().map(|firm| text::without_place(&firm).to_owned()))
        .unwrap_or_default()
}

/// Returns the hazards, or else the title after "Due to".
fn hazard(names: Vec<String>, title: &str) -> String {
    let hazards = text::join_prose(names);
    if !hazards.is_empty() {
        return hazards;
    }
    // Only ASCII letters change, so positions stay valid in the original title.
    let due = title.to_ascii_lowercase().find("due to ").and_then(|at| title.get(at + "due to ".len()..));
    due.unwrap_or_default().trim().to_owned()
}

/// Returns the distinct remedy options, or else the first remedy text.
fn remedy(recall: &Recall<'_>, order: Order) -> String {
    let mut options: Vec<String> = Vec::new();
    for option in order.of(recall.remedy_options.texts(|item| &item.option)) {
        if OPTION_CHARS.contains(&option.chars().count()) && !options.iter().any(|known| known.eq_ignore_ascii_case(&option)) {
            options.push(option);
        }
    }
    if options.is_empty() { recall.remedies.names().next().unwrap_or_default() } else { options.join("/") }
}
