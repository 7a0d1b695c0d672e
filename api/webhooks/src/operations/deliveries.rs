//! `GET …/{id}/deliveries`: the delivery status of a webhook, and its attempts, page by page.

use operation::context::{store_problem, stored};
use operation::problem::Problem;
use operation::{Answer, Call, Definition, Operation};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::views::deliveries::{Delivery, TABLES};
use schemas::views::records::Row;
use serde::{Deserialize, Serialize};
use serde_json::json;
use view_store::{Range, View};

use super::{DeliveryStatus, WebhookConfig, state_row, target};

/// How many attempts a page has by default.
const LIMIT_DEFAULT: usize = 100;
/// How many states of a webhook are read at once.
const PAGE_ROWS: usize = 200;
/// The most states that one call reads. A page may be shorter then, and continues.
const ROWS_MAX: usize = 2_000;

/// Arguments of `webhook_deliveries`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Id of the webhook.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// How many attempts to return at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: usize,
    /// The `next` of an earlier answer, to get earlier attempts.
    #[schemars(range(min = 1))]
    pub after: Option<Seq>,
}

fn limit_default() -> usize {
    LIMIT_DEFAULT
}

/// A delivery attempt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// `webhook-id` of the message.
    pub message: String,
    /// Number of the attempt, starting at 1.
    pub attempt: u64,
    /// When the attempt ended, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub at: String,
    /// HTTP status of the response; 0 if there was none.
    pub status: u16,
    /// Why the attempt failed; empty if the message was accepted.
    pub reason: String,
}

/// The delivery status of a webhook, and a page of its attempts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deliveries {
    /// The delivery status.
    #[serde(flatten)]
    pub status: DeliveryStatus,
    /// Attempts, newest first.
    pub deliveries: Vec<Attempt>,
    /// Send it as `after` to get earlier attempts; null if there are none.
    pub next: Option<Seq>,
}

/// Defines the operation.
#[must_use]
pub fn operation(config: WebhookConfig, path: &'static str) -> Operation {
    let definition = Definition {
        name: "webhook_deliveries",
        path,
        summary: "The delivery status of a webhook, and its attempts with the reasons of failures, newest first.",
        description: "A message that the receiver does not accept with a 2xx status is retried after about 5 s, then after pauses that grow to half a day, \
                    for three days in total. Then the message is skipped and delivery continues with the next one. A 410 response, or five days in which no \
                    message is accepted, disables the webhook; `replay_webhook` resumes it. Page with `after`.",
        price: config.price(),
        list: "deliveries",
        errors: &[ErrorCode::NotFound],
        example: json!({ "id": "watch_0123456789abcdef01234567" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, Deliveries, _, _>(definition, move |call, arguments| answer(call, arguments, config))
}

async fn answer(call: Call, arguments: Arguments, config: WebhookConfig) -> Result<Answer, Problem> {
    let ctx = &call.context;
    let watch = target(&call, config, &arguments.id).await?;
    let view = ctx.live(TABLES.view).await?;
    let now = state_row(&*view, &watch).await?;
    let (deliveries, next) = attempts(&*view, &watch.id, &now, arguments.limit, arguments.after).await?;
    Answer::json(&Deliveries { status: DeliveryStatus::from(&now.record), deliveries, next })
}

/// A page of the attempts of a webhook, newest first, and where earlier ones begin. Every state of the webhook after an attempt is one attempt; a
/// state without attempts is a claim, whose message was not sent yet.
async fn attempts(
    view: &dyn View,
    id: &str,
    now: &Row<Delivery>,
    limit: usize,
    after: Option<Seq>,
) -> Result<(Vec<Attempt>, Option<Seq>), Problem> {
    let is_wanted = |row: &Row<Delivery>| row.record.attempts > 0 && after.is_none_or(|after| row.seq < after);
    let mut found: Vec<(Seq, Attempt)> = Vec::new();
    found.extend(Some(now).filter(|row| is_wanted(row)).map(|row| (row.seq, attempt(&row.record))));
    let mut next_row = Some(after.map_or(now.seq, |after| after.min(now.seq)).previous());
    let mut rows_read = 0;
    while let Some(first) = next_row.filter(|_| found.len() <= limit && rows_read < ROWS_MAX) {
        let range = Range { prefix: key![id], after: None, from: Some(key![id, first]), limit: PAGE_ROWS, reverse: false };
        let rows = view.range(TABLES.history, range).await.map_err(store_problem)?;
        let is_last = rows.len() < PAGE_ROWS;
        rows_read += rows.len();
        next_row = None;
        for (_, bytes) in rows {
            let row = stored::<Row<Delivery>>(TABLES.history, &bytes)?;
            next_row = Some(row.seq).filter(|seq| *seq > Seq(1) && !is_last).map(Seq::previous);
            found.extend(Some(&row).filter(|row| is_wanted(row)).map(|row| (row.seq, attempt(&row.record))));
        }
    }
    let next = if found.len() > limit { found.get(limit - 1).map(|(seq, _)| *seq) } else { next_row.map(Seq::next) };
    Ok((found.into_iter().take(limit).map(|(_, attempt)| attempt).collect(), next))
}

fn attempt(state: &Delivery) -> Attempt {
    let DeliveryStatus { message, attempts, attempted_at, status, reason, .. } = DeliveryStatus::from(state);
    Attempt { message, attempt: attempts, at: attempted_at, status, reason }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use schemas::clock::rfc3339;
    use schemas::tables::Write;
    use view_store::embedded::Options;
    use view_store::{Checkpoint, EmbeddedStore, ViewStore};

    use super::*;

    /// The state of a webhook after a change: every third one is an attempt, except for 2,500 in the middle.
    fn state(seq: u64) -> Row<Delivery> {
        let is_attempt = seq.is_multiple_of(3) && !(1_000..3_500).contains(&seq);
        let record = Delivery { attempts: i64::from(is_attempt), attempted_at: at_ms(seq), ..Delivery::default() };
        Row { seq: Seq(seq), since: Seq(0), record }
    }

    fn at_ms(seq: u64) -> i64 {
        1_000 * i64::try_from(seq).unwrap()
    }

    /// Proves that pages of any size join to all attempts, newest first, each once, over more states than one call reads; and that a webhook without
    /// attempts has an empty page.
    #[tokio::test]
    async fn pages_join() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
        let view = store.live(TABLES.view).await.unwrap();
        let write = |seq: u64| {
            let value = Bytes::from(serde_json::to_vec(&state(seq)).unwrap());
            ["watch_0", "watch_1"].map(|id| Write::put(TABLES.history, key![id, Seq(seq)], value.clone()))
        };
        view.commit((1..4_000).flat_map(write).collect(), &Checkpoint { seq: Seq(4_000), ..Checkpoint::default() }).await.unwrap();
        let now = state(4_002);
        let all = [4_002].into_iter().chain((1..4_000).rev()).filter(|seq| state(*seq).record.attempts > 0);
        let expected: Vec<String> = all.map(|seq| rfc3339(at_ms(seq))).collect();
        for limit in [1, 7, 100, 200] {
            let (mut shown, mut after, mut calls) = (Vec::new(), None, 0);
            loop {
                let (page, next) = attempts(&*view, "watch_1", &now, limit, after).await.unwrap();
                assert!(page.len() <= limit && calls <= expected.len() + 3);
                shown.extend(page.into_iter().map(|attempt| attempt.at));
                (after, calls) = (next, calls + 1);
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(shown, expected, "{limit}");
        }
        let new = Row { seq: Seq(0), since: Seq(0), record: Delivery::default() };
        let (page, next) = attempts(&*view, "watch_2", &new, 10, None).await.unwrap();
        assert!(page.is_empty() && next.is_none());
    }
}
