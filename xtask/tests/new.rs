//! `cargo xtask new` in a copy of the repository: it writes exactly the expected files, with every list in order.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use xtask::new::{self, FactTopic};
use xtask::tidy;
use xtask::tree::Tree;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Copies the repository's text files to a temporary folder, without git and with few of the fixtures.
fn copy() -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let tree = Tree::read(root()).unwrap();
    for (path, text) in tree.files().filter(|(path, _)| !path.starts_with("tests/fixtures/") || path.contains("ordinary")) {
        let file = copy.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    copy
}

/// Runs the command in a copy. Returns its exit code, standard output and standard error.
fn xtask(copy: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).current_dir(copy.path()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn files(copy: &TempDir) -> BTreeMap<String, String> {
    Tree::read(copy.path()).unwrap().files().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
}

/// Runs a command and returns `new PATH` or `edit PATH` for each file that it changed. Its output must list the same files.
fn written(copy: &TempDir, arguments: &[&str]) -> Vec<String> {
    let before = files(copy);
    let (code, output, error) = xtask(copy, arguments);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?}");
    let after = files(copy);
    assert!(before.keys().all(|path| after.contains_key(path)), "no file is removed");
    let differs = |(path, text): (&String, &String)| match before.get(path) {
        None => Some(format!("new  {path}")),
        Some(known) => (known != text).then(|| format!("edit {path}")),
    };
    let written: Vec<String> = after.iter().filter_map(differs).collect();
    let output: Vec<&str> = output.lines().collect();
    let (count, listed) = output.split_last().unwrap();
    assert_eq!(listed, written);
    let count = count.split(';').next().unwrap();
    assert!(after["ops/docs/contributing/adding.md"].contains(count), "the page on adding does not say {count}");
    written
}

/// Proves that lists are in order, that each name has its files, and that no placeholder of a template remains.
fn is_whole(copy: &TempDir, written: &[String]) {
    let tree = Tree::read(copy.path()).unwrap();
    assert_eq!(tidy::check(&tree).unwrap(), []);
    for path in written.iter().filter_map(|line| line.strip_prefix("new  ")) {
        let text = tree.text(path).unwrap();
        // A placeholder has a word between two `@`; nothing else in the templates has.
        let is_placeholder = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        assert!(!text.is_empty() && !text.split('@').skip(1).any(|word| is_placeholder(&word)), "{path}:\n{text}");
    }
}

/// Proves that an upstream needs six new fixtures, two new sources and three lines in lists, wherever its name is sorted.
#[test]
fn an_upstream() {
    let (copy, mut all) = (copy(), Vec::new());
    for name in ["aaa_first", "mmm_middle", "zzz_last"] {
        let written = written(&copy, &["new", "upstream", name, "--topic", "recalls"]);
        let mut wanted = vec![
            format!("new  ingest/upstreams/src/{name}.rs"),
            "edit ingest/upstreams/src/lib.rs".to_owned(),
            format!("new  ingest/upstreams/tests/upstreams/{name}.rs"),
            "edit ingest/upstreams/tests/upstreams/main.rs".to_owned(),
            "edit src/default.toml".to_owned(),
        ];
        for case in ["broken", "empty", "ordinary"] {
            wanted.extend([format!("new  tests/fixtures/{name}/{case}.expected.json"), format!("new  tests/fixtures/{name}/{case}.json")]);
        }
        wanted.sort_unstable_by(|a, b| a[5..].cmp(&b[5..]));
        assert_eq!(written, wanted);
        all.extend(written);
    }
    is_whole(&copy, &all);
}

/// Proves that a new kind of fact also needs its record, its schema, a line in two lists and a row in two documents.
#[test]
fn an_upstream_of_a_new_kind() {
    let copy = copy();
    let mut more = written(&copy, &["new", "upstream", "mmm_middle", "--new-topic", "rrr_facts"]);
    is_whole(&copy, &more);
    more.retain(|line| !line.contains("mmm_middle") && !line.contains("ingest/") && !line.contains("default.toml"));
    let wanted = [
        "edit ops/docs/contributing/architecture.md",
        "edit ops/docs/reference/topics.md",
        "new  schemas/avro/rrr_facts.avsc",
        "edit schemas/src/facts/mod.rs",
        "new  schemas/src/facts/rrr_facts.rs",
        "edit schemas/src/topics.rs",
    ];
    assert_eq!(more, wanted);
    let module = fs::read_to_string(copy.path().join("schemas/src/facts/mod.rs")).unwrap();
    assert!(module.contains("    Recall(recalls::RecallFact) = RECALLS;\n    RrrFact(rrr_facts::RrrFactFact) = RRR_FACTS;\n"), "{module}");
}

/// Proves that a service needs its crate and its schema, and edits no more than four files: the list of topics, the list of services with its manifest,
/// and the definitions of tables, which stay sorted by view; wherever its name is sorted.
#[test]
fn a_service() {
    let (copy, mut all) = (copy(), Vec::new());
    for name in ["aaa_first", "mmm_middle", "zzz_last"] {
        let written = written(&copy, &["new", "service", name, "--topic", "trials"]);
        let mut wanted: Vec<String> =
            ["schemas/cql/highwater.cql", "schemas/src/topics.rs", "services/list/Cargo.toml", "services/list/src/lib.rs"]
                .map(|path| format!("edit {path}"))
                .to_vec();
        wanted.extend(
            ["lib", "operations/filter", "operations/mod", "operations/watchable_feed", "record", "rules"]
                .map(|file| format!("new  services/{name}/src/{file}.rs")),
        );
        wanted.push(format!("new  schemas/avro/changes.{name}.avsc"));
        wanted.push(format!("new  services/{name}/Cargo.toml"));
        wanted.sort_unstable_by(|a, b| a[5..].cmp(&b[5..]));
        assert_eq!(written, wanted);
        all.extend(written);
    }
    is_whole(&copy, &all);
    let tables = fs::read_to_string(copy.path().join("schemas/cql/highwater.cql")).unwrap();
    let views: Vec<&str> = tables.lines().filter_map(|line| line.strip_prefix("-- View ")?.split(':').next()).collect();
    assert!(views.is_sorted(), "{views:?}");
    for name in ["aaa_first", "mmm_middle", "zzz_last"] {
        assert_eq!(views.iter().filter(|view| **view == name).count(), 8, "{name}");
        for table in ["", "_feed", "_history", "_names", "_parked", "_sources", "_terms", "_through"] {
            assert!(tables.contains(&format!("CREATE TABLE IF NOT EXISTS {name}{table}_g1 (\n")), "{name}{table}");
        }
    }
}

/// Proves that invalid requests are refused with the reason and the nearest known name.
#[test]
fn refusals() {
    let tree = Tree::read(root()).unwrap();
    let (existing, new) = (FactTopic::Existing, FactTopic::New);
    for (name, topic, reason) in [
        ("fsis", existing("recalls"), "an upstream named \"fsis\" exists already"),
        ("text", existing("recalls"), "exists already"),
        ("NHTSA", existing("recalls"), "did you mean \"nhtsa\"?"),
        ("mmm_middle", existing("recals"), "did you mean \"recalls\"?"),
        ("mmm_middle", existing("accounts"), "is not a topic of facts"),
        ("mmm_middle", new("trials"), "a kind of fact named \"trials\" exists already"),
        ("mmm_middle", new("trial"), "TrialEvent already"),
        ("mmm_middle", new("rejected"), "schemas/avro/rejected.avsc exists already"),
    ] {
        let error = new::upstream(&tree, name, topic).err().unwrap_or_else(|| panic!("{name} is not refused")).to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
    for (name, topic, reason) in [
        ("records", "recalls", "exists already"),
        ("list", "recalls", "exists already"),
        ("bytes", "recalls", "exists already"),
        ("award", "awards", "AwardChange already"),
        ("awards_feed", "awards", "a table named \"awards_feed\" exists already"),
    ] {
        let error = new::service(&tree, name, topic).err().unwrap_or_else(|| panic!("{name} is not refused")).to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
}

/// Proves that a refused or wrong command names the problem, fails, and writes nothing.
#[test]
fn a_refused_command_writes_nothing() {
    let copy = copy();
    let before = files(&copy);
    for (arguments, code, reason) in [
        (&["new", "upstream", "fsis", "--topic", "recalls"][..], 1, "error: an upstream named \"fsis\" exists already\n"),
        (&["new", "upstream", "mmm_middle"], 2, "<--topic <TOPIC>|--new-topic <TOPIC>>"),
        (&["new", "upstream", "mmm_middle", "--topic", "recalls", "--new-topic", "rrr_facts"], 2, "cannot be used with"),
        (&["new", "upstream", "mmm_middle", "--topic"], 2, "a value is required for '--topic <TOPIC>'"),
        (&["new", "service", "mmm_middle", "--new-topic", "x"], 2, "unexpected argument '--new-topic'"),
        (&["new", "service", "mmm_middle"], 2, "--topic <TOPIC>"),
        (&["new", "servce", "mmm_middle"], 2, "similar subcommand exists: 'service'"),
        (&["tidi"], 2, "similar subcommand exists: 'tidy'"),
    ] {
        let (exit, output, error) = xtask(&copy, arguments);
        assert_eq!((exit, output.as_str()), (Some(code), ""), "{arguments:?}: {error}");
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
    assert!(files(&copy) == before, "a refused command writes nothing");
}
