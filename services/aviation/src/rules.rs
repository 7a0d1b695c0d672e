//! The aviation service: one record per airworthiness directive, read from the texts of the documents about it.
//!
//! Promises: the same documents in any order give the same records. Of the documents about a directive the latest correction that prints it
//! counts, else the latest document; all of them are listed. A directive that another one replaces is superseded, whichever comes first.
//! Nothing that a document says is lost: what cannot be read is in the record as `unread`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use directives::{ANY_AIRCRAFT, Directive, Publication, read, record_of, split};
use jiff::civil::Date;
use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::facts::directives::DirectiveFact;
use schemas::topics::{CHANGES_AVIATION, DIRECTIVES, Topic};
use schemas::views::aviation::{AirworthinessDirective, CORRECTED, CURRENT, DirectiveDocument, SUPERSEDED, TABLES, UnreadText};
use schemas::views::records::RecordTables;
use serde::{Deserialize, Serialize};

use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;

/// The service's two folds.
pub type Aviation = Records<AviationRules>;

/// The rules of the service.
pub struct AviationRules;

/// What is remembered of a document under its number, which may be used on two days.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    /// The numbers of the directives that it prints.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    directives: BTreeSet<String>,
    /// The documents that correct it without printing a directive.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    corrections: BTreeSet<DirectiveDocument>,
    /// The directive that replaces the one of this number, as the upstream last said; its numbers of documents are those of directives.
    #[serde(skip_serializing_if = "String::is_empty")]
    superseded_by: String,
}

impl Rules for AviationRules {
    type Fact = DirectiveFact;
    type Record = AirworthinessDirective;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[DIRECTIVES];
    const CHANGES: &'static Topic = &CHANGES_AVIATION;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<DirectiveFact>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<DirectiveFact>) -> Vec<DecisionRow> {
        let Some(document) = &fact.data else { return Vec::new() };
        let mut reads = vec![DecisionRow::State(document_key(&document.number))];
        let replaced = Some(&document.superseded_by).filter(|by| !by.is_empty()).map(|_| DecisionRow::Record(document.number.clone()));
        reads.extend(replaced);
        if let Ok(found) = split(&text_of(document).1) {
            reads
                .extend(found.into_iter().flat_map(|one| [DecisionRow::State(replaced_key(&one.number)), DecisionRow::Record(one.number)]));
        } else {
            reads.push(DecisionRow::State(document_key(&document.correction_of)));
        }
        reads
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<DirectiveFact>) -> Result<(), Undecided> {
        match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(document)) => observe(state, document),
            (FactKind::Observed, None) => Err(Undecided::Poison("an observed fact without its record".to_owned())),
            // The journal withdraws no document.
            _ => Ok(()),
        }
    }
}

type Decision<'a, 'b> = &'a mut State<'b, AviationRules>;

/// The key of what is remembered of a document.
fn document_key(number: &str) -> String {
    format!("doc/{number}")
}

/// The key of the numbers of the directives that replace a directive.
fn replaced_key(number: &str) -> String {
    format!("ad/{number}")
}

fn observe(state: Decision<'_, '_>, fact: &DirectiveFact) -> Result<(), Undecided> {
    let own = DirectiveDocument {
        published: fact.published.clone(),
        number: fact.number.clone(),
        is_correction: is_correction(fact),
        citation: fact.citation.clone(),
        url: fact.url.clone(),
    };
    let effective_on: Option<Date> = fact.effective_on.parse().ok();
    let (title, text) = text_of(fact);
    let publication = Publication { title: &title, summary: &fact.summary, text: &text, effective_on };
    let Ok(found) = read(&publication) else { return observe_correction(state, &fact.correction_of, own) };

    let key = document_key(&fact.number);
    let before: Document = state.get(&key)?.unwrap_or_default();
    let mut document = before.clone();
    document.directives.extend(found.iter().map(|one| one.number.clone()));
    document.superseded_by.clone_from(&fact.superseded_by);
    if document != before {
        state.remember(&key, Some(&document))?;
    }
    for one in &found {
        let mut record = record_of(one, &text, &fact.summary);
        record.title.clone_from(&fact.title);
        record.url.clone_from(&fact.url);
        record.document_number.clone_from(&fact.number);
        if fact.is_cut {
            let text = "the text of the document is longer than what is kept".to_owned();
            record.unread.push(UnreadText { reason: "TOO_LONG".to_owned(), span: text });
            record.keys.extend(record.makes.iter().map(|make| format!("{make}/*")));
            // The part that was cut may name any aircraft.
            if record.makes.is_empty() || record.product == "appliance" {
                record.keys.push(ANY_AIRCRAFT.to_owned());
            }
            record.keys.sort_unstable();
            record.keys.dedup();
        }
        let documents = document.corrections.iter().chain([&own]).cloned();
        put(state, record, documents.collect())?;
    }
    // An earlier version of the document may have named another one.
    for by in [&before.superseded_by, &fact.superseded_by] {
        if !by.is_empty() {
            replace(state, &fact.number, by)?;
        }
    }
    Ok(())
}

/// The most makes that a text made of lists names before its models.
const LISTED_MAKES_MAX: usize = 12;

/// The title and the text in which a document's directives are read. Where the upstream lists makes and models, and the text prints no directive or names no
/// model, it is a text made of those lists, in the layout before lettered paragraphs, with what is printed as its actions.
fn text_of(fact: &DirectiveFact) -> (Cow<'_, str>, Cow<'_, str>) {
    let own = || (Cow::Borrowed(fact.title.as_str()), Cow::Borrowed(fact.text.as_str()));
    if fact.makes.is_empty() || fact.models.is_empty() {
        return own();
    }
    let publication = Publication { title: &fact.title, summary: "", text: &fact.text, effective_on: None };
    let names_models = |found: Vec<Directive>| found.iter().any(|one| !one.applicability.models.is_empty());
    if read(&publication).is_ok_and(names_models) {
        return own();
    }
    let has = |kind: &str| fact.product_types.iter().any(|given| given.eq_ignore_ascii_case(kind));
    let noun = match () {
        () if has("aircraft") => "aircraft",
        () if has("engine") => "engines",
        () if has("propeller") => "propellers",
        () => "appliances",
    };
    let makes: Vec<String> = fact.makes.iter().take(LISTED_MAKES_MAX).map(|make| make.replace(':', " ")).collect();
    // A model with a comma in it was split there, so that the items together are the list as it was.
    let (makes, models) = (makes.join(" and "), fact.models.join(", "));
    let text = format!("{} {makes}: Amendment 39-0.\n\nApplicability: Model {models} {noun}.\n\nCompliance: {}", fact.number, fact.text);
    (Cow::Owned(format!("Airworthiness Directives; {makes} {noun}")), Cow::Owned(text))
}

/// Adds a correction that prints no directive to the directives of the document that it corrects, which may still come.
fn observe_correction(state: Decision<'_, '_>, corrected: &str, own: DirectiveDocument) -> Result<(), Undecided> {
    if corrected.is_empty() {
        return Err(Undecided::Poison("the text has no number of a directive".to_owned()));
    }
    let own = DirectiveDocument { is_correction: true, ..own };
    let key = document_key(corrected);
    let mut document: Document = state.get(&key)?.unwrap_or_default();
    if document.corrections.insert(own.clone()) {
        state.remember(&key, Some(&document))?;
    }
    for number in &document.directives {
        if let Some(mut record) = state.record(number)? {
            add_document(&mut record.documents, own.clone());
            record.status = status_of(&record);
            state.put(record)?;
        }
    }
    Ok(())
}

/// Records what a document says of a directive, and which directives it replaces.
fn put(state: Decision<'_, '_>, read: AirworthinessDirective, documents: Vec<DirectiveDocument>) -> Result<(), Undecided> {
    let before = state.record(&read.id)?;
    let mut all = before.as_ref().map(|before| before.documents.clone()).unwrap_or_default();
    for document in documents {
        add_document(&mut all, document);
    }
    let replaced_before: BTreeSet<String> = before.iter().flat_map(|before| before.supersedes.iter().cloned()).collect();
    let mut record = match before {
        Some(before) if weight(&all, &before) > weight(&all, &read) => before,
        _ => read,
    };
    let replacing: BTreeSet<String> = state.get(&replaced_key(&record.id))?.unwrap_or_default();
    record.documents = all;
    record.superseded_by = last_of(&replacing);
    record.status = status_of(&record);
    let (id, replaced) = (record.id.clone(), record.supersedes.iter().cloned().collect::<BTreeSet<_>>());
    state.put(record)?;
    for number in replaced.symmetric_difference(&replaced_before) {
        replace(state, number, &id)?;
    }
    Ok(())
}

/// Records whether a directive is replaced by another one: the other one says so, or the upstream says so of the replaced one.
fn replace(state: Decision<'_, '_>, number: &str, by: &str) -> Result<(), Undecided> {
    let document: Option<Document> = state.get(&document_key(number))?;
    let is_said = document.is_some_and(|document| document.superseded_by == by);
    let is_replaced = is_said || state.record(by)?.is_some_and(|other| other.supersedes.iter().any(|one| one == number));
    let key = replaced_key(number);
    let mut replacing: BTreeSet<String> = state.get(&key)?.unwrap_or_default();
    let has_changed = if is_replaced { replacing.insert(by.to_owned()) } else { replacing.remove(by) };
    if !has_changed {
        return Ok(());
    }
    state.remember(&key, Some(&replacing).filter(|replacing| !replacing.is_empty()))?;
    if let Some(mut record) = state.record(number)? {
        record.superseded_by = last_of(&replacing);
        record.status = status_of(&record);
        state.put(record)?;
    }
    Ok(())
}

/// What a reading of a directive counts against another one: corrections first, then the later document.
fn weight<'a>(all: &'a [DirectiveDocument], record: &AirworthinessDirective) -> Option<(bool, &'a str, &'a str)> {
    let is_own = |document: &&DirectiveDocument| document.number == record.document_number && document.url == record.url;
    all.iter().rfind(is_own).map(|document| (document.is_correction, document.published.as_str(), document.number.as_str()))
}

/// Adds a document to a list in order, each one once.
fn add_document(all: &mut Vec<DirectiveDocument>, document: DirectiveDocument) {
    all.retain(|one| (&one.published, &one.number) != (&document.published, &document.number));
    all.push(document);
    all.sort_unstable();
}

fn status_of(record: &AirworthinessDirective) -> String {
    let is_corrected = record.documents.iter().any(|document| document.is_correction);
    match (record.superseded_by.is_empty(), is_corrected) {
        (false, _) => SUPERSEDED,
        (true, true) => CORRECTED,
        (true, false) => CURRENT,
    }
    .to_owned()
}

/// The latest of some directives, by their numbers; those of two digits are years of the last century.
fn last_of(numbers: &BTreeSet<String>) -> String {
    let year = |number: &str| -> String {
        let is_short = number.find('-') == Some(2);
        if is_short { format!("19{number}") } else { number.to_owned() }
    };
    numbers.iter().max_by_key(|number| year(number)).cloned().unwrap_or_default()
}

/// Whether a document corrects another one. `Final rule; correction.`, or the journal says which document it corrects.
fn is_correction(fact: &DirectiveFact) -> bool {
    !fact.correction_of.is_empty() || fact.action.to_lowercase().contains("correct")
}

#[cfg(test)]
mod tests;
