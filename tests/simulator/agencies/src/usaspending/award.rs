//! One award with its actions, as far as they are published by a day.

use jiff::civil::Date;
use simulated_world::days::{A_DAY_MAX, Daily, DayPosition, after, business_day_after};
use simulated_world::random::Random;
use simulated_world::world::{Round, World, day_before};

use super::words::{AGENCIES, Agency, CONTRACTS, RECIPIENTS, Recipient, VEHICLES, WORK};

/// How many base awards are added; actions on older awards come in addition.
const DAILY: Daily = Daily { kind: 102, a_day: 4 };
/// Permanent vehicles, under which most orders are placed, and the day of the first of them.
const PERMANENT: u64 = 12;
const PERMANENT_FROM: Date = Date::constant(2022, 10, 3);
/// The most modifications of an award.
const MODIFICATIONS_MAX: u64 = 60;
/// How many days late actions of the Department of Defense are published.
const LATE_DAYS: u64 = 90;
const NONE: &str = "-NONE-";

/// The base of an award, or one modification.
#[derive(Clone, Debug)]
pub(super) struct Action {
    /// `0` for the base, then `P00001`.
    pub(super) number: String,
    pub(super) day: Date,
    /// The action type, a letter; `None` for the base.
    pub(super) letter: Option<&'static str>,
    pub(super) cents: i64,
    /// When the agency last changed it.
    pub(super) modified: Date,
}

/// An award.
pub(super) struct Award {
    pub(super) place: DayPosition,
    pub(super) random: Random,
    pub(super) piid: String,
    /// Number and agency of the vehicle that it was ordered under.
    pub(super) parent: Option<(String, &'static Agency)>,
    pub(super) agency: &'static Agency,
    pub(super) recipient: &'static Recipient,
    pub(super) work: &'static [&'static str; 5],
    /// Award type: code and description.
    pub(super) code: &'static str,
    pub(super) words: &'static str,
    pub(super) start: Date,
    pub(super) end: Date,
    /// The end date including all options.
    pub(super) potential_end: Date,
    /// The actions, the base first; there is always a base.
    pub(super) actions: Vec<Action>,
    /// The potential value, in cents.
    pub(super) ceiling: i64,
}

/// Returns all awards of which something is published, the permanent vehicles first.
pub(super) fn all(world: &World) -> impl Iterator<Item = Award> {
    let permanent = (0..PERMANENT).map(permanent);
    permanent.chain(DAILY.all(world)).filter_map(|place| Award::of(world, place)).chain(of_rounds(world))
}

/// How long before the start the award of rounds was made: long enough that its base is published, whoever made it.
const ROUNDS_AWARD_DAYS: i64 = 200;
/// The most days before the start: the award of a day can be a vehicle, which is no contract, or too large.
const ROUNDS_AWARD_DAYS_MAX: i64 = ROUNDS_AWARD_DAYS + 60;
/// The base of the award of rounds is smaller, in cents. The details of a large award are read once, and its amount there takes precedence over later ones.
const ROUNDS_BASE_CENTS_MAX: i64 = 300_000_000;
/// The number of the modification of the first day with rounds, and what it adds, in cents: enough for a contract that others can win.
const ROUNDS_FROM: usize = 10_000;
const FIRST_DAY_CENTS: i64 = 25_123_400;
/// What every other round of a day adds, and the rounds between them take back, in cents.
const ROUND_CENTS: i64 = 123_400;

/// Returns the contract that each round modifies; none before the first round. A day has one modification, which its further rounds correct: the pages of a
/// search hide rows if one award has many, and readers take long to find them. It exercises an option, without which a contract is no candidate for others,
/// since searches do not show the end with all options.
fn of_rounds(world: &World) -> Option<Award> {
    world.rounds.last()?;
    let made = |days: i64| Award::of(world, DayPosition { day: day_before(world.first_today, days), index: A_DAY_MAX - 2 });
    let is_small = |award: &Award| award.actions.first().is_some_and(|base| base.cents < ROUNDS_BASE_CENTS_MAX);
    let mut award = (ROUNDS_AWARD_DAYS..ROUNDS_AWARD_DAYS_MAX).filter_map(made).find(|award| !award.is_vehicle() && is_small(award))?;
    award.actions.truncate(1);
    let modification = |(at, rounds): (usize, &[Round])| {
        let day = rounds.first()?.day;
        let of_day = if at == 0 { FIRST_DAY_CENTS } else { 0 };
        let of_round = if rounds.len().is_multiple_of(2) { 0 } else { ROUND_CENTS };
        Some(Action { number: format!("P{:05}", ROUNDS_FROM + at), day, letter: Some("G"), cents: of_day + of_round, modified: day })
    };
    let days = world.rounds.chunk_by(|one, other| one.day == other.day);
    award.actions.extend(days.enumerate().filter_map(modification));
    award.end = after(world.first_today, 365);
    Some(award)
}

fn permanent(vehicle: u64) -> DayPosition {
    DayPosition { day: after(PERMANENT_FROM, 7 * vehicle), index: 9 }
}

fn is_permanent(place: DayPosition) -> bool {
    (0..PERMANENT).any(|vehicle| permanent(vehicle) == place)
}

/// Generates the number and the agency of an award.
fn named(world: &World, place: DayPosition) -> (String, &'static Agency, &'static (&'static str, &'static str, char)) {
    let random = DAILY.random(world, place);
    let agency = random.choose(1, AGENCIES);
    let kind = if is_permanent(place) || random.once_in(2, 8) { random.choose(3, VEHICLES) } else { random.choose(4, CONTRACTS) };
    let fiscal_year = (place.day.year() + i16::from(place.day.month() >= 10)) % 100;
    (format!("{}{fiscal_year:02}{}{:06}", agency.prefix, kind.2, place.number()), agency, kind)
}

impl Award {
    fn of(world: &World, place: DayPosition) -> Option<Self> {
        let random = DAILY.random(world, place);
        let (piid, agency, &(code, words, _)) = named(world, place);
        let is_vehicle = code.starts_with("IDV");
        let parent = matches!(code, "A" | "C").then(|| named(world, permanent(random.below(5, PERMANENT))));
        let start = after(place.day, random.below(6, 30));
        let days = if is_vehicle { 1_800 } else { 45 + random.below(7, 420) };
        let options = if is_vehicle { 0 } else { random.below(8, 4) };
        let base = base_cents(random, is_vehicle);
        let mut course = Course { start, end: after(start, days), options, base };
        let potential_end = after(course.end, 365 * options);
        let mut actions: Vec<Action> =
            vec![Action { number: "0".to_owned(), day: place.day, letter: None, cents: base, modified: place.day }];
        let mut day = place.day;
        for number in 1..=MODIFICATIONS_MAX {
            day = business_day_after(day, 20 + random.below(100 + number, 70));
            if day > world.today {
                break;
            }
            let (letter, cents) = course.next(day, random, 200 + number);
            actions.push(Action { number: format!("P{number:05}"), day, letter: Some(letter), cents, modified: day });
            if matches!(letter, "E" | "F" | "K") {
                break;
            }
        }
        let mut seen = Vec::with_capacity(actions.len());
        for (at, action) in (0..).zip(actions) {
            seen.extend(published(action, at, random, agency, world.today));
        }
        // An award is published from its base on.
        seen.first()?;
        let exercised = u64::try_from(seen.iter().filter(|action| action.letter == Some("G")).count()).unwrap_or(0);
        Some(Self {
            place,
            random,
            piid,
            parent: parent.map(|(piid, agency, _)| (piid, agency)),
            agency,
            recipient: random.choose(9, RECIPIENTS),
            work: random.choose(10, WORK),
            code,
            words,
            start,
            end: after(after(start, days), 365 * exercised),
            potential_end,
            ceiling: base.saturating_mul(1 + i64::try_from(options).unwrap_or(0)),
            actions: seen,
        })
    }

    pub(super) fn is_vehicle(&self) -> bool {
        self.code.starts_with("IDV")
    }

    /// Returns the permanent id.
    pub(super) fn id(&self) -> String {
        let (piid, agency) = (&self.piid, self.agency.sub.1);
        if self.is_vehicle() {
            return format!("CONT_IDV_{piid}_{agency}");
        }
        let (parent, parent_agency) = self.parent();
        format!("CONT_AWD_{piid}_{agency}_{parent}_{parent_agency}")
    }

    /// Returns number and agency code of the parent, or the placeholder for none.
    fn parent(&self) -> (&str, &'static str) {
        self.parent.as_ref().map_or((NONE, NONE), |(piid, agency)| (piid, agency.sub.1))
    }

    /// Returns the id of one of its actions.
    pub(super) fn action_id(&self, action: &Action) -> String {
        let (parent, parent_agency) = self.parent();
        format!("CONT_TX_{}_{parent_agency}_{}_{}_{parent}_0", self.agency.sub.1, self.piid, action.number)
    }

    /// Returns the number of the database row, which is not permanent.
    pub(super) fn internal_id(&self) -> u64 {
        200_000_000 + self.place.number()
    }

    /// Returns the action with the latest date.
    pub(super) fn latest(&self) -> &Action {
        &self.actions[self.actions.len() - 1]
    }

    pub(super) fn signed(&self) -> Date {
        self.place.day
    }

    /// Returns the total obligation.
    pub(super) fn cents(&self) -> i64 {
        self.actions.iter().map(|action| action.cents).sum()
    }
}

/// Generates a description for the next action.
struct Course {
    start: Date,
    end: Date,
    options: u64,
    base: i64,
}

impl Course {
    /// Generates type and cents of the next modification.
    fn next(&mut self, day: Date, random: Random, tag: u64) -> (&'static str, i64) {
        let part = |percent: u64| self.base / 100 * i64::try_from(percent).unwrap_or(0);
        let is_near = day >= day_before(self.end, 60);
        if is_near && self.options > 0 {
            self.options -= 1;
            self.end = after(self.end, 365);
            return ("G", self.base);
        }
        if day > after(self.end, 30) {
            return ("K", -part(random.below(tag, 4)));
        }
        match random.below(tag, 20) {
            0..6 => ("C", part(5 + random.below(tag + 1_000, 20))),
            6..9 => ("B", part(2 + random.below(tag + 1_000, 30))),
            9 => ("A", part(20)),
            10 => ("D", -part(1 + random.below(tag + 1_000, 8))),
            11 if day > after(self.start, 90) => ("F", -part(30)),
            _ => ("M", 0),
        }
    }
}

/// Generates the initial obligation in cents. Vehicles obligate nothing, and a quarter of the contracts is large.
fn base_cents(random: Random, is_vehicle: bool) -> i64 {
    let dollars = match random.below(11, 4) {
        _ if is_vehicle => 0,
        0 => 5_500_000 + random.below(12, 60_000_000),
        _ => 15_000 + random.below(12, 2_500_000),
    };
    i64::try_from(dollars * 100 + if dollars == 0 { 0 } else { random.below(13, 100) }).unwrap_or(0)
}

/// Returns the action as it is published by a day, if it is. It is reported within days and published in the following night; a few are
/// corrected later under the same number.
fn published(action: Action, at: u64, random: Random, agency: &Agency, today: Date) -> Option<Action> {
    let tag = 4_000 + at * 4;
    let modified = business_day_after(action.day, random.below(tag, 3));
    let late = if agency.is_late { LATE_DAYS } else { 0 };
    if after(modified, late + 1) > today {
        return None;
    }
    let corrected = business_day_after(modified, 6 + random.below(tag + 1, 25));
    if !random.once_in(tag + 2, 14) || action.cents == 0 || after(corrected, late + 1) > today {
        return Some(Action { modified, ..action });
    }
    Some(Action { modified: corrected, cents: action.cents + action.cents.abs() / 20, ..action })
}
