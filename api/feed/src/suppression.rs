//! What readers see of records that do not come from the store: without the fields that operators suppressed.

use schemas::views::records::Record;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use view_store::View;

/// A record in the form in which the store hides fields.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "R: DeserializeOwned"))]
struct Wrapped<R> {
    record: R,
}

/// Returns a record without the fields that the view hides from readers; `None` if it cannot be read then, which is logged.
pub fn without_hidden<R: Record>(view: &dyn View, record: R) -> Option<R> {
    if view.rendition() == 0 {
        return Some(record);
    }
    let wrapped = Wrapped { record };
    let hidden = serde_json::to_vec(&wrapped).map_err(|error| error.to_string()).and_then(|json| {
        let hidden = view.hide(&json).map_err(|error| error.to_string())?;
        hidden.map(|json| serde_json::from_slice::<Wrapped<R>>(&json).map_err(|error| error.to_string())).transpose()
    });
    match hidden {
        Ok(hidden) => Some(hidden.unwrap_or(wrapped).record),
        Err(error) => {
            tracing::error!(error, view = view.def().name, "a record with suppressed fields cannot be read");
            None
        }
    }
}
