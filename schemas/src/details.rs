//! Change details: the fields that a change shows next to its record. Each kind of record has its own.

use std::borrow::Cow;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::news::News;

/// A record whose changes can be shown.
pub trait ChangeRecord {
    /// The change details of its changes: a struct, whose fields are serialized as members of the change.
    type Details: Serialize + DeserializeOwned + JsonSchema + Clone + Default + std::fmt::Debug + Send + Sync + 'static;

    /// The change details that tell something of the record before the change, as JSON spells them; they can be null. Who is not shown that version of the
    /// record gets null.
    const COMPARED: &'static [&'static str] = &[];

    /// Sets the fields that depend on the day on which the record is read; `None` if it has none. They are stored as they were decided, changes show
    /// them so, and every read of a record sets them for the day of its answer.
    const ON_DAY: Option<fn(&mut Self, Date)> = None;

    /// Returns the record as it is read on a day.
    #[must_use]
    fn on_day(mut self, day: Date) -> Self
    where
        Self: Sized,
    {
        if let Some(set) = Self::ON_DAY {
            set(&mut self, day);
        }
        self
    }

    /// Whether tables of current records contain the record: it exists at its upstream, and it is a record of its own.
    fn is_in_tables(&self) -> bool {
        true
    }

    /// For how long the record is news when it is recorded first. `None`: always.
    fn news(&self) -> Option<News> {
        None
    }

    /// Whether a change of the record, with these details, that was recorded on a day records only late what happened long before. `is_new`: the change
    /// recorded the record first.
    fn is_backfill(&self, _details: &Self::Details, is_new: bool, recorded: Date) -> bool {
        is_new && self.news().is_some_and(|news| news.is_late(recorded))
    }
}

/// No change details.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoDetails {}

/// The change details of a record with a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkDetails {
    /// A remark on the record's `url`, if it leads to another site than that of the agency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_note: Option<Cow<'static, str>>,
}

impl LinkDetails {
    /// Returns the details of a record with this link, whose agency has these sites.
    #[must_use]
    pub fn new(url: &str, sites: &[&str]) -> Self {
        Self { url_note: url_note(url, sites).map(Cow::Borrowed) }
    }
}

/// Sites of the agencies whose recalls are served.
pub const RECALL_SITES: [&str; 7] = ["cpsc.gov", "fda.gov", "nhtsa.dot.gov", "nhtsa.gov", "safercar.gov", "saferproducts.gov", "usda.gov"];
/// Sites of the funder whose grants are served.
pub const GRANT_SITES: [&str; 1] = ["nih.gov"];

/// The remark on a link to another site.
const ELSEWHERE: &str = "not on the agency's own site";

/// Returns the remark on a record's link; `None` if there is no link, or if its host is one of these sites or below one.
///
/// An upstream's data may contain any link. The remark is computed from the link when a record is shown and is never stored with it, so a
/// longer list of sites publishes no change.
#[must_use]
pub fn url_note(url: &str, sites: &[&str]) -> Option<&'static str> {
    if url.is_empty() {
        return None;
    }
    let parsed = Url::parse(url).ok();
    let is_own = match parsed.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            sites.iter().any(|site| name.strip_suffix(site).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
        }
        _ => false,
    };
    (!is_own).then_some(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which links get a remark: links to a site or below it do not; links to look-alikes and addresses, and text that is no URL, do.
    #[test]
    fn links_to_other_sites_get_a_remark() {
        let own =
            ["", "https://www.cpsc.gov/Recalls/1", "https://cpsc.gov", "https://WWW.FSIS.USDA.GOV./x", "https://static.nhtsa.gov/a?b#c"];
        let elsewhere = [
            "https://evil.example/www.cpsc.gov",
            "https://notcpsc.gov/",
            "https://cpsc.gov.evil.example/",
            "https://www.cpsc.gov@evil.example/",
            "https://192.0.2.1/",
            "https://gov/",
            "cpsc.gov",
        ];
        for url in own {
            assert_eq!(url_note(url, &RECALL_SITES), None, "{url}");
        }
        for url in elsewhere {
            assert_eq!(url_note(url, &RECALL_SITES), Some(ELSEWHERE), "{url}");
        }
        assert_eq!(url_note("https://www.cpsc.gov/", &GRANT_SITES), Some(ELSEWHERE));
    }
}
