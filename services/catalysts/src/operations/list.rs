//! Lists of events, and what callers without a paid key see of them: the next 30 days, capped.
//!
//! An upcoming event is in the list at the first day of its window. Events whose window is open now began before today; they are in two
//! further lists, of windows up to a month and of longer ones, so that no event of the past is walked.

use crate::record::{Catalyst, LONG_SUFFIX, MONTH_DAYS, MONTH_SUFFIX, YEAR_DAYS};
use jiff::ToSpan;
use jiff::civil::Date;
use schemars::JsonSchema;
use schemas::details::ChangeRecord as _;
use schemas::position::Seq;
use schemas::views::records::Record as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::horizon::Horizon;
use super::watchable_feed::Catalysts;
use crate::rules::CatalystsRules;
use feed::cursor::{encode_place, read_place};
use feed::places::{PLACES_MAX, Segment, Selects, Walk};
use fold::records::Rules;
use operation::problem::Problem;
use operation::secrets::Secrets;
use reads::read::Reader;

/// The days that callers without a paid key see.
pub(crate) const FREE_DAYS: i64 = 30;
/// The rows of a preview.
pub(crate) const PREVIEW_ROWS: usize = 5;
/// The longest horizon, in days.
pub(crate) const DAYS_MAX: i64 = 730;
/// The most rows of an answer.
pub(crate) const ROWS_MAX: usize = 200;
const DISCLAIMER: &str = "Public-record dates, as stated by their sources; not investment advice; dates move.";
const READOUTS: &str = "the date of a readout is the end of data taking, not the announcement of results";
const CAPPED: &str =
    "without a paid key this serves the next 30 days only, capped; a paid key unlocks the full horizon, more rows and watchlists";
/// A source that was read completely at most this long ago counts as read.
const STALE_DAYS: i64 = 2;

/// A list of events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Catalysts")]
pub struct Events {
    /// Date of the last refresh, YYYY-MM-DD; empty before the first.
    pub updated: String,
    /// Tier of the caller: `free` without a key.
    pub tier: &'static str,
    /// The first day of the list, YYYY-MM-DD.
    pub from: String,
    /// The last day of the list, YYYY-MM-DD.
    pub to: String,
    /// The number of events in this answer.
    pub count: usize,
    /// The number of events on all pages; null if there are too many to count.
    pub total: Option<u64>,
    /// Send it as `after` to get the next page; null at the end.
    pub next: Option<String>,
    /// The events, those with the earliest window first.
    pub catalysts: Vec<Catalyst>,
    /// The last day for which every source has been read completely; empty before the first complete sync run.
    pub through_date: String,
    /// The number of complete sync runs.
    pub snapshot_count: u64,
    /// What the dates are and are not.
    pub disclaimer: &'static str,
}

/// How much of a list a call gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The last day, as days from today on.
    pub(crate) days: i64,
    /// The most rows.
    pub(crate) rows: usize,
    /// Whether the call gets the free part only: no more is shown or counted.
    pub(crate) is_free: bool,
}

/// Determines how much of a list a call gets, and adds the notes about it. `free_rows_max` is the most rows that a caller without a paid key gets; `None` for
/// as many as its tier gets. It does not limit callers who have paid.
pub(crate) fn extent(reader: &mut Reader<Catalysts>, horizon: &Horizon, free_rows_max: Option<usize>) -> Extent {
    let Horizon { days, limit, .. } = *horizon;
    let is_free = reader.is_limited();
    if !is_free {
        return Extent { days, rows: reader.rows(limit.min(ROWS_MAX)), is_free };
    }
    let rows = free_rows_max.map_or_else(|| reader.rows(limit), |most| limit.min(most));
    if days > FREE_DAYS || free_rows_max.is_some() {
        reader.note(CAPPED.to_owned());
    }
    Extent { days: days.min(FREE_DAYS), rows, is_free }
}

/// Which upcoming events a list holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) kind: Option<String>,
    pub(crate) phase: Option<String>,
}

impl Chosen {
    /// The name of the list to walk.
    fn list(&self) -> String {
        match (&self.phase, &self.kind) {
            (Some(phase), _) => format!("phase/{phase}"),
            (None, Some(kind)) => format!("kind/{kind}"),
            (None, None) => "all".to_owned(),
        }
    }

    /// What selects the events of a list.
    fn filter(&self, days: i64) -> String {
        format!("{}/{days}", self.kind.as_deref().unwrap_or_default())
    }

    /// What the `after` of pages belongs to.
    fn search(&self, days: i64) -> String {
        format!("upcoming/{}/{}", self.list(), self.filter(days))
    }

    /// Checks the `after` of an unpaid call, whose preview has the first events whatever is asked.
    ///
    /// # Errors
    /// `cursor-invalid` for an `after` of another list.
    pub(crate) fn check_after(&self, secrets: &Secrets, horizon: &Horizon) -> Result<(), Problem> {
        let read = |text: &str| read_own::<Continuation>(secrets, &self.search(horizon.days), text).map(drop);
        horizon.after.as_deref().map_or(Ok(()), read)
    }

    fn takes(&self, record: &Catalyst) -> bool {
        self.kind.as_ref().is_none_or(|kind| record.kind == *kind)
    }
}

/// Lists upcoming events whose window begins within the days of the extent, those with the earliest window first.
///
/// # Errors
/// `cursor-invalid` for an `after` of another list; `unavailable`.
pub(crate) async fn upcoming(
    reader: &mut Reader<Catalysts>,
    chosen: &Chosen,
    extent: Extent,
    after: Option<&str>,
) -> Result<Events, Problem> {
    let today = reader.today();
    let (to, list, filter) = (today.saturating_add(extent.days.days()), chosen.list(), chosen.filter(extent.days));
    let (secrets, search) = (reader.context().secrets.clone(), chosen.search(extent.days));
    let place: Option<Continuation> = after.map(|text| read_own(&secrets, &search, text)).transpose()?;

    let open = open_windows(reader, chosen, today).await?;
    let is_after = |record: &&Catalyst| match &place {
        None => true,
        Some(Continuation::Open { from, id }) => (&record.window.from, &record.id) > (from, id),
        Some(Continuation::Later(_)) => false,
    };
    let mut rows: Vec<Catalyst> = open.iter().filter(is_after).take(extent.rows).cloned().collect();
    let left_open = open.iter().filter(is_after).count() - rows.len();

    let is_walked_whole = chosen.phase.is_none() || chosen.kind.is_none();
    let selects = |record: &Catalyst| chosen.takes(record);
    let selects: Option<Selects<'_, Catalyst>> = if is_walked_whole { None } else { Some(&selects) };
    let token = match &place {
        Some(Continuation::Later(token)) => Some(token.as_str()).filter(|token| !token.is_empty()),
        _ => None,
    };
    let walk =
        Walk { list: &list, part: Segment::soonest_first(&(today..=to)), filter: &filter, limit: extent.rows - rows.len(), after: token };
    let later = reader.ranked(walk, selects).await?;
    let total = later.total.map(|total| total + open.len() as u64);
    let has_later = later.next.is_some() || later.total.is_none_or(|total| total > 0);
    let next = if left_open > 0 {
        rows.last().map(|last| Continuation::Open { from: last.window.from.clone(), id: last.id.clone() })
    } else if rows.len() == extent.rows {
        // The page ends with the last open window.
        has_later.then(|| Continuation::Later(String::new()))
    } else {
        later.next.map(Continuation::Later)
    };
    // The place is the same at every position, as in other lists.
    let next = next.map(|place| encode_place(&secrets, CatalystsRules::NAME, Seq(0), &search, &place));
    rows.extend(later.items);
    events(reader, rows, total, next, (today, to)).await
}

/// The upcoming events whose window began before today and is not over, those with the earliest window first.
async fn open_windows(reader: &Reader<Catalysts>, chosen: &Chosen, today: Date) -> Result<Vec<Catalyst>, Problem> {
    let (list, yesterday, now) = (chosen.list(), today.saturating_sub(1.day()), today.to_string());
    let selects = |record: &Catalyst| record.window.to >= now && chosen.takes(record);
    let mut open = Vec::new();
    for (suffix, days) in [(MONTH_SUFFIX, MONTH_DAYS), (LONG_SUFFIX, YEAR_DAYS)] {
        let (list, part) = (format!("{list}{suffix}"), Segment::soonest_first(&(today.saturating_sub(days.days())..=yesterday)));
        let walk = Walk { list: &list, part, filter: "", limit: PLACES_MAX, after: None };
        open.extend(reader.ranked(walk, Some(&selects)).await?.items);
    }
    open.sort_by(|one, other| (&one.window.from, &one.id).cmp(&(&other.window.from, &other.id)));
    Ok(open)
}

/// Where the events of a company or a drug are found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    /// What the `after` of pages belongs to.
    search: String,
    /// The names of the lists that hold the events, among others.
    lists: Vec<String>,
    /// The ids of events that are in no list of the subject.
    ids: Vec<String>,
}

impl Subject {
    /// A subject whose events are in lists.
    pub(crate) fn in_lists(lists: Vec<String>) -> Self {
        Self { search: lists.join(","), lists, ids: Vec::new() }
    }

    /// A subject whose events have these ids. `name` tells it from other subjects.
    pub(crate) fn with_ids(name: String, ids: Vec<String>) -> Self {
        Self { search: name, lists: Vec::new(), ids }
    }
}

/// Lists the events of a company or a drug: upcoming ones first, then, for paid keys, those that are over, the latest first. A tool shows a caller without a
/// paid key the rows of a preview.
///
/// # Errors
/// `cursor-invalid` for an `after` of another list; `unavailable`.
pub(crate) async fn of_subject(
    reader: &mut Reader<Catalysts>,
    subject: &Subject,
    horizon: &Horizon,
    selects: Selects<'_, Catalyst>,
) -> Result<Events, Problem> {
    let free_rows_max = reader.is_tool().then_some(PREVIEW_ROWS);
    let extent = extent(reader, horizon, free_rows_max);
    let today = reader.today();
    let (secrets, search) = (reader.context().secrets.clone(), format!("of/{}/{}/{}", subject.search, extent.days, extent.is_free));
    let place: Option<PlaceInList> = horizon.after.as_deref().map(|text| read_own(&secrets, &search, text)).transpose()?;
    let part = Segment { buckets: 0..=0, ranks: i64::MIN..=i64::MAX };
    let (mut items, mut is_counted) = (Vec::new(), true);
    for list in &subject.lists {
        let walk = Walk { list, part: part.clone(), filter: "", limit: PLACES_MAX, after: None };
        let found = reader.ranked(walk, Some(selects)).await?;
        is_counted &= found.total.is_some();
        items.extend(found.items);
    }
    let (ids, left_out) = subject.ids.split_at(subject.ids.len().min(PLACES_MAX));
    is_counted &= left_out.is_empty();
    let by_id = reader.records_by_id(ids).await?;
    items.extend(by_id.into_iter().filter(|record| record.is_listed() && selects(record)));
    items.sort_by(|one, other| order_of(one).cmp(&order_of(other)));
    let to = today.saturating_add(extent.days.days()).to_string();
    let (upcoming, mut over): (Vec<Catalyst>, Vec<Catalyst>) = items.into_iter().partition(|record| record.status_on(today) == "upcoming");
    over.reverse();
    let mut rows: Vec<Catalyst> = upcoming.into_iter().filter(|record| record.window.from <= to).collect();
    if !extent.is_free {
        rows.extend(over);
    }
    let total = rows.len();
    let next = cut_page(&mut rows, today, place.as_ref(), extent.rows);
    let next = next.map(|place| encode_place(&secrets, CatalystsRules::NAME, Seq(0), &search, &place));
    let days = (today, today.saturating_add(extent.days.days()));
    events(reader, rows, is_counted.then_some(total as u64), next, days).await
}

/// The place of an event among those of a company or a drug that are upcoming.
fn order_of(record: &Catalyst) -> (&str, &str) {
    (&record.window.from, &record.id)
}

/// Where a page of the events of a company or a drug ends: its last event.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PlaceInList {
    /// Whether the event is over.
    is_over: bool,
    from: String,
    id: String,
}

impl PlaceInList {
    fn of(record: &Catalyst, today: Date) -> Self {
        let (from, id) = order_of(record);
        Self { is_over: record.status_on(today) != "upcoming", from: from.to_owned(), id: id.to_owned() }
    }

    /// Whether an event comes after this place.
    fn is_before(&self, record: &Catalyst, today: Date) -> bool {
        let is_over = record.status_on(today) != "upcoming";
        let (own, place) = (order_of(record), (self.from.as_str(), self.id.as_str()));
        match (self.is_over, is_over) {
            (false, false) => own > place,
            (true, true) => own < place,
            (was_over, _) => !was_over,
        }
    }
}

/// Leaves the page after a place in a list: upcoming events, then those that are over, the latest first. Returns the place where the next page begins.
fn cut_page(rows: &mut Vec<Catalyst>, today: Date, place: Option<&PlaceInList>, limit: usize) -> Option<PlaceInList> {
    rows.retain(|record| place.is_none_or(|place| place.is_before(record, today)));
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    rows.last().filter(|_| has_more).map(|last| PlaceInList::of(last, today))
}

/// Builds the answer, with the notes that every list has.
async fn events(
    reader: &mut Reader<Catalysts>,
    catalysts: Vec<Catalyst>,
    total: Option<u64>,
    next: Option<String>,
    (from, to): (Date, Date),
) -> Result<Events, Problem> {
    let catalysts: Vec<Catalyst> = catalysts.into_iter().map(|record| record.on_day(from)).collect();
    let completeness = reader.completeness().await?;
    reader.note(READOUTS.to_owned());
    let stale = from.saturating_sub(STALE_DAYS.days()).to_string();
    if !completeness.through_date.is_empty() && completeness.through_date < stale {
        let since = &completeness.through_date;
        reader.note(format!("a source has not been read completely since {since}; a date that moved after that day may be missing"));
    }
    Ok(Events {
        updated: reader.updated().await?,
        tier: reader.tier(),
        from: from.to_string(),
        to: to.to_string(),
        count: catalysts.len(),
        total,
        next,
        catalysts,
        through_date: completeness.through_date,
        snapshot_count: completeness.snapshot_count,
        disclaimer: DISCLAIMER,
    })
}

/// Where a page continues.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Continuation {
    /// After an event whose window is open.
    Open { from: String, id: String },
    /// After an event whose window begins later; at the first of them if there is no text.
    Later(String),
}

/// Reads the place that an answer gave for the same search.
fn read_own<P: DeserializeOwned>(secrets: &Secrets, search: &str, text: &str) -> Result<P, Problem> {
    let refused = |problem: Problem| {
        let detail = "`after` is not the `next` of an answer to the same arguments; leave it out to start again".to_owned();
        Problem { detail, ..problem }
    };
    read_place(secrets, CatalystsRules::NAME, search, text).map(|(_, place)| place).map_err(refused)
}

#[cfg(test)]
mod tests {
    use crate::record::Window;

    use super::*;

    /// Proves that pages of any size join to all events of a company, each once: upcoming ones by their window, then those that are over, the latest first.
    #[test]
    fn pages_of_a_company() {
        let today: Date = "2026-11-10".parse().unwrap();
        let event = |id: &str, from: &str| Catalyst {
            id: id.to_owned(),
            status: "upcoming".to_owned(),
            window: Window { from: from.to_owned(), to: from.to_owned() },
            ..Catalyst::default()
        };
        let all = vec![
            event("a", "2026-11-10"),
            event("b", "2026-12-01"),
            event("c", "2026-12-01"),
            event("e", "2026-11-09"),
            event("d", "2026-11-09"),
            event("f", "2026-01-01"),
        ];
        for limit in 1..8 {
            let (mut shown, mut place) = (Vec::new(), None);
            loop {
                let mut rows = all.clone();
                place = cut_page(&mut rows, today, place.as_ref(), limit);
                assert!(rows.len() <= limit && !rows.is_empty());
                shown.extend(rows.into_iter().map(|record| record.id));
                if place.is_none() {
                    break;
                }
            }
            assert_eq!(shown.concat(), "abcedf", "{limit}");
        }
    }

    /// Proves that a place is read back for the same search alone, and that any other text is refused with the name of the parameter.
    #[test]
    fn places() {
        let secrets = Secrets::from_master(&[7; 32]).unwrap();
        let others = Secrets::from_master(&[8; 32]).unwrap();
        for place in [Continuation::Open { from: "2026-11-01".into(), id: "ctgov:NCT1.x".into() }, Continuation::Later(String::new())] {
            let text = encode_place(&secrets, CatalystsRules::NAME, Seq(0), "upcoming/a", &place);
            assert_eq!(read_own::<Continuation>(&secrets, "upcoming/a", &text).unwrap(), place);
            let forged = encode_place(&others, CatalystsRules::NAME, Seq(0), "upcoming/a", &place);
            let foreign = encode_place(&secrets, "recalls", Seq(0), "upcoming/a", &place);
            for (search, bad) in
                [("upcoming/b", text.as_str()), ("upcoming/a", &forged), ("upcoming/a", &foreign), ("upcoming/a", &text[1..])]
            {
                assert_eq!(read_own::<Continuation>(&secrets, search, bad).unwrap_err().parameter, "after", "{bad}");
            }
        }
        for bad in ["", "open.", "open.2026-11-01.ctgov:NCT1.x", "later.", "AQEH"] {
            assert_eq!(read_own::<Continuation>(&secrets, "upcoming/a", bad).unwrap_err().parameter, "after", "{bad}");
        }
    }
}
