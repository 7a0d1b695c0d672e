//! A reader of the feed, as a client would write it.

use serde_json::Value;

use crate::process::{Server, wait_for};

/// Reads the feed by cursor across kills, as a client does; keeps what it was answered.
#[derive(Default)]
pub(crate) struct Reader {
    cursor: String,
    /// The last seq read, shown or not.
    pub(crate) to: u64,
    pub(crate) read: Vec<Value>,
}

impl Reader {
    /// What it asks for next.
    pub(crate) fn path(&self) -> String {
        let at = if self.cursor.is_empty() { "start=earliest".to_owned() } else { format!("cursor={}", self.cursor) };
        format!("/recalls/v1/changes?limit=200&{at}")
    }

    /// Takes an answer to that; tells whether it says that more is there.
    pub(crate) fn take(&mut self, status: u16, body: &[u8]) -> Option<bool> {
        // 503 says that the views are still behind this cursor.
        if status == 503 {
            return None;
        }
        let page: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(status, 200, "{page}");
        assert_eq!(page["from"].as_u64(), Some(self.to + 1), "pages join across kills");
        self.to = page["to"].as_u64().unwrap();
        self.cursor = page["cursor"].as_str().unwrap().to_owned();
        self.read.extend(page["changes"].as_array().unwrap().iter().cloned());
        Some(page["hasMore"] == true)
    }

    /// One page, if the server answers at all; tells whether it says that more is there.
    pub(crate) fn step(&mut self, server: &Server, key: &str) -> Option<bool> {
        let (status, body) = server.get(&self.path(), key)?;
        self.take(status, &body)
    }

    /// Reads on until the server says that nothing more is there.
    pub(crate) fn read_on(&mut self, server: &Server, key: &str) {
        wait_for("the end of the feed", || (self.step(server, key) == Some(false)).then_some(()));
    }
}
