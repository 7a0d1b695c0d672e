//! The encoded ends of ranges of keys.

use std::ops::Bound;

use schemas::tables::{Key, Table};

use crate::key::{encode_prefix, encode_whole, end_of};
use crate::store::{Error, Range, Span};

/// The encoded ends of a range.
pub(super) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Encodes the ends of a section of a table.
pub(super) fn span_bounds(table: &Table, span: &Span) -> Result<Bounds, Error> {
    let encoded = |key: &Option<Key>| key.as_ref().map(|key| encode_prefix(table, key)).transpose();
    Ok((encoded(&span.from)?.map_or(Bound::Unbounded, Bound::Included), encoded(&span.to)?.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// Encodes the ends of a range.
pub(super) fn bounds_of(table: &Table, range: &Range) -> Result<Bounds, Error> {
    let prefix = encode_prefix(table, &range.prefix)?;
    let mut upper = end_of(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
    let mut lower = Bound::Included(prefix.clone());
    if let Some(after) = &range.after {
        let after = encode_whole(table, after)?;
        if range.reverse {
            if below(&after, &upper) {
                upper = Bound::Excluded(after);
            }
        } else if after >= prefix {
            lower = Bound::Excluded(after);
        }
    } else if let Some(from) = &range.from {
        let from = encode_prefix(table, from)?;
        if range.reverse {
            // Keys with the prefix `from` are part of the range when reading backwards.
            if let Some(end) = end_of(&from)
                && below(&end, &upper)
            {
                upper = Bound::Excluded(end);
            }
        } else if from > prefix {
            lower = Bound::Included(from);
        }
    }
    Ok((lower, upper))
}

/// Whether a key is below an upper end.
fn below(key: &[u8], upper: &Bound<Vec<u8>>) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Excluded(end) | Bound::Included(end) => key < end.as_slice(),
    }
}

/// Whether no key is between two ends.
pub(super) fn bounds_are_empty(bounds: &Bounds) -> bool {
    match bounds {
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) => lower >= upper,
        _ => false,
    }
}
