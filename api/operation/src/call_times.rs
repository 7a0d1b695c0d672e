//! How long calls may take, and how long the waits that are a part of them.

use std::time::Duration;

/// How long calls may take until they are refused as late. The waits inside a call are shares of these times, so that each of them ends before the call does,
/// with an answer that says what was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimes {
    /// A read. If the log or a database hangs, the caller gets an error early.
    pub read: Duration,
    /// A read that can look data up at an upstream.
    pub live_read: Duration,
    /// A read of a file, until it begins: the file may have to be written first.
    pub file: Duration,
    /// A write, including the wait until its command is projected.
    pub command: Duration,
    /// A paid call: some blocks of the chain, and the wait until the payment is recorded.
    pub sale: Duration,
}

impl Default for CallTimes {
    fn default() -> Self {
        let [read, live_read, file, command, sale] = [5, 20, 30, 15, 60].map(Duration::from_secs);
        Self { read, live_read, file, command, sale }
    }
}

impl CallTimes {
    /// The same time for calls of every kind.
    #[must_use]
    pub const fn all(time: Duration) -> Self {
        Self { read: time, live_read: time, file: time, command: time, sale: time }
    }

    /// How long a read waits for a view or an index that lags behind the log, and for an answer of the log: 2 s of 5.
    #[must_use]
    pub fn lag(&self) -> Duration {
        self.read * 2 / 5
    }

    /// How long a look-up at an upstream may take, so that the caller still gets what is recorded: 10 s of 20.
    #[must_use]
    pub fn look_up(&self) -> Duration {
        self.live_read / 2
    }

    /// After which time a read requests no further page of an upstream, so that the last look-up ends in time: 5 s of 20.
    #[must_use]
    pub fn paging(&self) -> Duration {
        self.live_read / 4
    }

    /// How long a caller waits for a file that is being written: 20 s of 30.
    #[must_use]
    pub fn file_write(&self) -> Duration {
        self.file * 2 / 3
    }

    /// How long appending a command may take: 4 s of 15.
    #[must_use]
    pub fn append(&self) -> Duration {
        self.command * 4 / 15
    }

    /// How long a write waits until its command is projected: 10 s of 15.
    #[must_use]
    pub fn projection(&self) -> Duration {
        self.command * 2 / 3
    }

    /// How long a write waits for the receiver of a webhook that it sends a message to: 10 s of 15.
    #[must_use]
    pub fn receiver(&self) -> Duration {
        self.command * 2 / 3
    }

    /// How long a paid call waits for its turn to have its payment verified: 10 s of 60.
    #[must_use]
    pub fn verification_turn(&self) -> Duration {
        self.sale / 6
    }

    /// How long the facilitator may take for one request of a paid call; settling takes some blocks: 30 s of 60.
    #[must_use]
    pub fn facilitator(&self) -> Duration {
        self.sale / 2
    }

    /// How long the node of the chain may take for one request of a paid call: 10 s of 60.
    #[must_use]
    pub fn chain_node(&self) -> Duration {
        self.sale / 6
    }

    /// How long a paid call waits for its settlement: 40 s of 60.
    #[must_use]
    pub fn settlement(&self) -> Duration {
        self.sale * 2 / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the waits that follow one another in a call end before the call is refused, and how long they are by default.
    #[test]
    fn waits_end_before_their_call() {
        for times in [CallTimes::default(), CallTimes::all(Duration::from_secs(1)), CallTimes::all(Duration::from_secs(600))] {
            for (whole, waits) in [
                (times.read, vec![times.lag(), times.lag()]),
                (times.live_read, vec![times.paging(), times.look_up()]),
                (times.file, vec![times.file_write()]),
                (times.command, vec![times.append(), times.projection()]),
                (times.command, vec![times.receiver()]),
                (times.sale, vec![times.verification_turn(), times.settlement()]),
                (times.settlement(), vec![times.facilitator()]),
                (times.facilitator(), vec![times.chain_node()]),
            ] {
                assert!(waits.iter().sum::<Duration>() < whole, "{waits:?} of {whole:?}");
            }
        }
        let times = CallTimes::default();
        let waits = [times.lag(), times.look_up(), times.paging(), times.file_write(), times.append(), times.projection()];
        assert_eq!(waits, [2, 10, 5, 20, 4, 10].map(Duration::from_secs));
        let waits = [times.receiver(), times.verification_turn(), times.facilitator(), times.chain_node(), times.settlement()];
        assert_eq!(waits, [10, 10, 30, 10, 40].map(Duration::from_secs));
    }
}
