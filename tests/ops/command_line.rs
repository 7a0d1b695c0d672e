//! The reference page of the command line.

use std::process::Command;

use crate::text;

/// Returns the subcommands that `highwater ARGUMENTS --help` lists.
fn listed_subcommands(arguments: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let commands = help.split_once("\nCommands:\n").map(|(_, rest)| rest).unwrap_or_default();
    let lines = commands.lines().take_while(|line| !line.is_empty());
    // Continuation lines of long descriptions are indented further.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Proves that the reference page names every command of the binary.
#[test]
fn the_reference_names_every_command() {
    let page = text("ops/docs/reference/command-line.md");
    let commands = listed_subcommands(&[]);
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let mut names: Vec<String> = listed_subcommands(&[&command]).iter().map(|sub| format!("{command} {sub}")).collect();
        if names.is_empty() {
            names.push(command);
        }
        for name in names {
            assert!(page.contains(&format!("`highwater {name}")), "the page does not name `highwater {name}`");
        }
    }
}
