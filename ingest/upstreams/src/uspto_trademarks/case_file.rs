//! Maps one `case-file` element. Elements are distinguished by their path, because `status-code` and other names occur at several levels.

use std::collections::BTreeMap;

use jiff::civil::Date;
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use schemas::facts::marks::{MarkClass, MarkFact, MarkGoods, RawDate};
use texts::numbers::has_only_digits;

use crate::{text, xml};

/// The first year of a plausible date. The register holds filings from 1870 on, and mistyped ones from 1823.
const YEAR_MIN: i16 = 1800;
const DEPTH_MAX: usize = 16;
const MARK_CHARS_MAX: usize = 4_000;
const NAME_CHARS_MAX: usize = 300;
const GOODS_CHARS_MAX: usize = 300;
const CODE_CHARS_MAX: usize = 10;
const PSEUDO_MARKS_MAX: usize = 20;
const OWNERS_MAX: usize = 50;
const CLASSES_MAX: usize = 200;
const RAW_DATES_MAX: usize = 20;
/// How many bytes of goods are read of one class before they are cleaned and cut.
const GOODS_BYTES_MAX: usize = 4 * GOODS_CHARS_MAX;
/// The status of an active class.
const ACTIVE: &str = "6";

/// Maps the bytes of a `case-file` element.
///
/// # Errors
/// Why it cannot be mapped.
pub(super) fn parse(bytes: &[u8], today: Date) -> Result<MarkFact, String> {
    let source = text::decode(bytes);
    let mut reader = Reader::from_str(&source);
    reader.config_mut().allow_dangling_amp = true;
    let mut file = CaseFile { today, ..CaseFile::default() };
    // The path of the open element, without the root, its parts separated by slashes.
    let (mut path, mut depth, mut value) = (String::new(), 0_usize, String::new());
    loop {
        match reader.read_event().map_err(|error| format!("not well formed: {error}"))? {
            Event::Start(start) => {
                if depth > 0 {
                    path.push('/');
                    path.push_str(start.name().as_ref());
                }
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(format!("nested deeper than {DEPTH_MAX}"));
                }
                value.clear();
            }
            Event::End(_) => {
                file.end(&path, &value)?;
                value.clear();
                path.truncate(path.rfind('/').unwrap_or(0));
                depth = depth.saturating_sub(1);
            }
            Event::Text(part) => value.push_str(&part.xml10_content()),
            Event::CData(part) => value.push_str(&part.xml10_content()),
            Event::GeneralRef(reference) => value.push_str(&xml::resolved(&reference.xml10_content())),
            Event::DocType(_) => return Err("a document type is declared".to_owned()),
            Event::Eof if depth > 0 => return Err("the record is cut off".to_owned()),
            Event::Eof => return file.finish(),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// Returns the serial number of a record that cannot be mapped, as far as it can be read.
pub(super) fn reference(bytes: &[u8]) -> String {
    let text = text::decode(bytes.get(..1_000).unwrap_or(bytes));
    let serial = text.split_once("<serial-number>").map(|(_, rest)| rest.split('<').next().unwrap_or_default());
    text::cut(text::clean(serial.unwrap_or_default()), 20)
}

/// What has been read of a case file.
#[derive(Default)]
struct CaseFile {
    today: Date,
    fact: MarkFact,
    /// The owners: stage, entry number, name.
    owners: Vec<(u32, u32, String)>,
    owner: (u32, u32, String),
    statement_code: String,
    statement: String,
    /// Goods by class, uncleaned.
    goods: BTreeMap<String, String>,
    classes: BTreeMap<String, MarkClass>,
    codes: Vec<String>,
    class: MarkClass,
    /// Dates of the open classification that cannot be read: element and text.
    class_dates: Vec<(&'static str, String)>,
}

impl CaseFile {
    /// Takes the text of the element at a path, when it ends.
    fn end(&mut self, path: &str, value: &str) -> Result<(), String> {
        let path = path.strip_prefix('/').unwrap_or(path);
        match path {
            "serial-number" => self.fact.serial = serial(value)?,
            "registration-number" => self.fact.registration = registration(value),
            "transaction-date" => self.fact.transaction_date = self.date("transaction-date", value),
            "case-file-header/filing-date" => self.fact.filing_date = self.date("filing-date", value),
            "case-file-header/registration-date" => self.fact.registration_date = self.date("registration-date", value),
            "case-file-header/status-code" => self.fact.status_code = code(value),
            "case-file-header/status-date" => self.fact.status_date = self.date("status-date", value),
            "case-file-header/mark-identification" => self.fact.mark = text::cut(text::clean(value), MARK_CHARS_MAX),
            "case-file-header/mark-drawing-code" => self.fact.drawing_code = code(value),
            "case-file-statements/case-file-statement/type-code" => self.statement_code = code(value),
            "case-file-statements/case-file-statement/text" => {
                if !self.statement.is_empty() {
                    self.statement.push(' ');
                }
                self.statement.push_str(value);
            }
            "case-file-statements/case-file-statement" => self.end_statement(),
            "classifications/classification/international-code" => self.codes.extend(class_code(value)),
            "classifications/classification/status-code" => self.class.status_code = code(value),
            "classifications/classification/status-date" => self.class.status_date = self.class_date("status-date", value),
            "classifications/classification/first-use-anywhere-date" => {
                self.class.first_use = self.class_date("first-use-anywhere-date", value);
            }
            "classifications/classification" => self.end_class(),
            "case-file-owners/case-file-owner/entry-number" => self.owner.1 = value.trim().parse().unwrap_or(u32::MAX),
            "case-file-owners/case-file-owner/party-type" => self.owner.0 = value.trim().parse().unwrap_or(0),
            "case-file-owners/case-file-owner/party-name" => self.owner.2 = text::cut(text::clean(value), NAME_CHARS_MAX),
            "case-file-owners/case-file-owner" => {
                let owner = std::mem::take(&mut self.owner);
                if !owner.2.is_empty() {
                    self.owners.push(owner);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end_statement(&mut self) {
        let (code, statement) = (std::mem::take(&mut self.statement_code), std::mem::take(&mut self.statement));
        if code.starts_with("PM") {
            self.fact.pseudo_marks.extend(statement.split(';').map(|mark| text::cut(text::clean(mark), NAME_CHARS_MAX)));
        } else if let Some(class) = code.strip_prefix("GS").and_then(|rest| rest.get(..3)).and_then(class_code) {
            let goods = self.goods.entry(class).or_default();
            if goods.len() < GOODS_BYTES_MAX {
                goods.push_str(&statement);
                goods.push(' ');
            }
        }
    }

    /// A classification may hold several codes, and a code may occur in several classifications. An active one counts before an ended one.
    fn end_class(&mut self) {
        let class = std::mem::take(&mut self.class);
        let dates = std::mem::take(&mut self.class_dates);
        for code in std::mem::take(&mut self.codes) {
            if let Some(known) = self.classes.get(&code)
                && known.status_code == ACTIVE
                && class.status_code != ACTIVE
            {
                continue;
            }
            for (field, text) in &dates {
                self.raw_date(format!("{code}/{field}"), text);
            }
            if self.classes.len() < CLASSES_MAX {
                self.classes.insert(code.clone(), MarkClass { code, ..class.clone() });
            }
        }
    }

    fn finish(mut self) -> Result<MarkFact, String> {
        if self.fact.serial.is_empty() {
            return Err("serial-number is missing".to_owned());
        }
        let latest = self.owners.iter().map(|(stage, ..)| *stage).max();
        self.owners.retain(|(stage, ..)| Some(*stage) == latest);
        self.owners.sort_by_key(|(_, entry, _)| *entry);
        for (_, _, name) in self.owners {
            if !self.fact.owners.contains(&name) && self.fact.owners.len() < OWNERS_MAX {
                self.fact.owners.push(name);
            }
        }
        self.fact.classes = self.classes.into_values().collect();
        let goods = self.goods.into_iter().map(|(code, goods)| MarkGoods { code, text: text::cut(text::clean(&goods), GOODS_CHARS_MAX) });
        self.fact.goods = goods.filter(|goods| !goods.text.is_empty()).take(CLASSES_MAX).collect();
        let pseudo_marks = &mut self.fact.pseudo_marks;
        pseudo_marks.retain(|mark| !mark.is_empty());
        pseudo_marks.sort_unstable();
        pseudo_marks.dedup();
        pseudo_marks.truncate(PSEUDO_MARKS_MAX);
        self.fact.sparse = self.fact.owners.is_empty() && self.fact.classes.is_empty();
        Ok(self.fact)
    }

    /// Reads a date of the case.
    fn date(&mut self, field: &str, value: &str) -> String {
        day(value, self.today).unwrap_or_else(|raw| {
            self.raw_date(field.to_owned(), &raw);
            String::new()
        })
    }

    /// Reads a date of the open classification. Its codes may follow, so a date that cannot be read is named at its end.
    fn class_date(&mut self, field: &'static str, value: &str) -> String {
        day(value, self.today).unwrap_or_else(|raw| {
            self.class_dates.push((field, raw));
            String::new()
        })
    }

    fn raw_date(&mut self, field: String, text: &str) {
        if self.fact.raw_dates.len() < RAW_DATES_MAX {
            self.fact.raw_dates.push(RawDate { field, text: text.to_owned() });
        }
    }
}

/// Reads a day as `YYYY-MM-DD`; empty for no date. An error is the text that is no day.
fn day(value: &str, today: Date) -> Result<String, String> {
    let value = text::clean(value);
    if value.bytes().all(|byte| byte == b'0') {
        return Ok(String::new());
    }
    let is_plausible = |date: &Date| date.year() >= YEAR_MIN && date.year() <= today.year().saturating_add(1);
    let date = text::date(&value).filter(is_plausible).map(|date| date.to_string());
    date.ok_or_else(|| text::cut(value, 20))
}

fn code(value: &str) -> String {
    text::cut(text::clean(value), CODE_CHARS_MAX)
}

fn serial(value: &str) -> Result<String, String> {
    let value = value.trim();
    if value.len() == 8 && has_only_digits(value) {
        Ok(value.to_owned())
    } else {
        Err("serial-number is not a number of 8 digits".to_owned())
    }
}

/// Returns a registration number; empty for the number that stands for none.
fn registration(value: &str) -> String {
    let number = code(value);
    if number.bytes().all(|byte| byte == b'0') { String::new() } else { number }
}

/// Returns the code of an international class in its usual form: three digits, or a letter in upper case.
fn class_code(value: &str) -> Option<String> {
    let value = code(value).to_ascii_uppercase();
    let is_number = has_only_digits(&value);
    let code = if is_number { format!("{value:0>3}") } else { value.trim_start_matches('0').to_owned() };
    Some(code).filter(|code| !code.is_empty() && code != "000")
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const TODAY: Date = date(2026, 9, 30);

    fn mapped(inner: &str) -> MarkFact {
        parse(format!("<case-file><serial-number>97000001</serial-number>{inner}</case-file>").as_bytes(), TODAY).unwrap()
    }

    fn class(code: &str, status: &str) -> MarkClass {
        MarkClass { code: code.to_owned(), status_code: status.to_owned(), ..MarkClass::default() }
    }

    /// Proves that the latest stage of ownership counts whatever the order, and that its co-owners are listed by their entry numbers.
    #[test]
    fn owners_of_the_latest_stage() {
        let owner = |stage: u32, entry: u32, name: &str| {
            format!(
                "<case-file-owner><entry-number>{entry}</entry-number><party-type>{stage}</party-type><party-name>{name}</party-name></case-file-owner>"
            )
        };
        let owners =
            [owner(43, 2, "B CO"), owner(42, 1, "OLD"), owner(30, 1, "FIRST"), owner(43, 1, "A &amp; C"), owner(43, 3, "")].concat();
        assert_eq!(mapped(&format!("<case-file-owners>{owners}</case-file-owners>")).owners, ["A & C", "B CO"]);
        assert_eq!(mapped(&format!("<case-file-owners>{}{}</case-file-owners>", owner(10, 1, "X"), owner(20, 1, "Y"))).owners, ["Y"]);
    }

    /// Proves that the status of the case and that of a class are not confused, and that a repeated code is one class.
    #[test]
    fn classes_and_statuses() {
        let fact = mapped(
            "<case-file-header><status-code>602</status-code></case-file-header><classifications>\
             <classification><international-code>043</international-code><international-code>041</international-code><status-code>6</status-code></classification>\
             <classification><international-code>41</international-code><status-code>8</status-code></classification>\
             <classification><international-code>00A</international-code><us-code>101</us-code><status-code>2</status-code></classification>\
             <classification><international-code>200</international-code></classification></classifications>",
        );
        assert_eq!(fact.status_code, "602");
        assert_eq!(fact.classes, [class("041", "6"), class("043", "6"), class("200", ""), class("A", "2")]);
        assert!(!fact.sparse);
    }

    /// Proves that dates that are no days become raw texts with their place, and that absent dates become nothing.
    #[test]
    fn unreadable_dates_are_kept_as_text() {
        let fact = mapped(
            "<transaction-date>20260402</transaction-date><case-file-header><filing-date>18230306</filing-date><status-date>20051</status-date>\
             <registration-date>00000000</registration-date></case-file-header><classifications><classification><status-date>20100</status-date>\
             <international-code>009</international-code><first-use-anywhere-date>19200900</first-use-anywhere-date></classification></classifications>",
        );
        assert_eq!((&*fact.transaction_date, &*fact.filing_date, &*fact.status_date), ("2026-04-02", "1823-03-06", ""));
        let raw: Vec<(&str, &str)> = fact.raw_dates.iter().map(|raw| (&*raw.field, &*raw.text)).collect();
        assert_eq!(raw, [("status-date", "20051"), ("009/status-date", "20100"), ("009/first-use-anywhere-date", "19200900")]);
        assert!(fact.classes[0].first_use.is_empty() && fact.registration_date.is_empty());
    }

    /// Proves that pseudo marks and goods are read from statements, and other statements are not.
    #[test]
    fn statements() {
        let statement =
            |code: &str, text: &str| format!("<case-file-statement><type-code>{code}</type-code><text>{text}</text></case-file-statement>");
        let statements = [
            statement("GS0091", &"pistols ".repeat(100)),
            statement("GS0092", "more"),
            statement("PM0001", "TRUE ONE; TRU 1"),
            statement("DM0000", "A hand."),
        ];
        let fact = mapped(&format!("<case-file-statements>{}</case-file-statements>", statements.concat()));
        assert_eq!(fact.pseudo_marks, ["TRU 1", "TRUE ONE"]);
        assert_eq!((fact.goods.len(), &*fact.goods[0].code, fact.goods[0].text.chars().count()), (1, "009", GOODS_CHARS_MAX));
        assert!(fact.sparse, "a record without owners and classes");
    }

    /// Proves that 0000000 means no registration, and that a record without a valid serial number is refused with the reason.
    #[test]
    fn numbers() {
        assert_eq!(mapped("<registration-number>0000000</registration-number>").registration, "");
        assert_eq!(mapped("<registration-number>0146682</registration-number>").registration, "0146682");
        for (record, reason) in [
            ("<case-file></case-file>", "serial-number is missing"),
            ("<case-file><serial-number>9700000</serial-number></case-file>", "8 digits"),
            ("<case-file><serial-number>97000001</serial-number></wrong>", "not well formed"),
            ("<case-file><serial-number>97000001</serial-number>", "cut off"),
        ] {
            let error = parse(record.as_bytes(), TODAY).unwrap_err();
            assert!(error.contains(reason), "{record}: {error}");
        }
    }

    /// Proves that a record with 26,000 events is mapped.
    #[test]
    fn many_events() {
        let event = "<case-file-event-statement><code>CHAN</code><type>I</type><description-text>CHANGED</description-text><date>20200101</date>\
            <number>1</number></case-file-event-statement>";
        let events = format!("<case-file-event-statements>{}</case-file-event-statements>", event.repeat(26_000));
        let fact = mapped(&format!("{events}<case-file-header><mark-identification>BIG</mark-identification></case-file-header>"));
        assert_eq!(fact.mark, "BIG");
    }
}
