//! Awards as readers get them: the contract's fields first, in its order.

use schemars::JsonSchema;
use schemas::facts::awards::AwardFact;
use schemas::views::awards::Award;
use schemas::views::recalls::day_of;
use serde::Serialize;

use super::Change;
use feed::query::Item;

/// An award of which no action is known is new so many days after it was signed.
const NEW_DAYS: i64 = 30;

/// A change of an award.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// What happened: `new` for an award whose base action came, `modified` otherwise; `added` or `removed` where a changed filter did it.
    pub event: String,
    /// Day of the action that this change tells of, else of the last one on it, YYYY-MM-DD.
    pub date: String,
    /// The award's lasting id.
    pub id: String,
    /// Legal name of the recipient.
    pub recipient: String,
    /// The awarding department.
    pub agency: String,
    /// Industry code.
    pub naics: String,
    /// Dollars obligated in total; null where it is not told.
    pub amount: Option<f64>,
    /// By how many dollars the obligation moved with this change: what its action adds, or by how much that was corrected.
    pub amount_delta: f64,
    /// End of the periods exercised so far; of a vehicle for orders the last day to order.
    pub end: String,
    /// Its page.
    pub url: String,
    /// Number of the change within the service.
    pub seq: u64,
    /// When it was recorded, RFC 3339 in UTC.
    pub recorded_at: String,
    /// What more is known of it.
    #[serde(flatten)]
    pub more: More,
    /// The award before it, where `before` was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Shown>,
}

/// What more is known of an award.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct More {
    /// The agency's own number.
    pub piid: String,
    /// What is bought.
    pub description: String,
    /// Unique entity id of the recipient.
    pub recipient_uei: String,
    /// Legal name of the recipient's parent.
    pub parent_recipient: String,
    /// Unique entity id of the parent.
    pub parent_recipient_uei: String,
    /// The agency within the department.
    pub sub_agency: String,
    /// Words of the industry code.
    pub naics_description: String,
    /// Product or service code.
    pub psc: String,
    /// Dollars with all options; null where it is not told.
    pub ceiling: Option<f64>,
    /// First day of performance.
    pub start: String,
    /// Last day if all options are used.
    pub potential_end: String,
    /// Number of that action: `0` for the base.
    pub modification: String,
    /// What it does, one letter; empty for the base.
    pub action_type: String,
    /// What it says it does.
    pub action_description: String,
    /// State where the work is done.
    pub place_state: String,
    /// Whom it was set aside for.
    pub set_aside: String,
    /// Whether it is a vehicle for orders.
    pub vehicle: bool,
}

/// An award as it stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// Day of the last action on it, YYYY-MM-DD.
    pub date: String,
    /// The award's lasting id.
    pub id: String,
    /// Legal name of the recipient.
    pub recipient: String,
    /// The awarding department.
    pub agency: String,
    /// Industry code.
    pub naics: String,
    /// Dollars obligated in total; null where it is not told.
    pub amount: Option<f64>,
    /// End of the periods exercised so far; of a vehicle for orders the last day to order.
    pub end: String,
    /// Its page.
    pub url: String,
    /// What more is known of it.
    #[serde(flatten)]
    pub more: More,
}

/// Cents as dollars.
#[expect(clippy::cast_precision_loss, reason = "cents of federal awards are below 2^53")]
pub(super) fn dollars(cents: i64) -> f64 {
    cents as f64 / 100.0
}

/// The day of the last thing known to have happened to an award.
pub(super) fn date_of(award: &Award) -> &str {
    if award.action_date.is_empty() { &award.signed } else { &award.action_date }
}

/// What a change is to readers: an award first seen by a later action, or long after it was signed, is no new one.
pub(super) fn event_of(change: &Change) -> &'static str {
    let is_new = change.event == "new"
        && match &change.details.action {
            Some(action) => matches!(action.modification.as_str(), "" | "0"),
            None => {
                let (recorded, signed) = (change.recorded_at.get(..10).unwrap_or_default(), change.record.signed.as_str());
                signed.is_empty() || day_of(recorded) - day_of(signed) <= NEW_DAYS
            }
        };
    if is_new { "new" } else { "modified" }
}

/// The day of what a change tells.
pub(super) fn day_told(change: &Change) -> &str {
    change
        .details
        .action
        .as_ref()
        .map(|action| action.date.as_str())
        .filter(|date| !date.is_empty())
        .unwrap_or_else(|| date_of(&change.record))
}

impl From<Award> for Shown {
    fn from(award: Award) -> Self {
        Self {
            date: date_of(&award).to_owned(),
            amount: award.amount_cents.map(dollars),
            id: award.id,
            recipient: award.recipient,
            agency: award.agency,
            naics: award.naics,
            end: award.end,
            url: award.url,
            more: More {
                piid: award.piid,
                description: award.description,
                recipient_uei: award.recipient_uei,
                parent_recipient: award.parent_recipient,
                parent_recipient_uei: award.parent_recipient_uei,
                sub_agency: award.sub_agency,
                naics_description: award.naics_description,
                psc: award.psc,
                ceiling: award.ceiling_cents.map(dollars),
                start: award.start,
                potential_end: award.potential_end,
                modification: award.modification,
                action_type: award.action_type,
                action_description: award.action_description,
                place_state: award.place_state,
                set_aside: award.set_aside,
                vehicle: award.vehicle,
            },
        }
    }
}

impl From<&AwardFact> for Shown {
    /// An award as the upstream has it now.
    fn from(fact: &AwardFact) -> Self {
        Self {
            date: fact.last_modified.clone(),
            id: fact.award_id.clone(),
            recipient: fact.recipient.clone(),
            agency: fact.agency.clone(),
            naics: fact.naics.clone(),
            amount: fact.amount_cents.map(dollars),
            end: fact.end.clone(),
            url: fact.url.clone(),
            more: More {
                piid: fact.piid.clone(),
                description: fact.description.clone(),
                recipient_uei: fact.recipient_uei.clone(),
                parent_recipient: fact.parent_recipient.clone(),
                parent_recipient_uei: fact.parent_recipient_uei.clone(),
                sub_agency: fact.sub_agency.clone(),
                naics_description: fact.naics_description.clone(),
                psc: fact.psc.clone(),
                ceiling: fact.ceiling_cents.map(dollars),
                start: fact.start.clone(),
                potential_end: fact.potential_end.clone(),
                modification: fact.modification.clone(),
                action_type: fact.action_type.clone(),
                action_description: String::new(),
                place_state: fact.place_state.clone(),
                set_aside: fact.set_aside.clone(),
                vehicle: fact.is_vehicle(),
            },
        }
    }
}

impl From<Item<Award>> for Changed {
    fn from(item: Item<Award>) -> Self {
        let Item { change, before } = item;
        let event = if matches!(change.event.as_str(), "added" | "removed") { change.event.clone() } else { event_of(&change).to_owned() };
        let (date, action) = (day_told(&change).to_owned(), change.details.action);
        let Shown { id, recipient, agency, naics, amount, end, url, mut more, .. } = change.record.into();
        if let Some(action) = action {
            (more.modification, more.action_type, more.action_description) = (action.modification, action.kind, action.description);
        }
        Self {
            event,
            date,
            id,
            recipient,
            agency,
            naics,
            amount,
            amount_delta: change.details.amount_delta.as_f64(),
            end,
            url,
            seq: change.seq,
            recorded_at: change.recorded_at,
            more,
            before: before.map(Shown::from),
        }
    }
}
