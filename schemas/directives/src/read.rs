//! Reads the directives of a document.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use texts::company_names::folded;
use texts::dates::{self, Precision};
use texts::numbers::has_only_digits;

use crate::aliases::{compact_form, is_known, is_known_make, resolve_makes};
use crate::applicability;
use crate::compliance;
use crate::designation_words::{NOUNS, is_designation};
use crate::designations::last_noun;
use crate::directive::{Affected, Applicability, Directive, Layout, Mention, Product, Relation, Scope, Span, Unread, UnreadReason};
use crate::document::{DirectiveText, ReadError, directive_number, split};
use crate::paragraphs::{Parts, parts};
use crate::tokens::Tokens;

/// The most words before "Model" that can be the name of a make.
const MAKE_WORDS_MAX: usize = 7;
/// The most lists whose makes are read.
const MAKES_READ_MAX: usize = 60;
/// The longest title that is read, in bytes.
const TITLE_BYTES_MAX: usize = 1_000;
/// The most names in parentheses that are read of one title or header.
const FORMER_NAMES_MAX: usize = 24;
/// Words of titles and headers that name no maker but kinds of aircraft: "Transport and Commuter Category Airplanes".
const KINDS: &[&str] = &[
    "aerobatic",
    "all",
    "and",
    "appliance",
    "appliances",
    "category",
    "certain",
    "certificated",
    "commuter",
    "general",
    "large",
    "multiengine",
    "normal",
    "of",
    "or",
    "other",
    "restricted",
    "series",
    "small",
    "transport",
    "turbine-powered",
    "utility",
    "various",
];
/// The last words of titles about parts that are installed in aircraft, engines or propellers of several makers.
const PARTS: &[&str] = &[
    "actuators",
    "alternators",
    "altimeters",
    "application",
    "assemblies",
    "assembly",
    "autopilots",
    "batteries",
    "belts",
    "brakes",
    "buckles",
    "carburetors",
    "computers",
    "cylinders",
    "detectors",
    "displays",
    "equipment",
    "extinguishers",
    "filters",
    "floats",
    "gauges",
    "generators",
    "governors",
    "harnesses",
    "heaters",
    "hoists",
    "hoses",
    "indicators",
    "jackets",
    "lights",
    "magnetos",
    "masks",
    "modules",
    "parachutes",
    "pumps",
    "radios",
    "rafts",
    "receivers",
    "regulators",
    "restraints",
    "seats",
    "servos",
    "skis",
    "slides",
    "software",
    "starters",
    "switches",
    "systems",
    "tanks",
    "tires",
    "transmitters",
    "transponders",
    "turbochargers",
    "units",
    "valves",
    "vests",
    "wheels",
];
/// Legal forms within the names of makers.
const FORMS: &[&str] = &[" ag", " co.", " company", " corp", " gmbh", " inc", " limited", " llc", " ltd", " s.a", " s.p.a", " s.r.o"];
/// Words after a noun that say which of the products are meant.
const QUALIFIERS: &[&str] = &["certificated", "equipped", "having", "incorporating", "modified", "powered", "that", "with"];
/// Verbs whose directives stay in force: "This AD replaces AD 2019-20-09. Its actions terminate certain requirements of AD 2016-07-10".
const NOT_REPLACING: &[&str] = &["affect", "affects", "terminate", "terminated", "terminates", "terminating"];
/// The most designations of an abstract that are kept.
const SUMMARY_MAX: usize = 300;

/// A document as its upstream describes it. Spans of what is read are those of `text`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publication<'a> {
    /// The title: "Airworthiness Directives; Piper Aircraft, Inc. Airplanes". May be empty.
    pub title: &'a str,
    /// The abstract. May be empty.
    pub summary: &'a str,
    /// The regulatory text, cleaned by [`crate::clean`].
    pub text: &'a str,
    /// The effective date that the upstream gives.
    pub effective_on: Option<Date>,
}

/// Reads the directives of a document, in its order.
///
/// # Errors
/// When the text holds no directive: it is empty, or has no header with a number.
pub fn read(publication: &Publication<'_>) -> Result<Vec<Directive>, ReadError> {
    Ok(split(publication.text)?.into_iter().map(|found| read_one(publication, &found)).collect())
}

fn read_one(publication: &Publication<'_>, found: &DirectiveText) -> Directive {
    let text = publication.text;
    let tokens = Tokens::of(text, found.span.start..found.span.end);
    let title = beginning(publication.title);
    let parts = parts(&tokens);
    let holder = found.holder_span.of(text).to_owned();
    let mut unread = Vec::new();
    let product = product_of(title, &tokens, &parts, text);
    let makes = makes_of(&holder, title, product, &Tokens::of(text, parts.applicability.start..parts.applicability.end));

    let (mut applicability, more) = if parts.applicability == Span::default() {
        let none = Applicability {
            span: Span::default(),
            scope: Scope::Unknown,
            models: Vec::new(),
            mentions: Vec::new(),
            serials: Vec::new(),
            condition: None,
            is_open: false,
        };
        (none, vec![Unread { reason: UnreadReason::NoApplicability, span: found.span }])
    } else {
        let part = Tokens::of(text, parts.applicability.start..parts.applicability.end);
        applicability::read(&part, parts.applicability, &makes, product)
    };
    unread.extend(more);
    let layout = parts.layout.unwrap_or(Layout::Older);
    // "All airplanes, with a winch of Acme installed": the holder is that of something that aircraft of any maker can have, unless the text names aircraft of
    // the holder: "all Acme airplanes".
    let names_aircraft = || {
        let part = Tokens::of(text, parts.applicability.start..parts.applicability.end);
        (0..part.len()).any(|at| makes.iter().any(|make| is_aircraft_of(&part, at, make)))
    };
    let is_for_any = product == Product::Aircraft
        && layout == Layout::Lettered
        && applicability.models.is_empty()
        && applicability.mentions.is_empty()
        && !is_known_make(&makes)
        && !names_aircraft();
    let makes = if is_for_any { Vec::new() } else { makes };
    if layout == Layout::Older {
        unread.push(Unread { reason: UnreadReason::OlderLayout, span: found.span });
    }
    if tokens.is_cut {
        unread.push(Unread { reason: UnreadReason::TooLong, span: found.span });
    }
    let reasons = [UnreadReason::NoApplicability, UnreadReason::OlderLayout, UnreadReason::TooLong];
    let is_partial = unread.iter().any(|unread| reasons.contains(&unread.reason));
    applicability.is_open = product == Product::Appliance && (applicability.is_open || is_partial);
    let effective = effective_of(text, parts.effective).or(publication.effective_on.map(|date| (date, None)));
    if effective.is_none() {
        unread.push(Unread { reason: UnreadReason::EffectiveDate, span: parts.effective });
    }
    if parts.actions.is_empty() {
        unread.push(Unread { reason: UnreadReason::NoActions, span: found.span });
    }
    let before = Span::new(found.holder_span.end, parts.applicability.start.max(found.holder_span.end));
    Directive {
        number: found.number.clone(),
        number_span: found.number_span,
        holder,
        makes,
        product,
        layout,
        effective,
        affected: affected_of(text, if layout == Layout::Older { before } else { parts.affected }, &found.number),
        applicability,
        named_in_summary: designations_of(publication.summary),
        ata: ata_of(text, parts.subject),
        unsafe_condition: parts.unsafe_condition,
        compliance: compliance::read(text, &parts.actions, publication.summary),
        unread,
    }
}

/// The part of a title that is read.
fn beginning(title: &str) -> &str {
    title.get(..title.floor_char_boundary(TITLE_BYTES_MAX)).unwrap_or_default()
}

/// The kind of product: from the last word of the title if it names a part, else from its last noun, else from the applicability. Without a title it is from the
/// identifier of the project first.
fn product_of(title: &str, tokens: &Tokens<'_>, parts: &Parts, text: &str) -> Product {
    let part = Tokens::of(text, parts.applicability.start..parts.applicability.end);
    if is_part(title) {
        return Product::Appliance;
    }
    // "Various Airplanes, Helicopters, and Engines".
    let title = unqualified(title);
    let names = title.split_once(';').map_or(title, |(_, names)| names);
    let is_aircraft = |noun: &str| is_noun(noun) && product_of_noun(&noun.to_lowercase()) == Product::Aircraft;
    if is_kind(names) && names.split([' ', ',']).any(is_aircraft) {
        return Product::Aircraft;
    }
    if let Some(noun) = last_noun(title).filter(|noun| !is_in_name(title, noun)) {
        return product_of_noun(noun);
    }
    if !title.trim().is_empty() {
        // The title is the name of a maker.
        let has_model = title.split_whitespace().any(|word| matches!(word, "Model" | "Models"));
        return product_in(&part).unwrap_or(if has_model { Product::Aircraft } else { Product::Appliance });
    }
    let identifier =
        (0..tokens.len().min(120)).find(|at| tokens.is_phrase(*at, "Identifier")).map(|at| tokens.text(at + 1)).unwrap_or_default();
    match identifier.rsplit('-').next().unwrap_or_default() {
        "E" => return Product::Engine,
        "P" => return Product::Propeller,
        "A" | "T" | "R" | "G" | "B" => return Product::Aircraft,
        _ => {}
    }
    product_in(&part).unwrap_or(Product::Appliance)
}

/// The title before what its products have: "Boeing Model 747 Series Airplanes" of "Boeing Model 747 Series Airplanes Equipped With General Electric Engines".
fn unqualified(title: &str) -> &str {
    let is = |list: &[&str], word: &str| list.iter().any(|known| word.eq_ignore_ascii_case(known));
    let mut end = 0;
    let mut words = title.split_inclusive(' ').peekable();
    while let Some(word) = words.next() {
        end += word.len();
        let next = words.peek().map_or("", |next| next.trim());
        if is(NOUNS, word.trim()) && is(QUALIFIERS, next) {
            break;
        }
    }
    title.get(..end).unwrap_or(title).trim_end()
}

/// Whether a noun of a title is a part of the name of a maker whose products follow: "Cameron Balloons Ltd. Burners", but not "MD Helicopters, Inc.,
/// Helicopters" and not "Piper Aircraft, Inc.", which names no product.
fn is_in_name(title: &str, noun: &str) -> bool {
    let words: Vec<&str> = title.split_whitespace().map(|word| word.trim_matches([',', '.', ';'])).collect();
    let last = words.iter().rposition(|word| word.eq_ignore_ascii_case(noun));
    let next = last.and_then(|last| words.get(last + 1)).copied().unwrap_or_default();
    let product = last.and_then(|last| words.get(last + 2)).copied().unwrap_or_default();
    let has_product = product.starts_with(|c: char| c.is_alphabetic());
    has_product && is_form(next)
}

/// Whether a word is a legal form, without its point.
fn is_form(word: &str) -> bool {
    FORMS.iter().any(|form| word.eq_ignore_ascii_case(form.trim().trim_end_matches('.')))
}

fn product_of_noun(noun: &str) -> Product {
    match noun {
        "engine" | "engines" | "powerplants" => Product::Engine,
        "propeller" | "propellers" => Product::Propeller,
        _ => Product::Aircraft,
    }
}

fn is_noun(word: &str) -> bool {
    NOUNS.iter().any(|noun| word.eq_ignore_ascii_case(noun))
}

/// The product of the first noun of an applicability; an appliance if the text says before that noun that something is installed, or with what "all aircraft"
/// are equipped. `None` without either.
fn product_in(part: &Tokens<'_>) -> Option<Product> {
    (0..part.len()).find_map(|at| {
        let is_equipped = part.is_any(at, NOUNS) && part.is_any(at + 1, &["equipped", "with"]);
        if is_equipped && !(0..at).any(|at| part.is_any(at, &["model", "models"])) {
            return Some(Product::Appliance);
        }
        let is_installed = ["installed on", "installed in", "used on", "used in"].iter().any(|words| part.is_phrase(at, words));
        // "Cameron Balloons Ltd. fuel cylinders".
        let is_in_name = is_form(part.text(at + 1));
        let noun = || NOUNS.iter().find(|noun| part.is(at, noun) && !is_in_name).map(|noun| product_of_noun(noun));
        if is_installed { Some(Product::Appliance) } else { noun() }
    })
}

/// Whether a title names a part that is installed in aircraft of several makers: its last word is one for parts, and the product is not one "With a Certain
/// Crankshaft Assembly". A remark in parentheses at the end, and "Correction", do not count.
fn is_part(title: &str) -> bool {
    let names = title.split_once(';').map_or(title, |(_, names)| names);
    let names = names.split(';').next().unwrap_or_default().trim();
    let names = if names.ends_with(')') { names.rsplit_once('(').map_or(names, |(names, _)| names) } else { names };
    let mut words = names.split(' ').map(|word| word.trim_matches([',', '.'])).filter(|word| !word.is_empty());
    let is = |list: &[&str], word: &str| list.iter().any(|known| word.eq_ignore_ascii_case(known));
    let is_qualified = words.clone().zip(words.clone().skip(1)).any(|(noun, next)| is(NOUNS, noun) && is(QUALIFIERS, next));
    !is_qualified && words.next_back().is_some_and(|word| is(PARTS, word))
}

/// The keys of the makes that the header, the title and, for aircraft, the applicability name.
fn makes_of(holder: &str, title: &str, product: Product, part: &Tokens<'_>) -> Vec<String> {
    let mut makes = BTreeSet::new();
    let title = unqualified(title);
    let title = title.split_once(';').map_or(title, |(_, names)| names);
    for names in [holder, without_nouns(title)] {
        for name in names_in(names) {
            makes.extend(resolve_makes(&name));
        }
    }
    if product == Product::Aircraft {
        let models = (0..part.len()).filter(|at| part.is_any(*at, &["model", "models"])).take(MAKES_READ_MAX);
        for at in models {
            makes.extend(make_before(part, at));
        }
        makes.extend(makes_of_cells(part));
    }
    // "Various Restricted Category Helicopters (Including …)": aircraft of other makers have the models as well.
    let kinds = without_nouns(title.split('(').next().unwrap_or_default());
    if product == Product::Aircraft && !kinds.is_empty() && is_kind(kinds) {
        makes.clear();
    }
    makes.into_iter().collect()
}

/// The title without the noun at its end. "Airbus Helicopters" is a name and stays.
fn without_nouns(title: &str) -> &str {
    let mut rest = title.trim();
    loop {
        let last = rest.rsplit(' ').next().unwrap_or_default();
        let is_noun = NOUNS
            .iter()
            .chain(&["turbofan", "turboprop", "turboshaft", "reciprocating", "series", "(emergency)"])
            .any(|noun| last.eq_ignore_ascii_case(noun));
        if !is_noun || last.len() == rest.len() || rest.eq_ignore_ascii_case("Airbus Helicopters") {
            return rest;
        }
        rest = rest.get(..rest.len() - last.len()).unwrap_or_default().trim_end();
    }
}

/// The names of a holder: the name itself, and former holders in parentheses.
fn names_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let main = text.split('(').next().unwrap_or_default();
    names.push(main.to_owned());
    let known = |name: &str| resolve_makes(name).iter().any(|key| is_known(key));
    // Several holders: "DG Flugzeugbau GmbH and Schempp-Hirth Flugzeugbau GmbH", "Continental Aerospace Technologies, Inc., Lycoming Engines, and X".
    let is_company = |name: &str| FORMS.iter().any(|form| name.to_lowercase().contains(form));
    let is_main_known = known(main);
    names.extend(main.split(" and ").filter(|name| !is_main_known || known(name) || is_company(name)).map(str::to_owned));
    names.extend(main.split([',', '/']).map(|name| name.trim().trim_start_matches("and ")).filter(|name| known(name)).map(str::to_owned));
    for inner in text.split('(').skip(1).take(FORMER_NAMES_MAX) {
        let rest = inner.rsplit_once(')').map_or("", |(_, rest)| rest);
        names.extend(rest.split(" and ").filter(|name| known(name)).map(str::to_owned));
        let lower = inner.to_lowercase();
        let start = ["held by", "formerly known as", "formerly", "previously", "now"]
            .iter()
            .find_map(|mark| lower.find(mark).map(|at| at + mark.len()));
        let Some(former) = start.and_then(|start| inner.get(start..)) else { continue };
        for part in former.trim_end_matches([')', ' ']).split([';', ')']) {
            names.push(part.to_owned());
            names.extend(part.split(" and ").map(str::to_owned));
            names.extend(part.split(',').filter(|name| known(name)).map(str::to_owned));
        }
    }
    names.retain(|name| {
        let first = name.trim().trim_start_matches(',').trim().to_lowercase();
        !first.is_empty()
            && !["various", "appliance", "appliances", "inc", "certain", "type certificate"].iter().any(|word| first.starts_with(word))
            && !is_kind(&first)
    });
    names
}

/// Whether a name consists of words for kinds of aircraft: "Transport and Commuter Category", "Restricted Category Model CH-47D".
fn is_kind(name: &str) -> bool {
    let words = name.split([' ', ',']).filter(|word| !word.is_empty());
    let mut words = words.take_while(|word| !["model", "models"].iter().any(|model| word.eq_ignore_ascii_case(model)));
    words.all(|word| KINDS.iter().chain(NOUNS).any(|kind| word.eq_ignore_ascii_case(kind)))
}

/// The known make that the words before "Model" name.
fn make_before(part: &Tokens<'_>, at: usize) -> Vec<String> {
    for first in at.saturating_sub(MAKE_WORDS_MAX)..at {
        let is_name =
            part.text(first).starts_with(|c: char| c.is_uppercase()) && !part.is_any(first, &["this", "model", "models", "ad", "the"]);
        let words: Vec<&str> = (first..at).map(|at| part.text(at)).collect();
        if is_name && !words.contains(&"\n") {
            let keys = resolve_makes(&words.join(" "));
            if keys.iter().any(|key| is_known(key)) {
                return keys;
            }
        }
    }
    Vec::new()
}

/// Whether aircraft of a make are named here: "Acme Aviation, Inc. airplanes" or "airplanes manufactured by Acme", but not "a winch of Acme", "an Acme winch"
/// or "an Acme airplane parachute".
fn is_aircraft_of(part: &Tokens<'_>, at: usize, make: &str) -> bool {
    let Some(next) = after_name(part, at, make) else { return false };
    let end = (next..next + MAKE_WORDS_MAX).find(|at| ends_as_aircraft(part, *at) || !is_in_maker(part, *at));
    end.is_some_and(|end| ends_as_aircraft(part, end)) || follows_aircraft(part, at)
}

/// The position after a make whose words begin here.
fn after_name(part: &Tokens<'_>, at: usize, make: &str) -> Option<usize> {
    let mut wanted = make.split(' ').peekable();
    let mut next = at;
    while wanted.peek().is_some() {
        let token = folded(part.text(next));
        let mut has_word = false;
        // One token can have several words: "Acme-Lift".
        for word in token.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            match wanted.next() {
                Some(own) if own == word => has_word = true,
                Some(_) => return None,
                None => break,
            }
        }
        if !has_word {
            return None;
        }
        next += 1;
    }
    Some(next)
}

fn is_aircraft_noun(word: &str) -> bool {
    is_noun(word) && product_of_noun(&word.to_lowercase()) == Product::Aircraft
}

/// Whether a token is a noun for aircraft that no other noun follows, and no more of the name of a maker.
fn ends_as_aircraft(part: &Tokens<'_>, at: usize) -> bool {
    let text = part.text(at);
    if !is_aircraft_noun(text) {
        return false;
    }
    let is_plural = text.starts_with(char::is_lowercase) && text.ends_with('s');
    let is_end = !part.is_word(at + 1) && !is_form(part.text(at + 2));
    is_plural || is_end || part.is_any(at + 1, QUALIFIERS)
}

/// Whether a token can stand between the first word of a maker and the noun for its products.
fn is_in_maker(part: &Tokens<'_>, at: usize) -> bool {
    let text = part.text(at);
    let is_joint = matches!(text, "," | ".") && (is_form(part.before(at, 1)) || is_form(part.text(at + 1)));
    let is_kind = part.is_any(at, &["category", "model", "models", "restricted", "series", "small"]);
    text.starts_with(char::is_uppercase) || is_form(text) || is_joint || is_kind || matches!(text, "&" | "-")
}

/// Whether a noun for aircraft stands before a maker: "airplanes of Acme", "airplanes manufactured by Acme".
fn follows_aircraft(part: &Tokens<'_>, at: usize) -> bool {
    let is_made =
        part.is_any(at.wrapping_sub(1), &["by"]) && part.is_any(at.wrapping_sub(2), &["built", "made", "manufactured", "produced"]);
    let noun = if is_made { part.before(at, 3) } else { part.before(at, 2) };
    (is_made || part.is(at.wrapping_sub(1), "of")) && is_aircraft_noun(noun)
}

/// The known makes that the first cells of the rows of a table name.
fn makes_of_cells(part: &Tokens<'_>) -> BTreeSet<String> {
    let mut makes = BTreeSet::new();
    for at in (0..part.len()).filter(|at| part.is_break(at.wrapping_sub(1))).take(MAKES_READ_MAX) {
        let words: Vec<&str> =
            (at..at + MAKE_WORDS_MAX + 1).map(|at| part.text(at)).take_while(|word| *word != "|" && *word != "\n").collect();
        if words.len() <= MAKE_WORDS_MAX && part.text(at + words.len()) == "|" {
            let keys = resolve_makes(&words.join(" "));
            makes.extend(keys.into_iter().filter(|key| is_known(key)));
        }
    }
    makes
}

/// The first day in the paragraph on the effective date.
fn effective_of(text: &str, span: Span) -> Option<(Date, Option<Span>)> {
    let found = dates::scan(span.of(text), None).into_iter().find(|found| found.precision == Precision::Day)?;
    Some((found.from, Some(Span::new(span.start + found.start, span.start + found.end))))
}

fn affected_of(text: &str, span: Span, own: &str) -> Vec<Affected> {
    let tokens = Tokens::of(text, span.start..span.end);
    let mut affected: Vec<Affected> = Vec::new();
    let mut relation = Relation::Affects;
    let mut at = 0;
    while at < tokens.len() {
        if tokens.is_any(at, &["replaces", "supersedes", "revises", "removes", "rescinds", "superseding"]) {
            relation = Relation::Replaces;
        } else if tokens.is_any(at, NOT_REPLACING) {
            relation = Relation::Affects;
        }
        match directive_number(&tokens, at) {
            Some((number, used)) => {
                if number != own && affected.iter().all(|one| one.number != number) {
                    affected.push(Affected { number, relation, span: tokens.span(at, at + used - 1) });
                }
                at += used;
            }
            None => at += 1,
        }
    }
    affected
}

/// The chapter of "ATA Code 57" or "JASC Code 6700".
fn ata_of(text: &str, span: Span) -> String {
    let tokens = Tokens::of(text, span.start..span.end);
    let code =
        (0..tokens.len()).find(|at| tokens.is_any(*at, &["code", "codes", "chapter"])).map(|at| tokens.text(at + 1)).unwrap_or_default();
    let is_code = matches!(code.len(), 2 | 4) && has_only_digits(code);
    code.get(..2).filter(|_| is_code).unwrap_or_default().to_owned()
}

/// The designations of an abstract, by their compact forms; of several spellings the first.
fn designations_of(summary: &str) -> Vec<Mention> {
    let tokens = Tokens::of(summary, 0..summary.len());
    let is_other = |at: usize| tokens.is_any(at.wrapping_sub(1), &["ad", "dated", "part", "number"]);
    let words = (0..tokens.len()).filter(|at| tokens.is_word(*at) && is_designation(tokens.text(*at)) && !is_other(*at));
    let mut forms = BTreeMap::new();
    for (form, span) in
        words.map(|at| (compact_form(tokens.text(at)), tokens.span(at, at))).filter(|(form, _)| form.len() >= 2).take(SUMMARY_MAX)
    {
        forms.entry(form).or_insert(span);
    }
    forms.into_iter().map(|(form, span)| Mention { form, span }).collect()
}
