//! The command line: `cargo xtask new upstream NAME`, `cargo xtask new service NAME`, `cargo xtask tidy`. No logic of its own.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use xtask::new::{self, FactTopic};
use xtask::tree::{Plan, Tree};
use xtask::{Error, tidy};

/// Development tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Creates the files of something new, and adds it to every list.
    #[command(subcommand)]
    New(New),
    /// Checks what lints cannot check; prints FILE:LINE: what is wrong.
    Tidy,
}

#[derive(Subcommand)]
enum New {
    /// An upstream.
    Upstream {
        /// The upstream's name, in lower case with underscores.
        name: String,
        #[command(flatten)]
        facts: Facts,
    },
    /// A service with one record per fact of a topic.
    Service {
        /// The service's name, in lower case with underscores.
        name: String,
        /// The topic whose facts the service reads.
        #[arg(long)]
        topic: String,
    },
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Facts {
    /// An existing topic for its facts.
    #[arg(long)]
    topic: Option<String>,
    /// A new topic for its facts, whose files are created too.
    #[arg(long, value_name = "TOPIC")]
    new_topic: Option<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            print(&mut io::stderr(), &format!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<ExitCode, Error> {
    let tree = Tree::here()?;
    match command {
        Command::Tidy => {
            let findings = tidy::check(&tree)?;
            print(&mut io::stdout(), &findings.iter().map(|finding| format!("{finding}\n")).collect::<String>());
            return Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::New(New::Upstream { name, facts }) => {
            let topic = match (&facts.topic, &facts.new_topic) {
                (Some(topic), _) => FactTopic::Existing(topic),
                (None, topic) => FactTopic::New(topic.as_deref().unwrap_or_default()),
            };
            let plan = new::upstream(&tree, name, topic)?;
            write(&tree, &plan, "fill in the pages, write the module, then: HIGHWATER_BLESS=1 cargo test -p upstreams")?;
        }
        Command::New(New::Service { name, topic }) => {
            let plan = new::service(&tree, name, topic)?;
            write(&tree, &plan, "write what the record holds and how it is decided: views, schema, fold, answers")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a plan and lists its files.
fn write(tree: &Tree, plan: &Plan, next: &str) -> Result<(), Error> {
    plan.write(tree.root())?;
    let files: Vec<String> = plan.files().map(|(path, is_new)| format!("{} {path}\n", if is_new { "new " } else { "edit" })).collect();
    let new = plan.files().filter(|(_, is_new)| *is_new).count();
    print(&mut io::stdout(), &format!("{}{new} new files, {} edited; {next}\n", files.concat(), files.len() - new));
    Ok(())
}

/// Prints a text. A reader that has closed the output is no error.
fn print(out: &mut dyn Write, text: &str) {
    let _ = out.write_all(text.as_bytes());
}
