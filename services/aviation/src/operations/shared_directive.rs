//! A directive as all calls share it: what the rules compare, and the texts of its answers, which are written once.

use directives::{Product, StoredDirective};
use feed::derived_lists::Derived;
use schemas::views::aviation::{AirworthinessDirective, DirectiveLimit};
use serde_json::{Map, Value, json};
use table_file::add_csv_field;

use super::directive_match::DirectiveMatch;
use super::pieces::Pieces;

/// The fields of a directive in answers that depend on the aircraft, in the order of answers.
pub(crate) const FIELDS_OF_AIRCRAFT: [&str; 5] = ["cannotDecide", "due", "match", "reasons", "span"];
/// The pieces of JSON before, between and after those fields.
const JSON_PIECES: usize = FIELDS_OF_AIRCRAFT.len() + 1;
/// The pieces of the row of a file: number, title and product; scope to interval; what replaces it and its address.
const CSV_PIECES: usize = 3;
/// What a part of a directive needs in memory, such as a model, in bytes.
const PART_BYTES: usize = 256;

/// A directive as it was read, shared by the aircraft of a call and by calls.
pub struct SharedDirective {
    /// The directive as the rules read it.
    pub stored: StoredDirective,
    /// Effective date, YYYY-MM-DD; empty if unknown.
    pub effective_date: String,
    /// Whether another directive replaces it.
    pub is_superseded: bool,
    /// The number in the form in which numbers are compared.
    pub normal_number: String,
    /// The pieces of JSON, then those of the row of a file.
    texts: Pieces<{ JSON_PIECES + CSV_PIECES }>,
}

impl SharedDirective {
    /// The piece of JSON before the field of an aircraft with this position in [`FIELDS_OF_AIRCRAFT`], or after the last one.
    pub(crate) fn json(&self, at: usize) -> &[u8] {
        self.texts.piece(at.min(FIELDS_OF_AIRCRAFT.len()))
    }

    /// How many bytes all these pieces have.
    pub(crate) fn json_bytes(&self) -> usize {
        self.texts.bytes_to(JSON_PIECES - 1)
    }

    /// The number of the directive.
    #[must_use]
    pub fn ad_number(&self) -> &str {
        &self.stored.directive.number
    }

    /// The kind of product.
    #[must_use]
    pub fn product(&self) -> Product {
        self.stored.directive.product
    }

    /// The keys of the makes.
    #[must_use]
    pub fn makes(&self) -> &[String] {
        &self.stored.directive.makes
    }

    /// The pieces of the row of a file.
    pub(crate) fn csv(&self) -> [&[u8]; CSV_PIECES] {
        std::array::from_fn(|at| self.texts.piece(JSON_PIECES + at))
    }
}

impl Derived<AirworthinessDirective> for SharedDirective {
    fn of(record: AirworthinessDirective) -> Self {
        let mut stored = StoredDirective::of(&record);
        stored.text.shrink_to_fit();
        let (is_superseded, normal_number) = (record.is_superseded(), normal_number(&record.ad_number));
        let shown = DirectiveMatch::of(record);
        let effective_date = shown.effective_date.clone();
        let mut pieces = json_pieces(&shown).into_iter().chain(csv_pieces(&shown));
        let texts = Pieces::written(|_, text| text.extend_from_slice(pieces.next().unwrap_or_default().as_bytes()));
        Self { stored, effective_date, is_superseded, normal_number, texts }
    }

    fn bytes(&self) -> u64 {
        let StoredDirective { directive, text } = &self.stored;
        let (applicability, limits) = (&directive.applicability, &directive.compliance.limits);
        let ranges: usize = applicability.serials.iter().map(|list| 1 + list.ranges.len()).sum();
        let names = directive.makes.len() + directive.named_in_summary.len() + directive.affected.len();
        let parts = applicability.models.len() + applicability.mentions.len() + ranges + names + limits.len() + directive.unread.len();
        (size_of::<Self>() + text.len() + self.texts.bytes() + PART_BYTES * (1 + parts)) as u64
    }
}

/// The JSON of a directive around the fields of an aircraft: each piece ends before one of them.
fn json_pieces(shown: &DirectiveMatch) -> [String; JSON_PIECES] {
    let mut fields = match json!(shown) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("due".to_owned(), Value::Null);
    let (mut pieces, mut at) = ([const { String::new() }; JSON_PIECES], 0);
    pieces[0].push('{');
    for (name, value) in &fields {
        if FIELDS_OF_AIRCRAFT.contains(&name.as_str()) {
            at += 1;
            continue;
        }
        let Some(piece) = pieces.get_mut(at) else { continue };
        // The number of the directive is the first field.
        let comma = if piece.as_str() == "{" { "" } else { "," };
        piece.push_str(&format!("{comma}{}:{value}", Value::from(name.as_str())));
    }
    pieces[JSON_PIECES - 1].push('}');
    pieces
}

/// The pieces of the row of a file, each without commas around it.
fn csv_pieces(shown: &DirectiveMatch) -> [String; CSV_PIECES] {
    let interval = interval(&shown.limits);
    let piece = |texts: &[&String]| {
        let mut line = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            if at > 0 {
                line.push(b',');
            }
            add_csv_field(&json!(text), &mut line);
        }
        String::from_utf8_lossy(&line).into_owned()
    };
    [
        piece(&[&shown.ad_number, &shown.title, &shown.product]),
        piece(&[&shown.scope, &shown.effective_date, &shown.recurring, &interval]),
        piece(&[&shown.superseded_by, &shown.url]),
    ]
}

/// The recurring limits as one text: `100 hours or 12 months, whichever occurs first; 5 years`.
fn interval(limits: &[DirectiveLimit]) -> String {
    let recurring: Vec<&DirectiveLimit> = limits.iter().filter(|limit| limit.kind == "recurring").collect();
    let group = |group: &[&DirectiveLimit]| {
        let parts: Vec<String> = group.iter().map(|limit| format!("{} {}", limit.value, limit.unit.replace('_', " "))).collect();
        let joined = match group.iter().find(|limit| !limit.joiner.is_empty()) {
            Some(limit) if group.len() > 1 => format!(", whichever occurs {}", limit.joiner.to_lowercase()),
            _ => String::new(),
        };
        format!("{}{joined}", parts.join(" or "))
    };
    recurring.chunk_by(|one, two| one.group == two.group).map(group).collect::<Vec<_>>().join("; ")
}

/// The number of a directive in the form in which numbers are compared: without `AD`, dashes and blanks, in capitals. `ad 87-20-03 r2` is `872003R2`.
pub(crate) fn normal_number(number: &str) -> String {
    let compact: String = number.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect();
    let compact = compact.strip_prefix("AD").unwrap_or(&compact);
    // Some lists write the years of the last century with four digits: `1987-20-03R2`.
    let is_long = compact.len() >= 8 && compact.bytes().take(8).all(|byte| byte.is_ascii_digit());
    compact.strip_prefix("19").filter(|_| is_long).unwrap_or(compact).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how recurring limits are written: joined ones with their word, others one after another, without first limits.
    #[test]
    fn intervals() {
        let limit = |kind: &str, value, unit: &str, joiner: &str, group| DirectiveLimit {
            kind: kind.to_owned(),
            value,
            unit: unit.to_owned(),
            joiner: joiner.to_owned(),
            group,
            ..DirectiveLimit::default()
        };
        let limits = [
            limit("initial", 50, "hours", "", 1),
            limit("recurring", 100, "hours", "FIRST", 2),
            limit("recurring", 12, "calendar_months", "FIRST", 2),
            limit("recurring", 5, "years", "", 3),
        ];
        assert_eq!(interval(&limits), "100 hours or 12 calendar months, whichever occurs first; 5 years");
        assert_eq!((interval(&limits[..1]), interval(&[])), (String::new(), String::new()));
    }

    /// Proves that the number of a directive is found in every spelling, and that other numbers stay others.
    #[test]
    fn numbers_of_directives() {
        for spelling in ["87-20-03 R2", "AD 87-20-03 R2", "1987-20-03R2", "ad87-20-03r2", "AD-87-20-03  R2", "87\u{2011}20\u{2011}03 R2"] {
            assert_eq!(normal_number(spelling), "872003R2", "{spelling}");
        }
        let others = ["87-20-03", "1987-20-03", "87-20-03 R1", "87-20-30 R2"].map(normal_number);
        assert!(others.iter().all(|other| other != "872003R2"), "{others:?}");
    }

    /// Proves that the pieces around the fields of an aircraft are the directive, with any of its texts.
    #[test]
    fn pieces_are_the_directive() {
        let record = AirworthinessDirective {
            id: "2026-15-05".to_owned(),
            ad_number: "2026-15-05".to_owned(),
            title: "=1+1, \"seats\"\r\n\u{e9}".to_owned(),
            supersedes: vec!["2011-10-09".to_owned()],
            ..AirworthinessDirective::default()
        };
        let mut shown = json!(DirectiveMatch::of(record.clone()));
        let shared = SharedDirective::of(record);
        let mut text = Vec::new();
        for at in 0..JSON_PIECES {
            text.extend_from_slice(shared.json(at));
        }
        FIELDS_OF_AIRCRAFT.iter().for_each(|field| drop(shown.as_object_mut().unwrap().remove(*field)));
        assert_eq!(String::from_utf8(text).unwrap(), shown.to_string());
        let csv = shared.csv().map(|piece| String::from_utf8_lossy(piece).into_owned());
        assert_eq!(csv, ["2026-15-05,\"'=1+1, \"\"seats\"\"\r\n\u{e9}\",", ",,,", ","]);
    }
}
