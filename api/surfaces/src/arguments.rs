//! Validation of arguments: on every surface, they pass the validator of the schema that clients see.
//!
//! Strings of a query or a path are converted to JSON by the types in that schema. Promises: every refusal names the parameter; nothing is guessed,
//! cut off or accepted twice.

use std::borrow::Cow;

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use operation::Operation;
use operation::known::{spell_known_fields, unknown_value};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::names::hint;
use serde_json::{Map, Number, Value};

/// Parameters of every REST operation that carry the API key. They are removed before validation.
pub const ACCESS_PARAMETERS: [&str; 2] = ["api_key", "key"];

/// The most characters of a caller's value that an error repeats.
const ECHO_CHARS_MAX: usize = 64;

/// A schema that does not compile: a mistake in a definition, found when the service is mounted.
#[derive(Debug, thiserror::Error)]
#[error("the input schema of operation {operation} does not compile")]
pub struct SchemaError {
    /// The name of the operation.
    pub operation: &'static str,
    /// The error of the validator.
    #[source]
    pub source: Box<jsonschema::ValidationError<'static>>,
}

/// How a string of a query is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Number,
    Boolean,
    Text,
}

/// The parts of a parameter that are needed to convert strings.
#[derive(Debug)]
struct Parameter {
    name: String,
    kind: Kind,
    list: bool,
    schema: Value,
}

/// The compiled validator of one operation.
#[derive(Debug)]
pub struct Checker {
    validator: Validator,
    schema: Value,
    parameters: Vec<Parameter>,
    aliases: &'static [(&'static str, &'static str)],
    /// The names that an unknown name is compared with.
    known: Vec<String>,
}

impl Checker {
    /// Compiles the validator of an operation, once, when the operation is mounted.
    ///
    /// # Errors
    /// When the schema does not compile.
    pub fn new(operation: &Operation) -> Result<Self, SchemaError> {
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(&operation.input)
            .map_err(|error| SchemaError { operation: operation.name, source: Box::new(error) })?;
        let properties = operation.input.get("properties").and_then(Value::as_object);
        let parameters: Vec<Parameter> = properties.into_iter().flatten().map(|(name, schema)| Parameter::new(name, schema)).collect();
        let aliases = operation.aliases.iter().map(|(alias, _)| (*alias).to_owned());
        let access = ACCESS_PARAMETERS.iter().map(|name| (*name).to_owned());
        let known = parameters.iter().map(|parameter| parameter.name.clone()).chain(aliases).chain(access).collect();
        Ok(Self { validator, schema: operation.input.clone(), parameters, aliases: operation.aliases, known })
    }

    /// Converts decoded pairs of a query and a path to arguments and validates them. Access parameters must have been removed.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the parameter.
    pub fn strings<'a>(&self, pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Result<Value, Problem> {
        let mut arguments = Map::new();
        for (given, text) in pairs {
            let parameter = self.find(&given)?;
            let name = &parameter.name;
            if text.contains('\u{FFFD}') {
                return Err(Problem::parameter(&*given, format!("{given} is not UTF-8 after percent-decoding")));
            }
            if parameter.list {
                let items = parameter.read_list(&given, &text)?;
                match arguments.get_mut(name.as_str()) {
                    Some(Value::Array(list)) => list.extend(items),
                    _ => drop(arguments.insert(name.clone(), Value::Array(items))),
                }
            } else if arguments.contains_key(name.as_str()) {
                return Err(twice(&given, name));
            } else {
                arguments.insert(name.clone(), parameter.read(&given, &text)?);
            }
        }
        self.check(arguments, ErrorCode::ParameterInvalid)
    }

    /// Validates JSON arguments: a body, or the arguments of an MCP tool. Top-level nulls are treated as missing.
    ///
    /// # Errors
    /// The given code (`body-invalid` or `parameter-invalid`), with the name of the field.
    pub fn json(&self, given: Map<String, Value>, code: ErrorCode) -> Result<Value, Problem> {
        let mut arguments = Map::new();
        for (given, mut value) in given {
            if value.is_null() {
                continue;
            }
            let parameter = self.find(&given).map_err(|problem| Problem { code, ..problem })?;
            normalize_integers(&mut value, &parameter.schema);
            split_lists(&mut value, &parameter.schema);
            if arguments.insert(parameter.name.clone(), value).is_some() {
                return Err(Problem { code, ..twice(&given, &parameter.name) });
            }
        }
        self.check(arguments, code)
    }

    /// Adds the parameters of a path to the fields of a body and validates them together.
    ///
    /// # Errors
    /// `parameter-invalid` for parameters of the path, `body-invalid` for fields of the body, with their names.
    pub fn body<'a>(
        &self,
        mut fields: Map<String, Value>,
        path: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<Value, Problem> {
        for (given, text) in path {
            let parameter = self.find(&given)?;
            if fields.insert(parameter.name.clone(), parameter.read(&given, &text)?).is_some() {
                return Err(twice(&given, &parameter.name));
            }
        }
        self.json(fields, ErrorCode::BodyInvalid)
    }

    /// Finds a parameter by name or alias.
    fn find(&self, given: &str) -> Result<&Parameter, Problem> {
        let name = self.aliases.iter().find(|(alias, _)| *alias == given).map_or(given, |(_, name)| *name);
        self.parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| {
            let hint = hint(given, self.known.iter().map(String::as_str));
            Problem::parameter(echo(given), format!("unknown parameter \"{}\"{hint}", echo(given)))
        })
    }

    /// Runs the validator. Known values may be given in any case; the result has the spelling of the schema.
    fn check(&self, mut arguments: Map<String, Value>, code: ErrorCode) -> Result<Value, Problem> {
        spell_known_fields(&mut arguments, &self.schema);
        let arguments = Value::Object(arguments);
        // Validation without error details is much faster, and it usually succeeds.
        if self.validator.is_valid(&arguments) {
            return Ok(arguments);
        }
        let problem = self
            .validator
            .iter_errors(&arguments)
            .next()
            .map_or_else(|| Problem::new(code, "the arguments do not match the schema"), |error| Problem { code, ..self.explain(&error) });
        Err(problem)
    }

    /// Describes a validation error. The value of a write-only parameter (a secret) is not repeated.
    fn explain(&self, error: &jsonschema::ValidationError<'_>) -> Problem {
        let name = error.instance_path().as_str().split('/').nth(1).unwrap_or_default();
        let parameter = self.parameters.iter().find(|parameter| parameter.name == name);
        let is_secret = parameter.is_some_and(|parameter| parameter.schema.get("writeOnly") == Some(&Value::Bool(true)));
        explain(error, is_secret)
    }
}

impl Parameter {
    fn new(name: &str, schema: &Value) -> Self {
        let list = is_list(schema);
        let scalar = if list { schema.get("items").unwrap_or(&Value::Null) } else { schema };
        let kind = match scalar.get("type").and_then(Value::as_str) {
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            _ => Kind::Text,
        };
        Self { name: name.to_owned(), kind, list, schema: schema.clone() }
    }

    /// Converts a string with commas to the items of a list.
    fn read_list(&self, given: &str, text: &str) -> Result<Vec<Value>, Problem> {
        items_of(text).map(|item| self.read(given, item)).collect()
    }

    /// Converts a string to the JSON type of the schema.
    fn read(&self, given: &str, text: &str) -> Result<Value, Problem> {
        let wrong = |what: &str| Problem::parameter(given, format!("{given}: \"{}\" is not {what}", echo(text)));
        if text.trim().is_empty() && given == "cursor" {
            return Err(Problem {
                code: ErrorCode::CursorInvalid,
                ..Problem::parameter(given, "the cursor is empty; leave it out to start from the beginning")
            });
        }
        if text.trim().is_empty() {
            return Err(Problem::parameter(given, format!("{given} is empty; leave it out instead")));
        }
        match self.kind {
            Kind::Text => Ok(Value::from(text)),
            Kind::Boolean => match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Ok(true.into()),
                "false" | "0" => Ok(false.into()),
                _ => Err(wrong("true or false")),
            },
            Kind::Integer => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(wrong("a whole number"));
                }
                let number = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from));
                number.map_err(|_| Problem::parameter(given, format!("{given}: \"{}\" is out of range", echo(text))))
            }
            Kind::Number => {
                let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
                let number = text.parse::<f64>().ok().filter(|_| plain).and_then(Number::from_f64);
                number.map(Value::Number).ok_or_else(|| wrong("a number"))
            }
        }
    }
}

/// Writes `3.0` as `3` where the schema requires an integer: JSON Schema accepts both, Rust integers only `3`.
fn normalize_integers(value: &mut Value, schema: &Value) {
    match value {
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| normalize_integers(item, schema));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                normalize_integers(value, schema.get("properties").and_then(|properties| properties.get(name)).unwrap_or(&Value::Null));
            }
        }
        Value::Number(number) if number.is_f64() && schema.get("type").and_then(Value::as_str) == Some("integer") => {
            // Beyond 2^53 a float does not identify an integer.
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0) {
                #[expect(clippy::cast_possible_truncation, reason = "checked: whole and below 2^53")]
                let int = float as i64;
                *value = int.into();
            }
        }
        _ => {}
    }
}

/// Whether a value of the schema may be a list. Such a value may also be one text with commas.
fn is_list(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    }
}

/// The items of a text with commas.
fn items_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// Splits a text with commas where the schema has a list of texts, so that JSON takes lists in the same forms as a query.
fn split_lists(value: &mut Value, schema: &Value) {
    match value {
        Value::String(text) if is_list(schema) && schema.pointer("/items/type").and_then(Value::as_str) == Some("string") => {
            *value = items_of(text).collect();
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(schema) = schema.get("properties").and_then(|properties| properties.get(name)) {
                    split_lists(value, schema);
                }
            }
        }
        _ => {}
    }
}

/// The problem of a parameter that is given twice, possibly by different names.
fn twice(given: &str, name: &str) -> Problem {
    let words =
        if given == name { format!("{name} is given twice") } else { format!("{given} and {name} are the same parameter, given twice") };
    Problem::parameter(name, words)
}

/// Shortens a caller's text for an error.
pub(super) fn echo(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Describes a validation error.
fn explain(error: &jsonschema::ValidationError<'_>, is_secret: bool) -> Problem {
    let path = error.instance_path().as_str().trim_start_matches('/');
    let parameter = path.split('/').next().unwrap_or_default();
    let at = path.replace('/', ".");
    let value = if is_secret { "the value".to_owned() } else { error.instance().to_string() };
    let value = echo(&value);
    let words = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let full = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            let parameter = if parameter.is_empty() { name } else { parameter };
            return Problem::parameter(parameter, format!("{full} is missing"));
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let name = unexpected.first().map(String::as_str).unwrap_or_default();
            let parameter = if parameter.is_empty() { name } else { parameter };
            let place = if at.is_empty() { String::new() } else { format!(" in {at}") };
            return Problem::parameter(echo(parameter), format!("unknown field \"{}\"{place}", echo(name)));
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> = options.as_array().into_iter().flatten().map(plain).collect();
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let given = if is_secret { "" } else { error.instance().as_str().unwrap_or_default() };
            unknown_value(&value, given, &options)
        }
        ValidationErrorKind::Minimum { limit } => format!("{value} is less than {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("{value} is more than {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("{value} is not more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("{value} is not less than {limit}"),
        ValidationErrorKind::MinLength { limit: 1 } => "is empty".to_owned(),
        ValidationErrorKind::MinLength { limit } => format!("is shorter than {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("is longer than {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("has fewer than {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("has more than {limit} items"),
        ValidationErrorKind::UniqueItems => "contains an item twice".to_owned(),
        ValidationErrorKind::Format { format } if format == "date" => format!("{value} is not a date (YYYY-MM-DD)"),
        ValidationErrorKind::Format { format } => format!("{value} is not in the format {format}"),
        ValidationErrorKind::Pattern { pattern } => format!("{value} does not match {pattern}"),
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => format!("{value} is not of type {kind}"),
        other => format!("does not match the schema ({})", other.keyword()),
    };
    Problem::parameter(echo(parameter), format!("{at}: {words}"))
}

/// A JSON string without quotes, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
