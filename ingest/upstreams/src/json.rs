//! Parsing of JSON whose types are not reliable. Records are located first and then parsed one at a time into borrowed fields, so a bad
//! record affects no other record, and its bytes can be rejected separately.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use texts::numbers::has_only_digits;

use schemas::position::UpstreamCursor;

use crate::drift::{Expected, Tally};
use crate::stored_fields::{Redacted, StoredFields};
use crate::{Reject, Request, UpstreamError, text};

/// The version of the cursor format. A cursor of another version is refused.
const CURSOR_VERSION: u8 = 1;

/// Media types under which JSON is sent. Some servers use no better ones; content that is not JSON is detected when it is parsed.
pub(crate) const MEDIA_TYPES: &[&str] = &["application/json", "text/json", "text/plain", "application/octet-stream"];

/// Builds the request of a JSON document.
pub(crate) fn request(origin: &str, path: impl Into<String>) -> Request {
    Request {
        origin: origin.to_owned(),
        path: path.into(),
        headers: vec![("accept", "application/json".to_owned())],
        media_types: MEDIA_TYPES,
        ..Request::default()
    }
}

/// Builds the error of an answer that may be right when it is requested again.
pub(crate) fn later(stream: &'static str, reason: impl Into<String>) -> UpstreamError {
    UpstreamError::Later { stream, reason: reason.into() }
}

#[derive(Serialize, Deserialize)]
struct Versioned<C> {
    v: u8,
    #[serde(flatten)]
    cursor: C,
}

/// Encodes a cursor. Cursors are plain structs, so they always have a JSON form.
pub(crate) fn write_cursor<C: Serialize>(cursor: C) -> UpstreamCursor {
    UpstreamCursor(serde_json::to_string(&Versioned { v: CURSOR_VERSION, cursor }).unwrap_or_default())
}

/// Decodes a cursor.
pub(crate) fn read_cursor<C: DeserializeOwned>(stream: &'static str, cursor: &UpstreamCursor) -> Result<C, UpstreamError> {
    let stop = |reason: String| UpstreamError::Stop { stream, field: "cursor".to_owned(), reason };
    let read: Versioned<C> = serde_json::from_str(&cursor.0).map_err(|error| stop(format!("not readable: {error}")))?;
    if read.v != CURSOR_VERSION {
        return Err(stop(format!("version {} instead of {CURSOR_VERSION}", read.v)));
    }
    Ok(read.cursor)
}

/// Decodes a body as UTF-8. Drops a byte order mark, and reads invalid bytes as Windows-1252, with a warning.
pub(crate) fn body_text<'a>(body: &'a [u8], warnings: &mut Vec<String>) -> Cow<'a, str> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = text::decode(body);
    if matches!(text, Cow::Owned(_)) {
        warnings.push("the answer is not all UTF-8; what is not was read as Windows-1252".to_owned());
    }
    text
}

/// Explains why a text is not the expected JSON.
pub(crate) fn not_json(stream: &'static str, text: &str, error: &serde_json::Error) -> UpstreamError {
    let start = text.trim_start();
    if start.starts_with('<') {
        later(stream, "HTML or XML instead of JSON")
    } else if start.is_empty() {
        later(stream, "an empty answer instead of JSON")
    } else {
        later(stream, format!("the JSON does not have the expected form: {error}"))
    }
}

/// A JSON value of any type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Field<'a> {
    #[default]
    Absent,
    Null,
    Text(Cow<'a, str>),
    Number(String),
    Bool(bool),
    List(Vec<Field<'a>>),
    Object,
}

impl Field<'_> {
    /// Returns the value as text: a number or boolean is formatted, of a list the first item is used.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number,
            Self::Bool(true) => "True",
            Self::Bool(false) => "False",
            Self::List(list) => list.first().map_or("", Field::text),
            Self::Absent | Self::Null | Self::Object => "",
        }
    }

    /// Returns the value as cleaned text.
    pub(crate) fn clean(&self) -> String {
        text::clean(self.text())
    }

    /// Returns the non-empty cleaned texts of a list or of a single value.
    pub(crate) fn list(&self) -> Vec<String> {
        let mut texts = match self {
            Self::List(list) => list.iter().map(Field::clean).collect(),
            one => vec![one.clean()],
        };
        texts.retain(|text| !text.is_empty());
        texts
    }

    /// Returns the value as a boolean, in any common spelling.
    pub(crate) fn flag(&self) -> bool {
        let text = self.text().trim();
        ["true", "yes", "y", "1"].iter().any(|yes| yes.eq_ignore_ascii_case(text))
    }

    /// Returns the value as a whole number, in any common spelling; a fraction is rounded.
    pub(crate) fn integer(&self) -> Option<i64> {
        let text = self.text().trim();
        let rounded = || text.parse::<f64>().ok().map(f64::round).filter(|number| number.abs() < 9e15);
        text.parse().ok().or_else(|| rounded().map(|number| number as i64))
    }

    /// Whether the field is present and null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Whether the value is one that the mapping reads, and not empty.
    pub(crate) fn is_filled(&self) -> bool {
        match self {
            Self::Text(text) => !text.trim().is_empty(),
            Self::List(list) => list.iter().any(Self::is_filled),
            Self::Number(_) | Self::Bool(_) => true,
            Self::Absent | Self::Null | Self::Object => false,
        }
    }

    pub(crate) fn is_text_or_list(&self) -> bool {
        matches!(self, Self::Text(_) | Self::List(_))
    }

    pub(crate) fn is_integer(&self) -> bool {
        match self {
            Self::Number(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Text(text) => has_only_digits(text.trim()),
            _ => false,
        }
    }
}

struct FieldVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for FieldVisitor<'a> {
    type Value = Field<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Field<'a>, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Field<'a>, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Field<'a>, E> {
        Ok(Field::Number(number.to_string()))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Field<'a>, E> {
        Ok(Field::Number(number.to_string()))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Field<'a>, E> {
        // A number without a fraction is formatted without one: 10854.0 names the same record as 10854.
        Ok(Field::Number(number.to_string()))
    }
    fn visit_bool<E>(self, flag: bool) -> Result<Field<'a>, E> {
        Ok(Field::Bool(flag))
    }
    fn visit_unit<E>(self) -> Result<Field<'a>, E> {
        Ok(Field::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Field<'a>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Field::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field<'a>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Object)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor(PhantomData))
    }
}

/// An object of type `T`. Null and empty values (`[]`, `""`) become `None`; any other value is an error, so that a part that cannot be read
/// never looks like an empty one.
#[derive(Clone, Debug)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|value| Object(Some(value)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Object<T>, A::Error> {
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(Object(None)),
            Some(_) => Err(serde::de::Error::invalid_type(Unexpected::Seq, &self)),
        }
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Object<T>, E> {
        if text.trim().is_empty() { Ok(Object(None)) } else { Err(E::invalid_type(Unexpected::Str(text), &self)) }
    }
    fn visit_unit<E>(self) -> Result<Object<T>, E> {
        Ok(Object(None))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

/// A value that is parsed only when it is needed, as the type that is needed. Whoever parses it passes the place of the first problem, and
/// rejects the record if there is one: a part that cannot be read is not an empty part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part<'a>(Option<&'a RawValue>);

impl<'a> Part<'a> {
    fn json(self) -> &'a str {
        self.0.map_or("", RawValue::get)
    }

    pub(crate) fn is_null(self) -> bool {
        self.json() == "null"
    }

    pub(crate) fn is_object(self) -> bool {
        self.json().starts_with('{')
    }

    pub(crate) fn is_list(self) -> bool {
        self.json().starts_with('[')
    }

    /// Whether there is a value that is not null and not empty.
    pub(crate) fn is_filled(self) -> bool {
        !matches!(self.json(), "" | "null" | "[]" | "{}" | "\"\"")
    }

    /// Parses the value as an object; an absent or empty value gives the default. A value that cannot be read gives the default and is
    /// described in `problem`, unless a problem is there already.
    pub(crate) fn object<T: Deserialize<'a> + Default>(self, name: &str, problem: &mut Option<String>) -> T {
        if self.0.is_none() {
            return T::default();
        }
        match serde_json::from_str::<Object<T>>(self.json()) {
            Ok(Object(object)) => object.unwrap_or_default(),
            Err(error) => {
                problem.get_or_insert_with(|| format!("{name} is not readable: {error}"));
                T::default()
            }
        }
    }

    /// Parses the value as a list of objects; an absent value or null is an empty list. A list or an item that cannot be read is left out and
    /// described in `problem`, unless a problem is there already.
    pub(crate) fn list<T: Deserialize<'a>>(self, name: &str, problem: &mut Option<String>) -> Vec<T> {
        if self.0.is_none() {
            return Vec::new();
        }
        let mut note = |error: serde_json::Error| {
            problem.get_or_insert_with(|| format!("{name} is not readable: {error}"));
        };
        let raw = serde_json::from_str::<Option<Vec<&'a RawValue>>>(self.json()).map_err(&mut note);
        let items = raw.ok().flatten().unwrap_or_default().into_iter().map(|one| serde_json::from_str::<Object<T>>(one.get()));
        items.filter_map(|item| item.map_err(&mut note).ok()?.0).collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(|raw| Self(Some(raw)))
    }
}

/// The records of an answer, located but parsed only when they are mapped. Parsing a whole document at once takes several times its size in
/// memory, and one bad record would make all others unreadable.
pub(crate) struct Records<'a> {
    raw: Vec<&'a RawValue>,
    /// The message of a single object that was sent instead of an array.
    lone: Option<&'a str>,
    /// The fields of rejected records that are stored; `None` for all.
    stored: Option<StoredFields>,
}

impl<'a> Records<'a> {
    /// Wraps the records of a list.
    pub(crate) fn of_list(raw: Vec<&'a RawValue>) -> Self {
        Self { raw, lone: None, stored: None }
    }

    /// Limits which fields of rejected records are stored.
    pub(crate) fn storing(self, fields: StoredFields) -> Self {
        Self { stored: Some(fields), ..self }
    }

    /// Wraps a document that is a single record.
    pub(crate) fn of_one(stream: &'static str, text: &'a str) -> Result<Self, UpstreamError> {
        let one = serde_json::from_str(text).map_err(|error| not_json(stream, text, &error))?;
        Ok(Self::of_list(vec![one]))
    }

    /// Locates the records of a bare array. A single object counts as an array of one.
    pub(crate) fn of_array(stream: &'static str, text: &'a str) -> Result<Self, UpstreamError> {
        let lone = text.trim_start().starts_with('{').then_some(text);
        let raw = if lone.is_some() { serde_json::from_str(text).map(|one| vec![one]) } else { serde_json::from_str(text) };
        Ok(Self { raw: raw.map_err(|error| not_json(stream, text, &error))?, lone, stored: None })
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }

    /// Parses and maps each record; a record that cannot be parsed or mapped is rejected. `map` returns the name of the record and the
    /// reason.
    ///
    /// # Errors
    /// When the format has changed: more than half of the records lack an expected field. Also when a single object instead of an array
    /// gave no record, because servers report faults in this way.
    pub(crate) fn map<T: Deserialize<'a>, O>(
        &self,
        stream: &'static str,
        expected: &[Expected<T>],
        mut map: impl FnMut(&T) -> Result<O, (String, String)>,
    ) -> Result<(Vec<O>, Vec<Reject>), UpstreamError> {
        let (mut mapped, mut rejects) = (Vec::with_capacity(self.raw.len()), Vec::new());
        let mut tally = Tally::new(expected);
        for (index, raw) in self.raw.iter().enumerate() {
            let read = match serde_json::from_str::<Object<T>>(raw.get()) {
                Ok(Object(Some(record))) => Ok(record),
                Err(error) if raw.get().starts_with('{') => Err(format!("the record is not readable: {error}")),
                _ => Err("the record is not an object".to_owned()),
            };
            tally.take(read.as_ref().ok());
            match read.map_err(|reason| (format!("record {index}"), reason)).and_then(|record| map(&record)) {
                Ok(observation) => mapped.push(observation),
                Err((reference, reason)) => rejects.push(self.reject(reference, reason, raw.get())),
            }
        }
        tally.check(stream)?;
        match self.lone.filter(|_| mapped.is_empty()) {
            Some(_) if self.stored.is_some() => Err(later(stream, "an object instead of an array")),
            Some(text) => Err(later(stream, format!("an object instead of an array: {}", text::cut(text::clean(text), 200)))),
            None => Ok((mapped, rejects)),
        }
    }

    /// A rejected record, with the fields that are stored.
    fn reject(&self, reference: String, reason: String, record: &str) -> Reject {
        let Some(fields) = self.stored else { return Reject { reference, reason, raw: record.as_bytes().to_vec() } };
        let Redacted { raw, removed } = fields.redact(record);
        let reason = removed.map_or_else(|| reason.clone(), |removed| format!("{reason}; not stored: {removed}"));
        Reject { reference, reason, raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    struct One<'a> {
        #[serde(borrow, default)]
        a: Field<'a>,
    }

    /// Proves that a bad record (a duplicate key, not an object) affects no other record, and that its bytes are preserved.
    #[test]
    fn one_bad_record_spoils_no_other() {
        for text in
            [r#"[{"a":"1"}, 7, {"a":2}]"#, r#"[{"a":"1"}, {"a":1,"a":2}, {"a":2.0}]"#, r#"[{"a":"1"}, {"a":"\ud800"}, {"a":["2"]}]"#]
        {
            let records = Records::of_array("d", text).unwrap();
            let (mapped, rejects) = records.map("d", &[], |one: &One<'_>| Ok(one.a.text().to_owned())).unwrap();
            assert_eq!(mapped, ["1", "2"], "{text}");
            assert_eq!(rejects.len(), 1);
            assert_eq!(rejects[0].reference, "record 1");
            assert!(text.contains(std::str::from_utf8(&rejects[0].raw).unwrap()) && !rejects[0].raw.is_empty());
        }
    }

    /// Proves that a rejected record of a stream with personal fields is stored without them, and that its reason names them; also a record that cannot be
    /// parsed. No text of a record is in an error.
    #[test]
    fn rejected_records_are_stored_without_personal_fields() {
        const FIELDS: StoredFields = StoredFields { requested: &["a", "street"], personal: &["street"] };
        let text = r#"[{"a":"1","street":"5 HOME LN"},{"a":"2","a":"2","street":"5 HOME LN"},{"a":"3"},"5 HOME LN"]"#;
        let records = Records::of_array("d", text).unwrap().storing(FIELDS);
        let refused = |one: &One<'_>| Err::<(), _>((one.a.text().to_owned(), "refused".to_owned()));
        let (_, rejects) = records.map("d", &[], refused).unwrap();
        let stored: Vec<String> = rejects.iter().map(|reject| String::from_utf8_lossy(&reject.raw).into_owned()).collect();
        assert_eq!(stored, [r#"{"a":"1"}"#, r#"{"a":"2","a":"2"}"#, r#"{"a":"3"}"#, r#"{"bytes":11}"#]);
        let reasons: Vec<&str> = rejects.iter().map(|reject| reject.reason.as_str()).collect();
        assert_eq!((reasons[0], reasons[2]), ("refused; not stored: street", "refused"));
        assert!(reasons[1].ends_with("; not stored: street") && reasons[3].ends_with("; not stored: all of it"), "{reasons:?}");
        assert!(rejects.iter().all(|reject| !format!("{reject:?}").contains("HOME")));
        let lone = Records::of_array("d", r#"{"street":"5 HOME LN"}"#).unwrap().storing(FIELDS).map("d", &[], refused).unwrap_err();
        assert_eq!(lone.to_string(), "d: an object instead of an array");
    }

    /// Proves that a part parses as its own type, that an absent or empty part is no problem, and that a part or an item that cannot be read
    /// is one: text of another encoding, a doubled key, another type.
    #[test]
    fn parts_are_parsed_as_requested() {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Whole<'a> {
            #[serde(borrow)]
            p: Part<'a>,
        }
        let read = |text: &'static str| serde_json::from_str::<Whole<'_>>(text).unwrap().p;
        assert!(read("{}").0.is_none() && !read("{}").is_null() && read(r#"{"p":null}"#).is_null());
        assert!(read(r#"{"p": {"a":1}}"#).is_object() && read(r#"{"p": [1]}"#).is_list());
        let mut problem = None;
        let list: Vec<One<'_>> = read(r#"{"p":[{"a":"1"}, null, {"a":"2"}]}"#).list("p", &mut problem);
        assert_eq!(list.iter().map(|one| one.a.text()).collect::<Vec<_>>(), ["1", "2"]);
        for empty in ["{}", r#"{"p":null}"#, r#"{"p":[]}"#] {
            assert!(
                read(empty).list::<One<'_>>("p", &mut problem).is_empty()
                    && read(empty).object::<Whole<'_>>("p", &mut problem).p.0.is_none()
            );
        }
        assert_eq!(problem, None);
        for bad in [r#"{"p":[{"a":1,"a":2}]}"#, r#"{"p":[7]}"#, r#"{"p":{"a":1}}"#, r#"{"p":[{"a":"\ud800"}]}"#] {
            let mut problem = None;
            assert!(read(bad).list::<One<'_>>("p", &mut problem).is_empty() && problem.unwrap().starts_with("p is not readable"), "{bad}");
        }
        for bad in [r#"{"p":{"a":1,"a":2}}"#, r#"{"p":7}"#, r#"{"p":["x"]}"#, r#"{"p":"x"}"#, r#"{"p":{"a":"\ud800"}}"#] {
            let mut problem = None;
            let _: Option<One<'_>> = Some(read(bad).object("p", &mut problem));
            assert!(problem.unwrap().starts_with("p is not readable"), "{bad}");
        }
    }

    /// Proves that numbers are read in all spellings, and that other values give none.
    #[test]
    fn whole_numbers() {
        let read = |text: &str| serde_json::from_str::<Field<'_>>(text).unwrap().integer();
        assert_eq!(
            [read("444000"), read("\"444000\""), read("444000.0"), read("1.6"), read("-5")].map(Option::unwrap),
            [444_000, 444_000, 444_000, 2, -5]
        );
        for bad in ["null", "\"\"", "\"NaN\"", "1e300", "{}", "\"12 dollars\""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    /// Proves that cursors are read back, and that another version or format is refused.
    #[test]
    fn cursors_are_versioned() {
        let cursor = write_cursor(vec![("a", 1)].into_iter().collect::<std::collections::BTreeMap<_, _>>());
        assert_eq!(cursor.0, r#"{"v":1,"a":1}"#);
        type Map = std::collections::BTreeMap<String, u32>;
        assert_eq!(read_cursor::<Map>("d", &cursor).unwrap()["a"], 1);
        for bad in ["", "{}", r#"{"v":2,"a":1}"#, r#"{"v":1,"a":"x"}"#] {
            let error = read_cursor::<Map>("d", &UpstreamCursor(bad.to_owned())).unwrap_err();
            assert!(matches!(error, UpstreamError::Stop { field, .. } if field == "cursor"), "{bad}");
        }
    }
}
