//! A reader of the changes feed, as a client would write it.

use serde_json::Value;

use crate::process::{Server, wait_for};

/// Reads the feed by cursor, across restarts of the server, and collects the changes.
#[derive(Default)]
pub(crate) struct Reader {
    cursor: String,
    /// The last seq that the pages covered, including hidden changes.
    pub(crate) to: u64,
    pub(crate) read: Vec<Value>,
}

impl Reader {
    /// Returns the path of the next page.
    pub(crate) fn path(&self) -> String {
        let at = if self.cursor.is_empty() { "start=earliest".to_owned() } else { format!("cursor={}", self.cursor) };
        format!("/recalls/v1/changes?limit=200&{at}")
    }

    /// Takes the answer for that path; returns whether more pages are available, or `None` for 503.
    pub(crate) fn take(&mut self, status: u16, body: &[u8]) -> Option<bool> {
        // 503 means that the views are still behind this cursor.
        if status == 503 {
            return None;
        }
        let page: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(status, 200, "{page}");
        assert_eq!(page["from"].as_u64(), Some(self.to + 1), "pages must be contiguous across restarts");
        self.to = page["to"].as_u64().unwrap();
        self.cursor = page["cursor"].as_str().unwrap().to_owned();
        self.read.extend(page["changes"].as_array().unwrap().iter().cloned());
        Some(page["hasMore"] == true)
    }

    /// Reads one page; returns whether more pages are available, or `None` without an answer.
    pub(crate) fn step(&mut self, server: &Server, key: &str) -> Option<bool> {
        let (status, body) = server.get(&self.path(), key)?;
        self.take(status, &body)
    }

    /// Reads until no more pages are available.
    pub(crate) fn read_on(&mut self, server: &Server, key: &str) {
        wait_for("the end of the feed", || (self.step(server, key) == Some(false)).then_some(()));
    }
}
