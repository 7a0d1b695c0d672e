//! Reads to what a directive applies: the models, whether all or certain ones, their serial numbers, and what is excepted.

use std::collections::BTreeSet;

use crate::aliases::{compact_form, is_known, other_forms, resolve_makes, series_of, written_series};
use crate::designations::{self, List, NOUNS};
use crate::directive::{Applicability, Mention, NamedModel, Product, Role, Scope, Serials, Span, Unread, UnreadReason};
use crate::serials;
use crate::tokens::Tokens;

/// The most models, and the most mentions, of one directive.
const MODELS_MAX: usize = 2_000;
/// The most lists of serial numbers of one directive.
const SERIALS_MAX: usize = 500;
/// The most unread parts that are noted.
const UNREAD_MAX: usize = 50;
/// The most words of a name without a number.
const NAME_WORDS_MAX: usize = 3;
/// The most tokens of a list that is not about models: part numbers, paragraphs, documents.
const OTHER_LIST_TOKENS_MAX: usize = 400;

/// Words before numbers that are no models.
const OTHER_NUMBERS: &[&str] = &[
    "ad",
    "ads",
    "amendment",
    "amm",
    "appendix",
    "aot",
    "asb",
    "bulletin",
    "bulletins",
    "chapter",
    "code",
    "configuration",
    "dated",
    "docket",
    "document",
    "drawing",
    "easa",
    "figure",
    "group",
    "groups",
    "issue",
    "kit",
    "letter",
    "line",
    "mod",
    "modification",
    "modifications",
    "mods",
    "no",
    "nos",
    "note",
    "number",
    "numbers",
    "order",
    "p/n",
    "p/ns",
    "page",
    "paragraph",
    "paragraphs",
    "part",
    "pn",
    "pns",
    "position",
    "report",
    "revision",
    "sb",
    "sbs",
    "section",
    "stc",
    "stcs",
    "table",
    "task",
    "tcds",
    "version",
    "certificate",
];
/// Words after which a list of aircraft is not complete.
const OPEN_LISTS: &[&str] =
    &["such as", "not limited", "any aircraft", "any airplane", "any airplanes", "any helicopter", "any helicopters"];
const MONTHS: &[&str] =
    &["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];
/// Words that limit a directive to some of the aircraft of a model.
const CONDITIONS: &[&str] = &[
    "certain",
    "configured",
    "delivered",
    "equipped",
    "fitted",
    "having",
    "identified",
    "incorporating",
    "listed",
    "manufactured",
    "modified",
    "specified",
    "with",
];
/// Words after which a list names equipment of the aircraft.
const EQUIPMENT: &[&str] = &["configured", "equipped", "fitted", "having", "incorporating", "powered", "with"];
/// Words after an excepted list that make the exception depend on something.
const EXCEPTED_IF: &[&str] = &[
    "equipped",
    "having",
    "if",
    "manufacturer",
    "modified",
    "msn",
    "msns",
    "on",
    "s/n",
    "s/ns",
    "serial",
    "that",
    "which",
    "with",
    "incorporating",
];

/// The state of the reader.
struct Reader<'a, 't> {
    tokens: &'a Tokens<'t>,
    makes: &'a [String],
    out: Applicability,
    unread: Vec<Unread>,
    role: Role,
    /// The role that lists have when a clause ends.
    base_role: Role,
    /// How many parentheses are open.
    depth: usize,
    /// The depth at which an exception or equipment ends.
    role_depth: usize,
    /// The models that no serial numbers were read for yet.
    without_serials: usize,
    /// How many models were read when the exception began.
    before_exception: usize,
    is_all: bool,
}

/// Reads an applicability paragraph. Models are compared under the keys of `makes`.
pub(crate) fn read(tokens: &Tokens<'_>, span: Span, makes: &[String], product: Product) -> (Applicability, Vec<Unread>) {
    let out = Applicability {
        span,
        scope: Scope::Unknown,
        models: Vec::new(),
        mentions: Vec::new(),
        serials: Vec::new(),
        condition: None,
        is_open: false,
    };
    let mut reader = Reader {
        tokens,
        makes,
        out,
        unread: Vec::new(),
        role: Role::Applies,
        base_role: Role::Applies,
        depth: 0,
        role_depth: 0,
        without_serials: 0,
        before_exception: 0,
        is_all: false,
    };
    let mut at = 0;
    while at < tokens.len() {
        at = reader.step(at, product).max(at + 1);
    }
    reader.finish(tokens.is_cut)
}

impl Reader<'_, '_> {
    /// Reads what begins at a token. Returns the position after it.
    fn step(&mut self, at: usize, product: Product) -> usize {
        let tokens = self.tokens;
        if tokens.is_break(at) || matches!(tokens.text(at), "." | ";") {
            self.role = self.base_role;
            self.role_depth = 0;
            return self.row(at + 1).unwrap_or(at + 1);
        }
        match tokens.text(at) {
            // A numbered item: the designations after it need no "Model".
            "(" if is_item_number(tokens, at) => return self.numbered(at + 3).unwrap_or(at + 3),
            "(" => {
                self.depth += 1;
                return at + 1;
            }
            ")" => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth < self.role_depth {
                    self.role = self.base_role;
                    self.role_depth = 0;
                }
                return at + 1;
            }
            _ => {}
        }
        if serials::is_label(tokens, at) {
            return self.serials(at);
        }
        if let Some(next) = self.change_role(at, product) {
            return next;
        }
        if tokens.is_any(at, MONTHS) {
            return at + 1 + usize::from(designations::is_designation(tokens.text(at + 1)));
        }
        if tokens.is_any(at, OTHER_NUMBERS) {
            return self.skip_numbers(at + 1);
        }
        if tokens.is_any(at, &["model", "models"]) {
            let first = if tokens.text(at + 1) == ":" || tokens.is_any(at + 1, &["number", "numbers"]) { at + 2 } else { at + 1 };
            return match designations::read_list(tokens, first, true) {
                Some(list) => self.add(list),
                None => at + 1,
            };
        }
        // "Arriel 1B and Arriel 1C model turboshaft engines", but not "Cessna 208B airplanes".
        if designations::is_named_list(tokens, at) && !resolve_makes(tokens.text(at)).iter().any(|key| is_known(key)) {
            return self.bare_list(at, true);
        }
        if designations::is_designation(tokens.text(at)) && tokens.is_word(at) {
            return self.bare_list(at, false);
        }
        at + 1
    }

    /// Words that change what the following lists mean. Returns the position after them.
    fn change_role(&mut self, at: usize, product: Product) -> Option<usize> {
        let tokens = self.tokens;
        self.out.is_open |= tokens.is(at, "various") || OPEN_LISTS.iter().any(|words| tokens.is_phrase(at, words));
        let is_exception = tokens.is_any(at, &["except", "excepting", "excluding", "excludes"])
            || tokens.is_phrase(at, "other than")
            || tokens.is_phrase(at, "not including")
            || tokens.is_phrase(at, "not apply")
            || tokens.is_phrase(at, "not applicable");
        if is_exception {
            self.role = Role::Excepted;
            self.role_depth = self.depth;
            self.before_exception = self.out.models.len();
            return Some(at + if tokens.is(at, "not") || tokens.is(at, "other") { 2 } else { 1 });
        }
        let is_place = ["installed on", "installed in", "used on", "not limited to"].iter().any(|words| tokens.is_phrase(at, words));
        if is_place && product != Product::Aircraft {
            self.role = Role::InstalledOn;
            self.base_role = Role::InstalledOn;
            return Some(at + 2);
        }
        if tokens.is(at, "all") {
            self.is_all = true;
            return None;
        }
        let is_condition = (tokens.is_any(at, CONDITIONS) && !tokens.is_phrase(at, "with the exception"))
            || tokens.is_phrase(at, "on which")
            || tokens.is_phrase(at, "in which")
            || tokens.is_phrase(at, "that have")
            // "if part number 123 is installed": engines and appliances are installed in aircraft, which limits nothing.
            || (product == Product::Aircraft && tokens.is(at, "installed"));
        // "airplanes with serial numbers 1 through 9": the list of serial numbers is the limit.
        let is_condition = is_condition && !(tokens.is_any(at, EQUIPMENT) && serials::is_label(tokens, at + 1));
        // An exception without a model, "except those with modification 1", is a condition of what it excepts from.
        let is_of_exception = self.role == Role::Excepted && self.out.models.len() == self.before_exception;
        if is_condition && is_of_exception && !self.is_reference_to_items(at) {
            self.out.condition = self.out.condition.or(Some(tokens.span(at, at + 1)));
            return None;
        }
        if is_condition && self.role != Role::Excepted && !self.is_reference_to_items(at) {
            self.out.condition = self.out.condition.or(Some(tokens.span(at, at + 1)));
            if tokens.is_any(at, EQUIPMENT) && self.role == Role::Applies {
                self.role = Role::Equipment;
                self.role_depth = self.depth;
            }
            return Some(at + 1);
        }
        if tokens.is_phrase(at, "powered by") {
            self.role = Role::Equipment;
            self.role_depth = self.depth;
            return Some(at + 2);
        }
        None
    }

    /// Whether "identified in", "specified in" or "listed in" refers to the items of this paragraph, which limit nothing by themselves.
    fn is_reference_to_items(&self, at: usize) -> bool {
        let tokens = self.tokens;
        tokens.is_any(at, &["identified", "listed", "specified"])
            && tokens.is_any(at + 1, &["in", "by"])
            && tokens.is_any(at + 2, &["paragraph", "paragraphs", "table", "the"])
            && (tokens.text(at + 3) == "(" || tokens.is_any(at + 2, &["table"]) || tokens.is_phrase(at + 2, "the following"))
    }

    /// Skips numbers that are no models: "paragraphs (c)(1) and (2)", "P/N 123-4 or 123-5".
    fn skip_numbers(&self, from: usize) -> usize {
        let tokens = self.tokens;
        let mut at = from;
        // The position after the last number.
        let mut end = from;
        while at < tokens.len().min(from + OTHER_LIST_TOKENS_MAX) {
            if tokens.text(at) == "(" && tokens.text(at + 2) == ")" && tokens.text(at + 1).len() <= 4 {
                at += 3;
                end = at;
            } else if tokens.is_word(at)
                && !tokens.is_any(at, &["model", "models"])
                && (tokens.text(at).bytes().any(|byte| byte.is_ascii_digit()) || tokens.is_any(at, OTHER_NUMBERS))
            {
                at += 1;
                end = at;
            } else if matches!(tokens.text(at), "," | "#" | ":" | ".") && at == end && tokens.text(at + 1) != "\n"
                || tokens.is_any(at, &["and", "or", "through", "to"])
            {
                at += 1;
            } else {
                break;
            }
        }
        end
    }

    /// Reads designations that no "Model" precedes. They are models if "series", "model" or a noun for products follows.
    fn bare_list(&mut self, at: usize, has_name: bool) -> usize {
        let Some(list) = designations::read_list(self.tokens, at, has_name) else { return at + 1 };
        if list.has_noun && self.role != Role::Equipment {
            return self.add(list);
        }
        for item in &list.items {
            self.mention(&item.name, item.span);
        }
        list.next
    }

    /// Reads the designations of a numbered item.
    fn numbered(&mut self, at: usize) -> Option<usize> {
        let tokens = self.tokens;
        let first = at + usize::from(tokens.is_any(at, &["model", "models"]));
        // Without "Model" a name is that of a make: "(1) Bell Model 206B".
        if first == at && !designations::is_designation(tokens.text(at)) {
            return None;
        }
        let list = designations::read_list(tokens, first, true)?;
        let is_item =
            first > at || list.has_noun || tokens.is_break(list.next) || matches!(tokens.text(list.next), "." | ";" | "," | ":" | "(");
        is_item.then(|| self.add(list))
    }

    /// Reads a row of a table: designations in the first cell, serial numbers in the others.
    fn row(&mut self, at: usize) -> Option<usize> {
        let tokens = self.tokens;
        if !tokens.is_break(at.wrapping_sub(1)) {
            return None;
        }
        let end = (at..tokens.len()).find(|at| tokens.is_break(*at)).unwrap_or(tokens.len());
        let cell = (at..end).find(|at| tokens.text(*at) == "|")?;
        let first = at + usize::from(tokens.is_any(at, &["model", "models"]));
        let list = designations::read_list(tokens, first, true).filter(|list| list.next <= cell)?;
        self.add(list);
        let (serials, next) = serials::read_cell(tokens, cell + 1);
        if serials.is_all || !serials.ranges.is_empty() {
            self.attach(serials);
        }
        Some(next.max(cell + 1).min(end))
    }

    fn serials(&mut self, at: usize) -> usize {
        let (serials, next) = serials::read(self.tokens, at);
        // Serial numbers in an exception exclude aircraft that the list before names.
        if self.role == Role::Excepted {
            for model in self.out.models.iter_mut().rev().take_while(|model| model.role == Role::Excepted) {
                model.role = Role::ExceptedIf;
            }
            self.out.condition = self.out.condition.or(Some(serials.span));
        } else if self.role == Role::Equipment {
            self.out.condition = self.out.condition.or(Some(serials.span));
        } else {
            self.attach(serials);
        }
        next
    }

    /// Gives serial numbers to the models since the last ones.
    fn attach(&mut self, mut serials: Serials) {
        if self.out.serials.len() >= SERIALS_MAX {
            self.note(UnreadReason::TooLong, serials.span);
            return;
        }
        serials.models = (self.without_serials..self.out.models.len())
            .filter(|at| self.out.models.get(*at).is_some_and(|model| model.role == Role::Applies))
            .collect();
        if !serials.is_complete {
            self.note(UnreadReason::Serials, serials.span);
        }
        self.without_serials = self.out.models.len();
        self.out.serials.push(serials);
    }

    fn note(&mut self, reason: UnreadReason, span: Span) {
        if self.unread.len() < UNREAD_MAX || self.unread.iter().all(|unread| unread.reason != reason) {
            self.unread.push(Unread { reason, span });
        }
    }

    fn mention(&mut self, name: &str, span: Span) {
        if self.out.mentions.len() < MODELS_MAX {
            self.out.mentions.push(Mention { form: compact_form(name), span });
        } else {
            self.note(UnreadReason::TooLong, span);
        }
    }

    /// Adds the designations of a list in the current role. Lists that follow directly, without "Model", belong to it: "A318 series; A319 series".
    fn add(&mut self, list: List) -> usize {
        let mut list = list;
        loop {
            let mut role = self.role;
            if role == Role::Excepted {
                let after = list.next + usize::from(self.tokens.text(list.next) == ",");
                if self.tokens.is_any(after, EXCEPTED_IF) {
                    role = Role::ExceptedIf;
                }
            }
            for item in &list.items {
                self.add_model(item, list.is_series, role);
            }
            let next = list.next;
            match self.continued(next) {
                Some(more) => list = more,
                None => return self.add_name(next),
            }
        }
    }

    /// Notes a name without a number that ends a list: ", and Standard Cirrus gliders". Returns the position after it.
    fn add_name(&mut self, at: usize) -> usize {
        let tokens = self.tokens;
        let mut first = at + usize::from(tokens.text(at) == ",");
        first += usize::from(tokens.is_any(first, &["and", "or"]));
        let end = (first..first + NAME_WORDS_MAX).find(|at| !designations::is_name(tokens.text(*at))).unwrap_or(first + NAME_WORDS_MAX);
        if first == at || first == end || !tokens.is_any(end, NOUNS) {
            return at;
        }
        let words: Vec<&str> = (first..end).map(|at| tokens.text(at)).collect();
        self.mention(&words.join(" "), tokens.span(first, end - 1));
        end + 1
    }

    /// The list that continues a list after its noun: ", and A321 series airplanes".
    fn continued(&self, at: usize) -> Option<List> {
        let tokens = self.tokens;
        let mut next = at + usize::from(matches!(tokens.text(at), "," | ";"));
        next += usize::from(tokens.is_any(next, &["and", "or"]));
        if next == at || !designations::is_designation(tokens.text(next)) {
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

    fn finish(mut self, is_cut: bool) -> (Applicability, Vec<Unread>) {
        let applies: Vec<usize> =
            (0..self.out.models.len()).filter(|at| self.out.models.get(*at).is_some_and(|model| model.role == Role::Applies)).collect();
        if is_cut {
            self.note(UnreadReason::TooLong, self.out.span);
        }
        if applies.is_empty() {
            self.note(UnreadReason::NoModels, self.out.span);
        }
        self.out.is_open |= self.out.models.iter().all(|model| model.role != Role::InstalledOn);
        let is_limited = self.out.condition.is_some() || self.out.serials.iter().any(|serials| !serials.is_all);
        self.out.scope = match (applies.is_empty(), is_limited) {
            (true, _) => Scope::Unknown,
            (false, true) => Scope::Certain,
            (false, false) => Scope::All,
        };
        (self.out, self.unread)
    }
}

/// Whether the number of an item begins here: (1), (ii), (A).
fn is_item_number(tokens: &Tokens<'_>, at: usize) -> bool {
    let word = tokens.text(at + 1);
    let is_number = word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    tokens.text(at + 2) == ")" && (is_number || (word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_uppercase())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aliases::resolve_makes;
    use crate::designations::last_noun;

    fn read_text(make: &str, text: &str) -> (Applicability, Vec<Unread>) {
        let tokens = Tokens::of(text, 0..text.len());
        read(&tokens, Span::new(0, text.len()), &resolve_makes(make), Product::Aircraft)
    }

    fn names(applicability: &Applicability, role: Role) -> Vec<&str> {
        applicability.models.iter().filter(|model| model.role == role).map(|model| model.name.as_str()).collect()
    }

    /// Proves the wordings in which models are named, and that other numbers are no models.
    #[test]
    fn wordings() {
        for (make, text, expected) in [
            (
                "Airbus",
                "This AD applies to all Airbus SAS Model A319-111, -112, and -115 airplanes, certificated in any category.",
                &["A319-111", "A319-112", "A319-115"][..],
            ),
            (
                "Airbus",
                "This AD applies to all Airbus SAS Model A318 series airplanes; A319 series airplanes; A320-211 and -212 airplanes; and A321 series airplanes.",
                &["A318", "A319", "A320-211", "A320-212", "A321"],
            ),
            (
                "Boeing",
                "The Boeing Company Model 737-600, -700, and -800 series airplanes as identified in Boeing Alert Requirements Bulletin 737-57A1338 RB, dated May 1, 2026.",
                &["737-600", "737-700", "737-800"],
            ),
            (
                "Airbus",
                "the airplanes identified in paragraphs (c)(1) through (c)(3) of this AD, certificated in any category.\n\n(1) Model A318-111 airplanes.\n\n(2) Model A319-111 and -112 airplanes, MSN 1234.\n\n(3) A320-214.",
                &["A318-111", "A319-111", "A319-112", "A320-214"],
            ),
            (
                "GE",
                "General Electric Company (GE) CF34-8C and CF34-8E model turbofan engines with high-pressure turbine disk, part number 4123T71P01 or 4123T71P02, installed.",
                &["CF34-8C", "CF34-8E"],
            ),
            (
                "Cessna",
                "Cessna Aircraft Company Models 172R and 172S airplanes, serial numbers 17280001 through 17281000, that are certificated in any category.",
                &["172R", "172S"],
            ),
            (
                "Piper",
                "Piper Aircraft, Inc. model airplanes that are certificated in any category:\n\nModel | Serial numbers\nPA-28-140 | 28-20001 through 28-26946, and 28-7125001 through 28-7725290\nPA-28-150 and PA-28-160 | 28-1 through 28-4377",
                &["PA-28-140", "PA-28-150", "PA-28-160"],
            ),
            ("Dassault", "Dassault Aviation Model FALCON 900EX airplanes, except Model FALCON 2000 airplanes.", &["FALCON 900EX"]),
            (
                "Bell",
                "Bell Textron Inc. Model 204B, 205A, 205A-1, and 212 helicopters with main rotor hub strap pin P/N 204-012-104-005 installed.",
                &["204B", "205A", "205A-1", "212"],
            ),
            ("Boeing", "This AD applies to Boeing Model 767-300 airplanes equipped with Pratt & Whitney PW4000 engines.", &["767-300"]),
        ] {
            let (read, _) = read_text(make, text);
            assert_eq!(names(&read, Role::Applies), expected, "{text}");
        }
    }

    /// Proves that exceptions are read, that an exception under a condition is one, and that equipment is no model.
    #[test]
    fn exceptions() {
        let (read, unread) = read_text(
            "Airbus",
            "This AD applies to all Airbus SAS Model A330 series airplanes (except Model A330-841 airplanes), and Model A340-541 airplanes.",
        );
        assert_eq!((names(&read, Role::Excepted), names(&read, Role::Applies)), (vec!["A330-841"], vec!["A330", "A340-541"]));
        assert_eq!((read.scope, unread.len()), (Scope::All, 0));
        let (read, _) = read_text(
            "Airbus",
            "This AD applies to Airbus SAS Model A320-214 airplanes, except Model A320-214 airplanes on which modification 24591 is embodied.",
        );
        assert_eq!((names(&read, Role::ExceptedIf), names(&read, Role::Excepted).len()), (vec!["A320-214"], 0));
        for (exception, is_condition) in [
            ("except those with modification 160500", true),
            ("except airplanes on which modification 24591 is embodied", true),
            ("except those having a placard", true),
            ("except Model A320-216 airplanes", false),
        ] {
            let text = format!("This AD applies to all Airbus SAS Model A320-214 and A320-216 airplanes, {exception}.");
            let (read, _) = read_text("Airbus", &text);
            assert_eq!(read.condition.is_some(), is_condition, "{exception}");
        }
    }

    /// Proves the scope, and that serial numbers belong to the models before them.
    #[test]
    fn scope_and_serials() {
        let (read, _) = read_text(
            "Piper",
            "(1) Model PA-28-140 airplanes, serial numbers 28-20001 through 28-26946; and\n\n(2) Model PA-28-150 airplanes, all serial numbers.",
        );
        assert_eq!((read.scope, read.serials.len()), (Scope::Certain, 2));
        assert_eq!((read.serials[0].models.clone(), read.serials[1].models.clone(), read.serials[1].is_all), (vec![0], vec![1], true));
        let (read, unread) = read_text("Acme", "This AD applies to certain seat belts.");
        assert_eq!((read.scope, unread[0].reason), (Scope::Unknown, UnreadReason::NoModels));
        assert_eq!(last_noun("Rolls-Royce Turbofan Engines"), Some("engines"));
    }
}
