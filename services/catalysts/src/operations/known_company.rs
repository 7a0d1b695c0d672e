//! What is recorded of a company under its name or its number (CIK), also of one without a ticker: the decisions remember the events of both.

use std::collections::BTreeSet;
use std::sync::Arc;

use feed::filter::{Criteria, Element, TermQuery};
use feed::position::Position;
use feed::query::newest;
use operation::context::{Context, store_problem};
use operation::problem::Problem;
use reads::last_entry::last_entry;
use reads::numbers::decision_state;
use reads::read::Reader;
use schemas::position::Seq;
use serde::de::DeserializeOwned;
use texts::company_names::normal_form;

use super::watchable_feed::Catalysts;
use crate::record::{Catalyst, FILER, TABLES};
use crate::rules::CatalystsRules;
use crate::rules::companies::{Listed, Named, cik_key, name_key};
use feed::RecordFeed;

/// The most changes of decision dates of one company that are read. A company states a few dates a year.
const FILED_CHANGES_MAX: usize = 2_000;
/// Says that an answer as of an earlier time starts from the names of now.
const NAMES_OF_NOW: &str = "companies are found by the names and numbers that they have now: a part of the data was written by an older version, which did not \
    store earlier ones, so that until the operator replays the service events can be missing, or be those of a company that had the name later";
/// Says that an event can be there although nothing is found under a name.
const FILERS_UNKNOWN: &str = "a part of the data was written by an older version: until the operator replays the service, decision dates of a company that is \
    not in the SEC's list of tickers are found by its CIK only";

/// What is known of companies at the position of an answer.
pub(crate) struct Companies {
    context: Arc<Context>,
    at: Position,
    /// Whether versions that index companies wrote the whole view.
    is_indexed: bool,
}

impl Companies {
    /// The companies at the position of an answer. A note says so if the view does not hold what was known then.
    ///
    /// # Errors
    /// When the checkpoint of the view cannot be read.
    pub(crate) async fn at(reader: &mut Reader<Catalysts>) -> Result<Self, Problem> {
        let (context, at) = (Arc::clone(&reader.call().context), reader.at.clone());
        // The first version that indexes companies is the first one that counts current records.
        let is_indexed = at.view.checkpoint().await.map_err(store_problem)?.current_records().is_some();
        let companies = Self { context, at, is_indexed };
        reader.note((companies.is_past() && !is_indexed).then(|| NAMES_OF_NOW.to_owned()));
        Ok(companies)
    }

    /// Whether decision state, which is that of the last change, can differ from what was known at the position.
    fn is_past(&self) -> bool {
        self.at.seq < self.at.last
    }

    /// What to say about a name that finds nothing, next to what is known of other names.
    pub(crate) fn note_of_unknown_name(&self) -> Option<String> {
        (!self.is_indexed && !self.is_past()).then(|| FILERS_UNKNOWN.to_owned())
    }

    /// Those of some names under which events are known.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub(crate) async fn known_names(&self, names: Vec<String>) -> Result<Vec<String>, Problem> {
        let mut known = Vec::new();
        for name in names {
            if !self.of_name(&name).await?.ids.is_empty() {
                known.push(name);
            }
        }
        Ok(known)
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
        let name = normal_form(name);
        ids.extend(self.filed(&name).await?);
        Ok(KnownCompany { name, ciks: named.listed.into_keys().collect(), ids })
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

    /// The ids of the decision dates that a company stated under a name. Decision state has them by its number, which no other row has of a company that is not
    /// in the SEC's list.
    async fn filed(&self, normal_form: &str) -> Result<Vec<String>, Problem> {
        let query = TermQuery::Exact(FILER, vec![normal_form.to_owned()]);
        let criteria = Criteria::new(vec![query], |_: &Element<Catalyst>| true);
        let found = newest(&self.context, &CatalystsRules::FEED, &self.at, criteria, Seq(0), FILED_CHANGES_MAX).await?;
        Ok(found.changes.into_iter().map(|change| change.record.id).collect())
    }

    async fn row<T: Default + DeserializeOwned>(&self, key: &str) -> Result<T, Problem> {
        if self.is_past() && self.is_indexed {
            return Ok(last_entry(&self.at, TABLES.terms, key, 0).await?.unwrap_or_default());
        }
        decision_state(&TABLES, &self.at, key).await
    }
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
