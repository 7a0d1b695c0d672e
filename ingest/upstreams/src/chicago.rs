//! Building permits of the City of Chicago, from its open data on Socrata.
//!
//! A run reads the permits that were issued since the first day of its window, in pages by `id`: the status of a permit changes for months after its issue, so
//! that a daily run reads 60 days again, and a full one five years. One row names all parcels of a permit and becomes a fact for each of them.
//!
//! What is unreliable: the parcels are a text of numbers joined by `|`, with repeats, with or without dashes, of 14 digits or the 10 of a building, or absent;
//! numbers are texts, and costs are 0 or absurd. Contacts are not requested, and telephone numbers, e-mail addresses and names are removed from the description.

use std::time::Duration;

use jiff::civil::Date;
use schemas::facts::permits::PermitFact;
use schemas::position::UpstreamCursor;
use schemas::topics::PERMITS;
use serde::{Deserialize, Serialize};

use crate::cook::permits::{description, facts, key_part, pins, warn_of_pins};
use crate::json::{Field, Records};
use crate::rolls::{dollars, short, street};
use crate::socrata::{self, KeyColumn, Keyset};
use crate::stored_fields::StoredFields;
use crate::{Answer, Licence, Manifest, Page, Request, Settings, Stream, Upstream, UpstreamError, Window, json, text};

const ORIGIN: &str = "https://data.cityofchicago.org";
const DATASET: &str = "ydr8-5enu";
const PERMITS_STREAM: &str = "chicago.permits";
/// The rows of a page.
const PAGE_ROWS: usize = 5_000;
/// How many days back a full read goes.
const FULL_READ_DAYS: u32 = 5 * 366;
const COLUMNS: &[&str] = &[
    "id",
    "permit_",
    "permit_status",
    "permit_milestone",
    "permit_type",
    "issue_date",
    "street_number",
    "street_direction",
    "street_name",
    "work_description",
    "reported_cost",
    "pin_list",
];
const KEYSET: Keyset = Keyset { stream: PERMITS_STREAM, columns: &[KeyColumn { name: "id", is_number: false }] };

static MANIFEST: Manifest = Manifest {
    name: "chicago",
    licence: Licence { terms: "terms of use of the City of Chicago", publisher: "City of Chicago" },
    streams: &[Stream {
        name: PERMITS_STREAM,
        topic: &PERMITS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 64 << 20,
        answer_timeout: Duration::from_secs(120),
    }],
    full_after: Duration::from_secs(30 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct Chicago;

/// The position of a sync run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    /// The first day of issue that is read.
    from: Date,
    /// The value of the column of the row after which the page begins; empty for the first page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

impl Upstream for Chicago {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _stream: &Stream, window: &Window, settings: &Settings) -> UpstreamCursor {
        json::write_cursor(Cursor { from: window.first_day(settings.full_read_days(FULL_READ_DAYS)), after: Vec::new() })
    }

    fn request(&self, stream: &Stream, cursor: &UpstreamCursor, settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let since = format!("issue_date >= {}", socrata::quoted(&format!("{}T00:00:00", cursor.from)));
        let conditions: Vec<String> = [since].into_iter().chain(KEYSET.after(&cursor.after)?).collect();
        let (select, condition, order, limit) = (COLUMNS.join(","), conditions.join(" AND "), KEYSET.order(), PAGE_ROWS.to_string());
        let parameters = [("$select", &*select), ("$where", &*condition), ("$order", &*order), ("$limit", &*limit)];
        Ok(socrata::reasoned(socrata::request(ORIGIN, DATASET, &parameters, settings)))
    }

    fn map(&self, stream: &Stream, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(stream.name, cursor)?;
        let mut page = Page::default();
        let body = socrata::rows_or_reason(stream.name, answer, &mut page.warnings)?;
        let records = Records::of_array(stream.name, &body)?.storing(StoredFields {
            requested: COLUMNS,
            personal: &["street_number", "street_direction", "street_name", "work_description"],
        });
        let (mut keys, mut unreadable) = (Vec::new(), 0);
        let (observations, rejects) = records.map(stream.name, EXPECTED, |row: &Row<'_>| {
            keys.push(vec![row.id.text().to_owned()]);
            let number = short(&row.permit_);
            if number.is_empty() {
                return Err((short(&row.id), "permit_ is absent".to_owned()));
            }
            let (pins, bad) = pins(row.pin_list.text());
            unreadable += bad;
            let fact = permit(stream.name, number, row, today);
            Ok(facts(&fact, &pins, |fact| key_part(&fact.number)))
        })?;
        page.observations = observations.into_iter().flatten().collect();
        page.rejects = rejects;
        warn_of_pins(&mut page, unreadable);
        page.next = KEYSET.next(&keys, &cursor.after, PAGE_ROWS)?.map(|after| json::write_cursor(Cursor { after, ..cursor }));
        Ok(page)
    }
}

/// A row of the dataset.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    permit_: Field<'a>,
    #[serde(borrow)]
    permit_status: Field<'a>,
    #[serde(borrow)]
    permit_milestone: Field<'a>,
    #[serde(borrow)]
    permit_type: Field<'a>,
    #[serde(borrow)]
    issue_date: Field<'a>,
    #[serde(borrow)]
    street_number: Field<'a>,
    #[serde(borrow)]
    street_direction: Field<'a>,
    #[serde(borrow)]
    street_name: Field<'a>,
    #[serde(borrow)]
    work_description: Field<'a>,
    #[serde(borrow)]
    reported_cost: Field<'a>,
    #[serde(borrow)]
    pin_list: Field<'a>,
}

/// A column, and whether a row has a value in it.
type Expected = (&'static str, fn(&Row<'_>) -> bool);

const EXPECTED: &[Expected] = &[
    ("id", |row| row.id.is_filled()),
    ("permit_", |row| row.permit_.is_filled()),
    ("permit_type", |row| row.permit_type.is_filled()),
    ("issue_date", |row| row.issue_date.is_filled()),
];

fn permit(stream: &str, number: String, row: &Row<'_>, today: Date) -> PermitFact {
    // The name of the street already has its suffix.
    let address = street(&[&row.street_number, &row.street_direction, &row.street_name]);
    PermitFact {
        stream: stream.to_owned(),
        local_number: number.clone(),
        number,
        issued: text::plausible_date(row.issue_date.text(), today),
        status: short(&row.permit_status),
        milestone: short(&row.permit_milestone),
        permit_type: short(&row.permit_type),
        amount: dollars(&row.reported_cost),
        description: description(&row.work_description),
        address,
        municipality: "CITY OF CHICAGO".to_owned(),
        ..PermitFact::default()
    }
}
