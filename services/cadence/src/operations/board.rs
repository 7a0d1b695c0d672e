//! `GET /v1/board`: the items of a niche, the most often restocked first.

use feed::cursor;
use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use schemas::error_code::ErrorCode;
use schemas::position::Seq;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::catalog::{Catalog, Ranked};
use super::filter::Filter;
use super::niches::{KnownNiche, niche};
use super::polled_through::PolledThrough;
use super::watchable_feed::Cadence;
use crate::rules::CadenceRules;
use fold::records::Rules;
use reads::number::Number;
use reads::read::{Read, Reader};

/// Arguments of `cadence_board`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The key of a niche, see `list_niches`.
    #[schemars(length(min = 1, max = 100))]
    pub niche: String,
    /// Where to continue: the `next` of an earlier page.
    #[schemars(length(min = 1, max = 2000))]
    pub after: Option<String>,
}

/// A page of a board.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Board {
    /// The key of the niche.
    pub niche: String,
    /// The name of the niche for people.
    pub label: String,
    /// The day of the last complete run, YYYY-MM-DD; empty before the first.
    pub updated: String,
    /// The number of items on this page.
    pub count: usize,
    /// Send it as `after` to get the next page; null at the end.
    pub next: Option<String>,
    /// The items, the most often restocked first.
    pub items: Vec<BoardItem>,
    /// How completely the stores have been polled.
    #[serde(flatten)]
    pub polled: PolledThrough,
}

/// An item on a board.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardItem {
    /// The host name of the store, slash, the id of the product.
    pub id: String,
    /// Title.
    pub item: String,
    /// The host name of the store.
    pub store: String,
    /// The key of the niche.
    pub niche: String,
    /// The number of restocks in the last 90 days.
    pub restocks: usize,
    /// Restocks per 30 observed days, over the last 90 days.
    pub per_month: Number,
    /// The median of the days between two restocks; null if there are fewer than three.
    pub median_gap_days: Option<Number>,
    /// The last restock: the middle of its interval, RFC 3339; empty if there is none.
    pub last_restock: String,
    /// Whether any variant can be bought.
    pub in_stock: bool,
    /// URL of the product's page.
    pub url: String,
}

impl BoardItem {
    fn new(ranked: &Ranked, niche: &str) -> Self {
        let entry = &ranked.entry;
        Self {
            id: entry.id.clone(),
            item: entry.title.clone(),
            store: entry.store.clone(),
            niche: niche.to_owned(),
            restocks: ranked.restocks,
            per_month: Number::hundredths(ranked.per_month),
            median_gap_days: entry.median_gap.map(Number::hundredths),
            last_restock: entry.events.last().map_or_else(String::new, |at| rfc3339(*at)),
            in_stock: entry.in_stock,
            url: entry.url.clone(),
        }
    }
}

/// The place after which a page starts: the rank of the last item before it.
#[derive(Debug, Serialize, Deserialize)]
struct PageStart {
    per_month: i64,
    median_gap: i64,
    id: String,
}

impl Read for Arguments {
    type Service = Cadence;
    type Answer = Board;

    const LIMIT: Option<usize> = Some(50);

    fn definition() -> Definition {
        Definition {
            name: "cadence_board",
            path: "/v1/board",
            when: "Use it to see which items are restocked often.",
            summary: "The items of a niche, ranked by restock frequency.",
            description: "A restock is seen between the last poll that saw a variant sold out and the first that saw it available again; variants \
                of one product that one poll sees restocked are one restock. A single variant that the next poll sees sold out again does not \
                count. Order: `perMonth`, the highest first; then `medianGapDays`, the shortest first, null last; then `id`. Items that have \
                been observed for less than 14 days are not ranked.",
            list: "items",
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "niche": "sneakers", "limit": 10 }),
            ..Definition::read()
        }
    }

    async fn answer(mut self, _filter: Filter, reader: &mut Reader<Cadence>) -> Result<Board, Problem> {
        let (key, KnownNiche { label, .. }) = niche(reader.context(), &reader.at, &self.niche).await?;
        self.niche = key;
        let (ctx, search) = (reader.context(), format!("board/{}", self.niche));
        let read = |text| cursor::read_place::<PageStart>(&ctx.secrets, CadenceRules::NAME, &search, text);
        let after = self.after.as_deref().map(read).transpose()?.map(|(_, place)| place);
        let catalog = Catalog::of(reader.context(), &reader.at, &self.niche).await?;
        catalog.notes().for_each(|note| reader.note(note));
        let after = after.as_ref().map(|place| (place.per_month, place.median_gap, place.id.as_str()));
        let limit = reader.limit();
        let (shown, has_more) = catalog.board(&reader.at, after, limit);
        let last = shown.last().filter(|_| has_more);
        let next = last.map(|item| {
            let (per_month, median_gap, id) = item.rank();
            let place = PageStart { per_month, median_gap, id: id.to_owned() };
            cursor::encode_place(&reader.context().secrets, CadenceRules::NAME, Seq(0), &search, &place)
        });
        let items: Vec<BoardItem> = shown.iter().map(|ranked| BoardItem::new(ranked, &self.niche)).collect();
        Ok(Board {
            niche: self.niche,
            label,
            updated: reader.updated().await?,
            count: items.len(),
            next,
            items,
            polled: PolledThrough::read(reader).await?,
        })
    }
}
