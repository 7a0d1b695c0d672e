//! Records that are hidden on request, in lists whose order and conditions follow from what is hidden. A row would tell it: by the day from which on it is
//! listed, by the amount up to which it is, or by the rule whose list it is in. So these lists leave the records out, and say how many there are in a part
//! of the list that does not depend on a hidden field.

use crate::record::Parcel;
use feed::places::{Segment, Walk};
use operation::problem::Problem;
use reads::read::Reader;

use super::followed::Parcels;

/// Whether a list shows a record.
pub(super) fn is_shown(record: &Parcel) -> bool {
    !record.suppressed
}

/// Whether any record is hidden on request.
pub(super) fn may_be_hidden(reader: &Reader<Parcels>) -> bool {
    reader.at.view.rendition() != 0
}

/// Says how many records of a part of a list are hidden on request. `what` names them.
pub(super) async fn note_hidden(reader: &mut Reader<Parcels>, what: &str, list: &str, part: Segment) -> Result<(), Problem> {
    if may_be_hidden(reader) {
        let is_hidden = |record: &Parcel| !is_shown(record);
        let found = reader.ranked(Walk { list, part, filter: "hidden", limit: 1, after: None }, Some(&is_hidden)).await?;
        reader.note(note(what, found.total));
    }
    Ok(())
}

/// The note; `None` if nothing is hidden. A total of `None` means that the list was too long to count all.
fn note(what: &str, total: Option<u64>) -> Option<String> {
    match total {
        Some(0) => None,
        Some(total) => Some(format!("{what} that are hidden on request and left out: {total}")),
        None => Some(format!("{what} that are hidden on request are left out")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a note says how many records are hidden, and nothing if none are.
    #[test]
    fn notes() {
        assert_eq!(note("flags", Some(0)), None);
        assert_eq!(note("flags", Some(2)).unwrap(), "flags that are hidden on request and left out: 2");
        assert_eq!(note("flags", None).unwrap(), "flags that are hidden on request are left out");
    }
}
