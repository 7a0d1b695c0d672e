//! Numbers in answers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A number with few decimals, which is written without a fraction if it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Number(f64);

impl Number {
    /// A number rounded to so many decimals.
    #[must_use]
    pub fn rounded(value: f64, decimals: i32) -> Self {
        let factor = 10_f64.powi(decimals);
        Self((value * factor).round() / factor)
    }

    /// A number of hundredths.
    #[must_use]
    pub fn hundredths(value: i64) -> Self {
        Self(value as f64 / 100.0)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "only whole numbers far below the limit are converted")]
        if self.0.fract() == 0.0 && self.0.abs() < 1e15 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}
