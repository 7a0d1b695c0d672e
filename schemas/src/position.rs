//! Positions in the logs. Each kind of position has its own type, so that one cannot be passed for another.

use serde::{Deserialize, Serialize};

/// The offset of a record in one partition of a topic. It starts at 0; it has no gaps on the embedded log and only grows on Kafka.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogOffset(pub u64);

impl LogOffset {
    /// The offset after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The number of a change within its service: 1, 2, 3 …; 0 is the position before the first change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The seq after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A number that is not a position: negative, or too large for the column or message that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a valid position")]
pub struct PositionError(pub i128);

macro_rules! signed_form {
    ($($position:ident)+) => {
        $(
            impl $position {
                /// Returns the position as the signed number of stored rows and keys. Positions that are too large for it, which cannot occur, are the
                /// largest one.
                #[must_use]
                pub fn stored(self) -> i64 {
                    i64::try_from(self.0).unwrap_or(i64::MAX)
                }
            }

            impl TryFrom<i64> for $position {
                type Error = PositionError;

                fn try_from(number: i64) -> Result<Self, PositionError> {
                    u64::try_from(number).map(Self).map_err(|_| PositionError(number.into()))
                }
            }

            impl TryFrom<$position> for i64 {
                type Error = PositionError;

                fn try_from(position: $position) -> Result<Self, PositionError> {
                    Self::try_from(position.0).map_err(|_| PositionError(position.0.into()))
                }
            }
        )+
    };
}

signed_form!(LogOffset Seq);

/// One partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionId {
    /// The name of the topic.
    pub topic: String,
    /// The number of the partition, from 0.
    pub partition: u32,
}

/// How far an upstream has been read: JSON that only the code of that upstream interprets. Empty before the first page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpstreamCursor(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that positions convert to signed columns and back, and that numbers which are not positions are errors.
    #[test]
    fn positions_convert_to_signed_columns() {
        for number in [0, 1, i64::MAX] {
            assert_eq!(LogOffset::try_from(number).and_then(i64::try_from), Ok(number));
            assert_eq!(Seq::try_from(number).and_then(i64::try_from), Ok(number));
        }
        assert_eq!(LogOffset::try_from(-1), Err(PositionError(-1)));
        assert_eq!(i64::try_from(Seq(u64::MAX)), Err(PositionError(u64::MAX.into())));
    }
}
