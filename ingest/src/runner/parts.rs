//! The parts of a stream that are complete or incomplete on their own, such as the stores of an upstream of many hosts.

use std::collections::{HashMap, HashSet};

use event_log::Append;
use schemas::topics::Topic;
use upstreams::Budget;
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
    /// How many facts this run has appended of each part that has a budget.
    appended: HashMap<String, i64>,
}

impl PartsRead {
    /// Whether this run has appended as many facts of a part as its budget allows. Facts of the part are counted from the first call on.
    pub(super) fn is_spent(&mut self, budget: &Budget) -> bool {
        *self.appended.entry(budget.part.clone()).or_default() >= budget.facts_max
    }

    /// Returns how many of some facts belong to each part that has a budget.
    pub(super) fn counts_of(&self, facts: &[Append]) -> Vec<(String, i64)> {
        let count = |part: &String| {
            let beginning = format!("{part}/");
            facts.iter().filter(|fact| fact.record.key.starts_with(beginning.as_bytes())).count()
        };
        self.appended.keys().map(|part| (part.clone(), i64::try_from(count(part)).unwrap_or(i64::MAX))).collect()
    }

    /// Adds facts that were appended, by their parts.
    pub(super) fn add_appended(&mut self, counts: Vec<(String, i64)>) {
        for (part, count) in counts {
            *self.appended.entry(part).or_default() += count;
        }
    }

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
    use bytes::Bytes;
    use event_log::{Headers, Record};
    use schemas::topics::STOCK;

    use super::*;

    /// Proves that a budget is spent by facts of its own part only, and that each run begins with the whole of it.
    #[test]
    fn budgets_are_of_a_part_and_a_run() {
        let budget = |part: &str| Budget { part: part.to_owned(), facts_max: 3 };
        let fact = |key: &str| Append {
            topic: &STOCK,
            partition: 0,
            record: Record { key: Bytes::copy_from_slice(key.as_bytes()), value: Bytes::new(), headers: Headers::default(), at_ms: 0 },
        };
        let mut parts = PartsRead::default();
        assert!(!parts.is_spent(&budget("s/a/v")) && !parts.is_spent(&budget("s/ab/v")));
        let facts = ["s/a/v/1", "s/a/v/2", "s/ab/v/1", "s/a/poll", "s/c/v/1", "@run/s"].map(fact);
        let append = |parts: &mut PartsRead| {
            let counts = parts.counts_of(&facts);
            parts.add_appended(counts);
        };
        append(&mut parts);
        assert!(!parts.is_spent(&budget("s/a/v")));
        append(&mut parts);
        assert!(parts.is_spent(&budget("s/a/v")) && !parts.is_spent(&budget("s/ab/v")));
        // Nothing was counted of a part whose budget nobody asked for.
        assert!(!parts.is_spent(&budget("s/c/v")));
        assert!(!PartsRead::default().is_spent(&budget("s/a/v")));
    }

    /// Proves that keys of parts that this run did not read stay missing, and are forgotten after an interruption.
    #[test]
    fn missing_keys_of_unread_parts_stay() {
        let texts = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let parts = |is_continued| PartsRead {
            read: texts(&["s/a/v/"]),
            missing: texts(&["s/a/v/2"]),
            missing_before: texts(&["s/a/v/1", "s/b/v/1"]),
            is_continued,
            ..PartsRead::default()
        };
        assert_eq!(parts(false).missing_after(), ["s/a/v/2", "s/b/v/1"]);
        assert_eq!(parts(true).missing_after(), ["s/a/v/2"]);
    }
}
