//! The items of the live list on the home page: what a change is, in a few words.

use operation::Service;
use serde_json::{Value, json};

use crate::row::details;
use crate::{EXPLORE, fields, page_id, record_path};

/// The path of the stream of items.
pub const PATH: &str = "/live";

/// A change of a service as an item. The script puts its texts into the page as texts.
#[must_use]
pub fn item(service: &Service, change: &Value) -> Value {
    let record = &change["record"];
    let id = page_id(record);
    json!({
        "service": service.title,
        "event": change["event"],
        "at": change["recordedAt"],
        "title": fields::name(record, &service.page),
        "details": details(change),
        "href": id.map_or_else(|| format!("{EXPLORE}/{}", service.name), |id| record_path(service.name, id)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reads as _;
    use crate::testing::Made;

    /// Proves that an item says what its change tells in addition to the record, and that it leads to the record, or to the explorer if that has no id, or a
    /// hidden one.
    #[test]
    fn items() {
        let made = Made::new();
        let service = made.services()[0].service;
        let mut change = json!({
            "event": "modified", "seq": 3, "recordedAt": "2026-11-28T10:00:00Z", "backfill": false, "dateBefore": "2026-11-01", "slipDays": null,
            "record": { "id": "A/1", "title": "One", "kind": "a" },
        });
        let shown = item(service, &change);
        assert_eq!((&shown["title"], &shown["details"]), (&json!("One: kind a"), &json!("Date before 2026-11-01")));
        assert_eq!((&shown["href"], &shown["at"]), (&json!("/explore/made/A%2F1"), &json!("2026-11-28T10:00:00Z")));
        for hidden in [Value::Null, json!(""), json!("/7001")] {
            change["record"]["id"] = hidden;
            assert_eq!(item(service, &change)["href"], "/explore/made", "{change}");
        }
    }
}
