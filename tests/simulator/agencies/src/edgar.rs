//! EDGAR: the feed, daily indexes, lists of filers, complete submissions, the full-text search and the list of tickers, for the last business
//! days, and annual reports of the last years. Only the passing of days changes anything, and rounds.
//!
//! In each fortnight there is one company of which several insiders buy shares within days.

mod biotech;
mod search;

use std::fmt::Write;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use simulated_world::answer::Answer;
use simulated_world::faults::Plan;
use simulated_world::query::Query;
use simulated_world::random::Random;
use simulated_world::words::BRAND_HEADS;
use simulated_world::world::{World, brand};

pub(crate) use self::biotech::BIOTECHS;
use crate::annual;

/// Filings per business day.
const A_DAY: u64 = 8;
/// How many days back there are filings.
const DAYS: i64 = 20;
/// Companies, numbered from [`CIK_MIN`]. Their insiders are numbered from [`OWNERS_FROM`], this many per company.
const COMPANIES: u64 = 12;
const CIK_MIN: u64 = 900_001;
const OWNERS_FROM: u64 = 1_900_001;
const INSIDERS: u64 = 5;
/// For this many days the insiders of one company buy, then those of another.
const CLUSTER_DAYS: u64 = 14;
/// The filing agents: of ordinary filings, and of those of rounds.
const AGENT: u64 = 1_683_168;
const AGENT_OF_ROUNDS: u64 = 1_683_169;
/// The most filings of rounds on a day.
const ROUNDS_A_DAY_MAX: u64 = 2_000;
/// Items of 8-Ks, some serious and some not, with their text.
const EVENTS: &[(&str, &str)] = &[
    ("1.01", "Entry into a Material Definitive Agreement"),
    ("1.03", "Bankruptcy or Receivership"),
    ("2.01", "Completion of Acquisition or Disposition of Assets"),
    ("2.02", "Results of Operations and Financial Condition"),
    ("2.05", "Costs Associated with Exit or Disposal Activities"),
    ("3.01", "Notice of Delisting or Failure to Satisfy a Continued Listing Rule or Standard; Transfer of Listing"),
    ("4.01", "Changes in Registrant's Certifying Accountant"),
    ("4.02", "Non-Reliance on Previously Issued Financial Statements or a Related Audit Report or Completed Interim Review"),
    ("5.02", "Departure of Directors or Certain Officers; Election of Directors; Appointment of Certain Officers"),
    ("5.03", "Amendments to Articles of Incorporation or Bylaws; Change in Fiscal Year"),
    ("7.01", "Regulation FD Disclosure"),
    ("8.01", "Other Events"),
];
/// An item that accompanies others and says little.
const EXHIBITS: (&str, &str) = ("9.01", "Financial Statements and Exhibits");
/// The transactions of an insider, by code, and whether shares are acquired or disposed.
const TRADES: &[(&str, &str)] = &[("P", "A"), ("S", "D"), ("S", "D"), ("M", "A"), ("A", "A"), ("F", "D")];
const OFFICES: &[&str] = &["Chief Executive Officer", "Chief Financial Officer", "General Counsel", "", ""];

/// The endpoint of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The newest filings.
    Current,
    /// The index of a day.
    Daily(Date),
    /// The index of a quarter, by year and number.
    Quarter(i16, i8),
    /// A file that does not exist.
    Nothing,
    /// The list of a filer's filings, by its number.
    List(u64),
    /// The full-text search.
    Search,
    /// A filing, by its day and its number within the day.
    Submission(Date, u64),
    /// The list of ticker symbols.
    Tickers,
    /// A filing of a company with drugs, and its document.
    Document(usize, usize),
    /// A file of an annual report.
    Annual(annual::Document),
}

impl Route {
    /// The endpoint of a path; `None` for a path of another upstream.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        if path == "/cgi-bin/browse-edgar" {
            return Some(Self::Current);
        }
        if path == "/LATEST/search-index" {
            return Some(Self::Search);
        }
        if let Some(list) = path.strip_prefix("/submissions/CIK") {
            return list.strip_suffix(".json")?.parse().ok().map(Self::List);
        }
        if path == "/files/company_tickers.json" {
            return Some(Self::Tickers);
        }
        let file = path.strip_prefix("/Archives/edgar/")?;
        if let Some((filing, document)) = biotech::document_at(file) {
            return Some(Self::Document(filing, document));
        }
        if let Some(document) = annual::document_at(file) {
            return Some(Self::Annual(document));
        }
        if let Some(name) = file.strip_prefix("daily-index/") {
            let day = name.rsplit('/').next()?.strip_prefix("master.")?.strip_suffix(".idx")?;
            return Some(Date::strptime("%Y%m%d", day).map_or(Self::Nothing, Self::Daily));
        }
        if let Some(name) = file.strip_prefix("full-index/") {
            let (year, quarter) = name.strip_suffix("/master.idx")?.split_once("/QTR")?;
            return Some(Self::Quarter(year.parse().ok()?, quarter.parse().ok()?));
        }
        let number = file.strip_prefix("data/").and_then(|name| name.rsplit('/').next()?.strip_suffix(".txt"));
        Some(number.and_then(place).map_or(Self::Nothing, |(day, index)| Self::Submission(day, index)))
    }

    /// The name of the stream that reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Current => "edgar.current",
            Self::Daily(_) | Self::Quarter(..) | Self::Nothing => "edgar.index",
            Self::List(_) => "edgar.submissions",
            Self::Search => "edgar.search",
            Self::Submission(..) => "edgar.ownership",
            Self::Tickers => "edgar.tickers",
            Self::Document(..) => "edgar.pdufa",
            Self::Annual(_) => "edgar.xbrl",
        }
    }
}

/// One filing.
struct Filing {
    day: Date,
    /// The number within the day. Those from [`A_DAY`] on are of rounds.
    index: u64,
    company: u64,
    /// The index of the reporting insider; unused for other forms.
    insider: u64,
    form: &'static str,
    events: Vec<(&'static str, &'static str)>,
    /// Whether it is one of several purchases within days.
    is_clustered: bool,
}

impl Filing {
    fn of(world: &World, day: Date, index: u64) -> Self {
        let number = u64::from(day.day_of_year().unsigned_abs());
        let random = Random::new(world.seed, 70, number * 100 + index);
        let form = ["8-K", "4", "10-Q", "4", "SC 13D", "3", "8-K/A", "S-1"][index as usize % A_DAY as usize];
        let mut events = vec![*random.choose(0, EVENTS)];
        if random.once_in(3, 4) {
            events.extend(Some(*random.choose(4, EVENTS)).filter(|event| *event != events[0]));
        }
        if random.once_in(5, 2) {
            events.push(EXHIBITS);
        }
        let is_clustered = form == "4" && !random.once_in(6, 3);
        let cluster = Random::new(world.seed, 73, number / CLUSTER_DAYS).below(0, COMPANIES);
        let company = if is_clustered { cluster } else { random.below(1, COMPANIES) };
        Self { day, index, company, insider: random.below(7, INSIDERS), form, events, is_clustered }
    }

    fn accession(&self) -> String {
        let (agent, a_day) = if self.index < A_DAY { (AGENT, 10) } else { (AGENT_OF_ROUNDS, ROUNDS_A_DAY_MAX) };
        let number = u64::from(self.day.day_of_year().unsigned_abs()) * a_day + self.index;
        format!("{agent:010}-{:02}-{number:06}", self.day.year() % 100)
    }

    /// Returns its items in the format of the lists.
    fn items(&self) -> String {
        self.events.iter().map(|(code, _)| *code).collect::<Vec<_>>().join(",")
    }

    fn is_ownership(&self) -> bool {
        matches!(self.form, "3" | "4")
    }

    /// Returns the parties of the filing: number, name, role.
    fn parties(&self, world: &World) -> Vec<(u64, String, &'static str)> {
        let cik = CIK_MIN + self.company;
        let name = company(world, self.company);
        if self.is_ownership() {
            let insider = self.company * INSIDERS + self.insider;
            let family = BRAND_HEADS[insider as usize % BRAND_HEADS.len()];
            vec![(cik, name, "Issuer"), (OWNERS_FROM + insider, format!("{family} Quay"), "Reporting")]
        } else {
            vec![(cik, name, "Filer")]
        }
    }
}

fn company(world: &World, company: u64) -> String {
    format!("{} CORP", brand(Random::new(world.seed, 71, company), 1).to_uppercase())
}

/// Returns the ticker symbol of a company; a few report that they have none.
fn symbol(world: &World, number: u64) -> String {
    if number % 6 == 5 {
        return "NONE".to_owned();
    }
    let letters: String = company(world, number).chars().filter(char::is_ascii_uppercase).take(3).collect();
    format!("{letters}{}", char::from(b'A' + (number % 26) as u8))
}

/// Returns the day and the number within the day of an accession number.
fn place(accession: &str) -> Option<(Date, u64)> {
    let mut parts = accession.split('-').map(|part| part.parse::<u64>().ok());
    let (agent, year, number) = (parts.next()??, parts.next()??, parts.next()??);
    let (a_day, indexes) = if agent == AGENT_OF_ROUNDS { (ROUNDS_A_DAY_MAX, A_DAY..ROUNDS_A_DAY_MAX) } else { (10, 0..A_DAY) };
    let first = Date::new(2000 + i16::try_from(year).ok()?, 1, 1).ok()?;
    let day = first.checked_add(i64::try_from(number / a_day).ok()?.checked_sub(1)?.days()).ok()?;
    indexes.contains(&(number % a_day)).then_some((day, number % a_day))
}

fn has_filings(world: &World, day: Date) -> bool {
    let is_near = day <= world.today && day >= world.first_today.saturating_sub(DAYS.days());
    is_near && !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// The numbers of the filings of a day.
fn indexes(world: &World, day: Date) -> impl Iterator<Item = u64> + use<> {
    let of_rounds = A_DAY..(A_DAY + world.rounds_on(day)).min(ROUNDS_A_DAY_MAX);
    (0..if has_filings(world, day) { A_DAY } else { 0 }).chain(of_rounds)
}

fn filings(world: &World, day: Date) -> impl Iterator<Item = Filing> {
    indexes(world, day).map(move |index| Filing::of(world, day, index))
}

/// Returns all filings, newest first.
fn newest(world: &World) -> impl Iterator<Item = Filing> {
    let days = std::iter::successors(Some(world.today), |day| day.checked_sub(1.day()).ok());
    days.take(DAYS as usize + 1).flat_map(|day| filings(world, day).collect::<Vec<_>>().into_iter().rev())
}

/// Answers a request.
#[must_use]
pub fn answer(world: &World, route: Route, query: &Query<'_>, plan: &Plan) -> Answer {
    match route {
        Route::Current => current(world, query),
        // The index of a day is published in the evening.
        Route::Daily(day) if day < world.today && has_filings(world, day) => index(world, std::iter::once(day), "%Y%m%d"),
        Route::Quarter(year, quarter) => {
            let days = std::iter::successors(world.today.yesterday().ok(), |day| day.yesterday().ok()).take(DAYS as usize + 1);
            index(world, days.filter(|day| (day.year(), (day.month() - 1) / 3 + 1) == (year, quarter)), "%F")
        }
        Route::Daily(_) | Route::Nothing => missing(403, "AccessDenied"),
        Route::List(cik) => match annual::list(world, cik) {
            Some(list) => Answer::json(list.to_string().into_bytes()),
            None => list(world, cik),
        },
        Route::Annual(document) => match annual::document(world, document) {
            Some(body) => typed("application/xml", body),
            None => missing(403, "AccessDenied"),
        },
        Route::Search if query.get("q").is_some_and(|words| words.contains("PDUFA")) => biotech::search(world, query, plan),
        Route::Search => search::answer(world, query),
        Route::Tickers => biotech::tickers(world, plan),
        Route::Document(filing, document) => biotech::document(world, filing, document),
        Route::Submission(day, index) if indexes(world, day).any(|known| known == index) => {
            submission(world, &Filing::of(world, day, index))
        }
        Route::Submission(..) => missing(403, "AccessDenied"),
    }
}

fn missing(status: u16, code: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>none</Message></Error>");
    Answer { status, content_type: Some("application/xml"), body: body.into_bytes(), ..Answer::default() }
}

fn typed(content_type: &'static str, body: String) -> Answer {
    Answer { status: 200, content_type: Some(content_type), body: body.into_bytes(), ..Answer::default() }
}

/// Returns the index of some days, in which the date of a filing has a format of its own.
fn index(world: &World, days: impl Iterator<Item = Date>, date_format: &str) -> Answer {
    let mut rows: Vec<String> = days
        .flat_map(|day| filings(world, day).collect::<Vec<_>>())
        .flat_map(|filing| {
            let (number, form) = (filing.accession(), filing.form);
            let row = |(cik, name, _)| format!("{cik}|{name}|{form}|{}|edgar/data/{cik}/{number}.txt\n", filing.day.strftime(date_format));
            filing.parties(world).into_iter().map(row).collect::<Vec<_>>()
        })
        .collect();
    rows.sort();
    let head = "Description:           Daily Index of EDGAR Dissemination Feed\nComments:              simulated\n\n";
    let title = "CIK|Company Name|Form Type|Date Filed|File Name";
    typed("text/plain", format!("{head}{title}\n{}\n{}", "-".repeat(80), rows.concat()))
}

fn current(world: &World, query: &Query<'_>) -> Answer {
    let number = |name: &str, most: usize| query.get(name).and_then(|value| value.parse().ok()).unwrap_or(0).min(most);
    let mut body = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\" ?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n".to_owned();
    let entries = newest(world).flat_map(|filing| {
        let parties = filing.parties(world);
        let record = (filing.accession(), filing.form, filing.day, filing.events);
        parties.into_iter().map(move |party| (record.clone(), party)).collect::<Vec<_>>()
    });
    for ((accession, form, day, events), (cik, name, role)) in entries.skip(number("start", 10_000)).take(number("count", 100)) {
        let item = |(code, label): &(&str, &str)| format!("&lt;br&gt;Item {code}: {label}\n");
        let items: String = if form.starts_with("8-K") { events.iter().map(item).collect() } else { String::new() };
        // Writing to a string cannot fail.
        let _ = write!(
            body,
            "<entry>\n<title>{form} - {name} ({cik:010}) ({role})</title>\n<summary type=\"html\">\n &lt;b&gt;Filed:&lt;/b&gt; {day} \
             &lt;b&gt;AccNo:&lt;/b&gt; {accession} &lt;b&gt;Size:&lt;/b&gt; 5 KB\n{items}</summary>\n<category label=\"form type\" \
             term=\"{form}\"/>\n<id>urn:tag:sec.gov,2008:accession-number={accession}</id>\n</entry>\n"
        );
    }
    typed("application/atom+xml", body + "</feed>\n")
}

fn list(world: &World, cik: u64) -> Answer {
    let Some(own) = cik.checked_sub(CIK_MIN).filter(|own| *own < COMPANIES) else { return missing(404, "NoSuchKey") };
    let all: Vec<Filing> = newest(world).filter(|filing| filing.company == own).collect();
    let column = |value: &dyn Fn(&Filing) -> String| all.iter().map(value).collect::<Vec<_>>();
    let body = serde_json::json!({
        "cik": format!("{cik:010}"),
        "name": company(world, own),
        "filings": {"recent": {
            "accessionNumber": column(&Filing::accession),
            "filingDate": column(&|filing| filing.day.to_string()),
            "reportDate": column(&|_| String::new()),
            "form": column(&|filing| filing.form.to_owned()),
            "items": column(&|filing| if filing.form.starts_with("8-K") { filing.items() } else { String::new() }),
            "primaryDocument": column(&|_| "a.htm".to_owned()),
        }, "files": []},
    });
    Answer::json(body.to_string().into_bytes())
}

fn submission(world: &World, filing: &Filing) -> Answer {
    let (accession, form, day) = (filing.accession(), filing.form, filing.day);
    let mut parties = filing.parties(world).into_iter();
    let (Some((issuer, issuer_name, _)), Some((owner, owner_name, _))) = (parties.next(), parties.next()) else {
        return typed("text/plain", format!("<SEC-DOCUMENT>{accession}.txt\n"));
    };
    let random = Random::new(world.seed, 72, filing.index + u64::from(day.day_of_year().unsigned_abs()) * 10);
    let (code, direction) = if filing.is_clustered { ("P", "A") } else { *random.choose(2, TRADES) };
    let (shares, price) = (100 + random.below(0, 9_900), 5 + random.below(1, 95));
    let held = shares + random.below(3, 50_000);
    let office = OFFICES[filing.insider as usize % OFFICES.len()];
    let relationship = if office.is_empty() {
        "<isDirector>1</isDirector>".to_owned()
    } else {
        format!("<isOfficer>1</isOfficer><officerTitle>{office}</officerTitle>")
    };
    let trade = format!(
        "<nonDerivativeTransaction><securityTitle><value>Common Stock</value></securityTitle><transactionDate><value>{day}</value>\
         </transactionDate><transactionCoding><transactionCode>{code}</transactionCode></transactionCoding><transactionAmounts>\
         <transactionShares><value>{shares}</value></transactionShares><transactionPricePerShare><value>{price}</value>\
         </transactionPricePerShare><transactionAcquiredDisposedCode><value>{direction}</value></transactionAcquiredDisposedCode>\
         </transactionAmounts><postTransactionAmounts><sharesOwnedFollowingTransaction><value>{held}</value>\
         </sharesOwnedFollowingTransaction></postTransactionAmounts><ownershipNature><directOrIndirectOwnership><value>D</value>\
         </directOrIndirectOwnership></ownershipNature></nonDerivativeTransaction>"
    );
    let trade = if form == "4" { trade } else { String::new() };
    let body = format!(
        "<SEC-DOCUMENT>{accession}.txt\n<SEC-HEADER>\nACCESSION NUMBER:\t\t{accession}\nFILED AS OF DATE:\t\t{}\n</SEC-HEADER>\n<XML>\n\
         <ownershipDocument><documentType>{form}</documentType><periodOfReport>{day}</periodOfReport><issuer><issuerCik>{issuer:010}</issuerCik>\
         <issuerName>{issuer_name}</issuerName><issuerTradingSymbol>{}</issuerTradingSymbol></issuer><reportingOwner><reportingOwnerId>\
         <rptOwnerCik>{owner:010}</rptOwnerCik><rptOwnerName>{owner_name}</rptOwnerName></reportingOwnerId><reportingOwnerRelationship>\
         {relationship}</reportingOwnerRelationship></reportingOwner><nonDerivativeTable>{trade}</nonDerivativeTable>\
         </ownershipDocument>\n</XML>\n</SEC-DOCUMENT>\n",
        day.strftime("%Y%m%d"),
        symbol(world, filing.company),
    );
    typed("text/plain", body)
}
