//! The simulated filings and companies.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use simulated_world::answer::Answer;
use simulated_world::random::Random;
use simulated_world::words::BRAND_HEADS;
use simulated_world::world::{World, brand};

/// Filings per business day.
const A_DAY: u64 = 8;

/// How many days back there are filings.
pub(super) const DAYS: i64 = 20;

/// Companies, numbered from [`CIK_MIN`]. Their insiders are numbered from [`OWNERS_FROM`], this many per company.
pub(super) const COMPANIES: u64 = 12;

pub(super) const CIK_MIN: u64 = 900_001;

const OWNERS_FROM: u64 = 1_900_001;

const INSIDERS: u64 = 5;

/// For this many days the insiders of one company buy, then those of another.
const CLUSTER_DAYS: u64 = 14;

/// The filing agents: of ordinary filings, and the first one of those of rounds.
const AGENT: u64 = 1_683_168;

const AGENT_OF_ROUNDS: u64 = 1_683_169;

/// The most filings of rounds on a day of one agent, whose numbers have six digits, and of all of them.
const A_DAY_OF_AGENT: u64 = 2_000;

const ROUNDS_A_DAY_MAX: u64 = 2 * A_DAY_OF_AGENT;

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
pub(super) const TRADES: &[(&str, &str)] = &[("P", "A"), ("S", "D"), ("S", "D"), ("M", "A"), ("A", "A"), ("F", "D")];

pub(super) const OFFICES: &[&str] = &["Chief Executive Officer", "Chief Financial Officer", "General Counsel", "", ""];

/// One filing.
pub(super) struct Filing {
    pub(super) day: Date,
    /// The number within the day. Those from [`A_DAY`] on are of rounds.
    pub(super) index: u64,
    pub(super) company: u64,
    /// The index of the reporting insider; unused for other forms.
    pub(super) insider: u64,
    pub(super) form: &'static str,
    pub(super) events: Vec<(&'static str, &'static str)>,
    /// Whether it is one of several purchases within days.
    pub(super) is_clustered: bool,
}

impl Filing {
    pub(super) fn of(world: &World, day: Date, index: u64) -> Self {
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

    pub(super) fn accession(&self) -> String {
        let (agent, a_day) = if self.index < A_DAY { (AGENT, 10) } else { (AGENT_OF_ROUNDS + self.index / A_DAY_OF_AGENT, A_DAY_OF_AGENT) };
        let number = u64::from(self.day.day_of_year().unsigned_abs()) * a_day + self.index % a_day;
        format!("{agent:010}-{:02}-{number:06}", self.day.year() % 100)
    }

    /// Returns its items in the format of the lists.
    pub(super) fn items(&self) -> String {
        self.events.iter().map(|(code, _)| *code).collect::<Vec<_>>().join(",")
    }

    pub(super) fn is_ownership(&self) -> bool {
        matches!(self.form, "3" | "4")
    }

    /// Returns the parties of the filing: number, name, role.
    pub(super) fn parties(&self, world: &World) -> Vec<(u64, String, &'static str)> {
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

pub(super) fn company(world: &World, company: u64) -> String {
    format!("{} CORP", brand(Random::new(world.seed, 71, company), 1).to_uppercase())
}

/// Returns the ticker symbol of a company; a few report that they have none.
pub(super) fn symbol(world: &World, number: u64) -> String {
    if number % 6 == 5 {
        return "NONE".to_owned();
    }
    let letters: String = company(world, number).chars().filter(char::is_ascii_uppercase).take(3).collect();
    format!("{letters}{}", char::from(b'A' + (number % 26) as u8))
}

/// Returns the day and the number within the day of an accession number.
pub(super) fn place(accession: &str) -> Option<(Date, u64)> {
    let mut parts = accession.split('-').map(|part| part.parse::<u64>().ok());
    let (agent, year, number) = (parts.next()??, parts.next()??, parts.next()??);
    let agent = agent.checked_sub(AGENT_OF_ROUNDS);
    let (a_day, indexes) = if agent.is_some() { (A_DAY_OF_AGENT, A_DAY..ROUNDS_A_DAY_MAX) } else { (10, 0..A_DAY) };
    let first = Date::new(2000 + i16::try_from(year).ok()?, 1, 1).ok()?;
    let day = first.checked_add(i64::try_from(number / a_day).ok()?.checked_sub(1)?.days()).ok()?;
    let index = agent.unwrap_or_default().checked_mul(a_day)?.checked_add(number % a_day)?;
    indexes.contains(&index).then_some((day, index))
}

pub(super) fn has_filings(world: &World, day: Date) -> bool {
    let is_near = day <= world.today && day >= world.first_today.saturating_sub(DAYS.days());
    is_near && !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// The numbers of the filings of a day.
pub(super) fn indexes(world: &World, day: Date) -> impl Iterator<Item = u64> + use<> {
    let of_rounds = A_DAY..(A_DAY + world.rounds_on(day)).min(ROUNDS_A_DAY_MAX);
    (0..if has_filings(world, day) { A_DAY } else { 0 }).chain(of_rounds)
}

pub(super) fn filings(world: &World, day: Date) -> impl Iterator<Item = Filing> {
    indexes(world, day).map(move |index| Filing::of(world, day, index))
}

/// Returns all filings, newest first.
pub(super) fn newest(world: &World) -> impl Iterator<Item = Filing> {
    let days = std::iter::successors(Some(world.today), |day| day.checked_sub(1.day()).ok());
    days.take(DAYS as usize + 1).flat_map(|day| filings(world, day).collect::<Vec<_>>().into_iter().rev())
}

pub(super) fn missing(status: u16, code: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>none</Message></Error>");
    Answer { status, content_type: Some("application/xml"), body: body.into_bytes(), ..Answer::default() }
}

pub(super) fn typed(content_type: &'static str, body: String) -> Answer {
    Answer { status: 200, content_type: Some(content_type), body: body.into_bytes(), ..Answer::default() }
}
