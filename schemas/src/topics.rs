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

/// Makes THE LIST of topics, and of each topic its constant and its current schema, which is the file of its name in `schemas/avro`.
macro_rules! topics {
    ($($(#[$doc:meta])+ $constant:ident = $kind:ident { name: $name:literal, partitions: $partitions:literal, private: $private:literal };)+) => {
        $($(#[$doc])+ pub const $constant: Topic =
            Topic { name: $name, kind: TopicKind::$kind, partitions: $partitions, private: $private };)+

        /// THE LIST of topics.
        pub const ALL: &[Topic] = &[$($constant),+];

        /// The current schema of each topic, after its name and in the order of [`ALL`].
        pub(crate) const SCHEMAS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../avro/", $name, ".avsc")))),+];
    };
}

topics! {
    /// Federal contract awards and the actions on them, as the spending site published them.
    AWARDS = Facts { name: "awards", partitions: 4, private: false };
    /// Businesses, or events of them, as registers of states published them.
    BUSINESSES = Facts { name: "businesses", partitions: 4, private: false };
    /// Motor carriers, their authorities and their filings of insurance, as the regulator published them.
    CARRIERS = Facts { name: "carriers", partitions: 4, private: false };
    /// Annual reports of companies, and obligations to their parents by fiscal year.
    COMPANY_FACTS = Facts { name: "company_facts", partitions: 4, private: false };
    /// Documents about airworthiness directives as the journal published them.
    DIRECTIVES = Facts { name: "directives", partitions: 4, private: false };
    /// Rows of the list of parties that are excluded from federal awards, as the list published them.
    EXCLUSIONS = Facts { name: "exclusions", partitions: 4, private: false };
    /// Filings with the securities regulator, one record per filer.
    FILINGS = Facts { name: "filings", partitions: 4, private: false };
    /// Grants as funders published them.
    GRANTS = Facts { name: "grants", partitions: 4, private: false };
    /// Trades that company insiders reported.
    INSIDER_TRADES = Facts { name: "insider_trades", partitions: 4, private: false };
    /// Tax liens of parcels as courts published them, with their current status.
    LIENS = Facts { name: "liens", partitions: 4, private: false };
    /// Case files of trademarks as the register published them.
    MARKS = Facts { name: "marks", partitions: 4, private: false };
    /// Notices of meetings, as journals published them.
    MEETINGS = Facts { name: "meetings", partitions: 4, private: false };
    /// Stories and page views as sites published them, and the hours and days that were read of them. One partition, so that the fact of an hour
    /// follows those of its stories.
    MENTIONS = Facts { name: "mentions", partitions: 1, private: false };
    /// Parcels as assessors published them, and which assessments are complete. One partition, so that the fact of a cycle follows the values that it is
    /// about.
    PARCELS = Facts { name: "parcels", partitions: 1, private: false };
    /// Permits for construction as assessors and cities published them, one record for each parcel.
    PERMITS = Facts { name: "permits", partitions: 4, private: false };
    /// Recalls as agencies published them.
    RECALLS = Facts { name: "recalls", partitions: 4, private: false };
    /// Sales of parcels as assessors published them, and the townships that were read. One partition, so that the fact of a township follows its sales.
    SALES = Facts { name: "sales", partitions: 1, private: false };
    /// Statements of companies in filings, and the ticker symbols of companies.
    STATEMENTS = Facts { name: "statements", partitions: 4, private: false };
    /// Availability of products as stores published it, and the polls of the stores. One partition, so that the fact of a poll follows those of
    /// the variants that it saw.
    STOCK = Facts { name: "stock", partitions: 1, private: false };
    /// Clinical trials as registries published them.
    TRIALS = Facts { name: "trials", partitions: 4, private: false };
    /// Requests about accounts: keys, saved filters, watches, fleets.
    ACCOUNTS = Commands { name: "accounts", partitions: 1, private: true };
    /// The outcomes of webhook deliveries.
    DELIVERIES = Commands { name: "deliveries", partitions: 1, private: true };
    /// Payments that were signed for an answer, and their outcomes.
    PAYMENTS = Commands { name: "payments", partitions: 1, private: true };
    /// Requests to the receipt service.
    RECEIPTS = Commands { name: "receipts", partitions: 1, private: false };
    /// Records that no mapping could read, with their raw bytes.
    REJECTED = Rejects { name: "rejected", partitions: 1, private: true };
    /// The aviation service's changes.
    CHANGES_AVIATION = Changes { name: "changes.aviation", partitions: 1, private: false };
    /// The awards service's changes.
    CHANGES_AWARDS = Changes { name: "changes.awards", partitions: 1, private: false };
    /// The cadence service's changes.
    CHANGES_CADENCE = Changes { name: "changes.cadence", partitions: 1, private: false };
    /// The catalysts service's changes.
    CHANGES_CATALYSTS = Changes { name: "changes.catalysts", partitions: 1, private: false };
    /// The coverage service's changes.
    CHANGES_COVERAGE = Changes { name: "changes.coverage", partitions: 1, private: false };
    /// The exclusions service's changes.
    CHANGES_EXCLUSIONS = Changes { name: "changes.exclusions", partitions: 1, private: false };
    /// The filings service's changes.
    CHANGES_FILINGS = Changes { name: "changes.filings", partitions: 1, private: false };
    /// The labs service's changes.
    CHANGES_LABS = Changes { name: "changes.labs", partitions: 1, private: false };
    /// The names service's changes.
    CHANGES_NAMES = Changes { name: "changes.names", partitions: 1, private: false };
    /// The parcels service's changes.
    CHANGES_PARCELS = Changes { name: "changes.parcels", partitions: 1, private: false };
    /// The phrases service's changes.
    CHANGES_PHRASES = Changes { name: "changes.phrases", partitions: 1, private: false };
    /// The recalls service's changes.
    CHANGES_RECALLS = Changes { name: "changes.recalls", partitions: 1, private: false };
    /// The issued receipts: the leaves of their Merkle tree, in the tree's order.
    CHANGES_RECEIPTS = Changes { name: "changes.receipts", partitions: 1, private: false };
    /// The research service's changes.
    CHANGES_RESEARCH = Changes { name: "changes.research", partitions: 1, private: false };
    /// The changes of accounts and keys.
    CHANGES_ACCOUNTS = Changes { name: "changes.accounts", partitions: 1, private: true };
    /// The changes of deliveries: how far each webhook target has received its service's feed.
    CHANGES_DELIVERIES = Changes { name: "changes.deliveries", partitions: 1, private: true };
    /// The changes of payments.
    CHANGES_PAYMENTS = Changes { name: "changes.payments", partitions: 1, private: true };
    /// The changes of accounts' saved items: saved filters, watches and fleets.
    CHANGES_WATCHES = Changes { name: "changes.watches", partitions: 1, private: true };
    /// The start and end of each copy of another log's records into this one.
    IMPORTS = Imports { name: "imports", partitions: 1, private: true };
}

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
