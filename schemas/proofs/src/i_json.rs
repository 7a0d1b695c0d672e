//! I-JSON (RFC 7493): JSON texts that mean the same to every reader. A text that gives a field twice, or a number that a double (IEEE 754) does not
//! hold, is read differently by different programs, and its canonical form (RFC 8785) is that of another text, too.

use serde_json::{Map, Value};
use thiserror::Error;

/// The deepest nesting that is read: that of `serde_json`.
const DEPTH_MAX: usize = 128;
/// The largest integer that every reader of JSON reads exactly: 2^53 - 1.
const NUMBER_MAX: f64 = 9_007_199_254_740_991.0;
/// The most significant digits of a number that a double distinguishes.
const DIGITS_MAX: usize = 17;

/// How a text violates I-JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rule {
    /// An object has a field twice.
    #[error("the field is given twice")]
    FieldTwice,
    /// A number is above 2^53 - 1, or below -(2^53 - 1).
    #[error("the number is beyond 9007199254740991 (2^53 - 1), so that not every program reads it exactly; send it as a text")]
    NumberTooLarge,
    /// A number has more digits than a double holds, or is nearer to 0.
    #[error(
        "the number has more than 17 significant digits, or is too near to 0, so that not every program reads it exactly; send it as a text"
    )]
    NumberTooPrecise,
}

/// A place in a text that violates I-JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The names of fields, and the indexes of arrays, that lead to the value.
    pub path: Vec<String>,
    /// What is wrong there.
    pub rule: Rule,
}

/// Reads a JSON text. Each number is the double that is nearest to its text, which the parser of `serde_json` does not promise. `None` if the text is
/// not JSON.
///
/// # Errors
/// The first violation that `is_wanted`.
pub fn read(text: &[u8], is_wanted: impl Fn(&[String], Rule) -> bool) -> Result<Option<Value>, Violation> {
    let mut reader = Reader { rest: text, path: Vec::new(), is_wanted, found: None };
    let value = reader.value().filter(|_| reader.rest.trim_ascii_start().is_empty());
    match reader.found {
        Some(rule) => Err(Violation { path: reader.path, rule }),
        None => Ok(value),
    }
}

/// Reads a text from its beginning. Every step returns `None` at the end of the text, at an error in it, or when a violation was found.
struct Reader<'a, F> {
    rest: &'a [u8],
    path: Vec<String>,
    is_wanted: F,
    found: Option<Rule>,
}

impl<'a, F: Fn(&[String], Rule) -> bool> Reader<'a, F> {
    /// Skips white space and returns the next byte, which it leaves.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    /// Takes the next byte if it is this one.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.rest = self.rest.get(1..).unwrap_or_default())
    }

    /// Takes so many bytes.
    fn split(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn value(&mut self) -> Option<Value> {
        match self.peek()? {
            b'{' => self.object().map(Value::Object),
            b'[' => self.array().map(Value::Array),
            b'"' => self.string().map(Value::String),
            b'-' | b'0'..=b'9' => self.number(),
            _ => {
                let length = self.rest.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(self.rest.len());
                serde_json::from_slice(self.split(length)?).ok()
            }
        }
    }

    fn object(&mut self) -> Option<Map<String, Value>> {
        self.take(b'{')?;
        let mut fields = Map::new();
        if self.peek()? == b'}' {
            return self.take(b'}').map(|()| fields);
        }
        loop {
            self.peek()?;
            // Two spellings of one name are the same name.
            let name = self.string()?;
            self.take(b':')?;
            self.path.push(name.clone());
            if fields.contains_key(&name) {
                self.report(Rule::FieldTwice)?;
            }
            let value = self.nested()?;
            fields.insert(name, value);
            match self.peek()? {
                b',' => self.take(b',')?,
                _ => return self.take(b'}').map(|()| fields),
            }
        }
    }

    fn array(&mut self) -> Option<Vec<Value>> {
        self.take(b'[')?;
        let mut items = Vec::new();
        if self.peek()? == b']' {
            return self.take(b']').map(|()| items);
        }
        loop {
            self.path.push(items.len().to_string());
            items.push(self.nested()?);
            match self.peek()? {
                b',' => self.take(b',')?,
                _ => return self.take(b']').map(|()| items),
            }
        }
    }

    /// Reads a value whose path was just extended, and removes the last part of the path.
    fn nested(&mut self) -> Option<Value> {
        if self.path.len() > DEPTH_MAX {
            return None;
        }
        let value = self.value()?;
        self.path.pop();
        Some(value)
    }

    fn string(&mut self) -> Option<String> {
        if self.rest.first() != Some(&b'"') {
            return None;
        }
        let mut at = 1;
        loop {
            match self.rest.get(at)? {
                b'"' => return serde_json::from_slice(self.split(at + 1)?).ok(),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    fn number(&mut self) -> Option<Value> {
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let length = self.rest.iter().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
        let text = std::str::from_utf8(self.split(length)?).ok()?;
        let value: f64 = text.parse().ok()?;
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let significant = digits.trim_matches('0').len();
        if value.abs() > NUMBER_MAX {
            self.report(Rule::NumberTooLarge)?;
        } else if significant > DIGITS_MAX || (significant > 0 && value == 0.0) {
            self.report(Rule::NumberTooPrecise)?;
        }
        let integer = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from));
        Some(integer.unwrap_or_else(|_| Value::from(value)))
    }

    /// Ends the reading at the current path if the violation is wanted.
    fn report(&mut self, rule: Rule) -> Option<()> {
        if !(self.is_wanted)(&self.path, rule) {
            return Some(());
        }
        self.found = Some(rule);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(text: &str) -> Option<(String, Rule)> {
        read(text.as_bytes(), |_, _| true).err().map(|found| (found.path.join("."), found.rule))
    }

    /// Proves which texts are I-JSON, and where the others are not.
    #[test]
    fn violations_have_their_path() {
        for good in [
            r#"{"a": [1, -2.5, 1e3, 0.000000000000000000000000001, 9007199254740991, -9007199254740991], "b": {"a": true}}"#,
            r#"{"a": 333333333.33333329, "b": 0, "c": -0.0e400, "d": 10000000000000000e-4, "e": 0.10000000000000001}"#,
            r#"[{"a": null}, {"a": "{\"a\": 1, \"a\": 9007199254740993}"}, [], {}]"#,
            "\"\\\\\"",
            "7",
        ] {
            assert_eq!(violation(good), None, "{good}");
            assert_eq!(read(good.as_bytes(), |_, _| true), Ok(serde_json::from_str(good).ok()), "{good}");
        }
        for (bad, path, rule) in [
            (r#"{"a": 1, "b": 2, "a": 3}"#, "a", Rule::FieldTwice),
            (r#"{"a": 1, "\u0061": 3}"#, "a", Rule::FieldTwice),
            (r#" { "x" : [ { "b" : { "c" : 1 , "c" : 1 } } ] } "#, "x.0.b.c", Rule::FieldTwice),
            (r#"{"a": {"b": 9007199254740992}}"#, "a.b", Rule::NumberTooLarge),
            (r#"[0, -9007199254740993]"#, "1", Rule::NumberTooLarge),
            (r#"{"a": 18446744073709551616}"#, "a", Rule::NumberTooLarge),
            (r#"{"a": 9007199254740992.0}"#, "a", Rule::NumberTooLarge),
            (r#"{"a": 1e400}"#, "a", Rule::NumberTooLarge),
            (r#"{"a": 1E16}"#, "a", Rule::NumberTooLarge),
            (r#"{"a": 3.14159265358979323846}"#, "a", Rule::NumberTooPrecise),
            (r#"{"a": 1e-400}"#, "a", Rule::NumberTooPrecise),
        ] {
            assert_eq!(violation(bad), Some((path.to_owned(), rule)), "{bad}");
        }
    }

    /// Proves that a number is the nearest double to its text, so that its canonical form is the one that other programs write.
    #[test]
    fn numbers_are_read_exactly() {
        for text in [
            "0.1",
            "0.30000000000000004",
            "1.7976931348623157",
            "2.2250738585072011e-308",
            "0.12345678901234566",
            "123456.78901234568",
            "-0",
        ] {
            let Ok(Some(value)) = read(text.as_bytes(), |_, _| true) else { panic!("{text}") };
            assert_eq!(value.as_f64(), text.parse().ok(), "{text}");
        }
    }

    /// Proves that only a wanted violation is reported, and that a text that is not JSON, or is nested deeply, ends the search.
    #[test]
    fn searches_end() {
        let text = br#"{"a": 1, "a": {"b": 9007199254740992}, "c": 9007199254740992}"#;
        let found = read(text, |path, rule| rule == Rule::NumberTooLarge && path.len() == 1).unwrap_err();
        assert_eq!(found.path, ["c"]);
        for broken in [
            "",
            "{",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "{\"a\": 1",
            "[",
            "[1,",
            "\"\\",
            "{1: 2}",
            "-",
            "{\"a\" 1}",
            "\u{ff}",
            "nul",
            "1 2",
            "\"\\ud800\"",
        ] {
            assert_eq!(read(broken.as_bytes(), |_, _| true), Ok(None), "{broken}");
        }
        assert_eq!(violation(&"[".repeat(100_000)), None);
        assert_eq!(violation(&format!("{}{}", "{\"a\":".repeat(100_000), "9007199254740992")), None);
    }
}
