//! The list of topics: their names, partitions and privacy. Both logs are made from it.

/// What a topic holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicKind {
    /// What upstreams said; chains per key.
    Facts,
    /// What readers asked for; chains per key like facts.
    Commands,
    /// What it means for one service, in one order; one partition; chains as a whole.
    Changes,
    /// Records that could not be mapped or decided.
    Rejects,
    /// What happened to this log itself; stays with it.
    Imports,
}

/// One topic of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name, on both logs.
    pub name: &'static str,
    /// What it holds.
    pub kind: TopicKind,
    /// How many partitions it has, from the first day on.
    pub partitions: u32,
    /// Whether it holds personal data or raw input, and is thus not offered to readers.
    pub private: bool,
}

/// Federal contract awards and the actions on them, as the spending site published them.
pub const AWARDS: Topic = Topic { name: "awards", kind: TopicKind::Facts, partitions: 4, private: false };
/// Filings with the securities regulator, one record a filer.
pub const FILINGS: Topic = Topic { name: "filings", kind: TopicKind::Facts, partitions: 4, private: false };
/// Grants as funders published them.
pub const GRANTS: Topic = Topic { name: "grants", kind: TopicKind::Facts, partitions: 4, private: false };
/// Trades that insiders reported.
pub const INSIDER_TRADES: Topic = Topic { name: "insider_trades", kind: TopicKind::Facts, partitions: 4, private: false };
/// Recalls as agencies published them.
pub const RECALLS: Topic = Topic { name: "recalls", kind: TopicKind::Facts, partitions: 4, private: false };
/// Clinical trials as registries published them.
pub const TRIALS: Topic = Topic { name: "trials", kind: TopicKind::Facts, partitions: 4, private: false };
/// What the API itself was asked to remember: keys, filters, watches.
pub const ACCOUNTS: Topic = Topic { name: "accounts", kind: TopicKind::Commands, partitions: 1, private: true };
/// What became of the messages to webhooks.
pub const DELIVERIES: Topic = Topic { name: "deliveries", kind: TopicKind::Commands, partitions: 1, private: true };
/// Payments that were signed for an answer, and what became of them.
pub const PAYMENTS: Topic = Topic { name: "payments", kind: TopicKind::Commands, partitions: 1, private: true };
/// Requests to the receipt service.
pub const RECEIPTS: Topic = Topic { name: "receipts", kind: TopicKind::Commands, partitions: 1, private: false };
/// Records that no mapping fits, with their raw bytes.
pub const REJECTED: Topic = Topic { name: "rejected", kind: TopicKind::Rejects, partitions: 1, private: true };
/// The awards service's changes.
pub const CHANGES_AWARDS: Topic = Topic { name: "changes.awards", kind: TopicKind::Changes, partitions: 1, private: false };
/// The filings service's changes.
pub const CHANGES_FILINGS: Topic = Topic { name: "changes.filings", kind: TopicKind::Changes, partitions: 1, private: false };
/// The recalls service's changes.
pub const CHANGES_RECALLS: Topic = Topic { name: "changes.recalls", kind: TopicKind::Changes, partitions: 1, private: false };
/// The receipts: the leaves of their tree, in its order.
pub const CHANGES_RECEIPTS: Topic = Topic { name: "changes.receipts", kind: TopicKind::Changes, partitions: 1, private: false };
/// The research service's changes.
pub const CHANGES_RESEARCH: Topic = Topic { name: "changes.research", kind: TopicKind::Changes, partitions: 1, private: false };
/// The accounts' changes.
pub const CHANGES_ACCOUNTS: Topic = Topic { name: "changes.accounts", kind: TopicKind::Changes, partitions: 1, private: true };
/// How far each target of a webhook has been told.
pub const CHANGES_DELIVERIES: Topic = Topic { name: "changes.deliveries", kind: TopicKind::Changes, partitions: 1, private: true };
/// The payments' changes.
pub const CHANGES_PAYMENTS: Topic = Topic { name: "changes.payments", kind: TopicKind::Changes, partitions: 1, private: true };
/// The changes of what accounts keep: saved filters and watches.
pub const CHANGES_WATCHES: Topic = Topic { name: "changes.watches", kind: TopicKind::Changes, partitions: 1, private: true };
/// When copying records of another log into this one began and ended.
pub const IMPORTS: Topic = Topic { name: "imports", kind: TopicKind::Imports, partitions: 1, private: true };

/// THE LIST of topics.
pub const ALL: &[Topic] = &[
    AWARDS,
    FILINGS,
    GRANTS,
    INSIDER_TRADES,
    RECALLS,
    TRIALS,
    ACCOUNTS,
    DELIVERIES,
    PAYMENTS,
    RECEIPTS,
    REJECTED,
    CHANGES_AWARDS,
    CHANGES_FILINGS,
    CHANGES_RECALLS,
    CHANGES_RECEIPTS,
    CHANGES_RESEARCH,
    CHANGES_ACCOUNTS,
    CHANGES_DELIVERIES,
    CHANGES_PAYMENTS,
    CHANGES_WATCHES,
    IMPORTS,
];

/// The topic of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Topic> {
    ALL.iter().find(|topic| topic.name == name)
}

impl Topic {
    /// The partition of a key: Kafka's default partitioner (murmur2, positive, modulo), the same on both logs.
    #[must_use]
    pub fn partition_of(&self, key: &[u8]) -> u32 {
        if self.partitions <= 1 { 0 } else { (murmur2(key) & 0x7fff_ffff) % self.partitions }
    }
}

/// The 32-bit murmur2 of Kafka's Java client.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h: u32 = 0x9747_b28c ^ u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut chunks = data.chunks_exact(4);
    for chunk in &mut chunks {
        let mut k = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        for (i, byte) in rest.iter().enumerate() {
            h ^= u32::from(*byte) << (8 * i);
        }
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that keys land where Kafka's own clients put them (values from Kafka's published test of its murmur2).
    #[test]
    fn partitioner_is_kafkas() {
        for (key, hash) in
            [("21", -973_932_308_i32), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536), ("abc", 479_470_107)]
        {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }
}
