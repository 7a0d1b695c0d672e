//! Witnesses: those that are asked to cosign our checkpoints, and this process as a witness of other logs.

use std::collections::BTreeSet;
use std::error::Error as StdError;

use operation::context::{Context, Part};
use operation::secrets;
use transparency::witness::{KnownLog, OwnWitness, RecordPlace, Witness, Witnessing};

use crate::config::{Config, KnownLogEntry, WitnessEntry};
use crate::data_dir;

/// The largest number of configured witnesses: each is sent a request for each new checkpoint.
const WITNESSES_MAX: usize = 16;

const WITNESSES: &str = "checkpoints.witnesses";
const WITNESS_FOR: &str = "checkpoints.witness_for";
const WITNESS_NAME: &str = "checkpoints.witness_name";

/// The configured witnesses. `record` is where this process records what it cosigned, if it is a witness.
///
/// # Errors
/// The first setting that cannot be used, or a key file that cannot be read or created.
pub(crate) fn witnessing(config: &Config, record: RecordPlace) -> Result<Witnessing, Box<dyn StdError>> {
    let checkpoints = &config.sections.checkpoints;
    let mut names = BTreeSet::new();
    let mut witnesses = Vec::new();
    for WitnessEntry { vkey, url } in &checkpoints.witnesses {
        let witness = Witness::new(vkey, url).map_err(|error| config.invalid(WITNESSES, error.to_string()))?;
        if !names.insert(witness.name().to_owned()) {
            return Err(config.invalid(WITNESSES, format!("two witnesses have the name \"{}\"", witness.name())).into());
        }
        witnesses.push(witness);
    }
    if witnesses.len() > WITNESSES_MAX {
        return Err(config.invalid(WITNESSES, format!("must be at most {WITNESSES_MAX}")).into());
    }
    let mut known = Vec::new();
    for KnownLogEntry { origin, vkey } in &checkpoints.witness_for {
        if origin.is_empty() || origin.chars().any(char::is_control) {
            let reason = format!("origin \"{}\" is not a line of text", origin.escape_debug());
            return Err(config.invalid(WITNESS_FOR, reason).into());
        }
        let log = KnownLog::new(origin, vkey).map_err(|error| config.invalid(WITNESS_FOR, format!("vkey \"{vkey}\": {error}")))?;
        known.push(log);
    }
    if known.is_empty() {
        return Ok(Witnessing::new(witnesses, None).with_trees(services::trees));
    }
    let key_file = data_dir::witness_key(config);
    let own = OwnWitness::new(&checkpoints.witness_name, &secrets::seed(&key_file)?, known, record);
    let reason = "must be a name without spaces and \"+\" if witness_for is set, for example \"witness.example.org/w1\"";
    Ok(Witnessing::new(witnesses, Some(own.map_err(|_| config.invalid(WITNESS_NAME, reason))?)).with_trees(services::trees))
}

/// The verifier key of this process, if it is a witness.
pub(crate) fn own_key(context: &Context) -> Option<String> {
    Witnessing::of(context).own_key().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use transparency::note::Cosigner;

    use super::*;
    use crate::config::Flags;

    fn read(dir: &Path, variables: &[(&str, &str)]) -> Result<Witnessing, String> {
        let variables = variables.iter().map(|(name, value)| (format!("HIGHWATER_CHECKPOINTS__{name}"), (*value).to_owned()));
        let data_dir = ("HIGHWATER_DATA_DIR".to_owned(), dir.display().to_string());
        let config = Config::load(None, variables.chain([data_dir]), &Flags::default()).map_err(|error| error.to_string())?;
        witnessing(&config, RecordPlace::Store).map_err(|error| error.to_string())
    }

    /// Proves that witnesses and logs are read, that the witness's key is created once, and that without logs this process is not a witness.
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

    /// Proves that an unusable key, URL, name or field is refused with the setting and the value.
    #[test]
    fn unusable_settings_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |name: &str, value: &str| read(dir.path(), &[(name, value)]).unwrap_err();
        let vkey = Cosigner::new("w.example", &[1; 32]).unwrap().verifier().to_string();
        let log = "log.example/recalls+db223629+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";
        for (name, value, expected) in [
            ("WITNESSES", "[{ vkey = \"w.example+00\", url = \"https://w.example\" }]".to_owned(), "\"w.example+00\""),
            ("WITNESSES", format!("[{{ vkey = \"{log}\", url = \"https://w.example\" }}]"), "its type is 0x01, not 0x04"),
            ("WITNESSES", format!("[{{ vkey = \"{vkey}\", url = \"ftp://w.example\" }}]"), "\"ftp://w.example\""),
            (
                "WITNESSES",
                format!("[{{ vkey = \"{vkey}\", url = \"https://a\" }}, {{ vkey = \"{vkey}\", url = \"https://b\" }}]"),
                "two witnesses",
            ),
            ("WITNESSES", format!("[{{ vkey = \"{vkey}\", uri = \"https://a\" }}]"), "unknown field `uri`, expected `vkey` or `url`"),
            ("WITNESSES", format!("[{{ vkey = \"{vkey}\" }}]"), "missing field `url`"),
            ("WITNESSES", "[1]".to_owned(), "invalid type: integer `1`"),
            ("WITNESS_FOR", format!("[{{ origin = \"x\", vkey = \"{vkey}\" }}]"), "its type is 0x04, not 0x01"),
            ("WITNESS_FOR", format!("[{{ origin = \"\", vkey = \"{log}\" }}]"), "is not a line of text"),
            ("WITNESS_FOR", format!("[{{ origin = \"log.example/recalls\", vkey = \"{log}\" }}]"), "checkpoints.witness_name"),
        ] {
            let error = refused(name, &value);
            assert!(error.contains("checkpoints.") && error.contains(expected), "{value}: {error}");
        }
    }
}
