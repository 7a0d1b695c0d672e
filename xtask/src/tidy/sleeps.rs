//! No test sleeps instead of waiting for a condition. A test may sleep in a loop that checks a condition, with a paused clock
//! (`start_paused`), and for the duration of a fault that it causes (`self.lasts`).

use super::rust::Code;
use super::{Finding, line_of};

/// The kind of a block, which decides whether a test may sleep in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// A function, and whether its clock is paused.
    Function { paused: bool },
    /// A loop.
    Loop,
    /// A module of tests.
    Tests,
    /// Any other block.
    Other,
}

pub(super) fn check(path: &str, text: &str, code: &Code) -> Vec<Finding> {
    let called = |at: &usize| {
        code.text.get(*at..).is_some_and(|rest| rest.trim_start_matches("sleep").trim_start_matches("_until").starts_with('('))
    };
    let mut sleeps = code.words("sleep").chain(code.words("sleep_until")).filter(called).collect::<Vec<_>>();
    sleeps.sort_unstable();
    if sleeps.is_empty() {
        return Vec::new();
    }
    let mut sleeps = sleeps.into_iter().peekable();
    let (mut blocks, mut head, mut findings) = (Vec::new(), 0, Vec::new());
    for (at, byte) in code.text.bytes().enumerate() {
        if sleeps.next_if_eq(&at).is_some() && (is_of_tests(path) || blocks.contains(&Block::Tests)) && !is_allowed(code, at, &blocks) {
            findings.push(Finding::new(path, line_of(text, at), "a test must wait for a condition instead of sleeping"));
        }
        match byte {
            b'{' => {
                blocks.push(kind(code.text.get(head..at).unwrap_or_default()));
                head = at + 1;
            }
            b'}' => {
                blocks.pop();
                head = at + 1;
            }
            b';' => head = at + 1,
            _ => {}
        }
    }
    findings
}

/// Whether a whole file is test code.
fn is_of_tests(path: &str) -> bool {
    // The crates below tests/ are programs and servers, except for their own tests.
    let is_crate = ["tests/bench/src/", "tests/engines/src/", "tests/simulator/"].iter().any(|folder| path.starts_with(folder));
    let file = path.rsplit('/').next().unwrap_or_default();
    ["tests.rs", "testing.rs"].contains(&file)
        || file.ends_with("_tests.rs")
        || path.contains("/contract")
        || (!is_crate && (path.starts_with("tests/") || path.contains("/tests/")))
}

fn is_allowed(code: &Code, at: usize, blocks: &[Block]) -> bool {
    let around = blocks.iter().rev().find(|block| !matches!(block, Block::Other));
    let open = at + code.text.get(at..).and_then(|rest| rest.find('(')).unwrap_or(0) + 1;
    matches!(around, Some(Block::Loop | Block::Function { paused: true })) || code.text.get(open..code.close(open)) == Some("self.lasts")
}

/// Returns the kind of the block that the code before a brace opens.
fn kind(head: &str) -> Block {
    let has = |word: &str| head.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word);
    if has("fn") {
        Block::Function { paused: has("start_paused") }
    } else if has("mod") && has("cfg") && has("test") {
        Block::Tests
    } else if !has("impl") && ["loop", "while", "for"].into_iter().any(has) {
        Block::Loop
    } else {
        Block::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text, &Code::of(text)).iter().map(|finding| finding.line).collect()
    }

    /// Proves that a sleep is reported only in tests, and there only outside of loops.
    #[test]
    fn sleeps_in_tests() {
        let bare = "#[test]\nfn x() {\n    thread::sleep(D);\n    let y = || { sleep_until(d) };\n}\n";
        assert_eq!(lines("tests/scenarios/x.rs", bare), [3, 4]);
        assert_eq!(lines("ingest/tests/x.rs", bare), [3, 4]);
        assert_eq!(lines("tests/simulator/src/tests.rs", bare), [3, 4]);
        assert!(lines("tests/simulator/src/server.rs", bare).is_empty() && lines("ingest/src/runner.rs", bare).is_empty());
        let module = format!("fn y() {{ sleep(d); }}\n\n#[cfg(test)]\nmod tests {{\n{bare}}}\n");
        assert_eq!(lines("ingest/src/runner.rs", &module), [7, 8]);
    }

    /// Proves where a test may sleep.
    #[test]
    fn allowed_sleeps() {
        let path = "tests/scenarios/x.rs";
        for may in [
            "fn until() { loop { if look() { return; } sleep(D); } }",
            "fn until() { while !look() { match x { Y => { sleep(D); } } } }",
            "#[tokio::test(start_paused = true)]\nasync fn x() { tokio::time::sleep(D).await; }",
            "fn strike(&self) { signal(); thread::sleep(self.lasts); }",
            "use std::thread::sleep;",
        ] {
            assert!(lines(path, may).is_empty(), "{may}");
        }
        for not in
            ["fn x() { while look() {} sleep(D); }", "impl X for Y { fn x() { sleep(D); } }", "fn x() { loop { fn y() { sleep(D); } } }"]
        {
            assert_eq!(lines(path, not), [1], "{not}");
        }
    }
}
