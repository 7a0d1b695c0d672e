//! CSV as in RFC 4180, with a header line.

use std::borrow::Cow;

use serde_json::Value;

use crate::{Column, Error, Kind, RowWriter, Sink};

pub(crate) struct Csv<'a> {
    columns: Vec<Column>,
    sink: Sink<'a>,
    has_header: bool,
}

impl<'a> Csv<'a> {
    pub(crate) fn new(columns: Vec<Column>, sink: Sink<'a>) -> Self {
        Self { columns, sink, has_header: false }
    }

    /// Writes the header line, once.
    fn header(&mut self) -> Vec<u8> {
        let mut line = Vec::with_capacity(1_024);
        if !std::mem::replace(&mut self.has_header, true) {
            let mut names = Vec::new();
            self.columns.iter().for_each(|column| add_names("", column, &mut names));
            line.extend_from_slice(names.join(",").as_bytes());
            line.extend_from_slice(b"\r\n");
        }
        line
    }
}

impl RowWriter for Csv<'_> {
    fn row(&mut self, row: Vec<Value>) -> Result<bool, Error> {
        let mut line = self.header();
        let mut is_first = true;
        for (column, value) in self.columns.iter().zip(&row) {
            add_fields(&column.kind, value, &mut is_first, &mut line);
        }
        line.extend_from_slice(b"\r\n");
        Ok((self.sink)(&line))
    }

    fn finish(&mut self) -> Result<(), Error> {
        let header = self.header();
        if !header.is_empty() {
            (self.sink)(&header);
        }
        Ok(())
    }
}

/// Adds the names of a column: `owner.name` for the fields of a structure.
fn add_names(before: &str, column: &Column, names: &mut Vec<String>) {
    let name = format!("{before}{}", column.name);
    match &column.kind {
        Kind::Struct(fields) => fields.iter().for_each(|field| add_names(&format!("{name}."), field, names)),
        _ => names.push(name),
    }
}

/// Adds the fields of a value, one for each name of its column.
fn add_fields(kind: &Kind, value: &Value, is_first: &mut bool, line: &mut Vec<u8>) {
    if let Kind::Struct(fields) = kind {
        fields.iter().for_each(|field| add_fields(&field.kind, value.get(&field.name).unwrap_or(&Value::Null), is_first, line));
        return;
    }
    if !std::mem::take(is_first) {
        line.push(b',');
    }
    add_field(value, line);
}

/// The signs of formulas. Spreadsheets for East Asian languages read their full-width forms, too.
const FORMULA_SIGNS: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Whether a spreadsheet would evaluate a text as a formula: it begins with a sign of formulas, also after blanks or characters that are not seen.
fn is_formula(text: &str) -> bool {
    text.starts_with(['\t', '\r', '\n']) || text.trim_start_matches(is_unseen).starts_with(FORMULA_SIGNS)
}

/// Whether a character is a blank, a control character, or of no width.
fn is_unseen(character: char) -> bool {
    character.is_whitespace() || character.is_control() || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// Adds one field of CSV to a line, without the comma before it: a value of a column, quoted where necessary. Texts that a spreadsheet would evaluate as a
/// formula get a leading apostrophe; numbers do not.
pub fn add_field(value: &Value, line: &mut Vec<u8>) {
    let text: Cow<'_, str> = match value {
        Value::String(text) if is_formula(text) => format!("'{text}").into(),
        Value::String(text) => text.into(),
        Value::Null => return,
        other => other.to_string().into(),
    };
    if text.contains([',', '"', '\r', '\n']) {
        line.push(b'"');
        line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        line.push(b'"');
    } else {
        line.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Format, writer};

    fn csv(columns: Vec<Column>, rows: &[Vec<Value>]) -> String {
        let mut bytes = Vec::new();
        let mut sink = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            true
        };
        let mut writer = writer(Format::Csv, columns, &mut sink).unwrap();
        for row in rows {
            assert!(writer.row(row.clone()).unwrap());
        }
        writer.finish().unwrap();
        drop(writer);
        String::from_utf8(bytes).unwrap()
    }

    /// Proves that fields of structures are columns, that texts are quoted where necessary and are no formulas, and that an empty table has its header.
    #[test]
    fn rows_and_header() {
        let place = Kind::Struct(vec![Column::new("city", Kind::Text), Column::new("zip", Kind::Int)]);
        let columns = || {
            vec![
                Column::new("name", Kind::Text),
                Column::new("place", place.clone()),
                Column::new("tags", Kind::List(Box::new(Kind::Text))),
            ]
        };
        let rows =
            [vec![json!("a \"b\", c"), json!({"city": "=1+1", "zip": 5}), json!(["x", "y"])], vec![json!(""), Value::Null, json!([])]];
        let header = "name,place.city,place.zip,tags\r\n";
        assert_eq!(csv(columns(), &rows), format!("{header}\"a \"\"b\"\", c\",'=1+1,5,\"[\"\"x\"\",\"\"y\"\"]\"\r\n,,,[]\r\n"));
        assert_eq!(csv(columns(), &[]), header);
    }

    /// Proves that no text begins as a formula, also after blanks or characters that are not seen, that other texts and numbers stay as they
    /// are, and that quotation marks and line ends are quoted.
    #[test]
    fn formulas_and_quotes() {
        for (value, expected) in [
            (json!("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\""),
            (json!("  =1"), "'  =1"),
            (json!("\u{a0}+1"), "'\u{a0}+1"),
            (json!("\n@SUM"), "\"'\n@SUM\""),
            (json!("\tx"), "'\tx"),
            (json!("\rx"), "\"'\rx\""),
            (json!("\nx"), "\"'\nx\""),
            (json!("-"), "'-"),
            (json!("\u{ff1d}1+1"), "'\u{ff1d}1+1"),
            (json!("\u{feff}=1"), "'\u{feff}=1"),
            (json!("\u{200b}\0@x"), "'\u{200b}\0@x"),
            (json!("a=1"), "a=1"),
            (json!("PA-28"), "PA-28"),
            (json!(-5), "-5"),
            (json!(-0.5), "-0.5"),
            (json!(true), "true"),
            (json!("a\r\nb"), "\"a\r\nb\""),
            (json!("\"\""), "\"\"\"\"\"\""),
        ] {
            assert_eq!(csv(vec![Column::new("x", Kind::Text)], &[vec![value.clone()]]), format!("x\r\n{expected}\r\n"), "{value}");
        }
    }
}
