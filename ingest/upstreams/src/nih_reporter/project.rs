//! A project of the answer, and its mapping to a grant.

use jiff::civil::Date;
use schemas::facts::FactData;
use schemas::facts::grants::GrantFact;
use serde::Deserialize;
use texts::numbers::has_only_digits;

use crate::json::{Field, Part};
use crate::{Observation, Stream, text};

const SITE: &str = "https://reporter.nih.gov";
const TITLE_CHARS_MAX: usize = 500;
const NAME_CHARS_MAX: usize = 200;
const SUMMARY_CHARS_MAX: usize = 1_000;
const INVESTIGATORS_MAX: usize = 50;
const TERMS_MAX: usize = 200;
const CATEGORIES_MAX: usize = 50;
/// An amount above this is an error of the upstream.
const AMOUNT_MAX: i64 = 1_000_000_000_000;
/// The latest end of a project, in years from now. A later date is an error of the upstream.
const YEARS_AHEAD_MAX: i16 = 30;

/// Whether a record has a field.
pub(super) type FieldCheck = fn(&Project<'_>) -> bool;

/// Fields that every record has, at least as null. Records without an id are not an answer to our request.
pub(super) const EXPECTED: &[(&str, FieldCheck)] = &[
    ("appl_id", |project| id_of(project).is_some()),
    ("project_num", |project| project.appl_id.is_absent() || project.project_num.is_text()),
    ("project_title", |project| project.appl_id.is_absent() || is_text(&project.project_title)),
    ("award_type", |project| project.appl_id.is_absent() || is_text(&project.award_type)),
    ("activity_code", |project| project.appl_id.is_absent() || is_text(&project.activity_code)),
    ("award_amount", |project| project.appl_id.is_absent() || project.award_amount.is_null() || project.award_amount.integer().is_some()),
    ("award_notice_date", |project| project.appl_id.is_absent() || is_text(&project.award_notice_date)),
    ("date_added", |project| project.appl_id.is_absent() || is_text(&project.date_added)),
    ("organization", |project| project.appl_id.is_absent() || project.organization.is_null() || project.organization.is_object()),
    ("principal_investigators", |project| {
        project.appl_id.is_absent() || project.principal_investigators.is_null() || project.principal_investigators.is_list()
    }),
];

fn is_text(field: &Field<'_>) -> bool {
    field.is_null() || field.is_text()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Project<'a> {
    #[serde(borrow)]
    pub(super) appl_id: Field<'a>,
    #[serde(borrow)]
    pub(super) subproject_id: Field<'a>,
    #[serde(borrow)]
    pub(super) fiscal_year: Field<'a>,
    #[serde(borrow)]
    pub(super) project_num: Field<'a>,
    #[serde(borrow)]
    pub(super) core_project_num: Field<'a>,
    #[serde(borrow)]
    pub(super) project_title: Field<'a>,
    #[serde(borrow)]
    pub(super) award_type: Field<'a>,
    #[serde(borrow)]
    pub(super) activity_code: Field<'a>,
    #[serde(borrow)]
    pub(super) award_amount: Field<'a>,
    #[serde(borrow)]
    pub(super) direct_cost_amt: Field<'a>,
    #[serde(borrow)]
    pub(super) indirect_cost_amt: Field<'a>,
    #[serde(borrow)]
    pub(super) award_notice_date: Field<'a>,
    #[serde(borrow)]
    pub(super) date_added: Field<'a>,
    #[serde(borrow)]
    pub(super) budget_start: Field<'a>,
    #[serde(borrow)]
    pub(super) budget_end: Field<'a>,
    #[serde(borrow)]
    pub(super) project_start_date: Field<'a>,
    #[serde(borrow)]
    pub(super) project_end_date: Field<'a>,
    #[serde(borrow)]
    pub(super) organization: Part<'a>,
    #[serde(borrow)]
    pub(super) organization_type: Part<'a>,
    #[serde(borrow)]
    pub(super) principal_investigators: Part<'a>,
    #[serde(borrow)]
    pub(super) contact_pi_name: Field<'a>,
    #[serde(borrow)]
    pub(super) agency_ic_admin: Part<'a>,
    #[serde(borrow)]
    pub(super) pref_terms: Field<'a>,
    #[serde(borrow)]
    pub(super) spending_categories_desc: Field<'a>,
    #[serde(borrow)]
    pub(super) abstract_text: Field<'a>,
    #[serde(borrow)]
    pub(super) funding_mechanism: Field<'a>,
    #[serde(borrow)]
    pub(super) opportunity_number: Field<'a>,
    #[serde(borrow)]
    pub(super) full_foa: Field<'a>,
    #[serde(borrow)]
    pub(super) project_detail_url: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Organization<'a> {
    #[serde(borrow)]
    pub(super) org_name: Field<'a>,
    #[serde(borrow)]
    pub(super) org_city: Field<'a>,
    #[serde(borrow)]
    pub(super) org_state: Field<'a>,
    #[serde(borrow)]
    pub(super) org_country: Field<'a>,
    #[serde(borrow)]
    pub(super) dept_type: Field<'a>,
    #[serde(borrow)]
    pub(super) primary_uei: Field<'a>,
}

/// The kind of an organisation, or an institute.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Named<'a> {
    #[serde(borrow)]
    pub(super) name: Field<'a>,
    #[serde(borrow)]
    pub(super) abbreviation: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Investigator<'a> {
    #[serde(borrow)]
    profile_id: Field<'a>,
    #[serde(borrow)]
    first_name: Field<'a>,
    #[serde(borrow)]
    middle_name: Field<'a>,
    #[serde(borrow)]
    last_name: Field<'a>,
    #[serde(borrow)]
    full_name: Field<'a>,
    #[serde(borrow)]
    is_contact_pi: Field<'a>,
}

impl Investigator<'_> {
    fn name(&self) -> String {
        let full = short(&self.full_name, NAME_CHARS_MAX);
        if !full.is_empty() {
            return full;
        }
        let names = [&self.first_name, &self.middle_name, &self.last_name].map(Field::clean);
        text::cut(names.iter().filter(|name| !name.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" "), NAME_CHARS_MAX)
    }
}

/// Finds the number of an award: its own field, or else the end of its page's address.
pub(super) fn id_of(project: &Project<'_>) -> Option<String> {
    let is_number = |text: &str| (1..=12).contains(&text.len()) && has_only_digits(text);
    let own = project.appl_id.text().trim();
    let url = project.project_detail_url.text().trim().trim_end_matches('/');
    [own, url.rsplit('/').next().unwrap_or_default()].into_iter().find(|text| is_number(text)).map(str::to_owned)
}

fn short(field: &Field<'_>, chars_max: usize) -> String {
    text::cut(field.clean(), chars_max)
}

/// Splits a text or a list of texts into distinct parts, sorted.
fn parts(field: &Field<'_>, parts_max: usize) -> Vec<String> {
    let one = std::slice::from_ref(field);
    let texts = if let Field::List(list) = field { list.as_slice() } else { one }.iter().map(Field::clean);
    let parts = texts.flat_map(|text| text.split(';').map(|part| text::cut(part.trim().to_owned(), NAME_CHARS_MAX)).collect::<Vec<_>>());
    let mut parts: Vec<String> = parts.collect();
    parts.retain(|part| !part.is_empty());
    parts.sort();
    parts.dedup();
    parts.truncate(parts_max);
    parts
}

/// Maps a record.
///
/// # Errors
/// The number of the record, or what else names it, and what is wrong with it.
pub(super) fn observe(stream: &Stream, project: &Project<'_>, today: Date) -> Result<Observation, (String, String)> {
    let number = id_of(project).ok_or_else(|| {
        let reference = text::cut(project.project_num.clean(), 100);
        (reference, "appl_id is not a whole number, and project_detail_url ends with none".to_owned())
    })?;
    let mut problem = None;
    let organization: Organization<'_> = project.organization.object("organization", &mut problem);
    let ic: Named<'_> = project.agency_ic_admin.object("agency_ic_admin", &mut problem);
    let org_type: Named<'_> = project.organization_type.object("organization_type", &mut problem);
    let (pi, pi_number, investigators) = people(project, &mut problem);
    if let Some(problem) = problem {
        return Err((number, problem));
    }
    let notice = text::plausible_date(project.award_notice_date.text(), today);
    let budget_start = day(&project.budget_start, today);
    let notice_from_budget = notice.is_empty() && !budget_start.is_empty();
    let amount = project.award_amount.integer().or_else(|| {
        let (direct, indirect) = (project.direct_cost_amt.integer(), project.indirect_cost_amt.integer());
        (direct.is_some() || indirect.is_some()).then(|| direct.unwrap_or(0).saturating_add(indirect.unwrap_or(0)))
    });
    let url = text::https(project.project_detail_url.text(), SITE);
    let opportunity = Some(short(&project.opportunity_number, NAME_CHARS_MAX)).filter(|number| !number.is_empty());
    let data = GrantFact {
        stream: stream.name.to_owned(),
        project_number: short(&project.project_num, 100),
        core_project: short(&project.core_project_num, 100),
        title: short(&project.project_title, TITLE_CHARS_MAX),
        pi,
        pi_number,
        investigators,
        org: short(&organization.org_name, NAME_CHARS_MAX),
        org_type: short(&org_type.name, NAME_CHARS_MAX),
        department: Some(short(&organization.dept_type, NAME_CHARS_MAX))
            .filter(|department| !matches!(department.as_str(), "NONE" | "NO CODE ASSIGNED"))
            .unwrap_or_default(),
        city: short(&organization.org_city, NAME_CHARS_MAX),
        state: short(&organization.org_state, NAME_CHARS_MAX).to_uppercase(),
        country: short(&organization.org_country, NAME_CHARS_MAX),
        uei: short(&organization.primary_uei, 20),
        ic: short(&ic.abbreviation, 20),
        ic_name: short(&ic.name, NAME_CHARS_MAX),
        amount: amount.filter(|amount| amount.abs() <= AMOUNT_MAX),
        fiscal_year: project.fiscal_year.integer().filter(|year| (1900..=2200).contains(year)),
        award_type: short(&project.award_type, 20),
        activity_code: short(&project.activity_code, 20),
        mechanism: short(&project.funding_mechanism, NAME_CHARS_MAX),
        opportunity: opportunity.unwrap_or_else(|| short(&project.full_foa, NAME_CHARS_MAX)),
        notice_date: if notice_from_budget { budget_start.clone() } else { notice },
        notice_from_budget,
        budget_start,
        budget_end: day(&project.budget_end, today),
        project_start: day(&project.project_start_date, today),
        project_end: day(&project.project_end_date, today),
        added: text::plausible_date(project.date_added.text(), today),
        terms: parts(&project.pref_terms, TERMS_MAX),
        categories: parts(&project.spending_categories_desc, CATEGORIES_MAX),
        // Line breaks appear as such, or as a backslash and a letter.
        summary: text::cut(text::clean(&project.abstract_text.text().replace("\\n", " ").replace("\\r", " ")), SUMMARY_CHARS_MAX),
        url: if url.is_empty() { format!("{SITE}/project-details/{number}") } else { url },
        number,
    };
    Ok(Observation::new(format!("{}/{}", stream.name, data.number), FactData::Grant(Box::new(data))))
}

/// Reads a date of a project, which may be years ahead. Only the first ten characters are used, because the times after them are in
/// different time zones.
fn day(field: &Field<'_>, today: Date) -> String {
    let years = 1900..=today.year().saturating_add(YEARS_AHEAD_MAX);
    text::date(field.text()).filter(|date| years.contains(&date.year())).map(|date| date.to_string()).unwrap_or_default()
}

/// Returns the contact investigator's name and id, and the names of all investigators. The list has no order; a flag identifies the
/// contact.
fn people(project: &Project<'_>, problem: &mut Option<String>) -> (String, String, Vec<String>) {
    let people: Vec<Investigator<'_>> = project.principal_investigators.list("principal_investigators", problem);
    let named = short(&project.contact_pi_name, NAME_CHARS_MAX);
    let contact = people.iter().find(|one| one.is_contact_pi.flag() && !one.name().is_empty());
    let contact = contact.or_else(|| people.first().filter(|one| people.len() == 1 && !one.name().is_empty()));
    let mut names: Vec<String> = people.iter().map(Investigator::name).filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    names.truncate(INVESTIGATORS_MAX);
    let number = |one: &Investigator<'_>| Some(short(&one.profile_id, 20)).filter(|_| one.profile_id.is_integer()).unwrap_or_default();
    match contact {
        Some(contact) => (contact.name(), number(contact), names),
        None if named.is_empty() => (names.first().cloned().unwrap_or_default(), String::new(), names),
        None => (named, String::new(), names),
    }
}
