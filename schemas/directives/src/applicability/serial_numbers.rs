//! The serial numbers that limit the models before them.

use super::Reader;
use crate::directive::{Role, Serials, UnreadReason};
use crate::serials;

/// The most lists of serial numbers of one directive.
const SERIALS_MAX: usize = 500;

impl Reader<'_, '_> {
    /// Reads a list of serial numbers at its label. Returns the position after it.
    pub(super) fn serials(&mut self, at: usize) -> usize {
        let (serials, next) = serials::read(self.tokens, at);
        self.is_in_serials = self.depth > 0;
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
    pub(super) fn attach(&mut self, mut serials: Serials) {
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
}
