//! Positions in the logs. Each kind of position has its own type, so that one cannot be passed for another.

use std::borrow::Cow;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// The offset of a record in one partition of a topic. It starts at 0; it has no gaps on the embedded log and only grows on Kafka.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogOffset(pub u64);

/// The number of a change within its service: 1, 2, 3 …; 0 is the position before the first change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The seqs from this one to `last`; none if `last` is before it.
    pub fn up_to(self, last: Self) -> impl DoubleEndedIterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }
}

/// A number that is not a position: negative, or too large for the column or message that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a valid position")]
pub struct PositionError(pub i128);

macro_rules! positions {
    ($($position:ident)+) => {
        $(
            impl $position {
                /// The position after this one.
                #[must_use]
                pub fn next(self) -> Self {
                    self.plus(1)
                }

                /// The position before this one; 0 for 0.
                #[must_use]
                pub fn previous(self) -> Self {
                    self.minus(1)
                }

                /// The position a number of records after this one. The largest number is never reached by a log.
                #[must_use]
                pub fn plus(self, count: u64) -> Self {
                    Self(self.0.saturating_add(count))
                }

                /// The position a number of records before this one; 0 if there are fewer.
                #[must_use]
                pub fn minus(self, count: u64) -> Self {
                    Self(self.0.saturating_sub(count))
                }

                /// The number of records from an earlier position to this one; 0 if the other one is later.
                #[must_use]
                pub fn since(self, earlier: Self) -> u64 {
                    self.0.saturating_sub(earlier.0)
                }

                /// Returns the position as the signed number of stored rows and keys. Positions that are too large for it, which cannot occur, are the
                /// largest one.
                #[must_use]
                pub fn stored(self) -> i64 {
                    i64::try_from(self.0).unwrap_or(i64::MAX)
                }
            }

            impl fmt::Display for $position {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.fmt(f)
                }
            }

            impl FromStr for $position {
                type Err = ParseIntError;

                fn from_str(text: &str) -> Result<Self, ParseIntError> {
                    text.parse().map(Self)
                }
            }

            /// The schema of a number: readers see positions as numbers.
            impl JsonSchema for $position {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    u64::schema_name()
                }

                fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                    u64::json_schema(generator)
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

positions!(LogOffset Seq);

/// Stores an offset that may be absent as a number, -1 for none. For `#[serde(with = "…")]`.
pub mod or_none {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de};

    use super::LogOffset;

    /// Serializes an offset, or -1.
    ///
    /// # Errors
    /// When the offset is too large for a signed number, or the format fails.
    pub fn serialize<S: Serializer>(offset: &Option<LogOffset>, serializer: S) -> Result<S::Ok, S::Error> {
        let number = offset.map_or(Ok(-1), i64::try_from);
        number.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }

    /// Deserializes an offset; -1 is none.
    ///
    /// # Errors
    /// When the number is another negative one, or the format fails.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<LogOffset>, D::Error> {
        match i64::deserialize(deserializer)? {
            -1 => Ok(None),
            number => LogOffset::try_from(number).map(Some).map_err(de::Error::custom),
        }
    }
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

    /// Proves that stored rows and messages hold positions as plain numbers, and that a negative number is not read as a position.
    #[test]
    fn positions_are_stored_as_numbers() {
        assert_eq!(serde_json::to_string(&(Seq(7), LogOffset(8))).unwrap(), "[7,8]");
        assert_eq!(serde_json::from_str::<Vec<Seq>>("[0,7]").unwrap(), [Seq(0), Seq(7)]);
        assert!(serde_json::from_str::<Seq>("-1").is_err());
        assert_eq!("7".parse(), Ok(Seq(7)));
        assert_eq!(schemars::schema_for!(Seq).get("format"), schemars::schema_for!(u64).get("format"));
    }

    /// Proves that steps beyond the first and the last position stay at it.
    #[test]
    fn steps_stay_in_range() {
        assert_eq!((Seq(0).previous(), Seq(u64::MAX).next(), Seq(3).since(Seq(5))), (Seq(0), Seq(u64::MAX), 0));
        assert_eq!(Seq(2).up_to(Seq(4)).rev().collect::<Vec<_>>(), [Seq(4), Seq(3), Seq(2)]);
        assert_eq!(Seq(2).up_to(Seq(1)).count(), 0);
    }
}
