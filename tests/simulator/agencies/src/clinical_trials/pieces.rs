//! The registry's names for the pieces of a record, and the selection of pieces.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::study::Study;

/// Each piece with its path.
const PIECES: &[(&str, &str)] = &[
    ("NCTId", "protocolSection.identificationModule.nctId"),
    ("NCTIdAlias", "protocolSection.identificationModule.nctIdAliases"),
    ("OrgStudyId", "protocolSection.identificationModule.orgStudyIdInfo.id"),
    ("OrgFullName", "protocolSection.identificationModule.organization.fullName"),
    ("BriefTitle", "protocolSection.identificationModule.briefTitle"),
    ("OfficialTitle", "protocolSection.identificationModule.officialTitle"),
    ("Acronym", "protocolSection.identificationModule.acronym"),
    ("StatusVerifiedDate", "protocolSection.statusModule.statusVerifiedDate"),
    ("OverallStatus", "protocolSection.statusModule.overallStatus"),
    ("LastKnownStatus", "protocolSection.statusModule.lastKnownStatus"),
    ("WhyStopped", "protocolSection.statusModule.whyStopped"),
    ("StartDate", "protocolSection.statusModule.startDateStruct.date"),
    ("StartDateType", "protocolSection.statusModule.startDateStruct.type"),
    ("PrimaryCompletionDate", "protocolSection.statusModule.primaryCompletionDateStruct.date"),
    ("PrimaryCompletionDateType", "protocolSection.statusModule.primaryCompletionDateStruct.type"),
    ("CompletionDate", "protocolSection.statusModule.completionDateStruct.date"),
    ("CompletionDateType", "protocolSection.statusModule.completionDateStruct.type"),
    ("StudyFirstSubmitDate", "protocolSection.statusModule.studyFirstSubmitDate"),
    ("StudyFirstPostDate", "protocolSection.statusModule.studyFirstPostDateStruct.date"),
    ("ResultsFirstPostDate", "protocolSection.statusModule.resultsFirstPostDateStruct.date"),
    ("LastUpdateSubmitDate", "protocolSection.statusModule.lastUpdateSubmitDate"),
    ("LastUpdatePostDate", "protocolSection.statusModule.lastUpdatePostDateStruct.date"),
    ("LeadSponsorName", "protocolSection.sponsorCollaboratorsModule.leadSponsor.name"),
    ("LeadSponsorClass", "protocolSection.sponsorCollaboratorsModule.leadSponsor.class"),
    ("CollaboratorName", "protocolSection.sponsorCollaboratorsModule.collaborators.name"),
    ("CollaboratorClass", "protocolSection.sponsorCollaboratorsModule.collaborators.class"),
    ("BriefSummary", "protocolSection.descriptionModule.briefSummary"),
    ("Condition", "protocolSection.conditionsModule.conditions"),
    ("Keyword", "protocolSection.conditionsModule.keywords"),
    ("StudyType", "protocolSection.designModule.studyType"),
    ("Phase", "protocolSection.designModule.phases"),
    ("EnrollmentCount", "protocolSection.designModule.enrollmentInfo.count"),
    ("EnrollmentType", "protocolSection.designModule.enrollmentInfo.type"),
    ("InterventionType", "protocolSection.armsInterventionsModule.interventions.type"),
    ("InterventionName", "protocolSection.armsInterventionsModule.interventions.name"),
    ("PrimaryOutcomeMeasure", "protocolSection.outcomesModule.primaryOutcomes.measure"),
    ("MinimumAge", "protocolSection.eligibilityModule.minimumAge"),
    ("StdAge", "protocolSection.eligibilityModule.stdAges"),
    ("LocationFacility", "protocolSection.contactsLocationsModule.locations.facility"),
    ("LocationStatus", "protocolSection.contactsLocationsModule.locations.status"),
    ("LocationCity", "protocolSection.contactsLocationsModule.locations.city"),
    ("LocationState", "protocolSection.contactsLocationsModule.locations.state"),
    ("LocationCountry", "protocolSection.contactsLocationsModule.locations.country"),
    ("VersionHolder", "derivedSection.miscInfoModule.versionHolder"),
    ("HasResults", "hasResults"),
    ("ProtocolSection", "protocolSection"),
    ("DerivedSection", "derivedSection"),
    ("IdentificationModule", "protocolSection.identificationModule"),
    ("StatusModule", "protocolSection.statusModule"),
    ("SponsorCollaboratorsModule", "protocolSection.sponsorCollaboratorsModule"),
    ("DescriptionModule", "protocolSection.descriptionModule"),
    ("ConditionsModule", "protocolSection.conditionsModule"),
    ("DesignModule", "protocolSection.designModule"),
    ("ArmsInterventionsModule", "protocolSection.armsInterventionsModule"),
    ("EligibilityModule", "protocolSection.eligibilityModule"),
    ("ContactsLocationsModule", "protocolSection.contactsLocationsModule"),
];

/// Returns the path of a piece, given its name or the path itself.
pub(super) fn path_of(name: &str) -> Option<&'static str> {
    PIECES.iter().find(|(piece, path)| *piece == name || *path == name).map(|(_, path)| *path)
}

/// Returns the values of a piece in a study.
pub(super) fn texts<'a>(study: &'a Study, piece: &str) -> Vec<Cow<'a, str>> {
    // The pieces for windows and paging are known without generating the record.
    match piece {
        "NCTId" => return vec![Cow::Borrowed(study.nct_id.as_str())],
        "LastUpdatePostDate" => return vec![Cow::Owned(study.updated.to_string())],
        "StudyFirstPostDate" => return vec![Cow::Owned(study.first_posted.to_string())],
        _ => {}
    }
    let mut out = Vec::new();
    if let Some(path) = path_of(piece) {
        gather(study.value(), path, &mut out);
    }
    out
}

/// Returns the texts and numbers at a path; for a list those of all its items.
fn gather<'a>(value: &'a Value, path: &str, out: &mut Vec<Cow<'a, str>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(item, path, out)),
        Value::Object(fields) => {
            let (name, rest) = path.split_once('.').unwrap_or((path, ""));
            if let Some(field) = fields.get(name) {
                gather(field, rest, out);
            }
        }
        Value::String(text) if path.is_empty() => out.push(Cow::Borrowed(text)),
        Value::Number(_) | Value::Bool(_) if path.is_empty() => out.push(Cow::Owned(value.to_string())),
        _ => {}
    }
}

/// Returns the paths of the requested pieces. The error is an unknown name.
pub(super) fn requested(fields: &str) -> Result<Vec<&'static str>, &str> {
    fields.split([',', '|']).map(str::trim).map(|name| path_of(name).ok_or(name)).collect()
}

/// Returns the record with only these paths.
pub(super) fn chosen(record: &Value, paths: &[&str]) -> Value {
    let mut out = json!({});
    for path in paths {
        copy(record, path, &mut out);
    }
    out
}

fn copy(from: &Value, path: &str, into: &mut Value) {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let (Some(field), Value::Object(own)) = (from.get(name), into) else { return };
    if rest.is_empty() {
        own.insert(name.to_owned(), field.clone());
        return;
    }
    match field {
        // A list keeps its length, whichever pieces of its items are requested.
        Value::Array(items) => {
            let known = own.entry(name).or_insert_with(|| items.iter().map(|_| json!({})).collect());
            if let Value::Array(known) = known {
                known.iter_mut().zip(items).for_each(|(known, item)| copy(item, rest, known));
            }
        }
        _ => copy(field, rest, own.entry(name).or_insert_with(|| json!({}))),
    }
}
