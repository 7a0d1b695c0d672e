//! What is known of one parcel from all its facts, and its record. The facts about a parcel are kept together, so their order does not matter.

use std::collections::{BTreeMap, BTreeSet};

use crate::county::County;
use crate::record::{Appeal, Basis, INSUFFICIENT, OWN_SALE, PER_SQFT, Parcel, ParcelYear, STAGES, YEARS_MAX, id};
use property::exemptions::Details;
use property::ratios::{self, SALES_MIN, Stats};
use property::sales::{self, REPEAT, SALE_YEARS, Sale};
use schemas::facts::parcels::ParcelFact;
use schemas::facts::sales::SaleFact;
use serde::{Deserialize, Serialize};
use texts::cook;
use texts::owner_names::{shown_owner_kind, without_recipient};
use texts::person_names::is_like_person;

use super::permits::{Permits, drop_earliest};

/// The newest sales of a parcel that are kept.
const SALES_MAX: usize = 5;
/// The least floor area that is compared, in square feet: a smaller one is taken to be a mistake.
const FLOOR_AREA_MIN: i64 = 100;
/// The rule, as records name it.
const METHOD: &str = "over-assessment/1: own arm's-length sale against the median of sold peers of the class";
/// The rule for Allegheny County.
const ALLEGHENY_METHOD: &str =
    "over-assessment/1: own valid sale against the median of sold peers of the use in the municipality; values of the base year 2012";
/// The rule for parcels of Allegheny County that are compared by their floor area.
const SQFT_METHOD: &str = "value-per-sqft/1: without an own valid sale, the value per square foot of finished living area against the median of sold peers \
    of the use in the municipality; values of the base year 2012";

/// What facts said about a parcel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Roll {
    /// The assessments of the newest years.
    pub(super) years: BTreeMap<i64, Year>,
    /// The newest address, with its year.
    pub(super) address: (i64, String),
    /// The last appeal that has a result, with its number.
    pub(super) appeal: Option<LastAppeal>,
    /// The sales, by their numbers.
    pub(super) sales: BTreeMap<String, Sale>,
    /// The permits for construction, and the values of the building.
    #[serde(skip_serializing_if = "Permits::is_empty")]
    pub(super) permits: Permits,
    /// Whether it is in the row of the sold parcels of its neighbourhood, which are decided again when a cycle closes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_listed: bool,
    /// Whether it is in a row of the parcels of its township that are compared by their floor area, which are decided again after a cycle closed. Sold parcels
    /// are in none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_measured: bool,
    /// The newest year in which the table of exempt parcels of Cook County has it; `None` if it never had. The reasons of its record say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exempt_year: Option<i64>,
    /// What only the rows of Allegheny County say of a parcel; `None` for parcels of Cook County.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Box<Details>>,
}

/// An appeal with a result. The last one is the greatest.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LastAppeal {
    year: i64,
    number: String,
    result: String,
}

/// The assessment of a year.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Year {
    class: String,
    township: String,
    neighborhood: String,
    /// The totals of the stages, in the order of [`STAGES`].
    totals: [Option<i64>; 3],
    /// The floor area in square feet, if it is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor_area: Option<i64>,
}

/// Where a parcel is: the codes of its township and neighbourhood.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Area {
    pub(super) township: String,
    pub(super) neighborhood: String,
}

/// The statistics of the classes of a neighbourhood or township when a cycle closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Frozen {
    /// The cycle that closed.
    pub(super) cycle: Cycle,
    /// The statistics of ratios by class.
    pub(super) classes: BTreeMap<String, Stats>,
    /// The statistics of values per square foot by class, of the same parcels as far as they have a floor area. Their unit is a billionth of a dollar.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) per_sqft: BTreeMap<String, Stats>,
}

/// A year and the last stage of which the assessments are complete, the earliest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Cycle {
    pub(super) year: i64,
    /// The place of the stage in [`STAGES`].
    pub(super) stage: usize,
}

impl Cycle {
    /// The cycle as records name it; empty if there is none.
    pub(super) fn name(self) -> String {
        let stage = STAGES.get(self.stage).copied().unwrap_or_default();
        if self.year == 0 { String::new() } else { format!("{}-{stage}", self.year) }
    }
}

impl Year {
    /// The last stage with a total, and the total.
    fn assessed(&self) -> Option<(usize, i64)> {
        self.totals.iter().enumerate().rev().find_map(|(stage, total)| Some((stage, (*total)?)))
    }
}

impl Roll {
    /// Takes the assessed values of a year.
    pub(super) fn assess(&mut self, fact: &ParcelFact) {
        let year = Year {
            class: fact.class.clone(),
            township: fact.township.clone(),
            neighborhood: fact.neighborhood.clone(),
            totals: [fact.mailed, fact.certified, fact.board],
            floor_area: fact.floor_area.filter(|area| *area >= FLOOR_AREA_MIN),
        };
        self.years.insert(fact.year, year);
        while self.years.len() > YEARS_MAX {
            self.years.pop_first();
        }
    }

    /// Takes a row of Allegheny County that was read on a day.
    pub(super) fn assess_with_details(&mut self, fact: &ParcelFact, day: &str) {
        self.assess(fact);
        self.locate(fact);
        let before = self.details.take().unwrap_or_default();
        let homestead_since = match fact.is_homestead {
            true if before.homestead_since.is_empty() => day.to_owned(),
            true => before.homestead_since,
            false => String::new(),
        };
        // Facts that were recorded earlier can have the name of who receives the mail as the city.
        let is_person = is_like_person(&fact.mailing_city);
        let [mailing_city, mailing_state] =
            [&fact.mailing_city, &fact.mailing_state].map(|place| if is_person { String::new() } else { place.clone() });
        let homestead_year = fact.is_homestead.then(|| before.homestead_year.map_or(fact.year, |first| first.min(fact.year)));
        self.details = Some(Box::new(Details {
            municipality: fact.township_name.clone(),
            city: fact.city.clone(),
            state: fact.state.clone(),
            use_class: fact.use_class.clone(),
            use_label: fact.use_label.clone(),
            // Facts that were recorded earlier can have the name of the owner.
            owner_kind: shown_owner_kind(&fact.owner_kind),
            is_exempt: fact.is_exempt,
            homestead_since,
            homestead_year,
            mailing_hash: fact.mailing_hash.clone(),
            mailing_city,
            mailing_state,
            sale_date: fact.sale_date.clone(),
            flags: before.flags,
        }));
    }

    /// The county of the parcel.
    fn county(&self) -> County {
        if self.details.is_some() { County::Allegheny } else { County::Cook }
    }

    /// Takes the address of a year.
    pub(super) fn locate(&mut self, fact: &ParcelFact) {
        let place = [fact.city.as_str(), fact.zip.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        // Facts that were recorded earlier can have who receives the mail.
        let street = without_recipient(&fact.street);
        let address = [street.as_str(), &place].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        if fact.year >= self.address.0 {
            self.address = (fact.year, address);
        }
    }

    /// The address without the names of who receives the mail, which an address that was kept earlier can have.
    pub(super) fn shown_address(&self) -> String {
        let address = self.address.1.as_str();
        // What is after the last comma can be a part of the recipient's name: `C/O SMITH, JOHN`. A place has a ZIP code at its end.
        let is_place = |place: &str| {
            place.ends_with(|letter: char| letter.is_ascii_digit())
                && !place.starts_with(|letter: char| letter.is_ascii_digit())
                && without_recipient(place) == place
        };
        match address.rsplit_once(", ") {
            Some((street, place)) if is_place(place) => {
                let street = without_recipient(street);
                if street.is_empty() { place.to_owned() } else { format!("{street}, {place}") }
            }
            _ => without_recipient(address),
        }
    }

    /// Takes an appeal. One without a result is not decided yet.
    pub(super) fn appeal(&mut self, fact: &ParcelFact) {
        let appeal = LastAppeal { year: fact.year, number: fact.appeal.clone(), result: fact.result.clone() };
        let is_same = self.appeal.as_ref().is_some_and(|last| last.number == appeal.number);
        if !appeal.result.is_empty() && (is_same || self.appeal.as_ref().is_none_or(|last| *last < appeal)) {
            self.appeal = Some(appeal);
        }
    }

    /// Takes a sale. Of more than 5 the newest are kept.
    pub(super) fn sell(&mut self, fact: &SaleFact) {
        let sale = Sale::of(fact, County::of_pin(&fact.pin) == County::Allegheny);
        self.sales.insert(fact.sale.clone(), sale);
        drop_earliest(&mut self.sales, SALES_MAX, |sale| sale.date.clone());
    }

    /// Where the parcel is, in the newest year; `None` before its first assessment.
    pub(super) fn area(&self) -> Option<Area> {
        let (_, year) = self.years.last_key_value()?;
        Some(Area { township: year.township.clone(), neighborhood: year.neighborhood.clone() })
    }

    /// The class, in the newest year; `None` before its first assessment.
    pub(super) fn class(&self) -> Option<&str> {
        self.years.last_key_value().map(|(_, year)| &*year.class)
    }

    /// Whether it has a sale that can count.
    pub(super) fn is_sold(&self) -> bool {
        self.sales.values().any(|sale| sale.dropped.is_empty())
    }

    /// Whether a floor area is known of it in any year.
    pub(super) fn has_floor_area(&self) -> bool {
        self.years.values().any(|year| year.floor_area.is_some())
    }

    /// The newest sale that counts for a year of assessment, and its price.
    fn own_sale(&self, year: i64) -> Option<(&Sale, i64)> {
        sales::newest(&self.sales, &self.repeats(), year)
    }

    /// The numbers of the sales of Allegheny County that repeat an earlier one; the publisher of the other county marks them.
    fn repeats(&self) -> BTreeSet<&str> {
        if self.details.is_some() { sales::repeats(&self.sales) } else { BTreeSet::new() }
    }

    /// The class and the ratio of a year; `None` without an assessment, a level or a sale that counts.
    pub(super) fn ratio(&self, year: i64) -> Option<(&str, i64)> {
        let known = self.years.get(&year)?;
        let (_, assessed) = known.assessed()?;
        let (_, price) = self.own_sale(year)?;
        Some((&known.class, ratios::ratio(assessed, self.county().level(&known.class)?, price)?))
    }

    /// The market value that the assessment of a year implies for a square foot, in billionths of a dollar; `None` without an assessment, a level or a floor
    /// area.
    pub(super) fn value_per_sqft(&self, year: i64) -> Option<i64> {
        let known = self.years.get(&year)?;
        ratios::ratio(known.assessed()?.1, self.county().level(&known.class)?, known.floor_area?)
    }

    /// The record of the parcel, given the statistics of its neighbourhood and township and its record before; `None` before its first assessment.
    pub(super) fn record(&self, pin: &str, neighborhood: &Frozen, township: &Frozen, before: Option<&Parcel>) -> Option<Parcel> {
        let (newest, latest) = self.years.last_key_value()?;
        // A parcel that was never sold and has no floor area is compared with nothing, whatever cycle closes.
        let (never, has_cycle) = (Frozen::default(), before.is_some_and(|before| !before.cycle.is_empty()));
        let is_compared = self.is_comparable() || has_cycle;
        let (neighborhood, township) = if is_compared { (neighborhood, township) } else { (&never, &never) };
        let peers = self.peers(neighborhood, township, |frozen| &frozen.classes);
        // Where the neighbourhood has too few sales, the township decides.
        let cycle = peers.as_ref().map_or(township.cycle, |peers| peers.cycle);
        // Before the first cycle there is nothing to compare with, and the newest year is shown.
        let shown_year = if cycle.year == 0 { *newest } else { cycle.year };
        let year = self.years.get(&shown_year).unwrap_or(latest);
        let is_by_sale = self.own_sale(shown_year).is_some();
        // Without a sale that counts, the value per square foot is compared with that of peers of the same cycle.
        let peers = match year.floor_area {
            Some(_) if !is_by_sale => self.peers(neighborhood, township, |frozen| &frozen.per_sqft).filter(|peers| peers.cycle == cycle),
            _ => peers,
        };
        let county = self.county();
        let (class_label, township, method) = match &self.details {
            Some(details) => {
                let method = if is_by_sale || year.floor_area.is_none() { ALLEGHENY_METHOD } else { SQFT_METHOD };
                (details.use_label.clone(), details.municipality.clone(), method)
            }
            None => {
                let township = cook::township_name(&latest.township).unwrap_or_default().to_owned();
                (cook::class_label(&year.class).to_owned(), township, METHOD)
            }
        };
        let mut parcel = Parcel {
            id: id(county.name(), pin),
            pin: pin.to_owned(),
            county: county.name().to_owned(),
            class: year.class.clone(),
            class_label,
            township,
            township_code: latest.township.clone(),
            neighborhood: latest.neighborhood.clone(),
            address: self.shown_address(),
            last_appeal: self
                .appeal
                .as_ref()
                .map_or_else(Appeal::default, |last| Appeal { year: Some(last.year), result: last.result.clone() }),
            method: method.to_owned(),
            cycle: cycle.name(),
            history: self.years.iter().rev().map(|(year, known)| shown(*year, known)).collect(),
            url: county.url(pin),
            ..Parcel::default()
        };
        self.compare(&mut parcel, year, shown_year, peers.as_ref());
        // Values of a stage come before its cycle closes, so what a cycle changed is counted from when the one before closed.
        match before {
            Some(before) if before.cycle == parcel.cycle => {
                (parcel.tier_before, parcel.tier_at_close) = (before.tier_before.clone(), before.tier_at_close.clone());
                (parcel.class_before, parcel.class_at_close) = (before.class_before.clone(), before.class_at_close.clone());
            }
            _ => {
                (parcel.tier_at_close, parcel.class_at_close) = (parcel.tier.clone(), parcel.class.clone());
                if let Some(before) = before {
                    let has_class = !before.class_at_close.is_empty();
                    parcel.tier_before.clone_from(&before.tier_at_close);
                    parcel.class_before.clone_from(if has_class { &before.class_at_close } else { &before.class });
                }
            }
        }
        Some(parcel)
    }

    /// Whether it has what it can be compared by: a sale that can count, or a floor area.
    fn is_comparable(&self) -> bool {
        self.is_sold() || self.has_floor_area()
    }

    /// The peers that the parcel is compared to: sold parcels of its class in its neighbourhood, or in its township where those are too few. `by_class`: their
    /// statistics of ratios, or of values per square foot.
    fn peers<'a>(
        &self,
        neighborhood: &'a Frozen,
        township: &'a Frozen,
        by_class: fn(&Frozen) -> &BTreeMap<String, Stats>,
    ) -> Option<Peers<'a>> {
        let peers_at = |level: &'static str, frozen: &'a Frozen| {
            let class = &self.years.get(&frozen.cycle.year)?.class;
            Some(Peers { level, cycle: frozen.cycle, stats: by_class(frozen).get(class)? })
        };
        let (near, far) = (peers_at("neighborhood", neighborhood), peers_at("township", township));
        near.filter(|peers| peers.stats.n >= SALES_MIN).or(far)
    }

    /// Whether its neighbourhood has enough peers, so that its record does not depend on its township. That of a parcel with a floor area can.
    pub(super) fn has_near_peers(&self, neighborhood: &Frozen) -> bool {
        let has_enough = |peers: Peers<'_>| peers.stats.n >= SALES_MIN;
        !self.has_floor_area() && self.peers(neighborhood, &Frozen::default(), |frozen| &frozen.classes).is_some_and(has_enough)
    }

    fn compare(&self, parcel: &mut Parcel, year: &Year, number: i64, peers: Option<&Peers<'_>>) {
        let assessed = year.assessed();
        let level = self.county().level(&year.class);
        let sale = self.own_sale(number);
        if let Some((stage, total)) = assessed {
            STAGES.get(stage).copied().unwrap_or_default().clone_into(&mut parcel.stage);
            parcel.assessed = Some(total);
            parcel.implied_market_value = level.and_then(|level| ratios::implied_market_value(total, level));
        }
        parcel.level = level.map(ratios::shown_r);
        // What the implied market value is divided by: the price of the sale in dollars, or the floor area in square feet.
        let divisor = match (sale, year.floor_area) {
            (Some((sale, price)), _) => {
                let (sale_date, doc_no) = (sale.date.clone(), sale.document.clone());
                parcel.basis = Basis { kind: OWN_SALE.to_owned(), sale_price: Some(price), sale_date, doc_no, ..Basis::default() };
                Some(price)
            }
            (None, Some(area)) => {
                parcel.basis = Basis { kind: PER_SQFT.to_owned(), floor_area: Some(area), ..Basis::default() };
                Some(area)
            }
            (None, None) => None,
        };
        let value = assessed.zip(level).zip(divisor).and_then(|(((_, total), level), divisor)| ratios::ratio(total, level, divisor));
        let r = value.zip(peers).and_then(|(value, peers)| Some((value, ratios::r(value, peers.stats.median)?)));
        let is_per_sqft = parcel.basis.kind == PER_SQFT;
        if let Some(Peers { level, stats, .. }) = peers {
            (*level).clone_into(&mut parcel.peer_level);
            parcel.peer_n = i64::try_from(stats.n).unwrap_or(i64::MAX);
            parcel.peer_median = Some(ratios::shown_ratio(if is_per_sqft { ratios::ONE } else { stats.median }));
            parcel.cod = Some(ratios::shown_cod(stats.cod));
        }
        if is_per_sqft {
            parcel.basis.value_per_sqft = value.map(ratios::shown_ratio);
            parcel.basis.peer_value_per_sqft = peers.map(|peers| ratios::shown_ratio(peers.stats.median));
        } else {
            parcel.ratio = value.map(ratios::shown_ratio);
        }
        match r.zip(peers) {
            Some(((value, r), peers)) if peers.stats.n >= SALES_MIN => {
                ratios::tier(value, peers.stats).clone_into(&mut parcel.tier);
                parcel.r = Some(ratios::shown_r(r));
                if is_per_sqft {
                    // A value per square foot is a ratio only to that of enough peers, whose median is 1 then.
                    parcel.ratio = parcel.r;
                }
                let (r, n, class, place) = (ratios::shown_r(r), peers.stats.n, &year.class, peers.level);
                let what = if is_per_sqft { "value per square foot" } else { "ratio" };
                parcel.reasons.push(format!("its {what} is {r} times the median of {n} sold parcels of class {class} in its {place}"));
            }
            _ => INSUFFICIENT.clone_into(&mut parcel.tier),
        }
        self.explain(parcel, year, number, peers);
    }

    /// Adds whether the parcel is exempt, why it cannot be compared, and which of its sales do not count.
    fn explain(&self, parcel: &mut Parcel, year: &Year, number: i64, peers: Option<&Peers<'_>>) {
        // The table may be a year behind the values.
        if let Some(exempt_year) = self.exempt_year.filter(|exempt_year| *exempt_year >= number - 1) {
            parcel.reasons.push(format!("the county's table of exempt parcels of {exempt_year} has it"));
        }
        if parcel.assessed.is_none() {
            parcel.reasons.push(format!("no assessed value of {number} is published"));
        }
        if parcel.level.is_none() {
            parcel.reasons.push(format!("the level of assessment of class {} is not known", year.class));
        }
        let is_per_sqft = parcel.basis.kind == PER_SQFT;
        if parcel.basis.kind != OWN_SALE {
            let first = number - SALE_YEARS;
            let instead = if is_per_sqft { "so its value per square foot is compared" } else { "and no floor area to compare instead" };
            parcel.reasons.push(format!("no arm's-length sale of the parcel since {first}-01-01, {instead}"));
        }
        let measured = if is_per_sqft { " with a floor area" } else { "" };
        match peers {
            _ if parcel.cycle.is_empty() && !self.is_comparable() => {}
            _ if !self.years.contains_key(&number) => {
                parcel.reasons.push(format!("it has no assessment of {number}, the year of the last complete cycle"));
            }
            None if parcel.cycle.is_empty() => {
                parcel.reasons.push("no cycle of its neighbourhood, or of its township, is complete".to_owned())
            }
            None => parcel.reasons.push(format!("no sold parcel of class {}{measured} counts in its township", year.class)),
            Some(peers) if peers.stats.n < SALES_MIN => parcel.reasons.push(format!(
                "{} sold parcels of class {}{measured} count in its {}, fewer than {SALES_MIN}",
                peers.stats.n, year.class, peers.level
            )),
            Some(_) => {}
        }
        let left_out = self.sales.values().filter(|sale| !sale.dropped.is_empty());
        parcel.reasons.extend(left_out.map(|sale| format!("the sale of {} does not count: {}", sale.date, sale.dropped)));
        let repeats = self.repeats();
        let repeats = self.sales.iter().filter(|(number, _)| repeats.contains(number.as_str()));
        parcel.reasons.extend(repeats.map(|(_, sale)| format!("the sale of {} does not count: {REPEAT}", sale.date)));
    }
}

/// The peers of a parcel.
struct Peers<'a> {
    /// `neighborhood` or `township`.
    level: &'static str,
    cycle: Cycle,
    stats: &'a Stats,
}

fn shown(year: i64, known: &Year) -> ParcelYear {
    let [mailed, certified, board] = known.totals;
    ParcelYear { year, class: known.class.clone(), mailed, certified, board }
}
