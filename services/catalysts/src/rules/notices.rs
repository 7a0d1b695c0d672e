//! Meetings of advisory committees, from notices of the Federal Register. The notices of one docket are one meeting: an amendment is a notice
//! of its own, often without a date.

use jiff::civil::Date;
use schemas::facts::meetings::MeetingFact;
use serde::{Deserialize, Serialize};
use texts::dates::{FoundDate, Precision, scan};

/// What the title of a notice of a meeting holds.
const TITLE_PARTS: [&str; 2] = ["advisory committee", "notice of meeting"];
/// Titles of notices that are about no drug, in lower case.
const OTHER_SUBJECTS: [&str; 5] = ["tobacco", "device", "pharmacy compounding", "charter", "renewal"];
/// Dockets that the agency uses for every meeting without a docket of its own end so.
const SHARED_DOCKET: &str = "-0001";
/// How many notices of one docket are remembered.
const NOTICES_MAX: usize = 50;

/// A notice, as far as later notices of the docket need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Notice {
    /// Day of publication.
    pub published: String,
    /// Number of the document.
    pub number: String,
    /// Title.
    pub title: String,
    /// Action.
    pub action: String,
    /// The text about dates, as published.
    pub dates: String,
    /// URL of the document.
    pub url: String,
    /// Day on which it was read.
    pub seen: String,
}

impl Notice {
    /// Returns what must be known of a fact.
    #[must_use]
    pub fn of(fact: &MeetingFact, seen: String) -> Self {
        let url = if fact.url.is_empty() { format!("https://www.federalregister.gov/d/{}", fact.number) } else { fact.url.clone() };
        Self {
            published: fact.published.clone(),
            number: fact.number.clone(),
            title: fact.title.clone(),
            action: fact.action.clone(),
            dates: fact.dates.clone(),
            url,
            seen,
        }
    }

    /// Whether it announces the meeting of a committee on drugs.
    #[must_use]
    pub fn is_announcement(&self) -> bool {
        let title = self.title.to_lowercase();
        TITLE_PARTS.iter().all(|part| title.contains(part)) && !self.is_other()
    }

    fn is_other(&self) -> bool {
        let title = self.title.to_lowercase();
        OTHER_SUBJECTS.iter().any(|subject| title.contains(subject))
    }

    /// Whether it says that the meeting does not take place.
    fn is_cancellation(&self) -> bool {
        [&self.title, &self.action].iter().any(|text| {
            let text = text.to_lowercase();
            text.contains("cancel") || text.contains("postpone")
        })
    }
}

/// A meeting, from all notices of its docket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// First and last day.
    pub days: (Date, Date),
    /// The notice that says so.
    pub anchor: Notice,
    /// Title of the newest announcement.
    pub title: String,
    /// The company whose application is discussed; empty if no title names one.
    pub company: String,
    /// The drug that is discussed; empty if no title names one.
    pub drug: String,
    /// Whether the newest notice cancels the meeting.
    pub is_cancelled: bool,
    /// How often the days changed from notice to notice.
    pub slips: i64,
    /// Day on which the first notice was read.
    pub first_seen: String,
}

/// Returns the key of a meeting within the service: its docket, unless many meetings share it, else its document.
#[must_use]
pub fn identity(fact: &MeetingFact) -> String {
    let docket = fact.docket_ids.iter().find(|docket| !docket.is_empty() && !docket.ends_with(SHARED_DOCKET));
    docket.unwrap_or(&fact.number).clone()
}

/// Adds a notice to those of its docket, in the place of an earlier version of itself.
pub fn add(notices: &mut Vec<Notice>, notice: Notice) {
    notices.retain(|known| known.number != notice.number);
    notices.push(notice);
    notices.sort_unstable();
    let excess = notices.len().saturating_sub(NOTICES_MAX);
    notices.drain(..excess);
}

/// Builds the meeting from the notices of a docket in their order; `None` if none of them announces one with a day.
#[must_use]
pub fn meeting(notices: &[Notice]) -> Option<Meeting> {
    let own: Vec<&Notice> = notices.iter().filter(|notice| !notice.is_other()).collect();
    let announcement = own.iter().rev().find(|notice| notice.is_announcement())?;
    let dated: Vec<(&Notice, (Date, Date))> = own.iter().filter_map(|notice| Some((*notice, meeting_days(&notice.dates)?))).collect();
    let (anchor, days) = dated.last()?;
    let parties = own.iter().rev().map(|notice| parties(&notice.title)).find(|(company, drug)| !company.is_empty() || !drug.is_empty());
    let (company, drug) = parties.unwrap_or_default();
    let first_seen = own.iter().map(|notice| notice.seen.as_str()).min().unwrap_or_default().to_owned();
    let slips = dated.windows(2).filter(|pair| matches!(pair, [(_, one), (_, other)] if one != other)).count();
    Some(Meeting {
        days: *days,
        anchor: (*anchor).clone(),
        title: announcement.title.clone(),
        company,
        drug,
        is_cancelled: own.last().is_some_and(|notice| notice.is_cancellation()),
        slips: i64::try_from(slips).unwrap_or_default(),
        first_seen,
    })
}

/// Returns the first and the last day of a meeting that a text names. Days until which comments are due do not count.
#[must_use]
pub fn meeting_days(text: &str) -> Option<(Date, Date)> {
    let found: Vec<FoundDate> = scan(text, None).into_iter().filter(|date| date.precision == Precision::Day).collect();
    let (mut from, mut is_meeting, mut days) = (0, true, Vec::new());
    for date in &found {
        let lead = text.get(from..date.start).unwrap_or_default().to_lowercase();
        let last = |words: &[&str]| words.iter().filter_map(|word| lead.rfind(word)).max();
        let meets = last(&["meeting", "held", "convene", "will meet", "take place"]);
        let other = last(&[
            "comment",
            "submi",
            "due",
            "deadline",
            "received",
            "request",
            "registration",
            "register",
            "notify",
            "before",
            "published",
        ]);
        // A further day of a list belongs to what the list is about.
        is_meeting = match (meets, other) {
            (None, None) => is_meeting,
            (meets, other) => meets >= other && meets.is_some(),
        };
        if is_meeting {
            days.push(date.from);
        }
        from = date.end;
    }
    Some((*days.iter().min()?, *days.iter().max()?))
}

/// Reads company and drug from a title: "… BLA 125842 From Capricor, Inc. for Deramiocel". Empty if the title names none.
fn parties(title: &str) -> (String, String) {
    let lower = title.to_lowercase();
    if lower.len() != title.len() {
        return Default::default();
    }
    let Some(from) = lower.rfind(" from ") else { return Default::default() };
    let rest = from + " from ".len();
    let Some(end) = lower.get(rest..).and_then(|text| text.find(" for ")).map(|at| rest + at) else { return Default::default() };
    let part = |text: Option<&str>| text.unwrap_or_default().trim().trim_end_matches([',', ';']).to_owned();
    let drug = title.get(end + " for ".len()..).map(|text| text.split([';', '—', '(']).next().unwrap_or_default());
    (part(title.get(rest..end)), part(drug))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn notice(number: &str, title: &str, dates: &str) -> Notice {
        Notice {
            published: format!("2026-08-{number}"),
            number: number.into(),
            title: title.into(),
            dates: dates.into(),
            ..Notice::default()
        }
    }

    /// Proves which days of a text are days of a meeting.
    #[test]
    fn days() {
        let one = |day| Some((day, day));
        for (text, expected) in [
            ("The meeting will be held on September 23, 2026, from 9 a.m. to 6 p.m. Eastern Time.", one(date(2026, 9, 23))),
            ("The meeting will be held on July 23 and July 24, 2026.", Some((date(2026, 7, 23), date(2026, 7, 24)))),
            ("Meeting: October 1, 2026", one(date(2026, 10, 1))),
            ("October 1, 2026", one(date(2026, 10, 1))),
            ("Comments due by June 30, 2026", None),
            ("Comments are due by June 30, 2026. The meeting will be held on July 9, 2026.", one(date(2026, 7, 9))),
            ("The meeting will be held on July 9, 2026. Submit comments by June 30, 2026.", one(date(2026, 7, 9))),
            ("", None),
        ] {
            assert_eq!(meeting_days(text), expected, "{text}");
        }
    }

    /// Proves that device panels, tobacco, charters and renewals are no meetings, and that company and drug come from the title alone.
    #[test]
    fn announcements() {
        let title = "Cellular, Tissue, and Gene Therapies Advisory Committee; Notice of Meeting; Establishment of a Public Docket; Request for \
            Comments — BLA 125842 From Capricor, Inc. for Deramiocel";
        let one = meeting(&[notice("01", title, "Meeting: October 1, 2026")]).unwrap();
        assert_eq!((&*one.company, &*one.drug, one.slips), ("Capricor, Inc.", "Deramiocel", 0));
        for other in [
            "Tobacco Products Scientific Advisory Committee; Notice of Meeting",
            "Circulatory System Devices Panel of the Medical Devices Advisory Committee; Notice of Meeting",
            "Pharmacy Compounding Advisory Committee; Notice of Meeting",
            "Blood Products Advisory Committee; Renewal; Notice of Meeting",
            "Oncologic Drugs Advisory Committee; Charter; Notice of Meeting",
            "Oncologic Drugs Advisory Committee; Request for Nominations",
        ] {
            assert_eq!(meeting(&[notice("01", other, "Meeting: October 1, 2026")]), None, "{other}");
        }
        assert_eq!(parties("Oncologic Drugs Advisory Committee; Notice of Meeting"), (String::new(), String::new()));
    }

    /// Proves that an amendment without a date changes nothing, that one with another date moves the meeting, and that a cancellation ends
    /// it.
    #[test]
    fn amendments() {
        let base = notice("01", "Oncologic Drugs Advisory Committee; Notice of Meeting", "The meeting will be held on October 1, 2026.");
        let mut all = vec![base];
        add(&mut all, notice("02", "Oncologic Drugs Advisory Committee; Amendment of Notice", ""));
        let same = meeting(&all).unwrap();
        assert_eq!((same.days.0, &*same.anchor.number, same.slips), (date(2026, 10, 1), "01", 0));
        add(
            &mut all,
            notice("03", "Oncologic Drugs Advisory Committee; Amendment of Notice", "The meeting will be held on November 5, 2026."),
        );
        let moved = meeting(&all).unwrap();
        assert_eq!((moved.days.0, &*moved.anchor.number, moved.slips, moved.is_cancelled), (date(2026, 11, 5), "03", 1, false));
        add(&mut all, notice("04", "Oncologic Drugs Advisory Committee; Cancellation of Meeting", ""));
        assert!(meeting(&all).unwrap().is_cancelled);
    }

    /// Proves that a docket of its own identifies a meeting, and that a docket for all meetings does not.
    #[test]
    fn identities() {
        let notice_with = |dockets: &[&str]| {
            let docket_ids = dockets.iter().map(|docket| (*docket).to_owned()).collect();
            identity(&MeetingFact { number: "2026-1".into(), docket_ids, ..MeetingFact::default() })
        };
        assert_eq!(
            (notice_with(&["FDA-2026-N-0001"]), notice_with(&["FDA-2026-N-0001", "FDA-2026-N-4321"]), notice_with(&[])),
            ("2026-1".into(), "FDA-2026-N-4321".into(), "2026-1".into())
        );
    }
}
