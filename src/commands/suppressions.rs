//! `highwater suppress`, `unsuppress` and `suppressions`: hides fields of records from all readers, shows them again, and lists what is hidden.

use access::suppressed_records;
use access::suppression::{self, SuppressedKey, hidden_fields};
use schemas::clock::rfc3339;
use schemas::suppression::RECORD;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::output::Output;

/// A command on suppressed keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum SuppressionCommand {
    /// Suppresses a key.
    Suppress { kind: String, key: String, reason: String },
    /// Takes it back.
    Unsuppress { kind: String, key: String, reason: String },
    /// Lists the suppressed keys.
    List,
}

pub(super) async fn run(engine: &Engine, command: SuppressionCommand, output: &dyn Output) -> Result<(), Failure> {
    let context = &engine.context;
    match command {
        SuppressionCommand::Suppress { kind, key, reason } => {
            let key = suppression::suppress(context, &kind, &key, &reason).await?;
            let SuppressedKey { kind, normal, .. } = &key;
            output.note(&format!("{} {normal:?} is suppressed; hidden: {}", kind.name, hidden_fields(services::views(), kind).join(", ")));
            output.note(&count_note(&key, &suppressed_records::count(context, &key).await?));
        }
        SuppressionCommand::Unsuppress { kind, key, reason } => {
            let SuppressedKey { kind, normal, .. } = suppression::unsuppress(context, &kind, &key, &reason).await?;
            output.note(&format!("{} {normal:?} is shown again", kind.name));
        }
        SuppressionCommand::List => {
            for SuppressedKey { kind, row, .. } in suppression::list(context).await? {
                output.line(format!("{}\t{}\tsince {}\t{}", kind.name, row.key, rfc3339(row.since), row.reason).as_bytes());
            }
        }
    }
    Ok(())
}

/// Says how many records a key hides: also that there are none, because the key may be misspelt.
fn count_note(key: &SuppressedKey, counts: &[(&'static str, usize)]) -> String {
    let list = counts.iter().map(|(service, count)| format!("{service} {count}")).collect::<Vec<_>>().join(", ");
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let hint = match (all, key.kind.name == RECORD.name) {
        (0, true) => ": no record has this id",
        (0, false) => ": no record names it; another spelling is another key",
        _ => "",
    };
    format!("{all} records have fields that are hidden ({list}){hint}")
}

#[cfg(test)]
mod tests {
    use schemas::suppression::{KeyKind, PERSON, SuppressionRow};

    use super::*;

    /// Proves that a key that hides nothing is not reported as one that does.
    #[test]
    fn counts_are_said() {
        let key = |kind: &'static KeyKind| SuppressedKey { kind, normal: "x".to_owned(), row: SuppressionRow::default() };
        assert_eq!(count_note(&key(&PERSON), &[("filings", 2), ("labs", 0)]), "2 records have fields that are hidden (filings 2, labs 0)");
        assert!(count_note(&key(&PERSON), &[("labs", 0)]).ends_with("no record names it; another spelling is another key"));
        assert_eq!(count_note(&key(&RECORD), &[("labs", 0)]), "0 records have fields that are hidden (labs 0): no record has this id");
    }
}
