//! `GET /v1/sources`: where leads come from, how far each source was read, and who buys them.

use crate::record::TABLES;
use feed::position::Position;
use jiff::civil::Date;
use operation::Definition;
use operation::problem::Problem;
use schemars::JsonSchema;
use schemas::clock::rfc3339_or_empty;
use serde::{Deserialize, Serialize};
use serde_json::json;
use texts::data_file::ShownFile;

use super::filter::Filter;
use super::watchable_feed::Coverage;
use reads::last_run::last_run;
use reads::read::{Read, Reader};

/// Who buys the leads of registers.
const BROKERS: &str = "insurance agencies and lead buyers for new businesses";
/// The lines that registers of businesses lead to.
const REGISTER_LINES: &[&str] = &[
    "GENERAL_LIABILITY",
    "WORKERS_COMP",
    "LIQUOR_LIABILITY",
    "PROFESSIONAL_LIABILITY",
    "SURETY_BOND",
    "AUTO_LIABILITY_BIPD",
    "DIRECTORS_OFFICERS",
];
/// The triggers of registers of businesses.
const REGISTER_TRIGGERS: &[&str] = &["entity_formed", "foreign_registration"];
/// A source that is read daily is late when it was not read completely for so many days.
const DAILY_LATE_DAYS: i64 = 4;
/// A source that is read weekly or monthly is late after so many days.
const MONTHLY_LATE_DAYS: i64 = 40;
/// A source whose file is complete up to its newest record is late after so many days: a month, and as long again until it is published and read.
const FILE_LATE_DAYS: i64 = 60;

/// What is known of a source beforehand.
struct KnownSource {
    source: &'static str,
    name: &'static str,
    states: &'static [&'static str],
    triggers: &'static [&'static str],
    lines: &'static [&'static str],
    buyer: &'static str,
    cadence: &'static str,
    licence: &'static str,
    /// The streams that are read.
    streams: &'static [&'static str],
    late_days: i64,
}

const fn register(
    source: &'static str,
    name: &'static str,
    states: &'static [&'static str],
    cadence: &'static str,
    streams: &'static [&'static str],
    late_days: i64,
) -> KnownSource {
    let licence = "public record of the state, open data without a stated licence";
    KnownSource {
        source,
        name,
        states,
        triggers: REGISTER_TRIGGERS,
        lines: REGISTER_LINES,
        buyer: BROKERS,
        cadence,
        licence,
        streams,
        late_days,
    }
}

/// THE LIST of sources.
const KNOWN: &[KnownSource] = &[
    KnownSource {
        source: "fmcsa",
        name: "Federal Motor Carrier Safety Administration: census, authorities and filings of insurance",
        states: &[],
        triggers: &["new_carrier", "authority_granted", "insurance_lapse"],
        lines: &["AUTO_LIABILITY_BIPD", "CARGO", "SURETY_BOND", "WORKERS_COMP"],
        buyer: "agencies and brokers of commercial auto insurance and of surety bonds",
        cadence: "daily",
        licence: "public domain (United States government)",
        streams: &["fmcsa.census", "fmcsa.authority", "fmcsa.cancellations"],
        late_days: DAILY_LATE_DAYS,
    },
    register("sos-co", "Colorado: business entities", &["CO"], "daily", &["sos.co"], DAILY_LATE_DAYS),
    register("sos-ct", "Connecticut: business master", &["CT"], "daily", &["sos.ct"], DAILY_LATE_DAYS),
    KnownSource {
        licence: "CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/): Iowa Secretary of State, Active Iowa Business Entities; selected and arranged",
        ..register("sos-ia", "Iowa: active business entities", &["IA"], "monthly, read every ten days", &["sos.ia"], FILE_LATE_DAYS)
    },
    register("sos-ny", "New York: daily corporation filings", &["NY"], "daily", &["sos.ny"], DAILY_LATE_DAYS),
    register("sos-or", "Oregon: new businesses registered last month", &["OR"], "monthly, read weekly", &["sos.or"], MONTHLY_LATE_DAYS),
];

/// The version of the list of licences; a change of a licence increases it.
const LICENCES_VERSION: u32 = 2;

/// The licences of the sources, as documents show them.
#[must_use]
pub fn licences() -> ShownFile {
    let entry = |known: &KnownSource| (known.source.to_owned(), vec![known.licence.to_owned(), known.name.to_owned()]);
    ShownFile {
        name: "licences",
        version: LICENCES_VERSION,
        about: "The licence of each source of leads, and its publisher and dataset. Whoever passes leads on names the source.".to_owned(),
        sources: Vec::new(),
        entries: KNOWN.iter().map(entry).collect(),
    }
}

/// Arguments of `coverage_sources`: none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

/// The sources of leads.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CoverageSources")]
pub struct Sources {
    /// The number of sources.
    pub count: usize,
    /// The sources.
    pub sources: Vec<LeadSource>,
}

/// A source of leads.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CoverageSource")]
pub struct LeadSource {
    /// The source, as leads name it.
    pub source: &'static str,
    /// The publisher and the dataset of the source.
    pub name: &'static str,
    /// The states that it covers, two letters; empty for all of the United States.
    pub states: &'static [&'static str],
    /// The triggers of its leads.
    pub trigger: &'static [&'static str],
    /// The lines of insurance that can follow.
    pub lines: &'static [&'static str],
    /// Who buys its leads.
    pub buyer: &'static str,
    /// How often it is published.
    pub cadence: &'static str,
    /// Under which licence it is published.
    pub licence: &'static str,
    /// When its last complete sync run ended, RFC 3339; empty before the first.
    #[schemars(with = "proofs::json_type::TimeOrEmpty")]
    pub last_snapshot: String,
    /// The last day up to which all its datasets were read completely; empty before the first sync run of each.
    #[schemars(with = "proofs::json_type::DayOrEmpty")]
    pub through_date: String,
    /// How many days ago `throughDate` was; null before the first complete sync run.
    pub days_behind: Option<i64>,
    /// Whether the source is as recent as it usually is.
    pub ok: bool,
}

async fn shown(at: &Position, known: &KnownSource) -> Result<LeadSource, Problem> {
    let mut runs = Vec::with_capacity(known.streams.len());
    for stream in known.streams {
        runs.push(last_run(at, &TABLES, stream).await?);
    }
    let last_ms = runs.iter().flatten().map(|run| run.finished_at).max().unwrap_or(0);
    // Before each dataset was read once, no day is complete.
    let days: Option<Vec<Date>> = runs.iter().map(|run| run.as_ref()?.through_date.parse().ok()).collect();
    let through = days.and_then(|days| days.into_iter().min());
    let days_behind = through.map(|day| i64::from((at.today() - day).get_days()).max(0));
    Ok(LeadSource {
        source: known.source,
        name: known.name,
        states: known.states,
        trigger: known.triggers,
        lines: known.lines,
        buyer: known.buyer,
        cadence: known.cadence,
        licence: known.licence,
        last_snapshot: rfc3339_or_empty(last_ms),
        through_date: through.map(|day| day.to_string()).unwrap_or_default(),
        days_behind,
        ok: days_behind.is_some_and(|days| days < known.late_days),
    })
}

async fn all(at: &Position) -> Result<Vec<LeadSource>, Problem> {
    let mut all = Vec::with_capacity(KNOWN.len());
    for known in KNOWN {
        all.push(shown(at, known).await?);
    }
    Ok(all)
}

/// What answers say of sources that were read before, but not lately; `None` if there are none.
///
/// # Errors
/// When rows cannot be read.
pub(crate) async fn late_note(at: &Position) -> Result<Option<String>, Problem> {
    let late: Vec<String> = all(at)
        .await?
        .into_iter()
        .filter(|source| !source.ok && !source.through_date.is_empty())
        .map(|source| format!("{} was last read completely up to {}", source.source, source.through_date))
        .collect();
    Ok((!late.is_empty()).then(|| format!("{}; its newer leads are missing", late.join(", "))))
}

impl Read for Arguments {
    type Service = Coverage;
    type Answer = Sources;

    fn definition() -> Definition {
        Definition {
            name: "coverage_sources",
            path: "/v1/sources",
            summary: "The sources of leads: states, triggers, lines, buyers, licences, and up to which day each was read.",
            when: "Use it to learn what a lead can come from, and whether a source is silent.",
            description: "`throughDate` is the last day up to which all datasets of the source were read completely. A source that is late is not `ok`, and \
                answers with leads say so in their `note`. `licence` names whom to \
                name where its leads are passed on.",
            list: "sources",
            example: json!({}),
            ..Definition::read()
        }
    }

    async fn answer(self, _: Filter, reader: &mut Reader<Coverage>) -> Result<Sources, Problem> {
        let sources = all(&reader.at).await?;
        Ok(Sources { count: sources.len(), sources })
    }
}

#[cfg(test)]
mod tests {
    use matching::mandates::{LINES, TRIGGERS};

    use super::*;

    /// Proves that the reference page of the service names the licence of every source, also of one that asks to be named.
    #[test]
    fn documents_show_the_licences() {
        let data = crate::service().service.data;
        let shown = data.iter().find(|file| file.name == "licences").unwrap();
        assert_eq!(shown.entries.iter().map(|(source, _)| source.as_str()).collect::<Vec<_>>(), crate::operations::SOURCES);
        assert!(shown.entries.iter().all(|(_, values)| values.iter().all(|value| !value.is_empty())));
        let iowa = &shown.entries[3].1[0];
        assert!(iowa.starts_with("CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/): Iowa Secretary of State"), "{iowa}");
    }

    /// Proves that the list has each source of leads, with streams that exist, and known lines and triggers.
    #[test]
    fn the_list_is_sound() {
        assert_eq!(KNOWN.iter().map(|known| known.source).collect::<Vec<_>>(), crate::operations::SOURCES);
        assert!(KNOWN.iter().all(|known| !known.streams.is_empty()));
        let streams: Vec<&str> = ["fmcsa", "sos"]
            .iter()
            .flat_map(|name| upstreams::by_name(name).unwrap().manifest().streams)
            .map(|stream| stream.name)
            .collect();
        let mut listed: Vec<&str> = KNOWN.iter().flat_map(|known| known.streams).copied().collect();
        assert!(listed.iter().all(|stream| streams.contains(stream)));
        listed.sort_unstable();
        let mut all = streams.clone();
        all.sort_unstable();
        assert_eq!(listed, all);
        for known in KNOWN {
            assert!(known.lines.iter().all(|line| LINES.contains(line)), "{}", known.source);
            assert!(known.triggers.iter().all(|trigger| TRIGGERS.contains(trigger)), "{}", known.source);
        }
    }
}
