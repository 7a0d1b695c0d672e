//! The lists of models: with and without the word "Model", in numbered items and in rows of tables.

use std::collections::BTreeSet;

use super::Reader;
use super::words::EXCEPTED_IF;
use crate::aliases::{compact_form, is_maker, other_forms, series_of, written_series};
use crate::designation_words::{self, NOUNS};
use crate::designations::{self, List};
use crate::directive::{Mention, NamedModel, Product, Role, Span, UnreadReason};
use crate::serials;

/// The most models, and the most mentions, of one directive.
const MODELS_MAX: usize = 2_000;
/// Nouns for what an aircraft has, in which a part may be installed.
const PARTS_OF_AIRCRAFT: &[&str] = &["engine", "engines", "powerplants", "propeller", "propellers"];
/// The most words of a name without a number.
const NAME_WORDS_MAX: usize = 3;
/// The most names at the end of a list that are no designations by their form.
const NAMES_MAX: usize = 20;
/// The most tokens between the word for an exception and its models.
const EXCEPTION_TOKENS_MAX: usize = 40;

/// Whether a noun names the product that a directive is about, and not what it is installed on.
fn is_own(product: Product, noun: &str) -> bool {
    match product {
        Product::Engine => matches!(noun, "engine" | "engines" | "powerplants"),
        Product::Propeller => matches!(noun, "propeller" | "propellers"),
        Product::Aircraft | Product::Appliance => false,
    }
}

/// Whether a designation begins with a letter, as those of engines and propellers mostly do and serial numbers and part numbers mostly do not.
fn has_letter_first(item: &designations::Item) -> bool {
    item.name.starts_with(|c: char| c.is_ascii_uppercase())
}

impl Reader<'_, '_> {
    /// Reads designations that no "Model" precedes. They are models if "series", "model" or a noun for products follows.
    pub(super) fn bare_list(&mut self, at: usize, has_name: bool) -> usize {
        let Some(list) = designations::read_list(self.tokens, at, has_name) else { return at + 1 };
        if list.has_noun && self.role != Role::Equipment {
            return self.add(list);
        }
        for item in &list.items {
            self.mention(&item.name, item.span);
        }
        list.next
    }

    /// Reads the rest of a list whose designations are each followed by serial numbers in parentheses: "F33A (S/N CE-1 through CE-9), V35B (S/N D-1)".
    pub(super) fn after_serials(&mut self, at: usize) -> Option<usize> {
        let tokens = self.tokens;
        if !std::mem::take(&mut self.is_in_serials) || self.role != Role::Applies {
            return None;
        }
        let next = at + usize::from(matches!(tokens.text(at), "," | ";"));
        let next = next + usize::from(tokens.is_any(next, &["and", "or"]));
        if next == at || !designation_words::is_designation(tokens.text(next)) {
            return None;
        }
        designations::read_list(tokens, next, true).map(|list| self.add(list))
    }

    /// Reads the designations of a numbered item.
    pub(super) fn numbered(&mut self, at: usize) -> Option<usize> {
        let tokens = self.tokens;
        let first = at + usize::from(tokens.is_any(at, &["model", "models"]));
        // Without "Model" a name is that of a make: "(1) Bell Model 206B".
        if first == at && !designation_words::is_designation(tokens.text(at)) {
            return None;
        }
        let list = designations::read_list(tokens, first, true)?;
        let is_item =
            first > at || list.has_noun || tokens.is_break(list.next) || matches!(tokens.text(list.next), "." | ";" | "," | ":" | "(");
        is_item.then(|| self.add(list))
    }

    /// Reads a row of a table: designations in the first cell, serial numbers in the others.
    pub(super) fn row(&mut self, at: usize) -> Option<usize> {
        let tokens = self.tokens;
        if !tokens.is_break(at.wrapping_sub(1)) {
            return None;
        }
        let end = (at..tokens.len()).find(|at| tokens.is_break(*at)).unwrap_or(tokens.len());
        let next_cell = |at: usize| (at..end).find(|at| tokens.text(*at) == "|");
        let mut cell = next_cell(at)?;
        // "(1) PA-28-140 | 28-20001 through 28-26946".
        let at = if tokens.text(at) == "(" && super::is_item_number(tokens, at) { at + 3 } else { at };
        let mut first = at + usize::from(tokens.is_any(at, &["model", "models"]));
        // "Diamond Aircraft Industries GmbH | DA20-A1 | 912 A3".
        let name: Vec<&str> = (at..cell).map(|at| tokens.text(at)).collect();
        if is_maker(&name.join(" ")) && !designation_words::is_designation(tokens.text(at)) {
            first = cell + 1;
            cell = next_cell(first).unwrap_or(end);
        }
        let list = designations::read_list(tokens, first, true).filter(|list| list.next <= cell)?;
        self.add(list);
        if self.product == Product::Aircraft {
            let (serials, next) = serials::read_cell(tokens, cell + 1);
            // "All except 7 through 9" is neither all nor a range.
            if serials.is_all || !serials.ranges.is_empty() || tokens.is(cell + 1, "all") {
                self.attach(serials);
            }
            return Some(next.max(cell + 1).min(end));
        }
        // Tables of engines and propellers have designations in all cells.
        while cell < end {
            first = cell + 1;
            cell = next_cell(first).unwrap_or(end);
            let list =
                designations::read_list(tokens, first, false).filter(|list| list.next >= cell && list.items.iter().all(has_letter_first));
            match list {
                Some(list) => {
                    self.add(list);
                }
                None => return Some(first),
            }
        }
        Some(end)
    }

    fn mention(&mut self, name: &str, span: Span) {
        if self.out.mentions.len() < MODELS_MAX {
            self.out.mentions.push(Mention { form: compact_form(name), span });
        } else {
            self.note(UnreadReason::TooLong, span);
        }
    }

    /// Adds the designations of a list in the current role. Lists that follow directly, without "Model", belong to it: "A318 series; A319 series".
    pub(super) fn add(&mut self, list: List) -> usize {
        let mut list = list;
        loop {
            let noun = self.tokens.text(list.next.wrapping_sub(1)).to_ascii_lowercase();
            self.names_aircraft |= self.role == Role::InstalledOn && !PARTS_OF_AIRCRAFT.contains(&noun.as_str());
            let role = self.role_of(&list, &noun);
            for item in &list.items {
                self.add_model(item, list.is_series, role);
            }
            let next = list.next;
            match self.continued(next) {
                Some(more) => list = more,
                None => return self.add_names(next),
            }
        }
    }

    /// The role of the models of a list, whose last word is `noun` in lower case.
    fn role_of(&self, list: &List, noun: &str) -> Role {
        let after = list.next + usize::from(self.tokens.text(list.next) == ",");
        // "except Model A320-214 post-mod 24591 airplanes".
        let is_modified = ["post-", "pre-"].iter().any(|part| self.tokens.text(after).to_ascii_lowercase().starts_with(part));
        let is_conditional = self.tokens.is_any(after, EXCEPTED_IF) || is_modified;
        // "except Model A330-841 airplanes, and Model A340-541 airplanes" may mean that the latter are affected.
        let is_second = self.depth == 0 && self.out.models.len() > self.before_exception;
        let is_aircraft = NOUNS.contains(&noun) && !PARTS_OF_AIRCRAFT.contains(&noun);
        match self.role {
            Role::Excepted if is_conditional || is_second || self.is_apart_from_exception(list) => Role::ExceptedIf,
            // "engines installed on Model 172S airplanes, and Model O-540 engines".
            Role::InstalledOn if is_own(self.product, noun) => Role::Applies,
            // "airplanes equipped with a winch, and Model 172S airplanes".
            Role::Equipment if self.product == Product::Aircraft && is_aircraft => Role::Applies,
            role => role,
        }
    }

    /// Whether something else than models follows the word for the exception first, so that the models may be affected: "except those with a winch, and Model
    /// 172S airplanes".
    fn is_apart_from_exception(&self, list: &List) -> bool {
        let tokens = self.tokens;
        let first = list.items.first().map_or(0, |item| item.span.start);
        let between = (self.exception..tokens.len()).take_while(|at| tokens.start(*at) < first);
        let separates = |at: usize| tokens.text(at) == "," || tokens.is_any(at, &["and", "or"]);
        between.enumerate().any(|(count, at)| count >= EXCEPTION_TOKENS_MAX || separates(at))
    }

    /// Notes the names that end a list and are no designations by their form: ", Astir, and Standard Cirrus gliders". Returns the position after them.
    fn add_names(&mut self, at: usize) -> usize {
        let tokens = self.tokens;
        let is_part = |at: usize| designation_words::is_name(tokens.text(at)) || designation_words::is_designation(tokens.text(at));
        let mut found: Vec<(usize, usize)> = Vec::new();
        let mut next = at;
        while found.len() < NAMES_MAX {
            let mut first = next + usize::from(tokens.text(next) == ",");
            first += usize::from(tokens.is_any(first, &["and", "or"]));
            let end = (first..first + NAME_WORDS_MAX).find(|at| !is_part(*at)).unwrap_or(first + NAME_WORDS_MAX);
            // "Piper PA-28 airplanes" is a list of its own.
            let is_of_maker = is_maker(tokens.text(first)) && (first..end).any(|at| designation_words::is_designation(tokens.text(at)));
            if first == next || first == end || is_of_maker {
                return at;
            }
            found.push((first, end));
            next = end;
            if tokens.is_any(end, NOUNS) {
                for (first, end) in found {
                    let words: Vec<&str> = (first..end).map(|at| tokens.text(at)).collect();
                    self.mention(&words.join(" "), tokens.span(first, end - 1));
                }
                return next + 1;
            }
        }
        at
    }

    /// The list that continues a list after its noun: ", and A321 series airplanes".
    fn continued(&self, at: usize) -> Option<List> {
        let tokens = self.tokens;
        let mut next = at + usize::from(matches!(tokens.text(at), "," | ";"));
        next += usize::from(tokens.is_any(next, &["and", "or"]));
        if next == at || !designation_words::is_designation(tokens.text(next)) {
            return None;
        }
        designations::read_list(tokens, next, false).filter(|list| list.has_noun)
    }

    fn add_model(&mut self, item: &designations::Item, is_series: bool, role: Role) {
        if self.out.models.len() >= MODELS_MAX {
            self.note(UnreadReason::TooLong, item.span);
            return;
        }
        let form = compact_form(&item.name);
        if form.is_empty() {
            return;
        }
        let known = series_of(self.makes, &form);
        let written = written_series(&item.name);
        let series = if form.starts_with(&known) && known.len() < form.len() && known.len() >= 2 { known } else { written };
        let mut also: BTreeSet<String> = other_forms(self.makes, &form);
        // "Mooney M10" in a list of several makers.
        let without_make = item.name.split_once(' ').filter(|(make, _)| is_maker(make));
        also.extend(without_make.map(|(_, rest)| compact_form(rest)).filter(|form| form.len() >= 2));
        also.extend(item.also.iter().filter(|form| form.len() >= 2).cloned());
        // "(c)(1)" and other numbers of items are no models; one letter or digit is only a model of a known series.
        self.out.models.push(NamedModel {
            name: item.name.clone(),
            form,
            series,
            is_series,
            also: also.into_iter().collect(),
            role,
            span: item.span,
        });
    }
}
