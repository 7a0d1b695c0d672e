//! The canonical form of a record, which is hashed: each field that holds something, as its name and its values, each value begun by
//! the byte FE and the field ended by FF, which no text has. A new optional field thus changes no hash until it holds something.

/// A record's canonical form while it is written; fields in a fixed order.
#[derive(Debug, Default)]
pub(crate) struct Canonical(Vec<u8>);

impl Canonical {
    /// A text; `""` is left out.
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.field(name, [value]);
        }
        self
    }

    /// A list of texts; one in which nothing is said is left out.
    pub(crate) fn list<'a>(mut self, name: &str, values: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        if values.clone().into_iter().any(|value| !value.is_empty()) {
            self.field(name, values);
        }
        self
    }

    /// A flag; one that is not set is left out.
    pub(crate) fn flag(self, name: &str, value: bool) -> Self {
        self.text(name, if value { "true" } else { "" })
    }

    /// The bytes.
    pub(crate) fn bytes(self) -> Vec<u8> {
        self.0
    }

    fn field<'a>(&mut self, name: &str, values: impl IntoIterator<Item = &'a str>) {
        self.0.extend_from_slice(name.as_bytes());
        for value in values {
            self.0.push(0xfe);
            self.0.extend_from_slice(value.as_bytes());
        }
        self.0.push(0xff);
    }
}
