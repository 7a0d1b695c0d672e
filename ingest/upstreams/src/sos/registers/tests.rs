//! Columns, days and names of registers.

use super::*;

/// Proves that every column that a register names in a reason or a count is one that it requests, so that what vanishes or is refused has its true name.
#[test]
fn columns_are_those_of_the_register() {
    for register in REGISTERS {
        let own = [register.number_column, register.entity_column, register.name_column, register.day_column];
        let checked = register.expected.iter().chain(register.counted).map(|(column, _)| *column);
        for column in own.into_iter().chain(checked).chain(register.personal.iter().copied()) {
            assert!(register.columns.contains(&column), "{column} of {}", register.stream);
        }
        let parts: Vec<String> = register.columns.iter().map(|column| format!("\"{column}\":\"11/18/2026\"")).collect();
        let text = format!("{{{}}}", parts.join(","));
        let row: Row<'_> = serde_json::from_str(&text).unwrap();
        let checks = register.expected.iter().chain(register.counted);
        assert!(checks.clone().all(|(_, is_filled)| is_filled(&row)), "{}", register.stream);
        for (column, is_filled) in checks {
            let text = format!("{{\"{column}\":\"1\"}}");
            assert!(is_filled(&serde_json::from_str(&text).unwrap()), "the check of {column} reads another column");
        }
    }
}

/// Proves that days are read in both spellings, that a time of day does not move them, and what is no day.
#[test]
fn days() {
    for (text, expected) in [
        ("2026-11-18T00:00:00.000", Some(Date::constant(2026, 11, 18))),
        ("2026-05-29T23:53:25.000", Some(Date::constant(2026, 5, 29))),
        ("11/18/2026", Some(Date::constant(2026, 11, 18))),
        ("1800-01-01T00:00:00.000", Some(Date::constant(1800, 1, 1))),
        ("13/40/2026", None),
        ("", None),
        ("soon", None),
    ] {
        assert_eq!(day(text), expected, "{text}");
    }
    assert_eq!(["11/18/2026", "2026-11-18T10:00:00.000"].map(day_key), ["2026-11-18T00:00:00.000", "2026-11-18T10:00:00.000"]);
}

/// Proves that the ending of a name is separated only where it is one.
#[test]
fn names_of_entities_that_ended() {
    for (name, expected) in [
        ("ACME LLC, Dissolved January 1, 2020", ("ACME LLC", "2020-01-01")),
        ("ACME LLC, Delinquent November 1, 2025", ("ACME LLC", "")),
        ("Dissolved Gases, LLC", ("Dissolved Gases, LLC", "")),
        ("Pulp, Dissolved Softly", ("Pulp, Dissolved Softly", "")),
    ] {
        let (own, ended) = without_ending(name);
        assert_eq!((own.as_str(), ended.as_str()), expected);
    }
}
