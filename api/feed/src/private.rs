//! Feeds that only the server itself reads: watches, deliveries, payments. They are read past the blocks kept in memory, which stay those of the
//! services.

use std::sync::Arc;

use schemas::details::ChangeRecord;
use schemas::position::Seq;
use schemas::views::records::RecordTables;
use serde::de::DeserializeOwned;
use view_store::View;
use view_store::feed::read_page;

use super::filter::{Element, elements};
use operation::context::{Context, store_problem};
use operation::problem::Problem;

/// Changes read at once.
const PAGE: usize = 500;

/// The view, and the last change in it.
///
/// # Errors
/// When the view cannot be read.
pub async fn end(ctx: &Context, tables: &RecordTables) -> Result<(Arc<dyn View>, Seq), Problem> {
    let view = ctx.live(tables.view).await?;
    let end = Seq(view.checkpoint().await.map_err(store_problem)?.seq);
    Ok((view, end))
}

/// The next changes after a place, and up to where these are all; `None` at the end.
///
/// # Errors
/// When the view, or a change in it, cannot be read.
pub async fn read_on<R: ChangeRecord + DeserializeOwned>(
    ctx: &Context,
    tables: &RecordTables,
    after: Seq,
) -> Result<Option<(Vec<Element<R>>, Seq)>, Problem> {
    let (view, upto) = end(ctx, tables).await?;
    if after >= upto {
        return Ok(None);
    }
    let page = read_page(view.as_ref(), tables.feed, after, upto, PAGE).await.map_err(store_problem)?;
    Ok(Some((elements(&page)?, Seq(page.to))))
}
