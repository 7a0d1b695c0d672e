//! The canonical form of a record, which is hashed: each field that holds something, as its name and its values, each value begun by
//! the byte FE and the field ended by FF, which no text has. A new optional field thus changes no hash until it holds something.

/// A canonical form that grows field by field. The order of the calls is part of the form.
#[derive(Debug, Default)]
pub(crate) struct Canonical(Vec<u8>);

impl Canonical {
    /// A text; `""` is left out.
    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.list(name, [value])
    }

    /// A number; one that is not known is left out.
    pub(crate) fn number(&mut self, name: &str, value: Option<i64>) -> &mut Self {
        self.text(name, &value.map(|value| value.to_string()).unwrap_or_default())
    }

    /// A flag; one that is not set is left out.
    pub(crate) fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.text(name, if value { "true" } else { "" })
    }

    /// A list of texts; one in which nothing is said is left out.
    pub(crate) fn list(&mut self, name: &str, values: impl IntoIterator<Item = impl AsRef<str>> + Clone) -> &mut Self {
        if values.clone().into_iter().any(|value| !value.as_ref().is_empty()) {
            self.0.extend_from_slice(name.as_bytes());
            for value in values {
                self.0.push(0xfe);
                self.0.extend_from_slice(value.as_ref().as_bytes());
            }
            self.0.push(0xff);
        }
        self
    }

    /// The bytes.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}
