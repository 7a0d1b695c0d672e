//! What lists mean: models to which the directive applies, exceptions, equipment, and aircraft in which a product is installed.

use super::Reader;
use super::words::{CONDITIONS, EQUIPMENT, OPEN_LISTS};
use crate::directive::{Product, Role, UnreadReason};
use crate::serials;

/// How many tokens before "not limited to" are looked at for what is not limited.
const HOLDERS_TOKENS_MAX: usize = 8;

impl Reader<'_, '_> {
    /// Words that change what the following lists mean. Returns the position after them.
    pub(super) fn change_role(&mut self, at: usize, product: Product) -> Option<usize> {
        let tokens = self.tokens;
        self.out.is_open |= tokens.is(at, "various") || OPEN_LISTS.iter().any(|words| tokens.is_phrase(at, words));
        // "airplanes, including, but not limited to, Model A320 airplanes": which other ones is not said. "Holders include but are not limited to" is no such list.
        let is_of_holders = || (at.saturating_sub(HOLDERS_TOKENS_MAX)..at).any(|at| tokens.is_any(at, &["holder", "holders"]));
        if product == Product::Aircraft && tokens.is_phrase(at, "not limited to") && !is_of_holders() {
            self.note(UnreadReason::NoModels, tokens.span(at, at + 2));
        }
        let is_exception = tokens.is_any(at, &["except", "excepting", "excluding", "excludes"])
            || tokens.is_phrase(at, "other than")
            || tokens.is_phrase(at, "not including")
            || tokens.is_phrase(at, "not apply")
            || tokens.is_phrase(at, "not applicable");
        // "Except as specified in paragraph (c)(2), this AD applies to": an exception of a rule, and of no models.
        if tokens.is_phrase(at, "except as") {
            return Some(at + 2);
        }
        if is_exception {
            self.role = Role::Excepted;
            self.role_depth = self.depth;
            (self.before_exception, self.exception) = (self.out.models.len(), at);
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
        // "airplanes with serial numbers 1 through 9", "with a serial number up to 9": the list of serial numbers is the limit.
        let label = at + 1 + usize::from(tokens.is_any(at + 1, &["a", "an", "the"]));
        let is_condition = is_condition && !(tokens.is_any(at, EQUIPMENT) && serials::is_label(tokens, label));
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
}
