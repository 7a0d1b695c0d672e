//! Airworthiness directives: the search for rules of part 39, and the raw text of each. All of what makes such texts hard to read is here: hyphens
//! at the end of a line, page breaks, letters in brackets, zero bytes, lists that leave out the first part of a model, two directives in one
//! document, the layout of the 1990s, corrections with and without the directive, a correction of a proposal among the rules, and a number that was
//! used twice. The makers and models are real, the findings are made up.

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use simulated_world::answer::Answer;
use simulated_world::world::World;

/// Where texts are.
pub(super) const TEXT_PATH: &str = "/documents/full_text/text/";

/// The correction of a proposal, which is published among the directives.
const NO_DIRECTIVE: &str = "2026-17612";

/// When a document is published.
#[derive(Clone, Copy)]
enum Day {
    /// Days after the first day.
    After(i64),
    /// A day of the past.
    On(i16, i8, i8),
}

/// A document.
struct Document {
    day: Day,
    number: &'static str,
    kind: &'static str,
    title: &'static str,
    action: &'static str,
    summary: &'static str,
    correction_of: &'static str,
    has_effective_day: bool,
    text: Text,
}

/// The text of a document.
enum Text {
    /// Directives in lettered paragraphs.
    Directives(&'static [Directive]),
    /// Anything else.
    Other(&'static str),
}

/// A directive: header, affected directives, applicability and actions.
struct Directive {
    header: &'static str,
    affected: &'static str,
    applicability: &'static str,
    actions: &'static str,
}

const RULE: Document = Document {
    day: Day::After(-20),
    number: "",
    kind: "Rule",
    title: "",
    action: "Final rule.",
    summary: "The FAA is adopting a new airworthiness directive (AD).",
    correction_of: "",
    has_effective_day: true,
    text: Text::Other(""),
};

const PIPER: &str = "Airworthiness Directives; Piper Aircraft, Inc. Airplanes";

static DOCUMENTS: &[Document] = &[
    Document {
        day: Day::On(1996, 5, 14),
        number: "96-11890",
        title: "Airworthiness Directives; Piper Aircraft Corporation PA-28 Series Airplanes",
        has_effective_day: false,
        text: Text::Other(
            "PART 39--AIRWORTHINESS DIRECTIVES\n\nSec. 39.13 [Amended]\n\n96-10-12  The New Piper Aircraft, Inc.: Amendment 39-9621; Docket No. \
             95-CE-32-AD.\n\n    Applicability: Model PA-28-140 airplanes, all serial numbers, certificated in any category.\n\n    Compliance: Required \
             within the next 50 hours time-in-service after the effective date of this AD, unless already accomplished.\n\n    To prevent failure of the \
             control wheel, accomplish the following: inspect the control wheel.\n",
        ),
        ..RULE
    },
    Document {
        day: Day::On(2011, 5, 12),
        number: "2011-11000",
        title: "Airworthiness Directives; Cessna Aircraft Company Airplanes",
        summary: "This AD requires repetitive inspections of the seat rails.",
        text: Text::Directives(&[Directive {
            header: "2011-10-09 Cessna Aircraft Company: Amendment 39-16690; Docket No. FAA-2010-1101.",
            affected: "This AD supersedes AD 87-20-03 R2.",
            applicability: "This AD applies to Cessna Aircraft Company Models 150, 152, 170, 172, 172S, 175, 177, 180, and 182 series airplanes, all \
                serial numbers, certificated in any category.",
            actions: "Within 100 hours time- in-service (TIS) after the effective date of this AD, inspect the seat rails. Repetitively thereafter do the \
                inspection at intervals not to exceed every 100 hours TIS or every 12 months, whichever occurs first.",
        }]),
        ..RULE
    },
    Document {
        day: Day::On(2011, 7, 1),
        number: "2011-11000",
        title: "Airworthiness Directives; Hartzell Propeller Inc. Propellers",
        text: Text::Directives(&[Directive {
            header: "2011-13-02--Hartzell Propeller Inc.: Amendment 39-16730; Docket No. FAA-2011-0001.",
            affected: "None.",
            applicability: "This AD applies to Hartzell Propeller Inc. Model HC-C2YK-1 propellers, installed on, but not limited to, Piper Aircraft, Inc. \
                Model PA-28-180 airplanes.",
            actions: "Within 12 calendar months after the effective date of this AD, and thereafter at intervals not to exceed 12 calendar months, inspect \
                the hub.",
        }]),
        ..RULE
    },
    Document {
        day: Day::After(-25),
        number: "2026-17201",
        title: PIPER,
        summary: "This AD requires repetitive inspections of the wing spar of Model PA-28-140 airplanes.",
        text: Text::Directives(&[Directive {
            header: "2026-15-05 Piper Aircraft, Inc.: Amendment 39-23417; Docket No. FAA-\n2026-7223; Project Identifier AD-2026-00329-A.",
            affected: "None.",
            applicability: "This AD applies to Piper Aircraft, Inc. Model PA-28-140, PA-\n28-150, and PA-28-160 airplanes, certificated in any category.",
            actions: "Within 100 hours time-in-service (TIS) after the effective date of this AD, inspect the main spar. [[Page 8664]] Repeat the \
                inspection thereafter at intervals not to exceed 500 hours TIS or 12 months, whichever occurs first.",
        }]),
        ..RULE
    },
    Document {
        day: Day::After(-18),
        number: "2026-17553",
        title: "Airworthiness Directives; Airbus Helicopters",
        text: Text::Directives(&[Directive {
            header: "2026-20-08 Airbus Helicopters: Amendment 39-23432; Docket No. FAA-2026-4657.",
            affected: "None.",
            applicability: "This AD applies to all Airbus Helicopters Model AS355E, AS355F, AS355F1, AS355F2, and AS355N helicopters, certificated in any \
                category.",
            actions: "Within 25 hours time-in-service after the effective date of this AD, determine the part number of the fan wheel.",
        }]),
        ..RULE
    },
    Document {
        day: Day::After(-16),
        number: "2026-17600",
        title: "Airworthiness Directives; Airbus SAS Airplanes",
        has_effective_day: false,
        text: Text::Directives(&[
            Directive {
                header: "2026-20-10 Airbus SAS: Amendment 39-23440; Docket No. FAA-2026-0101.",
                affected: "This AD affects AD 2016-17- 12.",
                applicability: "This AD applies to Airbus SAS Model A319-111, -112, and -115 airplanes, and Model A321- 111 airplanes, certificated in any \
                    category, except those with modification 160500.",
                actions: "Comply with all required actions and compliance times specified in EASA AD 2026-0100. Repeat the inspection thereafter.",
            },
            Directive {
                header: "2026-20-11 ATR--GIE Avions de Transport R[eacute]gional: Amendment 39-23441; Docket No. FAA-2026-0102.",
                affected: "None.",
                applicability: "This AD applies to certain ATR--GIE Avions de Transport R[eacute]gional Model ATR72-212A airplanes, serial numbers 500 \
                    through&#160;720 inclusive, certificated in any category.",
                actions: "Within 3 months after the effective date of this AD, replace the valve.",
            },
        ]),
        ..RULE
    },
    Document {
        day: Day::After(-15),
        number: "2026-17610",
        title: "Airworthiness Directives; Lycoming Engines",
        summary: "This AD applies to engines that are installed on Model PA-28-140 airplanes.",
        text: Text::Directives(&[Directive {
            header: "2026-20-12 Lycoming Engines: Amendment 39-23442; Docket No. FAA-2026-0103; Project Identifier AD-2026-00400-E.",
            affected: "None.",
            applicability: "This AD applies to Lycoming Engines Model O-320-E3D engines.",
            actions: "Within ten hours TIS after the effective date of this AD, inspect the connecting rods. Repeat the inspection every 50 hours TIS.",
        }]),
        ..RULE
    },
    Document {
        day: Day::After(-14),
        number: "2026-17611",
        title: "Airworthiness Directives; Portable Fire Extinguishers",
        text: Text::Directives(&[Directive {
            header: "2026-20-13 Kidde Aerospace: Amendment 39-23443; Docket No. FAA-2026-0104.",
            affected: "None.",
            applicability: "This AD applies to portable fire extinguishers, installed on, but not limited to, Airbus SAS Model A319-111 airplanes and Piper \
                Aircraft, Inc. Model PA-46-350P airplanes.",
            actions: "Within 30 days after the effective date of this AD, replace the extinguisher.",
        }]),
        ..RULE
    },
    Document {
        day: Day::After(-13),
        number: NO_DIRECTIVE,
        title: "Airworthiness Directives; Mooney International Corporation Airplanes",
        action: "Proposed rule; correction.",
        summary: "The FAA is correcting a notice of proposed rulemaking (NPRM).",
        text: Text::Other("This document corrects the docket number of the proposal, which would replace AD 2026-15-05.\n"),
        ..RULE
    },
    Document {
        day: Day::After(-12),
        number: "2026-17613",
        kind: "Proposed Rule",
        title: PIPER,
        action: "Notice of proposed rulemaking (NPRM).",
        text: Text::Other("The FAA proposes to supersede AD 2026-15-05.\n"),
        ..RULE
    },
    Document {
        day: Day::After(-10),
        number: "2026-17614",
        title: "Airworthiness Directives; Various Airplanes",
        text: Text::Directives(&[Directive {
            header: "2025-23-53 The Boeing Company: Amendment 39-23390; Docket No. FAA-2026-0106; Project Identifier AD-2025-01600-T.",
            affected: "None.",
            applicability: "This AD applies to the airplanes that are listed in the service bulletin.",
            actions: "Before further flight, do the inspection.",
        }]),
        ..RULE
    },
    Document {
        day: Day::After(-5),
        number: "2026-18001",
        title: "Airworthiness Directives; Airbus Helicopters",
        action: "Final rule; correction.",
        correction_of: "2026-17553",
        text: Text::Other("In rule document 2026-17553, on page 62307, the word \"fan\" is corrected to read \"turbine\".\n"),
        ..RULE
    },
    Document {
        day: Day::After(2),
        number: "2026-18100",
        title: "Airworthiness Directives; Lycoming Engines",
        action: "Final rule; correction.",
        correction_of: "2026-17610",
        summary: "This AD applies to engines that are installed on Model PA-28-140 airplanes.",
        text: Text::Directives(&[Directive {
            header: "2026-20-12 Lycoming Engines: Amendment 39-23442; Docket No. FAA-2026-0103; Project Identifier AD-2026-00400-E.",
            affected: "None.",
            applicability: "This AD applies to Lycoming Engines Model O-320-E2D and O-320-E3D engines.",
            actions: "Within ten hours TIS after the effective date of this AD, inspect the connecting rods. Repeat the inspection every 50 hours TIS.",
        }]),
        ..RULE
    },
    Document {
        day: Day::After(3),
        number: "2026-18101",
        title: PIPER,
        summary: "The FAA is superseding AD 2026-15-05.",
        text: Text::Directives(&[Directive {
            header: "2026-23-04 Piper Aircraft, Inc.: Amendment 39-23500; Docket No. FAA-2026-0108; Project Identifier AD-2026-00500-A.",
            affected: "This AD replaces AD 2026-15-05, Amendment 39-23417.",
            applicability: "This AD applies to all Piper Aircraft, Inc. Model PA-28-140, PA-28-150, PA-28-160, and PA-28-180 airplanes, certificated in any \
                category.",
            actions: "Within 50 hours time-in-service (TIS) after the effective date of this AD, inspect the main spar. Repeat the inspection thereafter at \
                intervals not to exceed 100 hours TIS or 12 calendar months, whichever occurs first.",
        }]),
        ..RULE
    },
];

/// The day of publication.
fn day_of(world: &World, document: &Document) -> Date {
    match document.day {
        Day::After(days) => world.first_today.saturating_add(days.days()),
        Day::On(year, month, day) => Date::constant(year, month, day),
    }
}

/// The documents of a type, with their days and positions.
pub(super) fn found(world: &World, kind: &str) -> Vec<(Date, usize)> {
    let is_kind = |document: &Document| document.kind.to_lowercase().replace(' ', "") == kind.to_lowercase() || kind.is_empty();
    let is_published = |document: &Document| world.has_bad_files || document.number != NO_DIRECTIVE;
    DOCUMENTS.iter().enumerate().filter(|(_, one)| is_kind(one) && is_published(one)).map(|(at, one)| (day_of(world, one), at)).collect()
}

/// What the search says of a document.
pub(super) fn document(day: Date, at: usize) -> Map<String, Value> {
    let Document { number, kind, title, action, summary, correction_of, has_effective_day, .. } = &DOCUMENTS[at];
    let path = day.strftime("%Y/%m/%d");
    let value = json!({
        "document_number": number,
        "title": title,
        "type": kind,
        "action": action,
        "abstract": summary,
        "publication_date": day.to_string(),
        "effective_on": has_effective_day.then(|| effective_day(day).to_string()),
        "docket_ids": [format!("Docket No. FAA-{}-{:04}", day.year(), 100 + at)],
        "citation": format!("{} FR {}", day.year() - 1935, 8_600 + at),
        "correction_of": (!correction_of.is_empty()).then(|| format!("https://www.federalregister.gov/api/v1/documents/{correction_of}.json")),
        "html_url": format!("https://www.federalregister.gov/documents/{path}/{number}/airworthiness-directives"),
        "raw_text_url": format!("https://www.federalregister.gov{TEXT_PATH}{path}/{number}.txt"),
    });
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn effective_day(published: Date) -> Date {
    published.saturating_add(35.days())
}

/// Answers the path of a text.
pub(super) fn text(world: &World, path: &str) -> Answer {
    let wanted = |document: &&Document| {
        let day = day_of(world, document);
        day <= world.today && path == format!("{TEXT_PATH}{}/{}.txt", day.strftime("%Y/%m/%d"), document.number)
    };
    let Some(document) = DOCUMENTS.iter().find(wanted) else { return Answer::html(404, "Not Found") };
    let day = day_of(world, document);
    let body = match &document.text {
        Text::Other(text) => format!("[Rules and Regulations]\n[Pages 8600-8601]\n\n{text}\n[FR Doc. {} Filed]\n", document.number),
        Text::Directives(directives) => {
            let effective = effective_day(day).strftime("%B %-d, %Y").to_string();
            let directives: Vec<String> = directives.iter().map(|one| printed(one, &effective)).collect();
            format!(
                "[Rules and Regulations]\n\nSUMMARY: {}\n\nThis AD was prompted by AD 2000-01-01.\0\n\nPART 39--AIRWORTHINESS DIRECTIVES\n\n1. The \
                 authority citation for part 39 continues to read as follows:\n\nSec. 39.13 [Amended]\n\n2. The FAA amends Sec. 39.13 by adding:\n\n{}\n\
                 Issued on {}.\n\n[FR Doc. {} Filed]\n",
                document.summary,
                directives.concat(),
                day.strftime("%B %-d, %Y"),
                document.number
            )
        }
    };
    let body = format!("<html>\n<head></head>\n<body><pre>\n{body}</pre></body>\n</html>\n").into_bytes();
    Answer { status: 200, content_type: Some("text/html; charset=utf-8"), body, ..Answer::default() }
}

fn printed(directive: &Directive, effective: &str) -> String {
    let Directive { header, affected, applicability, actions } = directive;
    format!(
        "{header}\n\n(a) Effective Date\n\n    This airworthiness directive (AD) is effective {effective}.\n\n(b) Affected ADs\n\n    {affected}\n\n\
         (c) Applicability\n\n    {applicability}\n\n(d) Subject\n\n    Joint Aircraft System Component (JASC) Code 5711, Wing Spar.\n\n(e) Unsafe \
         Condition\n\n    This AD was prompted by a report of cracks. It could lead to loss of control.\n\n(f) Compliance\n\n    Comply with this AD \
         within the compliance times specified, unless already done.\n\n(g) Required Actions\n\n    {actions}\n\n(h) Additional Information\n\n    None.\n\n"
    )
}
