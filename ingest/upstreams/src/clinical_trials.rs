//! Clinical trials of the registry ClinicalTrials.gov, through its second interface.
//!
//! Read by the day of the last posted update, in which a new trial, a new status and new results show all alike. Everything is what was
//! updated within the last [`YEARS`] years, month by month: what is under way must be updated once a year.
//!
//! The registry publishes itself anew each working day. Its version is asked for before and after a run; if it moved, the pages are of
//! two versions, and the last days are read once more.
//!
//! Everything empty is left out of a record, so nothing but identity, title, status, sponsor and day of update is expected.

pub(crate) mod live;

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::trials::{Intervention, TrialFact};
use schemas::position::UpstreamCursor;
use schemas::topics::TRIALS;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::{self, Field, Part, Records};
use crate::{Answer, Door, Manifest, Observation, Page, Request, Settings, Upstream, UpstreamError, Window, drift, text, us_states};

const ORIGIN: &str = "https://clinicaltrials.gov";
/// How many years back everything reaches.
pub const YEARS: i16 = 2;
/// Records a page: the most the server gives.
const LIMIT: usize = 1_000;
/// What is read once more when the registry was published anew during a run, in days.
const AGAIN_DAYS: i64 = 3;
/// A longer page token is not taken.
const TOKEN_BYTES_MAX: usize = 4_000;
/// What is asked for, by the registry's names of pieces.
const FIELDS: &str = "NCTId|NCTIdAlias|BriefTitle|OfficialTitle|Acronym|OverallStatus|LastKnownStatus|WhyStopped|StartDate|StartDateType|\
    PrimaryCompletionDate|PrimaryCompletionDateType|CompletionDate|CompletionDateType|StudyFirstPostDate|ResultsFirstPostDate|\
    LastUpdatePostDate|LeadSponsorName|LeadSponsorClass|CollaboratorName|BriefSummary|Condition|Keyword|StudyType|Phase|EnrollmentCount|\
    EnrollmentType|InterventionType|InterventionName|LocationFacility|LocationState|LocationCountry";
/// The filter that chooses what is read.
const FILTER: &str = "filter.advanced";
/// Media types under which the version is told, or that there is none. A person's page is no version.
const VERSION_MEDIA_TYPES: &[&str] = &["application/json", "text/json", "text/plain", "text/html", "application/octet-stream"];
const TITLE_CHARS_MAX: usize = 600;
const NAME_CHARS_MAX: usize = 200;
const FACILITY_CHARS_MAX: usize = 120;
const REASON_CHARS_MAX: usize = 500;
const SUMMARY_CHARS_MAX: usize = 1_000;
const LIST_MAX: usize = 100;
const COLLABORATORS_MAX: usize = 50;
const COUNTRIES_MAX: usize = 250;
const INSTITUTIONS_MAX: usize = 400;
/// The country whose states are told.
const UNITED_STATES: &str = "United States";

static MANIFEST: Manifest = Manifest {
    name: "clinical_trials",
    doors: &[Door {
        name: "clinical_trials",
        topic: &TRIALS,
        every: Duration::ZERO,
        snapshot: false,
        answer_bytes_max: 128 << 20,
        answer_timeout: Duration::from_secs(180),
    }],
    full_after: Duration::from_secs(7 * 86_400),
};

/// The upstream.
#[derive(Debug)]
pub struct ClinicalTrials;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// The registry's version, before the first page.
    Before,
    /// A page.
    Studies,
    /// The registry's version, after the last page.
    After,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    step: Step,
    /// The days this request asks for; the last window of a run has no end.
    from: Date,
    to: Date,
    /// The last day of the run.
    stop: Date,
    /// The page of the window; none is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// How many the window's first page promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// Records of this window that came.
    seen: usize,
    /// The registry's version, as far as it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    version: String,
    /// The last days are being read once more.
    #[serde(default)]
    again: bool,
}

impl Cursor {
    /// The month that begins with a day.
    fn month(&self, from: Date) -> Self {
        let to = from.last_of_month().min(self.stop);
        Self { step: Step::Studies, from, to, token: None, total: None, seen: 0, ..self.clone() }
    }

    fn next_window(&self) -> Option<Self> {
        if self.to < self.stop {
            return Some(self.month(self.to.saturating_add(1.day())));
        }
        (!self.again && !self.version.is_empty()).then(|| Self { step: Step::After, token: None, ..self.clone() })
    }

    fn contains(&self, day: Date) -> bool {
        day >= self.from && (day <= self.to || self.to >= self.stop)
    }
}

impl Upstream for ClinicalTrials {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn start(&self, _door: &Door, window: &Window, _settings: &Settings) -> UpstreamCursor {
        let stop = window.to;
        let from = window.from.unwrap_or_else(|| stop.checked_sub(i32::from(YEARS).years()).unwrap_or(stop)).min(stop);
        let (token, total, seen, version, again) = (None, None, 0, String::new(), false);
        let cursor = Cursor { step: Step::Before, from, to: stop, stop, token, total, seen, version, again };
        json::write_cursor(Cursor { step: Step::Before, ..cursor.month(from) })
    }

    fn request(&self, door: &Door, cursor: &UpstreamCursor, _settings: &Settings) -> Result<Request, UpstreamError> {
        let cursor: Cursor = json::read_cursor(door.name, cursor)?;
        let is_page = cursor.step == Step::Studies;
        let path = if is_page { path_of(&cursor) } else { "/api/v2/version".to_owned() };
        Ok(Request {
            origin: ORIGIN.to_owned(),
            path,
            body: None,
            headers: vec![("accept", "application/json".to_owned())],
            // Without a version a run is as good as before there was one to ask for.
            accepts_statuses: if is_page { &[] } else { &[400, 404, 405, 410, 501] },
            media_types: if is_page { crate::cpsc::JSON_MEDIA_TYPES } else { VERSION_MEDIA_TYPES },
            conditional: false,
            wall: None,
        })
    }

    fn map(&self, door: &Door, cursor: &UpstreamCursor, answer: &Answer, today: Date) -> Result<Page, UpstreamError> {
        let cursor: Cursor = json::read_cursor(door.name, cursor)?;
        let mut warnings = Vec::new();
        let body = json::body_text(&answer.body, &mut warnings);
        let envelope = read(door.name, &body);
        // A rejected record that is taken again comes as a page, at a run's first cursor.
        let (records, token, total) = match envelope {
            Ok(Envelope { studies: Some(studies), next_page_token, total_count, .. }) => {
                (Records::of_list(studies), next_page_token, total_count)
            }
            Ok(Envelope { nct_section, .. }) if nct_section.is_object() => {
                (Records::of_one(door.name, &body)?, Field::Absent, Field::Absent)
            }
            other if cursor.step != Step::Studies => return Ok(versioned(&cursor, other.ok(), warnings)),
            Ok(Envelope { message, .. }) => {
                return Err(json::later(door.name, format!("an answer without studies: {}", text::cut(message.clean(), 200))));
            }
            Err(error) => return Err(error),
        };
        let mut outside = 0;
        let (observations, rejects) = records.map(door.name, EXPECTED, |study: &Study<'_>| {
            let updated = text::date(study.sections().status.last_update_post_date_struct.object::<Moment<'_>>().date.text());
            outside += usize::from(updated.is_some_and(|day| !cursor.contains(day)));
            observe(door, study, today)
        })?;
        warnings.extend(drift::outside(door.name, FILTER, outside, records.len())?);
        let next = follow(door.name, &cursor, records.len(), &token, &total, &mut warnings)?;
        Ok(Page { observations, rejects, next: next.map(json::write_cursor), warnings, ..Page::default() })
    }

    fn single(&self, _door: &Door, raw: &[u8]) -> Vec<u8> {
        [br#"{"studies":["#, raw, b"]}"].concat()
    }
}

fn path_of(cursor: &Cursor) -> String {
    let to = if cursor.to < cursor.stop { cursor.to.to_string() } else { "MAX".to_owned() };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(FILTER, &format!("AREA[LastUpdatePostDate]RANGE[{},{to}]", cursor.from));
    query.append_pair("sort", "LastUpdatePostDate:asc").append_pair("fields", FIELDS).append_pair("pageSize", &LIMIT.to_string());
    match &cursor.token {
        Some(token) => query.append_pair("pageToken", token),
        None => query.append_pair("countTotal", "true"),
    };
    format!("/api/v2/studies?{}", query.finish())
}

/// What follows from the registry's version, or from there being none.
fn versioned(cursor: &Cursor, answer: Option<Envelope<'_>>, mut warnings: Vec<String>) -> Page {
    let version = answer.map(|answer| text::cut(answer.data_timestamp.clean(), 40)).unwrap_or_default();
    let moved = cursor.step == Step::After && !version.is_empty() && version != cursor.version;
    let next = if cursor.step == Step::Before {
        if version.is_empty() {
            warnings.push("the registry names no version: whether it moves during the run is not known".to_owned());
        }
        Some(Cursor { step: Step::Studies, version, ..cursor.clone() })
    } else if moved {
        warnings.push("the registry was published anew during the run: its last days are read once more".to_owned());
        let from = cursor.stop.checked_sub(AGAIN_DAYS.days()).unwrap_or(cursor.stop);
        Some(Cursor { again: true, version, ..cursor.month(from) })
    } else {
        None
    };
    Page { next: next.map(json::write_cursor), warnings, ..Page::default() }
}

/// Where to go on after a page. A page without records may still be followed by others; only the token counts.
fn follow(
    door: &'static str,
    cursor: &Cursor,
    read: usize,
    token: &Field<'_>,
    total: &Field<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<Cursor>, UpstreamError> {
    let seen = cursor.seen.saturating_add(read);
    let total = cursor.total.or_else(|| usize::try_from(total.whole()?).ok());
    let token = Some(token.text().to_owned()).filter(|token| !token.is_empty());
    if token.as_ref().is_some_and(|token| token.len() > TOKEN_BYTES_MAX) {
        return Err(json::later(door, format!("nextPageToken is longer than {TOKEN_BYTES_MAX} bytes")));
    }
    if token.is_some() && token == cursor.token {
        warnings.push(format!("the page after is the page itself: the window {} to {} ended early", cursor.from, cursor.to));
    } else if token.is_some() {
        return Ok(Some(Cursor { step: Step::Studies, token, total, seen, ..cursor.clone() }));
    }
    if let Some(total) = total.filter(|total| seen < *total) {
        warnings.push(format!("the window {} to {} holds {total} records by the answer, {seen} came", cursor.from, cursor.to));
    }
    Ok(cursor.next_window())
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    studies: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    next_page_token: Field<'a>,
    #[serde(borrow)]
    total_count: Field<'a>,
    /// Of a study that comes alone.
    #[serde(borrow, rename = "protocolSection")]
    nct_section: Part<'a>,
    #[serde(borrow)]
    data_timestamp: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}

fn read<'a>(door: &'static str, body: &'a str) -> Result<Envelope<'a>, UpstreamError> {
    serde_json::from_str(body).map_err(|error| json::not_json(door, body, &error))
}

type Holds = fn(&Study<'_>) -> bool;

const EXPECTED: &[(&str, Holds)] = &[
    ("protocolSection", |study| study.protocol_section.is_object()),
    ("identificationModule.nctId", |study| study.sections().identification.nct_id.is_text()),
    ("identificationModule.briefTitle", |study| study.sections().identification.brief_title.is_text()),
    ("statusModule.overallStatus", |study| study.sections().status.overall_status.is_text()),
    ("statusModule.lastUpdatePostDateStruct.date", |study| {
        study.sections().status.last_update_post_date_struct.object::<Moment<'_>>().date.is_text()
    }),
    ("sponsorCollaboratorsModule.leadSponsor", |study| study.sections().sponsors.lead_sponsor.is_object()),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Study<'a> {
    #[serde(borrow)]
    protocol_section: Part<'a>,
}

impl<'a> Study<'a> {
    fn sections(&self) -> Sections<'a> {
        let protocol: Protocol<'a> = self.protocol_section.object();
        Sections {
            identification: protocol.identification_module.object(),
            status: protocol.status_module.object(),
            sponsors: protocol.sponsor_collaborators_module.object(),
            description: protocol.description_module.object(),
            conditions: protocol.conditions_module.object(),
            design: protocol.design_module.object(),
            arms: protocol.arms_interventions_module.object(),
            locations: protocol.contacts_locations_module.object(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Protocol<'a> {
    #[serde(borrow)]
    identification_module: Part<'a>,
    #[serde(borrow)]
    status_module: Part<'a>,
    #[serde(borrow)]
    sponsor_collaborators_module: Part<'a>,
    #[serde(borrow)]
    description_module: Part<'a>,
    #[serde(borrow)]
    conditions_module: Part<'a>,
    #[serde(borrow)]
    design_module: Part<'a>,
    #[serde(borrow)]
    arms_interventions_module: Part<'a>,
    #[serde(borrow)]
    contacts_locations_module: Part<'a>,
}

/// The modules of a study that are read; one that is absent says nothing.
struct Sections<'a> {
    identification: Identification<'a>,
    status: Status<'a>,
    sponsors: Sponsors<'a>,
    description: Description<'a>,
    conditions: Conditions<'a>,
    design: Design<'a>,
    arms: Arms<'a>,
    locations: Locations<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Identification<'a> {
    #[serde(borrow)]
    nct_id: Field<'a>,
    #[serde(borrow)]
    nct_id_aliases: Field<'a>,
    #[serde(borrow)]
    brief_title: Field<'a>,
    #[serde(borrow)]
    official_title: Field<'a>,
    #[serde(borrow)]
    acronym: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow)]
    overall_status: Field<'a>,
    #[serde(borrow)]
    last_known_status: Field<'a>,
    #[serde(borrow)]
    why_stopped: Field<'a>,
    #[serde(borrow)]
    start_date_struct: Part<'a>,
    #[serde(borrow)]
    primary_completion_date_struct: Part<'a>,
    #[serde(borrow)]
    completion_date_struct: Part<'a>,
    #[serde(borrow)]
    study_first_post_date_struct: Part<'a>,
    #[serde(borrow)]
    results_first_post_date_struct: Part<'a>,
    #[serde(borrow)]
    last_update_post_date_struct: Part<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Moment<'a> {
    #[serde(borrow)]
    date: Field<'a>,
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sponsors<'a> {
    #[serde(borrow)]
    lead_sponsor: Part<'a>,
    #[serde(borrow)]
    collaborators: Part<'a>,
}

/// A sponsor, or something that is tried.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named<'a> {
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    class: Field<'a>,
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Description<'a> {
    #[serde(borrow)]
    brief_summary: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions<'a> {
    #[serde(borrow)]
    conditions: Field<'a>,
    #[serde(borrow)]
    keywords: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Design<'a> {
    #[serde(borrow)]
    study_type: Field<'a>,
    #[serde(borrow)]
    phases: Field<'a>,
    #[serde(borrow)]
    enrollment_info: Part<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Enrollment<'a> {
    #[serde(borrow)]
    count: Field<'a>,
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Arms<'a> {
    #[serde(borrow)]
    interventions: Part<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Locations<'a> {
    #[serde(borrow)]
    locations: Part<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Location<'a> {
    #[serde(borrow)]
    facility: Field<'a>,
    #[serde(borrow)]
    state: Field<'a>,
    #[serde(borrow)]
    country: Field<'a>,
}

fn observe(door: &Door, study: &Study<'_>, today: Date) -> Result<Observation, (String, String)> {
    let Sections { identification, status, sponsors, description, conditions, design, arms, locations } = study.sections();
    let number = identification.nct_id.text().trim().to_owned();
    if !is_nct(&number) {
        return Err((text::cut(text::clean(&number), 100), "nctId is not NCT and eight digits".to_owned()));
    }
    let title = plain(&identification.brief_title, TITLE_CHARS_MAX);
    let official_title = plain(&identification.official_title, TITLE_CHARS_MAX);
    let lead: Named<'_> = sponsors.lead_sponsor.object();
    let enrollment: Enrollment<'_> = design.enrollment_info.object();
    let (start, start_type) = moment(status.start_date_struct, today);
    let (primary_completion, primary_completion_type) = moment(status.primary_completion_date_struct, today);
    let (completion, completion_type) = moment(status.completion_date_struct, today);
    let posted = |part: Part<'_>| text::plausible_date(part.object::<Moment<'_>>().date.text(), today);
    let aliases: Vec<String> = identification.nct_id_aliases.list().into_iter().filter(|alias| is_nct(alias) && *alias != number).collect();
    let collaborators: Vec<Named<'_>> = sponsors.collaborators.list();
    let sites: Vec<Location<'_>> = locations.locations.list();
    let in_states = |site: &&Location<'_>| site.country.text().trim().eq_ignore_ascii_case(UNITED_STATES);
    let interventions: Vec<Named<'_>> = arms.interventions.list();
    let data = TrialFact {
        door: door.name.to_owned(),
        url: format!("{ORIGIN}/study/{number}"),
        official_title: if official_title == title { String::new() } else { official_title },
        title,
        acronym: plain(&identification.acronym, 100),
        sponsor: plain(&lead.name, NAME_CHARS_MAX),
        sponsor_class: plain(&lead.class, 40),
        collaborators: distinct(collaborators.iter().map(|one| plain(&one.name, NAME_CHARS_MAX)), COLLABORATORS_MAX),
        phase: phase(&design.phases),
        status: plain(&status.overall_status, 40),
        last_known_status: plain(&status.last_known_status, 40),
        why_stopped: plain(&status.why_stopped, REASON_CHARS_MAX),
        study_type: plain(&design.study_type, 40),
        start,
        start_type,
        primary_completion,
        primary_completion_type,
        completion,
        completion_type,
        first_posted: posted(status.study_first_post_date_struct),
        results_posted: posted(status.results_first_post_date_struct),
        updated: posted(status.last_update_post_date_struct),
        enrollment: enrollment.count.whole().filter(|count| *count >= 0),
        enrollment_type: plain(&enrollment.kind, 40),
        conditions: listed(&conditions.conditions),
        keywords: listed(&conditions.keywords),
        interventions: interventions
            .iter()
            .map(|one| Intervention { kind: plain(&one.kind, 40), name: plain(&one.name, NAME_CHARS_MAX) })
            .filter(|one| !one.name.is_empty())
            .take(LIST_MAX)
            .collect(),
        states: distinct(sites.iter().filter(in_states).map(|site| state(&site.state)), COUNTRIES_MAX),
        countries: distinct(sites.iter().map(|site| plain(&site.country, FACILITY_CHARS_MAX)), COUNTRIES_MAX),
        institutions: institutions(&sites, in_states),
        sites: i64::try_from(sites.len()).ok().filter(|sites| *sites > 0),
        summary: plain(&description.brief_summary, SUMMARY_CHARS_MAX),
        aliases: distinct(aliases.iter().cloned(), LIST_MAX),
        number,
    };
    let replaces = data.aliases.iter().map(|alias| format!("{}/{alias}", door.name)).collect();
    Ok(Observation { key: format!("{}/{}", door.name, data.number), data: FactData::Trial(Box::new(data)), replaces })
}

fn is_nct(text: &str) -> bool {
    text.strip_prefix("NCT").is_some_and(|digits| digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A field's text, its Markdown escapes undone (`\[rHGG\]` is `[rHGG]`).
fn plain(field: &Field<'_>, chars_max: usize) -> String {
    text::cut(text::clean(&unescaped(field.text())), chars_max)
}

/// The text without the backslashes that stand before a sign.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        if sign != '\\' || !signs.peek().is_some_and(char::is_ascii_punctuation) {
            out.push(sign);
        } else {
            out.extend(signs.next());
        }
    }
    out
}

/// The texts of a list, in their order.
fn listed(field: &Field<'_>) -> Vec<String> {
    let one = std::slice::from_ref(field);
    let all = if let Field::List(list) = field { list.as_slice() } else { one };
    all.iter().map(|text| plain(text, NAME_CHARS_MAX)).filter(|text| !text.is_empty()).take(LIST_MAX).collect()
}

/// What holds something, sorted, each once.
fn distinct(texts: impl Iterator<Item = String>, texts_max: usize) -> Vec<String> {
    let mut texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.sort();
    texts.dedup();
    texts.truncate(texts_max);
    texts
}

/// `N/A` where phases do not apply; two of them joined; empty where none is named, which is not the same.
fn phase(phases: &Field<'_>) -> String {
    match listed(phases).as_slice() {
        [one] if one == "NA" => "N/A".to_owned(),
        phases => text::cut(phases.join("/"), 60),
    }
}

/// A date as precise as it is given, day or month, and whether it is actual. A date that cannot be true is left out.
fn moment(part: Part<'_>, today: Date) -> (String, String) {
    let Moment { date, kind } = part.object();
    let text = date.text().trim();
    let years = 1900..=today.year().saturating_add(100);
    let day = text::date(text).map(|day| (day, day.to_string()));
    let month = || (text.len() == 7).then(|| text::date(&format!("{text}-01")).map(|day| (day, text.to_owned()))).flatten();
    match day.or_else(month).filter(|(day, _)| years.contains(&day.year())) {
        Some((_, date)) => (date, plain(&kind, 40)),
        None => (String::new(), String::new()),
    }
}

/// The state's two letters; its name where that is not known.
fn state(field: &Field<'_>) -> String {
    let name = plain(field, FACILITY_CHARS_MAX);
    us_states::letters(&name).map_or(name, str::to_owned)
}

/// The names of the sites. Where there are too many, those in the United States stay.
fn institutions(sites: &[Location<'_>], in_states: impl Fn(&&Location<'_>) -> bool) -> Vec<String> {
    let name = |site: &Location<'_>| plain(&site.facility, FACILITY_CHARS_MAX);
    let near = distinct(sites.iter().filter(|site| in_states(site)).map(name), INSTITUTIONS_MAX);
    let mut all = distinct(sites.iter().map(name), usize::MAX);
    let (mut kept, mut free) = (0, INSTITUTIONS_MAX);
    if all.len() > INSTITUTIONS_MAX {
        free -= near.len();
        all.retain(|name| {
            let is_near = near.binary_search(name).is_ok();
            kept += usize::from(!is_near);
            is_near || kept <= free
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only the backslashes before a sign go.
    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescaped(r"Growth Hormone \[rHGG\] \\ 5 \> 3 \n C:\temp\"), r"Growth Hormone [rHGG] \ 5 > 3 \n C:\temp\");
    }

    /// Proves that a long list of sites keeps those in the United States, and that the others fill what is left.
    #[test]
    fn many_sites_are_cut() {
        let site = |facility: String, country: &'static str| Location {
            facility: Field::Text(facility.into()),
            country: Field::Text(country.into()),
            ..Location::default()
        };
        let mut sites: Vec<_> = (0..500).map(|at| site(format!("A{at:03}"), "France")).collect();
        sites.extend((0..150).map(|at| site(format!("Z{at:03}"), UNITED_STATES)));
        let names = institutions(&sites, |site| site.country.text() == UNITED_STATES);
        assert_eq!(names.len(), INSTITUTIONS_MAX);
        assert_eq!(names.iter().filter(|name| name.starts_with('Z')).count(), 150);
        assert!(names.is_sorted());
    }
}
