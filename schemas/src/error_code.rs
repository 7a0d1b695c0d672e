//! The closed table of public errors: code, HTTP status, may the caller retry, and what it means.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = ($code:literal, $status:literal, $retry:literal);)+) => {
        /// A public error. Each has a page under `ops/docs/errors/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[doc = $doc])+ $name,)+ }

        impl ErrorCode {
            /// THE LIST of codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// The code in problem documents, the last part of their `type`.
            #[must_use]
            pub fn as_str(self) -> &'static str { match self { $(Self::$name => $code),+ } }
            /// The HTTP status.
            #[must_use]
            pub fn status(self) -> u16 { match self { $(Self::$name => $status),+ } }
            /// Whether the same request may succeed later.
            #[must_use]
            pub fn may_retry(self) -> bool { match self { $(Self::$name => $retry),+ } }
            /// What it means, in one sentence.
            #[must_use]
            pub fn title(self) -> &'static str { match self { $(Self::$name => concat!($($doc),+)),+ } }
            /// The page of the code under `ops/docs/errors/`, in Markdown.
            #[must_use]
            pub fn page(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("../../ops/docs/errors/", $code, ".md"))),+ }
            }
        }
    };
}

/// What precedes the advice in a page.
const ADVICE: &str = "\nWhat to do: ";

impl ErrorCode {
    /// What a caller can do about it, in Markdown: the advice of its page.
    #[must_use]
    pub fn advice(self) -> &'static str {
        let advice = self.page().split_once(ADVICE).map_or("", |(_, advice)| advice);
        advice.split_once("\n\n").map_or(advice, |(advice, _)| advice).trim_end()
    }
}

codes! {
    /// A parameter is missing, unknown, given twice or out of range.
    ParameterInvalid = ("parameter-invalid", 400, false);
    /// The body is not what the operation takes.
    BodyInvalid = ("body-invalid", 400, false);
    /// The cursor was not made by this service, or not for this log.
    CursorInvalid = ("cursor-invalid", 400, false);
    /// The time asked for is no time, or not yet recorded.
    AsOfInvalid = ("as-of-invalid", 400, false);
    /// The request itself is not well formed.
    RequestInvalid = ("request-invalid", 400, false);
    /// The key is unknown, revoked or mistyped.
    KeyInvalid = ("key-invalid", 401, false);
    /// The operation is paid for by the call, and this call is not paid for.
    PaymentRequired = ("payment-required", 402, false);
    /// The key's tier does not open this operation.
    TierTooLow = ("tier-too-low", 403, false);
    /// The receipt chain does not belong to the caller.
    ChainForbidden = ("chain-forbidden", 403, false);
    /// The request names a host or an origin that this endpoint does not answer under.
    OriginRefused = ("origin-refused", 403, false);
    /// There is nothing at this address.
    NotFound = ("not-found", 404, false);
    /// The operation is reached with another method.
    MethodNotAllowed = ("method-not-allowed", 405, false);
    /// The request took too long to arrive.
    RequestTimeout = ("request-timeout", 408, true);
    /// The cursor was made under another filter.
    FilterChanged = ("filter-changed", 409, false);
    /// The account has as many of these as its tier may have.
    LimitReached = ("limit-reached", 409, false);
    /// The idempotency key was used for another request.
    IdempotencyMismatch = ("idempotency-mismatch", 409, false);
    /// The body is larger than the operation takes.
    BodyTooLarge = ("body-too-large", 413, false);
    /// The content type is not one the operation takes.
    MediaTypeUnsupported = ("media-type-unsupported", 415, false);
    /// The file ends before the range that is asked for.
    RangeUnsatisfiable = ("range-unsatisfiable", 416, false);
    /// The quota or rate limit is spent.
    RateLimited = ("rate-limited", 429, true);
    /// The request line and the headers are larger than the server takes.
    HeadTooLarge = ("head-too-large", 431, false);
    /// The engine failed; the fault is ours.
    Internal = ("internal", 500, true);
    /// The engine is not ready or lags behind.
    Unavailable = ("unavailable", 503, true);
}
