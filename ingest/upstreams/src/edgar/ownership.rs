//! `edgar.ownership`: the trades of each filing of form 3, 4 or 5 (section 16), from the file that the index names.
//!
//! That file is the complete submission including the form's XML, so no list of documents is needed. A trade belongs to the issuer that the
//! XML names, whichever filer's index row led to the file. A filing without trades gives one record that says so; a filing with a row that
//! cannot be read does not. An amendment is an additional record next to the amended filing.
//!
//! A filing never changes. One that was read or rejected is therefore not requested again; rejected ones are mapped again from their stored
//! bytes (`replay --rejected`).

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::insider_trades::{InsiderTradeFact, Owner};

use super::{OWNERSHIP, accession, cik, cik_of, file, is_missing, walk};
use crate::drift::FieldCounts;
use crate::xml::{self, Element};
use crate::{Answer, Observation, Page, Reject, Request, Stream, UpstreamError, json, text};

/// The forms that report ownership.
const FORMS: &[&str] = &["3", "3/A", "4", "4/A", "5", "5/A"];
/// The tables: the XML element of their rows and their name in our keys.
const TABLES: &[(&str, &str, &str)] =
    &[("nonDerivativeTable", "nonDerivativeTransaction", "nonDerivative"), ("derivativeTable", "derivativeTransaction", "derivative")];
const NONE: &str = "none";
/// Placeholders for a missing ticker symbol.
const NO_SYMBOLS: &[&str] = &["NONE", "N/A", "NA", "-", "--", "NOT APPLICABLE"];
/// The longest number accepted, in characters.
const DECIMAL_BYTES_MAX: usize = 40;
const NAME_CHARS_MAX: usize = 200;
const WORDS_CHARS_MAX: usize = 500;
/// How many owners of one filing are stored; the regulator's form allows ten.
const OWNERS_MAX: usize = 100;
/// How many bytes of a submission without the form are stored.
const RAW_BYTES_MAX: usize = 64 << 10;

/// If a filing has been read, or was rejected as a whole or in its first row, one of these keys exists.
pub(super) fn first_keys(accession: &str) -> Vec<String> {
    let first = TABLES.iter().map(|(_, _, name)| key(accession, name, 1));
    first.chain([key(accession, NONE, 0), format!("{OWNERSHIP}/{accession}")]).collect()
}

fn key(accession: &str, table: &str, row: i64) -> String {
    format!("{OWNERSHIP}/{accession}/{table}/{row}")
}

pub(super) fn request(pair: &str) -> Request {
    let number = pair.split('/').next().unwrap_or_default();
    file(format!("/Archives/edgar/data/{}/{number}.txt", cik_of(pair).trim_start_matches('0')))
}

pub(super) fn map(stream: &Stream, cursor: walk::Cursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
    let text = xml::decoded(&answer.body);
    let is_form = answer.status == 200 && text.contains("<ownershipDocument");
    if cursor.pending.is_empty() && !is_form {
        return cursor.list(stream, answer, today, true, |row| FORMS.contains(&row.form.as_str()));
    }
    let day = cursor.day;
    let requested = cursor.pending.first().and_then(|pair| pair.split('/').next()).map(str::to_owned);
    let next = if cursor.pending.is_empty() { None } else { cursor.advance().map(json::write_cursor) };
    if is_missing(stream.name, answer)? {
        let warnings = vec![format!("the filing {} does not exist", requested.unwrap_or_default())];
        return Ok(Page { next, warnings, ..Page::default() });
    }
    if super::is_page(&text) {
        return Err(json::later(stream.name, "the response is an HTML page, not a filing"));
    }
    let mut page = Submission::of(&text, requested, day, today).page(stream);
    page.next = next;
    Ok(page)
}

/// Builds the request for a filing's file.
struct Submission<'a> {
    accession: Option<String>,
    filed: Date,
    /// Returns the XML of the form; `None` when it is missing or incomplete.
    form: Option<&'a str>,
    text: &'a str,
    today: Date,
}

impl<'a> Submission<'a> {
    fn of(text: &'a str, requested: Option<String>, day: Date, today: Date) -> Self {
        let begin = text.find("<ownershipDocument").unwrap_or(text.len());
        let (head, body) = text.split_at(begin);
        let end = body.find("</ownershipDocument>").map(|at| at + "</ownershipDocument>".len());
        let labelled = |label: &str| head.split_once(label).and_then(|(_, rest)| rest.split_whitespace().next());
        let own = labelled("ACCESSION NUMBER:").and_then(accession).map(str::to_owned);
        let filed = labelled("FILED AS OF DATE:").and_then(text::date).filter(|day| text::is_plausible(*day, today)).unwrap_or(day);
        Self { accession: requested.or(own), filed, form: end.and_then(|end| body.get(..end)), text, today }
    }

    /// Returns the part that can be mapped again: the form and the two relevant lines of the header.
    fn raw(&self) -> Vec<u8> {
        let number = self.accession.as_deref().unwrap_or_default();
        let filed = self.filed.strftime("%Y%m%d");
        let form = self.form.unwrap_or_else(|| self.text.get(..RAW_BYTES_MAX).unwrap_or(self.text));
        format!("ACCESSION NUMBER: {number}\nFILED AS OF DATE: {filed}\n{form}").into_bytes()
    }

    fn page(&self, stream: &Stream) -> Page {
        let reject = |reference: &str, reason: String| Reject { reference: reference.to_owned(), reason, raw: self.raw() };
        let Some(number) = self.accession.as_deref() else {
            return Page { rejects: vec![reject("a filing", "ACCESSION NUMBER is absent".to_owned())], ..Page::default() };
        };
        let read = match self.form {
            Some(form) => Element::parse(form).and_then(|form| self.common(stream, number, &form).map(|common| (form, common))),
            None => Err("ownershipDocument is absent or does not end".to_owned()),
        };
        let (form, common) = match read {
            Ok(read) => read,
            Err(reason) => return Page { rejects: vec![reject(number, reason)], ..Page::default() },
        };
        let mut page = Page::default();
        for (table, row_name, name) in TABLES {
            let rows = form.child(table).into_iter().flat_map(|table| table.all(row_name));
            for (row, element) in (1..).zip(rows) {
                match self.trade(element, InsiderTradeFact { table: (*name).to_owned(), row, ..common.clone() }) {
                    Ok(fact) => {
                        count(&fact, &mut page.fields);
                        page.observations.push(observed(fact));
                    }
                    Err(reason) => page.rejects.push(reject(&format!("{number}/{name}/{row}"), reason)),
                }
            }
        }
        // The rows of a filing have one author, who leaves out a field in all of them.
        page.fields = page.fields.into_document();
        if page.observations.is_empty() && page.rejects.is_empty() {
            page.observations.push(observed(InsiderTradeFact { table: NONE.to_owned(), ..common }));
        }
        page
    }

    /// Reads the fields that all rows of a form share.
    fn common(&self, stream: &Stream, accession: &str, form: &Element) -> Result<InsiderTradeFact, String> {
        let kind = form.text("documentType");
        if !FORMS.contains(&kind.as_str()) {
            return Err(format!("documentType is {:?}", text::cut(kind, 40)));
        }
        let owners: Option<Vec<Owner>> = form.all("reportingOwner").take(OWNERS_MAX).map(owner).collect();
        let owners = owners.filter(|owners| !owners.is_empty()).ok_or("rptOwnerCik is absent or not a number")?;
        let symbol = value(form, "issuer/issuerTradingSymbol").to_uppercase();
        Ok(InsiderTradeFact {
            stream: stream.name.to_owned(),
            accession: accession.to_owned(),
            amendment: kind.ends_with("/A"),
            form: kind,
            filing_date: self.filed.to_string(),
            original_date: text::plausible_date(&value(form, "dateOfOriginalSubmission"), self.today),
            period_of_report: text::plausible_date(&value(form, "periodOfReport"), self.today),
            issuer_cik: cik(&value(form, "issuer/issuerCik")).ok_or("issuerCik is absent or not a number")?,
            issuer_name: text::cut(value(form, "issuer/issuerName"), NAME_CHARS_MAX),
            issuer_symbol: if NO_SYMBOLS.contains(&symbol.as_str()) { String::new() } else { text::cut(symbol, 40) },
            owners,
            planned: flag(form, "aff10b5One"),
            ..InsiderTradeFact::default()
        })
    }

    fn trade(&self, row: &Element, common: InsiderTradeFact) -> Result<InsiderTradeFact, String> {
        let amounts = |name: &str| decimal(row, &format!("transactionAmounts/{name}"));
        let letter =
            |path: &str, known: &[&str]| Some(value(row, path)).filter(|letter| known.contains(&letter.as_str())).unwrap_or_default();
        let date = value(row, "transactionDate");
        let day = text::plausible_date(&date, self.today);
        if day.is_empty() && !date.is_empty() {
            return Err(format!("transactionDate is {:?}", text::cut(date, 40)));
        }
        // A row may have no transaction coding; it still counts as a transaction.
        let code = value(row, "transactionCoding/transactionCode");
        if code.len() > 2 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(format!("transactionCode is {:?}", text::cut(code, 40)));
        }
        Ok(InsiderTradeFact {
            security: text::cut(value(row, "securityTitle"), NAME_CHARS_MAX),
            date: day,
            code,
            acquired_disposed: letter("transactionAmounts/transactionAcquiredDisposedCode", &["A", "D"]),
            shares: amounts("transactionShares")?,
            price: amounts("transactionPricePerShare")?,
            shares_after: decimal(row, "postTransactionAmounts/sharesOwnedFollowingTransaction")?,
            ownership: letter("ownershipNature/directOrIndirectOwnership", &["D", "I"]),
            ownership_nature: text::cut(value(row, "ownershipNature/natureOfOwnership"), WORDS_CHARS_MAX),
            underlying: text::cut(value(row, "underlyingSecurity/underlyingSecurityTitle"), NAME_CHARS_MAX),
            ..common
        })
    }
}

/// Counts the mapped elements of a trade and its form.
fn count(fact: &InsiderTradeFact, fields: &mut FieldCounts) {
    fields.count([
        ("securityTitle", !fact.security.is_empty()),
        ("transactionDate", !fact.date.is_empty()),
        ("transactionCode", !fact.code.is_empty()),
        ("transactionShares", !fact.shares.is_empty()),
        ("transactionPricePerShare", !fact.price.is_empty()),
        ("transactionAcquiredDisposedCode", !fact.acquired_disposed.is_empty()),
        ("sharesOwnedFollowingTransaction", !fact.shares_after.is_empty()),
        ("directOrIndirectOwnership", !fact.ownership.is_empty()),
        ("periodOfReport", !fact.period_of_report.is_empty()),
        ("issuerName", !fact.issuer_name.is_empty()),
        ("issuerTradingSymbol", !fact.issuer_symbol.is_empty()),
        ("rptOwnerName", fact.owners.iter().any(|owner| !owner.name.is_empty())),
        ("reportingOwnerRelationship", fact.owners.iter().any(|owner| owner.director || owner.officer || owner.ten_percent || owner.other)),
    ]);
}

fn observed(fact: InsiderTradeFact) -> Observation {
    // Earlier versions said that a filing holds no trade when its first row could not be read.
    let replaces = if fact.table == NONE { Vec::new() } else { vec![key(&fact.accession, NONE, 0)] };
    let key = key(&fact.accession, &fact.table, fact.row);
    Observation { replaces, ..Observation::new(key, FactData::InsiderTrade(Box::new(fact))) }
}

fn owner(owner: &Element) -> Option<Owner> {
    let relationship = |name: &str| format!("reportingOwnerRelationship/{name}");
    let title = [value(owner, &relationship("officerTitle")), value(owner, &relationship("otherText"))];
    Some(Owner {
        cik: cik(&value(owner, "reportingOwnerId/rptOwnerCik"))?,
        name: text::cut(value(owner, "reportingOwnerId/rptOwnerName"), NAME_CHARS_MAX),
        director: flag(owner, &relationship("isDirector")),
        officer: flag(owner, &relationship("isOfficer")),
        ten_percent: flag(owner, &relationship("isTenPercentOwner")),
        other: flag(owner, &relationship("isOther")),
        title: text::cut(text::join_distinct(title, "; "), NAME_CHARS_MAX),
    })
}

/// Returns the value at a path, which may be in a nested `value` element; empty where there is only a footnote.
fn value(element: &Element, path: &str) -> String {
    let Some(found) = element.at(path) else { return String::new() };
    if found.child("value").is_some() { found.text("value") } else { text::clean(found.raw_text()) }
}

/// Reads a flag: `1` or `true`; an absent flag is false.
fn flag(element: &Element, path: &str) -> bool {
    matches!(value(element, path).to_ascii_lowercase().as_str(), "1" | "true" | "y")
}

/// Reads a decimal number as published, without thousands separators; empty when there is none.
fn decimal(element: &Element, path: &str) -> Result<String, String> {
    let text = value(element, path);
    let plain = text.strip_prefix('$').unwrap_or(&text).replace(',', "");
    let (whole, part) = plain.split_once('.').unwrap_or((&plain, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if plain.is_empty() {
        return Ok(String::new());
    }
    if plain.len() > DECIMAL_BYTES_MAX || !digits(whole) || !digits(part) || (whole.is_empty() && part.is_empty()) {
        let field = path.rsplit('/').next().unwrap_or(path);
        return Err(format!("{field} is not a number: {:?}", text::cut(text, 40)));
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") })
}
