//! Validation of arguments: on every surface, they pass the validator of the schema that clients see.
//!
//! Values are read by the types in that schema, by the same rules on every surface. Promises: every refusal names the parameter, and for a value within
//! another one in JSON its path (`filter.state`, `aircraft.0.tail`); nothing is guessed, cut off or accepted twice.

mod echo;
mod values;

use std::borrow::Cow;

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use operation::known_values::{find_known, spell_known_fields, unknown_value};
use operation::problem::Problem;
use operation::tracking::counts_visitors;
use operation::{Method, Operation};
use schemas::error_code::ErrorCode;
use schemas::names::hint;
use serde_json::{Map, Value};

pub use self::echo::echo;
use self::echo::is_other_spelling;
use values::{Reader, is_list};

/// Parameters of every REST operation that carry the API key. They are removed before validation.
pub const ACCESS_PARAMETERS: [&str; 2] = ["api_key", "key"];

/// Fields that workflow hosts (n8n) add to the arguments of every tool.
pub const HOST_FIELDS: [&str; 5] = ["toolCallId", "tool", "sessionId", "action", "chatInput"];

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

/// A parameter of an operation.
#[derive(Debug)]
struct Parameter {
    name: String,
    list: bool,
    is_required: bool,
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
    /// See [`Operation::sold_by`].
    sold_by: &'static str,
    /// Whether texts in quotation marks are read as their content. Texts that an operation records as they are stay unchanged.
    unwraps_texts: bool,
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
        let required = operation.input.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
        let parameter = |(name, schema): (&String, &Value)| Parameter {
            name: name.clone(),
            list: is_list(schema),
            is_required: is_required(name),
            schema: schema.clone(),
        };
        let parameters: Vec<Parameter> = properties.into_iter().flatten().map(parameter).collect();
        let aliases = operation.aliases.iter().map(|(alias, _)| (*alias).to_owned());
        let access = ACCESS_PARAMETERS.iter().map(|name| (*name).to_owned());
        let known = parameters.iter().map(|parameter| parameter.name.clone()).chain(aliases).chain(access).collect();
        let unwraps_texts = operation.method == Method::Get || operation.is_managed;
        let (schema, aliases, sold_by) = (operation.input.clone(), operation.aliases, operation.sold_by);
        Ok(Self { validator, schema, parameters, aliases, known, sold_by, unwraps_texts })
    }

    /// Converts decoded pairs of a query and a path to arguments and validates them. Access parameters must have been removed.
    ///
    /// # Errors
    /// `parameter-invalid`, naming the parameter.
    pub fn strings<'a>(&self, pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Result<Value, Problem> {
        let pairs: Vec<_> = pairs.collect();
        self.check_sold(&pairs)?;
        let mut arguments = Map::new();
        for (given, text) in pairs {
            if counts_visitors(&given) && !self.has(&given) {
                continue;
            }
            let parameter = self.find_in_query(&given)?;
            let name = &parameter.name;
            if text.contains('\u{FFFD}') {
                return Err(Problem::parameter(&*given, format!("{given} is not UTF-8 after percent-decoding")));
            }
            let value = self.read_text(parameter, &given, text).map_err(outermost)?;
            if let Some(before) = arguments.get_mut(name.as_str()) {
                let (true, Value::Array(list), Value::Array(items)) = (parameter.list, before, value) else {
                    return Err(twice(&given, name));
                };
                list.extend(items);
            } else {
                arguments.insert(name.clone(), value);
            }
        }
        self.check(arguments, ErrorCode::ParameterInvalid).map_err(outermost)
    }

    /// Validates JSON arguments: a body, or the arguments of an MCP tool. Top-level nulls are treated as missing.
    ///
    /// # Errors
    /// The given code (`body-invalid` or `parameter-invalid`), with the path of the field.
    pub fn json(&self, given: Map<String, Value>, code: ErrorCode) -> Result<Value, Problem> {
        let mut arguments = Map::new();
        for (given, value) in given {
            if value.is_null() {
                continue;
            }
            let parameter = self.find(&given).map_err(|problem| Problem { code, ..problem })?;
            let value = self.reader().value(value, &parameter.schema, &given, parameter.is_required).map_err(|problem| {
                let code = if problem.code == ErrorCode::ParameterInvalid { code } else { problem.code };
                Problem { code, ..problem }
            })?;
            if arguments.insert(parameter.name.clone(), value).is_some() {
                return Err(Problem { code, ..twice(&given, &parameter.name) });
            }
        }
        self.check(arguments, code)
    }

    /// Validates the arguments of an MCP tool. Fields that hosts add to the arguments of every tool are ignored where the tool has no such field.
    ///
    /// # Errors
    /// `parameter-invalid`, with the path of the field.
    pub fn tool(&self, mut given: Map<String, Value>) -> Result<Value, Problem> {
        given.retain(|name, _| !HOST_FIELDS.contains(&name.as_str()) || self.has(name));
        self.json(given, ErrorCode::ParameterInvalid)
    }

    /// Adds the parameters of a path to the fields of a body and validates them together.
    ///
    /// # Errors
    /// `parameter-invalid` for parameters of the path, `body-invalid` for fields of the body, with their paths.
    pub fn body<'a>(
        &self,
        mut fields: Map<String, Value>,
        path: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<Value, Problem> {
        for (given, text) in path {
            let parameter = self.find(&given)?;
            if fields.insert(parameter.name.clone(), self.read_text(parameter, &given, text)?).is_some() {
                return Err(twice(&given, &parameter.name));
            }
        }
        self.json(fields, ErrorCode::BodyInvalid)
    }

    /// What a query names to be sold, as the schema spells it; `None` if it names nothing that is known. The other arguments may be invalid: the terms of the
    /// call are those of what it names.
    #[must_use]
    pub fn sold(&self, pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Option<&str> {
        let (given, known) = self.given_sold(pairs)?;
        find_known(given, known.into_iter())
    }

    /// The value of the argument that names what is sold, and the known values; `None` if the query has no such argument.
    fn given_sold<'a>(&self, pairs: &'a [(Cow<'_, str>, Cow<'_, str>)]) -> Option<(&'a str, Vec<&str>)> {
        let (_, given) = pairs.iter().find(|(name, _)| !self.sold_by.is_empty() && **name == *self.sold_by)?;
        let known = self.schema.pointer(&format!("/properties/{}/enum", self.sold_by))?.as_array()?;
        Some((&**given, known.iter().filter_map(Value::as_str).collect()))
    }

    /// Checks the argument that names what is sold before all others: a problem of another one is answered with payment terms.
    fn check_sold(&self, pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Result<(), Problem> {
        let Some((given, known)) = self.given_sold(pairs) else { return Ok(()) };
        if find_known(given, known.iter().copied()).is_some() {
            return Ok(());
        }
        let reason = unknown_value(&format!("\"{}\"", echo(given)), given, &known);
        Err(Problem::parameter(self.sold_by, format!("{}: {reason}", self.sold_by)))
    }

    /// Reads a text of a query or a path.
    fn read_text(&self, parameter: &Parameter, given: &str, text: Cow<'_, str>) -> Result<Value, Problem> {
        let text = with_plus(text);
        self.reader().value(Value::from(text), &parameter.schema, given, false)
    }

    fn reader(&self) -> Reader {
        Reader { unwraps_texts: self.unwraps_texts, converts_texts: true }
    }

    /// Whether the operation has a parameter of this name or alias.
    fn has(&self, given: &str) -> bool {
        self.find(given).is_ok()
    }

    /// Finds a parameter by name or alias, in camelCase or snake_case.
    fn find(&self, given: &str) -> Result<&Parameter, Problem> {
        let name = self.aliases.iter().find(|(alias, _)| *alias == given).map_or(given, |(_, name)| *name);
        let named = |name: &str| self.parameters.iter().find(|parameter| parameter.name == name);
        let other_spelling = || self.parameters.iter().find(|parameter| is_other_spelling(name, &parameter.name));
        named(name).or_else(other_spelling).ok_or_else(|| {
            let hint = hint(given, self.known.iter().map(String::as_str));
            Problem::parameter(echo(given), format!("unknown parameter \"{}\"{hint}", echo(given)))
        })
    }

    /// Finds the parameter of a query. Programs of some languages write a list as `form[]=…` or `form[0]=…`.
    fn find_in_query(&self, given: &str) -> Result<&Parameter, Problem> {
        self.find(given).or_else(|problem| {
            let named = list_name(given).and_then(|name| self.find(name).ok());
            named.filter(|parameter| parameter.list).ok_or(problem)
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
        explain(error, is_secret, &self.schema)
    }
}

/// The name before brackets that are empty or hold an index: `form` of `form[]` and `form[12]`.
fn list_name(given: &str) -> Option<&str> {
    let (name, index) = given.strip_suffix(']')?.split_once('[')?;
    index.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

/// Writes the plus of an offset again that form decoding replaced with a blank: `2026-01-31T12:00:00 00:00`. Between day and time there may be a blank, too.
fn with_plus(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_time = |text: &str| match text.as_bytes() {
        [year @ .., _, _, _, _, _, _, b'T' | b't' | b' '] if year.len() == 4 => year.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let begins_with_time = |text: &str| {
        let (day, time) = text.split_at_checked(11).unwrap_or(("", ""));
        is_time(day) && time.contains(':') && !time.contains(' ')
    };
    let is_offset = |text: &str| matches!(text.len(), 2 | 4 | 5) && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    match text.rsplit_once(' ') {
        Some((time, offset)) if begins_with_time(time) && is_offset(offset) => Cow::Owned(format!("{time}+{offset}")),
        _ => text,
    }
}

/// The problem of a parameter that is given twice, possibly by different names.
fn twice(given: &str, name: &str) -> Problem {
    let words =
        if given == name { format!("{name} is given twice") } else { format!("{given} and {name} are the same parameter, given twice") };
    Problem::parameter(name, words)
}

/// A problem of a query or a path names the parameter alone: the place of an item in it is none that the caller wrote.
fn outermost(mut problem: Problem) -> Problem {
    if let Some(end) = problem.parameter.find('.') {
        problem.parameter.truncate(end);
    }
    problem
}

/// Describes a validation error. `schema` is the one of all arguments.
fn explain(error: &jsonschema::ValidationError<'_>, is_secret: bool, schema: &Value) -> Problem {
    let at = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
    let path_of = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let value = if is_secret { "the value".to_owned() } else { error.instance().to_string() };
    let value = echo(&value);
    let words = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let path = path_of(property.as_str().unwrap_or_default());
            return Problem::parameter(path.as_str(), format!("{path} is missing"));
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let name = unexpected.first().map(String::as_str).unwrap_or_default();
            let place = if at.is_empty() { String::new() } else { format!(" in {at}") };
            // The path of the schema ends with the keyword; what is before it is the path of the object that has the fields.
            let object = error.schema_path().as_str().rsplit_once('/').and_then(|(object, _)| schema.pointer(object));
            let known = object.and_then(|object| object.get("properties")?.as_object());
            let hint = hint(name, known.into_iter().flatten().map(|(name, _)| name.as_str()));
            return Problem::parameter(path_of(&echo(name)), format!("unknown field \"{}\"{place}{hint}", echo(name)));
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
        ValidationErrorKind::Pattern { pattern } => format!("{value} {}", pattern_words(pattern, error.schema_path().as_str(), schema)),
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => format!("{value} is not of type {kind}"),
        other => format!("does not match the schema ({})", other.keyword()),
    };
    Problem::parameter(at.as_str(), format!("{at}: {words}"))
}

/// What is wrong with a text that does not match a pattern. `path` is that of the pattern in the schema of all arguments.
fn pattern_words(pattern: &str, path: &str, schema: &Value) -> String {
    let described = || {
        let (owner, _) = path.rsplit_once('/')?;
        schema.pointer(owner)?.get("description")?.as_str()
    };
    match pattern {
        "[0-9]" => "has no digit".to_owned(),
        "[A-Za-z0-9]" => "has no letter and no digit".to_owned(),
        _ => described().map_or_else(|| format!("does not match {pattern}"), |words| format!("does not have the described form: {words}")),
    }
}

/// A JSON string without quotes, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
