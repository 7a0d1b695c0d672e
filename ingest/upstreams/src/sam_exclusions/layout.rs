//! Where the columns of a file are. They are found by name, never by position.

use crate::{UpstreamError, text};

/// A column that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Classification,
    Name,
    Prefix,
    First,
    Middle,
    Last,
    Suffix,
    Street,
    City,
    State,
    Country,
    Zip,
    Uei,
    Program,
    Agency,
    CauseCode,
    Type,
    Comments,
    ActiveDate,
    TerminationDate,
    Status,
    CrossReference,
    SamNumber,
    Cage,
    Npi,
    CreationDate,
}

/// The columns with the names that files of different years give them, in the order of [`Column`].
const NAMES: [(Column, &[&str]); 26] = [
    (Column::Classification, &["classification"]),
    (Column::Name, &["name"]),
    (Column::Prefix, &["prefix"]),
    (Column::First, &["first"]),
    (Column::Middle, &["middle"]),
    (Column::Last, &["last"]),
    (Column::Suffix, &["suffix"]),
    (Column::Street, &["address 1"]),
    (Column::City, &["city"]),
    (Column::State, &["state / province"]),
    (Column::Country, &["country"]),
    (Column::Zip, &["zip code"]),
    (Column::Uei, &["unique entity id", "unique entity identifier (sam)"]),
    (Column::Program, &["exclusion program"]),
    (Column::Agency, &["excluding agency"]),
    (Column::CauseCode, &["ct code"]),
    (Column::Type, &["exclusion type"]),
    (Column::Comments, &["additional comments"]),
    (Column::ActiveDate, &["active date"]),
    (Column::TerminationDate, &["termination date"]),
    (Column::Status, &["record status"]),
    (Column::CrossReference, &["cross-reference"]),
    (Column::SamNumber, &["sam number"]),
    (Column::Cage, &["cage"]),
    (Column::Npi, &["npi"]),
    (Column::CreationDate, &["creation_date", "creation date"]),
];

/// A file without one of these columns is refused: it would make excluded parties unknown.
const REQUIRED: [Column; 5] = [Column::Classification, Column::Uei, Column::Agency, Column::Type, Column::ActiveDate];
/// The most columns of a file.
const COLUMNS_MAX: usize = 100;

/// The fields of a row. Broken quoting gives more fields than there are columns.
pub(super) fn fields_of(row: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(row);
    let mut record = csv::ByteRecord::new();
    // Reading bytes from memory cannot fail; without a record there are no fields.
    match reader.read_byte_record(&mut record) {
        Ok(true) => record.iter().map(<[u8]>::to_vec).collect(),
        _ => Vec::new(),
    }
}

/// The columns of a file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The header, as it is in the file. It is stored with each rejected row.
    pub(super) header: Vec<u8>,
    /// The number of columns.
    width: usize,
    /// Where each column is, in the order of [`Column`].
    places: [Option<usize>; NAMES.len()],
}

impl Layout {
    /// Reads a header.
    pub(super) fn read(stream: &'static str, header: &[u8]) -> Result<Self, UpstreamError> {
        let stop = |field: &str, reason: String| UpstreamError::Stop { stream, field: field.to_owned(), reason };
        let names: Vec<String> = fields_of(header).iter().map(|name| text::clean(&text::decode(name)).to_lowercase()).collect();
        if names.len() > COLUMNS_MAX {
            return Err(stop("header", format!("has {} columns, more than {COLUMNS_MAX}", names.len())));
        }
        let places = NAMES.map(|(_, aliases)| names.iter().position(|name| aliases.contains(&name.as_str())));
        let layout = Self { header: header.to_vec(), width: names.len(), places };
        for (column, aliases) in NAMES.iter().filter(|(column, _)| REQUIRED.contains(column)) {
            if layout.place(*column).is_none() {
                return Err(stop(aliases[0], "the file has no such column".to_owned()));
            }
        }
        Ok(layout)
    }

    fn place(&self, column: Column) -> Option<usize> {
        self.places.get(column as usize).copied().flatten()
    }

    /// Puts the fields of a row under the columns. A row whose quoting is broken has too many fields: those before the comments are counted from the
    /// left and those after them from the right, and the rest is the comment.
    ///
    /// # Errors
    /// Why the fields cannot be put under the columns.
    pub(super) fn fit(&self, fields: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        let count = fields.len();
        if count == self.width {
            return Ok(fields);
        }
        let comments = self.place(Column::Comments).filter(|_| count > self.width);
        let Some(comments) = comments else {
            return Err(format!("the row has {count} fields and the header {}", self.width));
        };
        let after = self.width - comments - 1;
        let mut fields = fields;
        let right = fields.split_off(count - after);
        let comment = fields.split_off(comments).join(&b","[..]);
        fields.push(comment);
        fields.extend(right);
        Ok(fields)
    }

    /// The cleaned text of a column in a row that fits.
    pub(super) fn text(&self, fields: &[Vec<u8>], column: Column) -> String {
        let field = self.place(column).and_then(|at| fields.get(at));
        field.map(|field| text::clean(&text::decode(field))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"\"Classification\",\"Name\",\"Unique Entity ID\",\"Excluding Agency\",\"Exclusion Type\",\"Additional Comments\",\"Active Date\",\"CAGE\"";

    /// Proves that the list of columns is in the order of the columns.
    #[test]
    fn columns_are_in_order() {
        for (at, (column, _)) in NAMES.iter().enumerate() {
            assert_eq!(*column as usize, at);
        }
    }

    /// Proves that a file without a required column is refused, that other columns may be missing, and that names of two years are known.
    #[test]
    fn headers() {
        let layout = Layout::read("s", HEADER).unwrap();
        assert_eq!((layout.width, layout.place(Column::Cage), layout.place(Column::Npi)), (8, Some(7), None));
        let text = String::from_utf8(HEADER.to_vec()).unwrap();
        let of_2020 = text.replace("Unique Entity ID", "Unique Entity Identifier (SAM)");
        assert!(Layout::read("s", of_2020.as_bytes()).is_ok());
        for (name, column) in
            [("Excluding Agency", "excluding agency"), ("Unique Entity ID", "unique entity id"), ("Active Date", "active date")]
        {
            let error = Layout::read("s", text.replace(name, "x").as_bytes()).unwrap_err();
            assert!(matches!(&error, UpstreamError::Stop { field, .. } if field == column), "{error}");
        }
        assert!(Layout::read("s", &b"a,".repeat(200)).is_err());
    }

    /// Proves that too many fields are a comment, and that a row with too few is refused.
    #[test]
    fn rows() {
        let layout = Layout::read("s", HEADER).unwrap();
        let fit_to = |fields: &[&str]| layout.fit(fields.iter().map(|field| field.as_bytes().to_vec()).collect());
        let fit = fit_to(&["Firm", "A", "", "EPA", "T", "one", " two", " three", "2026", "1A2B3"]).unwrap();
        assert_eq!(layout.text(&fit, Column::Comments), "one, two, three");
        assert_eq!((layout.text(&fit, Column::ActiveDate), layout.text(&fit, Column::Cage)), ("2026".to_owned(), "1A2B3".to_owned()));
        assert!(fit_to(&["Firm", "A"]).unwrap_err().contains("2 fields and the header 8"));
    }
}
