//! Entities: what all services have about one company, institution or contractor. Each is one operation, which asks the operations of the services.
//!
//! Promises: a section shows what the operation that it names shows to the same caller, and nothing else: the free window and redacted forms are those of
//! the service. A service that does not answer, or that is not served, is a section with the reason, and never fails the others. Upstreams are not asked:
//! all sections are as of one time, and show what is recorded here.

mod sections;
#[cfg(test)]
mod tests;

use futures_util::future::{join, join5};
use operation::feed_start::NEWEST;
use operation::problem::Problem;
use operation::{Answer, Definition, EntityLink, Operation};
use schemars::JsonSchema;
use schemas::clock::rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use texts::company_names::{alias_ticker, normal_form};

pub use self::sections::Section;
use self::sections::{AnsweredCall, Asker, Registered};

/// How many days back insider trades are looked for by ticker.
const TRADES_DAYS: i64 = 90;
/// The shortest name that is searched for, in characters.
const NAME_CHARS_MIN: usize = 2;
/// What is said of each answer.
const NAMES_NOTE: &str = "rows that were found by a name can be about another party of that name; UEI, CIK and ticker are exact";

/// Arguments of `company`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompanyArguments {
    /// The name of the company. It is always needed: a ticker or CIK is given in addition to it, in its own parameter.
    #[schemars(length(min = 2, max = 200))]
    pub name: String,
    /// The ticker. Without it and `cik`, filings and insider trades are found for well-known names only.
    #[schemars(length(min = 1, max = 60))]
    pub ticker: Option<String>,
    /// The number (CIK) of the company.
    #[schemars(length(min = 1, max = 10))]
    pub cik: Option<String>,
    /// How many rows of each section to return at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 25))]
    pub limit: usize,
}

/// Arguments of `institution`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstitutionArguments {
    /// The name of the institution.
    #[schemars(length(min = 2, max = 200))]
    pub name: String,
    /// How many rows of each section to return at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 25))]
    pub limit: usize,
}

/// Arguments of `contractor`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractorArguments {
    /// The legal name of the contractor. It is always needed: a unique entity id is given in addition to it, in `uei`.
    #[schemars(length(min = 2, max = 200))]
    pub name: String,
    /// The unique entity id, by which exclusions are found.
    #[schemars(length(min = 12, max = 12))]
    pub uei: Option<String>,
    /// How many rows of each section to return at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 25))]
    pub limit: usize,
}

fn limit_default() -> usize {
    10
}

/// What the services have about an entity.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "EntityInServices")]
#[serde(rename_all = "camelCase")]
pub struct Entity {
    /// `company`, `institution` or `contractor`.
    pub kind: &'static str,
    /// The name that was asked for.
    pub name: String,
    /// The ticker that was asked for or that is known for the name; empty if none is.
    pub ticker: String,
    /// The CIK that was asked for or that the ticker has; empty if none is known.
    pub cik: String,
    /// The unique entity id that was asked for; empty if none was.
    pub uei: String,
    /// The time that the answer describes, RFC 3339.
    #[schemars(with = "proofs::json_type::Time")]
    pub as_of: String,
    /// What each service has.
    pub sections: Vec<Section>,
    /// What to know about the answer.
    pub note: String,
}

/// The operations of entities that a service offers in addition to its own: that of the service which knows such an entity best. `registered` are
/// the services that are asked.
pub(crate) fn operations_of(service: &str, registered: Registered) -> Vec<Operation> {
    let shared = "The operations of the other services are asked as this caller: rows, free windows and redacted forms are theirs, and so is each \
        `note`. A section whose service does not answer says why in `problem`. Only what is recorded here is shown; no upstream is asked. It counts \
        as one call.";
    let definition = |name, path, summary, when, example| Definition {
        name,
        path,
        summary,
        when,
        description: shared,
        errors: &[],
        example,
        ..Definition::read()
    };
    match service {
        "filings" => vec![Operation::define::<CompanyArguments, Entity, _, _>(
            definition(
                "company",
                "/v1/company",
                "One company in all services: filings, insider trades, awards, exclusions, recalls, catalysts, trials, trademarks.",
                "Use it to learn what is known of a company at all.",
                json!({ "name": "Acme Industries", "cik": "0000900001" }),
            ),
            move |call, arguments| company(Asker { call, registered }, arguments),
        )],
        "research" => vec![Operation::define::<InstitutionArguments, Entity, _, _>(
            definition(
                "institution",
                "/v1/institution",
                "One institution in all services: grants, trials, leads of its laboratories, awards, exclusions.",
                "Use it to learn what is known of an institution at all.",
                json!({ "name": "University" }),
            ),
            move |call, arguments| institution(Asker { call, registered }, arguments),
        )],
        "awards" => vec![Operation::define::<ContractorArguments, Entity, _, _>(
            definition(
                "contractor",
                "/v1/contractor",
                "One federal contractor in all services: awards, exclusions, recalls, filings.",
                "Use it to learn what is known of a contractor at all.",
                json!({ "name": "Federal" }),
            ),
            move |call, arguments| contractor(Asker { call, registered }, arguments),
        )],
        _ => Vec::new(),
    }
}

/// Which entities the records of a service name. Leads of coverage name a business in their whole form only, which has no page without a key; parcels and
/// phrases name none.
pub(crate) fn links_of(service: &str) -> &'static [EntityLink] {
    const fn link(kind: &'static str, arguments: &'static [(&'static str, &'static str)]) -> EntityLink {
        EntityLink { kind, arguments }
    }
    match service {
        "aviation" => const { &[link("company", &[("name", "make")])] },
        "awards" => {
            const { &[link("contractor", &[("name", "recipient"), ("uei", "recipientUei")]), link("company", &[("name", "recipient")])] }
        }
        "cadence" => const { &[link("company", &[("name", "vendor")])] },
        "catalysts" => const { &[link("company", &[("name", "company"), ("ticker", "ticker"), ("cik", "cik")])] },
        // A person without a unique entity id gets no page.
        "exclusions" => const { &[link("contractor", &[("uei", "uei"), ("name", "name")])] },
        "filings" => const { &[link("company", &[("name", "company"), ("ticker", "ticker"), ("cik", "cik")])] },
        "labs" => const { &[link("institution", &[("name", "org")])] },
        "names" => const { &[link("company", &[("name", "owner")])] },
        "recalls" => const { &[link("company", &[("name", "brand")])] },
        "research" => const { &[link("institution", &[("name", "org")]), link("company", &[("name", "sponsor")])] },
        _ => &[],
    }
}

/// The name as other sources write it: without signs and legal form. The name itself if nothing is left of it.
fn plain_name(name: &str) -> String {
    let plain = normal_form(name);
    if plain.chars().count() < NAME_CHARS_MIN { name.trim().to_owned() } else { plain }
}

fn all(_: &Map<String, Value>) -> bool {
    true
}

/// Asks for the awards of a recipient.
async fn awards(asker: &Asker, name: &str, as_of: &str, limit: usize) -> Section {
    let name = plain_name(name);
    let asked = asker.ask("awards", "competitor_watch", json!({ "contractor": name, "limit": limit, "asOf": as_of })).await;
    asked.section("awards", "awards", "a part of the name of the recipient or its parent", limit, all).filtered_by("recipient", &name)
}

/// Asks for the exclusions of a party, by its unique entity id if that is known.
async fn exclusions(asker: &Asker, name: &str, uei: Option<&str>, as_of: &str, limit: usize) -> Section {
    let (arguments, found_by) = match uei {
        Some(uei) => (json!({ "uei": uei, "asOf": as_of }), "the unique entity id"),
        None => (json!({ "entity": name, "asOf": as_of }), "the whole name without its legal form, or one that is spelled nearly so"),
    };
    let section = asker.ask("exclusions", "exclusion_check", arguments).await.section("exclusions", "matches", found_by, limit, all);
    match uei {
        Some(uei) => section.filtered_by("uei", uei),
        None => section.filtered_by("name", name),
    }
}

/// Asks for recalls that name a firm.
async fn recalls(asker: &Asker, name: &str, as_of: &str, limit: usize) -> Section {
    let words = plain_name(name);
    let asked = asker.ask("recalls", "search_recalls", json!({ "keyword": words, "limit": limit, "asOf": as_of })).await;
    asked.section("recalls", "recalls", "all words of the name in the title, brand or hazard", limit, all).filtered_by("keyword", &words)
}

/// Asks for the newest trademarks of an owner, and for one more than are shown, which says that there are more. Nearly all of the register is late news.
async fn trademarks(asker: &Asker, name: &str, as_of: &str, limit: usize) -> Section {
    let owner = plain_name(name);
    let arguments = json!({ "owner": owner, "includeBackfill": true, "start": NEWEST, "limit": limit + 1, "asOf": as_of });
    let asked = asker.ask("names", "whats_changed_since", arguments).await.newest_first("changes");
    asked.section("trademarks", "changes", "a part of the name of the owner", limit, all).filtered_by("owner", &owner)
}

/// Asks for grants and trials of an institution or sponsor.
async fn funding(asker: &Asker, kind: &str, name: &str, as_of: &str, limit: usize) -> AnsweredCall {
    // Changes of both kinds come in one list.
    let limit = (limit * 4).min(100);
    asker.ask("research", "entity_watch", json!({ "type": kind, "value": plain_name(name), "limit": limit, "asOf": as_of })).await
}

/// Asks for the newest leads of laboratories of an organisation, late news included, and for one more than are shown, which says that there are more.
async fn leads(asker: &Asker, name: &str, as_of: &str, limit: usize) -> Section {
    let org = plain_name(name);
    let arguments = json!({ "org": org, "includeBackfill": true, "start": NEWEST, "limit": limit + 1, "asOf": as_of });
    let asked = asker.ask("labs", "whats_changed_since", arguments).await.newest_first("changes");
    asked.section("leads of laboratories", "changes", "a part of the name", limit, all).filtered_by("org", &org)
}

/// Whether a row of research is of a kind.
fn is_kind(row: &Map<String, Value>, kind: &str) -> bool {
    let record = row.get("record").and_then(Value::as_object).unwrap_or(row);
    record.get("kind").is_some_and(|own| own == kind)
}

/// The filings and insider trades of a company, and its CIK as far as it is known.
async fn filings(asker: &Asker, ticker: &str, cik: &str, as_of: &str, limit: usize) -> (String, [Section; 2]) {
    const UNKNOWN: &str = "filings are found by a ticker or a CIK, and none is known for this name";
    let by_ticker = if cik.is_empty() && !ticker.is_empty() {
        Some(asker.ask("filings", "insider_activity", json!({ "ticker": ticker, "days": TRADES_DAYS, "asOf": as_of })).await)
    } else {
        None
    };
    let cik = by_ticker.as_ref().map_or_else(|| cik.to_owned(), |asked| asked.first_text("trades", "cik"));
    if cik.is_empty() {
        let trades = by_ticker.map_or_else(
            || Section::unasked("insider trades", "filings", UNKNOWN),
            |asked| asked.section("insider trades", "trades", "the ticker", limit, all).filtered_by("ticker", ticker),
        );
        let why = if ticker.is_empty() { UNKNOWN } else { "no insider trade of the last days says which CIK the ticker has" };
        return (cik, [Section::unasked("filings", "filings", why), trades]);
    }
    let found_by = if by_ticker.is_some() { "the CIK of the ticker" } else { "the CIK" };
    let watched = asker.ask("filings", "company_watch", json!({ "cik": cik, "limit": limit, "asOf": as_of })).await;
    let cik = Some(watched.text("cik")).filter(|known| !known.is_empty()).unwrap_or(cik);
    let sections = [
        watched.section("filings", "filings", found_by, limit, all).filtered_by("cik", &cik),
        watched.section("insider trades", "insiderActivity", found_by, limit, all).filtered_by("cik", &cik),
    ];
    (cik, sections)
}

/// Asks for the catalysts of a company: by its ticker, else by its CIK, else by its name.
async fn catalysts(asker: &Asker, (ticker, cik, name): (&str, &str, &str), as_of: &str, limit: usize) -> Section {
    let (argument, value, found_by) = match (ticker, cik) {
        ("", "") => ("company", name, "the whole name without its legal form"),
        ("", cik) => ("cik", cik, "the CIK"),
        (ticker, _) => ("ticker", ticker, "the ticker"),
    };
    let arguments = json!({ argument: value, "limit": limit, "asOf": as_of });
    let section = asker.ask("catalysts", "company", arguments).await.section("catalysts", "catalysts", found_by, limit, all);
    if ticker.is_empty() { section } else { section.filtered_by("ticker", ticker) }
}

/// The ticker that was given, or that is known for a name; empty if none is.
fn known_ticker(given: Option<&str>, name: &str) -> String {
    given.or_else(|| alias_ticker(name)).unwrap_or_default().trim().to_owned()
}

async fn company(asker: Asker, arguments: CompanyArguments) -> Result<Answer, Problem> {
    let CompanyArguments { name, ticker, cik, limit } = arguments;
    let as_of = rfc3339(asker.call.context.clock.now_ms());
    let known = known_ticker(ticker.as_deref(), &name);
    let given_cik = cik.as_deref().unwrap_or_default().trim();
    let trials = async {
        let asked = funding(&asker, "sponsor", &name, &as_of, limit).await;
        asked
            .section("trials", "changes", "a part of the name of the sponsor", limit, |row| is_kind(row, "trial"))
            .filtered_by("sponsor", &plain_name(&name))
    };
    let ((found_cik, [filed, traded]), (awards, exclusions, recalls, catalysts, (trials, trademarks))) = join(
        filings(&asker, &known, given_cik, &as_of, limit),
        join5(
            awards(&asker, &name, &as_of, limit),
            exclusions(&asker, &name, None, &as_of, limit),
            recalls(&asker, &name, &as_of, limit),
            catalysts(&asker, (&known, given_cik, &name), &as_of, limit),
            join(trials, trademarks(&asker, &name, &as_of, limit)),
        ),
    )
    .await;
    let mut notes = Vec::new();
    if let Some(ticker) = ticker.filter(|_| [&traded, &filed, &catalysts].iter().all(|section| section.rows.is_empty())) {
        notes.push(format!("no filing, insider trade or catalyst that this caller sees has the ticker {ticker}"));
    }
    if let Some(cik) = cik.filter(|_| [&traded, &filed].iter().all(|section| section.rows.is_empty())) {
        notes.push(format!("no filing or insider trade that this caller sees has the CIK {cik}"));
    }
    let sections = vec![filed, traded, awards, exclusions, recalls, catalysts, trials, trademarks];
    answer(Entity { kind: "company", name, ticker: known, cik: found_cik, as_of, sections, ..Entity::default() }, notes)
}

async fn institution(asker: Asker, arguments: InstitutionArguments) -> Result<Answer, Problem> {
    let InstitutionArguments { name, limit } = arguments;
    let as_of = rfc3339(asker.call.context.clock.now_ms());
    let ((funded, leads), (awards, exclusions)) = join(
        join(funding(&asker, "institution", &name, &as_of, limit), leads(&asker, &name, &as_of, limit)),
        join(awards(&asker, &name, &as_of, limit), exclusions(&asker, &name, None, &as_of, limit)),
    )
    .await;
    let found_by = "a part of the name of the organisation, the sponsor or a site";
    let of_kind = |topic, kind: &'static str| {
        funded.section(topic, "changes", found_by, limit, |row| is_kind(row, kind)).filtered_by("institution", &plain_name(&name))
    };
    let sections = vec![of_kind("grants", "grant"), of_kind("trials", "trial"), leads, awards, exclusions];
    answer(Entity { kind: "institution", name, as_of, sections, ..Entity::default() }, Vec::new())
}

async fn contractor(asker: Asker, arguments: ContractorArguments) -> Result<Answer, Problem> {
    let ContractorArguments { name, uei, limit } = arguments;
    let as_of = rfc3339(asker.call.context.clock.now_ms());
    let ticker = known_ticker(None, &name);
    let ((awards, exclusions), (recalls, (cik, [filed, _]))) = join(
        join(awards(&asker, &name, &as_of, limit), exclusions(&asker, &name, uei.as_deref(), &as_of, limit)),
        join(recalls(&asker, &name, &as_of, limit), filings(&asker, &ticker, "", &as_of, limit)),
    )
    .await;
    let sections = vec![awards, exclusions, recalls, filed];
    answer(Entity { kind: "contractor", name, ticker, cik, uei: uei.unwrap_or_default(), as_of, sections, ..Entity::default() }, Vec::new())
}

/// The answer, with what is to be said about it.
fn answer(entity: Entity, mut notes: Vec<String>) -> Result<Answer, Problem> {
    if entity.sections.iter().all(|section| section.rows.is_empty()) {
        notes.push(format!("nothing that this caller sees is recorded for {}", entity.name));
    }
    notes.push(NAMES_NOTE.to_owned());
    Answer::json(&Entity { note: notes.join("; "), ..entity })
}
