//! The index of names: its build, its memory, checks of names that were not asked for before, by one caller and by eight, the candidates that they
//! compare, the strong marks that coined names have, its snapshot, the changes of a day, and the watches that these changes are compared with; next to a
//! comparison with all marks, and to tantivy's fuzzy queries and PostgreSQL with an index of trigrams, whose shares of the strong marks are printed.
//! `--records` is a tenth of the number of simulated marks: 1,000,000 by default.

mod fuzzy;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::Instant;

use marks::index::{Change, ComparedMark, Index, RuleWork, Work, mark_keys, watched_keys};
use marks::{Classes, Mark, Rule, Tier, similar};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Semaphore;

use crate::lists::PeerTable;
use crate::report::{figure, heading, latency, line, percentile, ratio};
use crate::{Failure, Settings, postgres};

/// Simulated marks for each record of the settings.
const MARKS_PER_RECORD: u64 = 10;
/// Names of each round.
const NAMES: usize = 2_000;
/// Names that are also compared with all marks.
const SCANNED_NAMES: usize = 5;
/// Names of which the candidates are counted.
const EXPLAINED_NAMES: usize = 500;
/// Names whose strong marks are counted.
const COUNTED_NAMES: usize = 1_000;
/// Different coined words of which each is a mark of one index: in it the strong marks of names are limited.
const COINED_MARKS: usize = 300_000;
/// Lengths of names, in letters, and the most strong marks that such a name has on average among these words.
const LENGTHS: [(&str, RangeInclusive<usize>, f64); 3] =
    [("6 letters", 6..=6, 6.0), ("7 letters", 7..=7, 3.0), ("8 letters or more", 8..=usize::MAX, 3.0)];
const CALLERS: usize = 8;
/// Marks up to which the first limit of a check holds. Both limits are those of eight callers.
const FEW_MARKS: u32 = 1_000_000;
const CHECK_P99_MS_MAX: f64 = 5.0;
const CHECK_P99_MS_MAX_OF_MANY_MARKS: f64 = 10.0;
/// Changes that the service adds to the index together.
const BATCH_CHANGES: usize = 500_000;
/// Limits for six million marks.
const LIMIT_MARKS: f64 = 6_000_000.0;
const BUILD_S_MAX: f64 = 90.0;
const MEMORY_GB_MAX: f64 = 1.5;
const RESTART_S_MAX: f64 = 5.0;
/// The changes of a day, the watches that they are compared with, and the limits of their seconds.
const DAY_CHANGES: u32 = 40_000;
const WATCHES: usize = 10_000;
const FOLLOWED_S_MAX: f64 = 10.0;
const WATCHES_S_MAX: f64 = 20.0;
/// Watches that are also compared with all changes of the day.
const SCANNED_WATCHES: usize = 10;
/// Names that PostgreSQL is asked for.
const TRIGRAM_NAMES: usize = 200;
/// The seed of the marks, which those of the peers are drawn from again.
const SEED: u64 = 25;
/// The seed of the coined words.
const COINED_SEED: u64 = 26;

/// Builds the index and asks it.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let count = u32::try_from(settings.records * MARKS_PER_RECORD)?;
    heading(&format!("names: {count} simulated marks"));
    let mut random = StdRng::seed_from_u64(SEED);
    let changes: Vec<Change> = (1..=count).map(|seq| change(&mut random, seq)).collect();
    let share = LIMIT_MARKS / f64::from(count);
    let started = Instant::now();
    let index = build(changes);
    let build_s = started.elapsed().as_secs_f64();
    figure("build, s", format!("{build_s:.2}"));
    ratio("build of 6 million, s", build_s * share, build_s * share <= BUILD_S_MAX, "<= 90");
    let memory = index.bytes() as f64 / 1e9 * share;
    figure("bytes a mark", format!("{:.0}", index.bytes() as f64 / f64::from(count)));
    ratio("memory of 6 million, GB", memory, memory <= MEMORY_GB_MAX, "<= 1.5");
    let names: Vec<Mark> = (0..NAMES * settings.rounds).filter_map(|_| Mark::new(&coined(&mut random))).collect();
    let alone = seconds_of_each(&names, |name| index.find(&name.clone(), index.seq()));
    latency("check, one caller", &alone);
    let names: Vec<Mark> = (0..NAMES * settings.rounds).filter_map(|_| Mark::new(&coined(&mut random))).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    // As in the service: one check a core at the same time, in the order in which callers ask. A check that ends wakes the next caller and no other.
    let turns = Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from));
    let check = |name: &Mark| {
        let turn = runtime.block_on(turns.acquire());
        let found = index.find(&name.clone(), index.seq());
        drop(turn);
        found
    };
    let together: Vec<f64> = std::thread::scope(|scope| {
        let (check, share) = (&check, names.len().div_ceil(CALLERS));
        let callers: Vec<_> = names.chunks(share).map(|names| scope.spawn(move || seconds_of_each(names, check))).collect();
        callers.into_iter().filter_map(|caller| caller.join().ok()).flatten().collect()
    });
    latency("check, eight callers", &together);
    let p99 = percentile(together, 0.99) * 1e3;
    let p99_max = if count <= FEW_MARKS { CHECK_P99_MS_MAX } else { CHECK_P99_MS_MAX_OF_MANY_MARKS };
    ratio("check, eight callers, p99 ms", p99, p99 <= p99_max, &format!("<= {p99_max}"));
    explain(&index, &names);
    count_strong(&index, &names);
    let (mut strong, mut equal) = (0, true);
    let started = Instant::now();
    for name in names.iter().take(SCANNED_NAMES) {
        let scanned = index.find_by_scan(name, index.seq());
        strong += scanned.iter().filter(|hit| hit.rule.tier() <= marks::Tier::Strong).count();
        equal &= scanned == index.find(name, index.seq());
    }
    figure("comparison with all marks, ms", format!("{:.0}", started.elapsed().as_secs_f64() * 1e3 / SCANNED_NAMES as f64));
    figure("exact and strong marks of these names", strong);
    ratio("answers equal a comparison with all", f64::from(u8::from(equal)), equal, "= 1");
    let file = settings.dir.join("names.snapshot");
    let started = Instant::now();
    index.write(&mut std::io::BufWriter::new(std::fs::File::create(&file)?))?;
    figure("snapshot written, s", format!("{:.2}", started.elapsed().as_secs_f64()));
    let started = Instant::now();
    let again = Index::read(&mut std::io::BufReader::new(std::fs::File::open(&file)?))?;
    let restart_s = started.elapsed().as_secs_f64() * share;
    ratio("restart with 6 million, s", restart_s, restart_s <= RESTART_S_MAX && again.versions() == index.versions(), "<= 5");
    std::fs::remove_file(&file)?;
    follow(&index, &mut random);
    let mut again = StdRng::seed_from_u64(SEED);
    fuzzy::compare(&index, (1..=count).map(|seq| (seq, text(&mut again, seq))), &names)?;
    runtime.block_on(trigrams(&index, count, &names))
}

/// Builds the index as the service does from its feed: in parts, with the keys of all marks at the end.
fn build(changes: Vec<Change>) -> Index {
    let (mut index, mut changes) = (Index::default(), changes.into_iter());
    loop {
        let batch: Vec<Change> = changes.by_ref().take(BATCH_CHANGES).collect();
        let Some(last) = batch.last().map(|change| change.seq) else { break };
        index = index.extend(batch, last, 0);
    }
    index.store_keys();
    index
}

/// Prints what checks compare: the candidates of a name, and for each rule those that its keys found and the marks that are similar by it.
fn explain(index: &Index, names: &[Mark]) {
    let names = names.get(..EXPLAINED_NAMES).unwrap_or(names);
    let all: Vec<Work> = names.iter().map(|name| index.work(name, index.seq())).collect();
    let candidates: Vec<f64> = all.iter().map(|work| work.candidates as f64).collect();
    let mean = |total: usize| total as f64 / all.len().max(1) as f64;
    let total = all.iter().map(|work| work.candidates).sum();
    let (p50, p99) = (percentile(candidates.clone(), 0.5), percentile(candidates, 0.99));
    figure("candidates of a name", format!("mean {:.0}, median {p50:.0}, p99 {p99:.0}", mean(total)));
    for rule in Rule::ALL {
        let of_rule: Vec<&RuleWork> = all.iter().flat_map(|work| &work.by_rule).filter(|of_rule| of_rule.rule == *rule).collect();
        let found: usize = of_rule.iter().map(|of_rule| of_rule.candidates).sum();
        let hits: usize = of_rule.iter().map(|of_rule| of_rule.hits).sum();
        if found + hits > 0 {
            let most = of_rule.iter().map(|of_rule| of_rule.candidates).max().unwrap_or_default();
            figure(&format!("... by keys of {}", rule.id()), format!("mean {:.1}, most {most}; similar {:.1}", mean(found), mean(hits)));
        }
    }
}

/// Prints how many strong marks coined names have by their length: among the simulated marks, and among coined words, where they are limited.
fn count_strong(simulated: &Index, names: &[Mark]) {
    let mut random = StdRng::seed_from_u64(COINED_SEED);
    let mut marks = BTreeSet::new();
    while marks.len() < COINED_MARKS {
        marks.insert(coined(&mut random));
    }
    let among_coined = build((1..).zip(marks).map(|(seq, mark)| filed(seq, mark, 9)).collect());
    let names = names.get(..COUNTED_NAMES).unwrap_or(names);
    for (length, letters, strong_max) in LENGTHS {
        let names: Vec<&Mark> = names.iter().filter(|name| letters.contains(&name.compact().chars().count())).collect();
        let mean = |index: &Index| {
            let hits = names.iter().flat_map(|name| index.find(name, index.seq()));
            hits.filter(|hit| hit.rule.tier() == Tier::Strong).count() as f64 / names.len().max(1) as f64
        };
        figure(&format!("strong marks of a name of {length}"), format!("{:.2}", mean(simulated)));
        let strong = mean(&among_coined);
        let name = format!("... among 300,000 words, {length}");
        ratio(&name, strong, strong <= strong_max, &format!("<= {strong_max}"));
    }
}

/// Follows the changes of a day, and compares watches with them.
fn follow(index: &Index, random: &mut StdRng) {
    let (first, last) = (index.seq() + 1, index.seq() + DAY_CHANGES);
    let changes: Vec<Change> = (first..=last).map(|seq| change(random, seq)).collect();
    let texts: Vec<String> = changes.iter().filter_map(|change| change.after.as_ref()).map(|entry| entry.text.clone()).collect();
    let started = Instant::now();
    let followed = index.apply(changes, last, 0);
    let followed_s = started.elapsed().as_secs_f64();
    figure("marks after the day", followed.versions());
    ratio("40,000 changes of a day followed, s", followed_s, followed_s <= FOLLOWED_S_MAX, "<= 10");
    let watched: Vec<Mark> = (0..WATCHES).filter_map(|_| Mark::new(&coined(random))).collect();
    let started = Instant::now();
    let mut by_key: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, name) in watched.iter().enumerate() {
        watched_keys(name).into_iter().for_each(|key| by_key.entry(key).or_default().push(at));
    }
    let mut matched: HashSet<(usize, usize)> = HashSet::new();
    for (change, text) in texts.iter().enumerate() {
        let Some(mark) = Mark::new(text) else { continue };
        let found: HashSet<usize> = mark_keys(text, &[]).iter().filter_map(|key| by_key.get(key)).flatten().copied().collect();
        let found = found.into_iter().filter(|at| watched.get(*at).is_some_and(|name| similar(name, &mark).is_some()));
        matched.extend(found.map(|at| (at, change)));
    }
    let seconds = started.elapsed().as_secs_f64();
    figure("matches of 10,000 watches", matched.len());
    ratio("10,000 watches against 40,000 changes, s", seconds, seconds <= WATCHES_S_MAX, "<= 20");
    let started = Instant::now();
    let all: Vec<Mark> = texts.iter().filter_map(|text| Mark::new(text)).collect();
    let is_equal =
        watched.iter().take(SCANNED_WATCHES).enumerate().all(|(at, name)| {
            all.iter().enumerate().all(|(change, mark)| similar(name, mark).is_some() == matched.contains(&(at, change)))
        });
    let scan_s = started.elapsed().as_secs_f64() * WATCHES as f64 / SCANNED_WATCHES as f64;
    figure("a comparison of all watches with all changes, s", format!("{scan_s:.0}"));
    ratio("matches equal a comparison with all", f64::from(u8::from(is_equal)), is_equal, "= 1");
}

/// Asks PostgreSQL for the marks whose trigrams are similar, in turn with the index, and prints which share of the exact and strong marks it finds.
async fn trigrams(index: &Index, count: u32, names: &[Mark]) -> Result<(), Failure> {
    if !postgres::is_installed() {
        line("  PostgreSQL is not installed: no comparison with trigrams");
        return Ok(());
    }
    let cluster = postgres::Cluster::start()?;
    let client = postgres::connect(cluster.socket()).await?;
    if client.batch_execute("create extension pg_trgm").await.is_err() {
        line("  PostgreSQL has no pg_trgm: install postgresql-contrib");
        return Ok(());
    }
    let mut table = PeerTable::create(cluster.socket(), "marks", "serial int primary key, text text").await?;
    let mut random = StdRng::seed_from_u64(SEED);
    for seq in 1..=count {
        table.add(&[seq.to_string(), text(&mut random, seq)])?;
    }
    let bytes = table.finish(&["create index on marks using gin (text gin_trgm_ops)"]).await?;
    figure("bytes a mark, PostgreSQL", format!("{:.0}", bytes as f64 / f64::from(count)));
    client.batch_execute("set pg_trgm.similarity_threshold = 0.5").await?;
    let statement = client.prepare("select serial from marks where text % $1::text").await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut strong, mut found) = (0, 0);
    for name in names.iter().take(TRIGRAM_NAMES) {
        let text = name.normal();
        let started = Instant::now();
        let hits = index.find(name, index.seq());
        ours.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let rows = client.query(&statement, &[&text]).await?;
        theirs.push(started.elapsed().as_secs_f64());
        let serials: HashSet<i64> = rows.iter().map(|row| i64::from(row.get::<_, i32>(0))).collect();
        let wanted: Vec<i64> = hits.iter().filter(|hit| hit.rule.tier() <= Tier::Strong).map(|hit| i64::from(hit.serial)).collect();
        strong += wanted.len();
        found += wanted.iter().filter(|serial| serials.contains(serial)).count();
    }
    latency("check, one caller, next to PostgreSQL", &ours);
    latency("marks with similar trigrams, PostgreSQL", &theirs);
    figure("... share of the exact and strong marks that it finds", format!("{:.3}", found as f64 / strong.max(1) as f64));
    Ok(())
}

/// Seconds of each check of a name.
fn seconds_of_each<T>(names: &[Mark], check: impl Fn(&Mark) -> T) -> Vec<f64> {
    let seconds = |name: &Mark| {
        let started = Instant::now();
        std::hint::black_box(check(name));
        started.elapsed().as_secs_f64()
    };
    names.iter().map(seconds).collect()
}

/// A mark of one to four words, as long as marks of the register are: most words are coined, some are common.
pub(crate) fn words(random: &mut StdRng) -> String {
    const COMMON: [&str; 12] =
        ["STAR", "GOLD", "TECH", "SOLUTIONS", "HOME", "LIFE", "BLUE", "GROUP", "HEALTH", "KITCHEN", "SYSTEMS", "WORLD"];
    let count = [1, 1, 1, 2, 2, 2, 2, 3, 3, 4][random.random_range(0..10)];
    let words: Vec<String> = (0..count)
        .map(|_| if random.random_bool(0.15) { COMMON[random.random_range(0..COMMON.len())].to_owned() } else { coined(random) })
        .collect();
    words.join(" ")
}

fn change(random: &mut StdRng, seq: u32) -> Change {
    let text = words(random);
    filed(seq, text, random.random_range(1..46))
}

/// The change by which a live mark of a class is filed. Its serial number is the position.
fn filed(seq: u32, text: String, class: u8) -> Change {
    let entry = ComparedMark { text, pseudo_marks: Vec::new(), classes: Classes::of(&[class]), is_live: true };
    Change { seq, serial: seq, is_new: true, was_live: false, after: Some(entry) }
}

/// The text of a mark, drawn as [`change`] draws it.
fn text(random: &mut StdRng, seq: u32) -> String {
    change(random, seq).after.map(|entry| entry.text).unwrap_or_default()
}

/// A coined word of two to four syllables, with letters about as frequent as in English.
pub(crate) fn coined(random: &mut StdRng) -> String {
    const STARTS: &[u8] = b"BCCDDFGHKLLLMMNNPPRRRSSSTTTVWZ";
    const VOWELS: &[u8] = b"AAAEEEEIIIOOOUY";
    const ENDS: &[u8] = b"NNRRSSTTLLXMDKC";
    let mut word = String::new();
    for _ in 0..random.random_range(2..5) {
        word.push(char::from(STARTS[random.random_range(0..STARTS.len())]));
        word.push(char::from(VOWELS[random.random_range(0..VOWELS.len())]));
        if random.random_bool(0.4) {
            word.push(char::from(ENDS[random.random_range(0..ENDS.len())]));
        }
    }
    word
}
