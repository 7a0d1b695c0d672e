//! Forgetting an account: its keys end, what it kept is deleted, and the secret that its addresses are sealed with is destroyed, so that no
//! rebuild reads them again.
//!
//! Promises: each step can be taken again, and one that was cut is finished by asking again. A node that still knew the account's key adds
//! nothing that is sealed, and what else it adds within [`KEY_CACHED_FOR`](super::KEY_CACHED_FOR) goes when asked again.

use schemas::error_code::ErrorCode;
use schemas::views::accounts::{self, AccountCommand};
use schemas::views::watches::{SavedItem, TABLES};
use view_store::store::Span;

use super::append::{Once, command};
use super::commands::PAGE_ROWS;
use super::webhook::Sealing;
use super::{Access, kept};
use operation::context::{Context, store_problem};
use operation::problem::Problem;

/// What was forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erased {
    /// The account.
    pub account: String,
    /// How many of its keys were ended or freed of their e-mail address.
    pub keys: usize,
    /// How many filters and watches were deleted.
    pub kept: usize,
}

impl Access {
    /// Erases an account, named by its id or by the id of one of its keys.
    ///
    /// # Errors
    /// `not-found` for a name that is neither; `unavailable` when a command is not projected in time: ask again.
    pub async fn erase(&self, ctx: &Context, name: &str) -> Result<Erased, Problem> {
        let all = self.list(ctx).await?;
        let account = all.iter().find(|key| name == key.id || name == key.account).map(|key| key.account.clone());
        let account = account.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("there is no account or key {name}")))?;
        let mut erased = Erased { account, keys: 0, kept: 0 };
        let now_ms = ctx.clock.now_ms();
        let is_left = |key: &&accounts::ApiKey| key.ends_at == 0 || key.ends_at > now_ms || !key.email_hash.is_empty();
        for key in all.iter().filter(|key| key.account == erased.account).filter(is_left) {
            let erase = AccountCommand {
                verb: "erase".to_owned(),
                key_id: key.id.clone(),
                account: erased.account.clone(),
                tier: key.tier.clone(),
                ..AccountCommand::default()
            };
            command(ctx, &accounts::VIEW, &key.id, Once::No, &erase).await?;
            self.forget(&key.id);
            erased.keys += 1;
        }
        Sealing::destroy(ctx, &erased.account).await?;
        for kept in kept_by(ctx, &erased.account).await? {
            kept::delete(ctx, &kept).await?;
            erased.kept += 1;
        }
        Ok(erased)
    }
}

/// The filters and watches of an account in all services.
async fn kept_by(ctx: &Context, account: &str) -> Result<Vec<SavedItem>, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let (mut found, mut scan) = (Vec::new(), view.scan(TABLES.records, Span::default()));
    loop {
        let rows = scan.next(PAGE_ROWS).await.map_err(store_problem)?;
        if rows.is_empty() {
            return Ok(found);
        }
        for (_, bytes) in &rows {
            let record = kept::read(bytes)?;
            if record.account == account && !record.gone {
                found.push(record);
            }
        }
    }
}
