//! The connection: prepared statements, conversion of errors, values in and out.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LockResult, PoisonError, RwLock};
use std::time::{Duration, Instant};

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError, SchemaAgreementError, WriteType};
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, Statement};
use scylla::value::{CqlValue, Row};
use view_store::store::Error;

use crate::{Options, tls};

/// The timeout of one request, including its retries.
const REQUEST_MAX: Duration = Duration::from_secs(8);
/// The timeout of creating or dropping a table.
const SCHEMA_MAX: Duration = Duration::from_secs(30);
/// How long creating or dropping a table is repeated if the database does not finish it in time, and the pause between attempts.
const DEFINE_MAX: Duration = Duration::from_secs(60);
const DEFINE_PAUSE: Duration = Duration::from_secs(1);
/// How often a statement that the server refuses is prepared, and the pause between attempts.
const PREPARE_TRIES: u32 = 30;
const PREPARE_PAUSE: Duration = Duration::from_millis(100);
/// The timeout of establishing a connection.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// The timeout of opening over all contact points.
const OPEN_MAX: Duration = Duration::from_secs(10);
/// The interval and timeout of keep-alive requests; a connection that does not answer one is closed.
const KEEPALIVE: Duration = Duration::from_secs(4);
/// The number of rows in one answer.
pub(crate) const PAGE_ROWS: i32 = 500;

/// One bound value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Text(&'a str),
    Int(i64),
    Blob(&'a [u8]),
    /// The argument of `LIMIT` or `TTL`.
    Small(i32),
}

impl SerializeValue for Cell<'_> {
    fn serialize<'b>(
        &self,
        typ: &scylla::cluster::metadata::ColumnType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        match self {
            Self::Text(text) => text.serialize(typ, writer),
            Self::Int(int) => int.serialize(typ, writer),
            Self::Blob(bytes) => bytes.serialize(typ, writer),
            Self::Small(int) => int.serialize(typ, writer),
        }
    }
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server considers the statement invalid; usually its table was dropped.
    Invalid(Error),
    /// A conditional write may or may not have taken effect.
    Unknown(Error),
    /// Anything else.
    Other(Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Invalid(error) | Failure::Unknown(error) | Failure::Other(error) => error,
        }
    }
}

/// A session on one keyspace.
pub(crate) struct Cql {
    session: Session,
    keyspace: String,
    /// The address of the database, for errors.
    place: String,
    prepared: RwLock<HashMap<String, PreparedStatement>>,
    closed: AtomicBool,
}

impl Cql {
    /// Connects. The keyspace need not exist.
    pub(crate) async fn connect(options: &Options) -> Result<Self, Error> {
        let place = options.contact_points.join(",");
        let profile = ExecutionProfile::builder().request_timeout(Some(REQUEST_MAX)).consistency(Consistency::LocalQuorum).build();
        let mut builder = SessionBuilder::new()
            .known_nodes(&options.contact_points)
            .connection_timeout(CONNECT_MAX)
            .keepalive_interval(KEEPALIVE)
            .keepalive_timeout(KEEPALIVE)
            .tcp_nodelay(true)
            .keyspaces_to_fetch([&options.keyspace])
            .schema_agreement_timeout(SCHEMA_MAX)
            // Otherwise the driver reads the definitions of all tables after each one that is created.
            .refresh_metadata_on_auto_schema_agreement(false)
            .default_execution_profile_handle(profile.into_handle());
        if let Some((user, password)) = &options.credentials {
            builder = builder.user(user, password);
        }
        if let Some(ca_file) = &options.ca_file {
            builder = builder.tls_context(Some(tls::context(ca_file)?));
        }
        let session = match tokio::time::timeout(OPEN_MAX, builder.build()).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => {
                let why = match (&options.credentials, &options.ca_file) {
                    (Some(_), _) if says(&error, &REFUSALS) => ": it refuses the user name or the password ([scylla] username, password)",
                    (None, _) if says(&error, &REFUSALS) => ": it requires a user name and a password ([scylla] username, password)",
                    (_, Some(_)) if says(&error, &UNTRUSTED) => ": its certificate is not signed by the given authority ([scylla] ca_file)",
                    _ => "",
                };
                return Err(unavailable(format!("cannot connect to the CQL database at {place}{why}"), error));
            }
            Err(late) => return Err(unavailable(format!("the CQL database at {place} does not answer within {OPEN_MAX:?}"), late)),
        };
        Ok(Self { session, keyspace: options.keyspace.clone(), place, prepared: RwLock::default(), closed: AtomicBool::new(false) })
    }

    /// Returns the keyspace of the store.
    pub(crate) fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// Returns the address of the database.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Refuses further requests.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn open(&self) -> Result<&Session, Failure> {
        if self.is_closed() { Err(Failure::Other(closed())) } else { Ok(&self.session) }
    }

    /// Returns the prepared form of a statement. The driver does not retry conditional statements: a retry might read its own write.
    pub(crate) async fn prepared(&self, cql: &str) -> Result<PreparedStatement, Failure> {
        if let Some(prepared) = unpoisoned(self.prepared.read()).get(cql) {
            return Ok(prepared.clone());
        }
        let mut tries = 0;
        // A table that another process has just created is listed before the server accepts statements on it.
        let mut prepared = loop {
            match self.open()?.prepare(cql).await.map_err(|error| self.unprepared(error)) {
                Err(Failure::Invalid(_)) if tries < PREPARE_TRIES => tries += 1,
                result => break result?,
            }
            tokio::time::sleep(PREPARE_PAUSE).await;
        };
        prepared.set_is_idempotent(!cql.contains(" IF "));
        prepared.set_page_size(PAGE_ROWS);
        unpoisoned(self.prepared.write()).insert(cql.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Drops the prepared statements on a dropped table.
    pub(crate) fn forget(&self, table: &str) {
        let name = format!("{}.{table} ", self.keyspace);
        unpoisoned(self.prepared.write()).retain(|cql, _| !cql.contains(&name));
    }

    /// Runs a statement that returns at most one row, or none.
    pub(crate) async fn execute(&self, cql: &str, values: &[Cell<'_>]) -> Result<QueryResult, Failure> {
        let prepared = self.prepared(cql).await?;
        self.open()?.execute_unpaged(&prepared, values).await.map_err(|error| self.failed(error))
    }

    /// Reads rows until there are `limit` of them.
    pub(crate) async fn rows(&self, cql: &str, values: &[Cell<'_>], limit: usize) -> Result<Vec<Row>, Failure> {
        let (mut rows, mut at) = (Vec::new(), PagingState::start());
        loop {
            let (page, next) = self.page(cql, values, at).await?;
            rows.extend(page);
            match next {
                Some(next) if rows.len() < limit => at = next,
                _ => break,
            }
        }
        rows.truncate(limit);
        Ok(rows)
    }

    /// Returns one page of rows, and where the next one starts.
    pub(crate) async fn page(&self, cql: &str, values: &[Cell<'_>], at: PagingState) -> Result<(Vec<Row>, Option<PagingState>), Failure> {
        let prepared = self.prepared(cql).await?;
        let (result, next) = self.open()?.execute_single_page(&prepared, values, at).await.map_err(|error| self.failed(error))?;
        let rows = self.read_rows(&self.result(result)?)?;
        Ok((
            rows,
            match next {
                PagingStateResponse::HasMorePages { state } => Some(state),
                PagingStateResponse::NoMorePages => None,
            },
        ))
    }

    /// Returns the rows of a statement's answer.
    pub(crate) fn result(&self, result: QueryResult) -> Result<QueryRowsResult, Failure> {
        result.into_rows_result().map_err(|error| Failure::Other(unavailable(format!("{} returned no rows", self.place), error)))
    }

    fn read_rows(&self, result: &QueryRowsResult) -> Result<Vec<Row>, Failure> {
        let unreadable = |error: Box<dyn StdError + Send + Sync>| {
            Failure::Other(Error::Unavailable { what: format!("{} returned rows of another type", self.place), source: Some(error) })
        };
        let rows = result.rows::<Row>().map_err(|error| unreadable(Box::new(error)))?;
        rows.map(|row| row.map_err(|error| unreadable(Box::new(error)))).collect()
    }

    /// Runs a batch of prepared statements on one partition.
    pub(crate) async fn batch(&self, batch: &Batch, values: Vec<Vec<Cell<'_>>>) -> Result<(), Failure> {
        self.open()?.batch(batch, values).await.map(|_| ()).map_err(|error| self.failed(error))
    }

    /// Runs a conditional write, and returns whether its condition held.
    pub(crate) async fn applied(&self, cql: &str, values: &[Cell<'_>]) -> Result<bool, Failure> {
        let result = self.result(self.execute(cql, values).await?)?;
        let row = self.read_rows(&result)?.into_iter().next();
        Ok(matches!(row.and_then(|row| row.columns.into_iter().next()), Some(Some(CqlValue::Boolean(true)))))
    }

    /// Creates, changes or drops a table or the keyspace, with a statement that may be repeated.
    pub(crate) async fn define(&self, cql: &str) -> Result<(), Failure> {
        let mut statement = Statement::new(cql);
        statement.set_request_timeout(Some(SCHEMA_MAX));
        statement.set_is_idempotent(true);
        let begun = Instant::now();
        loop {
            match self.open()?.query_unpaged(statement.clone(), &[]).await {
                Ok(_) => return Ok(()),
                Err(error) if is_late(&error) && begun.elapsed() < DEFINE_MAX => {
                    tracing::info!(error = schemas::reason::reason(&error), "the database did not change a table in time, will retry");
                }
                Err(error) => return Err(self.failed(error)),
            }
            tokio::time::sleep(DEFINE_PAUSE).await;
        }
    }

    /// Reads how the keyspace is replicated, which decides at which nodes rows are read. The driver does it when it connects, and then every minute.
    pub(crate) async fn refresh(&self) -> Result<(), Failure> {
        let failed = |error| Failure::Other(unavailable(format!("the definition of a keyspace cannot be read at {}", self.place), error));
        self.open()?.refresh_metadata().await.map_err(failed)
    }

    fn failed(&self, error: ExecutionError) -> Failure {
        let kind = match &error {
            ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, _)) => Some(kind.clone()),
            ExecutionError::PrepareError(error) => refused(error),
            _ => None,
        };
        self.failure(kind.as_ref(), error)
    }

    fn unprepared(&self, error: PrepareError) -> Failure {
        self.failure(refused(&error).as_ref(), error)
    }

    fn failure(&self, kind: Option<&DbError>, error: impl StdError + Send + Sync + 'static) -> Failure {
        let error = unavailable(format!("a request to the CQL database at {} failed", self.place), error);
        match kind {
            Some(DbError::Invalid) => Failure::Invalid(error),
            Some(DbError::WriteTimeout { write_type: WriteType::Cas, .. }) => Failure::Unknown(error),
            _ => Failure::Other(error),
        }
    }
}

/// Whether the database, or its nodes among themselves, did not finish a request in time.
fn is_late(error: &ExecutionError) -> bool {
    use DbError::{IsBootstrapping, Overloaded, ReadTimeout, WriteTimeout};
    match error {
        ExecutionError::RequestTimeout(_) | ExecutionError::SchemaAgreementError(SchemaAgreementError::Timeout(_)) => true,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, _)) => {
            matches!(kind, IsBootstrapping | Overloaded | ReadTimeout { .. } | WriteTimeout { .. })
        }
        _ => false,
    }
}

/// Returns the server's answer to a statement that it refused to prepare.
fn refused(error: &PrepareError) -> Option<DbError> {
    match error {
        PrepareError::AllAttemptsFailed { first_attempt: RequestAttemptError::DbError(kind, _) } => Some(kind.clone()),
        _ => None,
    }
}

/// Texts in errors by which a server refuses our credentials.
const REFUSALS: [&str; 3] = ["Authentication", "authentication", "credentials"];
/// Texts in errors by which we refuse the server's certificate.
const UNTRUSTED: [&str; 2] = ["certificate verify failed", "certificate"];

/// Whether an error or one of its causes contains one of some texts: the driver reports causes as texts only.
fn says(error: &dyn StdError, words: &[&str]) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if words.iter().any(|word| text.contains(word)) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Wraps an error of the driver.
pub(crate) fn unavailable(what: String, source: impl StdError + Send + Sync + 'static) -> Error {
    Error::Unavailable { what, source: Some(Box::new(source)) }
}

/// Returns the error of calls after closing.
pub(crate) fn closed() -> Error {
    Error::Unavailable { what: "the view store is closed".to_owned(), source: None }
}

/// Returns the value under a lock, also after a panic of another holder: no code here panics between two related changes.
pub(crate) fn unpoisoned<G>(lock: LockResult<G>) -> G {
    lock.unwrap_or_else(PoisonError::into_inner)
}

/// Returns a text column of a row; `None` if it is null or of another type.
pub(crate) fn text_of(value: Option<CqlValue>) -> Option<String> {
    match value {
        Some(CqlValue::Text(text) | CqlValue::Ascii(text)) => Some(text),
        _ => None,
    }
}

/// Returns an integer column of a row.
pub(crate) fn int_of(value: Option<CqlValue>) -> Option<i64> {
    match value {
        Some(CqlValue::BigInt(int)) => Some(int),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that creating a table is repeated if the database was too slow, and not if it refuses the statement.
    #[test]
    fn slow_databases_are_not_refusals() {
        let answered = |kind: DbError| ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, String::new()));
        assert!(is_late(&ExecutionError::RequestTimeout(SCHEMA_MAX)));
        assert!(is_late(&answered(DbError::Overloaded)));
        for refusal in [DbError::Invalid, DbError::SyntaxError, DbError::ConfigError, DbError::Unauthorized] {
            assert!(!is_late(&answered(refusal.clone())), "{refusal}");
        }
    }
}
