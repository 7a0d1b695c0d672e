//! Reads stored receipts, and the state that decisions keep about them.

use std::sync::Arc;

use feed::{RecordFeed, Source};
use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use proofs::receipt::Receipt;
use schemas::key;
use schemas::views::receipts::{SigningHistory, TABLES, state_key};
use schemas::views::records::Row;
use serde::de::DeserializeOwned;
use view_store::View;

use crate::rules::ReceiptsRules;

/// The source of the service's changes.
pub const SOURCE: Source = ReceiptsRules::FEED.source;

/// The current receipts.
pub(crate) struct Receipts {
    pub(crate) view: Arc<dyn View>,
}

impl Receipts {
    pub(crate) async fn now(ctx: &Context) -> Result<Self, Problem> {
        Ok(Self { view: ctx.live(TABLES.view).await? })
    }

    /// The receipt of an id.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<Receipt>, Problem> {
        let row = self.view.get(TABLES.records, &key![id]).await.map_err(store_problem)?;
        row.map(|bytes| stored::<Row<Receipt>>(TABLES.records, &bytes).map(|row| row.record)).transpose()
    }

    /// The receipts of some ids, in their order; those that are not there are left out.
    pub(crate) async fn get_many(&self, ids: &[String]) -> Result<Vec<Receipt>, Problem> {
        let keys: Vec<_> = ids.iter().map(|id| key![id.as_str()]).collect();
        let rows = self.view.get_many(TABLES.records, &keys).await.map_err(store_problem)?;
        rows.into_iter().flatten().map(|bytes| stored::<Row<Receipt>>(TABLES.records, &bytes).map(|row| row.record)).collect()
    }

    /// The state of decisions under some keys, in their order.
    pub(crate) async fn remembered<T: DeserializeOwned>(&self, keys: &[String]) -> Result<Vec<Option<T>>, Problem> {
        let keys: Vec<_> = keys.iter().map(|key| key![key.as_str()]).collect();
        let rows = self.view.get_many(TABLES.state, &keys).await.map_err(store_problem)?;
        rows.into_iter().map(|row| row.map(|bytes| stored(TABLES.state, &bytes)).transpose()).collect()
    }

    /// The state of decisions under one key.
    pub(crate) async fn one<T: DeserializeOwned>(&self, key: String) -> Result<Option<T>, Problem> {
        Ok(self.remembered(&[key]).await?.pop().flatten())
    }

    /// The keys that sign.
    pub(crate) async fn signing(&self) -> Result<SigningHistory, Problem> {
        Ok(self.one(state_key::SIGNING.to_owned()).await?.unwrap_or_default())
    }
}
