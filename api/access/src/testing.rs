//! Views of services for tests: one whose records name a person, one whose records name owners, and one whose records become parts of others.

use schemas::suppression::{Hides, PERSON, RECORD};
use schemas::tables::ViewDef;

/// A service whose records name an investigator.
pub(crate) mod labs {
    use super::{Hides, PERSON, RECORD};

    const HIDES: &[Hides] = &[Hides { kind: &PERSON, field: "pi", hidden: &["pi"] }, Hides { kind: &RECORD, field: "id", hidden: &["pi"] }];

    schemas::record_tables!("labs", hides: HIDES);
}

/// A service whose records name owners.
pub(crate) mod filings {
    use super::{Hides, PERSON, RECORD};

    const HIDES: &[Hides] = &[
        Hides { kind: &PERSON, field: "owners.name", hidden: &["owners.name"] },
        Hides { kind: &RECORD, field: "id", hidden: &["owners"] },
    ];

    schemas::record_tables!("filings", hides: HIDES);
}

/// A service whose records become parts of others.
pub(crate) mod parts {
    use super::{Hides, RECORD};

    const HIDES: &[Hides] = &[Hides { kind: &RECORD, field: "mergedInto", hidden: &["mergedInto"] }];

    schemas::record_tables!("parts", hides: HIDES);
}

/// A service whose records hide nothing.
mod recalls {
    schemas::record_tables!("recalls");
}

/// The views of these services.
pub(crate) const VIEWS: &[&ViewDef] = &[filings::TABLES.view, labs::TABLES.view, recalls::TABLES.view];
