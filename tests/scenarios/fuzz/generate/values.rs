//! The values of requests: parameters, bodies that their schema permits, bodies that are no JSON, and texts that servers trip over.

use serde_json::{Map, Value, json};

use super::super::texts::{DATES, HOSTILE_TEXTS, LIVES, WAITS, WORDS};
use super::{Generator, Parameter, text_of};

impl Generator<'_> {
    /// Returns a value of a parameter as text.
    pub(super) fn parameter_value(&mut self, parameter: &Parameter) -> String {
        match parameter.name.as_str() {
            "wait" => return self.random.pick(WAITS).to_owned(),
            "live" => return self.random.pick(LIVES).to_owned(),
            _ => {}
        }
        if self.percent(12) {
            return self.hostile_text();
        }
        if !parameter.example.is_null() && self.percent(40) {
            return text_of(&parameter.example);
        }
        text_of(&self.json_value(&parameter.name, &parameter.schema, 0))
    }

    fn hostile_text(&mut self) -> String {
        match self.random.below(20) {
            0 => "a".repeat(self.index(8_000)),
            1 => {
                self.has_key_argument = true;
                self.key_text()
            }
            2 => (0..self.index(50)).map(|_| char::from_u32(u32::try_from(self.random.below(0x3000)).unwrap()).unwrap_or('x')).collect(),
            3 => "\u{1f469}".repeat(self.index(500)),
            4 => "a,".repeat(self.index(500)),
            _ => self.random.pick(HOSTILE_TEXTS).to_owned(),
        }
    }

    /// Returns a value, usually one that the schema permits.
    pub(super) fn json_value(&mut self, name: &str, schema: &Value, depth: u64) -> Value {
        if name == "wait" {
            return self.random.pick(WAITS).parse::<i64>().map_or(json!("x"), |wait| json!(wait));
        }
        if self.percent(6) {
            return self.random_json(depth);
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[self.index(values.len())].clone();
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            found => vec![found.as_str().unwrap_or("string")],
        };
        match self.random.pick(&types) {
            "integer" | "number" => {
                let low = schema["minimum"].as_i64().unwrap_or(0);
                let high = schema["maximum"].as_i64().unwrap_or(low + 1_000);
                let edges = [low, high, low - 1, high + 1, i64::MIN, i64::MAX];
                if self.percent(15) {
                    return json!(self.random.pick(&edges));
                }
                json!(low + i64::try_from(self.random.below(u64::try_from(high - low).unwrap().saturating_add(1))).unwrap())
            }
            "boolean" => json!(self.percent(50)),
            "null" => Value::Null,
            "array" => (0..self.random.below(4)).map(|_| self.json_value("", &schema["items"], depth + 1)).collect(),
            "object" => {
                let mut fields = Map::new();
                let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name));
                for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                    if required(name) && self.percent(97) || self.percent(40) {
                        fields.insert(name.clone(), self.json_value(name, schema, depth + 1));
                    }
                }
                if schema["additionalProperties"] == true || self.percent(4) {
                    fields.insert(self.hostile_text(), self.random_json(depth + 1));
                }
                Value::Object(fields)
            }
            _ => match name {
                "webhook" | "webhook_url" => {
                    json!(self.random.pick(&["http://127.0.0.1:9/in", "http://[::1]:9/a?b=c", "ftp://127.0.0.1/"]))
                }
                "asOf" | "from" | "to" | "start" | "end" => json!(self.random.pick(DATES)),
                name if self.material.known.contains_key(name) && self.percent(80) => json!(self.known(name)),
                _ => json!(self.random.pick(WORDS)),
            },
        }
    }

    /// Returns a body: the example, or a value that the schema permits.
    pub(super) fn body_value(&mut self, schema: &Value, example: &Value) -> Value {
        let mut body = self.json_value("", schema, 0);
        let has_url = ["webhook", "webhook_url"].iter().any(|name| !example[*name].is_null());
        if self.percent(30) && example.is_object() && !has_url {
            body = example.clone();
            if let Some(fields) = body.as_object_mut() {
                fields.retain(|name, _| !schema["properties"][name].is_null());
            }
        }
        body
    }

    /// Returns any JSON value.
    pub(super) fn random_json(&mut self, depth: u64) -> Value {
        match self.random.below(if depth > 3 { 8 } else { 10 }) {
            0 => Value::Null,
            1 => json!(self.percent(50)),
            2 => json!(self.random.pick(&[0_i64, -1, 1, i64::MIN, i64::MAX, 9_007_199_254_740_993])),
            3 => json!(u64::MAX),
            4 => json!(self.random.pick(&[0.5, -0.0, 1e308, 5e-324, 1e21])),
            5..8 => json!(self.hostile_text()),
            8 => (0..self.random.below(4)).map(|_| self.random_json(depth + 1)).collect(),
            _ => (0..self.random.below(4)).map(|_| (self.hostile_text(), self.random_json(depth + 1))).collect::<Map<_, _>>().into(),
        }
    }

    /// Returns a body that is no longer JSON, or JSON in an unusual form.
    pub(super) fn broken_json(&mut self, whole: &str) -> Vec<u8> {
        let mut bytes = whole.as_bytes().to_vec();
        let at = self.index(bytes.len());
        let depth = 10_usize.pow(u32::try_from(1 + self.random.below(4)).unwrap());
        let first_string = || whole.find(":\"").map(|colon| colon + 2);
        let with_text = |text: &str| match first_string() {
            Some(start) => format!("{}{text}{}", &whole[..start], &whole[start..]).into_bytes(),
            None => format!("{{\"email\":\"{text}\"}}").into_bytes(),
        };
        match self.random.below(18) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << self.random.below(8),
            2 => bytes = "[".repeat(depth).into_bytes(),
            3 => bytes = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)).into_bytes(),
            4 => bytes = format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes(),
            // The first member is repeated.
            5 => {
                let inside = whole.trim_start_matches('{').trim_end_matches('}');
                bytes = format!("{{{inside},{inside}}}").into_bytes();
            }
            6 => {
                let number =
                    self.random.pick(&["1e999", "-1e999", "1e-999999999", "99999999999999999999999999", "01", "1.", "-", "0x1", "NaN"]);
                bytes = format!("{{\"limit\":{number}}}").into_bytes();
            }
            7 => bytes = format!("{{\"limit\":{}}}", "9".repeat(20_000)).into_bytes(),
            8 => bytes = with_text(self.random.pick(&["\\ud800", "\\udc00\\ud800", "\\u0000", "\\x", "\\u12", "\n", "\u{7f}", "\\/"])),
            9 => bytes.splice(at..at, [0xff, 0xfe, 0xc0, 0x80]).for_each(drop),
            10 => bytes = format!("\u{feff}{whole}").into_bytes(),
            11 => bytes.clear(),
            12 => bytes = self.random.pick(&["null", "\"text\"", "[]", "1", "{}", " ", "{", "}", "{\"a\"}", "\u{0}"]).as_bytes().to_vec(),
            13 => bytes = format!("[{whole}]").into_bytes(),
            14 => bytes = with_text(&"a".repeat(self.index(50_000))),
            15 => bytes = with_text(&"a".repeat(70_000)),
            16 => bytes.extend(b" // comment"),
            _ => bytes = whole.replace('"', "'").into_bytes(),
        }
        bytes
    }
}
