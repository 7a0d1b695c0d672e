//! The command line: `cargo xtask new upstream NAME`, `cargo xtask new service NAME`, `cargo xtask tidy`. No logic of its own.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use xtask::new::{self, Asked};
use xtask::tree::{Plan, Tree};
use xtask::{Error, names, tidy};

const USAGE: &str = "\
cargo xtask new upstream NAME --topic TOPIC      an upstream of a kind of fact that exists
cargo xtask new upstream NAME --new-topic KIND   the same, with the files of a new kind of fact
cargo xtask new service NAME --topic TOPIC       a service of plain records, made of that topic's facts
cargo xtask tidy                                 checks what lints cannot; prints FILE:LINE: what is wrong
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(code) => code,
        Err(error) => {
            say(&mut io::stderr(), &format!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<ExitCode, Error> {
    match arguments {
        [] | ["help" | "--help" | "-h"] => say(&mut io::stdout(), USAGE),
        ["tidy"] => {
            let findings = tidy::check(&Tree::here()?)?;
            say(&mut io::stdout(), &findings.iter().map(|finding| format!("{finding}\n")).collect::<String>());
            return Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ["new", "upstream", rest @ ..] => {
            let tree = Tree::here()?;
            let plan = new::upstream(&tree, &Asked::read(rest, &["--topic", "--new-topic"])?)?;
            write(&tree, &plan, "fill in the pages, write the module, then: HIGHWATER_BLESS=1 cargo test -p upstreams")?;
        }
        ["new", "service", rest @ ..] => {
            let tree = Tree::here()?;
            let plan = new::service(&tree, &Asked::read(rest, &["--topic"])?)?;
            write(&tree, &plan, "write what the record holds and how it is decided: views, schema, fold, answers")?;
        }
        ["new", what, ..] => return Err(unknown("nothing new is called", what, &["upstream", "service"])),
        ["new"] => return Err(Error::Refused("a new what? upstream or service".to_owned())),
        [command, ..] => return Err(unknown("unknown command", command, &["new", "tidy", "help"])),
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(what: &str, given: &str, known: &[&str]) -> Error {
    Error::Refused(format!("{what} \"{given}\"{}", names::hint(given, known.iter().copied())))
}

/// Writes a plan and says which files it took.
fn write(tree: &Tree, plan: &Plan, next: &str) -> Result<(), Error> {
    plan.write(tree.root())?;
    let files: Vec<String> = plan.files().map(|(path, is_new)| format!("{} {path}\n", if is_new { "new " } else { "edit" })).collect();
    let new = plan.files().filter(|(_, is_new)| *is_new).count();
    say(&mut io::stdout(), &format!("{}{new} new files, {} edited; {next}\n", files.concat(), files.len() - new));
    Ok(())
}

/// Who closed our output needs no more of it.
fn say(out: &mut dyn Write, words: &str) {
    let _ = out.write_all(words.as_bytes());
}
