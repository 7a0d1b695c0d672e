//! `GET /v1/audit.csv`: the directives that may apply to each aircraft of a stored fleet, and when each is next due, as a file for spreadsheets.

use std::io;
use std::sync::Arc;

use feed::etag::{etag, matches_etag};
use jiff::civil::Date;
use operation::problem::Problem;
use operation::{Answer, Body, Call, Definition, Operation, Price, Surface};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use schemas::hash::Hash32;
use schemas::views::accounts::Tier;
use schemas::views::aviation::DirectiveLimit;
use serde::Deserialize;
use serde_json::{Value, json};
use table_file::{Column, Format, Kind};

use super::compared::DirectiveLists;
use super::fleet::{AssessedDirective, CheckedItem};
use super::followed::Aviation;
use super::stored_fleets::stored;
use super::watched_fleet::{fleet_default, fleet_name};
use reads::files::{FileRows, Wanted, file};
use reads::read::Reader;

/// The version of the form of the file, part of the ETag. Increase it when the same position is written with other bytes.
const RENDERING: &str = "audit-1";

/// The columns.
const COLUMNS: [(&str, Kind); 22] = [
    ("tail", Kind::Text),
    ("make", Kind::Text),
    ("model", Kind::Text),
    ("serial", Kind::Text),
    ("hoursTIS", Kind::Float),
    ("ad_number", Kind::Text),
    ("title", Kind::Text),
    ("product", Kind::Text),
    ("match", Kind::Text),
    ("scope", Kind::Text),
    ("effective_date", Kind::Day),
    ("recurring", Kind::Text),
    ("interval", Kind::Text),
    ("last_done_date", Kind::Day),
    ("last_done_hours", Kind::Float),
    ("next_due_hours", Kind::Float),
    ("next_due_date", Kind::Day),
    ("status", Kind::Text),
    ("cannot_decide", Kind::Text),
    ("superseded_by", Kind::Text),
    ("url", Kind::Text),
    ("as_of", Kind::Day),
];

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
            with an apostrophe. A file that is not written within 20 seconds gets `unavailable` with `Retry-After`. Results are informational, not a \
            maintenance record; they do not decide serial-number or installed-appliance applicability.",
        price: Price::Tier(Tier::FleetPlus),
        surface: Surface::Route,
        errors: &[ErrorCode::AsOfInvalid, ErrorCode::NotFound, ErrorCode::RangeUnsatisfiable, ErrorCode::Unavailable],
        example: json!({ "fleet": "default" }),
        ..Definition::read()
    };
    Operation::define::<Arguments, (), _, _>(words, answer).with_files(&[("text/csv; charset=utf-8", true)])
}

async fn answer(call: Call, arguments: Arguments) -> Result<Answer, Problem> {
    let (fleet, aircraft) = stored(&call, &fleet_name(&arguments.fleet)?).await?;
    let (if_none_match, ctx, account) = (call.if_none_match.clone(), Arc::clone(&call.context), call.caller.account.clone());
    let reader = Reader::<Aviation>::as_of(call, arguments.as_of).await?;
    let (seq, day) = (reader.at.seq.0.to_string(), reader.today().to_string());
    // What is stored may change within a millisecond, so its time is not enough.
    let stored = Hash32::of(fleet.aircraft.to_string().as_bytes()).to_string();
    let etag = etag(&*reader.at.view, &[RENDERING, &seq, &day, &fleet.id, &stored]);
    let body = if matches_etag(if_none_match.as_deref(), &etag) {
        Body::NotModified
    } else {
        let today = reader.today();
        let rows = || AuditRows { today, reader, lists: DirectiveLists::default(), aircraft: aircraft.into_iter() };
        let columns = COLUMNS.into_iter().map(|(name, kind)| Column::new(name, kind)).collect();
        let name = format!("airworthiness-audit-{day}.csv");
        let wanted = Wanted { account: &account, etag: &etag, name, format: Format::Csv, is_private: true };
        Body::File(file(&ctx, wanted, columns, rows).await?)
    };
    Ok(Answer { body, etag, next_cursor: String::new(), has_more: false, status: 200 })
}

/// The rows of the file, read aircraft by aircraft.
struct AuditRows {
    reader: Reader<Aviation>,
    lists: DirectiveLists,
    aircraft: std::vec::IntoIter<CheckedItem>,
    today: Date,
}

impl AuditRows {
    /// The rows of the next aircraft that has any; none at the end.
    async fn read(&mut self) -> Result<Vec<Vec<Value>>, Problem> {
        for checked in self.aircraft.by_ref() {
            let found = self.lists.directives_for(&self.reader, &checked.aircraft).await?;
            if found.is_empty() {
                continue;
            }
            let assessment = checked.assess(found, self.today);
            let as_of = self.today.to_string();
            return Ok(assessment.directives.into_iter().map(|directive| row(&checked, directive, &as_of)).collect());
        }
        Ok(Vec::new())
    }
}

impl FileRows for AuditRows {
    async fn next(&mut self) -> io::Result<Vec<Vec<Value>>> {
        self.read().await.map_err(|problem| io::Error::other(problem.detail))
    }
}

/// The row of a directive of an aircraft, in the order of [`COLUMNS`].
fn row(checked: &CheckedItem, assessed: AssessedDirective, as_of: &str) -> Vec<Value> {
    let (item, AssessedDirective { directive, due }) = (&checked.item, assessed);
    let (last_date, last_hours) = checked.last_done(&directive.ad_number);
    let open: Vec<String> = directive.cannot_decide.iter().filter_map(|reason| name_of(json!(reason))).collect();
    vec![
        json!(item.tail),
        json!(item.make),
        json!(item.model),
        json!(item.serial),
        json!(checked.hours()),
        json!(directive.ad_number),
        json!(directive.title),
        json!(directive.product),
        json!(directive.verdict),
        json!(directive.scope),
        json!(directive.effective_date),
        json!(directive.recurring),
        json!(interval(&directive.limits)),
        json!(last_date),
        json!(last_hours),
        json!(due.by_hours),
        json!(due.by_date),
        json!(due.status),
        json!(open.join("; ")),
        json!(directive.superseded_by),
        json!(directive.url),
        json!(as_of),
    ]
}

fn name_of(value: Value) -> Option<String> {
    match value {
        Value::String(name) => Some(name),
        _ => None,
    }
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
}
