//! A reader of the feed, as a client would write it.

use serde_json::Value;

use crate::process::{Server, wait_for};

/// Reads the feed by cursor across kills, as a client does; keeps what it was answered.
#[derive(Default)]
pub(crate) struct Reader {
    cursor: String,
    to: u64,
    pub(crate) read: Vec<Value>,
}

impl Reader {
    /// One page, if the server answers at all; tells whether it says that more is there.
    pub(crate) fn step(&mut self, server: &Server, key: &str) -> Option<bool> {
        let at = if self.cursor.is_empty() { "start=earliest".to_owned() } else { format!("cursor={}", self.cursor) };
        let (status, body) = server.get(&format!("/recalls/v1/changes?limit=200&{at}"), key)?;
        // 503 says that the views are still behind this cursor.
        if status == 503 {
            return None;
        }
        let page: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, 200, "{page}");
        assert_eq!(page["from"].as_u64(), Some(self.to + 1), "pages join across kills");
        self.to = page["to"].as_u64().unwrap();
        self.cursor = page["cursor"].as_str().unwrap().to_owned();
        self.read.extend(page["changes"].as_array().unwrap().iter().cloned());
        Some(page["hasMore"] == true)
    }

    /// Reads on until the server says that nothing more is there.
    pub(crate) fn read_on(&mut self, server: &Server, key: &str) {
        wait_for("the end of the feed", || (self.step(server, key) == Some(false)).then_some(()));
    }
}
