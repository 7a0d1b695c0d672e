//! What the log says about the rows that a decision extends: the end of a chain, its owner, the size of a tree. A decision that signs must not rely on a row
//! alone, because a damaged store may show an older one. So the change topic is read once after the start, its changes are applied to an index of hashes in
//! memory, and every row that a decision fetches is compared with it.

use std::collections::HashMap;

use bytes::Bytes;
use event_log::EventLog;
use proofs::hash::Hash32;
use schemas::avro;
use schemas::change::Change;
use schemas::position::{LogOffset, Seq};
use schemas::tables::{Datum, Key, Table, Write};

use crate::Error;
use fold::service::Service;

/// The most changes that one read returns.
const BATCH_CHANGES: usize = 2_000;
/// The most bytes that one read returns.
const BATCH_BYTES: usize = 4 << 20;

/// The first half of a SHA-256 hash.
type Digest = [u8; 16];

/// An index of the confirmed rows of one service, by the hash of table and key: the hash of the value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Confirmations {
    rows: HashMap<Digest, Digest>,
    /// The last change that is in the index, with the offset after it.
    seq: Seq,
    hash: Hash32,
    offset: LogOffset,
}

impl Confirmations {
    /// Reads the changes of the log up to `upto`, starting after those that are in the index.
    ///
    /// # Errors
    /// When the log fails or has no such change.
    pub(crate) async fn advance<S: Service>(&mut self, log: &dyn EventLog, upto: Seq) -> Result<(), Error> {
        while self.seq < upto {
            let batch = log.read(S::CHANGES, 0, self.offset, BATCH_CHANGES, BATCH_BYTES).await?;
            if batch.is_empty() {
                return Err(Error::Refused(format!("the log of {} ends with change {}, but its view has {upto}", S::NAME, self.seq)));
            }
            for stored in batch {
                if self.seq == upto {
                    break;
                }
                self.offset = stored.offset.next();
                let value = &stored.record.value;
                let Some(change) = avro::decode::<Change<S::Record, S::Note>>(S::CHANGES.name, value)
                    .ok()
                    .filter(|change| change.extends(self.seq, self.hash))
                else {
                    continue;
                };
                self.hash = avro::datum_hash(S::CHANGES.name, value)
                    .map_err(|source| Error::Value { topic: S::CHANGES.name.to_owned(), source })?;
                self.seq = change.seq;
                self.take_in::<S>(&S::apply(&change, &[]));
            }
            // Many changes are applied in a row; this lets other tasks of the thread run.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Adds a change that was just applied, if it follows those that are in the index. Otherwise the next [`Self::advance`] reads it.
    pub(crate) fn follow<S: Service>(&mut self, seq: Seq, hash: Hash32, next: LogOffset, writes: &[Write]) {
        if seq == self.seq.next() {
            (self.seq, self.hash, self.offset) = (seq, hash, next);
            self.take_in::<S>(writes);
        }
    }

    fn take_in<S: Service>(&mut self, writes: &[Write]) {
        for write in writes.iter().filter(|write| S::is_confirmed(write.table, &write.key)) {
            let place = place(write.table, &write.key);
            match &write.value {
                Some(value) => self.rows.insert(place, digest(value)),
                None => self.rows.remove(&place),
            };
        }
    }

    /// Whether a stored row is the one that the log says.
    pub(crate) fn confirms(&self, table: &Table, key: &Key, row: Option<&Bytes>) -> bool {
        self.rows.get(&place(table, key)).copied() == row.map(|value| digest(value))
    }
}

fn place(table: &Table, key: &Key) -> Digest {
    let mut text = table.name.as_bytes().to_vec();
    for datum in key {
        text.push(0);
        match datum {
            Datum::Text(column) => text.extend_from_slice(column.as_bytes()),
            Datum::Int(column) => text.extend_from_slice(&column.to_be_bytes()),
        }
    }
    digest(&text)
}

fn digest(bytes: &[u8]) -> Digest {
    let Hash32(hash) = Hash32::of(bytes);
    hash.first_chunk::<16>().copied().unwrap_or_default()
}
