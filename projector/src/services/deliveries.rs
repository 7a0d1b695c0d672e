//! Deliveries: the state of each webhook target. A message is claimed, then sent until the target accepts it, it expires, or the target is
//! disabled. A command that does not match the current state has no effect, so that two senders cannot both claim.

use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::topics::{CHANGES_DELIVERIES, DELIVERIES, Topic};
use schemas::views::deliveries::{
    CLAIM, DELIVERED, DISABLED, Delivery, DeliveryCommand, FAILED, PASSED, REPLAY, RESUME, SKIPPED, State as DeliveryState, TABLES,
    message_id,
};
use schemas::views::records::RecordTables;

use super::records::{Read, Records, Rules, State};
use crate::service::Undecided;

/// The deliveries service.
pub type Deliveries = Records<DeliveriesRules>;

/// The rules of the deliveries service.
pub struct DeliveriesRules;

impl Rules for DeliveriesRules {
    type Fact = DeliveryCommand;
    type Record = Delivery;

    const NAME: &'static str = "deliveries";
    const TABLES: &'static RecordTables = &TABLES;
    const INPUTS: &'static [Topic] = &[DELIVERIES];
    const CHANGES: &'static Topic = &CHANGES_DELIVERIES;

    fn read(topic: &Topic, value: &[u8]) -> Result<Fact<DeliveryCommand>, avro::Error> {
        avro::decode(topic.name, value)
    }

    fn reads(fact: &Fact<DeliveryCommand>) -> Vec<Read> {
        vec![Read::Record(fact.key.clone())]
    }

    fn decide(state: &mut State<'_, Self>, fact: &Fact<DeliveryCommand>) -> Result<(), Undecided> {
        let Some(command) = fact.data.as_ref().filter(|_| fact.kind == FactKind::Observed) else { return Ok(()) };
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
    let attempted = |target: Delivery| Delivery {
        attempts: target.attempts + 1,
        attempted_at: at_ms,
        status: command.status,
        reason: command.reason.clone(),
        ..target
    };
    let finished = |target: Delivery| {
        let upto = target.upto;
        Delivery { state: DeliveryState::Idle, due_at: 0, ..attempted(target) }.advance_to(upto)
    };
    let failing_since = target.failing_at(at_ms);
    // A command about another message has no effect on the current one.
    let is_current = target.state == DeliveryState::Claimed && target.message == command.message;
    Ok(Some(match command.verb.as_str() {
        CLAIM if target.state == DeliveryState::Idle && is_next(&target, command) => Delivery {
            state: DeliveryState::Claimed,
            upto: command.upto,
            message: message_id(id, command.after, command.upto),
            claimed_at: at_ms,
            attempts: 0,
            status: 0,
            reason: String::new(),
            due_at: at_ms,
            // The changes between the last delivered one and the claim do not match the target's watch.
            done: command.after,
            ..target
        },
        DELIVERED if is_current => Delivery { failing_since: 0, delivered: target.delivered + 1, ..finished(target) },
        SKIPPED if is_current => Delivery { failing_since, skipped: target.skipped + 1, ..finished(target) },
        FAILED if is_current => Delivery { due_at: command.due_at, failing_since, ..attempted(target) },
        DISABLED if is_current => Delivery { state: DeliveryState::Disabled, due_at: 0, failing_since, ..attempted(target) },
        PASSED if target.state == DeliveryState::Idle && is_of_current_turn(&target, command) && target.range_end == command.upto => {
            target.advance_to(command.upto)
        }
        RESUME if target.state != DeliveryState::Disabled => return Ok(None),
        RESUME | REPLAY => {
            let delivered_seq = target.delivered_seq();
            let turn = target.turn + 1;
            let resumed =
                Delivery { state: DeliveryState::Idle, attempts: 0, due_at: 0, failing_since: 0, reason: String::new(), turn, ..target };
            let is_range = command.upto != 0 && command.upto < delivered_seq;
            let (range_end, range_done) = if is_range { (command.upto, delivered_seq) } else { (0, 0) };
            if command.verb == RESUME { resumed } else { Delivery { done: command.after, range_end, range_done, ..resumed } }
        }
        CLAIM | DELIVERED | FAILED | SKIPPED | DISABLED | PASSED => return Ok(None),
        verb => return Err(format!("verb {verb} is unknown")),
    }))
}

/// Whether a claim starts after the changes already delivered and, in a replay, ends within the replayed range.
fn is_next(target: &Delivery, command: &DeliveryCommand) -> bool {
    let is_within = target.range_end == 0 || command.upto <= target.range_end;
    is_of_current_turn(target, command) && target.done <= command.after && command.after < command.upto && is_within
}

/// Whether a command was made in the target's current turn, that is, after its last resume or replay.
fn is_of_current_turn(target: &Delivery, command: &DeliveryCommand) -> bool {
    command.turn == 0 || command.turn == target.turn + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(verb: &str, after: i64, upto: i64) -> DeliveryCommand {
        DeliveryCommand {
            verb: verb.to_owned(),
            account: "a".to_owned(),
            service: "awards".to_owned(),
            message: message_id("w", after, upto),
            after,
            upto,
            status: 500,
            reason: "said no".to_owned(),
            due_at: 99,
            turn: 0,
        }
    }

    fn after(known: &Delivery, verb: &str, after: i64, upto: i64) -> Option<Delivery> {
        next_state(Some(known.clone()), "w", &command(verb, after, upto), 7).unwrap()
    }

    /// Proves each transition of the state machine, and that commands about another message or in another state have no effect.
    #[test]
    fn transitions() {
        const DAY_MS: i64 = 86_400_000;
        let claimed = next_state(None, "w", &command(CLAIM, 5, 9), 7).unwrap().unwrap();
        assert_eq!((claimed.state, claimed.done, claimed.upto), (DeliveryState::Claimed, 5, 9));
        assert_eq!((claimed.message.as_str(), claimed.claimed_at, claimed.due_at), (message_id("w", 5, 9).as_str(), 7, 7));
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
        assert_eq!((taken.state, taken.done, taken.failing_since, taken.delivered, taken.attempts), (DeliveryState::Idle, 9, 0, 1, 3));
        let passed = after(&again, SKIPPED, 5, 9).unwrap();
        assert_eq!((passed.state, passed.done, passed.failing_since, passed.skipped), (DeliveryState::Idle, 9, 7, 1));
        let ended = after(&again, DISABLED, 5, 9).unwrap();
        assert_eq!((ended.state, ended.done, ended.reason.as_str()), (DeliveryState::Disabled, 5, "said no"));
        for verb in [CLAIM, DELIVERED, FAILED, SKIPPED, DISABLED] {
            assert_eq!(after(&ended, verb, 5, 9), None, "{verb} while it is disabled");
        }
        let resumed = after(&ended, RESUME, 3, 0).unwrap();
        assert_eq!(
            (resumed.state, resumed.done, resumed.failing_since),
            (DeliveryState::Idle, 5, 0),
            "deliveries continue where they stopped"
        );
        for before in [&ended, &taken, &claimed] {
            let replayed = after(before, REPLAY, 3, 0).unwrap();
            assert_eq!((replayed.state, replayed.done, replayed.attempts), (DeliveryState::Idle, 3, 0));
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
        let taken = Delivery { id: "w".to_owned(), done: 50, ..Delivery::default() };
        let place = |at: &Delivery| (at.state, at.done, at.range_end, at.range_done);
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
        let taken = Delivery { id: "w".to_owned(), done: 50, turn: 3, ..Delivery::default() };
        let claim = DeliveryCommand { turn: 4, ..command(CLAIM, 50, 60) };
        let after_command = |at: &Delivery, command: &DeliveryCommand| next_state(Some(at.clone()), "w", command, 7).unwrap();
        assert!(after_command(&taken, &claim).is_some());
        for (from, to) in [(0, 0), (10, 20), (50, 0)] {
            let replayed = after(&taken, REPLAY, from, to).unwrap();
            assert_eq!(replayed.turn, 4);
            assert_eq!(after_command(&replayed, &claim), None, "{from} {to}");
            assert_eq!(after_command(&replayed, &DeliveryCommand { turn: 4, ..command(PASSED, 0, 20) }), None);
        }
    }
}
