//! Types for the JSON Schemas of text fields: `#[schemars(with = "json_type::Day")]` on a field says which form its text has.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A type that exists only for its schema, which is always written in place.
macro_rules! json_type {
    ($(#[$about:meta])* $name:ident, $schema:tt) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

json_type! {
    /// A date, `2026-11-19`.
    Day, { "type": "string", "format": "date" }
}

json_type! {
    /// A date, or an empty text if it is unknown.
    DayOrEmpty, { "anyOf": [{ "type": "string", "format": "date" }, { "type": "string", "const": "" }] }
}

json_type! {
    /// A point in time, RFC 3339 in UTC.
    Time, { "type": "string", "format": "date-time" }
}

json_type! {
    /// A point in time, or an empty text if there is none.
    TimeOrEmpty, { "anyOf": [{ "type": "string", "format": "date-time" }, { "type": "string", "const": "" }] }
}
