//! An application for a trademark, or a registered trademark, as the register published it.

use serde::{Deserialize, Serialize};

use crate::canonical::{Order, canonical};

/// The case file of a trademark as a file of the register published it. The key of the fact is `uspto_trademarks/` and the serial number,
/// whichever stream read it. Texts are trimmed and white space is collapsed; `""` and empty lists mean that the file gave no value. Dates are
/// `YYYY-MM-DD`; a date that cannot be read is `""`, and [`Self::raw_dates`] has its text.
///
/// A record replaces an earlier record of its key if its [`Self::transaction_date`] is not older. A [`Self::sparse`] record says nothing of
/// the mark, its owners and its classes, and a service keeps those that it knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MarkFact {
    /// Serial number of the application: 8 digits.
    pub serial: String,
    /// Registration number: 7 digits; `""` if the mark is not registered (`0000000` in the file).
    pub registration: String,
    /// The words of the mark; `""` for a pure design.
    pub mark: String,
    /// Other spellings under which the office lists the mark, sorted.
    pub pseudo_marks: Vec<String>,
    /// Code of the drawing: `4` for standard characters, `2` for a design without words, `0` in records without a drawing.
    pub drawing_code: String,
    /// Status of the case: 3 digits. The state of one class is in [`MarkClass::status_code`].
    pub status_code: String,
    /// Day on which the status began.
    pub status_date: String,
    /// Day of the application.
    pub filing_date: String,
    /// Day of the registration.
    pub registration_date: String,
    /// Names of the owners of the latest stage that the file names, in the order of their entry numbers: of registrants before applicants,
    /// and of later new owners before the registrant.
    pub owners: Vec<String>,
    /// Classes of the goods and services, in the order of their codes, each once.
    pub classes: Vec<MarkClass>,
    /// Goods and services, in the order of their classes, each class once.
    pub goods: Vec<MarkGoods>,
    /// Day of the last transaction in the case.
    pub transaction_date: String,
    /// Whether the file gave only the status, without mark, owners and classes.
    pub sparse: bool,
    /// Dates that could not be read, in the order of the file.
    pub raw_dates: Vec<RawDate>,
}

/// A class of goods or services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MarkClass {
    /// Code of the international class: 3 digits (`009`, or `200` for collective marks), or a letter (`A` and `B` for certification marks).
    pub code: String,
    /// Status of the class: one character, `6` for an active class.
    pub status_code: String,
    /// Day on which the status of the class began.
    pub status_date: String,
    /// Day of the first use anywhere.
    pub first_use: String,
}

/// The goods and services of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkGoods {
    /// Code of the class, as in [`MarkClass::code`].
    pub code: String,
    /// The first 300 characters of the description.
    pub text: String,
}

/// A date that is not a day of the calendar, such as `19200900` or `20051`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RawDate {
    /// Name of its element in the file, for a class after the class's code: `filing-date`, `009/status-date`.
    pub field: String,
    /// Its text in the file.
    pub text: String,
}

impl MarkFact {
    /// Returns the canonical form for the content hash, with every field.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(self, Order::Declared, &[])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::{FactData, testing};

    /// Proves that a change of any field changes the canonical form, also of a field within a list.
    #[test]
    fn every_field_is_hashed() {
        let empty = serde_json::to_value(MarkFact::default()).unwrap();
        for (name, value) in empty.as_object().unwrap() {
            let items: &[Value] = match name.as_str() {
                "classes" => &[json!({"code": "x"}), json!({"statusCode": "x"}), json!({"statusDate": "x"}), json!({"firstUse": "x"})],
                "goods" => &[json!({"code": "x"}), json!({"text": "x"})],
                "rawDates" => &[json!({"field": "x"}), json!({"text": "x"})],
                _ => &[json!("x")],
            };
            let mut forms = vec![MarkFact::default().canonical()];
            for item in items {
                let mut changed = empty.clone();
                changed[name] = match value {
                    Value::Array(_) => json!([item]),
                    Value::Bool(_) => json!(true),
                    _ => item.clone(),
                };
                let record: MarkFact = serde_json::from_value(changed).unwrap();
                assert!(!forms.contains(&record.canonical()), "{name} {item}");
                forms.push(record.canonical());
            }
        }
    }

    /// Proves that a record with a value in every field reads back as written.
    #[test]
    fn reads_back() {
        let record = MarkFact {
            serial: "a".into(),
            registration: "b".into(),
            mark: "c".into(),
            pseudo_marks: vec!["d".into(), "e".into()],
            drawing_code: "f".into(),
            status_code: "g".into(),
            status_date: "h".into(),
            filing_date: "i".into(),
            registration_date: "j".into(),
            owners: vec!["k".into()],
            classes: vec![MarkClass { code: "l".into(), status_code: "m".into(), status_date: "n".into(), first_use: "o".into() }],
            goods: vec![MarkGoods { code: "p".into(), text: "q".into() }],
            transaction_date: "r".into(),
            sparse: true,
            raw_dates: vec![RawDate { field: "s".into(), text: "t".into() }],
        };
        let data = FactData::Mark(Box::new(record.clone()));
        testing::assert_reads_back(record, &data);
    }
}
