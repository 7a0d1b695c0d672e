//! Reading: find the value that holds an offset, then the values after it.

use std::sync::PoisonError;

use bytes::Bytes;
use schemas::position::LogOffset;
use schemas::reason::reason;

use super::open::guarded;
use super::packed::{self, Packed};
use super::{Error, Place, Stored};

/// Reads records from `from` on: at least one if there is one, no more than `records_max`, and no further one that would exceed `bytes_max`.
/// Records before damage are answered; the damage is the error of the read that begins with it.
pub(super) fn read(place: &Place, from: u64, records_max: usize, bytes_max: usize) -> Result<Vec<Stored>, Error> {
    let end = place.readable.borrow().end;
    let mut out = Vec::new();
    let mut byte_count = 0_usize;
    let mut offset = from;
    while offset < end {
        let packed = match value_with(place, offset) {
            Ok(packed) => packed,
            Err(error) if out.is_empty() => return Err(error),
            Err(_) => return Ok(out),
        };
        while offset < packed.end().min(end) {
            let record = match packed.record(offset) {
                Ok(record) => record,
                Err(reason) if out.is_empty() => return Err(damaged(place, offset, reason)),
                Err(_) => return Ok(out),
            };
            byte_count = byte_count.saturating_add(record.key.len()).saturating_add(record.value.len());
            if !out.is_empty() && (out.len() >= records_max || byte_count > bytes_max) {
                *place.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = Some(packed);
                return Ok(out);
            }
            out.push(Stored { offset: LogOffset(offset), record });
            offset += 1;
        }
    }
    Ok(out)
}

/// The value that holds `offset`, which is below the partition's end.
fn value_with(place: &Place, offset: u64) -> Result<Packed, Error> {
    {
        let unfinished = place.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = unfinished.as_ref().filter(|packed| packed.base() <= offset && offset < packed.end()) {
            return Ok(packed.clone());
        }
    }
    match value_at_or_before(place, offset)? {
        Some(packed) if offset < packed.end() => Ok(packed),
        _ => Err(damaged(place, offset, "no stored value holds this offset")),
    }
}

/// The last value whose base is not above `offset`, checked; `None` if there is none.
fn value_at_or_before(place: &Place, offset: u64) -> Result<Option<Packed>, Error> {
    let range = packed::key(place.partition, 0)..=packed::key(place.partition, offset);
    let found = guarded(|| place.keyspace.range(range).next_back().map(fjall::Guard::into_inner).transpose());
    let Some((key, value)) = found.map_err(|error| unreadable(place, offset, &error))? else { return Ok(None) };
    opened(place, offset, &key, value).map(Some)
}

/// The partition's end, after walking back over at least `walk_bytes` of its values (all, if there are fewer) and finding each whole and joined to the next.
pub(super) fn end_after_walk(place: &Place, walk_bytes: u64) -> Result<u64, Error> {
    let mut values = place.keyspace.range(packed::key(place.partition, 0)..=packed::key(place.partition, u64::MAX));
    let (mut end, mut next_base, mut walked_bytes) = (0, None, 0);
    loop {
        let at = next_base.unwrap_or(0);
        let found =
            guarded(|| values.next_back().map(fjall::Guard::into_inner).transpose()).map_err(|error| unreadable(place, at, &error))?;
        let packed = match found {
            Some((key, value)) => {
                walked_bytes += value.len() as u64;
                opened(place, at, &key, value)?
            }
            None if at == 0 => return Ok(end),
            None => return Err(damaged(place, 0, &format!("the records before offset {at} are missing"))),
        };
        match next_base {
            None => end = packed.end(),
            Some(next_base) if packed.end() == next_base => {}
            Some(next_base) => {
                return Err(damaged(place, packed.end(), &format!("the records from here to offset {next_base} are missing")));
            }
        }
        if walked_bytes >= walk_bytes {
            return Ok(end);
        }
        next_base = Some(packed.base());
    }
}

fn opened(place: &Place, offset: u64, key: &[u8], value: fjall::Slice) -> Result<Packed, Error> {
    let Some(base) = packed::base_of(place.partition, key) else { return Err(damaged(place, offset, "the store answered another key")) };
    Packed::open(place.topic.name, place.partition, base, Bytes::from_owner(value)).map_err(|reason| damaged(place, base, reason))
}

fn unreadable(place: &Place, offset: u64, error: &fjall::Error) -> Error {
    damaged(place, offset, &format!("the store cannot read it: {}", reason(error)))
}

pub(super) fn damaged(place: &Place, offset: u64, reason: &str) -> Error {
    Error::Damaged { topic: place.topic.name.to_owned(), partition: u32::from(place.partition), offset, reason: reason.to_owned() }
}
