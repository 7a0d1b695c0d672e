//! Erases an account: its keys are revoked, its saved filters, watches and fleets are deleted, and the secret that its webhook URLs are encrypted with is
//! destroyed, so that no rebuild can read them again.
//!
//! Promises: each step can be repeated, and an erasure that was interrupted is completed by running it again. A node that still has the account's
//! key cached adds nothing that is encrypted; other items that it adds within [`KEY_CACHED_FOR_MAX`](super::KEY_CACHED_FOR_MAX) are deleted by the next run.

use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::accounts::{self, AccountCommand, KeyOfAccount};
use schemas::views::watches::{SavedItem, TABLES, is_token_owner};
use view_store::store::Span;

use super::append::{CommandPolicy, append_command};
use super::commands::PAGE_ROWS;
use super::webhook::Sealing;
use super::{Access, saved_items};

/// The result of an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasedAccount {
    /// The account.
    pub account: String,
    /// How many keys were revoked, or lost their e-mail hash.
    pub keys: usize,
    /// How many filters, watches and fleets were deleted.
    pub saved_items: usize,
}

impl Access {
    /// Erases an account, named by its id or by the id of one of its keys; or what a token opens, named by the id of a watch.
    ///
    /// # Errors
    /// `not-found` if there is no such account, key or watch; `unavailable` when a command is not projected in time: run it again.
    pub async fn erase(&self, ctx: &Context, name: &str) -> Result<ErasedAccount, Problem> {
        if let Some(owner) = token_owner_of(ctx, name).await? {
            return erase_items(ctx, ErasedAccount { account: owner, keys: 0, saved_items: 0 }).await;
        }
        let all = self.list(ctx).await?;
        let account = all.iter().find(|key| name == key.id || name == key.account).map(|key| key.account.clone());
        let account = account.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("there is no account or key {name}")))?;
        let mut erased = ErasedAccount { account, keys: 0, saved_items: 0 };
        let now_ms = ctx.clock.now_ms();
        let is_left = |key: &&accounts::ApiKey| key.ends_at == 0 || key.ends_at > now_ms || !key.email_hash.is_empty();
        for key in all.iter().filter(|key| key.account == erased.account).filter(is_left) {
            let key_of_account = KeyOfAccount { key_id: key.id.clone(), account: erased.account.clone(), tier: key.tier.clone() };
            let erase = AccountCommand::Erase(key_of_account);
            append_command(ctx, &accounts::VIEW, &key.id, CommandPolicy::Always, &erase).await?;
            self.forget(&key.id);
            erased.keys += 1;
        }
        erase_items(ctx, erased).await
    }
}

/// Destroys the secret of an owner and deletes the owner's filters, watches and fleets.
async fn erase_items(ctx: &Context, mut erased: ErasedAccount) -> Result<ErasedAccount, Problem> {
    Sealing::destroy(ctx, &erased.account).await?;
    for item in saved_items_of(ctx, &erased.account).await? {
        saved_items::delete(ctx, &item).await?;
        erased.saved_items += 1;
    }
    Ok(erased)
}

/// The owner of a watch, if it is the holder of a token.
async fn token_owner_of(ctx: &Context, watch: &str) -> Result<Option<String>, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let row = view.get(TABLES.records, &key![watch]).await.map_err(store_problem)?;
    let owner = row.map(|bytes| saved_items::read(&bytes)).transpose()?.map(|item| item.account);
    Ok(owner.filter(|owner| is_token_owner(owner)))
}

/// The filters, watches and fleets of an account in all services.
async fn saved_items_of(ctx: &Context, account: &str) -> Result<Vec<SavedItem>, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let (mut found, mut scan) = (Vec::new(), view.scan(TABLES.records, Span::default()));
    loop {
        let rows = scan.next(PAGE_ROWS).await.map_err(store_problem)?;
        if rows.is_empty() {
            return Ok(found);
        }
        for (_, bytes) in &rows {
            let record = saved_items::read(bytes)?;
            if record.account == account && !record.gone {
                found.push(record);
            }
        }
    }
}
