//! The parts of a stream that are complete or incomplete on their own, such as the stores of an upstream of many hosts.

use std::collections::HashSet;

use schemas::topics::Topic;
use view_store::View;

use crate::Error;
use crate::snapshot::{self, Seen};

/// What a run knows about the parts of its stream.
#[derive(Default)]
pub(super) struct PartsRead {
    /// The beginnings of the keys of the parts that this run has read completely.
    read: Vec<String>,
    /// Keys that those parts lack for the first time.
    missing: Vec<String>,
    /// Keys that the last complete reading of their part lacked, as of the last finished run.
    pub(super) missing_before: Vec<String>,
    /// Whether the run continues an interrupted one, which may have read parts that this one does not know.
    pub(super) is_continued: bool,
}

impl PartsRead {
    /// Takes a part that this run has read completely. Returns the keys that this reading and the one before it lack, and why none is
    /// returned although many are missing.
    pub(super) async fn take(
        &mut self,
        engine: &dyn View,
        topic: &Topic,
        part: &str,
        seen: &Seen,
    ) -> Result<(Vec<String>, Option<String>), Error> {
        let found = snapshot::find_missing(engine, topic, part, seen, &HashSet::new()).await?;
        self.read.push(format!("{part}/"));
        // A part that is a whole stream has the bound of one: names of streams have no slash.
        let is_doubtful = if part.contains('/') { found.is_doubtful_part() } else { found.is_doubtful() };
        if is_doubtful {
            let (missing, known) = (found.missing.len(), found.known);
            tracing::warn!(part, missing, known, "too many records are missing from a part; none is withdrawn");
            return Ok((Vec::new(), Some(format!("{missing} of {known} known records of {part} are missing: none is withdrawn"))));
        }
        let before: HashSet<&String> = self.missing_before.iter().collect();
        let (gone, first_time): (Vec<String>, Vec<String>) = found.missing.into_iter().partition(|key| before.contains(key));
        self.missing.extend(first_time);
        Ok((gone, None))
    }

    /// The keys that the last complete reading of their part lacked. After an interruption those of parts that were not read are forgotten:
    /// the interrupted run may have seen them.
    pub(super) fn missing_after(&mut self) -> Vec<String> {
        let mut missing = std::mem::take(&mut self.missing);
        if !self.is_continued {
            let is_read = |key: &String| self.read.iter().any(|part| key.starts_with(part));
            missing.extend(std::mem::take(&mut self.missing_before).into_iter().filter(|key| !is_read(key)));
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that keys of parts that this run did not read stay missing, and are forgotten after an interruption.
    #[test]
    fn missing_keys_of_unread_parts_stay() {
        let texts = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let parts = |is_continued| PartsRead {
            read: texts(&["s/a/v/"]),
            missing: texts(&["s/a/v/2"]),
            missing_before: texts(&["s/a/v/1", "s/b/v/1"]),
            is_continued,
        };
        assert_eq!(parts(false).missing_after(), ["s/a/v/2", "s/b/v/1"]);
        assert_eq!(parts(true).missing_after(), ["s/a/v/2"]);
    }
}
