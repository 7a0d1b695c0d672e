//! No test sleeps in place of a condition. It may between two looks (in a loop), while the clock stands (`start_paused`), and for as long
//! as a fault that it plays lasts (`self.lasts`).

use super::rust::Code;
use super::{Finding, line_of};

/// Where sleeps of tests may stand, by the blocks around them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// A function; whether its clock stands.
    Function { paused: bool },
    /// Something that is done again.
    Loop,
    /// A module of tests.
    Tests,
    /// Any other.
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
        if sleeps.next_if_eq(&at).is_some() && (is_of_tests(path) || blocks.contains(&Block::Tests)) && !may_stand(code, at, &blocks) {
            findings.push(Finding::new(path, line_of(text, at), "a test waits for a condition, not for a while"));
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

/// Whether all of a file is of tests.
fn is_of_tests(path: &str) -> bool {
    // The crates below tests/ are programs and servers, but for their own tests.
    let is_crate = ["tests/bench/src/", "tests/engines/src/", "tests/simulator/src/"].iter().any(|folder| path.starts_with(folder));
    let file = path.rsplit('/').next().unwrap_or_default();
    ["tests.rs", "testing.rs"].contains(&file)
        || file.ends_with("_tests.rs")
        || path.contains("/contract")
        || (!is_crate && (path.starts_with("tests/") || path.contains("/tests/")))
}

fn may_stand(code: &Code, at: usize, blocks: &[Block]) -> bool {
    let around = blocks.iter().rev().find(|block| !matches!(block, Block::Other));
    let open = at + code.text.get(at..).and_then(|rest| rest.find('(')).unwrap_or(0) + 1;
    matches!(around, Some(Block::Loop | Block::Function { paused: true })) || code.text.get(open..code.close(open)) == Some("self.lasts")
}

/// What the words before a brace open.
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

    /// Proves that a sleep is told in tests alone, and there only where nothing is looked at between.
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
    fn sleeps_that_may_stand() {
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
