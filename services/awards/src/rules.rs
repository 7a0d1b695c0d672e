//! Federal contract awards: one record per award, joined from three streams. The state of an award and its details describe it; its actions
//! describe what happened to it. The state from each stream is remembered, so that the record does not depend on the order of facts.

use std::collections::BTreeMap;

use jiff::civil::Date;
use schemas::avro;
use schemas::details::ChangeRecord;
use schemas::event::{Fact, FactKind};
use schemas::facts::awards::{AwardFact, kind};
use schemas::topics::{AWARDS, CHANGES_AWARDS, Topic};
use schemas::views::awards::{ActionDetails, Award, AwardDetails, Dollars, TABLES};
use schemas::views::records::{RecordChange, RecordTables};
use serde::{Deserialize, Serialize};

use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;

/// The stream that takes precedence for an award's fields and an action's amount.
const DETAILS: &str = "usaspending.details";
/// The prefix of the keys of actions.
const ACTION: &str = "action/";
/// How many actions of an award are remembered in full: the newest ones.
const ACTIONS_MAX: usize = 16;

/// The awards service.
pub type Awards = Records<AwardsRules>;

/// The rules of the awards service.
pub struct AwardsRules;

/// The decision state of an award.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AwardState {
    /// The newest state of the award from each stream, by stream.
    states: BTreeMap<String, AwardFact>,
    /// The newest actions, oldest first.
    actions: Vec<AwardFact>,
    /// The sum of all known actions.
    sum_cents: i64,
    /// Whether the base action is known.
    base: bool,
    /// The description of the base action.
    description: String,
}

impl AwardState {
    /// The facts from which the record takes its values, in that order: the details, the states from other streams, and the latest action.
    fn ordered(&self) -> Vec<&AwardFact> {
        let others = self.states.iter().filter(|(stream, _)| stream.as_str() != DETAILS).map(|(_, award)| award);
        self.states.get(DETAILS).into_iter().chain(others).chain(self.actions.last()).collect()
    }

    /// The facts from which the record takes its values, in that order, and at last the base action, which can describe the award.
    pub(crate) fn facts(&self) -> Vec<&AwardFact> {
        let base = self.actions.iter().find(|action| is_base(action));
        let earlier = base.filter(|base| self.actions.last().is_some_and(|last| !is_same(base, last)));
        self.ordered().into_iter().chain(earlier).collect()
    }
}

/// The decision state of an action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ActionState {
    /// The amount that the action adds, by stream.
    cents: BTreeMap<String, Option<i64>>,
    /// The fields of the action that change details contain.
    #[serde(rename = "told")]
    details: ActionDetails,
}

impl Rules for AwardsRules {
    type Fact = AwardFact;
    type Record = Award;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[AWARDS];
    const CHANGES: &'static Topic = &CHANGES_AWARDS;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<AwardFact>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<AwardFact>) -> Vec<DecisionRow> {
        let Some(award) = &fact.data else { return Vec::new() };
        let action = (award.kind == kind::ACTION).then(|| DecisionRow::State(action_key(award)));
        [DecisionRow::Record(award.award_id.clone()), DecisionRow::State(award_key(&award.award_id))].into_iter().chain(action).collect()
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<AwardFact>) -> Result<(), Undecided> {
        let award = match (fact.kind, &fact.data) {
            (FactKind::Observed, Some(award)) => award,
            (FactKind::Observed, None) => return Err(Undecided::Poison("an observed fact without its record".to_owned())),
            // No stream publishes snapshots, so that nothing says that an award is gone.
            _ => return Ok(()),
        };
        if award.award_id.is_empty() {
            return Err(Undecided::Poison("an award without awardId".to_owned()));
        }
        let key = award_key(&award.award_id);
        let mut known: AwardState = state.get(&key)?.unwrap_or_default();
        if award.kind == kind::ACTION {
            let action_key = action_key(award);
            let mut action: ActionState = state.get(&action_key)?.unwrap_or_default();
            let before = amount_of(&action);
            action.cents.insert(award.stream.clone(), award.action_cents);
            action.details = ActionDetails {
                date: award.action_date.clone(),
                modification: award.modification.clone(),
                kind: award.action_type.clone(),
                description: award.description.clone(),
                amount: None,
            };
            let delta = amount_of(&action).unwrap_or(0).saturating_sub(before.unwrap_or(0));
            known.sum_cents = known.sum_cents.saturating_add(delta);
            if is_base(award) {
                known.base = true;
                known.description.clone_from(&award.description);
            }
            let takes_precedence =
                award.stream == DETAILS || !known.actions.iter().any(|other| is_same(other, award) && other.stream == DETAILS);
            if takes_precedence {
                known.actions.retain(|other| !is_same(other, award));
                known.actions.push(award.clone());
                known.actions.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
                let excess = known.actions.len().saturating_sub(ACTIONS_MAX);
                known.actions.drain(..excess);
            }
            state.remember(&action_key, Some(&action))?;
        } else {
            known.states.insert(award.stream.clone(), award.clone());
        }
        state.remember(&key, Some(&known))?;
        state.put(record_of(&award.award_id, &known))
    }

    /// The change of the amount, and the action that the change was decided from, which need not be the latest one of the award.
    fn change_details(after: &Award, change: &RecordChange<Award>) -> AwardDetails {
        let before = change.before.as_ref();
        let amount_before = before.map_or(Some(0), |before| before.amount_cents);
        let amount_delta = after.amount_cents.zip(amount_before).map(|(after, before)| Dollars { cents: after.saturating_sub(before) });
        let rows = change.note.iter().flat_map(|note| &note.rows);
        let action = rows.filter(|row| row.key.starts_with(ACTION)).find_map(|row| serde_json::from_str::<ActionState>(&row.value).ok());
        let amount = |state: &ActionState| amount_of(state).map(|cents| Dollars { cents });
        AwardDetails { amount_delta, action: action.map(|state| ActionDetails { amount: amount(&state), ..state.details }) }
    }

    /// All changes are marked: those of an action by its day, others if they record an old award first.
    fn backfill(after: &Award, details: &AwardDetails, change: &RecordChange<Award>, recorded: Date) -> Option<bool> {
        let before = change.before.as_ref();
        Some(match &details.action {
            // If the sum grew by something else than the amount of the action, the action was known, and the change corrects it.
            Some(action) => {
                let added = after.actions_cents.saturating_sub(before.map_or(0, |before| before.actions_cents));
                action.is_late(recorded) && added == action.amount.map_or(0, |amount| amount.cents)
            }
            None => before.is_none() && after.news().is_some_and(|news| news.is_late(recorded)),
        })
    }
}

/// The key of the decision state of an award.
pub(crate) fn award_key(award_id: &str) -> String {
    format!("award/{award_id}")
}

fn action_key(action: &AwardFact) -> String {
    format!("{ACTION}{}/{}/{}", action.award_id, action.modification, action_number(action))
}

/// Streams without action numbers publish only the first action of a modification.
fn action_number(action: &AwardFact) -> &str {
    if action.action_number.is_empty() { "0" } else { &action.action_number }
}

fn is_same(a: &AwardFact, b: &AwardFact) -> bool {
    (&a.modification, action_number(a)) == (&b.modification, action_number(b))
}

fn is_base(action: &AwardFact) -> bool {
    matches!(action.modification.as_str(), "" | "0")
}

/// The sort key of an action: by its day, the base action first.
fn sort_key(action: &AwardFact) -> (&str, bool, &str, &str) {
    (&action.action_date, !is_base(action), &action.modification, action_number(action))
}

/// Returns the amount that an action adds, from the stream that takes precedence.
fn amount_of(action: &ActionState) -> Option<i64> {
    action.cents.get(DETAILS).copied().flatten().or_else(|| action.cents.values().copied().flatten().next())
}

/// Builds the record from the decision state.
fn record_of(id: &str, known: &AwardState) -> Award {
    let ordered = known.ordered();
    let text = |field: fn(&AwardFact) -> &String| {
        ordered.iter().map(|award| field(award)).find(|text| !text.is_empty()).cloned().unwrap_or_default()
    };
    let cents = |field: fn(&AwardFact) -> Option<i64>| ordered.iter().find_map(|award| field(award));
    // If no stream gives the total amount, it is the sum of the actions, provided that the base action is among them.
    let amount_cents = cents(|award| award.amount_cents).or_else(|| known.base.then_some(known.sum_cents));
    let action = known.actions.last().cloned().unwrap_or_default();
    // An action has its own description; the award's is that of the whole award, or of its base action.
    let whole = known.states.values().map(|award| &award.description).find(|text| !text.is_empty());
    let base = Some(&known.description).filter(|text| !text.is_empty());
    Award {
        id: id.to_owned(),
        piid: text(|award| &award.piid),
        parent_piid: text(|award| &award.parent_piid),
        award_type: text(|award| &award.award_type),
        vehicle: ordered.first().is_some_and(|award| award.is_vehicle()),
        description: whole.or(base).unwrap_or(&action.description).clone(),
        recipient: text(|award| &award.recipient),
        recipient_uei: text(|award| &award.recipient_uei),
        parent_recipient: text(|award| &award.parent_recipient),
        parent_recipient_uei: text(|award| &award.parent_recipient_uei),
        agency: text(|award| &award.agency),
        sub_agency: text(|award| &award.sub_agency),
        office: text(|award| &award.office),
        naics: text(|award| &award.naics),
        naics_description: text(|award| &award.naics_description),
        psc: text(|award| &award.psc),
        psc_description: text(|award| &award.psc_description),
        amount_cents,
        outlays_cents: cents(|award| award.outlays_cents),
        ceiling_cents: cents(|award| award.ceiling_cents),
        signed: text(|award| &award.signed),
        start: text(|award| &award.start),
        end: text(|award| &award.end),
        potential_end: text(|award| &award.potential_end),
        place_state: text(|award| &award.place_state),
        extent_competed: text(|award| &award.extent_competed),
        offers: text(|award| &award.offers),
        set_aside: text(|award| &award.set_aside),
        url: text(|award| &award.url),
        action_date: action.action_date,
        modification: action.modification,
        action_type: action.action_type,
        action_cents: action.action_cents,
        action_description: action.description,
        base_known: known.base,
        actions_cents: known.sum_cents,
        withdrawn: false,
    }
}

#[cfg(test)]
mod tests {
    use fold::testing;
    use jiff::civil::date;
    use schemas::change::ChangeKind;
    use schemas::views::records::{RememberedRow, RememberedRows};

    use super::*;

    fn action(stream: &str, modification: &str, date: &str, cents: i64) -> AwardFact {
        AwardFact {
            stream: stream.into(),
            kind: kind::ACTION.into(),
            award_id: "CONT_AWD_1_8000_-NONE-_-NONE-".into(),
            modification: modification.into(),
            action_date: date.into(),
            action_cents: Some(cents),
            description: format!("action {modification}"),
            ..Default::default()
        }
    }

    /// Proves that the latest action is the one with the newest day, that the sum counts only when the base action is known, and that the
    /// award's own amount takes precedence over the sum.
    #[test]
    fn records() {
        let mut known = AwardState { actions: vec![action("t", "P00001", "2026-11-02", 5)], sum_cents: 5, ..AwardState::default() };
        let record = record_of("x", &known);
        assert_eq!((record.amount_cents, record.action_cents, record.modification.as_str()), (None, Some(5), "P00001"));
        known.actions.insert(0, action("t", "0", "2026-11-02", 100));
        known.actions.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        (known.base, known.sum_cents, known.description) = (true, 105, "action 0".into());
        let record = record_of("x", &known);
        assert_eq!((record.amount_cents, record.modification.as_str(), record.description.as_str()), (Some(105), "P00001", "action 0"));
        let state = AwardFact { amount_cents: Some(90), end: "2027-01-01".into(), ..AwardFact::default() };
        known.states.insert("usaspending.awards".into(), state.clone());
        known.states.insert(DETAILS.into(), AwardFact { amount_cents: Some(95), ..state });
        let record = record_of("x", &known);
        assert_eq!((record.amount_cents, record.end.as_str()), (Some(95), "2027-01-01"));
    }

    /// Proves that an action in two streams counts once, with the amount from the details.
    #[test]
    fn amounts() {
        let mut action_known = ActionState::default();
        assert_eq!(amount_of(&action_known), None);
        action_known.cents.insert("usaspending.transactions".into(), Some(5));
        assert_eq!(amount_of(&action_known), Some(5));
        action_known.cents.insert(DETAILS.into(), Some(7));
        assert_eq!(amount_of(&action_known), Some(7));
        assert_eq!(action_key(&action("t", "0", "", 0)), "action/CONT_AWD_1_8000_-NONE-_-NONE-/0/0");
    }

    /// Proves that the delta of a change is the change of the amount; that an action of long ago is marked as backfilled when it is recorded first, and
    /// not when it is corrected; and that an old award that was not recorded before is marked, too.
    #[test]
    fn details() {
        let award_with = |amount: Option<i64>, sum: i64| Award {
            amount_cents: amount,
            actions_cents: sum,
            signed: "2024-05-01".into(),
            ..Award::default()
        };
        let details = |before: Option<Award>, after: Award, action: Option<(&str, i64)>| {
            let row = action.map(|(date, cents)| {
                let mut state =
                    ActionState { details: ActionDetails { date: date.into(), ..ActionDetails::default() }, ..ActionState::default() };
                state.cents.insert(DETAILS.into(), Some(cents));
                RememberedRow { key: "action/x/0/0".into(), value: serde_json::to_string(&state).unwrap() }
            });
            let note = row.map(|row| RememberedRows { rows: vec![row] });
            let change = RecordChange { note, ..testing::change(ChangeKind::Modified, "x", [before, Some(after.clone())]) };
            let details = AwardsRules::change_details(&after, &change);
            let backfill = AwardsRules::backfill(&after, &details, &change, date(2026, 11, 24));
            let AwardDetails { amount_delta, action } = details;
            (
                amount_delta.map(|dollars| dollars.cents),
                action.and_then(|action| action.amount).map(|dollars| dollars.cents),
                backfill.unwrap(),
            )
        };
        let (old, late, recent) = ("2025-03-01", "2026-08-20", "2026-11-20");
        for (before, after, action, expected) in [
            (Some(award_with(Some(500), 100)), award_with(Some(500), 107), Some((recent, 7)), (Some(0), Some(7), false)),
            (Some(award_with(Some(500), 100)), award_with(Some(530), 100), None, (Some(30), None, false)),
            (Some(award_with(Some(500), 100)), award_with(Some(500), 107), Some((old, 7)), (Some(0), Some(7), true)),
            (Some(award_with(Some(500), 100)), award_with(Some(500), 107), Some((late, 7)), (Some(0), Some(7), false)),
            (Some(award_with(Some(107), 107)), award_with(Some(109), 109), Some((old, 9)), (Some(2), Some(9), false)),
            (Some(award_with(None, 7)), award_with(Some(500), 7), None, (None, None, false)),
            (None, award_with(Some(7), 7), Some((recent, 7)), (Some(7), Some(7), false)),
            (None, award_with(None, 7), Some((old, 7)), (None, Some(7), true)),
            (None, award_with(Some(500), 0), None, (Some(500), None, true)),
        ] {
            assert_eq!(details(before.clone(), after.clone(), action), expected, "{before:?} to {after:?} by {action:?}");
        }
    }

    /// Proves that the stored form of an action's decision state does not change with the names of its fields here.
    #[test]
    fn stored_form() {
        let mut state = ActionState::default();
        state.cents.insert(DETAILS.into(), Some(7));
        let stored = r#"{"cents":{"usaspending.details":7},"told":{"date":"","modification":"","type":"","description":""}}"#;
        assert_eq!(serde_json::to_string(&state).unwrap(), stored);
        assert_eq!(serde_json::from_str::<ActionState>(stored).unwrap(), state);
    }
}
