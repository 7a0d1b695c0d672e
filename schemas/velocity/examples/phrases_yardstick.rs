//! Measures the labels on simulated phrases, next to simpler methods, and prints tables. `ops/checks/phrases-yardstick` runs it.
//!
//! - **Noise**: 20,000 phrases whose mentions are chance, 0.02 to 3 a day, for 60 days: the share of the time with a label, and of days with an hour
//!   of it.
//! - **Bursts**: 200 phrases with 0 to 5 mentions a day for 60 days, each with one burst of 6 to 60 stories within 24 hours, half of them in the first
//!   three and a half: recall among bursts whose multiple reaches 4, the precision of labelled hours over the 60 days, F1, and the median delay from
//!   the burst's first story. Kleinberg's automaton has the better precision here, because it weighs when the stories of a window were published. It
//!   knows neither authors nor the stories of other hours. Given the counts of the windows alone, as the other methods are, it is less precise than RISING.
//! - **Corpus**, if a directory is given: `stories.tsv` with one story a line, seconds since 1970, author, domain and title with tabs between them,
//!   oldest first; and `events.tsv` with a phrase and a day `YYYY-MM-DD`. Each phrase must be RISING in some hour of its day and FLAT at every
//!   hour of the day 30 days before.
//!
//! The conditions of the labels are fixed and were not fitted to these figures. Fails if RISING is not as wanted: its share of chance, recall, precision or
//! delay. Where WARMING is more frequent than wanted, or another method has a better F1, it says so.

#![expect(clippy::print_stdout, reason = "the tables are the result")]

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use velocity::calendar::{DAY_HOURS, day_of};
use velocity::grams::{contains, normal, phrase};
use velocity::hours::{Hour, Hours};
use velocity::label::{COUNT_MIN, Label};
use velocity::measure::{PAST_WINDOWS, Question, Scale};
use velocity::mentions::{Counted, Mention, Mentions, Poster};

const NOISE_PHRASES: u32 = 20_000;
const BURSTS: u32 = 200;
/// The days that are scored, after those that the first baseline needs.
const DAYS: i64 = 60;
const WARM_UP_DAYS: i64 = 15;
const STORIES_AN_HOUR: i64 = 50;
/// The mean age of a burst's stories, in hours.
const BURST_HOURS: f64 = 5.0;
/// The largest share of phrase-days that may be RISING by chance.
const RISING_SHARE_MAX: f64 = 0.001;
/// The wanted share of phrase-days that are WARMING by chance. The conditions of WARMING give more.
const WARMING_SHARE_MAX: f64 = 0.01;
/// A burst counts for recall from this multiple on.
const MULTIPLE_MIN: f64 = 4.0;
/// After a burst's first story, hours with its stories in the window.
const BURST_SPAN_HOURS: i64 = 48;

fn exponential(random: &mut StdRng) -> f64 {
    -(1.0 - random.random::<f64>()).ln()
}

/// The mentions of a phrase by chance: so many a day, each of another author.
fn noise(random: &mut StdRng, a_day: f64) -> Vec<Mention> {
    let (mut out, mut at) = (Vec::new(), 0.0);
    loop {
        at += exponential(random) * DAY_HOURS as f64 / a_day;
        #[expect(clippy::cast_possible_truncation, reason = "hours of 75 days")]
        let hour = at as i64;
        if hour >= (WARM_UP_DAYS + DAYS) * DAY_HOURS {
            return out;
        }
        out.push(Mention { hour, poster: poster(random) });
    }
}

fn poster(random: &mut StdRng) -> Poster {
    Poster { author: random.random_range(0..5_000), domain: random.random_range(0..3_000) }
}

/// A method that says at an hour whether a phrase bursts.
trait Method {
    fn name(&self) -> &'static str;
    fn is_burst(&self, windows: &[Counted], mentions: &Mentions, newest: i64) -> bool;
}

struct Ours(Label);

impl Method for Ours {
    fn name(&self) -> &'static str {
        if self.0 == Label::Rising { "RISING" } else { "WARMING or RISING" }
    }

    fn is_burst(&self, windows: &[Counted], _: &Mentions, newest: i64) -> bool {
        scale(newest).measure_windows(windows).label() >= self.0
    }
}

/// More than the mean of the windows before, plus two standard deviations.
struct TwoSigma;

impl Method for TwoSigma {
    fn name(&self) -> &'static str {
        "mean + 2 sigma"
    }

    fn is_burst(&self, windows: &[Counted], _: &Mentions, _: i64) -> bool {
        let past: Vec<f64> = windows.iter().skip(1).map(|window| window.count as f64).collect();
        let mean = past.iter().sum::<f64>() / past.len() as f64;
        let variance = past.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / (past.len() as f64 - 1.0);
        windows[0].count as f64 > mean + 2.0 * variance.sqrt()
    }
}

/// Three times the mean of the windows before.
struct Ratio;

impl Method for Ratio {
    fn name(&self) -> &'static str {
        "ratio to the mean >= 3"
    }

    fn is_burst(&self, windows: &[Counted], _: &Mentions, _: i64) -> bool {
        let past = windows.iter().skip(1).map(|window| window.count as f64).sum::<f64>() / PAST_WINDOWS as f64;
        windows[0].count as f64 >= 3.0 * past
    }
}

/// Kleinberg's automaton with two states over the last 15 days, for batches: s = 2, gamma = 1. The phrase bursts if the cheapest sequence of states ends in
/// the higher one. Batches are hours, or windows of a day, as the other methods have them.
struct Kleinberg {
    batch_hours: i64,
}

impl Method for Kleinberg {
    fn name(&self) -> &'static str {
        if self.batch_hours == 1 { "Kleinberg by hour" } else { "Kleinberg by window" }
    }

    fn is_burst(&self, windows: &[Counted], mentions: &Mentions, newest: i64) -> bool {
        let hours = (PAST_WINDOWS as i64 + 1) * DAY_HOURS;
        let counts: Vec<f64> = if self.batch_hours == 1 {
            (newest - hours + 1..=newest).map(|hour| mentions.window(hour, 1).count as f64).collect()
        } else {
            windows.iter().rev().map(|window| window.count as f64).collect()
        };
        let all = (STORIES_AN_HOUR * self.batch_hours) as f64;
        let share = counts.iter().sum::<f64>() / (all * counts.len() as f64);
        let shares = [share, (2.0 * share).min(0.999)];
        // The binomial coefficient is the same in both states.
        let cost = |state: usize, count: f64| -(count * shares[state].ln() + (all - count) * (1.0 - shares[state]).ln());
        let up = (counts.len() as f64).ln();
        let mut total = [0.0, f64::INFINITY];
        for count in counts {
            total = [total[0].min(total[1]) + cost(0, count), (total[0] + up).min(total[1]) + cost(1, count)];
        }
        total[1] < total[0]
    }
}

fn scale(newest: i64) -> Scale {
    let mut hours = Hours::default();
    for hour in newest - (PAST_WINDOWS as i64 + 1) * DAY_HOURS + 1..=newest {
        hours.set(hour, Hour { stories: STORIES_AN_HOUR, is_complete: true });
    }
    Scale::new(&hours, newest, Question::default())
}

/// The scored hours at which the 24 hours before have at least three stories. Under three stories no method is asked.
fn busy_hours(mentions: &[Mention]) -> Vec<i64> {
    let mut hours: Vec<i64> = mentions.iter().map(|mention| mention.hour).collect();
    hours.sort_unstable();
    let scored = WARM_UP_DAYS * DAY_HOURS..(WARM_UP_DAYS + DAYS) * DAY_HOURS;
    let least = COUNT_MIN as usize;
    let mut busy: Vec<i64> =
        hours.windows(least).flat_map(|run| run[least - 1]..run[0] + DAY_HOURS).filter(|hour| scored.contains(hour)).collect();
    busy.sort_unstable();
    busy.dedup();
    busy
}

/// The hours in which each method says that a phrase bursts.
fn hours_of_bursts(methods: &[Box<dyn Method>], all: &[Mention]) -> Vec<Vec<i64>> {
    let mut out = vec![Vec::new(); methods.len()];
    let mentions = Mentions::of(all.iter().copied());
    for hour in busy_hours(all) {
        let windows = mentions.windows(hour, DAY_HOURS, PAST_WINDOWS + 1);
        for (method, hours) in methods.iter().zip(&mut out) {
            if method.is_burst(&windows, &mentions, hour) {
                hours.push(hour);
            }
        }
    }
    out
}

/// Scores chance. Returns whether the share of RISING is small enough.
fn score_noise(random: &mut StdRng) -> bool {
    let (mut rising, mut warming, mut hours_rising, mut hours_warming) = (0_u64, 0_u64, 0_u64, 0_u64);
    let scale = scale((WARM_UP_DAYS + DAYS) * DAY_HOURS);
    for _ in 0..NOISE_PHRASES {
        let a_day = (0.02_f64.ln() + random.random::<f64>() * (3.0_f64 / 0.02).ln()).exp();
        let all = noise(random, a_day);
        let mentions = Mentions::of(all.iter().copied());
        let mut days: HashMap<i64, Label> = HashMap::new();
        for hour in busy_hours(&all) {
            // All hours have the same number of stories, so that the windows of one hour serve all.
            let label = scale.measure_windows(&mentions.windows(hour, DAY_HOURS, PAST_WINDOWS + 1)).label();
            hours_rising += u64::from(label == Label::Rising);
            hours_warming += u64::from(label == Label::Warming);
            let day = days.entry(hour / DAY_HOURS).or_insert(label);
            *day = (*day).max(label);
        }
        rising += days.values().filter(|label| **label == Label::Rising).count() as u64;
        warming += days.values().filter(|label| **label == Label::Warming).count() as u64;
    }
    let days = f64::from(NOISE_PHRASES) * DAYS as f64;
    let share = |hours: u64| hours as f64 / (days * DAY_HOURS as f64);
    println!("noise: {NOISE_PHRASES} phrases of 0.02 to 3 mentions a day (log-uniform), {DAYS} days, every hour");
    println!("  RISING, share of phrase-days            {:.4} %  (wanted <= 0.1 %)", 100.0 * share(hours_rising));
    println!("  WARMING, share of phrase-days           {:.4} %  (wanted <= 1 %)", 100.0 * share(hours_warming));
    println!("  days with an hour of RISING             {:.4} %", 100.0 * rising as f64 / days);
    println!("  days with an hour of WARMING, no RISING {:.4} %", 100.0 * warming as f64 / days);
    if share(hours_warming) > WARMING_SHARE_MAX {
        println!(
            "  worse than wanted: WARMING is more frequent by chance. Its conditions give that: p <= 0.05 allows it in up to 5 % of the hours"
        );
    }
    share(hours_rising) <= RISING_SHARE_MAX
}

#[derive(Default)]
struct Score {
    found: usize,
    wanted: usize,
    true_hours: usize,
    hours: usize,
    delays: Vec<i64>,
}

impl Score {
    fn recall(&self) -> f64 {
        self.found as f64 / self.wanted.max(1) as f64
    }

    fn precision(&self) -> f64 {
        self.true_hours as f64 / self.hours.max(1) as f64
    }

    fn f1(&self) -> f64 {
        2.0 * self.recall() * self.precision() / (self.recall() + self.precision()).max(f64::MIN_POSITIVE)
    }

    fn delay(&self) -> i64 {
        let mut sorted = self.delays.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(i64::MAX)
    }
}

/// Scores bursts. Returns whether recall, precision and delay of RISING are good enough.
fn score_bursts(random: &mut StdRng) -> bool {
    let methods: Vec<Box<dyn Method>> = vec![
        Box::new(Ours(Label::Rising)),
        Box::new(Ours(Label::Warming)),
        Box::new(TwoSigma),
        Box::new(Ratio),
        Box::new(Kleinberg { batch_hours: 1 }),
        Box::new(Kleinberg { batch_hours: DAY_HOURS }),
    ];
    let mut scores: Vec<Score> = methods.iter().map(|_| Score::default()).collect();
    for _ in 0..BURSTS {
        let (a_day, stories) = (5.0 * random.random::<f64>(), random.random_range(6..=60_u32));
        let start = (WARM_UP_DAYS + random.random_range(2..DAYS - 3)) * DAY_HOURS + random.random_range(0..DAY_HOURS);
        let mut all = noise(random, a_day.max(0.001));
        let mut first = i64::MAX;
        for _ in 0..stories {
            let age = loop {
                let age = exponential(random) * BURST_HOURS;
                if age < DAY_HOURS as f64 {
                    break age;
                }
            };
            #[expect(clippy::cast_possible_truncation, reason = "hours of a day")]
            let hour = start + age as i64;
            first = first.min(hour);
            all.push(Mention { hour, poster: poster(random) });
        }
        let is_wanted = (f64::from(stories) + a_day + 2.0) / (a_day + 2.0) >= MULTIPLE_MIN;
        for (score, hours) in scores.iter_mut().zip(hours_of_bursts(&methods, &all)) {
            let of_burst = first..first + BURST_SPAN_HOURS;
            let found = hours.iter().find(|hour| of_burst.contains(hour));
            score.wanted += usize::from(is_wanted);
            if is_wanted && let Some(found) = found {
                score.found += 1;
                // The hour is known at its end.
                score.delays.push(found + 1 - first);
            }
            score.hours += hours.len();
            score.true_hours += hours.iter().filter(|hour| of_burst.contains(hour)).count();
        }
    }
    println!("\nbursts: {BURSTS} phrases of 0 to 5 mentions a day, one burst of 6 to 60 stories each, {DAYS} days");
    println!("  {:<28} recall  precision  F1     median delay", "method");
    for (method, score) in methods.iter().zip(&scores) {
        let (recall, precision, f1) = (score.recall(), score.precision(), score.f1());
        println!("  {:<28} {recall:.3}   {precision:.3}      {f1:.3}  {} h", method.name(), score.delay());
    }
    println!("  wanted of RISING: recall >= 0.9, precision >= 0.9, delay <= 3 h, and the best F1 of methods that are not slower");
    let ours = &scores[0];
    for (method, score) in methods.iter().zip(&scores).skip(2).filter(|(_, score)| score.f1() >= ours.f1() && score.delay() <= ours.delay())
    {
        let (f1, precision, recall) = (score.f1() - ours.f1(), score.precision() - ours.precision(), score.recall() - ours.recall());
        println!("  worse than {}: F1 by {f1:.3} (its precision is higher by {precision:.3}, its recall by {recall:.3})", method.name());
    }
    ours.recall() >= 0.9 && ours.precision() >= 0.9 && ours.delay() <= 3
}

/// Scores events of a corpus. Returns whether each phrase is RISING on its day and FLAT 30 days before.
fn score_corpus(directory: &str) -> Result<bool, Box<dyn Error>> {
    let events: Vec<(String, i64)> = fs::read_to_string(format!("{directory}/events.tsv"))?
        .lines()
        .map(|line| {
            let (name, day) = line.split_once('\t').ok_or("an event is a phrase, a tab and a day")?;
            Ok((phrase(name).map_err(|reason| format!("{name}: {reason:?}"))?, day_of(day).ok_or("a day is YYYY-MM-DD")?))
        })
        .collect::<Result<_, Box<dyn Error>>>()?;
    let mut mentions: HashMap<&str, Vec<Mention>> = events.iter().map(|(phrase, _)| (phrase.as_str(), Vec::new())).collect();
    let mut stories: HashMap<i64, i64> = HashMap::new();
    for line in fs::read_to_string(format!("{directory}/stories.tsv"))?.lines() {
        let mut fields = line.splitn(4, '\t');
        let mut field = || fields.next().ok_or("a story has a time, an author, a domain and a title");
        let (hour, author, domain) = (field()?.parse::<i64>()?.div_euclid(3_600), field()?, field()?);
        let title = normal(field()?);
        *stories.entry(hour).or_default() += 1;
        // As answers count: also phrases of more words than rows have.
        for (phrase, of) in &mut mentions {
            if contains(&title, phrase) {
                of.push(Mention { hour, poster: Poster::new(author, domain) });
            }
        }
    }
    let (first, last) = (stories.keys().min().copied().unwrap_or_default(), stories.keys().max().copied().unwrap_or_default());
    let mut hours = Hours::default();
    for hour in first..=last {
        hours.set(hour, Hour { stories: stories.get(&hour).copied().unwrap_or_default(), is_complete: true });
    }
    let mut all_right = true;
    println!("\ncorpus: {} events", events.len());
    for (phrase, day) in &events {
        let mentions = Mentions::of(mentions.get(phrase.as_str()).into_iter().flatten().copied());
        let labels = |day: i64| -> Vec<Label> {
            (0..DAY_HOURS).map(|hour| Scale::new(&hours, day * DAY_HOURS + hour, Question::default()).measure(&mentions).label()).collect()
        };
        let is_rising = labels(*day).contains(&Label::Rising);
        let is_flat = labels(day - 30).iter().all(|label| *label == Label::Flat);
        println!("  {phrase:<28} rising {is_rising:<5}  flat before {is_flat}");
        all_right &= is_rising && is_flat;
    }
    Ok(all_right)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut random = StdRng::seed_from_u64(20_261_120);
    let mut is_good = score_noise(&mut random);
    is_good &= score_bursts(&mut random);
    if let Some(directory) = std::env::args().nth(1) {
        is_good &= score_corpus(&directory)?;
    }
    println!("\n{}", if is_good { "RISING is as wanted" } else { "RISING is not as wanted" });
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
