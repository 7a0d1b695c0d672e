//! The list of a product's files.

use jiff::civil::Date;
use serde::Deserialize;
use texts::numbers::has_only_digits;

use crate::{UpstreamError, drift, json, text};

/// The most files that a list may have.
const FILES_MAX: usize = 10_000;
/// The century of the two digits of a year in a day's file.
const CENTURY: i16 = 2_000;

/// A listed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: String,
    /// Its size and when it was last modified, as text. It changes when the file is published again.
    pub(super) version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    bulk_data_product_bag: Vec<Product>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Product {
    product_file_bag: Files,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Files {
    #[serde(default)]
    file_data_bag: Vec<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct File {
    file_name: String,
    file_size: serde_json::Value,
    file_last_modified_date_time: serde_json::Value,
}

/// Reads the answer of the product endpoint.
///
/// # Errors
/// When it is not a list, or most of its files have no name.
pub(super) fn read(stream: &'static str, body: &[u8]) -> Result<Vec<Listed>, UpstreamError> {
    let mut warnings = Vec::new();
    let body = json::body_text(body, &mut warnings);
    let body: Body = serde_json::from_str(&body).map_err(|error| json::not_json(stream, &body, &error))?;
    let files: Vec<File> = body.bulk_data_product_bag.into_iter().flat_map(|product| product.product_file_bag.file_data_bag).collect();
    if files.len() > FILES_MAX {
        let reason = format!("{} files are listed, more than {FILES_MAX}", files.len());
        return Err(UpstreamError::Stop { stream, field: "fileDataBag".to_owned(), reason });
    }
    drift::share(stream, "fileName", files.iter().filter(|file| file.file_name.is_empty()).count(), files.len())?;
    let listed = files.into_iter().map(|file| {
        let version = format!("{} {}", file.file_size, file.file_last_modified_date_time).replace('"', "");
        Listed { name: file.file_name, version: text::cut(version, 60) }
    });
    Ok(listed.filter(|file| is_file_name(&file.name)).collect())
}

/// Whether a name is one of an archive of this upstream, and safe in a path.
pub(super) fn is_file_name(name: &str) -> bool {
    day_of(name).is_some() || part_of(name).is_some()
}

/// Returns the day of the file of a day: `apc260716.zip`.
pub(super) fn day_of(name: &str) -> Option<Date> {
    let digits = name.strip_prefix("apc")?.strip_suffix(".zip")?;
    let number = |from: usize| digits.get(from..from + 2)?.parse::<i16>().ok();
    let is_day = digits.len() == 6 && has_only_digits(digits);
    let (year, month, day) = (number(0)?, number(2)?, number(4)?);
    is_day.then(|| Date::new(CENTURY + year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()).flatten()
}

/// Returns the name of the file of a day.
pub(super) fn name_of(day: Date) -> String {
    format!("apc{:02}{:02}{:02}.zip", day.year().rem_euclid(100), day.month(), day.day())
}

/// Returns the set and the number of a part of a yearly set: `18840407-20251231` and 7 of `apc18840407-20251231-07.zip`.
pub(super) fn part_of(name: &str) -> Option<(&str, u16)> {
    let (set, number) = name.strip_prefix("apc")?.strip_suffix(".zip")?.rsplit_once('-')?;
    let (from, to) = set.split_once('-')?;
    let is_day = |digits: &str| digits.len() == 8 && has_only_digits(digits);
    let is_number = (2..=3).contains(&number.len()) && has_only_digits(number);
    (is_day(from) && is_day(to) && is_number).then(|| Some((set, number.parse().ok()?))).flatten()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Proves that the names of days and parts are read, that other names are refused, and that a day's name is read back.
    #[test]
    fn names() {
        assert_eq!(day_of("apc260716.zip"), Some(date(2026, 7, 16)));
        assert_eq!(name_of(date(2026, 7, 6)), "apc260706.zip");
        assert_eq!(part_of("apc18840407-20251231-07.zip"), Some(("18840407-20251231", 7)));
        for other in ["apc261316.zip", "apc260716.xml", "apc18840407-20251231-7.zip", "../../apc260716.zip", "apc2607é.zip", "tm.pdf", ""]
        {
            assert!(!is_file_name(other), "{other}");
        }
    }
}
