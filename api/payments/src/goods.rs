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
/// The note of terms without a preview whose reason is not known to the caller.
const NO_PREVIEW: &str = "there is no preview of this answer";

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

/// The free preview of what is sold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Preview {
    /// The preview; null if there is none.
    pub(crate) value: Value,
    /// Why there is none, for the caller.
    pub(crate) note: String,
}

impl Preview {
    fn none(note: impl Into<String>) -> Self {
        Self { value: Value::Null, note: note.into() }
    }

    /// No preview, because of a problem. What is wrong with the arguments is free to know; other problems may say what is sold.
    pub(crate) fn failed(problem: &Problem) -> Self {
        let of_arguments = [ErrorCode::ParameterInvalid, ErrorCode::BodyInvalid, ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid];
        if of_arguments.contains(&problem.code) {
            return Self::none(format!("there is no preview because an argument is missing or invalid: {}", problem.detail));
        }
        Self::none(NO_PREVIEW)
    }
}

/// Makes the free preview. There is none if it takes too long: a caller learns the terms in any case.
pub(crate) async fn preview(operation: &str, previewed: AnswerFuture, time_max: Duration) -> Preview {
    match tokio::time::timeout(time_max, previewed).await {
        Ok(Ok(Answer { body: Body::Json(value), .. })) if !value.is_null() => Preview { value, note: String::new() },
        Ok(Ok(_)) => Preview::none(NO_PREVIEW),
        Ok(Err(problem)) => Preview::failed(&problem),
        Err(_) => {
            tracing::warn!(operation, "payment terms were sent without their preview, which took too long");
            Preview::none("the preview took too long; the same request may have it later")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that terms have the preview that is made in time, and else say why there is none: a wrong argument, but no other problem, in its own words.
    #[tokio::test]
    async fn terms_do_not_wait_for_a_slow_preview() {
        let shown = json!({ "total": 3 });
        let answered = Answer::json(&shown);
        let made = preview("scan", Box::pin(async move { answered }), Duration::ZERO).await;
        assert_eq!(made, Preview { value: shown, note: String::new() });
        for (problem, words, is_shown) in [
            (Problem::parameter("pin", "pin is missing"), "pin is missing", true),
            (Problem::new(ErrorCode::BodyInvalid, "inputs is missing"), "inputs is missing", true),
            (Problem::new(ErrorCode::AsOfInvalid, "asOf is not a time"), "asOf is not a time", true),
            (Problem::new(ErrorCode::CursorInvalid, "after is of another query"), "after is of another query", true),
            (Problem::new(ErrorCode::NotFound, "no liens"), "no liens", false),
            (Problem::new(ErrorCode::Unavailable, "no view"), "no view", false),
        ] {
            let failed: Result<Answer, Problem> = Err(problem);
            let made = preview("scan", Box::pin(async move { failed }), Duration::ZERO).await;
            assert_eq!((&made.value, made.note.contains(words)), (&Value::Null, is_shown), "{made:?}");
            assert!(made.note.contains("no preview"), "{made:?}");
        }
        let none = Answer::json(&Value::Null);
        assert_eq!(preview("scan", Box::pin(async move { none }), Duration::ZERO).await, Preview::none(NO_PREVIEW));
        let made = preview("scan", Box::pin(std::future::pending()), Duration::ZERO).await;
        assert_eq!((&made.value, made.note.contains("too long")), (&Value::Null, true), "{made:?}");
    }
}
