//! Reading of values: one set of rules for the query, the path, the body, the arguments of MCP tools and the fields of saved filters.
//!
//! Clients write a value in other types than its schema has: numbers as text, a number where a text is expected, a list as one text with commas or
//! as the text of a JSON array, an empty object as `[]`. Such a value is taken where it has exactly one reading. Any other value is refused, naming
//! the parameter and the value, or stays as it is and is refused by the validator. The objects of a list are data (aircraft of a fleet) and not
//! arguments: a text is no number in them.

use operation::problem::Problem;
use proofs::i_json;
use schemas::error_code::ErrorCode;
use serde_json::{Map, Number, Value};

use super::{echo, is_other_spelling};

/// Beyond 2^53 a float does not identify an integer.
const WHOLE_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

/// Pairs of quotation marks that clients leave around a value.
const QUOTES: [(char, char); 5] = [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’'), ('`', '`')];

/// The type of a value that is not a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Number,
    Boolean,
    Text,
    Object,
    /// The schema does not say.
    Unknown,
}

impl Kind {
    fn of(schema: &Value) -> Self {
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        match names.as_slice() {
            ["integer"] => Self::Integer,
            ["number"] => Self::Number,
            ["boolean"] => Self::Boolean,
            ["string"] => Self::Text,
            ["object"] => Self::Object,
            _ => Self::Unknown,
        }
    }
}

/// How values are read. Problems name the path of a value as the caller wrote it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    /// Whether a text that is written in quotation marks, or that holds JSON, is read as its content. Texts that are recorded as they are stay
    /// unchanged. Lists are always read.
    pub(super) unwraps_texts: bool,
    /// Whether a text may stand for a number, or for true or false. Not within the items of a list, which are data and have the types of the schema.
    pub(super) converts_texts: bool,
}

impl Reader {
    /// Reads a value by its schema. `at` is the path of the value as errors show it.
    ///
    /// # Errors
    /// `parameter-invalid` with the path and the value; `cursor-invalid` for an empty cursor.
    pub(super) fn value(&self, value: Value, schema: &Value, at: &str, is_required: bool) -> Result<Value, Problem> {
        if schema.get("writeOnly") == Some(&Value::Bool(true)) {
            return Ok(value);
        }
        if is_list(schema) {
            return self.list(value, schema.get("items").unwrap_or(&Value::Null), at);
        }
        match (value, Kind::of(schema)) {
            (Value::Object(fields), _) => self.fields(fields, schema, at).map(Value::Object),
            (Value::Array(items), Kind::Object) if items.is_empty() => Ok(Value::Object(Map::new())),
            (Value::String(text), Kind::Object) => match parse(&text, at)? {
                Some(Value::Object(fields)) => self.fields(fields, schema, at).map(Value::Object),
                Some(Value::Array(items)) if items.is_empty() => Ok(Value::Object(Map::new())),
                _ => Ok(Value::String(text)),
            },
            (Value::String(text), Kind::Text) if is_required && text.trim().is_empty() => Ok(Value::String(text)),
            (value, kind) => self.scalar(value, kind, at),
        }
    }

    /// Reads the fields of an object.
    fn fields(&self, fields: Map<String, Value>, schema: &Value, at: &str) -> Result<Map<String, Value>, Problem> {
        let Some(properties) = schema.get("properties") else { return Ok(fields) };
        let required = schema.get("required").and_then(Value::as_array);
        let mut read = Map::new();
        for (given, value) in fields {
            // As the parameters of a query, fields of several words have two names.
            let other = || properties.as_object().and_then(|known| known.keys().find(|name| is_other_spelling(&given, name)));
            let name = if properties.get(&given).is_some() { None } else { other().cloned() };
            let name = name.unwrap_or_else(|| given.clone());
            let is_of_any_type = |property: &Value| !is_list(property) && Kind::of(property) == Kind::Unknown;
            // As a parameter that is null, a field that is null is missing: many programs write optional fields without a value so.
            if value.is_null() && properties.get(&name).is_some_and(|property| !is_of_any_type(property)) {
                continue;
            }
            let value = match properties.get(&name) {
                Some(property) if !value.is_null() => {
                    let is_required = required.is_some_and(|names| names.iter().any(|required| required == name.as_str()));
                    self.value(value, property, &format!("{at}.{given}"), is_required)?
                }
                _ => value,
            };
            if read.insert(name.clone(), value).is_some() {
                return Err(Problem::parameter(format!("{at}.{name}"), format!("{at}.{name} is given twice, in two spellings")));
            }
        }
        Ok(read)
    }

    /// Reads a list: an array, the text of a JSON array, a text with commas, or one item.
    fn list(&self, value: Value, items: &Value, at: &str) -> Result<Value, Problem> {
        let read = match value {
            Value::Array(values) => self.items(values, items, at)?,
            Value::String(text) => self.list_text(&text, items, at)?,
            Value::Number(_) => vec![self.value(value, items, at, false)?],
            other => return Ok(other),
        };
        Ok(Value::Array(read))
    }

    fn items(&self, values: Vec<Value>, schema: &Value, at: &str) -> Result<Vec<Value>, Problem> {
        let of_items = Self { converts_texts: false, ..*self };
        let read = |(index, value): (usize, Value)| {
            let at = format!("{at}.{index}");
            match value {
                Value::String(text) => self.item(&text, schema, &at),
                other => of_items.value(other, schema, &at, false),
            }
        };
        values.into_iter().enumerate().map(read).collect()
    }

    /// Reads the items of a list that is written as one text.
    fn list_text(&self, text: &str, schema: &Value, at: &str) -> Result<Vec<Value>, Problem> {
        let text = text.trim();
        match parse(text, at)? {
            Some(Value::Array(values)) if values.is_empty() => return Err(empty(at)),
            Some(Value::Array(values)) => return self.items(values, schema, at),
            Some(Value::String(inner)) if inner.len() < text.len() => return self.list_text(&inner, schema, at),
            _ => {}
        }
        if text.contains('"')
            && let Some(Value::Array(values)) = parse(&format!("[{text}]"), at)?
            && values.iter().all(Value::is_string)
        {
            return self.items(values, schema, at);
        }
        // `['8-K', '4']` is not JSON, but has one reading.
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        inner.split(',').map(|item| self.item(item.trim(), schema, at)).collect()
    }

    /// Reads one item of a list.
    fn item(&self, text: &str, schema: &Value, at: &str) -> Result<Value, Problem> {
        let unquoted = unquote(text.trim());
        if unquoted.starts_with(['[', '{', '"']) || unquoted.ends_with([']', '}', '"']) {
            let words = format!("{at}: {:?} is a part of a JSON text; write a list as [\"A\",\"B\"] or as A,B", echo(text));
            return Err(Problem::parameter(at, words));
        }
        // A text without quotation marks keeps its spaces, which the validator compares.
        let text = if unquoted == text.trim() { text } else { unquoted };
        self.scalar(Value::from(text), Kind::of(schema), at)
    }

    /// Reads a value that is not a list or an object.
    fn scalar(&self, value: Value, kind: Kind, at: &str) -> Result<Value, Problem> {
        match (value, kind) {
            (Value::String(text), Kind::Object | Kind::Unknown) => Ok(Value::String(text)),
            // The validator refuses it.
            (Value::String(text), Kind::Boolean | Kind::Integer | Kind::Number) if !self.converts_texts => Ok(Value::String(text)),
            (Value::String(text), _) => self.text(&text, kind, at),
            (Value::Number(number), Kind::Text) => {
                Ok(whole(&number).map_or_else(|| number.clone().into(), |whole| whole.to_string().into()))
            }
            (Value::Number(number), Kind::Integer) => Ok(whole(&number).unwrap_or(number).into()),
            (Value::Number(number), Kind::Boolean) => Ok(match number.as_u64() {
                Some(0) => false.into(),
                Some(1) => true.into(),
                _ => number.into(),
            }),
            (other, _) => Ok(other),
        }
    }

    /// Converts a text to the type of the schema.
    fn text(&self, text: &str, kind: Kind, at: &str) -> Result<Value, Problem> {
        let wrong = |what: &str| Problem::parameter(at, format!("{at}: \"{}\" is not {what}", echo(text)));
        let unquoted = if self.unwraps_texts || kind != Kind::Text { unquote(text) } else { text };
        if unquoted.trim().is_empty() {
            return Err(empty(at));
        }
        match kind {
            Kind::Text if self.unwraps_texts => {
                match unquoted.starts_with(['[', '{']).then(|| parse(unquoted, at)).transpose()?.flatten() {
                    Some(Value::Array(_) | Value::Object(_)) => Err(wrong("one value")),
                    _ if ["[\"", "['", "{\""].iter().any(|start| unquoted.starts_with(start)) => Err(wrong("one value")),
                    _ => Ok(Value::from(unquoted)),
                }
            }
            Kind::Text | Kind::Object | Kind::Unknown => Ok(Value::from(text)),
            Kind::Boolean => match unquoted.to_ascii_lowercase().as_str() {
                "true" | "1" => Ok(true.into()),
                "false" | "0" => Ok(false.into()),
                _ => Err(wrong("true or false")),
            },
            Kind::Integer => {
                let digits = unquoted.strip_prefix('-').unwrap_or(unquoted);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) || has_leading_zero(digits) {
                    return Err(wrong("a whole number"));
                }
                let number = unquoted.parse::<i64>().map(Value::from).or_else(|_| unquoted.parse::<u64>().map(Value::from));
                number.map_err(|_| Problem::parameter(at, format!("{at}: \"{}\" is out of range", echo(text))))
            }
            Kind::Number => {
                let plain = unquoted.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
                let plain = plain && !has_leading_zero(unquoted.trim_start_matches(['+', '-']));
                let number = unquoted.parse::<f64>().ok().filter(|_| plain).and_then(Number::from_f64);
                number.map(Value::Number).ok_or_else(|| wrong("a number"))
            }
        }
    }
}

/// Parses the JSON text of a list, an object or a text; `None` if it is none.
///
/// # Errors
/// When the text has a field twice, or a number that not every program reads exactly.
fn parse(text: &str, at: &str) -> Result<Option<Value>, Problem> {
    if !text.trim_start().starts_with(['[', '{', '"']) {
        return Ok(None);
    }
    i_json::read(text.trim().as_bytes(), |_, _| true).map_err(|violation| {
        let path: String = std::iter::once(at).chain(violation.path.iter().map(String::as_str)).collect::<Vec<_>>().join(".");
        Problem::parameter(echo(&path), echo(&format!("{path}: {}", violation.rule)).into_owned())
    })
}

/// The problem of a value without content.
fn empty(at: &str) -> Problem {
    if at == "cursor" {
        let words = "the cursor is empty; leave it out to start from the beginning";
        return Problem { code: ErrorCode::CursorInvalid, ..Problem::parameter(at, words) };
    }
    Problem::parameter(at, format!("{at} is empty; leave it out instead"))
}

/// Whether a value of the schema may be a list. Such a value may also be one text with commas.
pub(super) fn is_list(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    }
}

/// The text within one pair of quotation marks; the same text if it is not within one pair.
fn unquote(text: &str) -> &str {
    let within = |(open, close): (char, char)| {
        let inner = text.trim().strip_prefix(open)?.strip_suffix(close)?;
        (!inner.contains([open, close])).then_some(inner)
    };
    QUOTES.into_iter().find_map(within).unwrap_or(text)
}

/// Whether digits begin with a zero that a number does not have: `03`, but not `0` or `0.5`.
fn has_leading_zero(digits: &str) -> bool {
    let mut bytes = digits.bytes();
    bytes.next() == Some(b'0') && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
}

/// A whole number as an integer: `3.0` as `3`. JSON Schema accepts both as an integer, Rust integers only `3`.
fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < WHOLE_FLOAT_MAX)?;
    #[expect(clippy::cast_possible_truncation, reason = "checked: whole and below 2^53")]
    let int = float as i64;
    Some(int.into())
}
