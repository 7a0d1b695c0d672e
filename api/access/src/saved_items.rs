//! The saved items of an account in a service: saved filters, watches and fleets. Each write is a command, answered once the view has processed it.
//!
//! Promises: an account finds only its own items. A request with an idempotency key is processed once. The limit of the tier is enforced where commands
//! are decided, so that concurrent requests cannot exceed it.

use std::collections::BTreeMap;

use operation::context::{Context, store_problem, stored};
use operation::problem::Problem;
use operation::{Call, Caller};
use proofs::hash::{Hash32, hex};
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Key;
use schemas::views::accounts::{self, AccountCommand, ItemCommand, ItemRequest};
use schemas::views::records::Row;
use schemas::views::watches::{SavedItem, TABLES, ends_key, kind, once_key, saved_items_key};

use super::append::{CommandPolicy, append_command};
use super::webhook::{Sealing, Webhook};
use crate::sign::SigningSecret;
use crate::token::WatchToken;

/// The action of requests that create items, for idempotency keys.
const CREATE: &str = "create";

/// The saved items of one kind of one owner in one service.
pub struct SavedItems<'a> {
    pub(super) ctx: &'a Context,
    caller: &'a Caller,
    /// The account of the caller, or the holder of a token.
    pub(super) owner: String,
    pub(super) idempotency_key: Option<&'a str>,
    pub(super) service: &'static str,
    kind: &'static str,
}

/// The parameters of a new watch.
pub struct NewWatch {
    /// The watched entity as requested: JSON.
    pub entity: String,
    /// The filter in canonical form.
    pub filter: String,
    /// The URL to deliver to, and the secret to sign with.
    pub webhook: Option<(Webhook, SigningSecret)>,
    /// The secret from the request; empty if it is to be generated.
    pub given_secret: String,
    /// The service's last change before the watch.
    pub after: Seq,
}

/// A watch, with the secret that a request set for its webhook.
pub struct WatchWithSecret {
    /// The watch.
    pub item: SavedItem,
    /// The secret; `None` if the request set none. A repeated request sets none: its first answer is the only one that has it.
    pub secret: Option<SigningSecret>,
}

impl WatchWithSecret {
    /// The watch after a request that encrypted a secret as `sealed`. Each encryption is another text, so the stored one tells whether this request set it.
    pub(super) fn of(item: SavedItem, secret: Option<SigningSecret>, sealed: &str) -> Self {
        let secret = secret.filter(|_| item.secret == sealed);
        Self { item, secret }
    }
}

impl<'a> SavedItems<'a> {
    /// The caller's filters in a service.
    pub fn filters(call: &'a Call, service: &'static str) -> Self {
        Self::new(call, service, kind::FILTER)
    }

    /// The caller's watches in a service.
    pub fn watches(call: &'a Call, service: &'static str) -> Self {
        Self::new(call, service, kind::WATCH)
    }

    /// The watches in a service that a token opens, or those of the caller's account if there is no token.
    ///
    /// # Errors
    /// `key-invalid` if there is neither a token nor a key.
    pub fn of_owner(call: &'a Call, service: &'static str, token: Option<&WatchToken>) -> Result<Self, Problem> {
        let watches = Self::watches(call, service);
        match token {
            Some(token) => Ok(watches.of(token.owner())),
            None if call.caller.account.is_empty() => {
                Err(Problem::new(ErrorCode::KeyInvalid, "give an API key, or the token of the watch in the header X-Watch-Token"))
            }
            None => Ok(watches),
        }
    }

    /// The saved items of another owner in the same service.
    pub(super) fn of(self, owner: String) -> Self {
        Self { owner, ..self }
    }

    /// The caller's fleets in a service.
    pub fn fleets(call: &'a Call, service: &'static str) -> Self {
        Self::new(call, service, kind::FLEET)
    }

    fn new(call: &'a Call, service: &'static str, kind: &'static str) -> Self {
        let (caller, idempotency_key) = (&call.caller, call.idempotency_key.as_deref());
        Self { ctx: &call.context, caller, owner: caller.account.clone(), idempotency_key, service, kind }
    }

    /// Lists all items, in the order of creation.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn list(&self) -> Result<Vec<SavedItem>, Problem> {
        let view = self.ctx.live(TABLES.view).await?;
        let keys: Vec<Key> = self.ids().await?.iter().map(|id| key![id.as_str()]).collect();
        let rows = view.get_many(TABLES.records, &keys).await.map_err(store_problem)?;
        let all = rows.into_iter().flatten().map(|bytes| read(&bytes)).collect::<Result<Vec<SavedItem>, Problem>>()?;
        Ok(all.into_iter().filter(|item| self.has(item)).collect())
    }

    /// Finds a filter by name.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn filter(&self, name: &str) -> Result<SavedItem, Problem> {
        let found = self.find(&self.filter_id(name)).await?;
        found.ok_or_else(|| Problem::new(ErrorCode::NotFound, format!("this account has no saved filter {name:?} in this service")))
    }

    /// Finds a watch by id.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn watch(&self, id: &str) -> Result<SavedItem, Problem> {
        self.find(id).await?.ok_or_else(|| {
            Problem::new(ErrorCode::NotFound, "there is no such watch in this service, or it is somebody else's").about("id")
        })
    }

    /// Saves a filter (in canonical form) under a name. Replaces the filter with that name, if there is one.
    ///
    /// # Errors
    /// `limit-reached`; `idempotency-mismatch` if the idempotency key was used for another request; `unavailable` when the command is not projected in
    /// time.
    pub async fn save(&self, name: &str, filter: String) -> Result<SavedItem, Problem> {
        let id = self.filter_id(name);
        let (subject, policy) = match self.idempotency_key {
            Some(text) => (subject_of(&self.derive_from_request(text, &[name, &filter])), CommandPolicy::OncePerSubject),
            None => (id.clone(), CommandPolicy::Always),
        };
        let save = ItemRequest::SaveFilter { name: name.to_owned(), filter, limit: self.limit_in_command() };
        self.create_item(&subject, policy, id, save).await
    }

    /// Creates a watch.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub async fn create(&self, new: NewWatch) -> Result<WatchWithSecret, Problem> {
        let NewWatch { entity, filter, webhook, given_secret, after } = new;
        let random = match self.idempotency_key {
            Some(text) => {
                self.derive_from_request(text, &[&entity, webhook.as_ref().map_or("", |(webhook, _)| webhook.reveal()), &given_secret])
            }
            None => rand::random(),
        };
        let id = format!("watch_{}", hex(&random[..12]));
        let (url, sealed) = match &webhook {
            Some((webhook, secret)) => {
                let sealing = Sealing::load_or_create(self.ctx, &self.owner).await?;
                (sealing.seal(webhook, &id)?, sealing.seal_secret(secret, &id)?)
            }
            None => (String::new(), String::new()),
        };
        let limit = self.limit_in_command();
        let watch =
            accounts::NewWatch { filter, entity, webhook: url, secret: sealed.clone(), after, limit, ..accounts::NewWatch::default() };
        let item = self.create_item(&id.clone(), CommandPolicy::OncePerSubject, id, ItemRequest::Watch(watch)).await?;
        Ok(WatchWithSecret::of(item, webhook.map(|(_, secret)| secret), &sealed))
    }

    /// Changes the webhook or the secret of a watch. `given` is the request as the caller sent it.
    ///
    /// # Errors
    /// `idempotency-mismatch` if the idempotency key was used for another request; `unavailable` when the command is not projected in time.
    pub async fn retarget(
        &self,
        item: &SavedItem,
        sealing: &Sealing,
        webhook: Option<&Webhook>,
        secret: Option<&SigningSecret>,
        given: [&str; 3],
    ) -> Result<WatchWithSecret, Problem> {
        let webhook = webhook.map(|webhook| sealing.seal(webhook, &item.id)).transpose()?.unwrap_or_default();
        let sealed = secret.map(|secret| sealing.seal_secret(secret, &item.id)).transpose()?.unwrap_or_default();
        let retarget = ItemRequest::Retarget { webhook, secret: sealed.clone() };
        // A repeated request changes nothing, so that it does not replace a secret again.
        let (subject, policy) = match self.idempotency_key {
            Some(text) => {
                let [url, new_secret, rotation] = given;
                let request = ["retarget", &item.id, url, new_secret, rotation];
                (subject_of(&self.derive_from_request(text, &request)), CommandPolicy::OncePerSubject)
            }
            None => (item.id.clone(), CommandPolicy::Always),
        };
        self.append(&subject, policy, &format!("retarget/{}", item.id), item.id.clone(), retarget).await?;
        Ok(WatchWithSecret::of(self.watch(&item.id).await?, secret.cloned(), &sealed))
    }

    /// Deletes an item.
    ///
    /// # Errors
    /// `unavailable` when the command is not projected in time.
    pub async fn delete(&self, item: &SavedItem) -> Result<(), Problem> {
        delete(self.ctx, item).await
    }

    /// What the account's webhook URLs are encrypted with, if it has any.
    ///
    /// # Errors
    /// `unavailable` when the store does not answer.
    pub async fn sealing(&self) -> Result<Option<Sealing>, Problem> {
        Sealing::load(self.ctx, &self.owner).await
    }

    /// Appends a command that creates an item, and returns the item.
    pub(super) async fn create_item(
        &self,
        subject: &str,
        policy: CommandPolicy,
        id: String,
        request: ItemRequest,
    ) -> Result<SavedItem, Problem> {
        self.check_room(&id).await?;
        self.append(subject, policy, CREATE, id.clone(), request).await?;
        self.find(&id).await?.ok_or_else(|| match self.idempotency_key {
            Some(_) => {
                let detail = "the item that was created with this Idempotency-Key does not exist: it was deleted, or the limit was \
                    reached; use another key to create it again";
                Problem::new(ErrorCode::NotFound, detail)
            }
            None => self.limit_reached(),
        })
    }

    /// Checks that the tier allows one more item, unless the item exists.
    ///
    /// # Errors
    /// `limit-reached`.
    pub(super) async fn check_room(&self, id: &str) -> Result<(), Problem> {
        let ids = self.active_ids().await?;
        if ids.len() >= self.limit() && !ids.iter().any(|known| known == id) {
            return Err(self.limit_reached());
        }
        Ok(())
    }

    /// Appends a command about an item. An idempotency key is valid for one request of an action.
    ///
    /// # Errors
    /// `idempotency-mismatch` if the key was used for another request, whose command has another subject.
    async fn append(
        &self,
        subject: &str,
        policy: CommandPolicy,
        action: &str,
        item_id: String,
        request: ItemRequest,
    ) -> Result<(), Problem> {
        let once = self.idempotency_key.map(|text| self.once(text, action));
        if let Some(once) = &once {
            self.check_unused(once, subject).await?;
        }
        let (account, service) = (self.owner.clone(), self.service.to_owned());
        let command = AccountCommand::Item(ItemCommand { item_id, account, service, once: once.clone(), request });
        append_command(self.ctx, TABLES.view, subject, policy, &command).await?;
        match &once {
            // Of requests at the same time, the first to be recorded has the key.
            Some(once) => self.check_unused(once, subject).await,
            None => Ok(()),
        }
    }

    /// Checks that an idempotency key was not used for a request with another subject.
    async fn check_unused(&self, once: &str, subject: &str) -> Result<(), Problem> {
        match self.first_subject(once).await? {
            Some(first) if first != subject => Err(idempotency_mismatch()),
            _ => Ok(()),
        }
    }

    /// The hash of an idempotency key for an action, as commands carry it.
    fn once(&self, text: &str, action: &str) -> String {
        hex(&self.derive_from_request(text, &["once", action])[..12])
    }

    /// The subject of the first request with an idempotency key, given as the hash in commands; `None` if there was none.
    async fn first_subject(&self, once: &str) -> Result<Option<String>, Problem> {
        let view = self.ctx.live(TABLES.view).await?;
        let first = view.get(TABLES.state, &key![once_key(once)]).await.map_err(store_problem)?;
        first.map(|bytes| stored(TABLES.state, &bytes)).transpose()
    }

    /// Whether the first request that created an item with an idempotency key has a subject.
    ///
    /// # Errors
    /// `unavailable` when the row cannot be read.
    pub(super) async fn is_created_by(&self, text: &str, subject: &str) -> Result<bool, Problem> {
        Ok(self.first_subject(&self.once(text, CREATE)).await?.as_deref() == Some(subject))
    }

    /// The limit of the tier, as commands carry it.
    pub(super) fn limit_in_command(&self) -> i64 {
        i64::try_from(self.limit()).unwrap_or(i64::MAX)
    }

    /// The limit of the tier for this kind of item.
    fn limit(&self) -> usize {
        let limits = self.ctx.settings.tiers.of(self.caller.tier);
        match self.kind {
            kind::WATCH => limits.watches_max,
            kind::FLEET => limits.fleets_max,
            _ => limits.filters_max,
        }
    }

    fn limit_reached(&self) -> Problem {
        let what = match self.kind {
            kind::WATCH => "watches",
            kind::FLEET => "stored fleets",
            _ => "saved filters",
        };
        let detail = format!(
            "this account has {} {what} in this service, the limit of tier {}; delete one first",
            self.limit(),
            self.caller.tier.as_str()
        );
        Problem::new(ErrorCode::LimitReached, detail)
    }

    /// Bytes derived from an idempotency key and a request. A repeated request gets the same bytes.
    pub(super) fn derive_from_request(&self, text: &str, request: &[&str]) -> [u8; 32] {
        let begin = [self.kind, text, self.owner.as_str(), self.service];
        let parts: Vec<&[u8]> = begin.iter().chain(request).map(|part| part.as_bytes()).collect();
        self.ctx.secrets.repeat(&parts)
    }

    /// The id of the filter with a name. An account has one filter per name and service.
    fn filter_id(&self, name: &str) -> String {
        format!("filter_{}", self.hash_of_name(name))
    }

    /// 24 hex digits for a name: the same for the same owner, service and name.
    pub(super) fn hash_of_name(&self, name: &str) -> String {
        let parts = [self.owner.as_bytes(), self.service.as_bytes(), name.as_bytes()];
        hex(&Hash32::of_parts(&parts).0[..12])
    }

    async fn ids(&self) -> Result<Vec<String>, Problem> {
        let view = self.ctx.live(TABLES.view).await?;
        let key = key![saved_items_key(&self.owner, self.service, self.kind)];
        let row = view.get(TABLES.state, &key).await.map_err(store_problem)?;
        row.map_or_else(|| Ok(Vec::new()), |bytes| stored(TABLES.state, &bytes))
    }

    /// The ids of the items that have not ended.
    async fn active_ids(&self) -> Result<Vec<String>, Problem> {
        let mut ids = self.ids().await?;
        if self.kind == kind::WATCH {
            let view = self.ctx.live(TABLES.view).await?;
            let row = view.get(TABLES.state, &key![ends_key(&self.owner, self.service)]).await.map_err(store_problem)?;
            let ends: BTreeMap<String, i64> = row.map_or_else(|| Ok(BTreeMap::new()), |bytes| stored(TABLES.state, &bytes))?;
            let now_ms = self.ctx.clock.now_ms();
            ids.retain(|id| ends.get(id).is_none_or(|until| now_ms <= *until));
        }
        Ok(ids)
    }

    /// Finds an item of this owner by id.
    pub(super) async fn find(&self, id: &str) -> Result<Option<SavedItem>, Problem> {
        let view = self.ctx.live(TABLES.view).await?;
        let row = view.get(TABLES.records, &key![id]).await.map_err(store_problem)?;
        Ok(row.map(|bytes| read(&bytes)).transpose()?.filter(|item| self.has(item)))
    }

    fn has(&self, item: &SavedItem) -> bool {
        item.is_readable(self.ctx.clock.now_ms()) && item.account == self.owner && item.service == self.service && item.kind == self.kind
    }
}

/// Deletes an item of any account. The secret of a fleet is destroyed first, so that no rebuild can read it again.
///
/// # Errors
/// `unavailable` when the command is not projected in time.
pub(super) async fn delete(ctx: &Context, item: &SavedItem) -> Result<(), Problem> {
    let (item_id, account, service) = (item.id.clone(), item.account.clone(), item.service.clone());
    let request = match item.kind.as_str() {
        kind::WATCH => ItemRequest::Unwatch,
        kind::FLEET => {
            Sealing::destroy_for_item(ctx, &item.account, &item.id).await?;
            ItemRequest::DeleteFleet
        }
        _ => ItemRequest::DeleteFilter,
    };
    let delete = AccountCommand::Item(ItemCommand { item_id, account, service, once: None, request });
    append_command(ctx, TABLES.view, &item.id, CommandPolicy::Always, &delete).await
}

/// The subject of the command of a request with an idempotency key, given the bytes that are derived from both.
pub(super) fn subject_of(derived: &[u8; 32]) -> String {
    format!("once_{}", hex(&derived[..12]))
}

/// The problem of an idempotency key that was used for another request.
pub(super) fn idempotency_mismatch() -> Problem {
    let detail = "this Idempotency-Key was used for another request; send each new request with a new key";
    Problem::new(ErrorCode::IdempotencyMismatch, detail).about("Idempotency-Key")
}

/// Decodes a stored item.
///
/// # Errors
/// `internal` if it cannot be decoded.
pub fn read(bytes: &[u8]) -> Result<SavedItem, Problem> {
    stored(TABLES.records, bytes).map(|row: Row<SavedItem>| row.record)
}
