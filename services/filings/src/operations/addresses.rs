//! The addresses of filings and trades: an accession number in either spelling, with or without the number of the filer.

use texts::numbers::{has_only_digits, pad_cik};

/// The digits of an accession number, and of its parts: who submitted it, the year, the number.
const ACCESSION_DIGITS: usize = 18;
const SUBMITTER_DIGITS: usize = 10;
const YEAR_DIGITS: usize = 2;

/// The ids that a text can mean: `filing/0000900001-26-000001/0000900001` of `000090000126000001`. An accession number alone is taken as a filing of its
/// submitter, whose number it begins with.
pub(crate) fn ids_of(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.trim().split('/').collect();
    let is = |part: &str, word: &str| part.eq_ignore_ascii_case(word);
    let found = match parts.as_slice() {
        [number] => accession(number).map(|(number, submitter)| format!("filing/{number}/{submitter}")),
        [filing, number] if is(filing, "filing") => accession(number).map(|(number, submitter)| format!("filing/{number}/{submitter}")),
        [filing, number, cik] if is(filing, "filing") => filing_of(number, cik),
        [number, cik] => filing_of(number, cik),
        [trade, number, table, row] if is(trade, "trade") => {
            let table = ["nonDerivative", "derivative", "none"].into_iter().find(|known| is(table, known));
            table.zip(accession(number)).map(|(table, (number, _))| format!("trade/{number}/{table}/{row}"))
        }
        _ => None,
    };
    found.into_iter().collect()
}

fn filing_of(number: &str, cik: &str) -> Option<String> {
    Some(format!("filing/{}/{}", accession(number)?.0, pad_cik(cik)?))
}

/// An accession number with its dashes, and the number of its submitter; `None` for any other text.
fn accession(text: &str) -> Option<(String, String)> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.len() != ACCESSION_DIGITS || !has_only_digits(&digits) {
        return None;
    }
    let (submitter, rest) = digits.split_at_checked(SUBMITTER_DIGITS)?;
    let (year, number) = rest.split_at_checked(YEAR_DIGITS)?;
    Some((format!("{submitter}-{year}-{number}"), submitter.to_owned()))
}
