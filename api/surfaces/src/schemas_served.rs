//! Serves the Avro schemas of the public topics, whose list and paths are in [`documents::avro_schemas`].

use documents::avro_schemas::{self, PATH};

use crate::reply::Document;

/// The list and the schemas, each with its path.
pub(crate) fn documents() -> impl Iterator<Item = (String, Document)> {
    let list = Document::json(&avro_schemas::list());
    [(PATH.to_owned(), list.clone()), (PATH.trim_end_matches('/').to_owned(), list)].into_iter().chain(
        avro_schemas::public()
            .map(|(fingerprint, text)| (avro_schemas::path(&fingerprint), Document::new(text.json, "application/json").immutable())),
    )
}
