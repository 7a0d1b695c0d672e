//! Witnesses: their settings, the witness that this process is for other logs, and their lines in `highwater status`.

use operation::context::Part;
use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::path::{Path, PathBuf};

use operation::context::Context;
use operation::problem::Problem;
use operation::secrets;
use schemas::clock::rfc3339;
use services::common::witness::{self, CosignatureStatus, KnownLog, OwnWitness, RecordPlace, Witness, Witnessing};

use crate::config::Config;

/// Witnesses that may be configured: each costs a request for each new checkpoint.
const WITNESSES_MAX: usize = 16;

const WITNESSES: &str = "checkpoints.witnesses";
const WITNESS_FOR: &str = "checkpoints.witness_for";
const WITNESS_NAME: &str = "checkpoints.witness_name";

/// The witnesses of a configuration. `record` is where this process records what it cosigned, if it is a witness.
///
/// # Errors
/// The first setting that cannot be used, or a key file that cannot be read or made.
pub(crate) fn witnessing(config: &Config, dir: &Path, record: RecordPlace) -> Result<Witnessing, Box<dyn StdError>> {
    let mut names = BTreeSet::new();
    let mut asked = Vec::new();
    for [vkey, url] in config.tables(WITNESSES, ["vkey", "url"])? {
        let witness = Witness::new(&vkey, &url).map_err(|error| config.wrong(WITNESSES, &error.to_string()))?;
        if !names.insert(witness.name().to_owned()) {
            return Err(config.wrong(WITNESSES, &format!("two witnesses have the name \"{}\"", witness.name())).into());
        }
        asked.push(witness);
    }
    if asked.len() > WITNESSES_MAX {
        return Err(config.wrong(WITNESSES, &format!("must be at most {WITNESSES_MAX}")).into());
    }
    let mut known = Vec::new();
    for [origin, vkey] in config.tables(WITNESS_FOR, ["origin", "vkey"])? {
        if origin.is_empty() || origin.chars().any(char::is_control) {
            return Err(config.wrong(WITNESS_FOR, &format!("origin \"{}\" is no line of text", origin.escape_debug())).into());
        }
        let log = KnownLog::new(&origin, &vkey).map_err(|error| config.wrong(WITNESS_FOR, &format!("vkey \"{vkey}\": {error}")))?;
        known.push(log);
    }
    if known.is_empty() {
        return Ok(Witnessing::new(asked, None));
    }
    let seed = secrets::seed(&witness_key_file(config, dir))?;
    let name = config.text(WITNESS_NAME);
    let own = OwnWitness::new(name, &seed, known, record);
    let words = "must be a name without spaces and \"+\" where witness_for is set, as in \"witness.example.org/w1\"";
    Ok(Witnessing::new(asked, Some(own.map_err(|_| config.wrong(WITNESS_NAME, words))?)))
}

/// The file of the key that this process cosigns with.
fn witness_key_file(config: &Config, dir: &Path) -> PathBuf {
    match config.text("checkpoints.witness_key_file") {
        "" => dir.join("witness.key"),
        path => PathBuf::from(path),
    }
}

/// The lines about witnesses in `highwater status`.
///
/// # Errors
/// When the store fails.
pub(crate) async fn status_lines(context: &Context) -> Result<Vec<String>, Problem> {
    let mut lines: Vec<String> = witness::status(context).await?.iter().map(line).collect();
    lines.extend(Witnessing::of(context).own_key().map(|key| format!("this witness\tvkey {key}")));
    Ok(lines)
}

fn line(status: &CosignatureStatus) -> String {
    let CosignatureStatus { witness, service, size, cosigned, is_current, reason } = status;
    let cosigned = match cosigned {
        Some((size, time_s)) => {
            let at_ms = i64::try_from(time_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
            format!("cosigned {size} at {}", rfc3339(at_ms))
        }
        None => "cosigned none".to_owned(),
    };
    let behind = match (is_current, reason.as_str()) {
        (true, "") => String::new(),
        (false, "") => "\tbehind".to_owned(),
        (_, reason) => format!("\tbehind: {reason}"),
    };
    format!("witness {witness}\tof {service}\tcheckpoint {size}\t{cosigned}{behind}")
}

#[cfg(test)]
mod tests {
    use schemas::note::Cosigner;

    use super::*;

    fn read(dir: &Path, variables: &[(&str, &str)]) -> Result<Witnessing, String> {
        let variables = variables.iter().map(|(name, value)| (format!("HIGHWATER_CHECKPOINTS__{name}"), (*value).to_owned()));
        let config = Config::load(None, variables).map_err(|error| error.to_string())?;
        witnessing(&config, dir, RecordPlace::Store).map_err(|error| error.to_string())
    }

    /// Proves that witnesses and logs are read, that the witness's key is made once and stays, and that without logs there is no witness.
    #[test]
    fn settings_are_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path(), &[]).unwrap().own_key().is_none());
        assert!(!dir.path().join("witness.key").exists());
        let vkey = Cosigner::new("w.example", &[1; 32]).unwrap().verifier().to_string();
        let witnesses = format!("[{{ vkey = \"{vkey}\", url = \"https://w.example/prefix/\" }}]");
        let log = "log.example/recalls+db223629+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";
        let logs = format!("[{{ origin = \"log.example/recalls\", vkey = \"{log}\" }}]");
        let settings = [("WITNESSES", witnesses.as_str()), ("WITNESS_FOR", &logs), ("WITNESS_NAME", "own.example/w1")];
        let key = || read(dir.path(), &settings).unwrap().own_key().unwrap().to_string();
        assert!(key().starts_with("own.example/w1+"));
        assert_eq!(key(), key());
    }

    /// Proves that a key, an address, a name or a field that cannot be used is refused, with the setting and the key.
    #[test]
    fn what_cannot_be_used_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |name: &str, value: &str| read(dir.path(), &[(name, value)]).unwrap_err();
        let vkey = Cosigner::new("w.example", &[1; 32]).unwrap().verifier().to_string();
        let log = "log.example/recalls+db223629+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";
        for (name, value, words) in [
            ("WITNESSES", "[{ vkey = \"w.example+00\", url = \"https://w.example\" }]".to_owned(), "\"w.example+00\""),
            ("WITNESSES", format!("[{{ vkey = \"{log}\", url = \"https://w.example\" }}]"), "its type is 0x01, not 0x04"),
            ("WITNESSES", format!("[{{ vkey = \"{vkey}\", url = \"ftp://w.example\" }}]"), "\"ftp://w.example\""),
            (
                "WITNESSES",
                format!("[{{ vkey = \"{vkey}\", url = \"https://a\" }}, {{ vkey = \"{vkey}\", url = \"https://b\" }}]"),
                "two witnesses",
            ),
            ("WITNESSES", format!("[{{ vkey = \"{vkey}\", uri = \"https://a\" }}]"), "did you mean \"url\"?"),
            ("WITNESSES", format!("[{{ vkey = \"{vkey}\" }}]"), "url is missing"),
            ("WITNESSES", "[1]".to_owned(), "must be a list of tables"),
            ("WITNESS_FOR", format!("[{{ origin = \"x\", vkey = \"{vkey}\" }}]"), "its type is 0x04, not 0x01"),
            ("WITNESS_FOR", format!("[{{ origin = \"\", vkey = \"{log}\" }}]"), "is no line of text"),
            ("WITNESS_FOR", format!("[{{ origin = \"log.example/recalls\", vkey = \"{log}\" }}]"), "checkpoints.witness_name"),
        ] {
            let error = refused(name, &value);
            assert!(error.contains("checkpoints.") && error.contains(words), "{value}: {error}");
        }
    }
}
