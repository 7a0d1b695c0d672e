//! What is sold, and what a call gives for it.

use std::time::Duration;

use operation::problem::Problem;
use operation::{Answer, AnswerFuture, Body};
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde_json::Value;

use super::terms::Offer;

/// The largest answer that can be sold, in bytes: it is stored in the log.
const ANSWER_BYTES_MAX: usize = 512 * 1024;

/// What is sold.
pub struct Goods {
    /// The name of the service.
    pub service: &'static str,
    /// The name of the operation.
    pub operation: &'static str,
    /// The offer.
    pub offer: Offer,
    /// The lowest tier whose keys do not pay.
    pub free_from: Tier,
    /// How long the payment terms wait for their preview.
    pub preview_time_max: Duration,
}

/// The payment of a call.
#[derive(Clone, Debug)]
pub struct GivenPayment {
    /// The payload as it was given, JSON.
    pub payload: Value,
    /// The token of the first answer, with which the buyer gets it again from another address.
    pub repeat_token: Option<String>,
}

/// What an operation sells: the answer of a read, or the effect of a write; the other one is empty.
pub(crate) fn sellable(operation: &str, body: Body) -> Result<(String, String), Problem> {
    let (answer, effect) = match body {
        Body::Effect(effect) => (String::new(), effect),
        Body::Json(value) => (value.to_string(), String::new()),
        Body::Parts(parts) => (String::from_utf8(parts.concat()).unwrap_or_default(), String::new()),
        Body::Lines { .. } | Body::Events { .. } | Body::NotModified | Body::File(_) | Body::Stream(_) => (String::new(), String::new()),
    };
    if (answer.is_empty() && effect.is_empty()) || answer.len() > ANSWER_BYTES_MAX {
        tracing::error!(operation, bytes = answer.len(), "a handler returned an answer that cannot be sold");
        return Err(Problem::new(ErrorCode::Internal, "the answer could not be encoded; nothing was charged"));
    }
    Ok((answer, effect))
}

/// The free preview; null if there is none, or if it takes too long: a caller learns the terms in any case.
pub(crate) async fn preview(operation: &str, previewed: AnswerFuture, time_max: Duration) -> Value {
    match tokio::time::timeout(time_max, previewed).await {
        Ok(Ok(Answer { body: Body::Json(value), .. })) => value,
        Ok(_) => Value::Null,
        Err(_) => {
            tracing::warn!(operation, "payment terms were sent without their preview, which took too long");
            Value::Null
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that terms have the preview that is made in time, and none if it fails or takes too long.
    #[tokio::test]
    async fn terms_do_not_wait_for_a_slow_preview() {
        let shown = json!({ "total": 3 });
        let answered = Answer::json(&shown);
        let failed: Result<Answer, Problem> = Err(Problem::new(ErrorCode::Unavailable, "no"));
        assert_eq!(preview("scan", Box::pin(async move { answered }), Duration::ZERO).await, shown);
        assert_eq!(preview("scan", Box::pin(async move { failed }), Duration::ZERO).await, Value::Null);
        assert_eq!(preview("scan", Box::pin(std::future::pending()), Duration::ZERO).await, Value::Null);
    }
}
