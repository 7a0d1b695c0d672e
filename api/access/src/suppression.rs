//! Suppresses keys, so that readers no longer see fields of the records that the keys name, and takes that back.
//!
//! Promise: a command takes effect on this node before it returns, and on other nodes within
//! [`SUPPRESSION_CHECK_INTERVAL`](view_store::suppression::SUPPRESSION_CHECK_INTERVAL).

use operation::context::{Context, Part, store_problem};
use operation::problem::Problem;
use schemas::error_code::ErrorCode;
use schemas::names::hint;
use schemas::suppression::{KEY_CHARS_MAX, KINDS, KeyKind, REASON_BYTES_MAX, RECORD, SUPPRESSIONS_MAX, Suppression, SuppressionRow};
use schemas::tables::ViewDef;
use schemas::views::accounts::{self, AccountCommand};
use view_store::suppression::suppressed;

use crate::append::{CommandPolicy, append_command};

/// A suppressed key.
#[derive(Clone, Debug)]
pub struct SuppressedKey {
    /// The kind of the key.
    pub kind: &'static KeyKind,
    /// The key in the form in which it is compared.
    pub normal: String,
    /// The key as it was given, why, and since when it is suppressed.
    pub row: SuppressionRow,
}

/// The views of the services, which say what they hide. The engine sets them.
#[derive(Debug, Default)]
pub struct ServiceViews(pub &'static [&'static ViewDef]);

impl Part for ServiceViews {}

/// The fields that services hide for a kind of key: `labs (pi)`.
#[must_use]
pub fn hidden_fields(views: &[&ViewDef], kind: &KeyKind) -> Vec<String> {
    let hidden_in = |view: &&ViewDef| {
        let mut fields: Vec<&str> = Vec::new();
        for field in view.hides.iter().filter(|hides| hides.kind.name == kind.name).flat_map(|hides| hides.hidden) {
            if !fields.contains(field) {
                fields.push(field);
            }
        }
        (!fields.is_empty()).then(|| format!("{} ({})", view.name, fields.join(", ")))
    };
    views.iter().filter_map(hidden_in).collect()
}

/// Lists all suppressed keys, sorted by kind and key.
///
/// # Errors
/// When the rows cannot be read.
pub async fn list(ctx: &Context) -> Result<Vec<SuppressedKey>, Problem> {
    let rows = suppressed(&*ctx.live(&accounts::VIEW).await?).await.map_err(store_problem)?;
    Ok(rows.into_iter().map(|(kind, normal, row)| SuppressedKey { kind, normal, row }).collect())
}

/// Hides the fields of all records that a key names from all readers. Returns the key as it is compared.
///
/// # Errors
/// `parameter-invalid` for an unknown kind, a key that is none of its kind, a reason that is no line of text, or one key too many; `unavailable`.
pub async fn suppress(ctx: &Context, kind: &str, key: &str, reason: &str) -> Result<SuppressedKey, Problem> {
    let (kind, normal) = checked(ServiceViews::of(ctx).0, kind, key)?;
    let known = list(ctx).await?;
    if known.len() >= SUPPRESSIONS_MAX && !known.iter().any(|known| (known.kind.name, &known.normal) == (kind.name, &normal)) {
        return Err(Problem::parameter("key", format!("{SUPPRESSIONS_MAX} keys are suppressed, the most allowed")));
    }
    append(ctx, kind, &normal, AccountCommand::Suppress(suppression(kind, key, reason)?)).await?;
    find(ctx, kind, &normal).await?.ok_or_else(|| Problem::new(ErrorCode::Unavailable, "the key was shown again by another command"))
}

/// Shows the fields again that [`suppress`] hid.
///
/// # Errors
/// As [`suppress`]; `not-found` for a key that is not suppressed.
pub async fn unsuppress(ctx: &Context, kind: &str, key: &str, reason: &str) -> Result<SuppressedKey, Problem> {
    let (kind, normal) = checked(ServiceViews::of(ctx).0, kind, key)?;
    let not_found = || Problem::new(ErrorCode::NotFound, format!("the {} {key:?} is not suppressed", kind.name));
    let known = find(ctx, kind, &normal).await?.ok_or_else(not_found)?;
    append(ctx, kind, &normal, AccountCommand::Unsuppress(suppression(kind, key, reason)?)).await?;
    Ok(known)
}

async fn append(ctx: &Context, kind: &KeyKind, normal: &str, command: AccountCommand) -> Result<(), Problem> {
    let subject = format!("suppression/{}/{normal}", kind.name);
    append_command(ctx, &accounts::VIEW, &subject, CommandPolicy::Always, &command).await
}

async fn find(ctx: &Context, kind: &KeyKind, normal: &str) -> Result<Option<SuppressedKey>, Problem> {
    Ok(list(ctx).await?.into_iter().find(|known| known.kind.name == kind.name && known.normal == normal))
}

/// The kind with a name, and the key as it is compared.
fn checked(views: &[&ViewDef], kind: &str, key: &str) -> Result<(&'static KeyKind, String), Problem> {
    let names = || KINDS.iter().map(|kind| kind.name);
    let known = KeyKind::from_name(kind).ok_or_else(|| {
        let list = names().collect::<Vec<_>>().join(", ");
        Problem::parameter("kind", format!("kind: unknown kind {kind:?}{} (known: {list})", hint(kind, names())))
    })?;
    let wrong = || Problem::parameter("key", format!("key: {key:?} is not {}, of at most {KEY_CHARS_MAX} characters", known.about));
    let normal = known.normalize(key).ok_or_else(wrong)?;
    if known.name == RECORD.name {
        check_record(views, &normal)?;
    }
    Ok((known, normal))
}

/// Refuses a record whose service hides nothing.
fn check_record(views: &[&ViewDef], key: &str) -> Result<(), Problem> {
    let hides = |view: &&&ViewDef| view.hides.iter().any(|hides| hides.kind.name == RECORD.name);
    let services = || views.iter().filter(hides).map(|view| view.name);
    match key.split_once('/') {
        Some((service, id)) if services().any(|name| name == service) && !id.is_empty() => Ok(()),
        given => {
            let service = given.map_or(key, |(service, _)| service);
            let list = services().collect::<Vec<_>>().join(", ");
            let detail = format!("key: {key:?} is not SERVICE/ID with one of the services {list}{}", hint(service, services()));
            Err(Problem::parameter("key", detail))
        }
    }
}

fn suppression(kind: &KeyKind, key: &str, reason: &str) -> Result<Suppression, Problem> {
    let reason = reason.trim();
    if reason.is_empty() || reason.len() > REASON_BYTES_MAX || reason.chars().any(char::is_control) {
        return Err(Problem::parameter("reason", format!("reason: must be one line of 1 to {REASON_BYTES_MAX} bytes")));
    }
    Ok(Suppression { kind: kind.name.to_owned(), key: key.trim().to_owned(), reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::VIEWS;

    /// Proves that unknown kinds, empty keys, records of services that hide nothing, and reasons that are no line are refused with the argument's
    /// name and the nearest known value.
    #[test]
    fn wrong_arguments_are_named() {
        for (kind, key, parameter, part) in [
            ("persn", "Ann Oak", "kind", "person"),
            ("person", " .", "key", "name of a person"),
            ("person", &"a".repeat(201), "key", "200"),
            ("record", "nih:1", "key", "SERVICE/ID"),
            ("record", "lab/nih:1", "key", "labs"),
            ("record", "labs/", "key", "SERVICE/ID"),
            ("record", "recalls/CPSC:1", "key", "labs"),
        ] {
            let problem = checked(VIEWS, kind, key).err().unwrap();
            assert_eq!(problem.parameter, parameter, "{kind} {key}");
            assert!(problem.detail.contains(part), "{}", problem.detail);
        }
        assert_eq!(checked(VIEWS, "record", " labs/nih:1 ").unwrap().1, "labs/nih:1");
        for reason in ["", " ", "a\nb", &"a".repeat(501)] {
            assert_eq!(suppression(&RECORD, "labs/nih:1", reason).unwrap_err().parameter, "reason");
        }
        assert_eq!(hidden_fields(VIEWS, &RECORD), ["filings (owners)", "labs (pi)"]);
    }
}
