//! Applies suppressed keys to the JSON of stored rows and changes.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::suppression::{Hides, KeyKind, RECORD};
use crate::tables::ViewDef;
use proofs::hash::Hash32;

/// The field of a record with the id of the one that it became a part of.
pub const MERGED_INTO: &str = "mergedInto";
/// An empty text, as JSON.
const EMPTY_TEXT: &str = "\"\"";
/// What readers see of such an id if it is hidden, as JSON.
const HIDDEN_TEXT: &str = "\"hidden\"";
/// The version of what is hidden for the same keys. Increase it when they hide more: it is a part of ETags, so that caches ask again.
const FORM: &[u8] = b"3";

/// All suppressed keys.
#[derive(Clone, Debug, Default)]
pub struct SuppressedKeys {
    by_kind: HashMap<&'static str, HashSet<String>>,
    version: u64,
}

impl SuppressedKeys {
    /// Collects normalized keys with their kinds.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = (&'static KeyKind, String)>) -> Self {
        let keys: BTreeSet<(&'static str, String)> = keys.into_iter().map(|(kind, key)| (kind.name, key)).collect();
        let parts: Vec<&[u8]> = keys.iter().flat_map(|(kind, key)| [kind.as_bytes(), key.as_bytes()]).chain([FORM]).collect();
        let hash = Hash32::of_parts(&parts);
        let version = if keys.is_empty() { 0 } else { hash.0.first_chunk().map_or(1, |head| u64::from_be_bytes(*head).max(1)) };
        let mut by_kind: HashMap<&'static str, HashSet<String>> = HashMap::new();
        for (kind, key) in keys {
            by_kind.entry(kind).or_default().insert(key);
        }
        Self { by_kind, version }
    }

    /// Returns a number that differs between different sets of keys; 0 for no keys.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether records of a view may hide fields because of these keys.
    #[must_use]
    pub fn concern(&self, view: &ViewDef) -> bool {
        view.hides.iter().any(|hides| self.by_kind.contains_key(hides.kind.name))
    }

    /// How many of the keys can hide fields of records of a view. The key of a record counts for the view that the record is of.
    #[must_use]
    pub fn count(&self, view: &ViewDef) -> usize {
        let kinds: BTreeSet<&'static str> = view.hides.iter().map(|hides| hides.kind.name).collect();
        let is_of_view = |key: &&String| key.split_once('/').is_some_and(|(name, _)| name == view.name);
        let of_kind = |(kind, keys): (&str, &HashSet<String>)| match kind == RECORD.name {
            true => keys.iter().filter(is_of_view).count(),
            false => keys.len(),
        };
        kinds.into_iter().filter_map(|kind| Some((kind, self.by_kind.get(kind)?))).map(of_kind).sum()
    }

    /// Returns what readers see of a stored row or change, given as a JSON object whose member `record` is the record of a view. `None` if
    /// nothing in it is hidden. The record then has the member `suppressed`, which is true.
    ///
    /// # Errors
    /// When the text is not such an object.
    pub fn hide(&self, view: &ViewDef, json: &[u8]) -> serde_json::Result<Option<Vec<u8>>> {
        let Members(members) = serde_json::from_slice(json)?;
        let Some((_, record)) = members.iter().find(|(name, _)| name == "record") else { return Ok(None) };
        let Some(hidden) = self.hidden_record(view, record)? else { return Ok(None) };
        let shown = members.iter().map(|(name, value)| (name.as_ref(), if name == "record" { hidden.as_str() } else { value.get() }));
        Ok(Some(object(shown)?.into_bytes()))
    }

    /// Returns a record without its hidden fields; `None` if none is hidden.
    fn hidden_record(&self, view: &ViewDef, record: &RawValue) -> serde_json::Result<Option<String>> {
        let Members(members) = serde_json::from_str(record.get())?;
        let mut replaced: HashMap<&str, String> = HashMap::new();
        for hides in view.hides {
            let Some(keys) = self.by_kind.get(hides.kind.name) else { continue };
            let is_suppressed = |text: &str| {
                // A record that names no other one names none that is suppressed.
                if text.is_empty() {
                    return false;
                }
                let text = if hides.kind.name == RECORD.name { Cow::from(format!("{}/{text}", view.name)) } else { Cow::from(text) };
                let compared = (hides.kind.compared)(&text);
                keys.contains(&compared) || (hides.kind.within)(&compared).iter().any(|key| keys.contains(key))
            };
            let (field, inner) = hides.field.split_once('.').map_or((hides.field, None), |(list, inner)| (list, Some(inner)));
            let Some((field, value)) = members.iter().find(|(name, _)| name == field) else { continue };
            // Fields of the record itself are hidden as for a list of texts.
            let is_of_elements = hides.hidden.iter().all(|name| name.contains('.'));
            if let Some(inner) = inner.filter(|_| is_of_elements) {
                if let Some(rest) = without_elements(hides, (field, inner), value, is_suppressed)? {
                    keep_least(&mut replaced, field.as_ref(), rest);
                    replaced.insert("suppressed", "true".to_owned());
                }
                continue;
            }
            let texts: Vec<Cow<'_, str>> = match (value.get().as_bytes().first(), inner) {
                (Some(b'"'), None) => vec![serde_json::from_str(value.get())?],
                (Some(b'['), None) => serde_json::from_str(value.get())?,
                (Some(b'['), Some(inner)) => texts_of_elements(value, inner)?,
                _ => continue,
            };
            if !texts.iter().any(|text| is_suppressed(text)) {
                continue;
            }
            for field in hides.hidden {
                let Some((_, value)) = members.iter().find(|(name, _)| name == field) else { continue };
                let rest = match value.get().as_bytes().first() {
                    Some(b'[') if *field == hides.field => {
                        // Keys of another kind may have hidden elements already.
                        let left: Vec<String> = serde_json::from_str(replaced.get(*field).map_or(value.get(), String::as_str))?;
                        serde_json::to_string(&left.iter().filter(|text| !is_suppressed(text)).collect::<Vec<_>>())?
                    }
                    // Whether the record became a part of another one is no secret.
                    Some(b'"') if *field == MERGED_INTO && value.get() != EMPTY_TEXT => HIDDEN_TEXT.to_owned(),
                    Some(b'"') if *field == "id" => serde_json::to_string(&without_key(serde_json::from_str(value.get())?, &texts))?,
                    _ => empty(value).to_owned(),
                };
                keep_least(&mut replaced, field, rest);
            }
            replaced.insert("suppressed", "true".to_owned());
        }
        if replaced.is_empty() {
            return Ok(None);
        }
        let shown = members.iter().filter(|(name, _)| name != "suppressed").map(|(name, value)| {
            let value = replaced.get(name.as_ref()).map_or(value.get(), String::as_str);
            (name.as_ref(), value)
        });
        Ok(Some(object(shown.chain([("suppressed", "true")]))?))
    }
}

/// Returns a list of objects in which those whose member `inner` is suppressed lack the members that are hidden; `None` if there is none.
fn without_elements(
    hides: &Hides,
    (list, inner): (&str, &str),
    value: &RawValue,
    is_suppressed: impl Fn(&str) -> bool,
) -> serde_json::Result<Option<String>> {
    if !value.get().starts_with('[') {
        return Ok(None);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(value.get())?;
    let is_hidden = |name: &str| hides.hidden.iter().any(|field| field.split_once('.') == Some((list, name)));
    let (mut shown, mut has_hidden) = (Vec::with_capacity(elements.len()), false);
    for element in elements {
        let Members(members) = serde_json::from_str(element.get())?;
        let text = text_of(&members, inner);
        if !text.is_some_and(|text| is_suppressed(&text)) {
            shown.push(element.get().to_owned());
            continue;
        }
        has_hidden = true;
        let rest = members.iter().map(|(name, value)| (name.as_ref(), if is_hidden(name) { empty(value) } else { value.get() }));
        shown.push(object(rest)?);
    }
    Ok(has_hidden.then(|| format!("[{}]", shown.join(","))))
}

/// The texts of a member of the objects of a list.
fn texts_of_elements(list: &RawValue, inner: &str) -> serde_json::Result<Vec<Cow<'static, str>>> {
    let elements: Vec<&RawValue> = serde_json::from_str(list.get())?;
    let mut texts = Vec::with_capacity(elements.len());
    for element in elements {
        let Members(members) = serde_json::from_str(element.get())?;
        texts.extend(text_of(&members, inner).map(Cow::Owned));
    }
    Ok(texts)
}

/// The text of a member of an object; `None` if it has none.
fn text_of(members: &[(Cow<'_, str>, &RawValue)], name: &str) -> Option<String> {
    let (_, text) = members.iter().find(|(own, _)| own == name)?;
    serde_json::from_str(text.get()).ok()
}

/// Replaces a field, unless another rule hides more of the same field.
fn keep_least<'a>(replaced: &mut HashMap<&'a str, String>, field: &'a str, rest: String) {
    if replaced.get(field).is_none_or(|known| known.len() > rest.len()) {
        replaced.insert(field, rest);
    }
}

/// What readers see of a hidden value.
fn empty(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'"') => EMPTY_TEXT,
        Some(b'[') => "[]",
        Some(b'{') => "{}",
        _ => "null",
    }
}

/// An id without the suppressed text that it begins with: of `shop.example/7001` remains `/7001`. An id without it is hidden.
fn without_key<'a>(id: Cow<'a, str>, texts: &[Cow<'_, str>]) -> Cow<'a, str> {
    let rest = texts.iter().find_map(|text| id.strip_prefix(text.as_ref()).filter(|rest| rest.starts_with('/')));
    Cow::Owned(rest.unwrap_or_default().to_owned())
}

/// Writes a JSON object from the names and the JSON of its members.
fn object<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> serde_json::Result<String> {
    let mut out = String::from("{");
    for (name, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&serde_json::to_string(name)?);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    Ok(out)
}

/// The members of a JSON object in their order, with their values as they are written.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(32);
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// The name of a member, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::suppression::{PERSON, PHRASE, SHOP};

    const VIEW: ViewDef = ViewDef {
        name: "visits",
        tables: &[],
        hides: &[
            Hides { kind: &PERSON, field: "host", hidden: &["host", "phone", "seats", "place"] },
            Hides { kind: &PERSON, field: "guests", hidden: &["guests"] },
            Hides { kind: &PERSON, field: "drivers.name", hidden: &["drivers.name", "drivers.licence", "drivers.trips"] },
            Hides { kind: &SHOP, field: "guests", hidden: &["guests"] },
            Hides { kind: &SHOP, field: "seller", hidden: &["id", "seller", "mergedInto"] },
            Hides { kind: &RECORD, field: "id", hidden: &["host", "guests"] },
            Hides { kind: &RECORD, field: "stops.id", hidden: &["phone", "stops"] },
            Hides { kind: &RECORD, field: "mergedInto", hidden: &["phone", "mergedInto"] },
        ],
    };

    fn keys(all: &[(&'static KeyKind, &str)]) -> SuppressedKeys {
        SuppressedKeys::new(all.iter().map(|(kind, key)| (*kind, kind.normalize(key).unwrap())))
    }

    fn row() -> Value {
        json!({ "seq": 3, "record": {
            "id": "v/1", "host": "Ana Müller", "phone": "1", "seats": 4, "place": { "city": "X" }, "guests": ["B. Ode", "Ana Muller"], "cost": 0.1 } })
    }

    fn hidden(keys: &SuppressedKeys) -> Option<Value> {
        let bytes = keys.hide(&VIEW, row().to_string().as_bytes()).unwrap()?;
        let mut shown: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&shown["seq"], &shown["record"]["suppressed"], &shown["record"]["cost"]), (&json!(3), &json!(true), &json!(0.1)));
        Some(shown["record"].take())
    }

    /// Proves that a suppressed person is hidden in every field that names them and in the fields that depend on it, that other elements of a list
    /// stay, and that a suppressed record hides its own fields only.
    #[test]
    fn fields_are_hidden() {
        let person = hidden(&keys(&[(&PERSON, "MULLER, ANA")])).unwrap();
        assert_eq!(person["guests"], json!(["B. Ode"]));
        for (field, empty) in [("host", json!("")), ("phone", json!("")), ("seats", Value::Null), ("place", json!({}))] {
            assert_eq!(person[field], empty, "{field}");
        }
        let guest = hidden(&keys(&[(&PERSON, "ode b")])).unwrap();
        assert_eq!((&guest["host"], &guest["guests"]), (&json!("Ana Müller"), &json!(["Ana Muller"])));
        let record = hidden(&keys(&[(&RECORD, "visits/v/1")])).unwrap();
        assert_eq!((&record["host"], &record["guests"], &record["phone"]), (&json!(""), &json!([]), &json!("1")));
        let both = hidden(&keys(&[(&RECORD, "visits/v/1"), (&PERSON, "B. Ode")])).unwrap();
        assert_eq!(both["guests"], json!([]));
        let of_two_kinds = hidden(&keys(&[(&PERSON, "B. Ode"), (&SHOP, "ana muller")])).unwrap();
        assert_eq!(of_two_kinds["guests"], json!([]));
        for other in [keys(&[(&RECORD, "others/v/1"), (&PERSON, "Ana"), (&PERSON, "Ana B Muller")]), SuppressedKeys::default()] {
            assert_eq!(hidden(&other), None);
        }
        assert!(keys(&[(&PERSON, "x")]).hide(&VIEW, b"[]").is_err());
    }

    /// Proves that of a list of objects those of the suppressed key alone lose what names them, whatever their form, and that an id loses the part that
    /// is the suppressed key.
    #[test]
    fn parts_of_lists_and_ids_are_hidden() {
        let hide = |keys: &[(&'static KeyKind, &str)], record: Value| {
            let row = json!({ "record": record }).to_string();
            let hidden = self::keys(keys).hide(&VIEW, row.as_bytes()).unwrap();
            hidden.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap()["record"].take())
        };
        let driver = |name: &str| json!({ "name": name, "licence": 7, "trips": [1], "seat": "left" });
        let drivers = json!([driver("Ana Müller"), driver("B. Ode"), { "seat": "right" }]);
        let shown = hide(&[(&PERSON, "muller ana")], json!({ "drivers": drivers.clone() })).unwrap();
        assert_eq!(shown["drivers"], json!([{ "name": "", "licence": null, "trips": [], "seat": "left" }, drivers[1], drivers[2]]));
        assert_eq!(shown["suppressed"], true);
        assert_eq!(hide(&[(&PERSON, "muller ann")], json!({ "drivers": drivers })), None);
        assert_eq!(hide(&[(&PERSON, "x")], json!({ "drivers": null })), None);
        let hide_seller_of = |id: &str| hide(&[(&SHOP, "Shop.Example")], json!({ "id": id, "seller": "shop.example" })).unwrap();
        assert_eq!((&hide_seller_of("shop.example/7")["id"], &hide_seller_of("shop.example/7")["seller"]), (&json!("/7"), &json!("")));
        let merged = |into: &str| hide(&[(&SHOP, "shop.example")], json!({ "seller": "shop.example", "mergedInto": into })).unwrap();
        assert_eq!(
            [&merged("shop.example/8")["mergedInto"], &merged("")["mergedInto"]],
            ["hidden", ""],
            "it still says whether it was merged"
        );
        assert_eq!(
            [&hide_seller_of("shop.example")["id"], &hide_seller_of("other.example/7")["id"], &hide_seller_of("shop.example.org/7")["id"]],
            ["", "", ""]
        );
    }

    /// Proves that a record which names a suppressed one, in a list of objects or as the one that it became a part of, loses its own fields, and that one which
    /// names another, or none, loses nothing.
    #[test]
    fn records_that_name_a_suppressed_one_are_hidden() {
        let hide = |key: &str, mut record: Value| {
            record["phone"] = json!("1");
            let row = json!({ "record": record }).to_string();
            let hidden = self::keys(&[(&RECORD, key)]).hide(&VIEW, row.as_bytes()).unwrap();
            hidden.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap()["record"].take())
        };
        let stops = json!({ "stops": [{ "at": 5 }, { "id": "v/2" }], "mergedInto": "" });
        let shown = hide("visits/v/2", stops.clone()).unwrap();
        assert_eq!(shown, json!({ "stops": [], "mergedInto": "", "phone": "", "suppressed": true }));
        let shown = hide("visits/v/2", json!({ "mergedInto": "v/2" })).unwrap();
        assert_eq!(shown, json!({ "mergedInto": "hidden", "phone": "", "suppressed": true }));
        for other in ["visits/v/3", "others/v/2", "visits/"] {
            assert_eq!(hide(other, stops.clone()), None, "{other}");
        }
    }

    /// Proves that a record from which nothing is hidden keeps its bytes, and that one from which something is hidden keeps the order of its members.
    #[test]
    fn the_rest_stays() {
        let keys = keys(&[(&RECORD, "visits/v/1")]);
        let hide = |text: &str| keys.hide(&VIEW, text.as_bytes()).unwrap().map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(hide(r#"{"record":{"id":"v/2","host":"A"}}"#), None);
        assert_eq!(
            hide(r#"{"n":1.50,"record":{"z":1e3,"id":"v\/1","host":"A\u0041"},"m":[ 1]}"#).as_deref(),
            Some(r#"{"n":1.50,"record":{"z":1e3,"id":"v\/1","host":"","suppressed":true},"m":[ 1]}"#)
        );
    }

    /// Proves that the keys of a view are those of the kinds that it hides, each once, and of records its own.
    #[test]
    fn keys_of_a_view() {
        for (all, count) in [
            (keys(&[(&PERSON, "a"), (&PERSON, "b"), (&RECORD, "visits/v/1"), (&RECORD, "others/v/1")]), 3),
            (keys(&[(&PHRASE, "a b"), (&RECORD, "visit")]), 0),
            (SuppressedKeys::default(), 0),
        ] {
            assert_eq!(all.count(&VIEW), count, "{all:?}");
        }
    }

    /// Proves that the version tells sets of keys apart, and that no keys concern no view.
    #[test]
    fn versions() {
        let versions = [keys(&[]), keys(&[(&PERSON, "a")]), keys(&[(&RECORD, "a")]), keys(&[(&PERSON, "a"), (&PERSON, "b")])];
        let distinct: HashSet<u64> = versions.iter().map(SuppressedKeys::version).collect();
        assert_eq!((distinct.len(), versions.first().map(SuppressedKeys::version)), (4, Some(0)));
        assert!(!SuppressedKeys::default().concern(&VIEW) && keys(&[(&PERSON, "a")]).concern(&VIEW));
    }
}
