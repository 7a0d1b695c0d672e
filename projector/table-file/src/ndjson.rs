//! One JSON object per line, its fields in the order of the columns.

use serde_json::Value;

use crate::{Column, Error, RowWriter, Sink};

pub(crate) struct Ndjson<'a> {
    /// What precedes the value of each column: a brace or a comma, and the name.
    names: Vec<String>,
    sink: Sink<'a>,
}

impl<'a> Ndjson<'a> {
    pub(crate) fn new(columns: Vec<Column>, sink: Sink<'a>) -> Self {
        let name = |(i, column): (usize, Column)| format!("{}{}:", if i == 0 { '{' } else { ',' }, Value::from(column.name));
        Self { names: columns.into_iter().enumerate().map(name).collect(), sink }
    }
}

impl RowWriter for Ndjson<'_> {
    fn row(&mut self, row: Vec<Value>) -> Result<bool, Error> {
        let mut line = String::with_capacity(1_024);
        for (name, value) in self.names.iter().zip(row) {
            line += name;
            line += &value.to_string();
        }
        line += "}\n";
        Ok((self.sink)(line.as_bytes()))
    }
}
