//! Compares a directive with an aircraft: `MATCH`, `POSSIBLE` or `NONE`, with the reasons and what the text cannot decide.
//!
//! A directive that names the model is never `NONE` unless it excepts exactly that model. What could not be read is `POSSIBLE` for the make.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::aliases::{
    compact_form, designation_of, family_of, forms_with_name, has_several_makers, is_known_make, makers_of_form, makes_of_model,
    marketed_series, other_forms, series_of, tails,
};
use crate::directive::{Compliance, Directive, Layout, LimitKind, NamedModel, Product, Recurring, Role, Span, UnreadReason};

/// An aircraft as its owner describes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aircraft<'a> {
    /// The make.
    pub make: &'a str,
    /// The model.
    pub model: &'a str,
    /// The serial number.
    pub serial: Option<&'a str>,
    /// Make and model of the engine. An empty make is any.
    pub engine: Option<(&'a str, &'a str)>,
    /// Make and model of the propeller. An empty make is any.
    pub propeller: Option<(&'a str, &'a str)>,
}

/// A make and model under all names by which a directive can name them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolvedModel {
    /// The keys of the make, sorted. None for an engine or a propeller of any make.
    pub makes: Vec<String>,
    /// The compact form of the model.
    pub form: String,
    /// The compact form and other ones: with and without the make, without marketing words, the model that a marketing name means.
    pub forms: Vec<String>,
    /// The one of the forms that is the designation, as answers show it.
    pub designation: String,
    /// The series of each form.
    pub series: Vec<String>,
    /// The beginnings of the models that the name of a family means: `PW11` for `PW1100G`.
    pub families: Vec<String>,
}

impl ResolvedModel {
    fn new(make: &str, model: &str) -> Self {
        let form = compact_form(without_label(model));
        let makes = makes_of_model(make, &form);
        // Without a make the names of its model are those of every maker that has it.
        let naming = if makes.is_empty() { makers_of_form(&form) } else { makes.clone() };
        let mut forms = other_forms(&naming, &form);
        forms.extend(forms_with_name(&naming, &form));
        let designation = designation_of(&naming, &form, &forms);
        forms.insert(form.clone());
        forms.retain(|form| !form.is_empty());
        let marketed = forms.iter().flat_map(|form| marketed_series(&naming, form));
        let series: BTreeSet<String> =
            forms.iter().map(|form| series_of(&naming, form)).chain(marketed).filter(|series| series.len() >= 2).collect();
        let families: BTreeSet<String> = forms.iter().flat_map(|form| family_of(&naming, form)).collect();
        Self {
            makes,
            form,
            forms: forms.into_iter().collect(),
            designation,
            series: series.into_iter().collect(),
            families: families.into_iter().collect(),
        }
    }
}

/// A model without the word "Model" before it.
fn without_label(model: &str) -> &str {
    let model = model.trim();
    match model.split_once(' ') {
        Some((label, rest)) if ["model", "models"].iter().any(|word| label.eq_ignore_ascii_case(word)) => rest,
        _ => model,
    }
}

/// An aircraft whose names are resolved once, to be compared with many directives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolvedAircraft {
    /// The airframe.
    pub airframe: ResolvedModel,
    /// The engine.
    pub engine: Option<ResolvedModel>,
    /// The propeller.
    pub propeller: Option<ResolvedModel>,
    /// The serial number of the airframe.
    pub serial: Option<String>,
}

impl ResolvedAircraft {
    /// Resolves the names of an aircraft.
    #[must_use]
    pub fn new(aircraft: &Aircraft<'_>) -> Self {
        let resolved =
            |pair: Option<(&str, &str)>| pair.map(|(make, model)| ResolvedModel::new(make, model)).filter(|model| !model.forms.is_empty());
        Self {
            airframe: ResolvedModel::new(aircraft.make, aircraft.model),
            engine: resolved(aircraft.engine),
            propeller: resolved(aircraft.propeller),
            serial: serial_of(aircraft.serial),
        }
    }

    /// The same aircraft with another serial number, or with none.
    #[must_use]
    pub fn with_serial(&self, serial: Option<&str>) -> Self {
        let Self { airframe, engine, propeller, .. } = self.clone();
        Self { airframe, engine, propeller, serial: serial_of(serial) }
    }
}

/// A serial number without blanks around it; `None` if nothing remains.
fn serial_of(given: Option<&str>) -> Option<String> {
    given.map(str::trim).filter(|serial| !serial.is_empty()).map(str::to_owned)
}

/// Whether a directive is for an aircraft, as far as the text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// The text is for other models.
    None,
    /// The text may be for this model.
    Possible,
    /// The text names the model or its series.
    Match,
}

/// Why a verdict was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// The text names this model.
    ModelNamed,
    /// The text names a series to which the model belongs.
    SeriesNamed,
    /// The text names another model of the same series.
    SameSeries,
    /// The text mentions the model or its series outside of a list that was read.
    Mentioned,
    /// The text could not be read, and its make is that of the aircraft.
    Unread,
    /// An engine, propeller or appliance may be installed on this model.
    InstalledOn,
    /// The text excepts this model.
    Excepted,
    /// The text excepts this model under a condition.
    ExceptedIf,
    /// The serial number is in a list of the text.
    SerialListed,
    /// The serial number is in no list of the text.
    SerialNotListed,
    /// The directive is for another make.
    OtherMake,
    /// The directive is for other models of the make.
    OtherModel,
    /// The directive is for an appliance that may be installed on aircraft which its text does not name.
    NoAircraftNamed,
}

/// What a text alone cannot decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CannotDecide {
    /// Only certain serial numbers are affected.
    SerialRange,
    /// It depends on an installed part or a modification.
    InstalledPart,
    /// It is about an appliance.
    Appliance,
    /// Actions or times are in another document.
    ReferencedDocument,
    /// It is about an engine or a propeller that the owner did not name, or named without its make by a model that several makers have.
    EngineUnknown,
    /// The text could not be read.
    Unparsed,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the directive is for the aircraft.
    pub verdict: Verdict,
    /// Why, sorted.
    pub reasons: Vec<Reason>,
    /// The text that names the model, or the text that could not be read.
    pub span: Option<Span>,
    /// Whether the span is one of the abstract and not of the text. A directive that was read back from its record has one text for both.
    pub is_span_of_summary: bool,
    /// What the text cannot decide, sorted. Empty for `None`.
    pub cannot_decide: Vec<CannotDecide>,
}

impl Outcome {
    fn none(reason: Reason) -> Self {
        Self { verdict: Verdict::None, reasons: vec![reason], span: None, is_span_of_summary: false, cannot_decide: Vec::new() }
    }

    /// Whether the serial number of the aircraft can change the result: the text names the model or its series, and limits serial numbers.
    #[must_use]
    pub fn depends_on_serial(&self) -> bool {
        let is_named = |reason: &Reason| matches!(reason, Reason::ModelNamed | Reason::SeriesNamed);
        self.cannot_decide.contains(&CannotDecide::SerialRange) && self.reasons.iter().any(is_named)
    }
}

/// Compares a directive with an aircraft.
///
/// The serial number changes results that [depend on it](Outcome::depends_on_serial) only, and never whether a directive is for the aircraft at all: so one
/// comparison without it serves all aircraft of the same names but for those results.
#[must_use]
pub fn compare(directive: &Directive, aircraft: &ResolvedAircraft) -> Outcome {
    let mut outcome = match directive.product {
        Product::Aircraft => by_aircraft(directive, aircraft),
        Product::Engine => by_part(directive, aircraft, aircraft.engine.as_ref()),
        Product::Propeller => by_part(directive, aircraft, aircraft.propeller.as_ref()),
        Product::Appliance => by_appliance(directive, aircraft),
    };
    if outcome.verdict == Verdict::None {
        outcome.cannot_decide.clear();
    } else {
        // Whatever else the verdict follows from: an installed part or a modification decides as well.
        if directive.applicability.condition.is_some() {
            outcome.cannot_decide.push(CannotDecide::InstalledPart);
        }
        if is_elsewhere(&directive.compliance) {
            outcome.cannot_decide.push(CannotDecide::ReferencedDocument);
        }
    }
    outcome.reasons.sort_unstable();
    outcome.reasons.dedup();
    outcome.cannot_decide.sort_unstable();
    outcome.cannot_decide.dedup();
    outcome
}

/// Whether actions or times are in another document: the text says so and states no limit, or the actions recur and it states no interval.
fn is_elsewhere(compliance: &Compliance) -> bool {
    let has_interval = compliance.limits.iter().any(|limit| limit.kind == LimitKind::Recurring);
    (compliance.referenced.is_some() && compliance.limits.is_empty()) || (compliance.recurring == Recurring::Yes && !has_interval)
}

/// An aircraft. A document about aircraft and engines can name the engine or the propeller of another one.
fn by_aircraft(directive: &Directive, aircraft: &ResolvedAircraft) -> Outcome {
    let outcome = by_model(directive, &aircraft.airframe, aircraft.serial.as_deref());
    if outcome.verdict > Verdict::None {
        return outcome;
    }
    let parts = [&aircraft.engine, &aircraft.propeller].into_iter().flatten();
    let mut of_parts = parts
        .map(|part| by_model(directive, part, None))
        .filter(|of_part| of_part.verdict > Verdict::None && !of_part.reasons.contains(&Reason::Unread));
    of_parts.next().map_or(outcome, |of_part| Outcome { verdict: Verdict::Possible, ..of_part })
}

/// An engine or a propeller: compared with the one that the owner names. Without it, the aircraft is possible if the text names it.
fn by_part(directive: &Directive, aircraft: &ResolvedAircraft, part: Option<&ResolvedModel>) -> Outcome {
    match part {
        Some(part) => by_model(directive, part, None),
        None => {
            // The question may be about the engine or propeller itself.
            let itself = by_model(directive, &aircraft.airframe, aircraft.serial.as_deref());
            if itself.verdict > Verdict::None && !directive.makes.is_empty() && !itself.reasons.contains(&Reason::Unread) {
                return itself;
            }
            let model = directive
                .applicability
                .models
                .iter()
                .find(|model| model.role == Role::InstalledOn && is_related(model, &aircraft.airframe));
            let in_summary = directive.named_in_summary.iter().find(|mention| aircraft.airframe.forms.contains(&mention.form));
            let Some(span) = model.map(|model| model.span).or(in_summary.map(|mention| mention.span)) else {
                return Outcome::none(Reason::OtherModel);
            };
            Outcome {
                verdict: Verdict::Possible,
                reasons: vec![Reason::InstalledOn],
                span: Some(span),
                is_span_of_summary: model.is_none(),
                cannot_decide: vec![CannotDecide::EngineUnknown],
            }
        }
    }
}

/// An appliance: possible for the aircraft, engines and propellers that the text names, and for all others if it does not say that these are all.
fn by_appliance(directive: &Directive, aircraft: &ResolvedAircraft) -> Outcome {
    let airframe = &aircraft.airframe;
    let models = &directive.applicability.models;
    let parts = || [Some(airframe), aircraft.engine.as_ref(), aircraft.propeller.as_ref()].into_iter().flatten();
    let is_place = |model: &NamedModel| model.role != Role::Excepted && parts().any(|part| is_related(model, part));
    let model = models.iter().find(|model| is_place(model)).map(|model| model.span);
    let possible = |reason: Reason, span: Option<Span>| Outcome {
        verdict: Verdict::Possible,
        reasons: vec![reason],
        span,
        is_span_of_summary: false,
        cannot_decide: vec![CannotDecide::Appliance, CannotDecide::InstalledPart],
    };
    if let Some(span) = model.or_else(|| parts().find_map(|part| mention_of(directive, part))) {
        return possible(Reason::InstalledOn, Some(span));
    }
    if let Some(model) = models.iter().find(|model| model.role == Role::Excepted && is_named(model, airframe)) {
        return Outcome { span: Some(model.span), ..Outcome::none(Reason::Excepted) };
    }
    if !directive.applicability.is_open {
        return Outcome::none(Reason::OtherModel);
    }
    // What the text says of the appliance: the part without models, or its first model.
    let unread = directive.unread.iter().find(|unread| unread.reason == UnreadReason::NoModels).map(|unread| unread.span);
    possible(Reason::NoAircraftNamed, unread.or_else(|| models.first().map(|model| model.span)))
}

/// Compares the models that a directive names with one.
fn by_model(directive: &Directive, wanted: &ResolvedModel, serial: Option<&str>) -> Outcome {
    let models = &directive.applicability.models;
    let is_any = directive.product != Product::Aircraft && wanted.makes.is_empty();
    let is_make = is_any || directive.makes.is_empty() || directive.makes.iter().any(|make| wanted.makes.binary_search(make).is_ok());
    if !is_make || wanted.forms.is_empty() {
        // The holder of a modification of aircraft of other makers: "Acme Winglets: … Model 525B airplanes".
        let is_modified = |model: &&NamedModel| model.role == Role::Applies && is_named(model, wanted);
        return match models.iter().find(is_modified).filter(|_| is_of_unknown_holder(directive)) {
            Some(model) => possible(directive, Reason::Mentioned, model.span, Some(CannotDecide::InstalledPart)),
            None => Outcome::none(Reason::OtherMake),
        };
    }
    let named = |role: Role| models.iter().enumerate().filter(move |(_, model)| model.role == role);
    let exact: Vec<usize> = named(Role::Applies).filter(|(_, model)| is_named(model, wanted)).map(|(at, _)| at).collect();
    let of_series: Vec<usize> = named(Role::Applies).filter(|(_, model)| is_of_series(model, wanted)).map(|(at, _)| at).collect();
    let excepted = named(Role::Excepted).find(|(_, model)| is_named(model, wanted));

    if let Some((_, model)) = excepted {
        // Named and excepted: the text has a condition that was not read.
        if exact.is_empty() {
            return Outcome { span: Some(model.span), ..Outcome::none(Reason::Excepted) };
        }
        return possible(directive, Reason::ExceptedIf, model.span, Some(CannotDecide::InstalledPart));
    }
    let found = if exact.is_empty() { &of_series } else { &exact };
    if let Some(model) = found.first().and_then(|at| models.get(*at)) {
        let reason = if exact.is_empty() { Reason::SeriesNamed } else { Reason::ModelNamed };
        let mut outcome = Outcome { verdict: Verdict::Match, span: Some(model.span), ..Outcome::none(reason) };
        decide_serial(directive, found, serial, &mut outcome);
        if named(Role::ExceptedIf).any(|(_, model)| is_related(model, wanted)) {
            outcome.reasons.push(Reason::ExceptedIf);
            outcome.cannot_decide.push(CannotDecide::InstalledPart);
        }
        // Without a make in the header the model alone does not say whose it is.
        if directive.makes.is_empty() {
            outcome.verdict = Verdict::Possible;
        }
        // Nor does the model that the owner gave, if several makers have it.
        if is_any && has_several_makers(&wanted.form) {
            outcome.verdict = Verdict::Possible;
            outcome.cannot_decide.push(CannotDecide::EngineUnknown);
        }
        return outcome;
    }
    let related = models.iter().find(|model| matches!(model.role, Role::Applies | Role::ExceptedIf) && is_related(model, wanted));
    if let Some(model) = related {
        return possible(directive, Reason::SameSeries, model.span, None);
    }
    // What was read as the equipment of other models, or as what a product is installed on, has the name of this one or of its series.
    let is_placed = |model: &&NamedModel| matches!(model.role, Role::Equipment | Role::InstalledOn) && is_related(model, wanted);
    if let Some(model) = models.iter().find(is_placed) {
        return possible(directive, Reason::Mentioned, model.span, Some(CannotDecide::Unparsed));
    }
    if let Some(span) = mention_of(directive, wanted) {
        return possible(directive, Reason::Mentioned, span, Some(CannotDecide::Unparsed));
    }
    let unread = directive.unread.iter().find(|unread| {
        matches!(unread.reason, UnreadReason::NoApplicability | UnreadReason::NoModels | UnreadReason::TooLong)
            || (unread.reason == UnreadReason::OlderLayout && directive.layout == Layout::Older)
    });
    // Of an engine or a propeller of any make only models that are named are found.
    match unread.filter(|_| !is_any) {
        Some(unread) => possible(directive, Reason::Unread, unread.span, Some(CannotDecide::Unparsed)),
        None => Outcome::none(Reason::OtherModel),
    }
}

/// Whether a directive for aircraft names only makes that the data file does not know. The holder may be that of a modification.
pub(crate) fn is_of_unknown_holder(directive: &Directive) -> bool {
    directive.product == Product::Aircraft && !directive.makes.is_empty() && !is_known_make(&directive.makes)
}

/// A possible outcome that no list of serial numbers narrows down: any limited one may be the one that counts.
fn possible(directive: &Directive, reason: Reason, span: Span, cannot: Option<CannotDecide>) -> Outcome {
    let has_limited = directive.applicability.serials.iter().any(|list| !list.is_all);
    let cannot_decide = cannot.into_iter().chain(has_limited.then_some(CannotDecide::SerialRange)).collect();
    Outcome { verdict: Verdict::Possible, span: Some(span), cannot_decide, ..Outcome::none(reason) }
}

/// Compares the serial number with the lists of the models that were found. A number that is in none of them stays possible: lists can be
/// read wrongly, and the service does not decide them.
fn decide_serial(directive: &Directive, found: &[usize], serial: Option<&str>, outcome: &mut Outcome) {
    let lists: Vec<_> =
        directive.applicability.serials.iter().filter(|list| list.models.iter().any(|model| found.contains(model))).collect();
    let limited: Vec<_> = lists.iter().filter(|list| !list.is_all).collect();
    if limited.is_empty() {
        return;
    }
    outcome.cannot_decide.push(CannotDecide::SerialRange);
    // A mention of the model without a list applies to all its serial numbers.
    let has_free = found.iter().any(|model| !lists.iter().any(|list| list.models.contains(model)));
    let Some(serial) = serial.filter(|_| !has_free) else { return };
    let answers: Vec<Option<bool>> = lists.iter().map(|list| list.contains(serial)).collect();
    if answers.contains(&Some(true)) {
        outcome.reasons.push(Reason::SerialListed);
    } else if answers.iter().all(|answer| *answer == Some(false)) {
        outcome.reasons.push(Reason::SerialNotListed);
        outcome.verdict = Verdict::Possible;
    }
}

/// Whether the text names exactly this model.
fn is_named(model: &NamedModel, wanted: &ResolvedModel) -> bool {
    wanted.forms.iter().any(|form| *form == model.form || model.also.contains(form))
}

/// Whether the text names a series to which this model belongs.
fn is_of_series(model: &NamedModel, wanted: &ResolvedModel) -> bool {
    model.is_series
        && wanted
            .forms
            .iter()
            .any(|form| names_of(model).any(|name| (name.len() >= 2 && form.starts_with(name.as_str())) || has_customer_code(name, form)))
}

/// Whether a model has a customer's code in the place of the zeros of a series: `737-8H4` of `737-800`, `767-3P6ER` of `767-300ER`.
fn has_customer_code(series: &str, form: &str) -> bool {
    let Some((head, rest)) = series.split_at_checked(4) else { return false };
    let Some(suffix) = rest.strip_prefix("00").filter(|suffix| suffix.bytes().all(|byte| byte.is_ascii_uppercase())) else { return false };
    let is_head = head.starts_with('7') && head.as_bytes().get(2) == Some(&b'7') && head.bytes().all(|byte| byte.is_ascii_digit());
    let code = form.strip_prefix(head).and_then(|rest| rest.strip_suffix(suffix));
    is_head && code.is_some_and(|code| code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Whether the text names a model of the same series.
fn is_related(model: &NamedModel, wanted: &ResolvedModel) -> bool {
    is_named(model, wanted)
        || is_of_series(model, wanted)
        || (model.series.len() >= 2
            && (wanted.forms.iter().any(|form| form.starts_with(model.series.as_str())) || wanted.series.contains(&model.series)))
        || wanted.forms.iter().any(|form| form.len() >= 2 && model.form.starts_with(form.as_str()))
        || wanted.forms.iter().any(|form| is_tail(&model.form, form) || is_tail(form, &model.form))
        || wanted.series.iter().any(|series| model.also.iter().any(|also| also.starts_with(series.as_str())))
        || wanted.families.iter().any(|beginning| names_of(model).any(|name| name.starts_with(beginning.as_str())))
}

/// The compact forms under which a text names a model.
fn names_of(model: &NamedModel) -> impl Iterator<Item = &String> {
    std::iter::once(&model.form).chain(&model.also)
}

/// Whether a form is another one without its first letters or digits: `117A1` of `MBBBK117A1`, `190100` of `ERJ190100`.
fn is_tail(form: &str, tail: &str) -> bool {
    form.len() > tail.len() && form.ends_with(tail) && tails(form).any(|own| own == tail)
}

/// A word outside of the lists that names this model or its series.
fn mention_of(directive: &Directive, wanted: &ResolvedModel) -> Option<Span> {
    let is_of = |form: &str| {
        form.len() >= 2
            && (wanted.forms.iter().any(|own| own == form || (own.len() >= 3 && form.starts_with(own.as_str())))
                || wanted.forms.iter().any(|own| is_tail(own, form) || is_tail(form, own))
                || wanted.series.iter().chain(&wanted.families).any(|beginning| form.starts_with(beginning.as_str())))
    };
    directive.applicability.mentions.iter().find(|mention| is_of(&mention.form)).map(|mention| mention.span)
}
