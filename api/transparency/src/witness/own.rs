//! The witness that this process runs for other logs: it cosigns a checkpoint only if the checkpoint continues the one that it cosigned before.

use std::collections::BTreeMap;

use crate::note::{Cosigner, KeyError, KeyType, Signed, SignedNote, VerifierKey};
use proofs::hash::Hash32;
use proofs::tree::{Checkpoint, is_consistent};

use super::record::{Cosigned, ReadRecord, RecordPlace, WitnessRecord, origin_hash};
use super::request::AddCheckpoint;
use operation::context::Context;
use operation::problem::Problem;
use schemas::error_code::ErrorCode;

/// How often an attempt is repeated when another process records a checkpoint of the same log at the same time.
const TRIES: usize = 5;
/// How many characters of a checkpoint a log message repeats.
const NOTE_CHARS_LOGGED: usize = 2_000;

/// A log whose checkpoints are cosigned.
#[derive(Clone, Debug)]
pub struct KnownLog {
    origin: String,
    key: VerifierKey,
}

impl KnownLog {
    /// A log with its origin and the verifier key (Ed25519) of its checkpoints.
    ///
    /// # Errors
    /// When the text is not a verifier key.
    pub fn new(origin: &str, vkey: &str) -> Result<Self, KeyError> {
        Ok(Self { origin: origin.to_owned(), key: VerifierKey::parse(vkey, KeyType::Ed25519)? })
    }
}

/// A witness: its key, the logs that it knows, and the record of what it cosigned.
#[derive(Debug)]
pub struct OwnWitness {
    cosigner: Cosigner,
    /// The keys of each log, by its origin. After a rotation a log has two keys.
    logs: BTreeMap<String, Vec<VerifierKey>>,
    record: WitnessRecord,
}

/// Why a checkpoint is not cosigned.
#[derive(Debug)]
pub enum Refusal {
    /// The body does not have the form of a request.
    Malformed(&'static str),
    /// The origin is not one of a known log.
    UnknownLog,
    /// There is no signature of a known key, or it does not verify.
    NotSigned,
    /// The old size is not the size of the checkpoint that was cosigned last, which the variant holds.
    Conflict(u64),
    /// The proof does not show that the checkpoint continues the one that was cosigned last.
    Inconsistent(&'static str),
    /// The record could not be read or written.
    Failed(Problem),
}

impl OwnWitness {
    /// A witness with its name, its secret seed, the logs that it knows and the place of its record.
    ///
    /// # Errors
    /// When the name is not valid in a signature line.
    pub fn new(name: &str, seed: &[u8; 32], known: Vec<KnownLog>, place: RecordPlace) -> Result<Self, KeyError> {
        let cosigner = Cosigner::new(name, seed)?;
        let mut logs: BTreeMap<String, Vec<VerifierKey>> = BTreeMap::new();
        for log in known {
            let keys = logs.entry(log.origin).or_default();
            if !keys.contains(&log.key) {
                keys.push(log.key);
            }
        }
        // The name belongs to the key: neither alone may start a new record.
        let key = Hash32::of(cosigner.verifier().to_string().as_bytes()).to_string();
        Ok(Self { cosigner, logs, record: WitnessRecord::new(place, key) })
    }

    /// The public key.
    #[must_use]
    pub fn key(&self) -> &VerifierKey {
        self.cosigner.verifier()
    }

    /// Answers an `add-checkpoint` request with the signature lines, once the checkpoint is recorded.
    ///
    /// # Errors
    /// Why the checkpoint is not cosigned.
    pub async fn add_checkpoint(&self, ctx: &Context, body: &[u8]) -> Result<String, Refusal> {
        let body = std::str::from_utf8(body).map_err(|_| Refusal::Malformed("the body is not UTF-8"))?;
        let submitted =
            AddCheckpoint::parse(body).ok_or(Refusal::Malformed("the body is no old size, proof, empty line and checkpoint"))?;
        let note = SignedNote::parse(submitted.note).ok_or(Refusal::Malformed("the checkpoint is no signed note"))?;
        let next = note.checkpoint().ok_or(Refusal::Malformed("the signed note is no checkpoint"))?;
        let keys = self.logs.get(&next.origin).ok_or(Refusal::UnknownLog)?;
        let lines = signatures(&note, keys).ok_or(Refusal::NotSigned)?;
        if submitted.old > next.size {
            return Err(Refusal::Malformed("the old size is above the checkpoint's"));
        }
        let log = origin_hash(&next.origin);
        for _ in 0..TRIES {
            let found = self.record.find(ctx, &log).await.map_err(Refusal::Failed)?;
            let newest = newest(&found)?;
            let refusal = match &newest {
                Some(newest) => refusal(submitted.old, newest, &next, &submitted.proof),
                None => first_refusal(submitted.old, &next, &submitted.proof),
            };
            if let Some(refusal) = refusal {
                if let Refusal::Inconsistent(reason) = refusal {
                    // The log itself signed this: it proves that the log misbehaved.
                    let note: String = submitted.note.chars().take(NOTE_CHARS_LOGGED).collect();
                    let cosigned = newest.map_or(0, |newest| newest.size);
                    tracing::error!(
                        origin = next.origin,
                        cosigned,
                        submitted = next.size,
                        note,
                        reason,
                        "a log signed an inconsistent tree"
                    );
                }
                return Err(refusal);
            }
            // A cosignature with time zero is not valid.
            let time_s = u64::try_from(ctx.clock.now_ms() / 1_000).unwrap_or(0).max(1);
            let own = self.cosigner.cosign(note.text(), time_s);
            let signed: String = lines.iter().copied().chain([own.as_str()]).map(|line| format!("{line}\n")).collect();
            let cosigned = Cosigned { origin: next.origin.clone(), note: format!("{}\n{signed}", note.text()) };
            if self.record.replace(ctx, &found, &cosigned).await.map_err(Refusal::Failed)? {
                return Ok(format!("{own}\n"));
            }
        }
        Err(Refusal::Failed(
            Problem::new(ErrorCode::Unavailable, "other checkpoints of this log are recorded at the same time").retry_after(1),
        ))
    }

    /// The newest cosigned checkpoint of the log whose origin has this hash, with the log's signatures and ours; `None` if none was cosigned, or if
    /// the log is not known.
    ///
    /// # Errors
    /// When it cannot be looked up.
    pub async fn newest_note(&self, ctx: &Context, log: &str) -> Result<Option<String>, Problem> {
        if !self.logs.keys().any(|origin| origin_hash(origin) == log) {
            return Ok(None);
        }
        Ok(self.record.find(ctx, log).await?.cosigned.map(|cosigned| cosigned.note))
    }
}

/// The valid signature lines of a log; `None` if there is none, or if one of a known key does not verify.
fn signatures<'a>(note: &SignedNote<'a>, keys: &[VerifierKey]) -> Option<Vec<&'a str>> {
    let mut lines = Vec::new();
    for key in keys {
        match note.signed_by(key) {
            Signed::Absent => {}
            Signed::Invalid => return None,
            Signed::Valid { line, .. } => lines.push(line),
        }
    }
    (!lines.is_empty()).then_some(lines)
}

/// The newest checkpoint that was cosigned. A damaged record is an error, so that its log is not taken for a new one.
fn newest(found: &ReadRecord) -> Result<Option<Checkpoint>, Refusal> {
    match (&found.cosigned, found.checkpoint()) {
        (Some(_), None) => Err(Refusal::Failed(Problem::new(ErrorCode::Internal, "the record of what this witness cosigned is damaged"))),
        (_, checkpoint) => Ok(checkpoint),
    }
}

/// Why the first checkpoint of a log is not cosigned; `None` if it is.
fn first_refusal(old: u64, next: &Checkpoint, proof: &[Hash32]) -> Option<Refusal> {
    if old != 0 {
        return Some(Refusal::Conflict(0));
    }
    if next.size == 0 && next.root != Hash32::of(b"") {
        return Some(Refusal::Inconsistent("the root is not that of the empty tree"));
    }
    (!proof.is_empty()).then_some(Refusal::Inconsistent("the empty tree needs no proof"))
}

/// Why a checkpoint is not cosigned over the newest one that was; `None` if it is.
fn refusal(old: u64, newest: &Checkpoint, next: &Checkpoint, proof: &[Hash32]) -> Option<Refusal> {
    if old != newest.size {
        return Some(Refusal::Conflict(newest.size));
    }
    if old == 0 {
        return first_refusal(old, next, proof);
    }
    if next.size == old && next.root != newest.root {
        return Some(Refusal::Inconsistent("two trees of one size have different roots"));
    }
    (!is_consistent(proof, next, newest)).then_some(Refusal::Inconsistent("the proof does not show that the tree holds the one before"))
}
