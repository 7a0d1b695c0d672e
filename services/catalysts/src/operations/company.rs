//! `GET /v1/company` and the MCP tool `catalyst_for_company`: the events of one company.

use crate::record::{COMPANY_NAME, Catalyst};
use schemars::JsonSchema;
use schemas::error_code::ErrorCode;
use serde::Deserialize;
use serde_json::json;
use texts::company_names::normal_form;
use texts::tickers::{names_ticker, tickers};

use super::filter::{Filter, ticker};
use super::horizon::Horizon;
use super::known_company::{Companies, KnownCompany, check_name};
use super::list::{Events, Subject, of_subject};
use super::watchable_feed::Catalysts;
use feed::filter::{Filter as _, Named};
use feed::unknown::note_of_unknown;
use operation::problem::Problem;
use operation::{Definition, Surface};
use reads::numbers::read_cik;
use reads::read::{Difference, Read, Reader, Tool};

/// Arguments of `company`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Arguments {
    /// Ticker of the company in any spelling: BRK-B, also brk.b, NYSE: BRK/B. Give either this, `company` or `cik`.
    #[schemars(length(min = 1, max = 60))]
    pub ticker: Option<String>,
    /// The whole name of the company, with or without its legal form.
    #[schemars(length(min = 1, max = 200))]
    pub company: Option<String>,
    /// The number (CIK) of the company.
    #[schemars(length(min = 1, max = 10))]
    pub cik: Option<String>,
    /// How far ahead, and which page.
    #[serde(flatten)]
    pub horizon: Horizon,
}

/// The name of a company as an argument. Names are proposed in their normal form, which finds the company in any spelling.
const NAME: Named = Named::name("company", COMPANY_NAME);
/// The number of a company as an argument. Other numbers say nothing about it, so none is proposed.
const CIK: Named = Named::code("cik", "cik");

/// The company that a call asks for.
enum Wanted<'a> {
    /// By its ticker.
    Ticker(&'a str),
    /// By its name.
    Name(&'a str),
    /// By its number, 10 digits.
    Cik(String),
}

impl Arguments {
    /// Checks that one of the arguments that name a company is given.
    fn wanted(&self) -> Result<Wanted<'_>, Problem> {
        match (self.ticker.as_deref(), self.company.as_deref(), self.cik.as_deref()) {
            (Some(text), None, None) => Ok(Wanted::Ticker(text)),
            (None, Some(name), None) => check_name("company", name).map(Wanted::Name),
            (None, None, Some(text)) => read_cik("cik", text).map(Wanted::Cik),
            (None, None, None) => Err(Problem::parameter("ticker", "ticker is missing: give `ticker`, `company` or `cik`")),
            (Some(_), ..) => Err(Problem::parameter("ticker", "ticker: give either `ticker`, `company` or `cik`")),
            (None, Some(_), Some(_)) => Err(Problem::parameter("company", "company: give either `company` or `cik`")),
        }
    }

    /// The events of a company that is asked for by its name. Where nothing has the name, a note proposes the nearest ones that find something.
    async fn of_name(&self, reader: &mut Reader<Catalysts>, name: &str) -> Result<Events, Problem> {
        let companies = Companies::at(reader).await?;
        let known = companies.of_name(name).await?;
        let events = self.of_known(reader, &known, &NAME, name).await?;
        if known.ids.is_empty() && !reader.is_limited() {
            let nearest = companies.known_names(reader.nearest_recorded(&NAME, &normal_form(name)).await?).await?;
            reader.note(note_of_unknown(&NAME, name, &nearest));
            reader.note(companies.note_of_unknown_name());
        }
        Ok(events)
    }

    /// The events of a company that is asked for by its number of 10 digits.
    async fn of_cik(&self, reader: &mut Reader<Catalysts>, cik: &str) -> Result<Events, Problem> {
        let known = Companies::at(reader).await?.of_cik(cik).await?;
        let events = self.of_known(reader, &known, &CIK, cik).await?;
        if known.ids.is_empty() && !reader.is_limited() {
            reader.note(note_of_unknown(&CIK, cik, &[]));
        }
        Ok(events)
    }

    /// The events of a company that is asked for by a field other than its ticker.
    async fn of_known(&self, reader: &mut Reader<Catalysts>, known: &KnownCompany, field: &Named, value: &str) -> Result<Events, Problem> {
        let named = format!("{} {value:?}", field.field);
        let is_own = |record: &Catalyst| known.has(record);
        let subject = Subject::with_ids(named.clone(), known.ids.iter().cloned().collect());
        let events = of_subject(reader, &subject, &self.horizon, &is_own).await?;
        // Which companies are known to a caller who sees a part only is no matter of that caller.
        let is_unseen = events.catalysts.is_empty() && self.horizon.after.is_none() && reader.is_limited();
        reader.note(is_unseen.then(|| format!("this tier is shown nothing with the {named}")));
        Ok(events)
    }
}

impl Read for Arguments {
    type Service = Catalysts;
    type Answer = Events;

    fn definition() -> Definition {
        Definition {
            name: "company",
            path: "/v1/company",
            summary: "Catalysts of one company: upcoming ones first, then those that are over.",
            description: "A company is found by a ticker of the SEC's list, which matches the sponsor of a trial only if the names are equal; by its name, \
                which has to be equal but for signs, case and legal form; or by its CIK. Name and CIK also find decision dates of companies that are \
                not in the list. A paid key also shows events that are over, the latest first. Without one: the next 30 days.",
            list: "catalysts",
            surface: Surface::Route,
            errors: &[ErrorCode::AsOfInvalid, ErrorCode::CursorInvalid],
            example: json!({ "ticker": "CLDB" }),
            ..Definition::read()
        }
    }

    fn filter(&self, _: Filter) -> Result<Filter, Problem> {
        let ticker = match self.wanted()? {
            Wanted::Ticker(text) => Some(ticker("ticker", text)?),
            Wanted::Name(_) | Wanted::Cik(_) => None,
        };
        Filter { ticker, ..Filter::default() }.normalize()
    }

    async fn answer(self, _filter: Filter, reader: &mut Reader<Catalysts>) -> Result<Events, Problem> {
        match self.wanted()? {
            Wanted::Ticker(text) => {
                let wanted = tickers(text);
                let is_own = |record: &Catalyst| names_ticker(&record.ticker, &wanted);
                let lists = wanted.iter().map(|ticker| format!("ticker/{ticker}")).collect();
                of_subject(reader, &Subject::in_lists(lists), &self.horizon, &is_own).await
            }
            Wanted::Name(name) => self.of_name(reader, name).await,
            Wanted::Cik(cik) => self.of_cik(reader, &cik).await,
        }
    }
}

impl Tool for Arguments {
    type ToolAnswer = Events;

    const TOOL_DIFFERENCES: &'static [Difference] =
        &[Difference::Without("days"), Difference::Without("limit"), Difference::Without("after")];
    const ABOUT_ARGUMENTS: &'static str = "Arguments of the tool `catalyst_for_company`: one of `ticker`, `company` and `cik`.";

    fn tool() -> Definition {
        Definition {
            name: "catalyst_for_company",
            path: "",
            surface: Surface::Tool,
            when: "Use it for the next events of one company.",
            ..Self::definition()
        }
    }
}
