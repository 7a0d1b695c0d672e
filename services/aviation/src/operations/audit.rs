//! `GET /v1/audit.csv`: the directives that may apply to each aircraft of a stored fleet, and when each is next due, as a file for spreadsheets.

use std::sync::Arc;

use feed::etag::{etag, matches_etag};
use jiff::civil::Date;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Operation, Price, Surface};
use proofs::hash::Hash32;
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::views::accounts::Tier;
use serde::Deserialize;
use serde_json::{Value, json};
use table_file::{Format, add_csv_field};

use super::assess::{first_notes, name_of, notes_of};
use super::comparisons::{Compared, Comparisons};
use super::fleet::CheckedItem;
use super::fleet_watch::{fleet_default, fleet_name};
use super::stored_fleets::stored;
use super::watchable_feed::Aviation;
use reads::files::{FilePieces, streamed};
use reads::read::Reader;

/// The version of the form of the file, part of the ETag. Increase it when the same position is written with other bytes.
const RENDERING: &str = "audit-1";

/// The columns.
const COLUMNS: [&str; 22] = [
    "tail",
    "make",
    "model",
    "serial",
    "hoursTIS",
    "ad_number",
    "title",
    "product",
    "match",
    "scope",
    "effective_date",
    "recurring",
    "interval",
    "last_done_date",
    "last_done_hours",
    "next_due_hours",
    "next_due_date",
    "status",
    "cannot_decide",
    "superseded_by",
    "url",
    "as_of",
];
/// The end of a line.
const LINE_END: &[u8] = b"\r\n";
/// Pieces of the file but the first and the last one have at least so many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Arguments of `audit_csv`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    /// The name of the stored fleet.
    #[serde(default = "fleet_default")]
    #[schemars(length(min = 1, max = 100))]
    pub fleet: String,
    /// Answer as of this time, from what was recorded then: a date YYYY-MM-DD (its end in UTC) or an RFC 3339 time, not later than now. The aircraft
    /// are those that are stored now.
    pub as_of: Option<String>,
}

/// The operation.
#[must_use]
pub fn operation() -> Operation {
    let words = Definition {
        name: "audit_csv",
        path: "/v1/audit.csv",
        summary: "The directives that may apply to each aircraft of a stored fleet, and when each is next due, as a CSV file.",
        description: "One row for each aircraft and directive, superseded ones included: the same as `POST /v1/assess` answers for the fleet that it stored. \
            `cannot_decide` names what the text leaves open, separated by semicolons. RFC 4180; texts that a spreadsheet would evaluate as a formula begin \
            with an apostrophe. The file is made while it is sent, so it has no length and is not sent in parts; one that could not be made to its end ends \
            without its last chunk. The note of an assessment is the header `Answer-Note`. Results are informational, not a maintenance record; they do not decide serial-number or installed-appliance \
            applicability.",
        price: Price::Tier(Tier::FleetPlus),
        surface: Surface::Route,
        errors: &[ErrorCode::AsOfInvalid, ErrorCode::NotFound, ErrorCode::Unavailable],
        example: json!({ "fleet": "default" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, (), _, _>(words, answer).with_streams(&[("text/csv; charset=utf-8", true)])
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let (fleet, aircraft) = stored(&call, &fleet_name(&arguments.fleet)?).await?;
    let (if_none_match, ctx, account) = (call.if_none_match.clone(), Arc::clone(&call.context), call.caller.account.clone());
    let mut reader = Reader::<Aviation>::as_of(call, arguments.as_of).await?;
    let (seq, day) = (reader.at.seq.0.to_string(), reader.today().to_string());
    // What is stored may change within a millisecond, so its time is not enough.
    let stored = Hash32::of(fleet.aircraft.to_string().as_bytes()).to_string();
    let etag = etag(&*reader.at.view, &[RENDERING, &seq, &day, &fleet.id, &stored]);
    let body = if matches_etag(if_none_match.as_deref(), &etag) {
        Body::NotModified
    } else {
        // The note names what is unknown of every aircraft, and as a header it is sent before the first byte of the file. So the fleet is walked for it
        // first: rows that were written in the same walk would all wait in memory for its end. This walk leaves out serial numbers, which change no note.
        // What it reads and compares remains in `comparisons`, so that the walk for the rows looks it up and compares only serial numbers.
        let (mut comparisons, mut notes) = (Comparisons::default(), Vec::new());
        for checked in &aircraft {
            let found = comparisons.directives_for(&reader, &checked.aircraft.with_serial(None)).await?;
            notes.extend(notes_of(checked, &found));
        }
        reader.note(first_notes(&notes));
        let (today, note) = (reader.today(), reader.file_note());
        let text = AuditText { today, reader, comparisons, aircraft: aircraft.into_iter(), has_header: false };
        let name = format!("airworthiness-audit-{day}.csv");
        let mut file = streamed(&ctx, &account, (Format::Csv, name), text).await?;
        file.note = note;
        Body::Stream(file)
    };
    Ok(Answer { body, etag, next_cursor: String::new(), has_more: false, status: 200 })
}

/// The text of the file, made aircraft by aircraft.
struct AuditText {
    reader: Reader<Aviation>,
    comparisons: Comparisons,
    aircraft: std::vec::IntoIter<CheckedItem>,
    today: Date,
    has_header: bool,
}

impl FilePieces for AuditText {
    /// The header with the rows of the first aircraft; then several aircraft at a time.
    async fn next(&mut self) -> Result<Vec<u8>, Problem> {
        let mut text = Vec::with_capacity(2 * PIECE_BYTES);
        let is_first = !std::mem::replace(&mut self.has_header, true);
        if is_first {
            text.extend_from_slice(COLUMNS.join(",").as_bytes());
            text.extend_from_slice(LINE_END);
        }
        for checked in self.aircraft.by_ref() {
            let found = self.comparisons.directives_for(&self.reader, &checked.aircraft).await?;
            write_rows(&checked, &found, self.today, &mut text);
            if is_first || text.len() >= PIECE_BYTES {
                break;
            }
        }
        Ok(text)
    }
}

/// Adds the rows of an aircraft to a text, with the fields in the order of [`COLUMNS`].
fn write_rows(checked: &CheckedItem, found: &[Compared], today: Date, text: &mut Vec<u8>) {
    let item = &checked.item;
    let beginning = fields(&[json!(item.tail), json!(item.make), json!(item.model), json!(item.serial), json!(checked.hours())]);
    let as_of = fields(&[json!(today)]);
    for one in found {
        let due = checked.due(one, today);
        let (last_date, last_hours) = checked.last_done(&one.directive.normal_number);
        let open: Vec<String> = one.outcome.cannot_decide.iter().filter_map(|reason| name_of(*reason)).collect();
        let verdict = fields(&[json!(one.outcome.verdict)]);
        let own = fields(&[
            json!(last_date),
            json!(last_hours),
            json!(due.by_hours),
            json!(due.by_date),
            json!(due.status),
            json!(open.join("; ")),
        ]);
        let [named, said, replaced] = one.directive.csv();
        for (at, part) in [beginning.as_slice(), named, &verdict, said, &own, replaced, &as_of].into_iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(part);
        }
        text.extend_from_slice(LINE_END);
    }
}

/// The text of some fields with commas between them.
fn fields(values: &[Value]) -> Vec<u8> {
    let mut text = Vec::with_capacity(64);
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        add_csv_field(value, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use feed::derived_lists::Derived as _;
    use jiff::civil::date;
    use schemas::views::aviation::AirworthinessDirective;
    use table_file::{Column, Kind, writer};

    use super::super::fleet::{ComplianceRecord, FleetItem, check_items};
    use super::super::shared_directive::SharedDirective;
    use super::*;

    /// Proves that the rows of the file are those that the writer of tables makes of the same values, byte for byte: with texts that must be quoted, a title
    /// that a spreadsheet would take for a formula, whole and fractional hours, and empty fields.
    #[test]
    fn rows_are_those_of_a_table() {
        let record = |number: &str, title: &str| {
            let model = json!({ "name": "PA-28-140", "form": "PA28140", "series": "PA28", "role": "applies", "span": "PA-28-140" });
            let limit = |value: i64, unit: &str| json!({ "kind": "recurring", "value": value, "unit": unit, "anchor": "last_done", "joiner": "FIRST", "group": 1 });
            let record = json!({
                "id": number, "adNumber": number, "title": title, "makes": ["PIPER"], "product": "aircraft", "layout": "lettered",
                "models": [model], "recurring": "yes", "status": "current", "scope": "all", "limits": [limit(100, "hours"), limit(12, "months")],
                "effectiveDate": "2026-08-24", "condition": "equipped", "url": "https://a.example/?a=1,2",
            });
            serde_json::from_value::<AirworthinessDirective>(record).unwrap()
        };
        let records = [record("2026-15-05", "=1+1, \"seats\"\r\nb"), record("2026-15-06", "Seats")];
        let done = ComplianceRecord {
            ad: "AD 2026-15-05".to_owned(),
            date: Some("2026-03-10".to_owned()),
            hours: Some(1_200.0),
            ..ComplianceRecord::default()
        };
        let given = FleetItem {
            tail: "N1".to_owned(),
            make: "Piper Aircraft, Inc.".to_owned(),
            model: "PA-28-140".to_owned(),
            serial: Some("+28-1".to_owned()),
            hours_tis: Some(1_262.5),
            compliance: vec![done],
            ..FleetItem::default()
        };
        let checked = check_items(vec![given]).unwrap().remove(0);
        let compared = |record: &AirworthinessDirective| {
            let directive = SharedDirective::of(record.clone());
            let outcome = directives::compare(&directive.stored.directive, &checked.aircraft);
            Compared::new(Arc::new(directive), outcome)
        };
        let found: Vec<Compared> = records.iter().map(compared).collect();
        let mut text = Vec::new();
        write_rows(&checked, &found, date(2026, 11, 20), &mut text);

        let interval = "100 hours or 12 months, whichever occurs first";
        let row = |record: &AirworthinessDirective, verdict: &str, last: [Value; 2], due: [Value; 3]| {
            let ([last_date, last_hours], [by_hours, by_date, status]) = (last, due);
            vec![
                json!("N1"),
                json!("Piper Aircraft, Inc."),
                json!("PA-28-140"),
                json!("+28-1"),
                json!(1262.5),
                json!(record.ad_number),
                json!(record.title),
                json!("aircraft"),
                json!(verdict),
                json!("all"),
                json!("2026-08-24"),
                json!("yes"),
                json!(interval),
                last_date,
                last_hours,
                by_hours,
                by_date,
                status,
                json!("INSTALLED_PART"),
                json!(""),
                json!(record.url),
                json!("2026-11-20"),
            ]
        };
        let rows = [
            row(&records[0], "MATCH", [json!("2026-03-10"), json!(1200)], [json!(1300), json!("2027-03-10"), json!("DUE_SOON")]),
            row(&records[1], "MATCH", [Value::Null, Value::Null], [Value::Null, Value::Null, json!("DUE_UNKNOWN")]),
        ];
        let mut expected = Vec::new();
        let mut sink = |piece: &[u8]| {
            expected.extend_from_slice(piece);
            true
        };
        let columns = COLUMNS.into_iter().map(|name| Column::new(name, Kind::Text)).collect();
        let mut table = writer(Format::Csv, columns, &mut sink).unwrap();
        for row in rows {
            assert!(table.row(row).unwrap());
        }
        drop(table);
        let header = format!("{}\r\n", COLUMNS.join(","));
        assert_eq!(format!("{header}{}", String::from_utf8(text).unwrap()), String::from_utf8(expected).unwrap());
    }
}
