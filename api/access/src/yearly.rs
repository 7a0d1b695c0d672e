//! Watches with an end: created or renewed with a key, or bought. The end is some calendar months after the creation, or after the end before a renewal.
//!
//! Promises: a payment creates or renews one watch, in the event that says that it is settled, and the same payment for the same request gets the same
//! answer. A buyer without an account gets a token, which is derived from the payment and the `Idempotency-Key` and is not stored: whoever sees the
//! payment on the chain cannot get the token of a buyer who sent such a key. Another's watch does not exist for a caller.

use operation::Call;
use operation::context::{store_problem, stored};
use operation::problem::Problem;
use proofs::hash::hex;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::position::Seq;
use schemas::topics::PAYMENTS;
use schemas::views::accounts::{self, AccountCommand, ItemCommand, ItemRequest};
use schemas::views::watches::{Bought, SavedItem, TABLES, bought_key, is_token_owner, months_after};

use super::append::{CommandPolicy, wait_until_projected};
use super::saved_items::{SavedItems, WatchWithSecret, idempotency_mismatch, read, subject_of};
use super::webhook::{Sealing, Webhook};
use crate::sign::SigningSecret;
use crate::token::{HEADER, WatchToken};

/// How far ahead a watch may end after a renewal with a key, in calendar months.
const MONTHS_AHEAD_MAX: i64 = 120;

/// The parameters of a watch with an end.
pub struct NewYearlyWatch {
    /// The text by which a second request of the same owner for the same is recognized: it renews the watch.
    pub name: String,
    /// What the request names: JSON. A repeated request with an idempotency key is recognized by it.
    pub given: String,
    /// What the request names, with the defaults of a new watch for what it leaves out: JSON. Earlier versions recognized a repeated request by it.
    pub given_with_defaults: String,
    /// What the watch names from then on: JSON. A renewal takes from the active watch what the request leaves out.
    pub entity: String,
    /// The filter in canonical form.
    pub filter: String,
    /// The URL to deliver to. A renewal without one leaves the webhook as it is.
    pub webhook: Option<Webhook>,
    /// The secret to sign with; `None` if it is to be generated.
    pub secret: Option<SigningSecret>,
    /// The service's last change before the watch.
    pub after: Seq,
    /// For how many calendar months the watch is active.
    pub months: i64,
}

/// A watch that was created or renewed.
pub struct YearlyWatch {
    /// The watch.
    pub item: SavedItem,
    /// The token that opens the watch, if it was bought by a caller without an account and without a token.
    pub token: Option<WatchToken>,
    /// The secret that signs the messages; only if the request set the webhook. A repeated request of an account gets none, a repeated payment gets it
    /// again.
    pub secret: Option<SigningSecret>,
}

/// The watches with an end of one caller in one service.
pub struct YearlyWatches<'a> {
    saved: SavedItems<'a>,
    token: Option<WatchToken>,
}

impl<'a> YearlyWatches<'a> {
    /// The watches that the token of the call opens, or those of the caller's account.
    #[must_use]
    pub fn new(call: &'a Call, service: &'static str, token: Option<WatchToken>) -> Self {
        let saved = SavedItems::watches(call, service);
        let saved = match &token {
            Some(token) => saved.of(token.owner()),
            None => saved,
        };
        Self { saved, token }
    }

    /// Creates a watch of the account, or renews the active one of the same name.
    ///
    /// # Errors
    /// `key-invalid` without an account; `parameter-invalid` with a token; `limit-reached`; `idempotency-mismatch` if the idempotency key was used for
    /// another request; `not-found` if the watch that a repeated request created was deleted; `unavailable` when the command is not projected in time.
    pub async fn create_or_renew(&self, new: NewYearlyWatch) -> Result<YearlyWatch, Problem> {
        let saved = &self.saved;
        if self.token.is_some() {
            let detail = "a key renews the watches of its account; leave the token out, or leave the key out to pay for the renewal";
            return Err(Problem::parameter(HEADER, detail));
        }
        if saved.owner.is_empty() {
            return Err(Problem::new(ErrorCode::KeyInvalid, "a watch belongs to the account of a key, and this call has none"));
        }
        let active = self.active(&new.name).await?;
        if let Some(active) = &active {
            let most = months_after(saved.ctx.clock.now_ms(), MONTHS_AHEAD_MAX).unwrap_or(i64::MAX);
            if active.until > most {
                let detail = format!("the watch ends more than {MONTHS_AHEAD_MAX} months from now; it cannot be renewed further yet");
                return Err(Problem::new(ErrorCode::LimitReached, detail));
            }
        }
        let once = match saved.idempotency_key {
            Some(text) => Some(self.derive_from_request(text, &new).await?),
            None => None,
        };
        let new_id = || format!("watch_{}", hex(&once.unwrap_or_else(rand::random)[..12]));
        let (subject, policy, id) = match (&active, once) {
            (Some(active), None) => (active.id.clone(), CommandPolicy::Always, active.id.clone()),
            (None, None) => {
                let id = new_id();
                (id.clone(), CommandPolicy::OncePerSubject, id)
            }
            (active, Some(once)) => {
                let id = active.as_ref().map_or_else(new_id, |active| active.id.clone());
                (subject_of(&once), CommandPolicy::OncePerSubject, id)
            }
        };
        let secret = new.secret.clone().unwrap_or_else(SigningSecret::random);
        let secret = new.webhook.as_ref().map(|_| secret);
        let request = self.command(&id, new, secret.as_ref(), saved.limit_in_command()).await?.request;
        let sealed = match &request {
            ItemRequest::Watch(watch) => watch.secret.clone(),
            _ => String::new(),
        };
        let item = saved.create_item(&subject, policy, id, request).await?;
        let WatchWithSecret { item, secret } = WatchWithSecret::of(item, secret, &sealed);
        Ok(YearlyWatch { item, token: None, secret })
    }

    /// Bytes derived from an idempotency key and a request. A repeated request gets the same bytes, also one whose first command an earlier version recorded:
    /// it took a request that leaves out a default and one that names it for the same.
    async fn derive_from_request(&self, text: &str, new: &NewYearlyWatch) -> Result<[u8; 32], Problem> {
        let webhook = new.webhook.as_ref().map_or("", |webhook| webhook.reveal());
        let secret = new.secret.as_ref().map_or_else(String::new, SigningSecret::reveal);
        let derive = |form: &str, given: &str| self.saved.derive_from_request(text, &[form, given, webhook, &secret]);
        let former = derive("yearly", &new.given_with_defaults);
        if self.saved.is_created_by(text, &subject_of(&former)).await? {
            return Ok(former);
        }
        // The form has another name, so that a request which names all defaults is not what earlier versions recorded.
        Ok(derive("yearly-as-given", &new.given))
    }

    /// Returns the effect of a payment for a watch, as JSON. If there is an active watch of the same name, the payment renews it.
    ///
    /// # Errors
    /// `not-found` if the token of the call opens no active watch of this name; `unavailable` when the rows cannot be read.
    pub async fn order(&self, payment: &str, new: NewYearlyWatch) -> Result<String, Problem> {
        let id = match self.active(&new.name).await? {
            Some(active) => active.id,
            None => format!("watch_{}", hex(&self.saved.ctx.secrets.repeat(&[b"bought-watch", payment.as_bytes()])[..12])),
        };
        let secret = new.webhook.as_ref().map(|_| self.secret_of(payment, new.secret.as_ref()));
        let command = match self.new_token(payment) {
            None => self.command(&id, new, secret.as_ref(), 0).await?,
            Some(token) => self.command_of(&token.owner(), &id, new, secret.as_ref(), 0).await?,
        };
        serde_json::to_string(&AccountCommand::Item(command)).map_err(|error| {
            tracing::error!(%error, "the command of a bought watch cannot be encoded");
            Problem::new(ErrorCode::Internal, "the watch cannot be ordered; nothing was charged")
        })
    }

    /// Checks whether a claimed purchase can still take effect.
    ///
    /// # Errors
    /// `not-found` if the token of the call no longer opens an active watch of this name.
    pub async fn check_claimed(&self, name: &str) -> Result<(), Problem> {
        self.active(name).await.map(|_| ())
    }

    /// Returns the watch that a settled payment has bought. `given_secret` is that of the request, and `has_webhook` whether it has a webhook.
    ///
    /// # Errors
    /// `idempotency-mismatch` if the payment was made with another `Idempotency-Key`, token or account; `not-found` if the watch was cancelled since;
    /// `unavailable` if the purchase is not decided yet.
    pub async fn bought(&self, payment: &str, has_webhook: bool, given_secret: Option<&SigningSecret>) -> Result<YearlyWatch, Problem> {
        let ctx = self.saved.ctx;
        wait_until_projected(ctx, TABLES.view, &PAYMENTS).await?;
        let view = ctx.live(TABLES.view).await?;
        let bought = view.get(TABLES.state, &key![bought_key(payment)]).await.map_err(store_problem)?;
        let bought: Option<Bought> = bought.map(|bytes| stored(TABLES.state, &bytes)).transpose()?;
        let undecided = || Problem::new(ErrorCode::Unavailable, "the watch is not created yet; ask again").retry_after(1);
        let Bought { watch } = bought.ok_or_else(undecided)?;
        let row = view.get(TABLES.records, &key![watch.as_str()]).await.map_err(store_problem)?;
        let item = row.map(|bytes| read(&bytes)).transpose()?.ok_or_else(undecided)?;
        let token = self.new_token(payment);
        let owner = token.as_ref().map_or_else(|| self.saved.owner.clone(), WatchToken::owner);
        if item.account != owner {
            return Err(idempotency_mismatch());
        }
        if item.gone {
            return Err(Problem::new(ErrorCode::NotFound, "the watch that this payment bought was cancelled"));
        }
        let secret = has_webhook.then(|| self.secret_of(payment, given_secret));
        Ok(YearlyWatch { secret: self.current_secret(&item, secret).await?, item, token })
    }

    /// Deletes a watch. Nothing that was encrypted for the holder of a token can be decrypted afterwards.
    ///
    /// # Errors
    /// `not-found`; `unavailable` when the command is not projected in time.
    pub async fn cancel(&self, id: &str) -> Result<(), Problem> {
        let item = self.saved.watch(id).await?;
        self.saved.delete(&item).await?;
        if is_token_owner(&item.account) && self.saved.list().await?.is_empty() {
            Sealing::destroy(self.saved.ctx, &item.account).await?;
        }
        Ok(())
    }

    /// The active watch of a name that the caller owns: the one that a request for this name renews. `None` if there is none.
    ///
    /// # Errors
    /// `unavailable` when the rows cannot be read.
    pub async fn find_active(&self, name: &str) -> Result<Option<SavedItem>, Problem> {
        let now_ms = self.saved.ctx.clock.now_ms();
        let all = if self.saved.owner.is_empty() { Vec::new() } else { self.saved.list().await? };
        Ok(all.into_iter().find(|item| item.until != 0 && item.is_active(now_ms) && item.name == name))
    }

    /// The active watch of a name that the caller owns.
    ///
    /// # Errors
    /// `not-found` if the call has a token, and it opens no such watch.
    async fn active(&self, name: &str) -> Result<Option<SavedItem>, Problem> {
        let active = self.find_active(name).await?;
        if active.is_none() && self.token.is_some() {
            let detail = "the token opens no active watch of this; leave the token out to buy a new watch";
            return Err(Problem::new(ErrorCode::NotFound, detail).about(HEADER));
        }
        Ok(active)
    }

    /// The token of a new watch that a payment buys; `None` if it belongs to an account, or to a token that exists.
    fn new_token(&self, payment: &str) -> Option<WatchToken> {
        let key = self.saved.idempotency_key.unwrap_or_default();
        let derive = || self.saved.ctx.secrets.repeat(&[b"watch-token", payment.as_bytes(), key.as_bytes()]);
        self.saved.owner.is_empty().then(|| WatchToken::of(derive()))
    }

    /// The secret that signs the messages of a watch that a payment buys. It is the same for a repeated request.
    fn secret_of(&self, payment: &str, given: Option<&SigningSecret>) -> SigningSecret {
        let key = self.saved.idempotency_key.unwrap_or_default();
        let derive = || self.saved.ctx.secrets.repeat(&[b"watch-secret", payment.as_bytes(), key.as_bytes()]);
        given.cloned().unwrap_or_else(|| SigningSecret::of(derive()))
    }

    /// The secret that a request set, unless another one was set since.
    async fn current_secret(&self, item: &SavedItem, set: Option<SigningSecret>) -> Result<Option<SigningSecret>, Problem> {
        let Some(set) = set else { return Ok(None) };
        let sealing = Sealing::load(self.saved.ctx, &item.account).await?;
        let current = sealing.and_then(|sealing| sealing.open_secret(&item.id, &item.secret));
        Ok(current.filter(|current| *current == set))
    }

    async fn command(&self, id: &str, new: NewYearlyWatch, secret: Option<&SigningSecret>, limit: i64) -> Result<ItemCommand, Problem> {
        self.command_of(&self.saved.owner, id, new, secret, limit).await
    }

    /// The command that creates or renews a watch of an owner.
    async fn command_of(
        &self,
        owner: &str,
        id: &str,
        new: NewYearlyWatch,
        secret: Option<&SigningSecret>,
        limit: i64,
    ) -> Result<ItemCommand, Problem> {
        let NewYearlyWatch { name, given: _, given_with_defaults: _, entity, filter, webhook, secret: _, after, months } = new;
        let (webhook, secret) = match webhook.zip(secret) {
            Some((webhook, secret)) => {
                let sealing = Sealing::load_or_create(self.saved.ctx, owner).await?;
                (sealing.seal(&webhook, id)?, sealing.seal_secret(secret, id)?)
            }
            None => (String::new(), String::new()),
        };
        let watch = accounts::NewWatch { name, filter, entity, webhook, secret, after, limit, months: Some(months) };
        let (item_id, account, service) = (id.to_owned(), owner.to_owned(), self.saved.service.to_owned());
        Ok(ItemCommand { item_id, account, service, once: None, request: ItemRequest::Watch(watch) })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use feed::testing::accounts::world;
    use feed::testing::call;
    use schemas::tables::Write;
    use schemas::views::watches::once_key;
    use view_store::ViewStore as _;

    use super::*;

    /// Proves that a request which an earlier version recorded is recognized, whether it names the default or not, and that of this version's requests one
    /// that names the default is another one, whichever came first.
    #[tokio::test]
    async fn requests_of_earlier_versions_are_recognized() {
        let (world, ctx) = world().await;
        let mut call = call(&ctx);
        call.caller.account = "acct_1".to_owned();
        let watches = YearlyWatches::new(&call, "names", None);
        let new = |given: &str| NewYearlyWatch {
            name: "MORVANDA".to_owned(),
            given: given.to_owned(),
            given_with_defaults: "{strong}".to_owned(),
            entity: "{strong}".to_owned(),
            filter: String::new(),
            webhook: None,
            secret: None,
            after: Seq(0),
            months: 12,
        };
        let (without, with) = (new("{}"), new("{strong}"));
        let derived =
            async || [watches.derive_from_request("k", &without).await.unwrap(), watches.derive_from_request("k", &with).await.unwrap()];
        let [of_without, of_with] = derived().await;
        assert_ne!(of_without, of_with);
        let view = world.store.live(TABLES.view).await.unwrap();
        let former = watches.saved.derive_from_request("k", &["yearly", "{strong}", "", ""]);
        let once = hex(&watches.saved.derive_from_request("k", &["once", "create"])[..12]);
        for (first, expected) in [(of_without, [of_without, of_with]), (of_with, [of_without, of_with]), (former, [former, former])] {
            let row = Bytes::from(format!("\"{}\"", subject_of(&first)));
            let checkpoint = view.checkpoint().await.unwrap();
            view.commit(vec![Write::put(TABLES.state, key![once_key(&once)], row)], &checkpoint).await.unwrap();
            assert_eq!(derived().await, expected);
        }
        let other = NewYearlyWatch { given_with_defaults: "{exact}".to_owned(), ..new("{exact}") };
        assert_ne!(watches.derive_from_request("k", &other).await.unwrap(), former);
    }
}
