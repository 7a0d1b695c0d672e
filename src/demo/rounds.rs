//! The rounds of a demo, stored with its data, so that a demo that is started again continues after them. Otherwise its upstreams would publish once more what
//! is in its log, and nothing would change until they had more rounds than before.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use simulator::Round;

use crate::config::Config;

fn file(config: &Config) -> PathBuf {
    config.sections.data_dir.join("demo-rounds")
}

/// Reads the rounds of earlier processes. A line that a killed process left incomplete is left out, also if a later round was appended to it.
pub(super) fn load(config: &Config) -> Vec<Round> {
    let stored = std::fs::read_to_string(file(config)).unwrap_or_default();
    stored.split_inclusive('\n').filter_map(read).collect()
}

fn read(line: &str) -> Option<Round> {
    let (day, at_ms) = line.strip_suffix('\n')?.split_once(' ')?;
    Some(Round { day: day.parse().ok()?, at_ms: at_ms.parse().ok()? })
}

/// Stores a round. A failure is logged: the demo works without.
pub(super) fn store(config: &Config, round: Round) {
    let opened = OpenOptions::new().create(true).append(true).open(file(config));
    if let Err(error) = opened.and_then(|mut file| file.write_all(format!("{} {}\n", round.day, round.at_ms).as_bytes())) {
        tracing::warn!(%error, "a round of the demo could not be stored");
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::config::Flags;

    /// Proves that rounds are read back in their order, and that an incomplete line is left out.
    #[test]
    fn rounds_are_read_back() {
        let (dir, empty) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let settings = [("HIGHWATER_DATA_DIR".to_owned(), dir.path().to_str().unwrap().to_owned())];
        let config = Config::load(Some(empty.path()), settings.into_iter(), &Flags::default()).unwrap();
        assert!(load(&config).is_empty());
        let rounds =
            [Round { day: date(2026, 11, 20), at_ms: 1_795_176_000_000 }, Round { day: date(2026, 11, 21), at_ms: 1_795_176_025_000 }];
        rounds.iter().for_each(|round| store(&config, *round));
        assert_eq!(load(&config), rounds);
        let mut stored = std::fs::read_to_string(file(&config)).unwrap();
        stored.push_str("2026-11-21 17951760");
        std::fs::write(file(&config), stored).unwrap();
        assert_eq!(load(&config), rounds);
        // The first round after it is lost with it, later ones are not.
        [rounds[0], rounds[1]].iter().for_each(|round| store(&config, *round));
        assert_eq!(load(&config), [rounds[0], rounds[1], rounds[1]]);
    }
}
