//! A directive as it is stored: texts instead of spans, so that the whole text of the document is not needed to compare it.

use schemas::views::aviation::{
    AirworthinessDirective, DirectiveLimit, DirectiveModel, ModelMention, SerialList, SerialNumbers, UnreadText,
};
use serde::Serialize;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::directive::{
    Affected, Applicability, Compliance, Directive, Joiner, Layout, Limit, LimitKind, Mention, NamedModel, Product, Recurring, Relation,
    Role, Scope, SerialRange, Serials, Span, Unit, Unread, UnreadReason,
};
use crate::lookup::{ANY_AIRCRAFT, keys_of};
use crate::{Anchor, RULES_VERSION};

/// The longest text that is kept of a part that could not be read, or of a condition, in bytes.
const PART_BYTES_MAX: usize = 400;
/// The longest text that is kept of a phrase, in bytes.
const PHRASE_BYTES_MAX: usize = 1_000;
/// The longest paragraph that is kept, in bytes.
const PARAGRAPH_BYTES_MAX: usize = 2_000;

/// The record of a directive, without what its documents say of it: title, status, addresses. `text` and `summary` are the text and the abstract that were
/// read.
#[must_use]
pub fn record_of(directive: &Directive, text: &str, summary: &str) -> AirworthinessDirective {
    let Directive { applicability, compliance, .. } = directive;
    let models = applicability.models.iter().map(|model| DirectiveModel {
        name: model.name.clone(),
        form: model.form.clone(),
        series: model.series.clone(),
        is_series: model.is_series,
        also: model.also.clone(),
        role: name_of(&model.role),
        span: beginning(model.span.of(text), PHRASE_BYTES_MAX),
    });
    let serials = applicability.serials.iter().map(|list| SerialList {
        ranges: list
            .ranges
            .iter()
            .map(|range| SerialNumbers { from: range.from.clone(), to: range.to.clone().unwrap_or_default() })
            .collect(),
        is_all: list.is_all,
        is_complete: list.is_complete,
        models: list.models.iter().map(|at| i64::try_from(*at).unwrap_or(i64::MAX)).collect(),
        span: beginning(list.span.of(text), PHRASE_BYTES_MAX),
    });
    let limits = compliance.limits.iter().map(|limit| DirectiveLimit {
        kind: name_of(&limit.kind),
        value: i64::from(limit.value),
        unit: limit.unit.as_str().to_owned(),
        anchor: name_of(&limit.anchor),
        joiner: name_of(&limit.joiner),
        group: i64::from(limit.group),
        quote: beginning(limit.span.of(text), PHRASE_BYTES_MAX),
    });
    let part = |span: Option<Span>, bytes_max| span.map(|span| beginning(span.of(text), bytes_max)).unwrap_or_default();
    let replaced = directive.affected.iter().filter(|affected| affected.relation == Relation::Replaces);
    let mentions = applicability.mentions.iter();
    let unread = directive.unread.iter();
    AirworthinessDirective {
        id: directive.number.clone(),
        ad_number: directive.number.clone(),
        make: directive.holder.clone(),
        makes: directive.makes.clone(),
        product: name_of(&directive.product),
        scope: name_of(&applicability.scope),
        models: models.collect(),
        mentions: mentions.map(|mention| ModelMention { form: mention.form.clone(), span: mention.span.of(text).to_owned() }).collect(),
        serials: serials.collect(),
        condition: part(applicability.condition, PART_BYTES_MAX),
        named_in_summary: directive.named_in_summary.iter().map(|mention| mention.form.clone()).collect(),
        summary_spans: directive.named_in_summary.iter().map(|mention| mention.span.of(summary).to_owned()).collect(),
        ata: directive.ata.clone(),
        effective_date: directive.effective.map(|(day, _)| day.to_string()).unwrap_or_default(),
        supersedes: replaced.map(|affected| affected.number.clone()).collect(),
        recurring: name_of(&compliance.recurring),
        limits: limits.collect(),
        terminating_action: part(compliance.terminating, PHRASE_BYTES_MAX),
        referenced_document: part(compliance.referenced, PHRASE_BYTES_MAX),
        unsafe_condition: part(Some(directive.unsafe_condition), PARAGRAPH_BYTES_MAX),
        layout: name_of(&directive.layout),
        unread: unread.map(|one| UnreadText { reason: name_of(&one.reason), span: part(Some(one.span), PART_BYTES_MAX) }).collect(),
        rules_version: i64::from(RULES_VERSION),
        keys: keys_of(directive),
        ..AirworthinessDirective::default()
    }
}

/// A directive that was read back from its record. Its spans are those of `text`, which consists of the kept texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDirective {
    /// The directive.
    pub directive: Directive,
    /// The texts.
    pub text: String,
}

impl StoredDirective {
    /// Reads a record back. A word that this version does not know becomes the one that rules out least: the directive stays possible.
    #[must_use]
    pub fn of(record: &AirworthinessDirective) -> Self {
        let mut text = String::new();
        let mut span = |part: &str| {
            let start = text.len();
            text.push_str(part);
            Span::new(start, text.len())
        };
        let models = record.models.iter().map(|model| NamedModel {
            name: model.name.clone(),
            form: model.form.clone(),
            series: model.series.clone(),
            is_series: model.is_series,
            also: model.also.clone(),
            role: value_of(&model.role).unwrap_or(Role::Applies),
            span: span(&model.span),
        });
        let models: Vec<NamedModel> = models.collect();
        let serials = record.serials.iter().map(|list| Serials {
            ranges: list
                .ranges
                .iter()
                .map(|range| SerialRange { from: range.from.clone(), to: Some(range.to.clone()).filter(|to| !to.is_empty()) })
                .collect(),
            is_all: list.is_all,
            is_complete: list.is_complete,
            models: list.models.iter().filter_map(|at| usize::try_from(*at).ok()).collect(),
            span: span(&list.span),
        });
        let serials: Vec<Serials> = serials.collect();
        let mentions: Vec<Mention> =
            record.mentions.iter().map(|mention| Mention { form: mention.form.clone(), span: span(&mention.span) }).collect();
        // Records of earlier rules have no words for the forms.
        let words = record.summary_spans.iter().map(String::as_str).chain(std::iter::repeat(""));
        let named_in_summary: Vec<Mention> =
            record.named_in_summary.iter().zip(words).map(|(form, words)| Mention { form: form.clone(), span: span(words) }).collect();
        let limits: Vec<Limit> = record.limits.iter().filter_map(|limit| limit_of(limit, &mut span)).collect();
        let mut optional = |part: &str| (!part.is_empty()).then(|| span(part));
        let condition = optional(&record.condition);
        let (terminating, referenced) = (optional(&record.terminating_action), optional(&record.referenced_document));
        let unread = record.unread.iter().map(|part| Unread {
            reason: value_of(&part.reason).unwrap_or(UnreadReason::NoApplicability),
            span: optional(&part.span).unwrap_or_default(),
        });
        let unread: Vec<Unread> = unread.collect();
        let affected =
            record.supersedes.iter().map(|number| Affected { number: number.clone(), relation: Relation::Replaces, span: Span::default() });
        let product = value_of(&record.product).unwrap_or(Product::Aircraft);
        let is_appliance = product == Product::Appliance;
        let directive = Directive {
            number: record.ad_number.clone(),
            number_span: Span::default(),
            holder: record.make.clone(),
            makes: record.makes.clone(),
            product,
            layout: value_of(&record.layout).unwrap_or(Layout::Older),
            effective: record.effective_date.parse().ok().map(|day| (day, None)),
            affected: affected.collect(),
            applicability: Applicability {
                span: Span::default(),
                scope: value_of(&record.scope).unwrap_or(Scope::Unknown),
                models,
                mentions,
                serials,
                condition,
                is_open: is_appliance && record.keys.iter().any(|key| key == ANY_AIRCRAFT),
            },
            named_in_summary,
            ata: record.ata.clone(),
            unsafe_condition: Span::default(),
            compliance: Compliance {
                span: Span::default(),
                recurring: value_of(&record.recurring).unwrap_or(Recurring::Unknown),
                limits,
                terminating,
                referenced,
            },
            unread,
        };
        Self { directive, text }
    }
}

fn limit_of(limit: &DirectiveLimit, span: &mut impl FnMut(&str) -> Span) -> Option<Limit> {
    Some(Limit {
        kind: value_of(&limit.kind).unwrap_or(LimitKind::Initial),
        value: u32::try_from(limit.value).ok()?,
        unit: value_of::<Unit>(&limit.unit)?,
        anchor: value_of(&limit.anchor).unwrap_or(Anchor::EffectiveDate),
        joiner: value_of(&limit.joiner).unwrap_or(Joiner::None),
        group: u32::try_from(limit.group).ok()?,
        span: span(&limit.quote),
    })
}

/// The beginning of a text, in at most so many bytes.
fn beginning(text: &str, bytes_max: usize) -> String {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default().to_owned()
}

/// The word for a value, as it is serialized.
fn name_of<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The value that a word means.
fn value_of<T: DeserializeOwned>(name: &str) -> Option<T> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    T::deserialize(name).ok()
}
