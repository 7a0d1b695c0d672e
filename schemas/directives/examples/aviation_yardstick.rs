//! Measures how well models and limits are read from labelled directives, next to simple baselines, and prints a table.
//! `ops/checks/aviation-yardstick` runs it.
//!
//! Each line of a file is a directive as JSON: `{"id", "title", "holder", "summary", "models": ["A319-111", …], "limits": [{"kind", "value", "unit"}]}`, and
//! either `"text"`, the regulatory text, or `"applicability"` and `"actions"`, paragraphs of it. A record without `models` or `limits` is not
//! measured for them.
//!
//! `"aircraft"` lists aircraft of other spellings: `[{"make", "model", "verdict", "engine": [make, model], "propeller": [make, model]}]`. An aircraft with the
//! verdict `MATCH` or `POSSIBLE`, or without one, must be found; one with `NONE` must not.
//!
//! A silent miss is a labelled model, or an aircraft, that must be found and for which the comparison says `NONE`. Fails if there is one, or if precision or
//! recall of the cases of
//! the project are below the bounds.

#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use directives::{Aircraft, Directive, LimitKind, Publication, ResolvedAircraft, Role, Verdict, clean, compact_form, compare, read};
use serde::Deserialize;

/// The bounds: models precision and recall, share of exact sets, limits precision and recall.
const BOUNDS: [f64; 5] = [0.98, 0.95, 0.90, 0.97, 0.85];

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Labelled {
    id: String,
    title: String,
    holder: String,
    summary: String,
    text: String,
    applicability: String,
    actions: String,
    models: Option<Vec<String>>,
    limits: Option<Vec<LabelledLimit>>,
    aircraft: Vec<LabelledAircraft>,
}

#[derive(Deserialize)]
struct LabelledAircraft {
    make: String,
    model: String,
    #[serde(default)]
    verdict: Option<String>,
    #[serde(default)]
    engine: Option<(String, String)>,
    #[serde(default)]
    propeller: Option<(String, String)>,
}

#[derive(Deserialize)]
struct LabelledLimit {
    kind: String,
    value: u32,
    unit: String,
}

impl Labelled {
    /// The regulatory text; built from the paragraphs if there is none.
    fn text(&self) -> String {
        if !self.text.is_empty() {
            return clean(&self.text);
        }
        clean(&format!(
            "2026-01-02 {}: Amendment 39-1.\n\n(a) Effective Date\n\nThis AD is effective May 1, 2026.\n\n(b) Affected ADs\n\nNone.\n\n(c) Applicability\n\n{}\n\n\
             (d) Subject\n\nATA Code 57.\n\n(e) Unsafe Condition\n\nUnknown.\n\n(f) Compliance\n\nComply.\n\n(g) Required Actions\n\n{}",
            self.holder, self.applicability, self.actions
        ))
    }
}

impl LabelledAircraft {
    /// What the comparison should have said, if it said something else; and whether the difference is a silent miss.
    fn difference(&self, directive: &Directive) -> Option<(String, bool)> {
        fn pair(part: Option<&(String, String)>) -> Option<(&str, &str)> {
            part.map(|(make, model)| (make.as_str(), model.as_str()))
        }
        let aircraft = Aircraft {
            make: &self.make,
            model: &self.model,
            engine: pair(self.engine.as_ref()),
            propeller: pair(self.propeller.as_ref()),
            ..Aircraft::default()
        };
        let verdict = compare(directive, &ResolvedAircraft::new(&aircraft)).verdict;
        let is_right = match self.verdict.as_deref() {
            Some("MATCH") => verdict == Verdict::Match,
            Some("NONE") => verdict == Verdict::None,
            _ => verdict != Verdict::None,
        };
        let wanted = self.verdict.as_deref().unwrap_or("MATCH or POSSIBLE");
        let what = format!("{} {} {:?} {:?}: {verdict:?}, should be {wanted}", self.make, self.model, self.engine, self.propeller);
        (!is_right).then_some((what, verdict == Verdict::None))
    }
}

/// Counts of right and wrong items.
#[derive(Clone, Copy, Default)]
struct Score {
    right: usize,
    found: usize,
    labelled: usize,
    exact: usize,
    records: usize,
}

impl Score {
    fn add(&mut self, found: &[String], labelled: &[String]) {
        let mut rest = labelled.to_vec();
        for item in found {
            if let Some(at) = rest.iter().position(|other| other == item) {
                rest.swap_remove(at);
                self.right += 1;
            }
        }
        self.found += found.len();
        self.labelled += labelled.len();
        self.records += 1;
        self.exact += usize::from(rest.is_empty() && found.len() == labelled.len());
    }

    fn precision(&self) -> f64 {
        share(self.right, self.found)
    }

    fn recall(&self) -> f64 {
        share(self.right, self.labelled)
    }

    fn print(&self, name: &str) {
        println!(
            "{name:<46} precision {:.3}  recall {:.3}  exact {:.3}  ({} right of {} found, {} labelled, {} directives)",
            self.precision(),
            self.recall(),
            share(self.exact, self.records),
            self.right,
            self.found,
            self.labelled,
            self.records
        );
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

fn models_of(directive: &Directive) -> Vec<String> {
    let forms: BTreeSet<String> =
        directive.applicability.models.iter().filter(|model| model.role == Role::Applies).map(|model| model.form.clone()).collect();
    forms.into_iter().collect()
}

/// The baseline: every word with a capital and a digit.
fn capitals_with_digits(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')')).map(|word| word.trim_matches('.'));
    let is_model = |word: &&str| word.bytes().any(|byte| byte.is_ascii_digit()) && word.bytes().any(|byte| byte.is_ascii_uppercase());
    let forms: BTreeSet<String> = words.filter(is_model).map(compact_form).collect();
    forms.into_iter().collect()
}

fn limits_of(directive: &Directive) -> Vec<String> {
    let kind = |kind: LimitKind| if kind == LimitKind::Initial { "initial" } else { "recurring" };
    directive.compliance.limits.iter().map(|limit| format!("{} {} {}", kind(limit.kind), limit.value, limit.unit.as_str())).collect()
}

/// The baseline: every number before a unit; it recurs if its sentence says "every", "thereafter" or "intervals".
fn numbers_with_units(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for sentence in text.split(". ") {
        let recurs = ["every", "thereafter", "intervals"].iter().any(|word| sentence.contains(word));
        let words: Vec<&str> = sentence.split_whitespace().map(|word| word.trim_matches([',', '.', ';', ':'])).collect();
        for (at, word) in words.iter().enumerate() {
            let Ok(value) = word.replace(',', "").parse::<u32>() else { continue };
            let next = |offset: usize| words.get(at + offset).copied().unwrap_or_default();
            let unit = match (next(1), next(2)) {
                ("hours", _) => "hours",
                ("flight", "hours") => "flight_hours",
                ("cycles", _) | ("flight", "cycles") => "cycles",
                ("days", _) => "days",
                ("months", _) => "months",
                ("calendar", "months") => "calendar_months",
                ("years", _) => "years",
                _ => continue,
            };
            found.push(format!("{} {value} {unit}", if recurs { "recurring" } else { "initial" }));
        }
    }
    found
}

/// The labelled files: those of a folder, or the cases of the project.
fn files(folder: Option<&Path>) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let Some(folder) = folder else { return Ok(vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cases.jsonl")]) };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    Ok(files)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let shows_all = arguments.iter().position(|argument| argument == "--differences").map(|at| arguments.remove(at)).is_some();
    let folder = arguments.first().map(PathBuf::from);
    let (mut models, mut tokens, mut abstracts) = (Score::default(), Score::default(), Score::default());
    let (mut limits, mut numbers, mut limits_of_abstracts) = (Score::default(), Score::default(), Score::default());
    let (mut misses, mut unread, mut read_count, mut micros) = (Vec::new(), 0_usize, 0_usize, 0_u128);
    for file in files(folder.as_deref())? {
        for line in std::fs::read_to_string(&file)?.lines().filter(|line| !line.trim().is_empty()) {
            let labelled: Labelled = serde_json::from_str(line)?;
            let text = labelled.text();
            let started = Instant::now();
            let found = read(&Publication { title: &labelled.title, summary: &labelled.summary, text: &text, effective_on: None });
            micros += started.elapsed().as_micros();
            read_count += 1;
            let Some(directive) = found.ok().and_then(|found| found.into_iter().next()) else {
                unread += 1;
                println!("not read: {}", labelled.id);
                misses.extend(labelled.models.iter().flatten().map(|model| format!("{}: {model}", labelled.id)));
                continue;
            };
            if let Some(wanted) = &labelled.models {
                let forms: BTreeSet<String> = wanted.iter().map(|model| compact_form(model)).collect();
                let forms: Vec<String> = forms.into_iter().collect();
                let own = models_of(&directive);
                if shows_all && own != forms {
                    println!("{}: read {own:?}, labelled {forms:?}", labelled.id);
                }
                models.add(&own, &forms);
                tokens.add(&capitals_with_digits(directive.applicability.span.of(&text)), &forms);
                abstracts.add(&capitals_with_digits(&format!("{} {}", labelled.title, labelled.summary)), &forms);
                for model in wanted {
                    let pair = (directive.holder.as_str(), model.as_str());
                    let aircraft = Aircraft { make: pair.0, model, engine: Some(pair), propeller: Some(pair), ..Aircraft::default() };
                    if compare(&directive, &ResolvedAircraft::new(&aircraft)).verdict == Verdict::None {
                        misses.push(format!("{}: {model}", labelled.id));
                    }
                }
            }
            for (what, is_miss) in labelled.aircraft.iter().filter_map(|aircraft| aircraft.difference(&directive)) {
                if is_miss {
                    misses.push(format!("{}: {what}", labelled.id));
                } else {
                    println!("{}: {what}", labelled.id);
                }
            }
            if let Some(wanted) = &labelled.limits {
                let wanted: Vec<String> = wanted.iter().map(|limit| format!("{} {} {}", limit.kind, limit.value, limit.unit)).collect();
                let own = limits_of(&directive);
                if shows_all && own != wanted {
                    println!("{}: read {own:?}, labelled {wanted:?}", labelled.id);
                }
                limits.add(&own, &wanted);
                numbers.add(&numbers_with_units(directive.compliance.span.of(&text)), &wanted);
                limits_of_abstracts.add(&numbers_with_units(&labelled.summary), &wanted);
            }
        }
    }
    if folder.is_none() {
        println!("The cases of the project were written by the authors of the rules: the figures are in-sample.");
    }
    models.print("models");
    tokens.print("  baseline: capitals with digits, paragraph (c)");
    abstracts.print("  baseline: capitals with digits, abstract");
    limits.print("limits (kind, value, unit)");
    numbers.print("  baseline: numbers with units");
    limits_of_abstracts.print("  baseline: numbers with units, abstract");
    println!(
        "silent misses {}  not read {unread} of {read_count}  {} directives a second",
        misses.len(),
        read_count as u128 * 1_000_000 / micros.max(1)
    );
    misses.iter().for_each(|miss| println!("  silent miss: {miss}"));
    let figures = [models.precision(), models.recall(), share(models.exact, models.records), limits.precision(), limits.recall()];
    let is_met = figures.iter().zip(BOUNDS).all(|(figure, bound)| *figure >= bound) && misses.is_empty();
    Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
