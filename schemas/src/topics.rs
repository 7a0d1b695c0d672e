//! The list of topics with their names, partition counts and privacy. Both logs create their topics from it.

/// What a topic holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicKind {
    /// Records that upstreams published. Chained per key.
    Facts,
    /// Requests that the API appends. Chained per key, like facts.
    Commands,
    /// Changes of one service in one order: a single partition, chained as a whole.
    Changes,
    /// Records that could not be mapped or decided.
    Rejects,
    /// Events of this log itself, which no copy of the log takes over.
    Imports,
}

/// One topic of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The name of the topic, on both logs.
    pub name: &'static str,
    /// What the topic holds.
    pub kind: TopicKind,
    /// The number of partitions. It never changes.
    pub partitions: u32,
    /// Whether the topic holds personal data or raw input. Private topics are not offered to readers.
    pub private: bool,
}

/// Federal contract awards and the actions on them, as the spending site published them.
pub const AWARDS: Topic = Topic { name: "awards", kind: TopicKind::Facts, partitions: 4, private: false };
/// Businesses, or events of them, as registers of states published them.
pub const BUSINESSES: Topic = Topic { name: "businesses", kind: TopicKind::Facts, partitions: 4, private: false };
/// Motor carriers, their authorities and their filings of insurance, as the regulator published them.
pub const CARRIERS: Topic = Topic { name: "carriers", kind: TopicKind::Facts, partitions: 4, private: false };
/// Annual reports of companies, and obligations to their parents by fiscal year.
pub const COMPANY_FACTS: Topic = Topic { name: "company_facts", kind: TopicKind::Facts, partitions: 4, private: false };
/// Documents about airworthiness directives as the journal published them.
pub const DIRECTIVES: Topic = Topic { name: "directives", kind: TopicKind::Facts, partitions: 4, private: false };
/// Rows of the list of parties that are excluded from federal awards, as the list published them.
pub const EXCLUSIONS: Topic = Topic { name: "exclusions", kind: TopicKind::Facts, partitions: 4, private: false };
/// Filings with the securities regulator, one record per filer.
pub const FILINGS: Topic = Topic { name: "filings", kind: TopicKind::Facts, partitions: 4, private: false };
/// Grants as funders published them.
pub const GRANTS: Topic = Topic { name: "grants", kind: TopicKind::Facts, partitions: 4, private: false };
/// Trades that company insiders reported.
pub const INSIDER_TRADES: Topic = Topic { name: "insider_trades", kind: TopicKind::Facts, partitions: 4, private: false };
/// Tax liens of parcels as courts published them, with their current status.
pub const LIENS: Topic = Topic { name: "liens", kind: TopicKind::Facts, partitions: 4, private: false };
/// Case files of trademarks as the register published them.
pub const MARKS: Topic = Topic { name: "marks", kind: TopicKind::Facts, partitions: 4, private: false };
/// Notices of meetings, as journals published them.
pub const MEETINGS: Topic = Topic { name: "meetings", kind: TopicKind::Facts, partitions: 4, private: false };
/// Stories and page views as sites published them, and the hours and days that were read of them. One partition, so that the fact of an hour
/// follows those of its stories.
pub const MENTIONS: Topic = Topic { name: "mentions", kind: TopicKind::Facts, partitions: 1, private: false };
/// Parcels as assessors published them, and which assessments are complete. One partition, so that the fact of a cycle follows the values that it is
/// about.
pub const PARCELS: Topic = Topic { name: "parcels", kind: TopicKind::Facts, partitions: 1, private: false };
/// Permits for construction as assessors and cities published them, one record for each parcel.
pub const PERMITS: Topic = Topic { name: "permits", kind: TopicKind::Facts, partitions: 4, private: false };
/// Recalls as agencies published them.
pub const RECALLS: Topic = Topic { name: "recalls", kind: TopicKind::Facts, partitions: 4, private: false };
/// Sales of parcels as assessors published them, and the townships that were read. One partition, so that the fact of a township follows its sales.
pub const SALES: Topic = Topic { name: "sales", kind: TopicKind::Facts, partitions: 1, private: false };
/// Statements of companies in filings, and the ticker symbols of companies.
pub const STATEMENTS: Topic = Topic { name: "statements", kind: TopicKind::Facts, partitions: 4, private: false };
/// Availability of products as stores published it, and the polls of the stores. One partition, so that the fact of a poll follows those of
/// the variants that it saw.
pub const STOCK: Topic = Topic { name: "stock", kind: TopicKind::Facts, partitions: 1, private: false };
/// Clinical trials as registries published them.
pub const TRIALS: Topic = Topic { name: "trials", kind: TopicKind::Facts, partitions: 4, private: false };
/// Requests about accounts: keys, saved filters, watches, fleets.
pub const ACCOUNTS: Topic = Topic { name: "accounts", kind: TopicKind::Commands, partitions: 1, private: true };
/// The outcomes of webhook deliveries.
pub const DELIVERIES: Topic = Topic { name: "deliveries", kind: TopicKind::Commands, partitions: 1, private: true };
/// Payments that were signed for an answer, and their outcomes.
pub const PAYMENTS: Topic = Topic { name: "payments", kind: TopicKind::Commands, partitions: 1, private: true };
/// Requests to the receipt service.
pub const RECEIPTS: Topic = Topic { name: "receipts", kind: TopicKind::Commands, partitions: 1, private: false };
/// Records that no mapping could read, with their raw bytes.
pub const REJECTED: Topic = Topic { name: "rejected", kind: TopicKind::Rejects, partitions: 1, private: true };
/// The aviation service's changes.
pub const CHANGES_AVIATION: Topic = Topic { name: "changes.aviation", kind: TopicKind::Changes, partitions: 1, private: false };
/// The awards service's changes.
pub const CHANGES_AWARDS: Topic = Topic { name: "changes.awards", kind: TopicKind::Changes, partitions: 1, private: false };
/// The cadence service's changes.
pub const CHANGES_CADENCE: Topic = Topic { name: "changes.cadence", kind: TopicKind::Changes, partitions: 1, private: false };
/// The catalysts service's changes.
pub const CHANGES_CATALYSTS: Topic = Topic { name: "changes.catalysts", kind: TopicKind::Changes, partitions: 1, private: false };
/// The coverage service's changes.
pub const CHANGES_COVERAGE: Topic = Topic { name: "changes.coverage", kind: TopicKind::Changes, partitions: 1, private: false };
/// The exclusions service's changes.
pub const CHANGES_EXCLUSIONS: Topic = Topic { name: "changes.exclusions", kind: TopicKind::Changes, partitions: 1, private: false };
/// The filings service's changes.
pub const CHANGES_FILINGS: Topic = Topic { name: "changes.filings", kind: TopicKind::Changes, partitions: 1, private: false };
/// The labs service's changes.
pub const CHANGES_LABS: Topic = Topic { name: "changes.labs", kind: TopicKind::Changes, partitions: 1, private: false };
/// The names service's changes.
pub const CHANGES_NAMES: Topic = Topic { name: "changes.names", kind: TopicKind::Changes, partitions: 1, private: false };
/// The parcels service's changes.
pub const CHANGES_PARCELS: Topic = Topic { name: "changes.parcels", kind: TopicKind::Changes, partitions: 1, private: false };
/// The phrases service's changes.
pub const CHANGES_PHRASES: Topic = Topic { name: "changes.phrases", kind: TopicKind::Changes, partitions: 1, private: false };
/// The recalls service's changes.
pub const CHANGES_RECALLS: Topic = Topic { name: "changes.recalls", kind: TopicKind::Changes, partitions: 1, private: false };
/// The issued receipts: the leaves of their Merkle tree, in the tree's order.
pub const CHANGES_RECEIPTS: Topic = Topic { name: "changes.receipts", kind: TopicKind::Changes, partitions: 1, private: false };
/// The research service's changes.
pub const CHANGES_RESEARCH: Topic = Topic { name: "changes.research", kind: TopicKind::Changes, partitions: 1, private: false };
/// The changes of accounts and keys.
pub const CHANGES_ACCOUNTS: Topic = Topic { name: "changes.accounts", kind: TopicKind::Changes, partitions: 1, private: true };
/// The changes of deliveries: how far each webhook target has received its service's feed.
pub const CHANGES_DELIVERIES: Topic = Topic { name: "changes.deliveries", kind: TopicKind::Changes, partitions: 1, private: true };
/// The changes of payments.
pub const CHANGES_PAYMENTS: Topic = Topic { name: "changes.payments", kind: TopicKind::Changes, partitions: 1, private: true };
/// The changes of accounts' saved items: saved filters, watches and fleets.
pub const CHANGES_WATCHES: Topic = Topic { name: "changes.watches", kind: TopicKind::Changes, partitions: 1, private: true };
/// The start and end of each copy of another log's records into this one.
pub const IMPORTS: Topic = Topic { name: "imports", kind: TopicKind::Imports, partitions: 1, private: true };

/// THE LIST of topics.
pub const ALL: &[Topic] = &[
    AWARDS,
    BUSINESSES,
    CARRIERS,
    COMPANY_FACTS,
    DIRECTIVES,
    EXCLUSIONS,
    FILINGS,
    GRANTS,
    INSIDER_TRADES,
    LIENS,
    MARKS,
    MEETINGS,
    MENTIONS,
    PARCELS,
    PERMITS,
    RECALLS,
    SALES,
    STATEMENTS,
    STOCK,
    TRIALS,
    ACCOUNTS,
    DELIVERIES,
    PAYMENTS,
    RECEIPTS,
    REJECTED,
    CHANGES_AVIATION,
    CHANGES_AWARDS,
    CHANGES_CADENCE,
    CHANGES_CATALYSTS,
    CHANGES_COVERAGE,
    CHANGES_EXCLUSIONS,
    CHANGES_FILINGS,
    CHANGES_LABS,
    CHANGES_NAMES,
    CHANGES_PARCELS,
    CHANGES_PHRASES,
    CHANGES_RECALLS,
    CHANGES_RECEIPTS,
    CHANGES_RESEARCH,
    CHANGES_ACCOUNTS,
    CHANGES_DELIVERIES,
    CHANGES_PAYMENTS,
    CHANGES_WATCHES,
    IMPORTS,
];

/// Returns the topics whose records are chained per key: facts and commands.
pub fn fact_topics() -> impl Iterator<Item = &'static Topic> {
    ALL.iter().filter(|topic| matches!(topic.kind, TopicKind::Facts | TopicKind::Commands))
}

/// Returns the topic with a name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Topic> {
    ALL.iter().find(|topic| topic.name == name)
}

impl Topic {
    /// Returns the partition of a key: Kafka's default partitioner (murmur2, positive, modulo), the same on both logs.
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

    /// Proves that keys map to the partitions that Kafka's own clients choose (values from Kafka's published test of its murmur2).
    #[test]
    fn partitioner_is_kafkas() {
        for (key, hash) in
            [("21", -973_932_308_i32), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536), ("abc", 479_470_107)]
        {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }
}
