//! Questions that are asked of an upstream now, for one reader: what to ask, and what the answer means. As pure as the doors; whoever asks
//! waits, retries and caches.

use jiff::civil::Date;
use schemas::facts::FactData;

use crate::{Answer, Door, Request, Settings, Upstream, UpstreamError, clinical_trials, edgar, nih_reporter, usaspending};

/// A question to one upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Grants whose title, abstract or terms have all words; NIH RePORTER.
    Grants {
        /// The words.
        keyword: String,
        /// How many at most.
        limit: usize,
    },
    /// Trials that have all words, those changed last first; ClinicalTrials.gov.
    Trials {
        /// The words; empty for any.
        keyword: String,
        /// The registry's class of the lead sponsor; empty for any.
        class: &'static str,
        /// How many at most.
        limit: usize,
    },
    /// Filings of a form within days; EDGAR's full-text search.
    Filings {
        /// Form types; none for any.
        forms: Vec<String>,
        /// First filing date.
        start: Date,
        /// Last filing date.
        end: Date,
    },
    /// The filings of one filer, newest first; EDGAR.
    Company {
        /// 10 digits.
        cik: String,
    },
    /// Contract awards; USAspending.
    Awards {
        /// Beginnings of industry codes; none for any.
        naics: Vec<String>,
        /// Words of the recipient's name; empty for any.
        recipient: String,
        /// First day of an action.
        start: Date,
        /// Last day of an action.
        end: Date,
        /// Which come first.
        order: AwardOrder,
    },
}

/// In which order awards come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AwardOrder {
    /// Those with the last action first.
    Newest,
    /// The largest first.
    Largest,
    /// Those that end next after a day first.
    EndingAfter(Date),
}

impl Question {
    /// The upstream it is for.
    #[must_use]
    pub fn upstream(&self) -> &'static dyn Upstream {
        match self {
            Self::Grants { .. } => &nih_reporter::NihReporter,
            Self::Trials { .. } => &clinical_trials::ClinicalTrials,
            Self::Filings { .. } | Self::Company { .. } => &edgar::Edgar,
            Self::Awards { .. } => &usaspending::UsaSpending,
        }
    }

    /// The door whose limits hold for it, and whose form its answers have.
    #[must_use]
    pub fn door(&self) -> Option<&'static Door> {
        let name = match self {
            Self::Grants { .. } => "nih_reporter",
            Self::Trials { .. } => "clinical_trials",
            Self::Filings { .. } | Self::Company { .. } => "edgar.submissions",
            Self::Awards { .. } => "usaspending.awards",
        };
        self.upstream().manifest().doors.iter().find(|door| door.name == name)
    }

    /// What to ask.
    ///
    /// # Errors
    /// [`UpstreamError::Stop`] when the upstream must not be asked with these settings.
    pub fn request(&self, door: &Door, settings: &Settings) -> Result<Request, UpstreamError> {
        Ok(match self {
            Self::Grants { keyword, limit } => nih_reporter::live::request(keyword, *limit),
            Self::Trials { keyword, class, limit } => clinical_trials::live::request(keyword, class, *limit),
            Self::Filings { forms, start, end } => edgar::live::search(door, settings, forms, *start, *end)?,
            Self::Company { cik } => edgar::live::company(door, settings, cik)?,
            Self::Awards { naics, recipient, start, end, order } => usaspending::live::request(naics, recipient, *start, *end, *order),
        })
    }

    /// What an answer says. Records that cannot be read are left out.
    ///
    /// # Errors
    /// When the answer as a whole cannot be taken.
    pub fn read(&self, door: &Door, answer: &Answer, today: Date) -> Result<Vec<FactData>, UpstreamError> {
        match self {
            Self::Grants { .. } => nih_reporter::live::read(door, answer, today),
            Self::Trials { .. } => clinical_trials::live::read(door, answer, today),
            Self::Filings { .. } => edgar::live::found(door, answer, today),
            Self::Company { cik } => edgar::live::listed(door, answer, cik, today),
            Self::Awards { .. } => usaspending::live::read(door, answer),
        }
    }
}
