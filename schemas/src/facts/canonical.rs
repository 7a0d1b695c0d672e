//! The canonical form of a record, which is hashed: each non-empty field, as its name and its values. Each value is preceded by the byte FE
//! and each field ends with FF; no UTF-8 text contains either byte. A new optional field thus changes no hash until it has a value.

/// A canonical form that is built field by field. The order of the calls is part of the form.
#[derive(Debug, Default)]
pub(crate) struct Canonical(Vec<u8>);

impl Canonical {
    /// Adds a text; an empty one is left out.
    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.list(name, [value])
    }

    /// Adds a number; an unknown one is left out.
    pub(crate) fn number(&mut self, name: &str, value: Option<i64>) -> &mut Self {
        self.text(name, &value.map(|value| value.to_string()).unwrap_or_default())
    }

    /// Adds a flag; an unset one is left out.
    pub(crate) fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.text(name, if value { "true" } else { "" })
    }

    /// Adds a list of texts; one with only empty texts is left out.
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

    /// Returns the bytes of the canonical form.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}
