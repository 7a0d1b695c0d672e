//! Reads feeds that only the server uses: watches, deliveries, payments. They bypass the block cache, which is reserved for the feeds of services.

use std::sync::Arc;

use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::details::ChangeRecord;
use schemas::position::Seq;
use schemas::views::records::RecordTables;
use serde::de::DeserializeOwned;
use view_store::View;
use view_store::feed::read_page;

use super::filter::{Element, elements};

/// How many changes are read per page.
const PAGE: usize = 500;

/// Returns a view and the seq of its last change.
///
/// # Errors
/// When the view cannot be read.
pub async fn latest_seq(ctx: &Context, tables: &RecordTables) -> Result<(Arc<dyn View>, Seq), Problem> {
    let view = ctx.live(tables.view).await?;
    let end = view.checkpoint().await.map_err(store_problem)?.seq;
    Ok((view, end))
}

/// Reads the next changes after a seq, and returns the seq up to which they are complete; `None` at the end.
///
/// # Errors
/// When the view, or a change in it, cannot be read.
pub async fn read_next<R: ChangeRecord + DeserializeOwned>(
    ctx: &Context,
    tables: &RecordTables,
    after: Seq,
) -> Result<Option<(Vec<Element<R>>, Seq)>, Problem> {
    let (view, upto) = latest_seq(ctx, tables).await?;
    if after >= upto {
        return Ok(None);
    }
    let page = read_page(view.as_ref(), tables.feed, after, upto, PAGE).await.map_err(store_problem)?;
    Ok(Some((elements(&page)?, page.to)))
}
