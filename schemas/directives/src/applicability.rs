//! Reads to what a directive applies: the models, whether all or certain ones, their serial numbers, and what is excepted.

mod models;
mod roles;
mod serial_numbers;
#[cfg(test)]
mod tests;
mod words;

use crate::aliases::{is_known, resolve_makes};
use crate::designation_words;
use crate::designations;
use crate::directive::{Applicability, Product, Role, Scope, Span, Unread, UnreadReason};
use crate::serials;
use crate::tokens::Tokens;
use words::{MONTHS, OTHER_NUMBERS};

/// The most unread parts that are noted.
const UNREAD_MAX: usize = 50;
/// The most tokens of a list that is not about models: part numbers, paragraphs, documents.
const OTHER_LIST_TOKENS_MAX: usize = 400;

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
    /// The position of the word for the exception.
    exception: usize,
    is_all: bool,
    /// The kind of product.
    product: Product,
    /// Whether a list names aircraft in which the product is installed, and not only engines or propellers.
    names_aircraft: bool,
    /// Whether serial numbers were read in the parentheses that are open.
    is_in_serials: bool,
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
        exception: 0,
        is_all: false,
        product,
        names_aircraft: false,
        is_in_serials: false,
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
            // "(L)IO-360".
            "(" if designations::optional_prefix(tokens, at).is_some() => return self.bare_list(at, false),
            // "( )HC-( )2Y": a model with gaps.
            "(" if tokens.text(at + 1) == ")" => {
                self.note(UnreadReason::NoModels, tokens.span(at, at + 2));
                return at + 2;
            }
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
                return self.after_serials(at + 1).unwrap_or(at + 1);
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
            return at + 1 + usize::from(designation_words::is_designation(tokens.text(at + 1)));
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
        if designation_words::is_designation(tokens.text(at)) && tokens.is_word(at) {
            return self.bare_list(at, false);
        }
        at + 1
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

    fn note(&mut self, reason: UnreadReason, span: Span) {
        if self.unread.len() < UNREAD_MAX || self.unread.iter().all(|unread| unread.reason != reason) {
            self.unread.push(Unread { reason, span });
        }
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
        self.out.is_open |= !self.names_aircraft;
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
