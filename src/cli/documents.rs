//! `highwater completions` and `highwater man`: documents that are generated from the definition of the command line.

use std::error::Error as StdError;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use schemas::names;

use super::arguments;
use crate::output::Output;

/// The name of the program.
const PROGRAM: &str = "highwater";

/// Writes the completion script of a shell.
pub(super) fn completions(shell: Shell, output: &dyn Output) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut arguments::command(), PROGRAM, &mut script);
    output.bytes(&script);
}

/// Writes the man page of a command, which is named by its words. With a directory: writes the pages of all commands into it, one file each.
///
/// # Errors
/// There is no such command, or the directory cannot be written.
pub(super) fn man(words: &[String], dir: Option<&Path>, output: &dyn Output) -> Result<(), Box<dyn StdError>> {
    let mut command = arguments::command();
    if let Some(dir) = dir {
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir)).map_err(|error| {
            let dir = dir.display();
            format!("{dir} cannot be written: {error}")
        })?;
        return Ok(());
    }
    // Fills in the names of the commands below.
    command.build();
    let mut at = command;
    for word in words {
        at = find(&at, word)?;
    }
    let mut page = Vec::new();
    Man::new(at).render(&mut page)?;
    output.bytes(&page);
    Ok(())
}

fn find(command: &Command, word: &str) -> Result<Command, Box<dyn StdError>> {
    let found = command.find_subcommand(word).cloned();
    found.ok_or_else(|| {
        let hint = names::hint(word, command.get_subcommands().map(Command::get_name));
        format!("unknown command \"{word}\"{hint}").into()
    })
}
