//! A mounted service: its definitions, with everything that is prepared in advance. Every surface calls operations through this module, so that access
//! control, metrics and failures are the same on all surfaces.

use std::borrow::Cow;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use access::Access;
use access::{Admission, Credentials, Open};
use arguments::{Checker, SchemaError};
use futures_util::FutureExt;
use http::HeaderName;
use operation::call_times::CallTimes;
use operation::context::Part;
use operation::context::{Context, ServiceSettings};
use operation::metrics::Meter;
use operation::problem::Problem;
use operation::{Answer, AnswerFuture, Call, Form, Method, Operation, Service, Stage};
use payments::goods::{GivenPayment, Goods};
use payments::sale::{sell, unknown};
use payments::settlement::Settlement;
use payments::terms::Offer;
use schemas::error_code::ErrorCode;
use serde_json::Value;
use site::Pairs;
use warp::reply::Response;

use crate::response::set_text;
use crate::routes::Routes;

/// After how many seconds to retry a call that took too long.
const LATE_RETRY_S: u64 = 2;

/// A service with its compiled validators, metrics and routes. The lists are parallel to `service.operations`.
pub(crate) struct Mounted {
    pub(crate) service: Service,
    pub(crate) settings: ServiceSettings,
    pub(crate) checkers: Vec<Checker>,
    pub(crate) meters: Vec<Meter>,
    pub(crate) routes: Routes,
}

/// The properties of a call other than its arguments.
#[derive(Clone)]
pub(crate) struct Incoming {
    pub(crate) credentials: Credentials,
    pub(crate) address: IpAddr,
    pub(crate) form: Form,
    pub(crate) idempotency_key: Option<String>,
    /// The token of a watch, as the header `X-Watch-Token` has it.
    pub(crate) watch_token: Option<String>,
    pub(crate) if_none_match: Option<String>,
    /// The payment of the call.
    pub(crate) payment: Option<GivenPayment>,
    /// What the call names to be sold, also if its arguments are invalid; `None` if it names nothing. See [`Operation::sold_by`].
    pub(crate) sold: Option<String>,
    /// The resource that is paid for, as its surface names it.
    pub(crate) resource: String,
    /// Whether the call continues one that was counted already.
    pub(crate) is_continuation: bool,
}

/// The properties of an admitted call that its response needs.
pub(crate) struct Admitted {
    /// Whether a key was used.
    pub(crate) keyed: bool,
    rate_limit: String,
    rate_limit_policy: String,
    /// The settlement of the call's payment.
    pub(crate) settlement: Option<Settlement>,
}

impl Admitted {
    /// The headers of every response to the call.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let limits = [("ratelimit", self.rate_limit.as_str()), ("ratelimit-policy", self.rate_limit_policy.as_str())];
        let limits = limits.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, Cow::Borrowed(value)));
        let paid = self.settlement.iter().flat_map(Settlement::headers).map(|(name, value)| (name, Cow::Owned(value)));
        limits.chain(paid)
    }

    /// Sets the headers of a response to the call.
    pub(crate) fn set_headers(&self, response: &mut Response) {
        for (name, value) in self.headers() {
            set_text(response, HeaderName::from_static(name), &value);
        }
    }
}

impl Mounted {
    /// Mounts a service.
    ///
    /// # Errors
    /// When a schema does not compile.
    pub(crate) fn new(service: Service, settings: ServiceSettings) -> Result<Self, SchemaError> {
        let checkers = service.operations.iter().map(Checker::new).collect::<Result<_, _>>()?;
        let meters = service.operations.iter().map(|operation| Meter::new(service.name, operation.name)).collect();
        let routes = Routes::new(&service.operations);
        Ok(Self { service, settings, checkers, meters, routes })
    }

    /// Admits a call and runs it, within a time limit. Invalid arguments are refused first, except for unpaid calls of paid operations, which get the
    /// payment terms first.
    ///
    /// # Errors
    /// The errors of validation, access control and the handler, with the headers of the quota once the call was admitted; `unavailable` when the call
    /// takes too long.
    pub(crate) async fn call(
        &self,
        context: &Arc<Context>,
        index: usize,
        arguments: Result<Value, Problem>,
        incoming: Incoming,
    ) -> Result<(Answer, Admitted), Problem> {
        let operation = &self.service.operations[index];
        let wait = Duration::from_secs(arguments.as_ref().map_or(0, |arguments| operation.wait_s(arguments)));
        let is_paid = incoming.payment.is_some();
        // A call that waits for changes must not outlive its key.
        let waits_under = (!wait.is_zero()).then(|| (incoming.credentials.clone(), incoming.address));
        // Boxed: a request's future is moved several times on its way through the layers of the server, so what is large in it is not part of it.
        let answering = Box::pin(async {
            let answered = pin!(self.admit_and_run(context, index, arguments, incoming));
            let Some((credentials, address)) = waits_under else { return answered.await };
            let access = Access::of(context);
            tokio::select! {
                answered = answered => answered,
                () = access.wait_for_key_end(context, &credentials, address) => {
                    Err(Problem::new(ErrorCode::KeyInvalid, "the API key was revoked or replaced while the call waited"))
                }
            }
        });
        self.within_time(context, operation, wait, is_paid, answering).await
    }

    /// Waits for the answer to a call that itself waits for changes for as long as `wait`. A call that takes too long is logged and refused.
    async fn within_time<T>(
        &self,
        context: &Context,
        operation: &Operation,
        wait: Duration,
        is_paid: bool,
        answering: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let time_max = time_max_of(&context.settings.call_times, operation, wait, is_paid);
        tokio::time::timeout(time_max, answering).await.unwrap_or_else(|_| {
            tracing::error!(service = self.service.name, operation = operation.name, seconds = time_max.as_secs(), "a call took too long");
            Err(if is_paid {
                unknown("the call took too long")
            } else {
                Problem::new(ErrorCode::Unavailable, "the log or the view store does not respond").retry_after(LATE_RETRY_S)
            })
        })
    }

    async fn admit_and_run(
        &self,
        context: &Arc<Context>,
        index: usize,
        arguments: Result<Value, Problem>,
        incoming: Incoming,
    ) -> Result<(Answer, Admitted), Problem> {
        let Incoming { credentials, address, form, idempotency_key, watch_token, if_none_match, .. } = incoming;
        let Incoming { payment, sold, resource, is_continuation, .. } = incoming;
        let operation = &self.service.operations[index];
        let is_refused = arguments.as_ref().is_err_and(|problem| operation.refuses_unpaid(problem));
        let arguments = if is_refused { Ok(arguments?) } else { arguments };
        let admission = Access::of(context).admit(context, credentials, address, operation, is_continuation).await?;
        if !operation.counted {
            // An answer about earlier times may have to be computed again.
            let is_past = arguments.as_ref().is_ok_and(|arguments| ["asOf", "days"].iter().any(|name| arguments.get(*name).is_some()));
            let kind = if is_past { Open::PastCall } else { Open::Call };
            Access::of(context).admit_open(context, kind, address)?;
        }
        let Admission { caller, rate_limit, rate_limit_policy, must_pay } = admission;
        let mut admitted = Admitted { keyed: !caller.key_id.is_empty(), rate_limit, rate_limit_policy, settlement: None };
        let call = Call { context: Arc::clone(context), caller, form, idempotency_key, watch_token, stage: Stage::Whole, if_none_match };
        let run = |stage: Stage, arguments: Value| self.run(operation, Call { stage, ..call.clone() }, arguments);
        if must_pay {
            let goods = self.goods(&context.settings.call_times, operation, resource, sold.as_deref());
            let (answer, settlement) = Box::pin(sell(context, address, goods, arguments, payment, run)).await?;
            admitted.settlement = Some(settlement);
            return Ok((answer, admitted));
        }
        let result = run(Stage::Whole, arguments?).await;
        match result {
            Ok(answer) => Ok((answer, admitted)),
            Err(problem) => Err(admitted.headers().fold(problem, |problem, (name, value)| problem.header(name, value))),
        }
    }

    /// Answers an operation for a page of the site: as for a caller without a key, whose calls count against no quota. What is paid per call is refused.
    ///
    /// # Errors
    /// As those of [`Self::call`].
    pub(crate) async fn show(&self, context: &Arc<Context>, name: &str, arguments: Pairs, address: IpAddr) -> Result<Value, Problem> {
        let operations = &self.service.operations;
        let index =
            operations.iter().position(|operation| operation.name == name && operation.has_route() && operation.method == Method::Get);
        let index = index.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("this service has no operation {name}")))?;
        let operation = &operations[index];
        let arguments = self.checkers[index].strings(arguments.into_iter().map(|(name, value)| (name.into(), value.into())))?;
        let wait = Duration::from_secs(operation.wait_s(&arguments));
        let answering = async {
            let admission = Access::of(context).admit(context, Credentials::default(), address, operation, true).await?;
            if admission.must_pay {
                return Err(Problem::new(ErrorCode::TierTooLow, format!("{name} is paid per call, or needs a key")));
            }
            let call = Call {
                context: Arc::clone(context),
                caller: admission.caller,
                form: Form::Json,
                idempotency_key: None,
                watch_token: None,
                stage: Stage::Whole,
                if_none_match: None,
            };
            self.run(operation, call, arguments).await
        };
        value_of(self.within_time(context, operation, wait, false, answering).await?)
    }

    /// Runs a handler. If it panics, the caller gets `internal`.
    fn run(&self, operation: &Operation, call: Call, arguments: Value) -> AnswerFuture {
        let running = AssertUnwindSafe((operation.run)(call, arguments)).catch_unwind();
        let (service, operation) = (self.service.name, operation.name);
        Box::pin(async move {
            running.await.unwrap_or_else(|_| {
                tracing::error!(service, operation, "a handler panicked");
                Err(Problem::new(ErrorCode::Internal, "the operation failed because of an internal error"))
            })
        })
    }

    /// What an operation is sold as.
    fn goods(&self, times: &CallTimes, operation: &Operation, resource: String, sold: Option<&str>) -> Goods {
        let micros = operation.price_of(&self.settings, sold).unwrap_or(0);
        let offer = Offer { resource, description: operation.summary.to_owned(), micros };
        // Earlier than the call would be refused.
        let preview_time_max = time_max_of(times, operation, Duration::ZERO, false) * 4 / 5;
        Goods { service: self.service.name, operation: operation.name, offer, free_from: operation.price.least_tier(), preview_time_max }
    }
}

/// How long a call may take that itself waits for changes for as long as `wait`.
fn time_max_of(times: &CallTimes, operation: &Operation, wait: Duration, is_paid: bool) -> Duration {
    match operation.method {
        _ if is_paid => times.sale,
        Method::Get if operation.is_live() => times.live_read,
        Method::Get if !operation.files.is_empty() => times.file,
        Method::Get => times.read.saturating_add(wait),
        Method::Post | Method::Patch | Method::Delete => times.command,
    }
}

/// The JSON of an answer, for pages.
///
/// # Errors
/// `internal` for an answer that is none.
pub(crate) fn value_of(answer: Answer) -> Result<Value, Problem> {
    answer.body.into_value().ok_or_else(|| Problem::new(ErrorCode::Internal, "the answer could not be displayed"))
}
