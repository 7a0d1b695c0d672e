//! The canonical form of a record, from which its content hash is computed: each field that has a value, as its name and its values.
//!
//! The form follows from the type's `Serialize`. Each value is preceded by the byte FE and each field ends with FF; no UTF-8 text contains either
//! byte. Fields without a value are left out: an empty text, a list of empty texts, `None`, `false`, and a plain 0 (`Some(0)` is a value). Adding a
//! field to a type therefore changes no hash until the field has a value. A list of structs is a list of their fields' values.

use std::fmt;

use serde::ser::{self, Impossible, Serialize, SerializeSeq, SerializeStruct, Serializer};

/// The kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Flag,
    List,
}

/// The order of the fields in the canonical form. It is part of the form, so the order of a type never changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// As declared.
    Declared,
    /// By kind, and fields of one kind as declared.
    ByKind([Kind; 4]),
}

/// Returns the canonical form of a struct. `excluded` are the names of fields that are not hashed.
pub(crate) fn canonical<T: Serialize>(record: &T, order: Order, excluded: &[&str]) -> Vec<u8> {
    let mut form = Form { order, excluded, groups: Default::default() };
    let result = record.serialize(&mut form);
    debug_assert!(result.is_ok(), "a hashed type consists of texts, whole numbers, flags, and lists of texts or of structs: {result:?}");
    form.groups.concat()
}

/// A canonical form that is being built.
struct Form<'a> {
    order: Order,
    excluded: &'a [&'a str],
    /// The fields of each kind in their order; all fields in the first if the order is [`Order::Declared`].
    groups: [Vec<u8>; 4],
}

impl Form<'_> {
    fn add<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        if self.excluded.contains(&name) {
            return Ok(());
        }
        let mut field = Field { values: Vec::new(), kind: Kind::Text, has_value: false, is_some: false };
        value.serialize(&mut field)?;
        let group = match self.order {
            Order::Declared => 0,
            Order::ByKind(kinds) => kinds.iter().position(|kind| *kind == field.kind).unwrap_or(0),
        };
        if field.has_value {
            let out = &mut self.groups[group];
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&field.values);
            out.push(0xff);
        }
        Ok(())
    }
}

/// The values of one field.
struct Field {
    /// The values, each after the byte FE.
    values: Vec<u8>,
    kind: Kind,
    has_value: bool,
    /// Whether the value is in a `Some`, so that 0 is a value.
    is_some: bool,
}

impl Field {
    fn push(&mut self, value: &str) {
        self.has_value |= !value.is_empty();
        self.values.push(0xfe);
        self.values.extend_from_slice(value.as_bytes());
    }

    fn push_scalar(&mut self, value: &str, kind: Kind) {
        // The kind of a list is that of the whole field.
        if self.kind != Kind::List {
            self.kind = kind;
        }
        self.push(value);
    }

    fn push_number(&mut self, number: i128) -> Result<(), Error> {
        let text = if number == 0 && !self.is_some { String::new() } else { number.to_string() };
        self.push_scalar(&text, Kind::Number);
        Ok(())
    }
}

/// A type that has no canonical form.
#[derive(Debug)]
struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Implements the methods of a [`Serializer`] for types that have no canonical form.
macro_rules! unsupported {
    ($($method:ident($($type:ty),*) -> $ok:ty;)*) => {
        $(fn $method(self, $(_: $type),*) -> Result<$ok, Error> {
            Err(Error(concat!(stringify!($method), " has no canonical form").to_owned()))
        })*
    };
}

/// Implements the methods that neither of the two serializers supports, and their associated types.
macro_rules! unsupported_by_both {
    () => {
        type SerializeTuple = Impossible<(), Error>;
        type SerializeTupleStruct = Impossible<(), Error>;
        type SerializeTupleVariant = Impossible<(), Error>;
        type SerializeMap = Impossible<(), Error>;
        type SerializeStructVariant = Impossible<(), Error>;

        unsupported! {
            serialize_f32(f32) -> ();
            serialize_f64(f64) -> ();
            serialize_char(char) -> ();
            serialize_bytes(&[u8]) -> ();
            serialize_unit() -> ();
            serialize_unit_struct(&'static str) -> ();
            serialize_tuple(usize) -> Self::SerializeTuple;
            serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
            serialize_map(Option<usize>) -> Self::SerializeMap;
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(self, _: &'static str, _: u32, _: &'static str, _: &T) -> Result<(), Error> {
            Err(Error("an enum with values has no canonical form".to_owned()))
        }
    };
}

impl Serializer for &mut Form<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeStruct = Self;

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    unsupported! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_str(&str) -> ();
        serialize_none() -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
    }
    unsupported_by_both!();
}

impl SerializeStruct for &mut Form<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.add(name, value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

impl Serializer for &mut Field {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeStruct = Self;

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.push_scalar(value, Kind::Text);
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.push_scalar(if value { "true" } else { "" }, Kind::Flag);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.push_number(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.push_number(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.push_number(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.push_number(value.into())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.push_number(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.push_number(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.push_number(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.push_number(value.into())
    }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.is_some = true;
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        self.kind = Kind::List;
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    unsupported_by_both!();
}

impl SerializeSeq for &mut Field {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

impl SerializeStruct for &mut Field {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Clone, Default, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Example {
        first_text: String,
        plain: i64,
        known: Option<i64>,
        list: Vec<String>,
        flag: bool,
        structs: Vec<Item>,
        last_text: String,
    }

    #[derive(Clone, Default, Serialize)]
    struct Item {
        name: String,
        is_new: bool,
    }

    fn example() -> Example {
        Example {
            first_text: "a".to_owned(),
            plain: -7,
            known: Some(0),
            list: vec![String::new(), "b".to_owned()],
            flag: true,
            structs: vec![Item { name: "c".to_owned(), is_new: false }, Item { name: String::new(), is_new: true }],
            last_text: "d".to_owned(),
        }
    }

    /// Proves the bytes of every kind of field in the declared order, and that fields without a value are left out.
    #[test]
    fn fields_are_names_and_values() {
        let expected: &[&[u8]] = &[
            b"firstText\xfea\xff",
            b"plain\xfe-7\xff",
            b"known\xfe0\xff",
            b"list\xfe\xfeb\xff",
            b"flag\xfetrue\xff",
            b"structs\xfec\xfe\xfe\xfetrue\xff",
            b"lastText\xfed\xff",
        ];
        assert_eq!(canonical(&example(), Order::Declared, &[]), expected.concat());
        let empty = Example { list: vec![String::new()], structs: vec![Item::default()], ..Example::default() };
        assert_eq!(canonical(&empty, Order::Declared, &[]), b"");
    }

    /// Proves the order by kind, and that excluded fields are not hashed.
    #[test]
    fn fields_are_ordered_by_kind() {
        let order = Order::ByKind([Kind::Text, Kind::Flag, Kind::List, Kind::Number]);
        let expected: &[&[u8]] = &[
            b"firstText\xfea\xff",
            b"lastText\xfed\xff",
            b"flag\xfetrue\xff",
            b"list\xfe\xfeb\xff",
            b"structs\xfec\xfe\xfe\xfetrue\xff",
            b"known\xfe0\xff",
        ];
        assert_eq!(canonical(&example(), order, &["plain"]), expected.concat());
    }
}
