//! Watches of a name for 12 months: what they select, how they are sold, and what their webhooks receive.

use std::sync::LazyLock;

use crate::record::{Trademark, TrademarkDetails};
use feed::filter::Element;
use marks::index::{mark_keys, watched_keys};
use operation::problem::Problem;
use operation::{Answer, Call, Operation, Stage};
use schemars::JsonSchema;
use schemas::position::Seq;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::check;
use super::filter::{ALIASES, Filter};
use super::similar::{SimilarMark, Wanted};
use super::watchable_feed::{Names, WatchedEntity};
use reads::read;
use reads::yearly::SoldWatches;

/// A change of a trademark that is similar to a watched name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimilarChange {
    /// The mark after the change, and why it is similar.
    #[serde(flatten)]
    pub mark: SimilarMark,
    /// What the change says of the status.
    #[serde(flatten)]
    pub details: TrademarkDetails,
    /// What happened: `new` or `modified`.
    pub event: String,
    /// The number of the change within the service.
    pub seq: Seq,
    /// When the change was recorded, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub recorded_at: String,
}

/// The check whose answer is the preview.
static CHECK: LazyLock<Operation> = LazyLock::new(read::operation::<check::Arguments>);

impl SoldWatches for Names {
    type Match = SimilarChange;
    type Prepared = Option<Wanted>;

    const OPERATION: &'static str = "watch_portfolio";
    const SUMMARY: &'static str = "Adds a name to a 12-month watch: every new or changed US trademark that is similar to it.";
    const WHEN: &'static str = "Use it after choosing a name, to learn of similar applications in time.";
    const DESCRIPTION: &'static str = "A match is a change of a mark that is not dead and that a rule of the check makes similar: at least `minTier`, in one of the \
        classes. Poll `watch_matches`, or give a `webhook`: it receives `{event, watch, marks}`, signed as Standard Webhooks define it. A caller without \
        a key gets a `token`, shown in this answer only, which alone opens the watch; send it in the header `X-Watch-Token`. With an \
        `Idempotency-Key`, nobody who sees the payment on the chain can ask for the answer again. The same name and classes bought again, with the \
        key or the token, renew the watch: `until` moves by 12 calendar months. A watch that ended can be read for 30 more days. There is no refund.";
    const MICROS: u64 = 5_000_000;
    const MONTHS: i64 = 12;
    const EVENT: &'static str = "names.similar";
    const MESSAGE_LIST: &'static str = "marks";
    const CHANGES_MAX: usize = 20;
    const ALIASES: &'static [(&'static str, &'static str)] = ALIASES;

    fn renewed_by(entity: &WatchedEntity) -> String {
        let name = marks::Mark::new(&entity.name).map_or_else(|| entity.name.clone(), |name| name.normal());
        format!("{name}/{:?}", entity.class.numbers())
    }

    fn renewed(given: WatchedEntity, active: WatchedEntity) -> WatchedEntity {
        WatchedEntity { min_tier: given.min_tier.or(active.min_tier), ..active }
    }

    fn in_message(entity: &WatchedEntity) -> Map<String, Value> {
        Map::from_iter([("name".to_owned(), json!(entity.name)), ("class".to_owned(), json!(entity.class))])
    }

    fn prepare(filter: &Filter) -> Option<Wanted> {
        filter.wanted()
    }

    fn selects(wanted: &Option<Wanted>, change: &Element<Trademark>) -> bool {
        wanted.as_ref().is_some_and(|wanted| wanted.is_similar(&change.record))
    }

    fn matched(wanted: &Option<Wanted>, change: Element<Trademark>) -> Option<SimilarChange> {
        let similarity = wanted.as_ref()?.similarity(&change.record)?;
        let Element { event, seq, recorded_at, details, record, .. } = change;
        Some(SimilarChange { mark: SimilarMark::new(record, similarity), details, event, seq, recorded_at })
    }

    async fn preview(call: Call, entity: WatchedEntity) -> Result<Answer, Problem> {
        let mut arguments = json!({ "name": entity.name });
        if !entity.class.is_empty() {
            arguments["class"] = json!(entity.class);
        }
        (CHECK.run)(Call { stage: Stage::Whole, ..call }, arguments).await
    }

    fn filter_keys(wanted: &Option<Wanted>) -> Option<Vec<u64>> {
        Some(wanted.as_ref().map(|wanted| watched_keys(wanted.name())).unwrap_or_default())
    }

    fn change_keys(change: &Element<Trademark>) -> Vec<u64> {
        if change.record.counts() { mark_keys(&change.record.mark, &change.record.pseudo_marks) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use feed::filter::Filter as _;

    use super::*;

    /// Proves that a renewal leaves the watch as it is, except for what it names.
    #[test]
    fn a_renewal_changes_what_it_names() {
        let entity_from = |json: Value| -> WatchedEntity { serde_json::from_value(json).unwrap() };
        let active = json!({ "name": "Fablehaven", "class": [9], "minTier": "partial" });
        for (given, least) in [
            (json!({ "name": "FABLEHAVEN", "class": 9 }), "partial"),
            (json!({ "name": "Fablehaven", "class": 9, "minTier": "exact" }), "exact"),
        ] {
            let renewed = json!(Names::renewed(entity_from(given.clone()), entity_from(active.clone())));
            assert_eq!(renewed, json!({ "name": "Fablehaven", "class": [9], "minTier": least }), "{given}");
        }
    }

    /// Proves in small what a day does: of many watches and many changes, the keys find each pair that a comparison of all with all finds, once, and few
    /// others.
    #[test]
    fn a_day_reaches_each_watch_once() {
        const STARTS: [&str; 8] = ["VEL", "MOR", "NIM", "QUIL", "TAS", "BREN", "KOR", "LUT"];
        const ENDS: [&str; 8] = ["TRAXON", "VANDA", "BARRO", "BRISK", "ELLIN", "DOVAR", "AXAL", "UMINO"];
        let word = |at: usize| format!("{}{}", STARTS[at % 8], ENDS[at / 8 % 8]);
        let watched: Vec<Option<Wanted>> =
            (0..64).map(|at| Names::prepare(&Filter { name: Some(word(at)), ..Filter::default() }.normalize().unwrap())).collect();
        let changes: Vec<Element<Trademark>> = (0..256)
            .map(|at| {
                // The words of the watches, as they are, with another last letter, in another mark, and two in one.
                let mark = match at / 64 {
                    0 => word(at),
                    1 => format!("{}U", word(at)),
                    2 => format!("GLOBAL {} TECH", word(at)),
                    _ => format!("{} {}", word(at), word(at * 7 + 3)),
                };
                let status = if at % 5 == 0 { "dead" } else { "live" };
                let record = json!({ "serial": format!("{:08}", 97_000_000 + at), "mark": mark, "status": status });
                serde_json::from_value(json!({ "event": "new", "seq": at + 1, "recordedAt": "", "record": record })).unwrap()
            })
            .collect();
        let mut by_key: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, wanted) in watched.iter().enumerate() {
            for key in Names::filter_keys(wanted).unwrap() {
                by_key.entry(key).or_default().push(at);
            }
        }
        let (mut compared, mut matched, mut expected) = (0, Vec::new(), Vec::new());
        for change in &changes {
            let candidates: BTreeSet<usize> =
                Names::change_keys(change).iter().filter_map(|key| by_key.get(key)).flatten().copied().collect();
            compared += candidates.len();
            matched.extend(candidates.into_iter().filter(|at| Names::selects(&watched[*at], change)).map(|at| (change.seq, at)));
            expected.extend((0..watched.len()).filter(|at| Names::selects(&watched[*at], change)).map(|at| (change.seq, at)));
        }
        assert_eq!(matched, expected);
        assert!(matched.len() >= 200 && compared < watched.len() * changes.len() / 2, "{} of {compared}", matched.len());
    }

    /// Proves that the keys by which watches are found lose no match, whatever the length of the name: of one word, of many, and of the longest
    /// that is allowed.
    #[test]
    fn long_names_are_found_by_their_keys() {
        let longest = "abcdefghi ".repeat(10);
        for (name, mark) in [
            ("Turcool", "TRUCOOL"),
            ("We make the very best coffee in town", "WE MAKE THE VERY BEST COFFEE IN TOWN"),
            ("Town in coffee best very the make we", "WE MAKE THE VERY BEST COFFEE IN TOWN"),
            ("The quick brown fox jumps over lazy dogs daily", "THE QUICK BROWN FOX JUMPS OVER LAZY DOG DAILY"),
            (longest.trim(), "ABCDEFGHI ABCDEFGHI ABCDEFGHI ABCDEFGHI ABCDEFGHI ABCDEFGHI ABCDEFGHI ABCDEFGHI ABCDEFGHI ABCDEFGHJ"),
        ] {
            let filter = Filter { name: Some(name.to_owned()), ..Filter::default() }.normalize().unwrap();
            let change = json!({
                "event": "new", "seq": 1, "recordedAt": "", "record": { "serial": "97000001", "mark": mark, "status": "live" }
            });
            let change: Element<Trademark> = serde_json::from_value(change).unwrap();
            let wanted = Names::prepare(&filter);
            assert!(Names::selects(&wanted, &change), "{name}");
            let (asked, stored) = (Names::filter_keys(&wanted).unwrap(), Names::change_keys(&change));
            assert!(asked.iter().any(|key| stored.contains(key)), "{name}");
            assert!(Names::matched(&wanted, change).is_some(), "{name}");
        }
    }
}
