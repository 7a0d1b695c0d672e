//! Live queries: a request that is sent to an upstream while one user waits. This module is as pure as the streams; the caller waits,
//! retries and caches.

use jiff::civil::Date;

pub use crate::live_page::{AwardAgency, LivePage};
pub use crate::usaspending::live::AwardOrder;
use crate::{Answer, Request, Settings, Stream, Upstream, UpstreamError, clinical_trials, edgar, nih_reporter, usaspending};

/// A live query to one upstream. `page` is empty for the first page, or else [`LivePage::next`] of the page before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// NIH RePORTER: grants whose title, abstract or terms contain all words.
    Grants {
        /// The words.
        keyword: String,
        /// The maximum number of results of a page.
        limit: usize,
        /// The page.
        page: String,
    },
    /// ClinicalTrials.gov: trials that contain all words, latest update first.
    Trials {
        /// The words; empty for any.
        keyword: String,
        /// The registry's class of the lead sponsor; empty for any.
        class: &'static str,
        /// The maximum number of results of a page.
        limit: usize,
        /// The page.
        page: String,
    },
    /// EDGAR full-text search: filings of a form within a range of dates.
    Filings {
        /// Form types; none for any.
        forms: Vec<String>,
        /// First filing date.
        start: Date,
        /// Last filing date, inclusive.
        end: Date,
        /// The page.
        page: String,
    },
    /// EDGAR: the filings of one filer, newest first.
    Company {
        /// The filer's CIK with 10 digits.
        cik: String,
    },
    /// USAspending: contract awards.
    Awards {
        /// Prefixes of industry codes (NAICS); none for any.
        naics: Vec<String>,
        /// Words of the recipient's name; empty for any.
        recipient: String,
        /// Awarding agencies, of which an award has one; none for any.
        agencies: Vec<AwardAgency>,
        /// First day of the actions.
        start: Date,
        /// Last day of the actions, inclusive.
        end: Date,
        /// The order of the results.
        order: AwardOrder,
        /// The page.
        page: String,
    },
}

impl Question {
    /// Returns the query for a page. The filings of one filer have one page.
    #[must_use]
    pub fn at_page(mut self, next: &str) -> Self {
        match &mut self {
            Self::Grants { page, .. } | Self::Trials { page, .. } | Self::Filings { page, .. } | Self::Awards { page, .. } => {
                next.clone_into(page);
            }
            Self::Company { .. } => {}
        }
        self
    }

    /// Returns the upstream of the query.
    #[must_use]
    pub fn upstream(&self) -> &'static dyn Upstream {
        match self {
            Self::Grants { .. } => &nih_reporter::NihReporter,
            Self::Trials { .. } => &clinical_trials::ClinicalTrials,
            Self::Filings { .. } | Self::Company { .. } => &edgar::Edgar,
            Self::Awards { .. } => &usaspending::UsaSpending,
        }
    }

    /// Returns the stream whose limits apply to the query and whose format its answers have.
    #[must_use]
    pub fn stream(&self) -> Option<&'static Stream> {
        let name = match self {
            Self::Grants { .. } => "nih_reporter",
            Self::Trials { .. } => "clinical_trials",
            Self::Filings { .. } | Self::Company { .. } => "edgar.submissions",
            Self::Awards { .. } => "usaspending.awards",
        };
        self.upstream().manifest().streams.iter().find(|stream| stream.name == name)
    }

    /// Builds the request.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`] when the upstream must not be requested with these settings.
    pub fn request(&self, stream: &Stream, settings: &Settings) -> Result<Request, UpstreamError> {
        Ok(match self {
            Self::Grants { keyword, limit, page } => nih_reporter::live::request(keyword, *limit, page),
            Self::Trials { keyword, class, limit, page } => clinical_trials::live::request(keyword, class, *limit, page),
            Self::Filings { forms, start, end, page } => edgar::live::search(stream, settings, forms, *start, *end, page)?,
            Self::Company { cik } => edgar::live::company(stream, settings, cik)?,
            Self::Awards { naics, recipient, agencies, start, end, order, page } => {
                usaspending::live::request(naics, recipient, agencies, (*start, *end), *order, page)
            }
        })
    }

    /// Maps an answer. Records that cannot be parsed are skipped.
    ///
    /// # Errors
    /// When the answer as a whole is refused.
    pub fn read(&self, stream: &Stream, answer: &Answer, today: Date) -> Result<LivePage, UpstreamError> {
        match self {
            Self::Grants { limit, page, .. } => nih_reporter::live::read(stream, answer, today, *limit, page),
            Self::Trials { .. } => clinical_trials::live::read(stream, answer, today),
            Self::Filings { page, .. } => edgar::live::found(stream, answer, today, page),
            Self::Company { cik } => edgar::live::listed(stream, answer, cik, today),
            Self::Awards { order, page, .. } => usaspending::live::read(stream, answer, *order, page),
        }
    }
}
