//! Records that are hidden on request, in lists whose order and conditions follow from what is hidden. A row would tell it: by the day from which on it is
//! listed, by the amount up to which it is, or by the rule whose list it is in. So these lists leave the records out, and say how many there are in a part
//! of the list that does not depend on a hidden field.

use std::collections::HashMap;

use crate::record::Parcel;
use feed::latest::{LatestAt, PositionKey};
use feed::places::{Segment, Walk};
use operation::context::Part;
use operation::problem::Problem;
use reads::read::{Reader, hidden_note};

use super::watchable_feed::Parcels;

/// The most parts of lists whose totals are kept. Those of all townships are fewer.
const TOTALS_MAX: usize = 1_000;

/// How many records are hidden in parts of lists, by list and part, at the position that most calls ask for. A total of `None` means that the list was too long to
/// count all. Counting one reads every record of its part.
#[derive(Default)]
struct HiddenTotals(LatestAt<PositionKey, HashMap<(String, Segment), Option<u64>>>);

impl Part for HiddenTotals {}

/// Whether a list shows a record.
pub(super) fn is_shown(record: &Parcel) -> bool {
    !record.suppressed
}

/// Whether any record is hidden on request.
pub(super) fn may_be_hidden(reader: &Reader<Parcels>) -> bool {
    reader.at.view.rendition() != 0
}

/// Says how many records of a part of a list are hidden on request. `what` names them.
pub(super) async fn note_hidden(reader: &mut Reader<Parcels>, what: &str, list: &str, part: Segment) -> Result<(), Problem> {
    if may_be_hidden(reader) {
        let total = hidden_total(reader, list, part).await?;
        reader.note(note(what, total));
    }
    Ok(())
}

/// How many records of a part of a list are hidden; `None` if the list is too long to count all. They are counted once for each position of the view and each set of
/// hidden records.
async fn hidden_total(reader: &Reader<Parcels>, list: &str, part: Segment) -> Result<Option<u64>, Problem> {
    let (totals, at, place) = (HiddenTotals::of(reader.context()), reader.at.key(), (list.to_owned(), part.clone()));
    // As of an earlier time a caller below the paid tier can get fewer records, so nothing is kept of it.
    if reader.is_current()
        && let Some(Some(total)) = totals.0.read(&at, |totals| totals.get(&place).copied())
    {
        return Ok(total);
    }
    let is_hidden = |record: &Parcel| !is_shown(record);
    let total = reader.ranked(Walk { list, part, filter: "hidden", limit: 1, after: None }, Some(&is_hidden)).await?.total;
    if reader.is_current() {
        totals.0.update(at, |totals| {
            if totals.len() < TOTALS_MAX {
                totals.insert(place, total);
            }
        });
    }
    Ok(total)
}

/// The note; `None` if nothing is hidden. A total of `None` means that the list was too long to count all.
fn note(what: &str, total: Option<u64>) -> Option<String> {
    match total {
        Some(total) => hidden_note(what, usize::try_from(total).unwrap_or(usize::MAX)),
        None => Some(format!("{what} that are hidden on request are left out")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use feed::position::position;
    use feed::testing::{HOUR_MS, START_MS, World, value};
    use operation::context::Context;
    use reads::read::operation;
    use serde_json::json;

    use super::*;
    use crate::operations::exemption_flags::Arguments;
    use crate::operations::permit_tests::hide;
    use crate::record::TABLES;
    use crate::record::flag::Flag;
    use crate::rules::ParcelsRules;
    use feed::RecordFeed;

    fn flag(number: u32) -> Parcel {
        let pin = format!("0028F{number:05}000000");
        let flag = Some(Box::new(Flag { rule: "X1".into(), ..Flag::default() }));
        Parcel { id: format!("flag/{pin}/X1"), pin, county: "allegheny-pa".into(), flag, ..Parcel::default() }
    }

    /// The note of the flags of the county.
    async fn note_of_flags(context: &Arc<Context>) -> String {
        let found = value(context, &operation::<Arguments>(), json!({ "county": "allegheny-pa" })).await;
        found["note"].as_str().unwrap_or_default().to_owned()
    }

    /// Proves that hidden records are counted once for a position: a second answer takes the total that is kept. When another record is hidden they are counted
    /// again, and an answer as of an earlier time neither takes a total nor keeps one.
    #[tokio::test]
    async fn hidden_records_are_counted_once() {
        let world = World::new().await;
        let records: Vec<Parcel> = (1..=4).map(flag).collect();
        world.fill_records(&TABLES, &records).await;
        let context = world.context(START_MS + 24 * HOUR_MS);
        assert!(!note_of_flags(&context).await.contains("hidden"));
        hide(&context, &records[..1]).await;
        assert!(note_of_flags(&context).await.contains("left out: 1"));
        let (totals, at) = (HiddenTotals::of(&context), position(&context, &ParcelsRules::FEED.source, None).await.unwrap().key());
        assert_eq!(totals.0.read(&at, |totals| totals.values().copied().collect::<Vec<_>>()), Some(vec![Some(1)]));
        // A total that no count gives shows that it is taken.
        totals.0.update(at, |totals| totals.values_mut().for_each(|total| *total = Some(70)));
        assert!(note_of_flags(&context).await.contains("left out: 70"));
        let early = value(&context, &operation::<Arguments>(), json!({ "county": "allegheny-pa", "asOf": "2026-11-01T12:00:00Z" })).await;
        assert!(early["note"].as_str().unwrap().contains("left out: 1"), "{early}");
        hide(&context, &records[1..3]).await;
        assert!(note_of_flags(&context).await.contains("left out: 3"));
    }

    /// Proves that a note says how many records are hidden, and nothing if none are.
    #[test]
    fn notes() {
        assert_eq!(note("flags", Some(0)), None);
        assert_eq!(note("flags", Some(2)).unwrap(), "flags that are hidden on request and left out: 2");
        assert_eq!(note("flags", None).unwrap(), "flags that are hidden on request are left out");
    }
}
