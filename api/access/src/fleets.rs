//! Fleets that an account stores in a service, each under a name.
//!
//! Promises: name and aircraft of a fleet are encrypted under a secret of the account and one of the fleet before they reach the log. A deleted fleet
//! cannot be read again: its secret is destroyed. An account finds only its own fleets.

use operation::context::{Context, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::key;
use schemas::views::accounts::ItemRequest;
use schemas::views::watches::{SavedItem, TABLES, kind};
use serde_json::{Value, json};

use super::append::CommandPolicy;
use super::saved_items::{self, SavedItems, subject_of};
use super::webhook::Sealing;

/// The largest fleet that is stored, in bytes of JSON. Encrypted and twice in a change, it stays below the size of a record of the log.
const FLEET_BYTES_MAX: usize = 96 << 10;

/// A stored fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFleet {
    /// Id of the item.
    pub id: String,
    /// The name of the fleet.
    pub name: String,
    /// The aircraft of the fleet, as the service gave them: JSON.
    pub aircraft: Value,
    /// When it was first stored, milliseconds since 1970.
    pub made_at: i64,
    /// When it was last changed, milliseconds since 1970.
    pub changed_at: i64,
}

/// What is encrypted.
fn contents_of(name: &str, aircraft: &Value) -> String {
    json!({ "name": name, "aircraft": aircraft }).to_string()
}

/// Name and aircraft of what was encrypted; `None` for another text.
fn read_contents(text: &str) -> Option<(String, Value)> {
    let mut contents: Value = serde_json::from_str(text).ok()?;
    let aircraft = contents.get_mut("aircraft").map(Value::take)?;
    Some((contents.get("name")?.as_str()?.to_owned(), aircraft))
}

impl SavedItems<'_> {
    /// Stores a fleet under a name. Replaces the fleet with that name, if there is one; the same aircraft once more are no command.
    ///
    /// # Errors
    /// `body-invalid` for a fleet that is too large; `limit-reached`; `idempotency-mismatch` if the idempotency key was used for another request;
    /// `unavailable` when the command is not projected in time.
    pub async fn save_fleet(&self, name: &str, aircraft: Value) -> Result<StoredFleet, Problem> {
        let id = self.fleet_id(name);
        let known = self.find(&id).await?;
        if let Some(known) = &known
            && let Some(fleet) = open_fleet(self.ctx, known).await?
            && fleet.aircraft == aircraft
        {
            return Ok(fleet);
        }
        let text = contents_of(name, &aircraft);
        if text.len() > FLEET_BYTES_MAX {
            let detail = format!("aircraft: a stored fleet has at most {FLEET_BYTES_MAX} bytes of JSON; this one has {}", text.len());
            return Err(Problem::new(ErrorCode::BodyInvalid, detail).about("aircraft"));
        }
        self.check_room(&id).await?;
        let sealing = Sealing::load_or_create_for_item(self.ctx, &self.owner, &id).await?;
        let save = ItemRequest::SaveFleet { contents: sealing.seal_contents(&text, &id)?, limit: self.limit_in_command() };
        let (subject, policy) = match self.idempotency_key {
            Some(key) => (subject_of(&self.derive_from_request(key, &[name, &text])), CommandPolicy::OncePerSubject),
            None => (id.clone(), CommandPolicy::Always),
        };
        let SavedItem { id, made_at, changed_at, .. } = self.create_item(&subject, policy, id, save).await?;
        Ok(StoredFleet { id, name: name.to_owned(), aircraft, made_at, changed_at })
    }

    /// Finds a fleet by name.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn fleet(&self, name: &str) -> Result<StoredFleet, Problem> {
        let found = match self.find(&self.fleet_id(name)).await? {
            Some(item) => open_fleet(self.ctx, &item).await?,
            None => None,
        };
        found.ok_or_else(|| no_such_fleet(name))
    }

    /// All fleets, in no particular order.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn all_fleets(&self) -> Result<Vec<StoredFleet>, Problem> {
        let mut fleets = Vec::new();
        for item in self.list().await? {
            fleets.extend(open_fleet(self.ctx, &item).await?);
        }
        Ok(fleets)
    }

    /// Deletes a fleet by name, so that it cannot be read again.
    ///
    /// # Errors
    /// `not-found`; `unavailable` when the command is not projected in time: delete it once more then.
    pub async fn delete_fleet(&self, name: &str) -> Result<(), Problem> {
        let item = self.find(&self.fleet_id(name)).await?.ok_or_else(|| no_such_fleet(name))?;
        self.delete(&item).await
    }

    /// The id of the fleet with a name. An account has one fleet per name and service.
    #[must_use]
    pub fn fleet_id(&self, name: &str) -> String {
        format!("fleet_{}", self.hash_of_name(name))
    }
}

/// Finds a fleet of an account by its id, for a watch that names it; `None` if the account has none with that id, or if it was deleted.
///
/// # Errors
/// When the row cannot be read.
pub async fn fleet_of(ctx: &Context, account: &str, id: &str) -> Result<Option<StoredFleet>, Problem> {
    let view = ctx.live(TABLES.view).await?;
    let row = view.get(TABLES.records, &key![id]).await.map_err(store_problem)?;
    let item = row.map(|bytes| saved_items::read(&bytes)).transpose()?;
    match item.filter(|item| !item.gone && item.account == account && item.kind == kind::FLEET) {
        Some(item) => open_fleet(ctx, &item).await,
        None => Ok(None),
    }
}

/// Decrypts a fleet; `None` if its secret was destroyed.
async fn open_fleet(ctx: &Context, item: &SavedItem) -> Result<Option<StoredFleet>, Problem> {
    let Some(sealing) = Sealing::load_for_item(ctx, &item.account, &item.id).await? else { return Ok(None) };
    let contents = sealing.open_contents(item).and_then(|text| read_contents(&text));
    let fleet = |(name, aircraft)| StoredFleet { id: item.id.clone(), name, aircraft, made_at: item.made_at, changed_at: item.changed_at };
    Ok(contents.map(fleet))
}

fn no_such_fleet(name: &str) -> Problem {
    Problem::new(ErrorCode::NotFound, format!("this account has no stored fleet {name:?} in this service; assess a fleet first"))
}
