//! Deliveries: the state of each target of a webhook. A message is claimed, then sent until the target takes it, its time is over, or the target is
//! disabled. What a command finds otherwise than it thought moves nothing: two senders cannot both have claimed.

use schemas::avro;
use schemas::event::{Fact, FactKind};
use schemas::topics::{CHANGES_DELIVERIES, DELIVERIES, Topic};
use schemas::views::deliveries::{
    CLAIM, DELIVERED, DISABLED, Delivery, DeliveryCommand, FAILED, PASSED, REPLAY, RESUME, SKIPPED, State as Waits, TABLES, message_id,
};
use schemas::views::records::RecordTables;

use super::records::{Read, Records, Rules, State};
use crate::service::Undecided;

/// The two folds of the deliveries.
pub type Deliveries = Records<DeliveriesRules>;

/// What the service states.
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
        match moved(known, &fact.key, command, fact.observed_at) {
            Ok(Some(delivery)) => state.put(delivery),
            Ok(None) => Ok(()),
            Err(reason) => Err(Undecided::Poison(reason)),
        }
    }
}

/// The state machine: where a target stands after a command; `None` where it stays.
fn moved(known: Option<Delivery>, id: &str, command: &DeliveryCommand, at_ms: i64) -> Result<Option<Delivery>, String> {
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
    let over = |target: Delivery| {
        let upto = target.upto;
        Delivery { state: Waits::Idle, due_at: 0, ..attempted(target) }.advance_to(upto)
    };
    let failing_since = target.failing_at(at_ms);
    // What is under way of another message is no business of this command.
    let is_of_it = target.state == Waits::Claimed && target.message == command.message;
    Ok(Some(match command.verb.as_str() {
        CLAIM if target.state == Waits::Idle && is_next(&target, command) => Delivery {
            state: Waits::Claimed,
            upto: command.upto,
            message: message_id(id, command.after, command.upto),
            claimed_at: at_ms,
            attempts: 0,
            status: 0,
            reason: String::new(),
            due_at: at_ms,
            // What lies between is not for it.
            done: command.after,
            ..target
        },
        DELIVERED if is_of_it => Delivery { failing_since: 0, delivered: target.delivered + 1, ..over(target) },
        SKIPPED if is_of_it => Delivery { failing_since, skipped: target.skipped + 1, ..over(target) },
        FAILED if is_of_it => Delivery { due_at: command.due_at, failing_since, ..attempted(target) },
        DISABLED if is_of_it => Delivery { state: Waits::Disabled, due_at: 0, failing_since, ..attempted(target) },
        PASSED if target.state == Waits::Idle && is_of_turn(&target, command) && target.range_end == command.upto => {
            target.advance_to(command.upto)
        }
        RESUME if target.state != Waits::Disabled => return Ok(None),
        RESUME | REPLAY => {
            let told = target.delivered_seq();
            let turn = target.turn + 1;
            let resumed = Delivery { state: Waits::Idle, attempts: 0, due_at: 0, failing_since: 0, reason: String::new(), turn, ..target };
            let is_range = command.upto != 0 && command.upto < told;
            let (range_end, range_done) = if is_range { (command.upto, told) } else { (0, 0) };
            if command.verb == RESUME { resumed } else { Delivery { done: command.after, range_end, range_done, ..resumed } }
        }
        CLAIM | DELIVERED | FAILED | SKIPPED | DISABLED | PASSED => return Ok(None),
        verb => return Err(format!("verb {verb} is unknown")),
    }))
}

/// Whether a claim is of changes that the target is to be told next: none before what it has been told, none beyond a range that it is told again.
fn is_next(target: &Delivery, command: &DeliveryCommand) -> bool {
    let is_within = target.range_end == 0 || command.upto <= target.range_end;
    is_of_turn(target, command) && target.done <= command.after && command.after < command.upto && is_within
}

/// Whether a command was made of the target as it stands, and not before somebody had it told again.
fn is_of_turn(target: &Delivery, command: &DeliveryCommand) -> bool {
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
        moved(Some(known.clone()), "w", &command(verb, after, upto), 7).unwrap()
    }

    /// Proves each move of the state machine, and that commands of another message, or from elsewhere, move nothing.
    #[test]
    fn moves() {
        const DAY_MS: i64 = 86_400_000;
        let claimed = moved(None, "w", &command(CLAIM, 5, 9), 7).unwrap().unwrap();
        assert_eq!((claimed.state, claimed.done, claimed.upto), (Waits::Claimed, 5, 9));
        assert_eq!((claimed.message.as_str(), claimed.claimed_at, claimed.due_at), (message_id("w", 5, 9).as_str(), 7, 7));
        // Another sender's claim, and what another message became.
        for (verb, from, to) in
            [(CLAIM, 5, 9), (CLAIM, 5, 8), (DELIVERED, 5, 8), (FAILED, 4, 9), (SKIPPED, 0, 9), (DISABLED, 5, 10), (RESUME, 0, 0)]
        {
            assert_eq!(after(&claimed, verb, from, to), None, "{verb} {from} {to}");
        }
        let failed = after(&claimed, FAILED, 5, 9).unwrap();
        assert_eq!((failed.state, failed.attempts, failed.due_at, failed.failing_since), (Waits::Claimed, 1, 99, 7));
        let again = moved(Some(failed.clone()), "w", &command(FAILED, 5, 9), DAY_MS).unwrap().unwrap();
        assert_eq!((again.attempts, again.failing_since, again.attempted_at), (2, 7, DAY_MS), "it fails since the first time");
        let late = moved(Some(again.clone()), "w", &command(FAILED, 5, 9), 9 * DAY_MS).unwrap().unwrap();
        assert_eq!(late.failing_since, 9 * DAY_MS, "nobody tried for days: it begins anew");
        let taken = after(&again, DELIVERED, 5, 9).unwrap();
        assert_eq!((taken.state, taken.done, taken.failing_since, taken.delivered, taken.attempts), (Waits::Idle, 9, 0, 1, 3));
        let passed = after(&again, SKIPPED, 5, 9).unwrap();
        assert_eq!((passed.state, passed.done, passed.failing_since, passed.skipped), (Waits::Idle, 9, 7, 1));
        let ended = after(&again, DISABLED, 5, 9).unwrap();
        assert_eq!((ended.state, ended.done, ended.reason.as_str()), (Waits::Disabled, 5, "said no"));
        for verb in [CLAIM, DELIVERED, FAILED, SKIPPED, DISABLED] {
            assert_eq!(after(&ended, verb, 5, 9), None, "{verb} while it is disabled");
        }
        let resumed = after(&ended, RESUME, 3, 0).unwrap();
        assert_eq!((resumed.state, resumed.done, resumed.failing_since), (Waits::Idle, 5, 0), "from where it stood");
        for before in [&ended, &taken, &claimed] {
            let replayed = after(before, REPLAY, 3, 0).unwrap();
            assert_eq!((replayed.state, replayed.done, replayed.attempts), (Waits::Idle, 3, 0));
        }
        assert_eq!(after(&taken, CLAIM, 8, 12), None, "it begins where the last one ended, or later");
        assert_eq!(after(&taken, CLAIM, 9, 9), None, "it tells something");
        assert!(after(&taken, CLAIM, 9, 12).is_some() && after(&taken, CLAIM, 11, 12).is_some());
        assert!(moved(None, "w", &command("dance", 1, 2), 7).is_err());
        for verb in [DELIVERED, FAILED, SKIPPED, DISABLED, RESUME] {
            assert_eq!(moved(None, "w", &command(verb, 1, 2), 7), Ok(None), "{verb} of nothing");
        }
    }

    /// Proves that a range is told again, up to its end and no message beyond it, and that the target then goes on where it stood.
    #[test]
    fn ranges() {
        let taken = Delivery { id: "w".to_owned(), done: 50, ..Delivery::default() };
        let place = |at: &Delivery| (at.state, at.done, at.range_end, at.range_done);
        let ranged = after(&taken, REPLAY, 10, 20).unwrap();
        assert_eq!(place(&ranged), (Waits::Idle, 10, 20, 50));
        for (from, to) in [(9, 12), (15, 21), (25, 30), (20, 22), (49, 60), (54, 60)] {
            assert_eq!(after(&ranged, CLAIM, from, to), None, "{from} {to}");
        }
        let first = after(&ranged, CLAIM, 12, 15).unwrap();
        assert_eq!(place(&first), (Waits::Claimed, 12, 20, 50));
        let disabled = after(&first, DISABLED, 12, 15).unwrap();
        assert_eq!(place(&after(&disabled, RESUME, 0, 0).unwrap()), (Waits::Idle, 12, 20, 50), "the range goes on");
        let first = after(&first, DELIVERED, 12, 15).unwrap();
        assert_eq!(place(&first), (Waits::Idle, 15, 20, 50));
        // Its end, by its last change, or since nothing is left in it.
        let last = after(&first, CLAIM, 16, 20).unwrap();
        assert_eq!(place(&after(&last, DELIVERED, 16, 20).unwrap()), (Waits::Idle, 50, 0, 0));
        assert_eq!(place(&after(&first, PASSED, 0, 20).unwrap()), (Waits::Idle, 50, 0, 0));
        for (at, end) in [(&first, 19), (&last, 20), (&taken, 20)] {
            assert_eq!(after(at, PASSED, 0, end), None);
        }
        // Another range, everything, and a range that leaves nothing out.
        assert_eq!(place(&after(&last, REPLAY, 30, 40).unwrap()), (Waits::Idle, 30, 40, 50));
        assert_eq!(place(&after(&last, REPLAY, 30, 0).unwrap()), (Waits::Idle, 30, 0, 0));
        assert_eq!(place(&after(&last, REPLAY, 30, 50).unwrap()), (Waits::Idle, 30, 0, 0));
    }

    /// Proves that what was claimed before somebody had a target told again, and is decided after it, moves nothing: the replay is not lost.
    #[test]
    fn turns() {
        let taken = Delivery { id: "w".to_owned(), done: 50, turn: 3, ..Delivery::default() };
        let claim = DeliveryCommand { turn: 4, ..command(CLAIM, 50, 60) };
        let moved_by = |at: &Delivery, command: &DeliveryCommand| moved(Some(at.clone()), "w", command, 7).unwrap();
        assert!(moved_by(&taken, &claim).is_some());
        for (from, to) in [(0, 0), (10, 20), (50, 0)] {
            let replayed = after(&taken, REPLAY, from, to).unwrap();
            assert_eq!(replayed.turn, 4);
            assert_eq!(moved_by(&replayed, &claim), None, "{from} {to}");
            assert_eq!(moved_by(&replayed, &DeliveryCommand { turn: 4, ..command(PASSED, 0, 20) }), None);
        }
    }
}
