//! The notice of one agency: what a recall of several agencies shows when the recalls of only one of them are asked for.

use jiff::ToSpan;
use jiff::civil::Date;
use operation::context::{store_problem, stored};
use operation::problem::Problem;
use schemas::facts::recalls::RecallFact;
use schemas::key;
use schemas::position::Seq;
use schemas::tables::Key;
use schemas::views::recalls::{Recall, RememberedFact, SETS, SOURCES};
use view_store::View;

use super::rows::{Filter, rows_at};

/// The most days between the dates of two notices that are one record: four agencies, and at most seven days from each date to the next.
const NOTICE_DAYS_MAX: i64 = 21;

/// The fields of a recall that differ from notice to notice.
struct Notice {
    title: String,
    url: String,
    date: String,
}

impl Filter {
    /// The filter with a range of dates in which the record of every matching notice lies. A record has the date of one of its notices.
    #[must_use]
    pub fn by_record_date(&self) -> Self {
        let shifted = |date: &Option<String>, days: i64| match (date, self.agency) {
            (Some(text), Some(_)) => {
                let date = text.parse::<Date>().ok();
                Some(date.map_or_else(|| text.clone(), |date| date.saturating_add(days.days()).to_string()))
            }
            _ => date.clone(),
        };
        Self { from: shifted(&self.from, -NOTICE_DAYS_MAX), to: shifted(&self.to, NOTICE_DAYS_MAX), ..self.clone() }
    }

    /// A recall as the filter shows it: with the title, URL and date of the agency that is asked for. `None` if that date is out of the range.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub async fn shown(&self, view: &dyn View, recall: Recall, seq: Seq) -> Result<Option<Recall>, Problem> {
        let recall = match self.agency {
            Some(agency) => of_agency(view, agency, recall, seq).await?,
            None => recall,
        };
        Ok(self.has_date(&recall.date).then_some(recall))
    }

    /// Sorts recalls as they are shown: newest first, ties by identity.
    pub fn sort(&self, recalls: &mut [Recall]) {
        if self.agency.is_some() {
            recalls.sort_by(|a, b| b.date.cmp(&a.date).then_with(|| a.id.cmp(&b.id)));
        }
    }
}

/// A recall with the notice of one of its agencies.
async fn of_agency(view: &dyn View, agency: &'static str, recall: Recall, seq: Seq) -> Result<Recall, Problem> {
    let is_of_agency = |number: &&String| number.split_once(':').is_some_and(|(of, _)| of == agency);
    let Some(identity) = recall.numbers.iter().find(is_of_agency).filter(|_| recall.agency != agency).cloned() else { return Ok(recall) };
    let row = rows_at(view, std::slice::from_ref(&identity), seq).await?.pop().flatten();
    // The row of a notice that was a record of its own once. Other notices have no row.
    let notice = match row.map(|row| row.record).filter(|own| own.merged_into == recall.id) {
        Some(Recall { title, url, date, .. }) => Notice { title, url, date },
        None => from_facts(view, &identity).await?,
    };
    let or = |own: String, shared: String| if own.is_empty() { shared } else { own };
    // Facts have no earlier versions here, so a URL that the record did not have at the position is a later one.
    let url = if recall.urls.contains(&notice.url) { notice.url } else { recall.url };
    Ok(Recall { agency: agency.to_owned(), title: or(notice.title, recall.title), url, date: or(notice.date, recall.date), ..recall })
}

/// The notice of an identity, from its facts: each field from the first fact that has it, in the order in which records take them.
async fn from_facts(view: &dyn View, identity: &str) -> Result<Notice, Problem> {
    let mut facts = facts_of(view, identity).await?;
    facts.retain(|(note, _)| !note.gone);
    let text = |field: fn(&RecallFact) -> &String| {
        facts.iter().map(|(_, fact)| field(fact)).find(|text| !text.is_empty()).cloned().unwrap_or_default()
    };
    Ok(Notice { title: text(|fact| &fact.title), url: text(|fact| &fact.url), date: text(|fact| &fact.date) })
}

/// The facts of an identity, each with what is remembered of its key, in the order in which records take values from them.
///
/// # Errors
/// When rows cannot be read.
pub(super) async fn facts_of(view: &dyn View, identity: &str) -> Result<Vec<(RememberedFact, RecallFact)>, Problem> {
    let members = view.get(&SETS, &key![format!("member/{identity}")]).await.map_err(store_problem)?;
    let members: Vec<String> = members.map(|bytes| stored(&SETS, &bytes)).transpose()?.unwrap_or_default();
    let keys: Vec<Key> = members.iter().map(|member| key![member.as_str()]).collect();
    let mut facts: Vec<(RememberedFact, RecallFact)> = Vec::new();
    for bytes in view.get_many(&SOURCES, &keys).await.map_err(store_problem)?.into_iter().flatten() {
        let mut note: RememberedFact = stored(&SOURCES, &bytes)?;
        if let Some(fact) = note.recall.take().filter(|fact| fact.identity() == identity) {
            facts.push((note, fact));
        }
    }
    facts.sort_by(|a, b| (a.1.rank(), &a.0.key).cmp(&(b.1.rank(), &b.0.key)));
    Ok(facts)
}
