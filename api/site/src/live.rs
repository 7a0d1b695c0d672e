//! The items of the live list on the home page: what a change is, in a few words.

use operation::Service;
use serde_json::{Value, json};

use crate::explorer::details;
use crate::{EXPLORE, fields, record_path};

/// The path of the stream of items.
pub const PATH: &str = "/live";

/// A change of a service as an item. The script puts its texts into the page as texts.
#[must_use]
pub fn item(service: &Service, change: &Value) -> Value {
    let record = &change["record"];
    let id = record["id"].as_str();
    json!({
        "service": service.title,
        "event": change["event"],
        "at": change["recordedAt"],
        "title": fields::name(record, &service.page),
        "details": details(change),
        "href": id.map_or_else(|| format!("{EXPLORE}/{}", service.name), |id| record_path(service.name, id)),
    })
}
