//! Awards in answers. The fields of the public contract come first, in its order.

use schemars::JsonSchema;
use schemas::position::Seq;
use schemas::views::awards::{Award, Dollars};
use schemas::views::recalls::day_of;
use serde::Serialize;

use feed::filter::Element;
use feed::query::Item;

/// An award without a known action counts as new for this many days after it was signed.
const NEW_DAYS: i64 = 30;

/// A change of an award.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AwardChange")]
pub struct Changed {
    /// What happened: `new` for the base action of an award, otherwise `modified`; `added` or `removed` if the filter was changed.
    pub event: String,
    /// The day of the action that this change reports, or else of the award's last action, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// The award, its parties and its amount.
    #[serde(flatten)]
    pub key_facts: KeyFacts,
    /// The change of `amount` in dollars; null if the amount before or after the change is unknown, or if the caller is not shown the award as it was before.
    /// The total is published later than the action that changes it, so both may come as two changes.
    pub amount_delta: Option<f64>,
    /// The end of the periods exercised so far; for a vehicle for orders, the last day to order.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub end: String,
    /// The URL of the award's page.
    pub url: String,
    /// The number of the change within the service.
    pub seq: Seq,
    /// When the change was recorded, RFC 3339 in UTC.
    #[schemars(with = "proofs::json_type::Time")]
    pub recorded_at: String,
    /// The dollars that the action of this change adds to the obligation, negative if it reduces it; null if the change reports no action.
    pub action_amount: Option<f64>,
    /// Whether the change is late news: it reports an action of more than 120 days before it was recorded, or an old award that was not recorded before.
    pub backfill: bool,
    /// Further fields of the award.
    #[serde(flatten)]
    pub more: More,
    /// The award before the change, if `before` was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<ShownAward>,
}

/// The award, its parties, what is bought and for how much. Answers flatten it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KeyFacts {
    /// The permanent id of the award.
    pub id: String,
    /// The legal name of the recipient.
    pub recipient: String,
    /// The awarding department.
    pub agency: String,
    /// Industry code.
    pub naics: String,
    /// The total obligation in dollars; null if unknown.
    pub amount: Option<f64>,
}

/// Further fields of an award.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct More {
    /// The agency's own number.
    pub piid: String,
    /// The description of what is bought.
    pub description: String,
    /// Unique entity id of the recipient.
    pub recipient_uei: String,
    /// Legal name of the recipient's parent.
    pub parent_recipient: String,
    /// Unique entity id of the parent.
    pub parent_recipient_uei: String,
    /// The agency within the department.
    pub sub_agency: String,
    /// The description of the industry code.
    pub naics_description: String,
    /// Product or service code.
    pub psc: String,
    /// The total in dollars if all options are used; null if unknown.
    pub ceiling: Option<f64>,
    /// First day of performance.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub start: String,
    /// Last day if all options are used.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub potential_end: String,
    /// The number of the action: `0` for the base.
    pub modification: String,
    /// The type of the action, one letter; empty for the base.
    pub action_type: String,
    /// The description of the action.
    pub action_description: String,
    /// State where the work is done.
    pub place_state: String,
    /// The kind of business that the award was set aside for.
    pub set_aside: String,
    /// Whether the award is a vehicle for orders.
    pub vehicle: bool,
}

/// An award in its current state.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Award")]
pub struct ShownAward {
    /// The day of the award's last action, YYYY-MM-DD.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub date: String,
    /// The award, its parties and its amount.
    #[serde(flatten)]
    pub key_facts: KeyFacts,
    /// The end of the periods exercised so far; for a vehicle for orders, the last day to order.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub end: String,
    /// The URL of the award's page.
    pub url: String,
    /// Further fields of the award.
    #[serde(flatten)]
    pub more: More,
}

/// Converts cents to dollars.
#[expect(clippy::cast_precision_loss, reason = "cents of federal awards are below 2^53")]
pub(crate) fn dollars(cents: i64) -> f64 {
    cents as f64 / 100.0
}

/// The change of the amount; `None` if it is unknown. The amount of an award that was first seen by a later action was not added by that action.
pub(crate) fn amount_delta(change: &Element<Award>) -> Option<Dollars> {
    let is_first_seen = change.event == "new" && event_of(change) != "new";
    change.details.amount_delta.filter(|_| !is_first_seen)
}

/// The event of a change in answers. An award that was first seen by a later action, or long after it was signed, is not new.
pub(crate) fn event_of(change: &Element<Award>) -> &'static str {
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

/// The day of the action that a change reports; without one, the day of the last known action on the award.
pub(crate) fn reported_day(change: &Element<Award>) -> &str {
    change
        .details
        .action
        .as_ref()
        .map(|action| action.date.as_str())
        .filter(|date| !date.is_empty())
        .unwrap_or_else(|| change.record.last_day())
}

impl From<Award> for ShownAward {
    fn from(award: Award) -> Self {
        Self {
            date: award.last_day().to_owned(),
            key_facts: KeyFacts {
                amount: award.amount_cents.map(dollars),
                id: award.id,
                recipient: award.recipient,
                agency: award.agency,
                naics: award.naics,
            },
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

impl From<Item<Award>> for Changed {
    fn from(item: Item<Award>) -> Self {
        let Item { change, before } = item;
        let event = if matches!(change.event.as_str(), "added" | "removed") { change.event.clone() } else { event_of(&change).to_owned() };
        let (amount_delta, backfill) = (amount_delta(&change).map(Dollars::as_f64), change.is_backfill());
        let (date, action) = (reported_day(&change).to_owned(), change.details.action);
        let action_amount = action.as_ref().and_then(|action| action.amount).map(Dollars::as_f64);
        let ShownAward { key_facts, end, url, mut more, .. } = change.record.into();
        if let Some(action) = action {
            (more.modification, more.action_type, more.action_description) = (action.modification, action.kind, action.description);
        }
        Self {
            event,
            date,
            key_facts,
            amount_delta,
            end,
            url,
            seq: change.seq,
            recorded_at: change.recorded_at,
            action_amount,
            backfill,
            more,
            before: before.map(ShownAward::from),
        }
    }
}
