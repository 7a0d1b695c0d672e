//! What the help of arguments has in addition to their descriptions: known values and examples.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// The examples at the end of a command's help.
macro_rules! examples {
    ($($line:literal),+ $(,)?) => { concat!("Examples:", $("\n  ", $line),+) };
}
pub(crate) use examples;

/// A closed set of values. Help, completions and man pages list them. Any text is accepted here: the command refuses an unknown one, suggests the nearest
/// known one and ends with exit code 1.
#[derive(Clone)]
pub(crate) struct KnownValues(pub(crate) fn() -> Vec<&'static str>);

impl TypedValueParser for KnownValues {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}
