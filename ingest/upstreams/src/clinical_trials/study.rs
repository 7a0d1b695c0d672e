//! What the registry says of a study, and the record that it becomes.

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::trials::{Intervention, TrialFact};
use serde::Deserialize;

use super::ORIGIN;
use crate::json::{Field, Part};
use crate::{Door, Observation, text, us_states};

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

/// Whether a study holds what every study does.
pub(super) type Holds = fn(&Study<'_>) -> bool;

/// What every study holds.
pub(super) const EXPECTED: &[(&str, Holds)] = &[
    ("protocolSection", |study| study.protocol_section.is_object()),
    ("identificationModule.nctId", |study| study.sections().identification.nct_id.is_text()),
    ("identificationModule.briefTitle", |study| study.sections().identification.brief_title.is_text()),
    ("statusModule.overallStatus", |study| study.sections().status.overall_status.is_text()),
    ("statusModule.lastUpdatePostDateStruct.date", |study| {
        study.sections().status.last_update_post_date_struct.object::<Moment<'_>>().date.is_text()
    }),
    ("sponsorCollaboratorsModule.leadSponsor", |study| study.sections().sponsors.lead_sponsor.is_object()),
];

/// A study as the registry has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Study<'a> {
    #[serde(borrow)]
    protocol_section: Part<'a>,
}

impl<'a> Study<'a> {
    /// The day of its last posted update.
    pub(super) fn updated(&self) -> Option<Date> {
        text::date(self.sections().status.last_update_post_date_struct.object::<Moment<'_>>().date.text())
    }

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

/// The record of a study; else its number, and why it is none.
pub(super) fn observe(door: &Door, study: &Study<'_>, today: Date) -> Result<Observation, (String, String)> {
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
        stream: door.name.to_owned(),
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
