//! Exact amounts of US dollars.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

/// An amount of US dollars, held in cents. In JSON it is an exact decimal number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars {
    /// The amount in cents.
    pub cents: i64,
}

impl Dollars {
    /// Returns the amount as a floating-point number of dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact below 90 trillion dollars")]
    pub fn as_f64(self) -> f64 {
        self.cents as f64 / 100.0
    }

    /// The value of a number of things at a price in dollars, both as decimal texts such as `1200.5`, rounded to cents (half a cent away from zero).
    /// `None` if one of them is not a decimal, or if the value does not fit.
    #[must_use]
    pub fn product(count: &str, price: &str) -> Option<Self> {
        let ((count, count_scale), (price, price_scale)) = (decimal(count)?, decimal(price)?);
        let (product, scale) = (count.checked_mul(price)?, count_scale + price_scale);
        let cents = match scale.checked_sub(2) {
            None => product.checked_mul(10_i128.checked_pow(2 - scale)?)?,
            Some(places) => {
                let unit = 10_i128.checked_pow(places)?;
                (product.checked_add(product.signum() * (unit / 2))?) / unit
            }
        };
        i64::try_from(cents).ok().map(|cents| Self { cents })
    }

    /// The sum of amounts. It stays at the largest amount that can be held.
    #[must_use]
    pub fn total(amounts: impl IntoIterator<Item = Self>) -> Self {
        Self { cents: amounts.into_iter().fold(0, |sum, amount| sum.saturating_add(amount.cents)) }
    }
}

/// The digits of a decimal text as an integer, and how many of them are after the point.
fn decimal(text: &str) -> Option<(i128, u32)> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let is_decimal = !(whole.is_empty() && rest.is_empty()) && whole.bytes().chain(rest.bytes()).all(|byte| byte.is_ascii_digit());
    let rest = rest.trim_end_matches('0');
    let number: i128 = is_decimal.then(|| format!("0{whole}{rest}").parse().ok())??;
    Some((if text.starts_with('-') { -number } else { number }, u32::try_from(rest.len()).ok()?))
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, whole, rest) = (if self.cents < 0 { "-" } else { "" }, self.cents.unsigned_abs() / 100, self.cents.unsigned_abs() % 100);
        if rest == 0 { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{rest:02}") }
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let cents = (f64::deserialize(deserializer)? * 100.0).round();
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the range is checked")]
        if cents.abs() < i64::MAX as f64 { Ok(Self { cents: cents as i64 }) } else { Err(de::Error::custom("an amount is out of range")) }
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        f64::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that amounts are exact decimals in JSON and are read back, and that amounts out of range are refused.
    #[test]
    fn dollars_are_exact() {
        for (cents, text) in
            [(0, "0"), (5, "0.05"), (-5, "-0.05"), (13_031_441_317, "130314413.17"), (-100, "-1"), (1_234_567_890_123, "12345678901.23")]
        {
            let amount = Dollars { cents };
            assert_eq!(serde_json::to_string(&amount).unwrap(), text);
            assert_eq!(serde_json::from_str::<Dollars>(text).unwrap(), amount);
        }
        assert!(serde_json::from_str::<Dollars>("1e300").is_err());
    }
    /// Proves that a product is exact, rounded to cents, never a negative zero, and refused where it is none.
    #[test]
    fn products() {
        for (count, price, text) in [
            ("100", "0.1", Some("10")),
            ("1303144.1317", "100", Some("130314413.17")),
            ("3", "0.335", Some("1.01")),
            ("-3", "0.335", Some("-1.01")),
            ("-0", "5.5", Some("0")),
            ("1", "0.001", Some("0")),
            (".5", "2.", Some("1")),
            ("10000", "12.50000000", Some("125000")),
            ("1e5", "2", None),
            ("", "2", None),
            ("12a", "2", None),
            ("99999999999999999999", "99999999999999999999", None),
        ] {
            let product = Dollars::product(count, price).map(|amount| serde_json::to_string(&amount).unwrap());
            assert_eq!(product.as_deref(), text, "{count} x {price}");
        }
        assert_eq!(Dollars::total([]).to_string(), "0");
    }
}
