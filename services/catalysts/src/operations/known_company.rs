//! What is recorded of a company under its name or its number (CIK), also of one without a ticker: the decisions remember the events of both.

use std::collections::BTreeSet;

use feed::position::Position;
use operation::context::store_problem;
use operation::problem::Problem;
use reads::last_entry::last_entry;
use reads::numbers::decision_state;
use reads::read::Reader;
use serde::de::DeserializeOwned;
use texts::company_names::normal_form;

use super::watchable_feed::Catalysts;
use crate::record::{Catalyst, TABLES};
use crate::rules::companies::{Listed, Named, cik_key, name_key};

/// Says that an answer as of an earlier time starts from the names of now.
const NAMES_OF_NOW: &str = "companies are found by the names and numbers that they have now: a part of the data was written by an older version, which did not \
    store earlier ones, so that until the operator replays the service events can be missing, or be those of a company that had the name later";

/// What is known of companies at the position of an answer.
pub(crate) struct Companies {
    at: Position,
    /// Whether rows are read from the index, which has them as of any position. Decision state is that of the last change.
    is_by_index: bool,
}

impl Companies {
    /// The companies at the position of an answer. A note says so if the view does not hold what was known then.
    ///
    /// # Errors
    /// When the checkpoint of the view cannot be read.
    pub(crate) async fn at(reader: &mut Reader<Catalysts>) -> Result<Self, Problem> {
        let at = reader.at.clone();
        let is_past = at.seq < at.last;
        let is_by_index = is_past && is_indexed(&at).await?;
        reader.note((is_past && !is_by_index).then(|| NAMES_OF_NOW.to_owned()));
        Ok(Self { at, is_by_index })
    }

    /// Reads what is known under a name. Signs, case and legal forms do not matter.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn of_name(&self, name: &str) -> Result<KnownCompany, Problem> {
        let named = self.named(name).await?;
        let mut ids = named.records;
        for cik in named.listed.keys() {
            ids.extend(self.listed(cik).await?.records);
        }
        Ok(KnownCompany { name: normal_form(name), ciks: named.listed.into_keys().collect(), ids })
    }

    /// Reads what is known under a number of 10 digits.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn of_cik(&self, cik: &str) -> Result<KnownCompany, Problem> {
        let Listed { title, records: mut ids, .. } = self.listed(cik).await?;
        ids.extend(self.named(&title).await?.records);
        Ok(KnownCompany { name: String::new(), ciks: BTreeSet::from([cik.to_owned()]), ids })
    }

    /// What is known under a name; nothing for one without letters and digits.
    async fn named(&self, name: &str) -> Result<Named, Problem> {
        match name_key(name) {
            Some(key) => self.row(&key).await,
            None => Ok(Named::default()),
        }
    }

    /// What is known under a number.
    async fn listed(&self, cik: &str) -> Result<Listed, Problem> {
        self.row(&cik_key(cik)).await
    }

    async fn row<T: Default + DeserializeOwned>(&self, key: &str) -> Result<T, Problem> {
        if self.is_by_index {
            return Ok(last_entry(&self.at, TABLES.terms, key, 0).await?.unwrap_or_default());
        }
        decision_state(&TABLES, &self.at, key).await
    }
}

/// Whether the index of companies has all that was known at any position: versions that write it wrote the whole view. The first of them is the first one that
/// counts current records.
async fn is_indexed(at: &Position) -> Result<bool, Problem> {
    Ok(at.view.checkpoint().await.map_err(store_problem)?.current_records().is_some())
}

/// A company, and the ids of events that name it. An event can name another one at an earlier position, so each is to be checked.
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
    /// Whether an event is one of the company.
    pub(crate) fn has(&self, record: &Catalyst) -> bool {
        self.ciks.contains(&record.cik) || (!self.name.is_empty() && normal_form(&record.company) == self.name)
    }
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
