//! A service made ready: its definitions with everything that is worked out once. Every surface calls operations through here, so
//! that access, counting and failure are the same on all.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use schemas::error_code::ErrorCode;
use serde_json::Value;

use crate::access::{Admission, Credentials};
use crate::context::{Context, ServiceSettings};
use crate::operation::{Answer, Call, Form, Method, Service};
use crate::problem::Problem;
use crate::surfaces::arguments::{Checker, SchemaError};
use crate::surfaces::metrics::Meter;
use crate::surfaces::routes::Routes;

/// How long a read may take. A log or a database that hangs is told of soon, not when some client of it gives up.
const READ_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a read may take that may ask an upstream.
const LIVE_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a call that appends a command may take, with the wait until that is projected.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(15);
/// The seconds after which to ask again then.
const LATE_RETRY_S: u64 = 2;

/// A service with its compiled checks, numbers and routes; the lists run beside `service.operations`.
pub(crate) struct Mounted {
    pub(crate) service: Service,
    pub(crate) settings: ServiceSettings,
    pub(crate) checkers: Vec<Checker>,
    pub(crate) meters: Vec<Meter>,
    pub(crate) routes: Routes,
}

/// What a surface knows of a call beside its arguments.
#[derive(Clone)]
pub(crate) struct Incoming {
    pub(crate) credentials: Credentials,
    pub(crate) address: IpAddr,
    pub(crate) form: Form,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) if_none_match: Option<String>,
    /// Whether it goes on with a call that was counted already.
    pub(crate) goes_on: bool,
}

/// What a surface says of an admitted call.
pub(crate) struct Admitted {
    /// Whether a key was used.
    pub(crate) keyed: bool,
    rate_limit: String,
    rate_limit_policy: String,
}

impl Admitted {
    /// The headers of every answer to it.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("ratelimit", self.rate_limit.as_str()), ("ratelimit-policy", self.rate_limit_policy.as_str())]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
    }
}

impl Mounted {
    /// Makes a service ready.
    ///
    /// # Errors
    /// A schema of it does not compile.
    pub(crate) fn new(service: Service, settings: ServiceSettings) -> Result<Self, SchemaError> {
        let checkers = service.operations.iter().map(Checker::new).collect::<Result<_, _>>()?;
        let meters = service.operations.iter().map(|operation| Meter::new(service.name, operation.name)).collect();
        let routes = Routes::new(&service.operations);
        Ok(Self { service, settings, checkers, meters, routes })
    }

    /// Admits a call whose arguments are checked, and runs it, within a bounded time.
    ///
    /// # Errors
    /// What access or the handler refuse, with the headers of the quota once the call was admitted; `unavailable` when neither answers in
    /// time.
    pub(crate) async fn call(
        &self,
        context: &Arc<Context>,
        index: usize,
        arguments: Value,
        incoming: Incoming,
    ) -> Result<(Answer, Admitted), Problem> {
        let operation = &self.service.operations[index];
        let wait = Duration::from_secs(arguments.get("wait").and_then(Value::as_u64).unwrap_or(0));
        let time_max = match operation.method {
            Method::Get if operation.is_live() => LIVE_TIME_MAX,
            Method::Get => READ_TIME_MAX.saturating_add(wait),
            Method::Post | Method::Delete => COMMAND_TIME_MAX,
        };
        let answering = self.admit_and_run(context, index, arguments, incoming);
        tokio::time::timeout(time_max, answering).await.unwrap_or_else(|_| {
            tracing::error!(
                service = self.service.name,
                operation = operation.name,
                seconds = time_max.as_secs(),
                "a call was not answered in time"
            );
            Err(Problem::new(ErrorCode::Unavailable, "the log or the view store does not answer now").retry_after(LATE_RETRY_S))
        })
    }

    async fn admit_and_run(
        &self,
        context: &Arc<Context>,
        index: usize,
        arguments: Value,
        incoming: Incoming,
    ) -> Result<(Answer, Admitted), Problem> {
        let Incoming { credentials, address, form, idempotency_key, if_none_match, goes_on } = incoming;
        let operation = &self.service.operations[index];
        let admission = context.access.admit(context, credentials, address, operation, goes_on).await?;
        let Admission { caller, rate_limit, rate_limit_policy } = admission;
        let admitted = Admitted { keyed: !caller.key_id.is_empty(), rate_limit, rate_limit_policy };
        let call = Call { context: Arc::clone(context), caller, form, idempotency_key, if_none_match };
        let running = AssertUnwindSafe((operation.run)(call, arguments)).catch_unwind();
        let result = running.await.unwrap_or_else(|_| {
            tracing::error!(service = self.service.name, operation = operation.name, "a handler panicked");
            Err(Problem::new(ErrorCode::Internal, "the operation failed; the fault is ours"))
        });
        match result {
            Ok(answer) => Ok((answer, admitted)),
            Err(problem) => Err(admitted.headers().fold(problem, |problem, (name, value)| problem.header(name, value))),
        }
    }
}
