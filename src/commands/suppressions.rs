//! `highwater suppress`, `unsuppress` and `suppressions`: hides fields of records from all readers, shows them again, and lists what is hidden.

use access::suppressed_records;
use access::suppression::{self, SuppressedKey, hidden_fields};
use schemas::clock::rfc3339;
use schemas::suppression::{RECORD, SuppressionRow};
use schemas::tables::ViewDef;
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
            let known = suppression::list(context).await?;
            let key = suppression::suppress(context, &kind, &key, &reason).await?;
            let SuppressedKey { kind, normal, row } = &key;
            let hidden = hidden_fields(&concerned(services::views(), &key), kind).join(", ");
            output.note(&format!("{} {} is suppressed; hidden: {hidden}", kind.name, shown(&row.key, normal)));
            let before = known.iter().find(|known| known.kind.name == kind.name && known.normal == *normal);
            if let Some(SuppressedKey { row, .. }) = before {
                output.note(&replaced_note(row));
            }
            output.note(&count_note(&key, &suppressed_records::count(context, &key).await?));
            if let Some(whole) = suppressed_records::merged_into(context, &key).await? {
                output.note(&part_note(&whole));
            }
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

/// The views that a key can concern: that of its service, if it is the key of a record.
fn concerned(views: &[&'static ViewDef], key: &SuppressedKey) -> Vec<&'static ViewDef> {
    let service = key.normal.split_once('/').map(|(service, _)| service).filter(|_| key.kind.name == RECORD.name);
    views.iter().copied().filter(|view| service.is_none_or(|service| service == view.name)).collect()
}

/// A key as it was given and, if that differs, as it is compared.
fn shown(given: &str, normal: &str) -> String {
    if given == normal { format!("{given:?}") } else { format!("{given:?}, compared as {normal:?},") }
}

/// Says what a key that is suppressed again was suppressed for before.
fn replaced_note(before: &SuppressionRow) -> String {
    let SuppressionRow { key, reason, since } = before;
    format!("it was suppressed as {key:?} since {} for the reason {reason:?}; the new reason and time replace these", rfc3339(*since))
}

/// Says which key hides the other parts of the record that a suppressed one is a part of.
fn part_note(whole: &str) -> String {
    format!("it is a part of {whole:?}, which is hidden, too; suppress the record {whole:?} to hide the other parts of that")
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
    use schemas::suppression::{KeyKind, PERSON};

    use super::*;

    /// Proves that a key that hides nothing is not reported as one that does.
    #[test]
    fn counts_are_said() {
        let key = |kind: &'static KeyKind| SuppressedKey { kind, normal: "x".to_owned(), row: SuppressionRow::default() };
        assert_eq!(count_note(&key(&PERSON), &[("filings", 2), ("labs", 0)]), "2 records have fields that are hidden (filings 2, labs 0)");
        assert!(count_note(&key(&PERSON), &[("labs", 0)]).ends_with("no record names it; another spelling is another key"));
        assert_eq!(count_note(&key(&RECORD), &[("labs", 0)]), "0 records have fields that are hidden (labs 0): no record has this id");
    }

    /// Proves that the fields of the service of a record alone are named, and those of all services for a name.
    #[test]
    fn fields_of_the_service_are_named() {
        let fields = |kind: &'static KeyKind, normal: &str| {
            let key = SuppressedKey { kind, normal: normal.to_owned(), row: SuppressionRow::default() };
            hidden_fields(&concerned(services::views(), &key), kind)
        };
        let of_record = fields(&RECORD, "labs/nih:999");
        assert!(of_record.len() == 1 && of_record[0].starts_with("labs ("), "{of_record:?}");
        assert!(fields(&PERSON, "ann oak").len() > 1);
    }

    /// Proves that a key is shown as it was given, and that a note says why and since when a key was suppressed before.
    #[test]
    fn given_keys_and_earlier_reasons_are_said() {
        assert_eq!(shown("labs/nih:999", "labs/nih:999"), "\"labs/nih:999\"");
        assert_eq!(shown("OAK, Ann", "ann oak"), "\"OAK, Ann\", compared as \"ann oak\",");
        let before = SuppressionRow { key: "Ann Oak".to_owned(), reason: "ticket 7".to_owned(), since: 0 };
        let note = "it was suppressed as \"Ann Oak\" since 1970-01-01T00:00:00.000Z for the reason \"ticket 7\"; the new reason and time replace these";
        assert_eq!(replaced_note(&before), note);
    }
}
