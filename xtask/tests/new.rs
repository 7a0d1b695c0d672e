//! What `cargo xtask new` writes into a copy of the repository: these files, no others, with every list in order.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use xtask::new::{self, Asked};
use xtask::tidy;
use xtask::tree::Tree;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The repository's sources and pages in a folder of their own, without git and with few of the fixtures.
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

/// Runs the command in a copy; answers its exit code and what it says.
fn xtask(copy: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).current_dir(copy.path()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn files(copy: &TempDir) -> BTreeMap<String, String> {
    Tree::read(copy.path()).unwrap().files().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
}

/// What a command wrote: `new PATH` or `edit PATH` for each file that differs, which must be what it said.
fn written(copy: &TempDir, arguments: &[&str]) -> Vec<String> {
    let before = files(copy);
    let (code, said, error) = xtask(copy, arguments);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?}");
    let after = files(copy);
    assert!(before.keys().all(|path| after.contains_key(path)), "nothing is taken away");
    let differs = |(path, text): (&String, &String)| match before.get(path) {
        None => Some(format!("new  {path}")),
        Some(known) => (known != text).then(|| format!("edit {path}")),
    };
    let written: Vec<String> = after.iter().filter_map(differs).collect();
    let said: Vec<&str> = said.lines().collect();
    let (count, listed) = said.split_last().unwrap();
    assert_eq!(listed, written);
    let count = count.split(';').next().unwrap();
    assert!(after["README.md"].contains(count), "the README does not say {count}");
    written
}

/// Proves that lists are in order, that each name has its rooms, and that no mark of a template is left.
fn is_whole(copy: &TempDir, written: &[String]) {
    let tree = Tree::read(copy.path()).unwrap();
    assert_eq!(tidy::check(&tree).unwrap(), []);
    for path in written.iter().filter_map(|line| line.strip_prefix("new  ")) {
        let text = tree.text(path).unwrap();
        // Between two of the signs a mark has a word; nothing else that is written has one there.
        let is_mark = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        assert!(!text.is_empty() && !text.split('@').skip(1).any(|word| is_mark(&word)), "{path}:\n{text}");
    }
}

/// Proves that an upstream takes six new pages, two new sources and three lines in lists, wherever its name comes.
#[test]
fn an_upstream() {
    for name in ["aaa_first", "mmm_middle", "zzz_last"] {
        let copy = copy();
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
        is_whole(&copy, &written);
    }
}

/// Proves that a new kind of fact takes its record, its schema, a line in three lists and a row on two pages beside.
#[test]
fn an_upstream_of_a_new_kind() {
    let copy = copy();
    let mut more = written(&copy, &["new", "upstream", "mmm_middle", "--new-topic", "rrr_things"]);
    is_whole(&copy, &more);
    more.retain(|line| !line.contains("mmm_middle") && !line.contains("ingest/") && !line.contains("default.toml"));
    let wanted = [
        "edit ops/docs/contributing/architecture.md",
        "edit ops/docs/reference/topics.md",
        "new  schemas/avro/rrr_things.avsc",
        "edit schemas/src/avro.rs",
        "edit schemas/src/facts/mod.rs",
        "new  schemas/src/facts/rrr_things.rs",
        "edit schemas/src/topics.rs",
    ];
    assert_eq!(more, wanted);
    let module = fs::read_to_string(copy.path().join("schemas/src/facts/mod.rs")).unwrap();
    assert!(
        module.contains("    Recall(recalls::RecallFact) = RECALLS;\n    RrrThing(rrr_things::RrrThingFact) = RRR_THINGS;\n"),
        "{module}"
    );
}

/// Proves that a service takes its rows, schema, fold and answers, the definitions of its tables, and its lines in lists, wherever its name
/// comes.
#[test]
fn a_service() {
    for name in ["aaa_first", "mmm_middle", "zzz_last"] {
        let copy = copy();
        let written = written(&copy, &["new", "service", name, "--topic", "trials"]);
        let mut wanted: Vec<String> = [
            "api/src/services/mod.rs",
            "ops/docs/contributing/architecture.md",
            "ops/docs/reference/topics.md",
            "projector/src/services/mod.rs",
            "schemas/src/avro.rs",
            "schemas/src/topics.rs",
            "schemas/src/views/mod.rs",
            "src/default.toml",
        ]
        .map(|path| format!("edit {path}"))
        .to_vec();
        wanted.extend(["changes_since", "filter", "mod", "records"].map(|file| format!("new  api/src/services/{name}/{file}.rs")));
        wanted.extend(
            ["", "_feed", "_history", "_names", "_parked", "_sources", "_terms", "_through"]
                .map(|table| format!("new  schemas/cql/{name}{table}.cql")),
        );
        wanted.push(format!("new  projector/src/services/{name}.rs"));
        wanted.push(format!("new  schemas/avro/changes.{name}.avsc"));
        wanted.push(format!("new  schemas/src/views/{name}.rs"));
        wanted.sort_unstable_by(|a, b| a[5..].cmp(&b[5..]));
        assert_eq!(written, wanted);
        is_whole(&copy, &written);
    }
}

/// Proves that what cannot be is refused with its reason and the nearest known name.
#[test]
fn refusals() {
    let tree = Tree::read(root()).unwrap();
    for (arguments, reason) in [
        (&["upstream", "fsis", "--topic", "recalls"][..], "an upstream named \"fsis\" is there already"),
        (&["upstream", "text", "--topic", "recalls"], "is there already"),
        (&["upstream", "NHTSA", "--topic", "recalls"], "did you mean \"nhtsa\"?"),
        (&["upstream", "mmm_middle", "--topic", "recals"], "did you mean \"recalls\"?"),
        (&["upstream", "mmm_middle", "--topic", "accounts"], "is none of the topics of facts"),
        (&["upstream", "mmm_middle"], "of which kind of fact?"),
        (&["upstream", "mmm_middle", "--topic", "recalls", "--new-topic", "rrr_things"], "not both"),
        (&["upstream", "mmm_middle", "--new-topic", "trials"], "a kind of fact named \"trials\" is there already"),
        (&["upstream", "mmm_middle", "--new-topic", "trial"], "TrialEvent already"),
        (&["upstream", "mmm_middle", "--new-topic", "rejected"], "schemas/avro/rejected.avsc is there already"),
        (&["service", "records", "--topic", "recalls"], "is there already"),
        (&["service", "common", "--topic", "recalls"], "is there already"),
        (&["service", "award", "--topic", "awards"], "AwardChange already"),
        (&["service", "awards_feed", "--topic", "awards"], "schemas/cql/awards_feed.cql is there already"),
        (&["service", "mmm_middle"], "of which facts?"),
    ] {
        let asked = Asked::read(&arguments[1..], &["--topic", "--new-topic"]).unwrap();
        let plan = if arguments[0] == "upstream" { new::upstream(&tree, &asked) } else { new::service(&tree, &asked) };
        let error = plan.err().unwrap_or_else(|| panic!("{arguments:?} is not refused")).to_string();
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
}

/// Proves that the command says what it does not know and writes nothing then.
#[test]
fn a_refused_command_writes_nothing() {
    let copy = copy();
    let before = files(&copy);
    for (arguments, reason) in [
        (&["new", "upstream", "fsis", "--topic", "recalls"][..], "error: an upstream named \"fsis\" is there already\n"),
        (&["new", "service", "mmm_middle", "--new-topic", "x"], "error: unknown option \"--new-topic\", did you mean \"--topic\"?\n"),
        (&["new", "servce", "mmm_middle"], "error: nothing new is called \"servce\", did you mean \"service\"?\n"),
        (&["tidi"], "error: unknown command \"tidi\", did you mean \"tidy\"?\n"),
    ] {
        assert_eq!(xtask(&copy, arguments), (Some(1), String::new(), reason.to_owned()));
    }
    assert!(files(&copy) == before, "a refusal writes nothing");
}
