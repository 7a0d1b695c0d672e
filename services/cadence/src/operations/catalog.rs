//! The items of a niche at a position, with what answers need of them. A process keeps them for the newest position and brings them up to date
//! from the changes since; for an earlier position they are read, and their catalog is kept for a while.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::record::{DAY_MS, Item, NicheStats, Restock, StoreState, TABLES, VariantRestock, board, gaps, millis, niche_key, store_key};
use feed::Feeds;
use feed::filter::Element;
use feed::follower::{Follower, Label, Structure};
use feed::latest::{LatestAt, PositionKey};
use feed::places::{Segment, Total, Walk};
use feed::position::Position;
use operation::context::{Context, Part, store_problem, stored};
use operation::problem::Problem;
use reads::read::hidden_note;
use schemas::key;
use schemas::position::Seq;
use view_store::View;

use super::prediction::{Basis, missing_share};
use super::report::Report;
use super::words::words;
use crate::rules::CadenceRules;
use feed::RecordFeed;

/// The most items of a niche that are ranked and searched.
const ITEMS_MAX: usize = 5_000;
/// Items that have been observed for a shorter time are not ranked.
const RANKED_FROM_MS: i64 = 14 * DAY_MS;
/// The days that restocks are counted in.
const COUNTED_DAYS: i64 = 90;
/// How many catalogs of earlier positions are kept.
const PAST_MAX: usize = 8;

/// The catalogs that a process keeps.
#[derive(Default)]
pub struct Catalogs {
    niches: Mutex<HashMap<String, Arc<FollowedNiche>>>,
    past: Mutex<Vec<Arc<Catalog>>>,
}

impl Part for Catalogs {}

/// The items of a niche, and the last catalog that was made of them.
#[derive(Default)]
struct FollowedNiche {
    items: Arc<Follower<Items>>,
    newest: LatestAt<PositionKey, Arc<Catalog>>,
}

/// The items of a niche at a position, with the state of their stores and the statistics of the niche.
#[derive(Clone, Debug)]
pub struct Catalog {
    at: PositionKey,
    pub(crate) items: Arc<Items>,
    /// The state of their stores, which does not depend on the position.
    stores: HashMap<String, Arc<StoreState>>,
    /// The statistics of the niche.
    pub(crate) stats: Arc<NicheStats>,
    /// How well forecasts for the items fitted; computed when it is first asked for.
    pub(crate) report: Arc<OnceLock<Report>>,
}

/// The items of a niche.
#[derive(Clone, Debug)]
pub struct Items {
    pub(crate) niche: String,
    /// The last change that they are of.
    seq: Seq,
    /// The items that are at their stores, by id.
    pub(crate) entries: BTreeMap<String, Arc<KnownItem>>,
    /// The ids of the items that operators suppressed by their ids: they have no title, and are neither ranked nor searched.
    hidden: BTreeSet<String>,
    /// How many more items are of suppressed stores. What remains of their ids is the number of the product, which items of several stores can have.
    hidden_of_stores: usize,
    /// Whether the niche has more items than are read.
    is_cut: bool,
}

/// What answers need of an item. Times are in milliseconds since 1970.
#[derive(Clone, Debug)]
pub struct KnownItem {
    /// The host name of its store, slash, the id of the product.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) store: String,
    /// URL of the product's page.
    pub(crate) url: String,
    pub(crate) in_stock: bool,
    /// When a poll last saw that no variant could be bought any more, RFC 3339; empty if none did.
    pub(crate) last_sold_out: String,
    /// The words of title and vendor.
    pub(crate) words: Vec<String>,
    /// The times of the restocks that predictions are made of, oldest first.
    pub(crate) events: Vec<i64>,
    /// The times of the restocks that are no trickles, oldest first.
    counted: Vec<i64>,
    /// The median of the newest gaps between restocks, in hundredths of a day; `None` under two gaps.
    pub(crate) median_gap: Option<i64>,
    pub(crate) first_seen_ms: i64,
    pub(crate) variants: Vec<KnownVariant>,
}

/// What answers need of a variant.
#[derive(Clone, Debug)]
pub(crate) struct KnownVariant {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) is_available: bool,
    /// The times of its restocks, oldest first, in milliseconds since 1970.
    pub(crate) events: Vec<i64>,
}

/// An item on the board.
#[derive(Clone, Debug)]
pub(crate) struct Ranked {
    pub(crate) entry: Arc<KnownItem>,
    /// Restocks in the counted days.
    pub(crate) restocks: usize,
    /// Restocks in 30 observed days, in hundredths.
    pub(crate) per_month: i64,
}

impl KnownItem {
    pub(crate) fn new(item: Item) -> Self {
        let events = item.events();
        let mut counted: Vec<i64> = item.restocks.iter().filter(|restock| !restock.trickle).map(Restock::at_ms).collect();
        counted.sort_unstable();
        let gaps = gaps(&events);
        let newest = crate::forecast::newest(&gaps);
        let median_gap = crate::forecast::median(newest).filter(|_| newest.len() >= 2).map(hundredths);
        let variants = item.variants.into_iter().map(|variant| {
            let mut events: Vec<i64> = variant.restocks.iter().map(VariantRestock::at_ms).collect();
            events.sort_unstable();
            KnownVariant { id: variant.id, title: variant.title, is_available: variant.available, events }
        });
        Self {
            words: words(&[&item.item, &item.vendor]),
            events,
            counted,
            median_gap,
            first_seen_ms: millis(&item.first_seen),
            variants: variants.collect(),
            id: item.id,
            title: item.item,
            store: item.store,
            url: item.url,
            in_stock: item.in_stock,
            last_sold_out: item.last_sold_out,
        }
    }

    /// About how many bytes of memory the item needs.
    fn bytes(&self) -> usize {
        let texts = [&self.title, &self.url].into_iter().chain(&self.words).map(|text| size_of::<String>() + text.len());
        let times = [&self.events, &self.counted].into_iter().chain(self.variants.iter().map(|variant| &variant.events));
        2 * size_of::<Self>() + texts.sum::<usize>() + times.map(|times| size_of::<KnownVariant>() + 8 * times.len()).sum::<usize>()
    }
}

impl Structure for Items {
    /// The niche at a position.
    type Origin = (Arc<Context>, Position, String);
    type Change = Item;

    const NAME: &'static str = "the catalog of items";
    const BYTES_MAX: usize = 512 << 20;
    const BEHIND_MAX: u64 = 2_000;

    async fn begin((ctx, at, niche): Self::Origin, _: Arc<dyn View>, _: Seq) -> Result<(Self, Label), Problem> {
        let list = board(&niche);
        let (mut entries, mut hidden, mut hidden_of_stores) = (BTreeMap::new(), BTreeSet::new(), 0);
        let (mut after, mut is_cut) = (None::<String>, false);
        loop {
            let part = Segment { buckets: 0..=0, ranks: 0..=0 };
            let walk = Walk { list: &list, part, filter: "", limit: 1_000, after: after.as_deref() };
            let page = CadenceRules::FEED.ranked::<Item>(&ctx, &at, walk, None, Total::Counted).await?;
            for item in page.items {
                if is_of_hidden_store(&item) {
                    hidden_of_stores += 1;
                } else if item.suppressed {
                    hidden.insert(item.id);
                } else {
                    entries.insert(item.id.clone(), Arc::new(KnownItem::new(item)));
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
            if entries.len() >= ITEMS_MAX {
                is_cut = true;
                break;
            }
        }
        Ok((Self { niche, seq: at.seq, entries, hidden, hidden_of_stores, is_cut }, Label::of_rows(at.seq)))
    }

    fn read(_: Seq, element: &[u8]) -> Result<Option<Item>, serde_json::Error> {
        let change: Element<Item> = serde_json::from_slice(element)?;
        Ok(Some(change.record))
    }

    fn can_add(&self, changes: &[Item]) -> bool {
        // Which item of a hidden store changed cannot be seen, and so not whether it was counted: all are counted again.
        let is_uncounted = |item: &Item| is_of_hidden_store(item) && (item.niche == self.niche || self.hidden_of_stores > 0);
        !self.is_cut && !changes.iter().any(is_uncounted)
    }

    fn add(&mut self, changes: Vec<Item>, last: Label, _: bool) -> Result<(), Problem> {
        for item in changes {
            self.entries.remove(&item.id);
            self.hidden.remove(&item.id);
            let is_here = item.niche == self.niche && !item.withdrawn;
            if is_here && item.suppressed {
                self.hidden.insert(item.id);
            } else if is_here {
                self.entries.insert(item.id.clone(), Arc::new(KnownItem::new(item)));
            }
        }
        self.is_cut |= self.entries.len() > ITEMS_MAX;
        self.seq = last.seq;
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.entries.values().map(|entry| entry.bytes()).sum()
    }
}

impl Catalog {
    /// Returns the items of a niche at a position.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn of(ctx: &Arc<Context>, at: &Position, niche: &str) -> Result<Arc<Self>, Problem> {
        let catalogs = Catalogs::of(ctx);
        let followed = Arc::clone(lock(&catalogs.niches).entry(niche.to_owned()).or_default());
        let is_here = |known: &&Arc<Self>| known.items.niche == niche && known.at == at.key();
        if let Some(known) = followed.newest.read(&at.key(), Arc::clone).or_else(|| lock(&catalogs.past).iter().find(is_here).cloned()) {
            return Ok(known);
        }
        let reader = Feeds::of(ctx).reader(&CadenceRules::FEED.source, Arc::clone(&at.view));
        let origin = (Arc::clone(ctx), at.clone(), niche.to_owned());
        let mut items = followed.items.at(&reader, at.seq, &origin).await?;
        if items.seq > at.seq {
            // An earlier position has other items, which are read alone.
            items = Arc::new(Items::begin(origin, Arc::clone(&at.view), at.seq).await?.0);
        }
        let catalog = Arc::new(Self::of_items(at, items).await?);
        if at.is_latest() {
            followed.newest.set(at.key(), Arc::clone(&catalog));
        } else {
            let mut past = lock(&catalogs.past);
            past.truncate(PAST_MAX - 1);
            past.insert(0, Arc::clone(&catalog));
        }
        Ok(catalog)
    }

    /// Reads the state of the stores and the statistics.
    async fn of_items(at: &Position, items: Arc<Items>) -> Result<Self, Problem> {
        let table = TABLES.state;
        let mut hosts: Vec<String> = items.entries.values().map(|entry| entry.store.clone()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut keys: Vec<_> = hosts.iter().map(|host| key![store_key(host)]).collect();
        keys.push(key![niche_key(&items.niche)]);
        let mut rows = at.view.get_many(table, &keys).await.map_err(store_problem)?;
        let stats = Arc::new(match rows.pop().flatten() {
            Some(row) => stored::<NicheStats>(table, &row)?,
            None => NicheStats::default(),
        });
        let mut stores = HashMap::new();
        for (host, row) in hosts.into_iter().zip(rows) {
            if let Some(row) = row {
                stores.insert(host, Arc::new(stored::<StoreState>(table, &row)?));
            }
        }
        Ok(Self { at: at.key(), items, stores, stats, report: Arc::default() })
    }

    /// What answers say about the items that they leave out.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let cut = self.items.is_cut.then(|| format!("the niche has more than {ITEMS_MAX} items; the others are left out"));
        cut.into_iter().chain(hidden_note("items", self.items.hidden.len() + self.items.hidden_of_stores))
    }

    /// The state of a store; an empty one if it is unknown.
    pub(crate) fn store(&self, host: &str) -> Arc<StoreState> {
        self.stores.get(host).cloned().unwrap_or_default()
    }

    /// What a prediction from some restocks of an item is made of.
    pub(crate) fn basis<'a>(&self, entry: &KnownItem, events: &'a [i64], now_ms: i64) -> Basis<'a> {
        let store = self.store(&entry.store);
        Basis {
            events,
            first_seen_ms: entry.first_seen_ms,
            last_poll_ms: store.last_complete_before(now_ms + 1).unwrap_or(entry.first_seen_ms),
            poll_gap_ms: store.poll_gap_ms(now_ms),
            missing: missing_share(&store, entry.first_seen_ms, now_ms),
            stats: self.stats.at(now_ms),
            now_ms,
        }
    }

    /// The items on the board at a position, in no order: those that have been observed long enough.
    pub(crate) fn ranked(&self, at: &Position) -> impl Iterator<Item = Ranked> {
        let now_ms = at.now.as_millisecond();
        let last = |(host, store): (&String, &Arc<StoreState>)| Some((host.clone(), store.last_complete_before(now_ms + 1)?));
        let last_polls: HashMap<String, i64> = self.stores.iter().filter_map(last).collect();
        self.items.entries.values().filter_map(move |entry| Ranked::new(entry, *last_polls.get(&entry.store)?, now_ms))
    }

    /// A page of the board at a position, the most often restocked first: the items after a place, and whether more follow.
    pub(crate) fn board(&self, at: &Position, after: Option<(i64, i64, &str)>, limit: usize) -> (Vec<Ranked>, bool) {
        let mut ranked: Vec<Ranked> = self.ranked(at).filter(|item| after.is_none_or(|after| item.rank() > after)).collect();
        let has_more = ranked.len() > limit;
        if has_more {
            // Only the page is sorted.
            ranked.select_nth_unstable_by(limit, |a, b| a.rank().cmp(&b.rank()));
            ranked.truncate(limit);
        }
        ranked.sort_unstable_by(|a, b| a.rank().cmp(&b.rank()));
        (ranked, has_more)
    }
}

impl Ranked {
    /// The place of an item; `None` if it has been observed for too short a time. `last_ms` is the last complete poll of its store.
    fn new(entry: &Arc<KnownItem>, last_ms: i64, now_ms: i64) -> Option<Self> {
        if last_ms - entry.first_seen_ms < RANKED_FROM_MS {
            return None;
        }
        let since_ms = now_ms - COUNTED_DAYS * DAY_MS;
        let restocks = entry.counted.len() - entry.counted.partition_point(|at| *at < since_ms);
        let observed_days = (last_ms - entry.first_seen_ms.max(since_ms)).max(DAY_MS) as f64 / DAY_MS as f64;
        let per_month = hundredths(restocks as f64 * 30.0 / observed_days);
        Some(Self { entry: Arc::clone(entry), restocks, per_month })
    }

    /// The place on the board: the smallest first. No two items have the same.
    pub(crate) fn rank(&self) -> (i64, i64, &str) {
        (-self.per_month, self.entry.median_gap.unwrap_or(i64::MAX), self.entry.id.as_str())
    }
}

/// Whether the store of an item is suppressed: then the item does not name it.
fn is_of_hidden_store(item: &Item) -> bool {
    item.suppressed && item.store.is_empty()
}

#[expect(clippy::cast_possible_truncation, reason = "counts and gaps are small numbers")]
fn hundredths(value: f64) -> i64 {
    (value * 100.0).round() as i64
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use feed::position::position;
    use feed::testing::records::RecordView;
    use feed::testing::{HOUR_MS, START_MS, World};
    use schemas::suppression::{SHOP, SuppressionRow};
    use schemas::tables::Write;
    use schemas::views::accounts::{SUPPRESSIONS, VIEW as ACCOUNTS};

    use super::*;

    fn item(id: &str, withdrawn: bool) -> Item {
        let (store, _) = id.split_once('/').unwrap();
        Item { id: id.to_owned(), store: store.to_owned(), niche: "shoes".to_owned(), withdrawn, ..Item::default() }
    }

    /// Proves that each item of a hidden store is counted, also where stores have products with the same number, and also after items come and go.
    #[tokio::test]
    async fn each_hidden_item_is_counted() {
        let world = World::new().await;
        let ctx = world.context(START_MS + 24 * HOUR_MS);
        let accounts = ctx.store.live(&ACCOUNTS).await.unwrap();
        let mut checkpoint = accounts.checkpoint().await.unwrap();
        checkpoint.seq = checkpoint.seq.next();
        let row = serde_json::to_vec(&SuppressionRow::default()).unwrap();
        let hidden = ["one.example", "two.example"].map(|host| Write::put(&SUPPRESSIONS, key![SHOP.name, host], row.clone().into()));
        accounts.commit(hidden.into(), &checkpoint).await.unwrap();
        let mut items = RecordView::<Item>::new(&*world.store, &TABLES).await;
        let steps: [(&[(&str, bool)], usize); 4] = [
            (&[("one.example/7", false), ("two.example/7", false), ("three.example/7", false)], 2),
            (&[("two.example/7", true)], 1),
            (&[("one.example/8", false), ("two.example/7", false)], 3),
            (&[("three.example/7", true)], 3),
        ];
        for (hour, (changes, expected)) in (1..).zip(steps) {
            for (id, withdrawn) in changes {
                items.change(START_MS + hour * HOUR_MS, &item(id, *withdrawn));
            }
            items.commit().await;
            let at = position(&ctx, &CadenceRules::FEED.source, None).await.unwrap();
            let notes: Vec<String> = Catalog::of(&ctx, &at, "shoes").await.unwrap().notes().collect();
            assert_eq!(notes, [format!("items that are hidden on request and left out: {expected}")], "{hour}");
        }
    }
}
