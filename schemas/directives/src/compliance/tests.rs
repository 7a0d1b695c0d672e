//! Tests of reading limits.

use super::*;

fn shown(text: &str) -> Vec<String> {
    let compliance = read(text, &[Span::new(0, text.len())], "");
    let kind = |limit: &Limit| if limit.kind == LimitKind::Initial { "initial" } else { "recurring" };
    let joiner = |limit: &Limit| match limit.joiner {
        Joiner::None => "",
        Joiner::First => " FIRST",
        Joiner::Later => " LATER",
    };
    let anchor = |limit: &Limit| match limit.anchor {
        Anchor::EffectiveDate => "effective",
        Anchor::LastDone => "last",
        Anchor::Total => "total",
    };
    compliance
        .limits
        .iter()
        .map(|limit| format!("{} {} {} {}{}", kind(limit), limit.value, limit.unit.as_str(), anchor(limit), joiner(limit)))
        .collect()
}

/// Proves the wordings of limits: what is initial, what recurs, from when it counts and how limits are joined.
#[test]
fn wordings() {
    for (text, expected) in [
        (
            "Within 100 hours time-in-service (TIS) after the effective date of this AD, inspect the spar.",
            &["initial 100 hours effective"][..],
        ),
        (
            "Within 500 flight hours or 6 months after the effective date of this AD, whichever occurs first, do the inspection, and repeat it thereafter at intervals not to exceed 1,500 flight hours.",
            &["initial 500 flight_hours effective FIRST", "initial 6 months effective FIRST", "recurring 1500 flight_hours last"],
        ),
        (
            "Repetitively thereafter do the actions at intervals not to exceed every 100 hours TIS or every 12 months, whichever occurs first:",
            &["recurring 100 hours last FIRST", "recurring 12 months last FIRST"],
        ),
        ("Before the accumulation of 10,000 total flight cycles, replace the part.", &["initial 10000 cycles total"]),
        ("Before accumulating 2,400 hours TIS since new, remove the disk.", &["initial 2400 hours total"]),
        ("Do the inspection at 50-hour TIS intervals.", &["recurring 50 hours last"]),
        ("Inspect the bolts every 12 calendar months.", &["recurring 12 calendar_months last"]),
        ("Within ten (10) days after the effective date, inspect.", &["initial 10 days effective"]),
        (
            "Within 25 hours TIS after the last inspection, and thereafter at intervals of twelve months, inspect.",
            &["initial 25 hours last", "recurring 12 months last"],
        ),
        (
            "At the later of the times in paragraphs (g)(1)(i) and (ii) of this AD:\n\n(i) Before the accumulation of 5,000 landings.\n\n(ii) Within 24 months after the effective date.\n\nThen stop.",
            &["initial 5000 landings total LATER", "initial 24 months effective LATER"],
        ),
        ("For airplanes that have accumulated 3,000 hours or more, inspect before further flight.", &[]),
        ("Within 30 days after the inspection, submit a report of the findings.", &[]),
        (
            "Within thirty days, and every twenty-five hours thereafter, check it.",
            &["initial 30 days effective", "recurring 25 hours last"],
        ),
        ("Within the next fifty (50) hours time-in-service, install it.", &["initial 50 hours effective"]),
        ("Replace the filter at intervals of no more than 100 hours TIS.", &["recurring 100 hours last"]),
        ("Inspect at 100 hour intervals.", &["recurring 100 hours last"]),
        (
            "Within 24 months after the effective date of this AD or 30 months after the last inspection, whichever occurs later, inspect.",
            &["initial 24 months effective LATER", "initial 30 months last LATER"],
        ),
        (
            "Within 72 months after the date of issuance of the original certificate of airworthiness, replace it.",
            &["initial 72 months total"],
        ),
        (
            "Within 500 pressurization cycles, and thereafter at intervals not to exceed 90 cycles-in-service, inspect.",
            &["initial 500 cycles effective", "recurring 90 cycles last"],
        ),
        ("Tighten to 50 inch-pounds within 5 minutes.", &[]),
        ("Repeat the inspection every 2 weeks.", &["recurring 14 days last"]),
        ("Within 6 years since the original airworthiness certificate, replace the hose.", &["initial 6 years total"]),
        ("", &[]),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

/// Proves what is said about recurrence, also when the times are in another document, and that terminating actions are found.
#[test]
fn recurrence() {
    let compliance_of = |text: &str, summary: &str| read(text, &[Span::new(0, text.len())], summary);
    assert_eq!(compliance_of("Within 10 days, replace the bolt.", "").recurring, Recurring::No);
    assert_eq!(compliance_of("Repeat the inspection thereafter at the intervals in the manual.", "").recurring, Recurring::Yes);
    let referenced =
        compliance_of("Comply with all required actions and compliance times specified in, and in accordance with, EASA AD 2024-0237.", "");
    assert_eq!((referenced.recurring, referenced.limits.len(), referenced.referenced.is_some()), (Recurring::Unknown, 0, true));
    assert_eq!(
        compliance_of("Comply with all actions specified in EASA AD 2024-0237.", "This AD requires repetitive inspections.").recurring,
        Recurring::Yes
    );
    for text in ["Before the first flight of each day, check the blade.", "At each annual inspection, check the belt."] {
        assert_eq!(compliance_of(text, "").recurring, Recurring::Yes, "{text}");
    }
    assert_eq!(read("", &[], "").recurring, Recurring::Unknown);
    let text = "Do it every 10 hours. Installing the bolt is terminating action for the inspections.";
    assert_eq!(compliance_of(text, "").terminating.unwrap().of(text), "Installing the bolt is terminating action for the inspections");
}

/// Proves that the span of a limit is its phrase.
#[test]
fn spans() {
    let text = "Inspect every 100 hours TIS or every 12 months, whichever occurs first.";
    let compliance = read(text, &[Span::new(0, text.len())], "");
    assert_eq!(compliance.limits[0].span.of(text), "every 100 hours TIS or every 12 months, whichever occurs first");
}
