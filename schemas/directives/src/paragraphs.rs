//! Finds the parts of a directive: the lettered paragraphs, or the headings of the older layout.

use crate::directive::{Layout, Span};
use crate::tokens::Tokens;

/// How many tokens before and after the letter of a paragraph show its heading.
const HEADING_TOKENS: usize = 12;
/// How many tokens of a paragraph show the question that it answers.
const QUESTION_TOKENS: usize = 24;
/// The most tokens that are searched for the next roman number.
const ROMAN_TOKENS_MAX: usize = 4_000;

/// Words in the headings of paragraphs that are no required actions.
const NO_ACTIONS: &[&str] = &[
    "alternative methods of compliance",
    "alternative method of compliance",
    "amoc",
    "amocs",
    "related information",
    "additional information",
    "special flight permit",
    "special flight permits",
    "material incorporated",
    "credit for",
    "reporting",
    "no reporting",
    "paperwork reduction",
    "subject",
    "unsafe condition",
    "reason",
    "this ad was prompted",
    "this ad results from",
    "the mandatory continuing",
    "this ad is prompted",
    "other faa ad provisions",
    "faa ad differences",
    "contact information",
];

/// The parts of a directive as spans of its text; an empty span for a part that was not found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) layout: Option<Layout>,
    pub(crate) effective: Span,
    pub(crate) affected: Span,
    pub(crate) applicability: Span,
    pub(crate) subject: Span,
    pub(crate) unsafe_condition: Span,
    /// The paragraphs of required actions.
    pub(crate) actions: Vec<Span>,
}

/// Finds the parts of the directive whose tokens these are.
pub(crate) fn parts(tokens: &Tokens<'_>) -> Parts {
    let markers = markers(tokens);
    if let Some(parts) = questions(tokens, &markers) {
        return parts;
    }
    if markers.len() >= 3 && mentions_application(tokens, markers[2], markers.get(3).copied()) {
        lettered(tokens, &markers)
    } else {
        applicability_first(tokens, &markers).unwrap_or_else(|| older(tokens))
    }
}

/// The layout of directives for rotorcraft from 2012 to 2020: (a) applicability, (b) unsafe condition, (c) affected directives or effective date, and so on.
fn applicability_first(tokens: &Tokens<'_>, markers: &[usize]) -> Option<Parts> {
    let (first, second) = (*markers.first()?, *markers.get(1)?);
    if !contains_words(&heading(tokens, first), "applicability") {
        return None;
    }
    let mut parts = Parts { layout: Some(Layout::Lettered), applicability: tokens.span(first, second - 1), ..Parts::default() };
    for (index, at) in markers.iter().enumerate().skip(1) {
        let paragraph = tokens.span(*at, markers.get(index + 1).copied().unwrap_or(tokens.len()).saturating_sub(1));
        let heading = heading(tokens, *at);
        let is_one_of = |wanted: &[&str]| wanted.iter().any(|words| contains_words(&heading, words));
        let place = match () {
            () if is_one_of(&["effective date"]) => &mut parts.effective,
            () if is_one_of(&["affected ads", "affected ad"]) => &mut parts.affected,
            () if is_one_of(&["unsafe condition", "reason"]) => &mut parts.unsafe_condition,
            () if is_one_of(&["subject", "code", "ata"]) => &mut parts.subject,
            () => {
                if !is_one_of(NO_ACTIONS) {
                    parts.actions.push(paragraph);
                }
                continue;
            }
        };
        if *place == Span::default() {
            *place = paragraph;
        }
    }
    Some(parts)
}

/// The layout of the years around 2000, whose lettered paragraphs are questions: "(a) What airplanes are affected by this AD?". It counts as an older one:
/// its tables can be read wrongly.
fn questions(tokens: &Tokens<'_>, markers: &[usize]) -> Option<Parts> {
    let end_of = |index: usize| markers.get(index + 1).copied().unwrap_or(tokens.len());
    let has = |index: usize, phrases: &[&str]| {
        let first = markers.get(index).copied().unwrap_or(tokens.len());
        (first..end_of(index).min(first + QUESTION_TOKENS)).any(|at| phrases.iter().any(|phrase| tokens.is_phrase(at, phrase)))
    };
    let paragraph =
        |index: usize| markers.get(index).map_or_else(Span::default, |first| tokens.span(*first, end_of(index).saturating_sub(1)));
    let affected = (0..markers.len().min(4)).find(|index| has(*index, &["affected by this ad", "affected by this airworthiness"]))?;
    let unsafe_condition = (affected + 1..markers.len()).find(|index| has(*index, &["what problem"]));
    let actions = (affected + 1..markers.len()).filter(|index| has(*index, &["what actions", "what must i do", "must i accomplish"]));
    Some(Parts {
        layout: Some(Layout::Older),
        applicability: paragraph(affected),
        unsafe_condition: unsafe_condition.map_or_else(Span::default, paragraph),
        actions: actions.map(paragraph).collect(),
        ..Parts::default()
    })
}

/// The positions of the letters (a), (b), (c) …, each after the one before it in the alphabet.
fn markers(tokens: &Tokens<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut letters = 'a'..='z';
    let mut wanted = letters.next();
    let mut at = 0;
    while let Some(letter) = wanted.filter(|_| at < tokens.len()) {
        if is_marker(tokens, at, letter) && !is_roman(tokens, at, letter) {
            found.push(at);
            wanted = letters.next();
        }
        at += 1;
    }
    found
}

/// Whether a paragraph with this letter begins here.
fn is_marker(tokens: &Tokens<'_>, at: usize, letter: char) -> bool {
    let mut buffer = [0; 4];
    let is_letter = tokens.text(at) == "(" && tokens.text(at + 1) == letter.encode_utf8(&mut buffer) && tokens.text(at + 2) == ")";
    if !is_letter || tokens.text(at + 3) == "(" || tokens.is_any(at + 3, &["of", "through", "and", ",", "or"]) {
        return false;
    }
    let before = tokens.before(at, 1);
    let is_heading = before.starts_with(|c: char| c.is_uppercase()) || before == "ADs";
    before.is_empty() || matches!(before, "\n" | "." | ":" | ";") || is_heading
}

/// Whether (i) is the roman number one: (ii) follows before (j).
fn is_roman(tokens: &Tokens<'_>, at: usize, letter: char) -> bool {
    if letter != 'i' {
        return false;
    }
    for next in at + 3..tokens.len().min(at + ROMAN_TOKENS_MAX) {
        if tokens.text(next) == "(" && tokens.text(next + 2) == ")" && tokens.before(next, 1) != ")" {
            match tokens.text(next + 1) {
                "ii" => return true,
                "j" if is_marker(tokens, next, 'j') => return false,
                _ => {}
            }
        }
    }
    false
}

fn mentions_application(tokens: &Tokens<'_>, from: usize, to: Option<usize>) -> bool {
    let end = to.unwrap_or(tokens.len()).min(from + 60);
    (from.saturating_sub(2)..end).any(|at| tokens.text(at).to_ascii_lowercase().starts_with("appl"))
}

fn lettered(tokens: &Tokens<'_>, markers: &[usize]) -> Parts {
    let paragraph = |index: usize| {
        let Some(first) = markers.get(index) else { return Span::default() };
        let next = markers.get(index + 1).copied().unwrap_or(tokens.len());
        tokens.span(*first, next.saturating_sub(1))
    };
    let mut parts = Parts {
        layout: Some(Layout::Lettered),
        effective: paragraph(0),
        affected: paragraph(1),
        applicability: paragraph(2),
        ..Parts::default()
    };
    for (index, at) in markers.iter().enumerate().skip(3) {
        let heading = heading(tokens, *at);
        let is_one_of = |wanted: &[&str]| wanted.iter().any(|words| contains_words(&heading, words));
        if parts.subject == Span::default() && is_one_of(&["subject", "code", "ata"]) {
            parts.subject = paragraph(index);
        } else if parts.unsafe_condition == Span::default()
            && is_one_of(&["unsafe condition", "reason", "this ad was prompted", "this ad results", "the mandatory continuing"])
        {
            parts.unsafe_condition = paragraph(index);
        } else if !is_one_of(NO_ACTIONS) {
            parts.actions.push(paragraph(index));
        }
    }
    parts
}

/// The words around the letter of a paragraph, in lower case: the heading is after the letter, or before it in older documents.
fn heading(tokens: &Tokens<'_>, at: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    if let Some(first) = heading_before(tokens, at) {
        words.extend((first..at).map(|at| tokens.text(at).to_ascii_lowercase()));
    }
    let first =
        (at.saturating_sub(HEADING_TOKENS)..at).rev().take_while(|at| !matches!(tokens.text(*at), "." | "\n" | ":" | ")" | "|")).last();
    for at in first.unwrap_or(at)..at {
        words.push(tokens.text(at).to_ascii_lowercase());
    }
    for at in at + 3..at + 3 + HEADING_TOKENS {
        if matches!(tokens.text(at), "." | ":" | "\n" | "") {
            break;
        }
        words.push(tokens.text(at).to_ascii_lowercase());
    }
    words.retain(|word| word.starts_with(|c: char| c.is_alphanumeric()));
    words.join(" ")
}

/// Where a heading in a paragraph of its own before the letter begins, as in documents of 2004 to 2009: some words without a point.
fn heading_before(tokens: &Tokens<'_>, at: usize) -> Option<usize> {
    let end = at.checked_sub(1).filter(|end| tokens.is_break(*end))?;
    let first = (end.saturating_sub(HEADING_TOKENS)..end).rev().find(|at| tokens.is_break(*at)).map_or(0, |at| at + 1);
    let is_heading = (first..end).all(|at| !matches!(tokens.text(at), "." | "|" | ":" | ";"))
        && end - first < HEADING_TOKENS
        && tokens.text(first).starts_with(|c: char| c.is_uppercase());
    is_heading.then_some(first)
}

/// Whether a text of words contains these words one after the other.
fn contains_words(text: &str, words: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_none_or(|byte| *byte == b' ');
    let bytes = text.as_bytes();
    text.match_indices(words)
        .any(|(at, _)| is_end(at.checked_sub(1).and_then(|before| bytes.get(before))) && is_end(bytes.get(at + words.len())))
}

/// The layout before lettered paragraphs: "Applicability: …", "Compliance: …", or "Applies to …".
fn older(tokens: &Tokens<'_>) -> Parts {
    let labelled = |word: &str| (0..tokens.len()).find(|at| tokens.is(*at, word) && tokens.text(*at + 1) == ":");
    let applies = || (0..tokens.len()).find(|at| tokens.is_phrase(*at, "applies to"));
    let (Some(first), compliance) = (labelled("applicability").or_else(applies), labelled("compliance")) else {
        return Parts::default();
    };
    let required =
        (first..tokens.len()).find(|at| tokens.is_phrase(*at, "compliance required") || tokens.is_phrase(*at, "required as indicated"));
    let end = compliance
        .filter(|at| *at > first)
        .or(required)
        .unwrap_or_else(|| (first..tokens.len()).find(|at| tokens.is_break(*at)).unwrap_or(tokens.len()));
    let is_methods = |at: &usize| {
        tokens.is_phrase(*at, "alternative method of compliance") || tokens.is_phrase(*at, "alternative methods of compliance")
    };
    let last = (end..tokens.len()).find(is_methods).unwrap_or(tokens.len());
    let actions = if end < last { vec![tokens.span(end, last - 1)] } else { Vec::new() };
    Parts { layout: Some(Layout::Older), applicability: tokens.span(first, end.saturating_sub(1).max(first)), actions, ..Parts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWER: &str = "2026-01-02 Acme: Amendment 39-1.\n\n(a) Effective Date\n\nThis AD is effective May 1, 2026.\n\n(b) Affected ADs\n\nNone.\n\n\
        (c) Applicability\n\nThis AD applies to the airplanes in paragraphs (c)(1) and (2) of this AD.\n\n(1) Model X-1.\n\n(2) Model X-2.\n\n\
        (d) Subject\n\nATA Code 57, Wings.\n\n(e) Unsafe Condition\n\nThis AD was prompted by cracks.\n\n(f) Compliance\n\nComply.\n\n\
        (g) Required Actions\n\n(1) Do it:\n\n(i) once,\n\n(ii) twice.\n\n(h) Definition\n\nAs in paragraph (g)(1)(i) of this AD.\n\n\
        (i) Alternative Methods of Compliance (AMOCs)\n\nWithin 10 days.\n\n(j) Related Information\n\nNone.";

    /// Proves that the paragraphs are found although their letters also occur in references and as roman numbers, and which of them are
    /// required actions.
    #[test]
    fn lettered_paragraphs() {
        let tokens = Tokens::of(NEWER, 0..NEWER.len());
        let parts = parts(&tokens);
        assert_eq!(parts.layout, Some(Layout::Lettered));
        assert!(parts.effective.of(NEWER).contains("May 1, 2026"));
        assert!(parts.affected.of(NEWER).contains("None"));
        assert!(parts.applicability.of(NEWER).contains("(2) Model X-2."));
        assert!(parts.subject.of(NEWER).contains("57"));
        assert!(parts.unsafe_condition.of(NEWER).contains("cracks"));
        let actions: Vec<&str> = parts.actions.iter().map(|span| span.of(NEWER)).collect();
        assert_eq!(actions.len(), 3, "{actions:?}");
        assert!(actions[1].contains("(ii) twice."));
    }

    /// Proves that headings before the letters, and the layout without letters, are understood.
    #[test]
    fn older_paragraphs() {
        let text = "2009-01-02 Acme: Amendment 39-1. Effective Date (a) This AD becomes effective May 1, 2009. Affected ADs (b) None. \
            Applicability (c) This AD applies to Model X-1 airplanes. Unsafe Condition (d) This AD results from cracks. Compliance (e) Do it. \
            Alternative Methods of Compliance (AMOCs) (f) The Manager. Related Information (g) None.";
        let tokens = Tokens::of(text, 0..text.len());
        let found = parts(&tokens);
        assert_eq!(found.layout, Some(Layout::Lettered));
        assert!(found.applicability.of(text).contains("Model X-1"));
        assert!(found.unsafe_condition.of(text).contains("cracks"));
        assert_eq!(found.actions.iter().map(|span| span.of(text).contains("Do it")).collect::<Vec<_>>(), [true]);

        // The headings are paragraphs of their own.
        let text = "2005-01-02 Acme: Amendment 39-1.\n\nEffective Date\n\n(a) This AD becomes effective May 1, 2009.\n\nAffected ADs\n\n(b) None.\n\n\
            Applicability\n\n(c) This AD applies to Model X-1 airplanes.\n\nUnsafe Condition\n\n(d) It could crack.\n\nCompliance\n\n(e) Do it.\n\n\
            Alternative Methods of Compliance (AMOCs)\n\n(f) The Manager may approve one within 10 days.";
        let tokens = Tokens::of(text, 0..text.len());
        let found = parts(&tokens);
        assert!(found.unsafe_condition.of(text).contains("could crack"));
        assert_eq!(found.actions.iter().map(|span| span.of(text).contains("Do it")).collect::<Vec<_>>(), [true]);

        // The applicability is the first paragraph.
        let text = "2019-01-02 Acme: Amendment 39-1; Docket No. 1.\n\n(a) Applicability\n\nThis AD applies to the following helicopters:\n\n(1) Model X-1.\n\n\
            (2) Model X-2.\n\n(b) Unsafe Condition\n\nIt could crack.\n\n(c) Affected ADs\n\nThis AD supersedes AD 2018-01-02.\n\n(d) Effective Date\n\nThis AD \
            becomes effective May 1, 2019.\n\n(e) Compliance\n\nComply.\n\n(f) Required Actions\n\nDo it.\n\n(g) Alternative Methods of Compliance (AMOCs)\n\nNone.";
        let tokens = Tokens::of(text, 0..text.len());
        let found = parts(&tokens);
        assert_eq!((found.layout, found.actions.len()), (Some(Layout::Lettered), 2));
        assert!(found.applicability.of(text).contains("Model X-2") && found.unsafe_condition.of(text).contains("could crack"));
        assert!(found.effective.of(text).contains("May 1, 2019") && found.affected.of(text).contains("2018-01-02"));

        let text = "95-01-02 Acme: Amendment 39-1. Docket 94-NM-1-AD. Applicability: Model X-1 airplanes.\n\nCompliance: Required as indicated.\n\n(a) Within 10 days.";
        let tokens = Tokens::of(text, 0..text.len());
        let found = parts(&tokens);
        assert_eq!((found.layout, found.actions.len()), (Some(Layout::Older), 1));
        assert!(found.applicability.of(text).contains("Model X-1") && !found.applicability.of(text).contains("Required"));

        let text = "2001-01-02 Acme: Amendment 39-1; Docket No. 2000-CE-1-AD.\n\n(a) What airplanes are affected by this AD? This AD affects Models X-1 and X-2 \
            airplanes, all serial numbers.\n\n(b) Who must comply with this AD? Anyone who operates one.\n\n(c) What problem does this AD address? Failure of \
            the brake application.\n\n(d) What actions must I accomplish to address this problem? Within 100 hours, inspect.\n\n(e) Can I comply in any other way? Yes.";
        let tokens = Tokens::of(text, 0..text.len());
        let found = parts(&tokens);
        assert_eq!((found.layout, found.actions.len()), (Some(Layout::Older), 1));
        assert!(found.applicability.of(text).contains("Models X-1") && found.unsafe_condition.of(text).contains("Failure"));
        assert!(found.actions[0].of(text).contains("100 hours") && !found.actions[0].of(text).contains("Can I"));

        let text = "74-01-02 Acme: Amendment 39-1. Applies to Model X-1. Compliance required as indicated. Within 50 hours.";
        let tokens = Tokens::of(text, 0..text.len());
        assert!(parts(&tokens).applicability.of(text).ends_with("X-1."));
        let tokens = Tokens::of("words", 0..5);
        assert_eq!(parts(&tokens).layout, None);
    }
}
