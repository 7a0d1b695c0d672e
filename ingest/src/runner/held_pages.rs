//! Pages of a sync run that are held back while a field is missed in them.

use std::collections::VecDeque;

use schemas::position::UpstreamCursor;
use upstreams::Page;
use upstreams::drift::Missed;

use crate::facts::Hashed;

/// How many records are held at most.
const RECORDS_MAX: usize = 5_000;
/// How many pages are held at most. A page can be a request of its own, so this bounds how far a run reads ahead.
const PAGES_MAX: usize = 200;

/// A page: its observations, the rest of it, and the cursor after it.
pub(super) type HeldPage = (Vec<Hashed>, Box<Page>, Option<UpstreamCursor>);

/// Pages that were read and are not appended yet, oldest first.
#[derive(Default)]
pub(super) struct HeldPages {
    pages: VecDeque<HeldPage>,
    records: usize,
    must_wait: bool,
    missed: Option<Missed>,
}

impl HeldPages {
    /// Adds a page. `must_wait` says whether the pages must not be appended before more is read, `missed` which field the run misses up to this
    /// page, if any.
    pub(super) fn push(&mut self, page: HeldPage, must_wait: bool, missed: Option<Missed>) {
        self.records += page.0.len() + page.1.rejects.len();
        (self.must_wait, self.missed) = (must_wait, missed);
        self.pages.push_back(page);
    }

    /// Takes the oldest page.
    pub(super) fn pop(&mut self) -> Option<HeldPage> {
        let page = self.pages.pop_front()?;
        self.records -= page.0.len() + page.1.rejects.len();
        Some(page)
    }

    /// Whether the pages must not be appended yet.
    pub(super) const fn must_wait(&self) -> bool {
        self.must_wait
    }

    /// Takes the field that is missed in these pages.
    pub(super) fn take_missed(&mut self) -> Option<Missed> {
        self.missed.take()
    }

    /// Whether no further page should be read before these are decided about.
    pub(super) fn is_full(&self) -> bool {
        self.records >= RECORDS_MAX || self.pages.len() >= PAGES_MAX
    }
}
