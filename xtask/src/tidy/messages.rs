//! Log and error messages begin in lower case and end without a full stop, because they are embedded in lines and in other messages.

use super::rust::Code;
use super::{Finding, line_of};

/// The levels of the logging macros.
const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];

pub(super) fn check(path: &str, text: &str, code: &Code) -> Vec<Finding> {
    let logged = code.words("tracing").filter_map(|at| {
        let rest = code.text.get(at..)?.strip_prefix("tracing::")?;
        let level = LEVELS.iter().find(|level| rest.strip_prefix(**level).is_some_and(|rest| rest.starts_with("!(")))?;
        message(code, at + "tracing::".len() + level.len() + "!(".len())
    });
    let errors = code.text.match_indices("#[error(").filter_map(|(at, open)| message(code, at + open.len()));
    let wrong = |(at, end): (usize, usize)| {
        let reason = fault(text.get(at..end)?)?;
        Some(Finding::new(path, line_of(text, at), reason))
    };
    logged.chain(errors).filter_map(wrong).collect()
}

/// Returns the byte range of a call's message: the first string among its arguments that is not the value of a field.
fn message(code: &Code, open: usize) -> Option<(usize, usize)> {
    let close = code.close(open);
    let (mut at, mut from) = (open, open);
    while let Some(string) = code.string_after(at).filter(|string| string.end <= close) {
        let before = code.text.get(from..string.start)?.trim_end_matches(['"', '#', 'r']).trim_end();
        let whole = code.text.get(open..string.start)?;
        let depth =
            whole.chars().fold(0, |depth, c| depth + i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}')));
        if depth == 0 && (before.is_empty() || before.ends_with(',')) {
            return Some((string.start, string.end));
        }
        (at, from) = (string.end + 1, string.end + 1);
    }
    None
}

/// Returns what is wrong with a message. A first word in capitals or with a digit is a name.
fn fault(words: &str) -> Option<&'static str> {
    let first = words.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_name = first.chars().skip(1).any(|c| c.is_uppercase() || c.is_numeric());
    if words.chars().next().is_some_and(char::is_uppercase) && !is_name {
        Some("log and error messages begin in lower case")
    } else if words.ends_with('.') && !words.ends_with("..") {
        Some("log and error messages end without a full stop")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        check("x.rs", text, &Code::of(text)).into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    /// Proves that only the message is checked, wherever it is among the fields.
    #[test]
    fn messages() {
        for good in [
            r#"tracing::info!("the demo is ready")"#,
            r#"tracing::info!(page = %format!("Http://{x}."), name = "Field.", "ready")"#,
            r#"tracing::warn!(%error, "HTTP is unusual")"#,
            r#"tracing::debug!(x, "{again}")"#,
            r#"tracing::debug!(x)"#,
            r#"#[error("topic {0} has no schema")] #[error(transparent)] x("Any.")"#,
            r#"println!("Other.")"#,
        ] {
            assert!(found(good).is_empty(), "{good}: {:?}", found(good));
        }
        assert_eq!(
            found("\ntracing::error!(\n    x = \"y\",\n    \"The log is gone\",\n)"),
            [(4, "log and error messages begin in lower case".into())]
        );
        assert_eq!(found(r#"tracing::trace!(a, b, "it is gone.")"#), [(1, "log and error messages end without a full stop".into())]);
        assert_eq!(found("#[error(\"It is {0}\")]\nX,\n#[error(\"gone.\")]").len(), 2);
        assert_eq!(found(r##"tracing::info!(r#"Raw"#)"##).len(), 1);
    }
}
