//! Datasets on Socrata, as far as clients of registers use them: `$select`, `$where` with comparisons, lists, AND and OR, `$order` and `$limit`. Texts in
//! conditions are quoted, numbers are not, and a column that does not exist is refused by its name.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::{Fault, Plan};
use simulated_world::query::Query;

const LIMIT_DEFAULT: usize = 1_000;
const LIMIT_MAX: usize = 50_000;

/// A dataset: its columns, those of numbers among them, and its rows.
pub(crate) struct Dataset {
    pub(crate) columns: &'static [&'static str],
    pub(crate) numbers: &'static [&'static str],
    pub(crate) rows: Vec<Value>,
}

/// Answers a query. `token` is the token that the request carries.
pub(crate) fn answer(mut dataset: Dataset, query: &Query, token: Option<&str>, plan: &Plan) -> Answer {
    if token.is_some_and(|token| token.trim().is_empty()) {
        return Answer {
            status: 403,
            ..Answer::json(br#"{"code":"permission_denied","error":true,"message":"Invalid app_token specified"}"#.to_vec())
        };
    }
    if plan.has(Fault::Accepted) {
        return Answer { status: 202, ..Answer::json(br#"{"code":"accepted","message":"Still processing"}"#.to_vec()) };
    }
    if plan.has(Fault::ErrorObject) {
        return Answer::json(br#"{"error":true,"message":"Internal error"}"#.to_vec());
    }
    if plan.has(Fault::Outage) {
        dataset.rows.clear();
    }
    let selected: Vec<&str> = query.get("$select").map_or_else(Vec::new, |text| text.split(',').collect());
    if let Some(unknown) = selected.iter().find(|name| !is_column(&dataset, name)) {
        return refused("query.soql.no-such-column", &format!("No such column: {unknown}"), unknown);
    }
    if let Some(text) = query.get("$where") {
        let mut parser = Parser { rest: text, dataset: &dataset };
        let condition = match parser.any() {
            Ok(condition) if parser.rest.trim().is_empty() => condition,
            Ok(_) => return refused("query.compiler.malformed", "Could not parse SoQL query", ""),
            Err(answer) => return *answer,
        };
        dataset.rows.retain(|row| condition.holds(row));
    }
    let order: Vec<&str> = query.get("$order").map_or_else(Vec::new, |text| text.split(',').collect());
    dataset.rows.sort_by(|one, other| {
        order.iter().map(|name| compare(value(one, name), value(other, name))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    let limit = query.get("$limit").and_then(|limit| limit.parse().ok()).unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX);
    dataset.rows.truncate(limit);
    let shown = dataset.rows.into_iter().map(|row| {
        let mut row = if selected.is_empty() { without_system_fields(row) } else { chosen(&row, &selected) };
        plan.schema.apply(&mut row);
        row
    });
    Answer::json(Value::Array(shown.collect()).to_string().into_bytes())
}

fn is_column(dataset: &Dataset, name: &str) -> bool {
    name.starts_with(':') || dataset.columns.contains(&name)
}

fn refused(code: &str, message: &str, column: &str) -> Answer {
    let body = json!({"message": message, "errorCode": code, "data": {"column": column}});
    Answer { status: 400, ..Answer::json(body.to_string().into_bytes()) }
}

fn chosen(row: &Value, selected: &[&str]) -> Value {
    let fields = selected.iter().filter_map(|name| Some(((*name).to_owned(), row.get(*name)?.clone())));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn without_system_fields(row: Value) -> Value {
    match row {
        Value::Object(fields) => Value::Object(fields.into_iter().filter(|(name, _)| !name.starts_with(':')).collect()),
        row => row,
    }
}

fn value<'a>(row: &'a Value, name: &str) -> &'a str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Compares two values: whole numbers by value, days by their days however they are written, other texts by their letters.
fn compare(one: &str, other: &str) -> Ordering {
    match (one.parse::<u64>(), other.parse::<u64>()) {
        (Ok(one), Ok(other)) => one.cmp(&other),
        _ => sortable(one).cmp(&sortable(other)),
    }
}

/// A day that is written as `11/18/2026` in the form of the others.
fn sortable(text: &str) -> String {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [month, day, year] if year.len() == 4 => format!("{year}-{month}-{day}T00:00:00.000"),
        _ => text.to_owned(),
    }
}

enum Condition {
    All(Vec<Self>),
    Any(Vec<Self>),
    Compare(String, String, String),
    In(String, Vec<String>),
}

impl Condition {
    fn holds(&self, row: &Value) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(row)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(row)),
            Self::In(column, values) => values.iter().any(|wanted| wanted == value(row, column)),
            Self::Compare(column, operator, wanted) => {
                let own = value(row, column);
                let order = compare(own, wanted);
                // A row without a value matches no comparison.
                !own.is_empty()
                    && match operator.as_str() {
                        ">=" => order.is_ge(),
                        ">" => order.is_gt(),
                        _ => order.is_eq(),
                    }
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    dataset: &'a Dataset,
}

type Parsed = Result<Condition, Box<Answer>>;

impl Parser<'_> {
    fn any(&mut self) -> Parsed {
        let mut parts = vec![self.all()?];
        while self.takes("OR ") {
            parts.push(self.all()?);
        }
        Ok(Condition::Any(parts))
    }

    fn all(&mut self) -> Parsed {
        let mut parts = vec![self.one()?];
        while self.takes("AND ") {
            parts.push(self.one()?);
        }
        Ok(Condition::All(parts))
    }

    fn one(&mut self) -> Parsed {
        if self.takes("(") {
            let inner = self.any()?;
            return if self.takes(")") { Ok(inner) } else { Err(self.malformed()) };
        }
        let end = self.rest.find([' ', '>', '=', '(']).unwrap_or(self.rest.len());
        let (column, rest) = self.rest.split_at(end);
        let column = column.to_owned();
        self.rest = rest.trim_start();
        if !is_column(self.dataset, &column) {
            return Err(Box::new(refused("query.soql.no-such-column", &format!("No such column: {column}"), &column)));
        }
        if self.takes("in(") {
            let mut values = vec![self.literal(&column)?];
            while self.takes(",") {
                values.push(self.literal(&column)?);
            }
            return if self.takes(")") { Ok(Condition::In(column, values)) } else { Err(self.malformed()) };
        }
        let Some(operator) = [">=", ">", "="].into_iter().find(|operator| self.takes(operator)) else { return Err(self.malformed()) };
        let wanted = self.literal(&column)?;
        Ok(Condition::Compare(column, operator.to_owned(), wanted))
    }

    /// A text in quotes, or a number without. A column of texts takes no number.
    fn literal(&mut self, column: &str) -> Result<String, Box<Answer>> {
        if let Some(rest) = self.rest.strip_prefix('\'') {
            let mut out = String::new();
            let mut letters = rest.char_indices().peekable();
            while let Some((at, letter)) = letters.next() {
                if letter != '\'' {
                    out.push(letter);
                } else if letters.next_if(|(_, next)| *next == '\'').is_some() {
                    out.push('\'');
                } else {
                    self.rest = rest[at + 1..].trim_start();
                    return Ok(out);
                }
            }
            return Err(self.malformed());
        }
        let end = self.rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.rest.len());
        if end == 0 || !self.dataset.numbers.contains(&column) {
            return Err(Box::new(refused("query.soql.type-mismatch", &format!("Type mismatch for op$=, is number ({column})"), "")));
        }
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        Ok(number.to_owned())
    }

    fn takes(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn malformed(&self) -> Box<Answer> {
        Box::new(refused("query.compiler.malformed", &format!("Could not parse SoQL query near {:?}", self.rest), ""))
    }
}
