//! What an account keeps in a service: saved filters and watches. Each act is a command, answered once the view has passed it.
//!
//! Promises: an account finds what is its own, and nothing else is there for it; a request with an idempotency key is done once; what the
//! tier may have is counted where commands are decided, so that requests at once get no more than it.

use schemas::error_code::ErrorCode;
use schemas::hash::{Hash32, hex};
use schemas::key;
use schemas::tables::Key;
use schemas::views::accounts::AccountCommand;
use schemas::views::records::Row;
use schemas::views::watches::{DELETE_FILTER, RETARGET, SAVE_FILTER, SavedItem, TABLES, UNWATCH, WATCH, kind, saved_items_key};

use super::append::{Once, command};
use super::webhook::{Sealing, Webhook};
use crate::sign::SigningSecret;
use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use operation::{Call, Caller};

/// The things of one kind that one account has in one service.
pub struct Shelf<'a> {
    ctx: &'a Context,
    caller: &'a Caller,
    idempotency_key: Option<&'a str>,
    service: &'static str,
    kind: &'static str,
}

/// What a watch is made of.
pub struct NewWatch {
    /// What is watched, as it was asked for: JSON.
    pub entity: String,
    /// The filter in canonical form.
    pub filter: String,
    /// Where to deliver, and what to sign with.
    pub webhook: Option<(Webhook, SigningSecret)>,
    /// The secret as it was given; empty where one is made.
    pub given: String,
    /// The service's last change that does not count.
    pub after: u64,
}

impl<'a> Shelf<'a> {
    /// The caller's filters in a service.
    pub fn filters(call: &'a Call, service: &'static str) -> Self {
        Self::new(call, service, kind::FILTER)
    }

    /// The caller's watches in a service.
    pub fn watches(call: &'a Call, service: &'static str) -> Self {
        Self::new(call, service, kind::WATCH)
    }

    fn new(call: &'a Call, service: &'static str, kind: &'static str) -> Self {
        Self { ctx: &call.context, caller: &call.caller, idempotency_key: call.idempotency_key.as_deref(), service, kind }
    }

    /// All of them, in the order in which they were made.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn list(&self) -> Result<Vec<SavedItem>, Problem> {
        let view = self.ctx.live(TABLES.view).await?;
        let keys: Vec<Key> = self.ids().await?.iter().map(|id| key![id.as_str()]).collect();
        let rows = view.get_many(TABLES.records, &keys).await.map_err(store_problem)?;
        let all = rows.into_iter().flatten().map(|bytes| read(&bytes)).collect::<Result<Vec<SavedItem>, Problem>>()?;
        Ok(all.into_iter().filter(|kept| self.has(kept)).collect())
    }

    /// The filter of a name.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn filter(&self, name: &str) -> Result<SavedItem, Problem> {
        let found = self.find(&self.filter_id(name)).await?;
        found.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("this account has no saved filter {name:?} here")))
    }

    /// The watch of an id.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn watch(&self, id: &str) -> Result<SavedItem, Problem> {
        self.find(id).await?.ok_or_else(|| Problem::new(ErrorCode::NotFound, "this account has no such watch here").about("id"))
    }

    /// Saves a filter (in canonical form) under a name, in the place of the one that has it.
    ///
    /// # Errors
    /// `limit-reached`; `unavailable` when it is not projected in time.
    pub async fn save(&self, name: &str, filter: String) -> Result<SavedItem, Problem> {
        let id = self.filter_id(name);
        let (subject, once) = match self.idempotency_key {
            Some(text) => (format!("once_{}", hex(&self.repeat(text, &[name, &filter])[..12])), Once::Yes),
            None => (id.clone(), Once::No),
        };
        let save = AccountCommand { verb: SAVE_FILTER.to_owned(), item_id: id, name: name.to_owned(), filter, ..AccountCommand::default() };
        self.make(&subject, once, save).await
    }

    /// Begins a watch.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub async fn begin(&self, new: NewWatch) -> Result<SavedItem, Problem> {
        let NewWatch { entity, filter, webhook, given, after } = new;
        let chance = match self.idempotency_key {
            Some(text) => self.repeat(text, &[&entity, webhook.as_ref().map_or("", |(webhook, _)| webhook.reveal()), &given]),
            None => rand::random(),
        };
        let id = format!("watch_{}", hex(&chance[..12]));
        let (webhook, secret) = match &webhook {
            Some((webhook, secret)) => {
                let sealing = Sealing::made(self.ctx, &self.caller.account).await?;
                (sealing.seal(webhook, &id)?, sealing.seal_secret(secret, &id)?)
            }
            None => (String::new(), String::new()),
        };
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let watch = AccountCommand {
            verb: WATCH.to_owned(),
            item_id: id.clone(),
            filter,
            entity,
            webhook,
            secret,
            after,
            ..AccountCommand::default()
        };
        self.make(&id, Once::Yes, watch).await
    }

    /// What a new secret is made of: by chance, or what a repeated request gives again.
    pub fn chance(&self, of: &str) -> [u8; 32] {
        self.idempotency_key.map_or_else(rand::random, |text| self.repeat(text, &["secret", of]))
    }

    /// Gives a watch another webhook, or another secret.
    ///
    /// # Errors
    /// `unavailable` when it is not projected in time.
    pub async fn retarget(
        &self,
        kept: &SavedItem,
        sealing: &Sealing,
        webhook: Option<&Webhook>,
        secret: Option<&SigningSecret>,
    ) -> Result<SavedItem, Problem> {
        let webhook = webhook.map(|webhook| sealing.seal(webhook, &kept.id)).transpose()?.unwrap_or_default();
        let secret = secret.map(|secret| sealing.seal_secret(secret, &kept.id)).transpose()?.unwrap_or_default();
        let retarget = AccountCommand { verb: RETARGET.to_owned(), item_id: kept.id.clone(), webhook, secret, ..AccountCommand::default() };
        // A repeated request changes nothing again, and so takes away no secret that somebody still has.
        let (subject, once) = match self.idempotency_key {
            Some(text) => (format!("once_{}", hex(&self.repeat(text, &["retarget", &kept.id])[..12])), Once::Yes),
            None => (kept.id.clone(), Once::No),
        };
        command(self.ctx, TABLES.view, &subject, once, &self.own(retarget)).await?;
        self.watch(&kept.id).await
    }

    /// Deletes one of them.
    ///
    /// # Errors
    /// `unavailable` when it is not projected in time.
    pub async fn delete(&self, kept: &SavedItem) -> Result<(), Problem> {
        delete(self.ctx, kept).await
    }

    /// What the account's addresses are sealed with, if there are any.
    ///
    /// # Errors
    /// `unavailable` when the store does not answer.
    pub async fn sealing(&self) -> Result<Option<Sealing>, Problem> {
        Sealing::of(self.ctx, &self.caller.account).await
    }

    /// Appends a command that makes something, and answers what it made.
    async fn make(&self, subject: &str, once: Once, make: AccountCommand) -> Result<SavedItem, Problem> {
        let id = make.item_id.clone();
        let ids = self.ids().await?;
        if !ids.contains(&id) && ids.len() >= self.most() {
            return Err(self.full());
        }
        let limit = i64::try_from(self.most()).unwrap_or(i64::MAX);
        command(self.ctx, TABLES.view, subject, once, &self.own(AccountCommand { limit, ..make })).await?;
        self.find(&id).await?.ok_or_else(|| match self.idempotency_key {
            Some(_) => {
                let detail = "what was made with this Idempotency-Key is not there: it was deleted since, or there was no room for it; use \
                    another key to make it anew";
                Problem::new(ErrorCode::NotFound, detail)
            }
            None => self.full(),
        })
    }

    /// The command as this account's, in this service.
    fn own(&self, command: AccountCommand) -> AccountCommand {
        AccountCommand { account: self.caller.account.clone(), service: self.service.to_owned(), ..command }
    }

    /// How many there may be.
    fn most(&self) -> usize {
        let limits = self.ctx.settings.tiers.of(self.caller.tier);
        if self.kind == kind::WATCH { limits.watches_max } else { limits.filters_max }
    }

    fn full(&self) -> Problem {
        let what = if self.kind == kind::WATCH { "watches" } else { "saved filters" };
        let detail =
            format!("this account has {} {what} here, as many as tier {} may; delete one first", self.most(), self.caller.tier.as_str());
        Problem::new(ErrorCode::LimitReached, detail)
    }

    /// What an idempotency key and a request give again.
    fn repeat(&self, text: &str, request: &[&str]) -> [u8; 32] {
        let begin = [self.kind, text, self.caller.account.as_str(), self.service];
        let parts: Vec<&[u8]> = begin.iter().chain(request).map(|part| part.as_bytes()).collect();
        self.ctx.secrets.repeat(&parts)
    }

    /// The id of the filter of a name: an account has one of each name in a service.
    fn filter_id(&self, name: &str) -> String {
        let parts = [self.caller.account.as_bytes(), self.service.as_bytes(), name.as_bytes()];
        format!("filter_{}", hex(&Hash32::of_parts(&parts).0[..12]))
    }

    async fn ids(&self) -> Result<Vec<String>, Problem> {
        let view = self.ctx.live(TABLES.view).await?;
        let key = key![saved_items_key(&self.caller.account, self.service, self.kind)];
        let row = view.get(TABLES.sources, &key).await.map_err(store_problem)?;
        row.map_or_else(|| Ok(Vec::new()), |bytes| stored(TABLES.sources, &bytes))
    }

    /// The one of an id, if it is there for this account.
    async fn find(&self, id: &str) -> Result<Option<SavedItem>, Problem> {
        let view = self.ctx.live(TABLES.view).await?;
        let row = view.get(TABLES.records, &key![id]).await.map_err(store_problem)?;
        Ok(row.map(|bytes| read(&bytes)).transpose()?.filter(|kept| self.has(kept)))
    }

    fn has(&self, kept: &SavedItem) -> bool {
        !kept.gone && kept.account == self.caller.account && kept.service == self.service && kept.kind == self.kind
    }
}

/// Deletes a filter or watch, whosever it is.
///
/// # Errors
/// `unavailable` when it is not projected in time.
pub(super) async fn delete(ctx: &Context, kept: &SavedItem) -> Result<(), Problem> {
    let delete = AccountCommand {
        verb: if kept.kind == kind::WATCH { UNWATCH } else { DELETE_FILTER }.to_owned(),
        item_id: kept.id.clone(),
        account: kept.account.clone(),
        service: kept.service.clone(),
        ..AccountCommand::default()
    };
    command(ctx, TABLES.view, &kept.id, Once::No, &delete).await
}

/// A filter or watch as it is stored.
///
/// # Errors
/// `internal` for one that cannot be read.
pub fn read(bytes: &[u8]) -> Result<SavedItem, Problem> {
    stored(TABLES.records, bytes).map(|row: Row<SavedItem>| row.record)
}
