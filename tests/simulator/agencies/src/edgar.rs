//! EDGAR: the feed, daily indexes, lists of filers, complete submissions, the full-text search and the list of tickers, for the last business
//! days, and annual reports of the last years. Only the passing of days changes anything, and rounds.
//!
//! In each fortnight there is one company of which several insiders buy shares within days.

mod biotech;
mod filing;
mod search;

use std::fmt::Write;

use jiff::civil::Date;
use simulated_world::answer::Answer;
use simulated_world::faults::Plan;
use simulated_world::query::Query;
use simulated_world::random::Random;
use simulated_world::world::World;

pub(crate) use self::biotech::BIOTECHS;
use self::filing::{
    CIK_MIN, COMPANIES, DAYS, Filing, OFFICES, TRADES, company, filings, has_filings, indexes, missing, newest, place, symbol, typed,
};
use crate::annual;

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
