//! Fields of filings as every stream has them, and the fact that they make.

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::filings::{FilingFact, base_form};
use texts::numbers::{has_only_digits, pad_cik};

use crate::{Observation, Stream, text};

pub(super) const COMPANY_CHARS_MAX: usize = 200;

/// Returns the filer of a pair, or the text itself if it is a filer.
pub(super) fn cik_of(pair: &str) -> &str {
    pair.rsplit('/').next().unwrap_or_default()
}

/// Checks an accession number: ten digits, two, six.
pub(super) fn accession(text: &str) -> Option<&str> {
    let text = text.trim();
    let is = text.len() == 20
        && text.bytes().enumerate().all(|(at, byte)| if at == 10 || at == 13 { byte == b'-' } else { byte.is_ascii_digit() });
    is.then_some(text)
}

/// Formats a filer's number (CIK) with ten digits. Zero is the number of no filer.
pub(super) fn cik(text: &str) -> Option<String> {
    pad_cik(text).filter(|cik| cik != "0000000000")
}

/// Checks an item code: `5.02`, or a whole number as before August 2004.
pub(super) fn item(text: &str) -> Option<&str> {
    let text = text.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, "00"));
    let digits = |text: &str, most: usize| (1..=most).contains(&text.len()) && has_only_digits(text);
    (digits(whole, 2) && digits(part, 2) && part.len() == 2).then_some(text)
}

/// Returns a form type as it is published.
pub(super) fn form(text: &str) -> Option<String> {
    let form = text::clean(text);
    (!form.is_empty() && form.len() <= 32).then_some(form)
}

/// Builds the part of a filing's record that every stream knows.
pub(super) fn filing(stream: &Stream, accession: &str, cik: String, form: String, company: &str, filed: Date) -> FilingFact {
    FilingFact {
        stream: stream.name.to_owned(),
        accession: accession.to_owned(),
        cik,
        company: text::cut(text::clean(company), COMPANY_CHARS_MAX),
        base_form: base_form(&form).to_owned(),
        amendment: form.ends_with("/A"),
        form,
        filing_date: filed.to_string(),
        ..FilingFact::default()
    }
}

pub(super) fn observed(stream: &Stream, fact: FilingFact) -> Observation {
    Observation::new(format!("{}/{}", stream.name, fact.identity()), FactData::Filing(Box::new(fact)))
}
