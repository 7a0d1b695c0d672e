//! `cargo xtask tidy`: the repository follows its rules, and the command reports a file that breaks one.

use std::fs;
use std::path::Path;
use std::process::Command;

use xtask::tree::Tree;

/// Proves that the command exits with 1 and names file and line of a broken rule, and nothing else: no file of the repository breaks one. CI runs the
/// command on the repository, where it must exit with 0.
#[test]
fn the_command_names_file_and_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let copy = tempfile::tempdir().unwrap();
    for (path, text) in Tree::read(root).unwrap().files() {
        let file = copy.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let tidy = || {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("tidy").current_dir(copy.path().join("schemas")).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let broken = copy.path().join("schemas/src/position.rs");
    fs::write(&broken, format!("{}// \t\n", fs::read_to_string(&broken).unwrap())).unwrap();
    let line = fs::read_to_string(&broken).unwrap().lines().count();
    assert_eq!(tidy(), (Some(1), format!("schemas/src/position.rs:{line}: a tab\n"), String::new()));
    fs::remove_file(copy.path().join("README.md")).unwrap();
    assert_eq!(tidy(), (Some(1), String::new(), "error: README.md: does not exist\n".to_owned()));
}
