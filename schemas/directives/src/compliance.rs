//! Reads when the actions of a directive are due: "within 100 hours TIS after the effective date", "thereafter at intervals not to exceed 12 months".

use crate::directive::{Anchor, Compliance, Joiner, Limit, LimitKind, Recurring, Span, Unit};
use crate::tokens::Tokens;

/// The most limits of one directive.
const LIMITS_MAX: usize = 400;
/// The most tokens between a word such as "within" and its number.
const TRIGGER_TOKENS_MAX: usize = 9;
/// The most tokens that join two limits: "100 hours TIS or, if later, 12 months".
const JOIN_TOKENS_MAX: usize = 7;
/// The most tokens between two limits of which the first says from when it counts.
const ANCHORED_TOKENS_MAX: usize = 14;
/// Words that say from when a limit counts.
const ANCHORING: &[&str] = &["ad", "after", "date", "effective", "from", "issuance", "manufacture", "new", "since", "this"];
/// How many tokens after a limit are searched for what it counts from.
const ANCHOR_TOKENS_MAX: usize = 26;
/// The greatest value of a limit.
const VALUE_MAX: u32 = 1_000_000;

const NUMBER_WORDS: &[&str] = &[
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: &[&str] = &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const RECURRING: &[&str] =
    &["each", "every", "interval", "intervals", "repeat", "repeated", "repeating", "repetitive", "repetitively", "thereafter"];
/// Phrases that say that an action recurs.
const EACH_TIME: &[&str] = &[
    "at intervals",
    "each annual",
    "each flight",
    "each scheduled",
    "each shop visit",
    "every annual",
    "every flight",
    "every scheduled",
    "every shop visit",
    "flight of each day",
    "flight of the day",
];
const INITIAL: &[&str] = &["before", "by", "initially", "upon", "within"];
/// Words after which a number is no limit of the action: "that has accumulated 3,000 hours".
const NO_LIMIT: &[&str] = &["accumulated", "exceeded", "for", "has", "have", "if", "is", "more", "reports", "that", "used", "when", "with"];
/// Words that join two limits.
const JOINING: &[&str] = &[
    "(",
    ")",
    ",",
    "and",
    "calendar",
    "every",
    "exceed",
    "in-service",
    "next",
    "not",
    "of",
    "or",
    "service",
    "the",
    "time-in-service",
    "tis",
    "to",
    "total",
];
/// Words of an action after which a limit counts from that action.
const ACTIONS: &[&str] = &[
    "accomplishing",
    "accomplishment",
    "compliance",
    "completing",
    "completion",
    "doing",
    "inspecting",
    "inspection",
    "installation",
    "installing",
    "modification",
    "modifying",
    "overhaul",
    "performing",
    "previous",
    "last",
    "recent",
    "prior",
    "repair",
    "replacement",
    "replacing",
];

/// Reads the paragraphs of required actions. `summary` is the abstract of the document: it says whether actions recur when their times are in
/// another document.
pub(crate) fn read(text: &str, actions: &[Span], summary: &str) -> Compliance {
    let mut reader = Reader { limits: Vec::new(), group: 0, has_recurring_words: false, terminating: None, referenced: None };
    for span in actions {
        reader.paragraph(&Tokens::of(text, span.start..span.end));
    }
    let recurs = reader.has_recurring_words || reader.limits.iter().any(|limit| limit.kind == LimitKind::Recurring);
    let recurring = if recurs || (reader.referenced.is_some() && is_repetitive(summary)) {
        Recurring::Yes
    } else if actions.is_empty() || reader.referenced.is_some() {
        Recurring::Unknown
    } else {
        Recurring::No
    };
    let span = match (actions.first(), actions.last()) {
        (Some(first), Some(last)) => Span::new(first.start, last.end),
        _ => Span::default(),
    };
    Compliance { span, recurring, limits: reader.limits, terminating: reader.terminating, referenced: reader.referenced }
}

/// Whether an abstract says that actions recur.
fn is_repetitive(summary: &str) -> bool {
    let tokens = Tokens::of(summary, 0..summary.len());
    (0..tokens.len()).any(|at| tokens.is_any(at, &["repetitive", "repetitively", "recurring", "repeat", "repeated"]))
}

struct Reader {
    limits: Vec<Limit>,
    group: u32,
    has_recurring_words: bool,
    terminating: Option<Span>,
    referenced: Option<Span>,
}

/// A number with its unit.
struct Amount {
    value: u32,
    unit: Unit,
    /// Whether the text says that it is a total.
    is_total: bool,
    /// Whether it is written as an adjective: "100-hour".
    is_adjective: bool,
    next: usize,
}

/// A word that makes the next number a limit.
#[derive(Clone, Copy)]
struct Trigger {
    kind: LimitKind,
    at: usize,
}

/// The joiner that an introduction gives to the items after it.
#[derive(Clone, Copy)]
struct Pending {
    joiner: Joiner,
    class: ItemClass,
    group: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemClass {
    Unset,
    Digit,
    Lower,
    Upper,
}

impl Reader {
    /// Reads one paragraph, sentence by sentence.
    fn paragraph(&mut self, tokens: &Tokens<'_>) {
        let mut pending: Option<Pending> = None;
        let mut first = 0;
        let mut at = 0;
        while at <= tokens.len() {
            if at == tokens.len() || is_end(tokens, at) {
                pending = self.sentence(tokens, first, at, pending);
                first = at + 1;
            }
            at += 1;
        }
    }

    /// Reads a sentence between two positions. Returns the joiner for the items that follow.
    fn sentence(&mut self, tokens: &Tokens<'_>, first: usize, end: usize, pending: Option<Pending>) -> Option<Pending> {
        if first >= end {
            return pending;
        }
        self.note_words(tokens, first, end);
        let class = item_class(tokens, first);
        let mut pending = pending.filter(|pending| class.is_some_and(|class| pending.class == ItemClass::Unset || pending.class == class));
        if let (Some(pending), Some(class)) = (&mut pending, class) {
            pending.class = class;
        }
        self.group = self.group.saturating_add(1);
        let sentence_group = self.group;
        let began = self.limits.len();
        self.limits_of(tokens, first, end);
        let joiner = joiner_of(tokens, first, end);
        // An introduction: its joiner is for the items after it.
        if self.limits.len() == began {
            let is_introduction = tokens.text(end) == ":" || tokens.is_any(end.wrapping_sub(1), &["first", "later"]);
            if let Some(joiner) = joiner.filter(|_| is_introduction) {
                return Some(Pending { joiner, class: ItemClass::Unset, group: sentence_group });
            }
            return pending;
        }
        if let Some(pending) = pending {
            for limit in self.limits.iter_mut().skip(began).filter(|limit| limit.joiner == Joiner::None && limit.group == sentence_group) {
                limit.joiner = pending.joiner;
                limit.group = pending.group;
            }
        }
        pending
    }

    /// Notes words that say that actions recur, end, or are in another document.
    fn note_words(&mut self, tokens: &Tokens<'_>, first: usize, end: usize) {
        for at in first..end {
            let word = tokens.text(at);
            self.has_recurring_words |= ["repetitive", "repetitively", "thereafter"].iter().any(|known| word.eq_ignore_ascii_case(known))
                || (tokens.is(at, "repeat") && !tokens.is(at.wrapping_sub(1), "not"))
                || EACH_TIME.iter().any(|words| tokens.is_phrase(at, words));
            let is_terminating = tokens.is_phrase(at, "terminating action") || tokens.is_phrase(at, "terminates the");
            if is_terminating && self.terminating.is_none() {
                self.terminating = Some(tokens.span(first, end - 1));
            }
            let is_document = tokens.is_phrase(at, "EASA AD")
                || tokens.is_phrase(at, "EASA Emergency AD")
                || tokens.is_phrase(at, "times specified in")
                || tokens.is_phrase(at, "maintenance or inspection program")
                || (tokens.is(at, "AD") && tokens.is(at + 1, "CF"))
                || tokens.is_phrase(at, "airworthiness limitations");
            let is_this = tokens.is_phrase(at, "times specified in paragraph") || tokens.is_phrase(at, "times specified in paragraphs");
            if is_document && !is_this && self.referenced.is_none() {
                self.referenced = Some(tokens.span(first, end - 1));
            }
        }
    }

    /// Reads the limits of a sentence.
    fn limits_of(&mut self, tokens: &Tokens<'_>, first: usize, end: usize) {
        // Reports are due at the authority, not on the aircraft.
        if (first..end).any(|at| tokens.is_any(at, &["report", "submit"]) && !tokens.is(at + 1, "no"))
            && !(first..end).any(|at| tokens.is_any(at, &["inspect", "replace", "repeat", "intervals"]))
        {
            return;
        }
        let mut trigger: Option<Trigger> = None;
        let mut last_kind: Option<LimitKind> = None;
        let mut joined_from: Option<usize> = None;
        let mut began = self.limits.len();
        let mut leading: Option<Joiner> = None;
        let mut at = first;
        while at < end {
            if let Some((joiner, next)) = whichever(tokens, at, end) {
                for limit in self.limits.iter_mut().skip(began) {
                    limit.joiner = joiner;
                    limit.span.end = tokens.span(at, next - 1).end;
                }
                began = self.limits.len();
                self.group = self.group.saturating_add(1);
                (joined_from, trigger) = (None, None);
                at = next;
                continue;
            }
            if let Some(joiner) = leading_joiner(tokens, at) {
                leading = Some(joiner);
            }
            if tokens.is_any(at, RECURRING) {
                let is_kept = trigger.is_some_and(|trigger| trigger.kind == LimitKind::Recurring)
                    && at - trigger.map_or(at, |trigger| trigger.at) <= TRIGGER_TOKENS_MAX;
                if !is_kept || tokens.is_any(at, &["every", "intervals", "interval"]) {
                    trigger = Some(Trigger { kind: LimitKind::Recurring, at });
                }
            } else if is_initial(tokens, at)
                && !trigger.is_some_and(|trigger| {
                    trigger.kind == LimitKind::Recurring && is_repeat(tokens, trigger.at) && !tokens.is(at, "initially")
                })
            {
                trigger = Some(Trigger { kind: LimitKind::Initial, at });
            }
            let Some(amount) = amount(tokens, at, end) else {
                at += 1;
                continue;
            };
            // "at 50-hour TIS intervals", "at 100 hour intervals".
            let interval_words = if amount.is_adjective { 4 } else { 1 };
            let is_interval = (amount.next..amount.next + interval_words).any(|at| tokens.is_any(at, &["interval", "intervals"]));
            let by_trigger = trigger.filter(|trigger| is_near(tokens, trigger.at, at)).map(|trigger| (trigger.kind, trigger.at));
            let by_join = joined_from.filter(|from| is_joined(tokens, *from, at)).and(last_kind).map(|kind| (kind, at));
            let found = if is_interval { Some((LimitKind::Recurring, at)) } else { by_trigger.or(by_join) };
            let Some((kind, from)) = found.filter(|_| self.limits.len() < LIMITS_MAX) else {
                at = amount.next;
                continue;
            };
            if last_kind.is_some_and(|last| last != kind) {
                self.group = self.group.saturating_add(1);
                began = self.limits.len();
                leading = None;
            }
            let anchor = anchor_of(tokens, kind, from, &amount, end);
            let span = tokens.span(from.min(at), amount.next - 1);
            let joiner = leading.unwrap_or_default();
            self.limits.push(Limit { kind, value: amount.value, unit: amount.unit, anchor, joiner, group: self.group, span });
            last_kind = Some(kind);
            joined_from = Some(amount.next);
            trigger = None;
            at = amount.next;
        }
    }
}

/// Whether a sentence ends at a token.
fn is_end(tokens: &Tokens<'_>, at: usize) -> bool {
    match tokens.text(at) {
        "." => {
            let next = tokens.text(at + 1);
            next.is_empty() || next == "\n" || next == "(" || next.starts_with(|c: char| c.is_uppercase())
        }
        ";" => true,
        ":" => matches!(tokens.text(at + 1), "\n" | "(" | ""),
        _ => tokens.is_break(at),
    }
}

/// The kind of item number with which a sentence begins: (1), (i) or (A).
fn item_class(tokens: &Tokens<'_>, first: usize) -> Option<ItemClass> {
    let mut at = first;
    let mut class = None;
    while tokens.text(at) == "(" && tokens.text(at + 2) == ")" {
        let word = tokens.text(at + 1);
        class = match word.chars().next() {
            Some(c) if c.is_ascii_digit() => Some(ItemClass::Digit),
            Some(c) if c.is_ascii_lowercase() => Some(ItemClass::Lower),
            Some(c) if c.is_ascii_uppercase() => Some(ItemClass::Upper),
            _ => None,
        };
        at += 3;
    }
    class
}

fn is_repeat(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.is_any(at, &["repeat", "repeated", "thereafter", "repetitively"])
}

fn is_initial(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.is_any(at, INITIAL)
        || tokens.is_phrase(at, "prior to")
        || tokens.is_phrase(at, "later than")
        || tokens.is_phrase(at, "during the next")
        || tokens.is_phrase(at, "in the next")
        || tokens.is_phrase(at, "at or before")
}

/// Whether a number belongs to a trigger: it is near, and no word between says that it is something else.
fn is_near(tokens: &Tokens<'_>, trigger: usize, at: usize) -> bool {
    let between = trigger + 1..at;
    let is_before = tokens.is_any(trigger, &["before", "prior"]);
    // "intervals of no more than 100 hours".
    let is_at_most = |at: usize| tokens.is(at, "more") && tokens.is(at + 1, "than") && tokens.is_any(at.wrapping_sub(1), &["no", "not"]);
    at - trigger <= TRIGGER_TOKENS_MAX && !between.into_iter().any(|at| tokens.is_any(at, NO_LIMIT) && !is_before && !is_at_most(at))
}

/// Whether only words that join two limits are between them: also from when the first one counts, "after the effective date of this AD or".
fn is_joined(tokens: &Tokens<'_>, from: usize, at: usize) -> bool {
    let is_short = at - from <= JOIN_TOKENS_MAX
        && (from..at).all(|at| tokens.is_any(at, JOINING))
        && (from..at).any(|at| tokens.is_any(at, &["or", "and", ","]));
    let is_anchored = at - from <= ANCHORED_TOKENS_MAX
        && tokens.is_any(from, &["after", "from", "since"])
        && tokens.is(at.wrapping_sub(1), "or")
        && (from..at).all(|at| tokens.is_any(at, ANCHORING) || tokens.is_any(at, JOINING) || tokens.is_any(at, ACTIONS));
    is_short || is_anchored
}

/// "whichever occurs first": the joiner, and the position after the phrase.
fn whichever(tokens: &Tokens<'_>, at: usize, end: usize) -> Option<(Joiner, usize)> {
    if !tokens.is(at, "whichever") {
        return None;
    }
    (at + 1..end.min(at + 7)).find_map(|at| order(tokens, at).map(|joiner| (joiner, at + 1)))
}

fn order(tokens: &Tokens<'_>, at: usize) -> Option<Joiner> {
    if tokens.is_any(at, &["first", "earlier", "earliest", "sooner"]) {
        Some(Joiner::First)
    } else if tokens.is_any(at, &["later", "latest", "last"]) {
        Some(Joiner::Later)
    } else {
        None
    }
}

/// "the later of", before the limits.
fn leading_joiner(tokens: &Tokens<'_>, at: usize) -> Option<Joiner> {
    if tokens.is(at, "the") && tokens.is(at + 2, "of") { order(tokens, at + 1) } else { None }
}

/// The joiner of a sentence, for the items after it.
fn joiner_of(tokens: &Tokens<'_>, first: usize, end: usize) -> Option<Joiner> {
    (first..end).find_map(|at| whichever(tokens, at, end).map(|(joiner, _)| joiner).or_else(|| leading_joiner(tokens, at)))
}

/// Reads a number with its unit.
fn amount(tokens: &Tokens<'_>, at: usize, end: usize) -> Option<Amount> {
    let word = tokens.text(at);
    if !tokens.is_word(at) {
        return None;
    }
    // "100-hour", "12-month", "1,000-flight-hour".
    if let Some((number, rest)) =
        word.split_once('-').filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b','))
    {
        let value = number_of(number)?;
        let (unit, factor) = match rest.to_ascii_lowercase().as_str() {
            "hour" | "hours" => (Unit::Hours, 1),
            "flight-hour" | "flight-hours" => (Unit::FlightHours, 1),
            "cycle" | "flight-cycle" | "cycles" | "flight-cycles" => (Unit::Cycles, 1),
            "landing" | "landings" => (Unit::Landings, 1),
            "day" | "days" => (Unit::Days, 1),
            "week" | "weeks" => (Unit::Days, 7),
            "month" | "months" => (Unit::Months, 1),
            "calendar-month" | "calendar-months" => (Unit::CalendarMonths, 1),
            "year" | "years" => (Unit::Years, 1),
            _ => return None,
        };
        let value = value.checked_mul(factor).filter(|value| *value <= VALUE_MAX)?;
        return Some(Amount { value, unit, is_total: false, is_adjective: true, next: at + 1 });
    }
    let value = number_of(word)?;
    let mut next = at + 1;
    if tokens.text(next) == "(" && number_of(tokens.text(next + 1)) == Some(value) && tokens.text(next + 2) == ")" {
        next += 3;
    }
    let (mut is_total, mut is_flight, mut is_calendar) = (false, false, false);
    for _ in 0..4 {
        match tokens.text(next).to_ascii_lowercase().as_str() {
            "total" | "accumulated" => is_total |= tokens.is(next, "total"),
            "flight" => is_flight = true,
            "calendar" => is_calendar = true,
            "additional" | "engine" | "operating" | "operational" | "consecutive" | "clock" | "more" | "airplane" | "pressurization"
            | "pressurized" | "aircraft" => {}
            _ => break,
        }
        next += 1;
    }
    let (unit, factor) = match tokens.text(next).to_ascii_lowercase().as_str() {
        "hours" | "hour" | "hrs" if is_flight => (Unit::FlightHours, 1),
        "hours" | "hour" | "hrs" | "hours-time-in-service" | "hours-in-service" => (Unit::Hours, 1),
        "fh" | "fhs" | "flight-hours" => (Unit::FlightHours, 1),
        "cycles" | "cycle" | "fc" | "fcs" | "cis" | "cycles-in-service" | "flight-cycles" => (Unit::Cycles, 1),
        "landings" | "landing" => (Unit::Landings, 1),
        "days" | "day" => (Unit::Days, 1),
        "weeks" | "week" => (Unit::Days, 7),
        "months" | "month" if is_calendar => (Unit::CalendarMonths, 1),
        "months" | "month" => (Unit::Months, 1),
        "years" | "year" => (Unit::Years, 1),
        _ => return None,
    };
    next += 1;
    let value = value.checked_mul(factor).filter(|value| (1..=VALUE_MAX).contains(value))?;
    // "time-in-service (TIS)", "time since new (TSN)", "in service": what the hours are.
    while next < end {
        let word = tokens.text(next);
        let is_label = tokens.is_any(
            next,
            &["tis", "ttis", "tsn", "csn", "time-in-service", "in-service", "time-since-new", "cycles-since-new", "cycles-in-service"],
        ) || tokens.is_phrase(next, "in service")
            || tokens.is_phrase(next, "since new")
            || tokens.is_phrase(next, "time in service")
            || tokens.is_phrase(next, "total time");
        if word == "("
            && tokens.text(next + 2) == ")"
            && tokens.text(next + 1).len() <= 5
            && tokens.text(next + 1).bytes().all(|byte| byte.is_ascii_uppercase())
        {
            is_total |= matches!(tokens.text(next + 1), "TTIS" | "TSN" | "CSN");
            next += 3;
        } else if is_label {
            is_total |= tokens.is_any(next, &["ttis", "tsn", "csn", "time-since-new", "cycles-since-new", "since", "total"]);
            let is_phrase = tokens.is_any(next, &["in", "since", "time", "total"]);
            next += if tokens.is(next, "time") { 3 } else { 1 + usize::from(is_phrase) };
        } else {
            break;
        }
    }
    Some(Amount { value, unit, is_total, is_adjective: false, next: next.min(end) })
}

/// Reads a number: digits with commas between thousands, or words up to ninety-nine.
fn number_of(word: &str) -> Option<u32> {
    let place = |list: &[&str], word: &str| {
        let place = list.iter().position(|known| word.eq_ignore_ascii_case(known));
        place.and_then(|place| u32::try_from(place).ok())
    };
    if let Some(value) = place(NUMBER_WORDS, word) {
        return Some(value);
    }
    let (tens, ones) = word.split_once('-').map_or((word, None), |(tens, ones)| (tens, Some(ones)));
    if let Some(tens) = place(TENS, tens) {
        let ones = ones.map_or(Some(0), |ones| place(NUMBER_WORDS, ones).filter(|ones| (1..=9).contains(ones)))?;
        return Some((tens + 2) * 10 + ones);
    }
    let is_number = word.starts_with(|c: char| c.is_ascii_digit()) && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let plain = word.strip_suffix(".0").unwrap_or(word);
    let is_number = is_number || (plain.len() < word.len() && plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b','));
    is_number.then(|| plain.replace(',', "").parse().ok()).flatten().filter(|value| *value <= VALUE_MAX)
}

/// From when a limit counts.
fn anchor_of(tokens: &Tokens<'_>, kind: LimitKind, trigger: usize, amount: &Amount, end: usize) -> Anchor {
    if kind == LimitKind::Recurring {
        return Anchor::LastDone;
    }
    let is_accumulation = (trigger..trigger + 5)
        .any(|at| tokens.text(at).to_ascii_lowercase().starts_with("accumulat") || tokens.is_any(at, &["reaching", "exceeding"]));
    if amount.is_total || is_accumulation {
        return Anchor::Total;
    }
    let mut is_after = false;
    for at in amount.next..end.min(amount.next + ANCHOR_TOKENS_MAX) {
        if is_initial(tokens, at) || tokens.is_any(at, &["thereafter", "whichever", "every"]) {
            break;
        }
        if tokens.is_phrase(at, "effective date") {
            return Anchor::EffectiveDate;
        }
        if tokens.is_phrase(at, "since new")
            || tokens.is_phrase(at, "original airworthiness")
            || tokens.is_phrase(at, "original certificate")
            || tokens.is_phrase(at, "original export")
            || tokens.is_phrase(at, "original standard")
            || tokens.is_phrase(at, "date of manufacture")
            || tokens.is_phrase(at, "first flight")
            || tokens.is_phrase(at, "since manufacture")
        {
            return Anchor::Total;
        }
        is_after |= tokens.is_any(at, &["after", "since", "from", "following"]);
        if is_after && tokens.is_any(at, ACTIONS) {
            return Anchor::LastDone;
        }
        // The action itself begins: what follows is not about the limit.
        if !is_after && tokens.text(at) == "," {
            // "Within 100 hours, inspect …" counts from the effective date; "100 hours, or 12 months after …" continues.
            if !tokens.is_any(at + 1, &["or", "and"]) {
                break;
            }
        }
    }
    Anchor::EffectiveDate
}

#[cfg(test)]
mod tests;
