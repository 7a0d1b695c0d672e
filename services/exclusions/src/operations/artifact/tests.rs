//! What follows from records and a time: which awards are running, the signal, the sums, the sentence and the hash.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::record::EXCLUSION;
use proofs::evidence;
use serde_json::{Value, json};

use super::*;

/// 2026-11-20, noon.
const NOON: i64 = 1_795_176_000_000;
const UEI: &str = "ABCDEF123456";

fn exclusion(active: &str) -> Exclusion {
    Exclusion {
        id: format!("sam:{active}"),
        kind: EXCLUSION.into(),
        name: "ACME LLC".into(),
        uei: UEI.into(),
        excluding_agency: "EPA".into(),
        exclusion_type: "Ineligible (Proceedings Completed)".into(),
        active_date: active.into(),
        termination_date: "Indefinite".into(),
        ..Exclusion::default()
    }
}

fn award(id: &str, signed: &str, end: &str) -> Award {
    Award {
        id: id.into(),
        agency: "Department of Energy".into(),
        recipient_uei: UEI.into(),
        signed: signed.into(),
        start: signed.into(),
        end: end.into(),
        amount_cents: Some(50_000_000),
        url: format!("https://www.usaspending.gov/award/{id}"),
        ..Award::default()
    }
}

fn entity() -> Entity {
    Entity { name: "ACME LLC".into(), uei: UEI.into(), cage: String::new() }
}

fn artifact(exclusions: Vec<Exclusion>, matched_by: &'static str, awards: Vec<Award>) -> Artifact {
    Artifact::new(Findings { entity: entity(), exclusions, matched_by, awards, ..Findings::default() }, NOON)
}

/// Proves on which days an award is running: from its start to its end, both included; without an end for 400 days after its latest action; and never
/// after a termination or the close-out.
#[test]
fn running_awards() {
    let day = day_of(NOON);
    assert_eq!(day, Date::constant(2026, 11, 20));
    let runs = |signed: &str, end: &str, action: &str, kind: &str| {
        is_running(&Award { action_date: action.into(), action_type: kind.into(), ..award("A", signed, end) }, day)
    };
    assert!(runs("2024-01-01", "2027-01-01", "", ""));
    assert!(runs("2024-01-01", "2026-11-20", "", "") && !runs("2024-01-01", "2026-11-19", "", ""));
    assert!(runs("2026-11-20", "2027-01-01", "", "") && !runs("2026-11-21", "2027-01-01", "", ""));
    assert!(runs("2024-01-01", "", "2025-10-16", "M") && !runs("2024-01-01", "", "2025-10-15", "M"));
    for ended in ENDED {
        assert!(!runs("2024-01-01", "2027-01-01", "2026-11-01", ended), "{ended}");
    }
    assert!(runs("2024-01-01", "2027-01-01", "2026-11-01", "G"));
    assert!(!runs("", "2027-01-01", "", ""), "an award without a start");
}

/// Proves the signal and the sums: running awards count with their dollars, ended ones do not, and awards from before and after are counted separately.
#[test]
fn signals_and_sums() {
    let awards = vec![
        award("OLD", "2024-01-01", "2027-01-01"),
        award("NEW", "2026-11-01", "2027-06-01"),
        award("OVER", "2020-01-01", "2021-01-01"),
        Award { action_type: "F".into(), ..award("TERMINATED", "2024-02-01", "2027-01-01") },
    ];
    let found = artifact(vec![exclusion("2026-10-01")], BY_UEI, awards.clone());
    assert_eq!(found.signal, WHILE_ACTIVE);
    let order: Vec<&str> = found.federal_awards.iter().map(|award| award.award_id.as_str()).collect();
    assert_eq!(order, ["NEW", "OLD", "TERMINATED", "OVER"]);
    assert_eq!(found.summary, Summary { active_awards_now: 2, total_active_dollars_at_risk: Dollars { cents: 100_000_000 } });
    assert_eq!(found.split, Split { signed_after_exclusion: 1, running_since_before: 1 });
    assert_eq!(found.flags, [DOLLARS_FROM_OBLIGATIONS]);
    assert_eq!(
        found.statement,
        "As of 2026-11-20, ACME LLC (UEI ABCDEF123456) is listed as excluded by EPA (Ineligible (Proceedings Completed)) since 2026-10-01; public award \
         data show 2 award(s) still running, 1 of them signed after that date."
    );
    assert!(found.disclaimer.starts_with(DISCLAIMER) && found.disclaimer.contains("FAR 9.405-1"));
    let running: Vec<&FederalAward> = found.federal_awards.iter().filter(|award| award.still_running).collect();
    assert_eq!(Dollars::total(running.iter().map(|award| award.at_risk())), found.summary.total_active_dollars_at_risk);
    assert!(found.federal_awards.iter().all(|award| award.source_url.contains(&award.award_id)));

    let ended = artifact(vec![exclusion("2026-10-01")], BY_CAGE, awards[2..].to_vec());
    assert_eq!((ended.signal, ended.federal_awards.len()), (NO_ACTIVE_AWARD, 0));
    // A name alone raises no signal, however many awards there are.
    let named = artifact(vec![exclusion("2026-10-01")], BY_NAME, awards.clone());
    assert_eq!((named.signal, named.matched_by), (NAME_MATCH_ONLY, BY_NAME));
    assert!(named.statement.contains("neither a UEI nor a CAGE code"), "{}", named.statement);
    // Without an exclusion nothing is said of awards.
    let none = artifact(Vec::new(), BY_UEI, awards);
    assert_eq!((none.signal, none.exclusion, none.federal_awards.len(), none.matched_by), (NO_SIGNAL, None, 0, ""));
    assert_eq!(none.statement, "As of 2026-11-20, no active exclusion of ACME LLC is on the index.");
}

/// Proves which flags limit the evidence, and that other exclusions are listed.
#[test]
fn flags() {
    let undated = Exclusion { active_date: String::new(), creation_date: "2026-10-05".into(), ..exclusion("") };
    let found = artifact(vec![undated, exclusion("2026-11-01")], BY_UEI, Vec::new());
    assert_eq!(found.flags, [ACTIVE_DATE_FROM_CREATION]);
    assert_eq!((found.exclusion.unwrap().active_date.as_str(), found.other_exclusions.len()), ("2026-10-05", 1));
    let partial = Exclusion { exclusion_type: PROHIBITION.into(), ..exclusion("2026-10-01") };
    assert_eq!(artifact(vec![partial], BY_UEI, Vec::new()).flags, [PARTIAL_PROHIBITION]);
    let cut =
        Findings { entity: entity(), exclusions: vec![exclusion("2026-10-01")], matched_by: BY_UEI, is_cut: true, ..Findings::default() };
    assert_eq!(Artifact::new(cut, NOON).flags, [AWARDS_INCOMPLETE]);
}

/// Proves that no sentence denies an entry of the index that raises no signal: it says how many there are and why, by what they were found.
#[test]
fn entries_that_raise_no_signal_are_said() {
    let artifact_of = |without_signal: &[&'static str], matched_by, hidden| {
        let findings = Findings { entity: entity(), without_signal: without_signal.to_vec(), matched_by, hidden, ..Findings::default() };
        Artifact::new(findings, NOON)
    };
    for (matched_by, reasons, hidden, end) in [
        (BY_UEI, &["a vessel"][..], 0, "is on the index; active entries with this UEI that raise none: 1 (a vessel)."),
        (BY_CAGE, &["a vessel"], 0, "is on the index; active entries with this UEI that raise none: 1 (a vessel)."),
        (BY_NAME, &["b", "a", "b"], 0, "is on the index; active entries with this name that raise none: 3 (a; b)."),
        (BY_NAME, &["a"], 2, "is shown; active entries with this name that raise none: 1 (a); hidden on request: 2."),
    ] {
        let found = artifact_of(reasons, matched_by, hidden);
        assert_eq!((found.signal, found.flags.contains(&LISTED_WITHOUT_SIGNAL)), (NO_SIGNAL, true));
        assert_eq!(found.statement, format!("As of 2026-11-20, no active exclusion of ACME LLC that raises a signal {end}"));
    }
    assert_eq!(artifact_of(&[], BY_NAME, 0).flags, [""; 0]);
}

/// Proves that exclusions that are hidden on request are never silent: without another one the sentence says how many there are, and a flag says it always.
#[test]
fn hidden_exclusions_are_said() {
    let artifact_with = |exclusions: Vec<Exclusion>, hidden| {
        let findings = Findings { entity: entity(), exclusions, hidden, matched_by: BY_UEI, ..Findings::default() };
        Artifact::new(findings, NOON)
    };
    let none = artifact_with(Vec::new(), 2);
    assert_eq!((none.signal, none.flags), (NO_SIGNAL, vec![EXCLUSIONS_HIDDEN]));
    assert_eq!(none.statement, "As of 2026-11-20, no active exclusion of ACME LLC is shown; hidden on request: 2.");
    let other = artifact_with(vec![exclusion("2026-10-01")], 1);
    assert_eq!((other.signal, other.flags), (NO_ACTIVE_AWARD, vec![EXCLUSIONS_HIDDEN]));
    assert!(other.statement.contains("is listed as excluded by EPA"), "{}", other.statement);
}

/// Proves that without a running award the list of awards is empty and the rest is as it was, that the earlier form with the awards that ended can still be
/// made for its permalink, and that the two forms are one where an award is running.
#[test]
fn the_earlier_form_has_awards_that_ended() {
    let artifact_until = |end: &str| {
        let (exclusions, awards) = (vec![exclusion("2026-10-01")], vec![award("OLD", "2020-01-01", end)]);
        let findings = Findings { entity: entity(), exclusions, matched_by: BY_UEI, awards, ..Findings::default() };
        (Artifact::new(findings.clone(), NOON), Artifact::in_earlier_form(findings, NOON))
    };
    let (now, earlier) = artifact_until("2021-01-01");
    assert_eq!((now.federal_awards.len(), earlier.federal_awards.len()), (0, 1));
    assert_ne!(evidence::Artifact::new(&now).unwrap().hash(), evidence::Artifact::new(&earlier).unwrap().hash());
    assert_eq!(Artifact { federal_awards: Vec::new(), ..earlier }, now);
    let (now, earlier) = artifact_until("2027-01-01");
    assert_eq!((now.federal_awards.len(), now), (1, earlier));
}

/// Proves that evidence by name whose awards are of several recipients had no candidates earlier, and that a name of several entities on the index had them.
#[test]
fn the_earlier_form_names_no_recipients() {
    let candidates_with = |awards: Vec<Award>| {
        let candidates = ["A", "B"].map(|uei| Candidate { name: "ACME LLC".into(), uei: uei.into() }).to_vec();
        let exclusions = vec![exclusion("2026-10-01")];
        let findings = Findings { entity: entity(), exclusions, matched_by: BY_NAME, awards, candidates, ..Findings::default() };
        let forms = [Artifact::new(findings.clone(), NOON), Artifact::in_earlier_form(findings, NOON)];
        forms.map(|form| form.candidates.len())
    };
    assert_eq!([candidates_with(vec![award("OLD", "2024-01-01", "2027-01-01")]), candidates_with(Vec::new())], [[2, 0], [2, 2]]);
}

/// Proves that the hash is that of the artifact, also with the hash, the link and a receipt next to it, and that it changes with the evidence.
#[test]
fn hashes() {
    let found = artifact(vec![exclusion("2026-10-01")], BY_UEI, vec![award("OLD", "2024-01-01", "2027-01-01")]);
    let hashed = evidence::Artifact::new(&found).unwrap();
    let mut document = serde_json::to_value(&found).unwrap();
    document["artifactHash"] = json!(hashed.hash());
    document["permalink"] = json!("/x");
    document["receipt"] = json!({ "id": "rcpt_" });
    assert!(evidence::verify(&document).unwrap().is_valid);
    document["summary"]["activeAwardsNow"] = json!(7);
    assert!(!evidence::verify(&document).unwrap().is_valid);
    assert_eq!(document["summary"]["totalActiveDollarsAtRisk"], json!(500_000));
}

/// Proves that the Python program of the examples computes the hash of an artifact, also with amounts of cents and letters beyond ASCII, and that it refuses one
/// that was changed.
#[test]
fn the_python_example_verifies() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/examples/verify_artifact.py");
    let is_valid = |document: &Value| {
        let mut command = Command::new("python3");
        let mut child = command.arg(&example).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(document.to_string().as_bytes()).unwrap();
        child.wait().unwrap().success()
    };
    let awards = vec![
        Award { amount_cents: Some(17_221_341_967), outlays_cents: Some(15_480_529_175), ..award("A", "2024-01-01", "2027-01-01") },
        Award { amount_cents: Some(10), agency: "Département \"É\" \u{1f6a2}".into(), ..award("B", "2024-01-01", "2027-01-01") },
    ];
    let found = artifact(vec![exclusion("2026-10-01")], BY_UEI, awards);
    assert_eq!(found.summary.total_active_dollars_at_risk, Dollars { cents: 1_740_812_792 + 10 });
    let mut document = evidence::Artifact::new(&found).unwrap().document("/v1/artifact/x");
    assert!(is_valid(&document));
    let mut noted = document.clone();
    noted["note"] = json!("about the answer");
    assert!(!is_valid(&noted), "only three fields are not hashed");
    document["summary"]["activeAwardsNow"] = json!(3);
    assert!(!is_valid(&document));
}

/// Proves that an artifact without an exclusion names the entity as the caller did, which its permalink then needs, and that one with an exclusion does
/// not need it.
#[test]
fn names_that_were_asked() {
    let none = artifact(Vec::new(), BY_UEI, Vec::new());
    assert_eq!((none.signal, none.name_asked()), (NO_SIGNAL, Some("ACME LLC")));
    assert!(none.statement.contains("no active exclusion of ACME LLC is"), "{}", none.statement);
    assert_eq!(artifact(vec![exclusion("2026-10-01")], BY_UEI, Vec::new()).name_asked(), None);
    let unnamed = Findings { entity: Entity { uei: UEI.into(), ..Entity::default() }, matched_by: BY_UEI, ..Findings::default() };
    assert_eq!(Artifact::new(unnamed, NOON).name_asked(), None);
}
