//! No text makes the reader panic, leave its text, or take long.

use std::time::{Duration, Instant};

use directives::{Aircraft, Directive, Publication, ResolvedAircraft, Span, clean, compact_form, compare, read, resolve_makes};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::texts::Text;

/// The size of hostile texts, in bytes: four times what a fact holds.
const TEXT_BYTES: usize = 256 << 10;
/// The longest time for one, in an unoptimised program on a busy machine: a reader that takes time by the square of the length takes longer.
const TIME_MAX: Duration = Duration::from_secs(60);

fn check(text: &str, directive: &Directive) {
    let applicability = &directive.applicability;
    let mut spans: Vec<Span> = vec![directive.number_span, applicability.span, directive.unsafe_condition, directive.compliance.span];
    spans.extend(applicability.models.iter().map(|model| model.span));
    spans.extend(applicability.mentions.iter().map(|mention| mention.span));
    spans.extend(applicability.serials.iter().map(|serials| serials.span));
    spans.extend(directive.compliance.limits.iter().map(|limit| limit.span));
    spans.extend(directive.affected.iter().map(|affected| affected.span));
    spans.extend(directive.unread.iter().map(|unread| unread.span));
    for span in spans {
        assert!(span.start <= span.end && text.get(span.start..span.end).is_some(), "{span:?} is in the text");
    }
    for model in &applicability.models {
        assert_eq!(compact_form(&model.name), model.form);
    }
    for list in &applicability.serials {
        assert!(list.models.iter().all(|model| *model < applicability.models.len()));
    }
    assert!(directive.compliance.limits.iter().all(|limit| limit.value > 0));
    let aircraft = ResolvedAircraft::new(&Aircraft { make: "Piper", model: "PA-28-140", serial: Some("28-1"), ..Aircraft::default() });
    let _ = compare(directive, &aircraft);
}

fn read_any(raw: &str) -> usize {
    let text = clean(raw);
    assert_eq!(clean(&text), text, "cleaning a cleaned text changes nothing");
    let directives = read(&Publication {
        title: raw.get(..40).unwrap_or_default(),
        summary: raw.get(..200).unwrap_or_default(),
        text: &text,
        effective_on: None,
    });
    let directives = directives.unwrap_or_default();
    directives.iter().for_each(|directive| check(&text, directive));
    directives.len()
}

/// Proves that texts that are cut, doubled, shuffled or changed at any place are read without a panic, and that all spans are in the text.
#[test]
fn damaged_texts() {
    let mut random = StdRng::seed_from_u64(29);
    let whole = Text {
        applicability: "This AD applies to Piper Aircraft, Inc. Model PA-28-140, -150, and PA-28R-201 (Arrow III) airplanes, serial numbers 28-1 through 28-99, except Model PA-28-180.\n\nModel | Serials\nPA-28-160 | 28-1 through 28-4377",
        actions: "At the later of the times in paragraphs (g)(1) and (2) of this AD:\n\n(1) Before 1,000 hours TIS.\n\n(2) Within 12 months after the effective date; thereafter every 100 hours TIS, whichever occurs first.",
        affected: "This AD replaces AD 2011-10-09 R1.",
        ..Text::default()
    }
    .printed();
    let pieces = [
        "(",
        ")",
        "(c)",
        "Model ",
        "-",
        "é",
        "\0",
        "&#160;",
        "[[Page ",
        "]]",
        "[eacute]",
        "<pre>",
        "except ",
        "\n\n",
        " | ",
        "....",
        "99999999999999",
        ",",
        "whichever ",
        "S/N ",
        "2026-15-05 ",
        ":",
        "Amendment ",
        "\u{2011}",
        "through ",
    ];
    let mut found = 0;
    for _ in 0..1_500 {
        let mut text = whole.clone();
        for _ in 0..random.random_range(1..12) {
            let mut at = random.random_range(0..=text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            match random.random_range(0..4) {
                0 => text.truncate(at),
                1 => text.insert_str(at, pieces[random.random_range(0..pieces.len())]),
                2 => {
                    let end = (at + random.random_range(0..40)).min(text.len());
                    if text.is_char_boundary(end) {
                        text.replace_range(at..end, "");
                    }
                }
                _ => {
                    let part: String = text[at..].chars().take(200).collect();
                    text.push_str(&part);
                }
            }
        }
        found += read_any(&text);
    }
    assert!(found > 500, "{found} directives were read");
}

/// Proves that texts built to be expensive are read in time, within the limits of lists.
#[test]
fn hostile_texts() {
    let header = "2026-15-05 Piper Aircraft, Inc.: Amendment 39-1.\n\n(a) Effective Date\n\n(b) Affected ADs\n\n(c) Applicability\n\n";
    for unit in [
        "(",
        ")",
        "((",
        "Model ",
        "Model PA-28-140, ",
        "-",
        "--",
        "- ",
        "A-1, -2, ",
        "PA-28-140 and ",
        "(c)",
        "(i) ",
        "(",
        "S/N 1 through 2, ",
        "except ",
        "every 1 hours or ",
        "whichever ",
        "within ",
        "2026-15-05 ",
        "2026-15-05 X: ",
        "2026-15-05 X: Amendment ",
        ".",
        ".....",
        "[",
        "[[Page ",
        "&",
        "<pre",
        "1,",
        "1,000,",
        "A",
        "é",
        "\n",
        "\n\n",
        " | ",
        "x\n",
        "Model A(1) (",
        "the later of ",
        "paragraph (c)(1), ",
        "Model FALCON MYSTERE ",
        "J\u{301}",
    ] {
        let count = TEXT_BYTES / unit.len();
        let text = format!("{header}{}", unit.repeat(count));
        let started = Instant::now();
        let cleaned = clean(&text);
        if let Ok(directives) = read(&Publication { text: &cleaned, summary: &cleaned, title: &cleaned, effective_on: None }) {
            for directive in &directives {
                assert!(
                    directive.applicability.models.len() <= 2_000
                        && directive.applicability.mentions.len() <= 2_000
                        && directive.compliance.limits.len() <= 400
                );
            }
        }
        assert!(started.elapsed() < TIME_MAX, "{unit:?} takes {:?}", started.elapsed());
    }
}

/// Proves that names of any form are resolved without a panic.
#[test]
fn hostile_names() {
    for name in [
        "",
        " ",
        "-",
        "é",
        "ﬁ",
        "\0",
        "(",
        "())",
        "The",
        "Inc.",
        "A\u{301}",
        "\u{202e}737",
        "１７２",
        &"A".repeat(10_000),
        &"é-".repeat(5_000),
    ] {
        let aircraft = ResolvedAircraft::new(&Aircraft {
            make: name,
            model: name,
            serial: Some(name),
            engine: Some((name, name)),
            propeller: Some((name, name)),
        });
        let (_, directive) = Text::default().read();
        let _ = compare(&directive, &aircraft);
        assert!(resolve_makes(name).len() < 10);
        assert!(compact_form(name).len() <= 400);
    }
    assert_eq!(compact_form("１７２"), "172");
}
