//! The registry's format of a study, and its mapping to a record.

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::trials::{Intervention, TrialFact};
use serde::Deserialize;
use texts::numbers::has_only_digits;

use crate::drift::FieldCounts;
use crate::json::{Field, Part};
use crate::{Observation, Stream, text, us_states};

pub(super) const ORIGIN: &str = "https://clinicaltrials.gov";

const TITLE_CHARS_MAX: usize = 600;
const NAME_CHARS_MAX: usize = 200;
const FACILITY_CHARS_MAX: usize = 120;
const REASON_CHARS_MAX: usize = 500;
const SUMMARY_CHARS_MAX: usize = 1_000;
const LIST_MAX: usize = 100;
const COLLABORATORS_MAX: usize = 50;
const COUNTRIES_MAX: usize = 250;
const INSTITUTIONS_MAX: usize = 400;
/// The country whose states are stored.
const UNITED_STATES: &str = "United States";

/// A check whether a study has a required field.
pub(super) type FieldCheck = fn(&Study<'_>) -> bool;

/// The fields that every study has.
pub(super) const EXPECTED: &[(&str, FieldCheck)] = &[
    ("protocolSection", |study| study.protocol_section.is_object()),
    ("identificationModule.nctId", |study| study.sections(&mut None).identification.nct_id.is_text()),
    ("identificationModule.briefTitle", |study| study.sections(&mut None).identification.brief_title.is_text()),
    ("statusModule.overallStatus", |study| study.sections(&mut None).status.overall_status.is_text()),
    ("statusModule.lastUpdatePostDateStruct.date", |study| study.updated_field().date.is_text()),
    ("sponsorCollaboratorsModule.leadSponsor", |study| study.sections(&mut None).sponsors.lead_sponsor.is_object()),
];

/// A study in the registry's format.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Study<'a> {
    #[serde(borrow)]
    protocol_section: Part<'a>,
}

impl<'a> Study<'a> {
    /// The date of its last posted update.
    pub(super) fn updated(&self) -> Option<Date> {
        text::date(self.updated_field().date.text())
    }

    fn updated_field(&self) -> Moment<'a> {
        let problem = &mut None;
        self.sections(problem).status.last_update_post_date_struct.object("lastUpdatePostDateStruct", problem)
    }

    /// Parses the modules. A module that cannot be read is described in `problem`.
    fn sections(&self, problem: &mut Option<String>) -> Sections<'a> {
        let protocol: Protocol<'a> = self.protocol_section.object("protocolSection", problem);
        Sections {
            identification: protocol.identification_module.object("identificationModule", problem),
            status: protocol.status_module.object("statusModule", problem),
            sponsors: protocol.sponsor_collaborators_module.object("sponsorCollaboratorsModule", problem),
            description: protocol.description_module.object("descriptionModule", problem),
            conditions: protocol.conditions_module.object("conditionsModule", problem),
            design: protocol.design_module.object("designModule", problem),
            arms: protocol.arms_interventions_module.object("armsInterventionsModule", problem),
            locations: protocol.contacts_locations_module.object("contactsLocationsModule", problem),
        }
    }

    /// Counts the mapped fields.
    pub(super) fn count(&self, fields: &mut FieldCounts) {
        let problem = &mut None;
        let Sections { identification, status, sponsors, description, conditions, design, arms, locations } = self.sections(problem);
        let mut dated = |part: Part<'_>| part.object::<Moment<'_>>("", problem).date.is_filled();
        fields.count([
            ("identificationModule.briefTitle", identification.brief_title.is_filled()),
            ("identificationModule.officialTitle", identification.official_title.is_filled()),
            ("identificationModule.acronym", identification.acronym.is_filled()),
            ("statusModule.overallStatus", status.overall_status.is_filled()),
            ("statusModule.startDateStruct", dated(status.start_date_struct)),
            ("statusModule.primaryCompletionDateStruct", dated(status.primary_completion_date_struct)),
            ("statusModule.completionDateStruct", dated(status.completion_date_struct)),
            ("statusModule.studyFirstPostDateStruct", dated(status.study_first_post_date_struct)),
            ("statusModule.resultsFirstPostDateStruct", dated(status.results_first_post_date_struct)),
            ("statusModule.lastUpdatePostDateStruct", dated(status.last_update_post_date_struct)),
            ("sponsorCollaboratorsModule.collaborators", sponsors.collaborators.is_filled()),
            ("descriptionModule.briefSummary", description.brief_summary.is_filled()),
            ("conditionsModule.conditions", conditions.conditions.is_filled()),
            ("conditionsModule.keywords", conditions.keywords.is_filled()),
            ("designModule.studyType", design.study_type.is_filled()),
            ("designModule.phases", design.phases.is_filled()),
            ("designModule.enrollmentInfo", design.enrollment_info.is_filled()),
            ("armsInterventionsModule.interventions", arms.interventions.is_filled()),
            ("contactsLocationsModule.locations", locations.locations.is_filled()),
        ]);
        let lead: Named<'_> = sponsors.lead_sponsor.object("leadSponsor", problem);
        let enrollment: Enrollment<'_> = design.enrollment_info.object("enrollmentInfo", problem);
        let interventions: Vec<Named<'_>> = arms.interventions.list("interventions", problem);
        let sites: Vec<Location<'_>> = locations.locations.list("locations", problem);
        fields.count([
            ("sponsorCollaboratorsModule.leadSponsor.name", lead.name.is_filled()),
            ("sponsorCollaboratorsModule.leadSponsor.class", lead.class.is_filled()),
            ("designModule.enrollmentInfo.count", enrollment.count.is_filled()),
            ("designModule.enrollmentInfo.type", enrollment.kind.is_filled()),
            ("armsInterventionsModule.interventions.name", interventions.iter().any(|one| one.name.is_filled())),
            ("armsInterventionsModule.interventions.type", interventions.iter().any(|one| one.kind.is_filled())),
            ("contactsLocationsModule.locations.facility", sites.iter().any(|site| site.facility.is_filled())),
            ("contactsLocationsModule.locations.state", sites.iter().any(|site| site.state.is_filled())),
            ("contactsLocationsModule.locations.country", sites.iter().any(|site| site.country.is_filled())),
        ]);
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

/// The modules of a study that are mapped. An absent module is empty.
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

/// A sponsor, or an intervention.
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

/// Maps a study to a record. The error is its number and the reason.
pub(super) fn observe(stream: &Stream, study: &Study<'_>, today: Date) -> Result<Observation, (String, String)> {
    let mut problem = None;
    let Sections { identification, status, sponsors, description, conditions, design, arms, locations } = study.sections(&mut problem);
    let number = identification.nct_id.text().trim().to_owned();
    if !is_nct(&number) {
        let reason = problem.unwrap_or_else(|| "nctId is not NCT and eight digits".to_owned());
        return Err((text::cut(text::clean(&number), 100), reason));
    }
    let title = plain(&identification.brief_title, TITLE_CHARS_MAX);
    let official_title = plain(&identification.official_title, TITLE_CHARS_MAX);
    let lead: Named<'_> = sponsors.lead_sponsor.object("leadSponsor", &mut problem);
    let enrollment: Enrollment<'_> = design.enrollment_info.object("enrollmentInfo", &mut problem);
    let mut moment = |part: Part<'_>, name: &str| moment(&part.object(name, &mut problem), today);
    let (start, start_type) = moment(status.start_date_struct, "startDateStruct");
    let (primary_completion, primary_completion_type) = moment(status.primary_completion_date_struct, "primaryCompletionDateStruct");
    let (completion, completion_type) = moment(status.completion_date_struct, "completionDateStruct");
    let mut posted = |part: Part<'_>, name: &str| text::plausible_date(part.object::<Moment<'_>>(name, &mut problem).date.text(), today);
    let first_posted = posted(status.study_first_post_date_struct, "studyFirstPostDateStruct");
    let results_posted = posted(status.results_first_post_date_struct, "resultsFirstPostDateStruct");
    let updated = posted(status.last_update_post_date_struct, "lastUpdatePostDateStruct");
    let aliases: Vec<String> = identification.nct_id_aliases.list().into_iter().filter(|alias| is_nct(alias) && *alias != number).collect();
    let collaborators: Vec<Named<'_>> = sponsors.collaborators.list("collaborators", &mut problem);
    let sites: Vec<Location<'_>> = locations.locations.list("locations", &mut problem);
    let in_states = |site: &&Location<'_>| site.country.text().trim().eq_ignore_ascii_case(UNITED_STATES);
    let interventions: Vec<Named<'_>> = arms.interventions.list("interventions", &mut problem);
    if let Some(problem) = problem {
        return Err((number, problem));
    }
    let interventions = interventions
        .iter()
        .map(|one| Intervention { kind: plain(&one.kind, 40), name: plain(&one.name, NAME_CHARS_MAX) })
        .filter(|one| !one.name.is_empty());
    let mut ordered: Vec<Intervention> = interventions.clone().collect();
    ordered.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
    ordered.dedup();
    ordered.truncate(LIST_MAX);
    let data = TrialFact {
        stream: stream.name.to_owned(),
        url: format!("{ORIGIN}/study/{number}"),
        official_title: if official_title == title { String::new() } else { official_title },
        title,
        acronym: plain(&identification.acronym, 100),
        sponsor: plain(&lead.name, NAME_CHARS_MAX),
        sponsor_class: plain(&lead.class, 40),
        collaborators: distinct(collaborators.iter().map(|one| plain(&one.name, NAME_CHARS_MAX)), COLLABORATORS_MAX),
        phase: phase(distinct(listed(&design.phases).into_iter(), LIST_MAX)),
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
        first_posted,
        results_posted,
        updated,
        enrollment: enrollment.count.integer().filter(|count| *count >= 0),
        enrollment_type: plain(&enrollment.kind, 40),
        // The registry promises no order of these lists.
        conditions: distinct(listed(&conditions.conditions).into_iter(), LIST_MAX),
        keywords: distinct(listed(&conditions.keywords).into_iter(), LIST_MAX),
        interventions: ordered,
        states: distinct(sites.iter().filter(in_states).map(|site| state(&site.state)), COUNTRIES_MAX),
        countries: distinct(sites.iter().map(|site| plain(&site.country, FACILITY_CHARS_MAX)), COUNTRIES_MAX),
        institutions: institutions(&sites, in_states),
        sites: i64::try_from(sites.len()).ok().filter(|sites| *sites > 0),
        summary: plain(&description.brief_summary, SUMMARY_CHARS_MAX),
        aliases: distinct(aliases.iter().cloned(), LIST_MAX),
        number,
    };
    let cut = |mut list: Vec<String>| {
        list.truncate(LIST_MAX);
        list
    };
    let former = TrialFact {
        phase: phase(cut(listed(&design.phases))),
        conditions: cut(listed(&conditions.conditions)),
        keywords: cut(listed(&conditions.keywords)),
        interventions: interventions.take(LIST_MAX).collect(),
        ..data.clone()
    };
    let former = (former != data).then(|| FactData::Trial(Box::new(former)));
    let replaces = data.aliases.iter().map(|alias| format!("{}/{alias}", stream.name)).collect();
    let key = format!("{}/{}", stream.name, data.number);
    Ok(Observation { replaces, former, ..Observation::new(key, FactData::Trial(Box::new(data))) })
}

fn is_nct(text: &str) -> bool {
    text.strip_prefix("NCT").is_some_and(|digits| digits.len() == 8 && has_only_digits(digits))
}

/// Returns the text of a field without Markdown escapes (`\[rHGG\]` becomes `[rHGG]`).
fn plain(field: &Field<'_>, chars_max: usize) -> String {
    text::cut(text::clean(&unescaped(field.text())), chars_max)
}

/// Removes the backslashes before punctuation.
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

/// Returns the texts of a list in their order.
fn listed(field: &Field<'_>) -> Vec<String> {
    let one = std::slice::from_ref(field);
    let all = if let Field::List(list) = field { list.as_slice() } else { one };
    all.iter().map(|text| plain(text, NAME_CHARS_MAX)).filter(|text| !text.is_empty()).collect()
}

/// Returns the distinct non-empty texts, sorted.
fn distinct(texts: impl Iterator<Item = String>, texts_max: usize) -> Vec<String> {
    let mut texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.sort();
    texts.dedup();
    texts.truncate(texts_max);
    texts
}

/// Returns the phase: `N/A` where phases do not apply, two phases joined, or empty where none is given, which is something else.
fn phase(phases: Vec<String>) -> String {
    match phases.as_slice() {
        [one] if one == "NA" => "N/A".to_owned(),
        phases => text::cut(phases.join("/"), 60),
    }
}

/// Returns a date with its precision (day or month), and whether it is actual. An implausible date is dropped.
fn moment(Moment { date, kind }: &Moment<'_>, today: Date) -> (String, String) {
    let text = date.text().trim();
    let years = 1900..=today.year().saturating_add(100);
    let day = text::date(text).map(|day| (day, day.to_string()));
    let month = || (text.len() == 7).then(|| text::date(&format!("{text}-01")).map(|day| (day, text.to_owned()))).flatten();
    match day.or_else(month).filter(|(day, _)| years.contains(&day.year())) {
        Some((_, date)) => (date, plain(kind, 40)),
        None => (String::new(), String::new()),
    }
}

/// Returns the state's two letters, or its name if they are unknown.
fn state(field: &Field<'_>) -> String {
    let name = plain(field, FACILITY_CHARS_MAX);
    us_states::letters(&name).map_or(name, str::to_owned)
}

/// Returns the names of the sites. If there are too many, those in the United States take precedence.
fn institutions(sites: &[Location<'_>], in_states: impl Fn(&&Location<'_>) -> bool) -> Vec<String> {
    let name = |site: &Location<'_>| plain(&site.facility, FACILITY_CHARS_MAX);
    let near = distinct(sites.iter().filter(|site| in_states(site)).map(name), INSTITUTIONS_MAX);
    let mut all = distinct(sites.iter().map(name), usize::MAX);
    let (mut chosen, mut free) = (0, INSTITUTIONS_MAX);
    if all.len() > INSTITUTIONS_MAX {
        free -= near.len();
        all.retain(|name| {
            let is_near = near.binary_search(name).is_ok();
            chosen += usize::from(!is_near);
            is_near || chosen <= free
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only backslashes before punctuation are removed.
    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescaped(r"Growth Hormone \[rHGG\] \\ 5 \> 3 \n C:\temp\"), r"Growth Hormone [rHGG] \ 5 > 3 \n C:\temp\");
    }

    /// Proves that a long list of sites prefers those in the United States and fills the remaining places with others.
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
