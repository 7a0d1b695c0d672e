//! What answers say of leads that are hidden on request.
//!
//! Promise: the number of names and leads that were hidden is the same whatever is asked, as of any time, and whether they have leads or not. It does not
//! tell where a hidden lead is.

use reads::read::{Reader, hidden_note};

use super::watchable_feed::Coverage;

/// What an answer without hidden leads says of them; `None` if nothing is hidden.
pub(super) fn left_out(reader: &Reader<Coverage>) -> Option<String> {
    hidden_note("names and leads, also those that no lead here has,", reader.at.view.suppressed_keys())
}

/// What counts say of hidden leads, which they have as `changes` has them: without what says which business it is; `None` if nothing is hidden.
pub(super) fn counted(reader: &Reader<Coverage>) -> Option<String> {
    let keys = reader.at.view.suppressed_keys();
    (keys > 0).then(|| {
        format!(
            "the counts have leads that are hidden on request, and the feed leaves them out; hidden names and leads, also those that no lead \
             here has: {keys}"
        )
    })
}
