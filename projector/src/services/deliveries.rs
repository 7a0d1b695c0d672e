//! Deliveries: the state of each webhook target. A message is claimed, then sent until the target accepts it, it expires, or the target is
//! disabled. A command that does not match the current state has no effect, so that two senders cannot both claim.

use schemas::avro;
use schemas::event::Fact;
use schemas::position::Seq;
use schemas::topics::{CHANGES_DELIVERIES, DELIVERIES, Topic};
use schemas::views::deliveries::{Attempt, Delivery, DeliveryCommand, DeliveryRequest, State as DeliveryState, TABLES, message_id};
use schemas::views::records::RecordTables;

use fold::records::{DecisionRow, Records, Rules, State};
use fold::service::Undecided;

/// The deliveries service.
pub type Deliveries = Records<DeliveriesRules>;

/// The rules of the deliveries service.
pub struct DeliveriesRules;

impl Rules for DeliveriesRules {
    type Fact = DeliveryCommand;
    type Record = Delivery;

    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[DELIVERIES];
    const CHANGES: &'static Topic = &CHANGES_DELIVERIES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<DeliveryCommand>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<DeliveryCommand>) -> Vec<DecisionRow> {
        vec![DecisionRow::Record(fact.key.clone())]
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<DeliveryCommand>) -> Result<(), Undecided> {
        let Some(command) = fact.observed() else { return Ok(()) };
        let known = state.record(&fact.key)?;
        match next_state(known, &fact.key, command, fact.observed_at) {
            Ok(Some(delivery)) => state.put(delivery),
            Ok(None) => Ok(()),
            Err(reason) => Err(Undecided::Poison(reason)),
        }
    }
}

/// The state machine of a target: returns the state after a command; `None` if the command has no effect.
fn next_state(known: Option<Delivery>, id: &str, command: &DeliveryCommand, at_ms: i64) -> Result<Option<Delivery>, String> {
    let target = known.unwrap_or_else(|| Delivery {
        id: id.to_owned(),
        account: command.account.clone(),
        service: command.service.clone(),
        ..Delivery::default()
    });
    let attempted = |target: Delivery, attempt: &Attempt| Delivery {
        attempts: target.attempts + 1,
        attempted_at: at_ms,
        status: attempt.status,
        reason: attempt.reason.clone(),
        ..target
    };
    let finished = |target: Delivery, attempt: &Attempt| {
        let upto = target.upto;
        Delivery { state: DeliveryState::Idle, due_at: 0, ..attempted(target, attempt) }.advance_to(upto)
    };
    let failing_since = target.failing_at(at_ms);
    // A command about another message has no effect on the current one.
    let is_current = |attempt: &Attempt| target.state == DeliveryState::Claimed && target.message == attempt.message;
    if command.request.attempt().is_some_and(|attempt| !is_current(attempt)) {
        return Ok(None);
    }
    Ok(Some(match &command.request {
        DeliveryRequest::Claim { after, upto, turn, .. }
            if target.state == DeliveryState::Idle && is_current_turn(&target, *turn) && is_next(&target, *after, *upto) =>
        {
            Delivery {
                state: DeliveryState::Claimed,
                upto: *upto,
                message: message_id(id, *after, *upto),
                claimed_at: at_ms,
                attempts: 0,
                status: 0,
                reason: String::new(),
                due_at: at_ms,
                // The changes between the last delivered one and the claim do not match the target's watch.
                done: *after,
                ..target
            }
        }
        DeliveryRequest::Delivered(attempt) => Delivery { failing_since: 0, delivered: target.delivered + 1, ..finished(target, attempt) },
        DeliveryRequest::Skipped(attempt) => Delivery { failing_since, skipped: target.skipped + 1, ..finished(target, attempt) },
        DeliveryRequest::Failed { attempt, due_at } => Delivery { due_at: *due_at, failing_since, ..attempted(target, attempt) },
        DeliveryRequest::Disabled(attempt) => {
            Delivery { state: DeliveryState::Disabled, due_at: 0, failing_since, ..attempted(target, attempt) }
        }
        DeliveryRequest::Passed { upto, turn }
            if target.state == DeliveryState::Idle && is_current_turn(&target, *turn) && target.range_end == *upto =>
        {
            target.advance_to(*upto)
        }
        DeliveryRequest::Resume if target.state == DeliveryState::Disabled => resumed(target),
        DeliveryRequest::Replay { after, upto } => {
            let delivered_seq = target.delivered_seq();
            let range = upto.filter(|upto| *upto < delivered_seq).map(|upto| (upto, delivered_seq));
            let (range_end, range_done) = range.unwrap_or_default();
            Delivery { done: *after, range_end, range_done, ..resumed(target) }
        }
        DeliveryRequest::Claim { .. } | DeliveryRequest::Passed { .. } | DeliveryRequest::Resume => return Ok(None),
        DeliveryRequest::Unknown { verb } => return Err(format!("verb {verb} is unknown")),
    }))
}

/// The state of a target whose deliveries continue.
fn resumed(target: Delivery) -> Delivery {
    let turn = target.turn + 1;
    Delivery { state: DeliveryState::Idle, attempts: 0, due_at: 0, failing_since: 0, reason: String::new(), turn, ..target }
}

/// Whether a claim starts after the changes already delivered and, in a replay, ends within the replayed range.
fn is_next(target: &Delivery, after: Seq, upto: Seq) -> bool {
    let is_within = target.range_end == Seq(0) || upto <= target.range_end;
    target.done <= after && after < upto && is_within
}

/// Whether a command was made in the target's current turn, that is, after its last resume or replay.
fn is_current_turn(target: &Delivery, turn: Option<i64>) -> bool {
    turn.is_none_or(|turn| turn == target.turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: &str = "claim";
    const DELIVERED: &str = "delivered";
    const FAILED: &str = "failed";
    const SKIPPED: &str = "skipped";
    const DISABLED: &str = "disabled";
    const PASSED: &str = "passed";
    const RESUME: &str = "resume";
    const REPLAY: &str = "replay";

    /// A command of the target `w`, made in `turn`.
    fn command_in(turn: Option<i64>, verb: &str, after: u64, upto: u64) -> DeliveryCommand {
        let (after, upto) = (Seq(after), Seq(upto));
        let message = message_id("w", after, upto);
        let attempt = || Attempt { message: message.clone(), status: 500, reason: "said no".to_owned() };
        let request = match verb {
            CLAIM => DeliveryRequest::Claim { message, after, upto, turn },
            DELIVERED => DeliveryRequest::Delivered(attempt()),
            FAILED => DeliveryRequest::Failed { attempt: attempt(), due_at: 99 },
            SKIPPED => DeliveryRequest::Skipped(attempt()),
            DISABLED => DeliveryRequest::Disabled(attempt()),
            PASSED => DeliveryRequest::Passed { upto, turn },
            RESUME => DeliveryRequest::Resume,
            REPLAY => DeliveryRequest::Replay { after, upto: Some(upto).filter(|upto| *upto != Seq(0)) },
            verb => DeliveryRequest::Unknown { verb: verb.to_owned() },
        };
        DeliveryCommand { account: "a".to_owned(), service: "awards".to_owned(), request }
    }

    fn command(verb: &str, after: u64, upto: u64) -> DeliveryCommand {
        command_in(None, verb, after, upto)
    }

    fn after(known: &Delivery, verb: &str, after: u64, upto: u64) -> Option<Delivery> {
        next_state(Some(known.clone()), "w", &command(verb, after, upto), 7).unwrap()
    }

    /// Proves each transition of the state machine, and that commands about another message or in another state have no effect.
    #[test]
    fn transitions() {
        const DAY_MS: i64 = 86_400_000;
        let claimed = next_state(None, "w", &command(CLAIM, 5, 9), 7).unwrap().unwrap();
        assert_eq!((claimed.state, claimed.done.0, claimed.upto.0), (DeliveryState::Claimed, 5, 9));
        assert_eq!((claimed.message.as_str(), claimed.claimed_at, claimed.due_at), (message_id("w", Seq(5), Seq(9)).as_str(), 7, 7));
        // The claim of another sender, and outcomes of another message.
        for (verb, from, to) in
            [(CLAIM, 5, 9), (CLAIM, 5, 8), (DELIVERED, 5, 8), (FAILED, 4, 9), (SKIPPED, 0, 9), (DISABLED, 5, 10), (RESUME, 0, 0)]
        {
            assert_eq!(after(&claimed, verb, from, to), None, "{verb} {from} {to}");
        }
        let failed = after(&claimed, FAILED, 5, 9).unwrap();
        assert_eq!((failed.state, failed.attempts, failed.due_at, failed.failing_since), (DeliveryState::Claimed, 1, 99, 7));
        let again = next_state(Some(failed.clone()), "w", &command(FAILED, 5, 9), DAY_MS).unwrap().unwrap();
        assert_eq!((again.attempts, again.failing_since, again.attempted_at), (2, 7, DAY_MS), "it fails since the first time");
        let late = next_state(Some(again.clone()), "w", &command(FAILED, 5, 9), 9 * DAY_MS).unwrap().unwrap();
        assert_eq!(late.failing_since, 9 * DAY_MS, "after days without an attempt the series of failures starts again");
        let taken = after(&again, DELIVERED, 5, 9).unwrap();
        assert_eq!((taken.state, taken.done.0, taken.failing_since, taken.delivered, taken.attempts), (DeliveryState::Idle, 9, 0, 1, 3));
        let passed = after(&again, SKIPPED, 5, 9).unwrap();
        assert_eq!((passed.state, passed.done.0, passed.failing_since, passed.skipped), (DeliveryState::Idle, 9, 7, 1));
        let ended = after(&again, DISABLED, 5, 9).unwrap();
        assert_eq!((ended.state, ended.done.0, ended.reason.as_str()), (DeliveryState::Disabled, 5, "said no"));
        for verb in [CLAIM, DELIVERED, FAILED, SKIPPED, DISABLED] {
            assert_eq!(after(&ended, verb, 5, 9), None, "{verb} while it is disabled");
        }
        let resumed = after(&ended, RESUME, 3, 0).unwrap();
        assert_eq!(
            (resumed.state, resumed.done.0, resumed.failing_since),
            (DeliveryState::Idle, 5, 0),
            "deliveries continue where they stopped"
        );
        for before in [&ended, &taken, &claimed] {
            let replayed = after(before, REPLAY, 3, 0).unwrap();
            assert_eq!((replayed.state, replayed.done.0, replayed.attempts), (DeliveryState::Idle, 3, 0));
        }
        assert_eq!(after(&taken, CLAIM, 8, 12), None, "a message starts at or after the end of the previous one");
        assert_eq!(after(&taken, CLAIM, 9, 9), None, "a message has at least one change");
        assert!(after(&taken, CLAIM, 9, 12).is_some() && after(&taken, CLAIM, 11, 12).is_some());
        assert!(next_state(None, "w", &command("dance", 1, 2), 7).is_err());
        for verb in [DELIVERED, FAILED, SKIPPED, DISABLED, RESUME] {
            assert_eq!(next_state(None, "w", &command(verb, 1, 2), 7), Ok(None), "{verb} of nothing");
        }
    }

    /// Proves that a replay sends its range again, up to its end, and that deliveries then continue from before the replay.
    #[test]
    fn ranges() {
        let taken = Delivery { id: "w".to_owned(), done: Seq(50), ..Delivery::default() };
        let place = |at: &Delivery| (at.state, at.done.0, at.range_end.0, at.range_done.0);
        let ranged = after(&taken, REPLAY, 10, 20).unwrap();
        assert_eq!(place(&ranged), (DeliveryState::Idle, 10, 20, 50));
        for (from, to) in [(9, 12), (15, 21), (25, 30), (20, 22), (49, 60), (54, 60)] {
            assert_eq!(after(&ranged, CLAIM, from, to), None, "{from} {to}");
        }
        let first = after(&ranged, CLAIM, 12, 15).unwrap();
        assert_eq!(place(&first), (DeliveryState::Claimed, 12, 20, 50));
        let disabled = after(&first, DISABLED, 12, 15).unwrap();
        assert_eq!(place(&after(&disabled, RESUME, 0, 0).unwrap()), (DeliveryState::Idle, 12, 20, 50), "the replay continues");
        let first = after(&first, DELIVERED, 12, 15).unwrap();
        assert_eq!(place(&first), (DeliveryState::Idle, 15, 20, 50));
        // The replay ends with its last change, or when the rest of it has no matching change.
        let last = after(&first, CLAIM, 16, 20).unwrap();
        assert_eq!(place(&after(&last, DELIVERED, 16, 20).unwrap()), (DeliveryState::Idle, 50, 0, 0));
        assert_eq!(place(&after(&first, PASSED, 0, 20).unwrap()), (DeliveryState::Idle, 50, 0, 0));
        for (at, end) in [(&first, 19), (&last, 20), (&taken, 20)] {
            assert_eq!(after(at, PASSED, 0, end), None);
        }
        // Another range, everything, and a range up to the last delivered change.
        assert_eq!(place(&after(&last, REPLAY, 30, 40).unwrap()), (DeliveryState::Idle, 30, 40, 50));
        assert_eq!(place(&after(&last, REPLAY, 30, 0).unwrap()), (DeliveryState::Idle, 30, 0, 0));
        assert_eq!(place(&after(&last, REPLAY, 30, 50).unwrap()), (DeliveryState::Idle, 30, 0, 0));
    }

    /// Proves that a claim from before a replay that is decided after it has no effect: the replay is not lost.
    #[test]
    fn turns() {
        let taken = Delivery { id: "w".to_owned(), done: Seq(50), turn: 3, ..Delivery::default() };
        let claim = command_in(Some(3), CLAIM, 50, 60);
        let after_command = |at: &Delivery, command: &DeliveryCommand| next_state(Some(at.clone()), "w", command, 7).unwrap();
        assert!(after_command(&taken, &claim).is_some());
        for (from, to) in [(0, 0), (10, 20), (50, 0)] {
            let replayed = after(&taken, REPLAY, from, to).unwrap();
            assert_eq!(replayed.turn, 4);
            assert_eq!(after_command(&replayed, &claim), None, "{from} {to}");
            assert_eq!(after_command(&replayed, &command_in(Some(3), PASSED, 0, 20)), None);
        }
    }
}
