//! What is recorded of a company under its name or its number (CIK), also of one without a ticker: the decisions remember the events of both.

use std::collections::BTreeSet;

use feed::position::Position;
use operation::problem::Problem;
use reads::numbers::decision_state;
use texts::company_names::normal_form;

use crate::record::{Catalyst, TABLES};
use crate::rules::companies::{Listed, Named, cik_key, name_key};

/// A company, and the events that name it now. At an earlier position an event can have named another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownCompany {
    /// The normal form of its name; empty if it is asked for by its number.
    name: String,
    /// Its number, or those of the companies of the SEC's list that have the name.
    ciks: BTreeSet<String>,
    /// The ids of the events.
    pub(crate) ids: BTreeSet<String>,
}

impl KnownCompany {
    /// Reads what is known under a name. Signs, case and legal forms do not matter.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn of_name(at: &Position, name: &str) -> Result<Self, Problem> {
        let named = named(at, name).await?;
        let mut ids = named.records;
        for cik in named.listed.keys() {
            ids.extend(listed(at, cik).await?.records);
        }
        Ok(Self { name: normal_form(name), ciks: named.listed.into_keys().collect(), ids })
    }

    /// Reads what is known under a number of 10 digits.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn of_cik(at: &Position, cik: &str) -> Result<Self, Problem> {
        let Listed { title, records: mut ids, .. } = listed(at, cik).await?;
        ids.extend(named(at, &title).await?.records);
        Ok(Self { name: String::new(), ciks: BTreeSet::from([cik.to_owned()]), ids })
    }

    /// Whether an event is one of the company.
    pub(crate) fn has(&self, record: &Catalyst) -> bool {
        self.ciks.contains(&record.cik) || (!self.name.is_empty() && normal_form(&record.company) == self.name)
    }
}

/// What is known under a name; nothing for one without letters and digits.
async fn named(at: &Position, name: &str) -> Result<Named, Problem> {
    match name_key(name) {
        Some(key) => decision_state(&TABLES, at, &key).await,
        None => Ok(Named::default()),
    }
}

/// What is known under a number.
async fn listed(at: &Position, cik: &str) -> Result<Listed, Problem> {
    decision_state(&TABLES, at, &cik_key(cik)).await
}

/// Checks a name of a company.
///
/// # Errors
/// `parameter-invalid` for a name without letters and digits.
pub(crate) fn check_name<'a>(parameter: &'static str, name: &'a str) -> Result<&'a str, Problem> {
    if normal_form(name).is_empty() {
        return Err(Problem::parameter(parameter, format!("{parameter}: {name:?} has neither letters nor digits")));
    }
    Ok(name)
}
