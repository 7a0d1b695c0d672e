//! Reads records: finds the packed value that holds an offset, and then the values after it.

use std::sync::PoisonError;

use bytes::Bytes;
use disk_files::library::{catch_panic, is_damage};
use schemas::position::LogOffset;
use schemas::reason::reason;

use super::packed_values::{self, Packed};
use super::state::PartitionState;
use crate::{Error, Stored};

/// Reads records from offset `from` on: at least one if there is one, at most `records_max`, and none that would exceed `bytes_max`. If a
/// later record is damaged, the records before it are returned; the next read then fails with the damage.
pub(super) fn read(state: &PartitionState, from: LogOffset, records_max: usize, bytes_max: usize) -> Result<Vec<Stored>, Error> {
    let end = state.readable.borrow().end;
    let mut out = Vec::new();
    let mut byte_count = 0_usize;
    let mut offset = from;
    while offset < end {
        let packed = match value_with(state, offset) {
            Ok(packed) => packed,
            Err(error) if out.is_empty() => return Err(error),
            Err(_) => return Ok(out),
        };
        while offset < packed.end().min(end) {
            let record = match packed.record(offset) {
                Ok(record) => record,
                Err(reason) if out.is_empty() => return Err(damaged(state, offset, reason)),
                Err(_) => return Ok(out),
            };
            byte_count = byte_count.saturating_add(record.key.len()).saturating_add(record.value.len());
            if !out.is_empty() && (out.len() >= records_max || byte_count > bytes_max) {
                *state.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = Some(packed);
                return Ok(out);
            }
            out.push(Stored { offset, record });
            offset = offset.next();
        }
    }
    Ok(out)
}

/// Returns the packed value that holds `offset`, which must be below the partition's end.
fn value_with(state: &PartitionState, offset: LogOffset) -> Result<Packed, Error> {
    {
        let unfinished = state.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = unfinished.as_ref().filter(|packed| packed.base() <= offset && offset < packed.end()) {
            return Ok(packed.clone());
        }
    }
    match value_at_or_before(state, offset)? {
        Some(packed) if offset < packed.end() => Ok(packed),
        _ => Err(damaged(state, offset, "no stored value holds this offset")),
    }
}

/// Returns the last packed value whose base is not above `offset`, after checking it; `None` if there is none.
fn value_at_or_before(state: &PartitionState, offset: LogOffset) -> Result<Option<Packed>, Error> {
    let range = packed_values::key(state.partition, LogOffset(0))..=packed_values::key(state.partition, offset);
    let Some(keyspace) = state.keyspace()? else { return Ok(None) };
    let found = catch_panic(|| keyspace.range(range).next_back().map(fjall::Guard::into_inner).transpose());
    let Some((key, value)) = found.map_err(|error| unreadable(state, offset, &error))? else { return Ok(None) };
    opened(state, offset, &key, value).map(Some)
}

/// Determines the partition's end. Walks back over at least `walk_bytes` of its values (or all of them) and checks that each value is
/// intact and adjacent to the next.
pub(super) fn verified_end(state: &PartitionState, walk_bytes: u64) -> Result<LogOffset, Error> {
    let Some(keyspace) = state.keyspace()? else { return Ok(LogOffset(0)) };
    let mut values =
        keyspace.range(packed_values::key(state.partition, LogOffset(0))..=packed_values::key(state.partition, LogOffset(u64::MAX)));
    let (mut end, mut next_base, mut walked_bytes) = (LogOffset(0), None, 0);
    loop {
        let at = next_base.unwrap_or_default();
        let found =
            catch_panic(|| values.next_back().map(fjall::Guard::into_inner).transpose()).map_err(|error| unreadable(state, at, &error))?;
        let packed = match found {
            Some((key, value)) => {
                walked_bytes += value.len() as u64;
                opened(state, at, &key, value)?
            }
            None if at == LogOffset(0) => return Ok(end),
            None => return Err(damaged(state, LogOffset(0), &format!("the records before offset {at} are missing"))),
        };
        match next_base {
            None => end = packed.end(),
            Some(next_base) if packed.end() == next_base => {}
            Some(next_base) => {
                return Err(damaged(state, packed.end(), &format!("the records from here to offset {next_base} are missing")));
            }
        }
        if walked_bytes >= walk_bytes {
            return Ok(end);
        }
        next_base = Some(packed.base());
    }
}

fn opened(state: &PartitionState, offset: LogOffset, key: &[u8], value: fjall::Slice) -> Result<Packed, Error> {
    let Some(base) = packed_values::base_of(state.partition, key) else {
        return Err(damaged(state, offset, "the store answered another key"));
    };
    Packed::open(state.topic.name, state.partition, base, Bytes::from_owner(value)).map_err(|reason| damaged(state, base, reason))
}

fn unreadable(state: &PartitionState, offset: LogOffset, error: &fjall::Error) -> Error {
    let how = reason(error);
    if is_damage(error) {
        return damaged(state, offset, &format!("the store cannot read it: {how}"));
    }
    // Such as too many open files: the record may be whole.
    let what = format!("the log cannot be read at {}/{} offset {offset}: {how}", state.topic.name, state.partition);
    Error::Unavailable { what, source: None }
}

pub(super) fn damaged(state: &PartitionState, offset: LogOffset, reason: &str) -> Error {
    Error::Damaged { topic: state.topic.name.to_owned(), partition: u32::from(state.partition), offset, reason: reason.to_owned() }
}
