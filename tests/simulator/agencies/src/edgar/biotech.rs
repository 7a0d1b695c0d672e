//! Companies with drugs under review: their ticker symbols, and the filings in which they state target action dates (PDUFA dates). They are
//! the sponsors of trials in the registry, and the Federal Register announces meetings about one of them.
//!
//! What they file follows from the first day: dates that move by three months, two programmes in one filing, the same date in two exhibits,
//! decisions, vague dates, and documents whose date has `&nbsp;` in it.

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use simulated_world::answer::Answer;
use simulated_world::faults::{Fault, Plan};
use simulated_world::query::Query;
use simulated_world::world::World;

use super::{CIK_MIN, COMPANIES, company, missing, symbol, typed};

/// A company: the name that the registry of trials has, the name and the tickers in the regulator's list.
pub(crate) struct Biotech {
    pub(crate) sponsor: &'static str,
    title: &'static str,
    /// Empty for a company that has no ticker.
    ticker: &'static str,
    /// How many further symbols it has: units, warrants, preferred shares.
    more_tickers: u32,
}

pub(crate) const BIOTECHS: [Biotech; 4] = [
    Biotech { sponsor: "Calderbrook Therapeutics, Inc.", title: "CALDERBROOK THERAPEUTICS INC /DE/", ticker: "CLDB", more_tickers: 1 },
    Biotech { sponsor: "Rowanfield Pharmaceuticals", title: "Rowanfield Pharmaceuticals, Ltd.", ticker: "ROWN", more_tickers: 26 },
    Biotech { sponsor: "Sparrowhill Oncology, Inc.", title: "SPARROWHILL ONCOLOGY, INC.", ticker: "SPRW", more_tickers: 0 },
    Biotech { sponsor: "Ivorygate Biosciences", title: "IVORYGATE BIOSCIENCES SA", ticker: "", more_tickers: 0 },
];
/// The number of the first company.
const BIOTECH_CIK: u64 = 960_001;
/// The filing agent, the first ten digits of accession numbers.
const AGENT: &str = "0009600001";
/// Documents per page of the search.
const PAGE: usize = 100;

/// A filing: the days after the first day on which it is filed, its company, its form, and the text of each document.
struct Filing {
    day: i64,
    company: usize,
    form: &'static str,
    documents: &'static [(&'static str, &'static str)],
}

/// All filings. `{+45}` is the day 45 days after the first day, `{q+120}` its quarter, `{h+200}` its half, `{m+90}` its month, `{y+300}` its
/// year; `{n+45}` is a day with `&nbsp;` in it.
const FILINGS: &[Filing] = &[
    Filing {
        day: -25,
        company: 2,
        form: "8-K",
        documents: &[("a.htm", "<p>The FDA assigned a PDUFA target action date of {+2} to the NDA for Mossimycin.</p>")],
    },
    Filing {
        day: -20,
        company: 0,
        form: "8-K",
        documents: &[
            (
                "ex99-1.htm",
                "<p>Calderbrook Therapeutics, Inc. announced today that its NDA for Calderinib was accepted.</p><p>The FDA has set a Prescription Drug User \
                 Fee Act (PDUFA) target action date of {n+45} for Calderinib.</p><p>Forward-looking statements follow.</p>",
            ),
            ("ex99-2.htm", "<div>Calderinib: PDUFA target action date of {+45}.</div>"),
        ],
    },
    Filing {
        day: -15,
        company: 1,
        form: "8-K",
        documents: &[(
            "ex99-1.htm",
            "<p>The BLA for Rowanlimab has a PDUFA date of {+100}.</p><p>The PDUFA goal date for Garnetumab is in the {h+200}.</p>\
             <p>If approved, Rowanlimab would be the first of its kind.</p>",
        )],
    },
    Filing {
        day: -12,
        company: 3,
        form: "6-K",
        documents: &[("a.htm", "<p>The FDA communicated a PDUFA target action date in {m+90} for Ivorynemab.</p>")],
    },
    Filing {
        day: -10,
        company: 2,
        form: "10-Q",
        documents: &[(
            "a.htm",
            "<html><body><ix:header><p>hidden PDUFA date of {+1}</p></ix:header><p>The PDUFA date for Heathicitinib is in the {q+120}. We expect a PDUFA \
             date for Ternavir in mid-{y+300}.</p><p>We pay fees under the Prescription Drug User Fee Act.</p></body></html>",
        )],
    },
    Filing {
        day: -8,
        company: 1,
        form: "8-K",
        documents: &[("a.htm", "<p>The PDUFA date of {-9} for Fernitrate was met: the agency approved it.</p>")],
    },
    Filing {
        day: -5,
        company: 3,
        form: "6-K",
        documents: &[("a.htm", "<p>We received a complete response letter for Larchazine by the PDUFA date of {-5}.</p>")],
    },
    Filing {
        day: 1,
        company: 2,
        form: "8-K",
        documents: &[("a.htm", "<p>The FDA approved Mossimycin ahead of its PDUFA date of {+2}.</p>")],
    },
    Filing {
        day: 3,
        company: 0,
        form: "8-K",
        documents: &[("ex99-1.htm", "<p>The FDA has extended the PDUFA target action date for Calderinib from {+45} to {+3m45}.</p>")],
    },
    // Within the next month for someone who looks four weeks after the first day, as a new demo does.
    Filing {
        day: 5,
        company: 2,
        form: "8-K",
        documents: &[("a.htm", "<p>The FDA set a PDUFA target action date of {+55} for the NDA for Elmstadib.</p>")],
    },
];

fn accession(index: usize, day: Date) -> String {
    format!("{AGENT}-{:02}-{:06}", day.year() % 100, index + 1)
}

fn filed(world: &World, filing: &Filing) -> Date {
    world.first_today.saturating_add(filing.day.days())
}

/// Fills the dates of a text.
fn filled(world: &World, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (place, after) = behind.split_once('}').unwrap_or((behind, ""));
        out.push_str(before);
        out.push_str(&date_text(world.first_today, place));
        rest = after;
    }
    out + rest
}

fn date_text(first: Date, place: &str) -> String {
    let (kind, number) = match place.chars().next() {
        Some(kind @ ('q' | 'h' | 'm' | 'y' | 'n')) => (kind, place.get(1..).unwrap_or_default()),
        _ => ('d', place),
    };
    let (months, number) = match number.split_once('m') {
        Some((months, days)) => (months.trim_start_matches('+').parse().unwrap_or(0), days),
        None => (0_i64, number),
    };
    let days: i64 = number.trim_start_matches('+').parse().unwrap_or(0);
    let day = first.saturating_add(days.days()).saturating_add(months.months());
    let ordinal = |at: i8| ["first", "second", "third", "fourth"][usize::from(at.unsigned_abs()) % 4];
    match kind {
        'q' => format!("{} quarter of {}", ordinal((day.month() - 1) / 3), day.year()),
        'h' => format!("{} half of {}", ordinal((day.month() - 1) / 6), day.year()),
        'm' => day.strftime("%B %Y").to_string(),
        'y' => day.year().to_string(),
        'n' => day.strftime("%B&nbsp;%-d,&nbsp;%Y").to_string(),
        _ => day.strftime("%B %-d, %Y").to_string(),
    }
}

/// Returns the filing and the document of a path below `/Archives/edgar/`, if it is one of these.
pub(super) fn document_at(file: &str) -> Option<(usize, usize)> {
    let mut parts = file.strip_prefix("data/")?.split('/');
    let (_, folder, name) = (parts.next()?, parts.next()?, parts.next()?);
    let index = folder.strip_prefix(AGENT)?.get(2..)?.parse::<usize>().ok()?.checked_sub(1)?;
    let at = FILINGS.get(index)?.documents.iter().position(|(known, _)| *known == name)?;
    Some((index, at))
}

/// Answers a request for a document.
pub(super) fn document(world: &World, index: usize, at: usize) -> Answer {
    let found = FILINGS.get(index).filter(|filing| filed(world, filing) <= world.today).and_then(|filing| filing.documents.get(at));
    match found {
        Some((_, text)) => typed("text/html", format!("<!DOCTYPE html>\n<html>{}</html>\n", filled(world, text))),
        None => missing(403, "AccessDenied"),
    }
}

/// Answers a full-text search for documents about target action dates.
pub(super) fn search(world: &World, query: &Query<'_>, plan: &Plan) -> Answer {
    let forms: Vec<&str> = query.get("forms").map(|forms| forms.split(',').collect()).unwrap_or_default();
    let day = |name: &str| query.get(name).and_then(|day| day.parse::<Date>().ok());
    let (first, last) = (day("startdt").unwrap_or(Date::MIN), day("enddt").unwrap_or(Date::MAX));
    let hits = FILINGS.iter().enumerate().flat_map(|(index, filing)| {
        let filed = filed(world, filing);
        let fits = (forms.is_empty() || forms.contains(&filing.form)) && filed >= first && filed <= last && filed <= world.today;
        let documents = filing.documents.iter().filter(move |_| fits);
        documents.map(move |(name, _)| hit(index, filing, filed, name)).collect::<Vec<_>>()
    });
    let found: Vec<Value> = if plan.has(Fault::Outage) { Vec::new() } else { hits.collect() };
    let from = query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0);
    let page: Vec<&Value> = found.iter().skip(from).take(PAGE).collect();
    let page: Vec<&Value> = if plan.has(Fault::DuplicatedPage) { [page.clone(), page].concat() } else { page };
    let total = json!({"value": found.len(), "relation": "eq"});
    let mut body = json!({"took": 7, "timed_out": false, "hits": {"total": total, "max_score": null, "hits": page}});
    plan.schema.apply(&mut body);
    Answer::json(body.to_string().into_bytes())
}

fn hit(index: usize, filing: &Filing, filed: Date, name: &str) -> Value {
    let (number, biotech) = (accession(index, filed), &BIOTECHS[filing.company]);
    let cik = format!("{:010}", BIOTECH_CIK + filing.company as u64);
    let ticker = if biotech.ticker.is_empty() { String::new() } else { format!("({})  ", biotech.ticker) };
    let source = json!({
        "ciks": [cik], "display_names": [format!("{}  {ticker}(CIK {cik})", biotech.sponsor)], "adsh": number, "form": filing.form,
        "root_forms": [filing.form], "file_type": "EX-99.1", "file_date": filed.to_string(), "period_ending": "", "items": [], "sics": ["2834"],
    });
    json!({"_index": "edgar_file", "_id": format!("{number}:{name}"), "_source": source})
}

/// Answers a request for the list of companies with tickers: those of all filings, and those with drugs.
pub(super) fn tickers(world: &World, plan: &Plan) -> Answer {
    let others = (0..COMPANIES).map(|number| (CIK_MIN + number, symbol(world, number), company(world, number)));
    let others = others.filter(|(_, symbol, _)| symbol != "NONE");
    let own = BIOTECHS.iter().enumerate().filter(|(_, biotech)| !biotech.ticker.is_empty()).flat_map(|(at, biotech)| {
        let more = (0..biotech.more_tickers).map(|number| format!("{}-{}", biotech.ticker, char::from(b'A' + (number % 26) as u8)));
        let all = more.chain([biotech.ticker.to_owned()]);
        all.map(move |ticker| (BIOTECH_CIK + at as u64, ticker, biotech.title.to_owned())).collect::<Vec<_>>()
    });
    let row = |(at, (cik, ticker, title))| (at, json!({"cik_str": cik, "ticker": ticker, "title": title}));
    let rows: Map<String, Value> = others.chain(own).enumerate().map(row).map(|(at, row)| (at.to_string(), row)).collect();
    let mut body = if plan.has(Fault::Outage) { json!({}) } else { Value::Object(rows) };
    plan.schema.apply(&mut body);
    Answer::json(body.to_string().into_bytes())
}
