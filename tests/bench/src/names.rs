//! The index of names: its build, its memory, checks of names that were not asked for before, by one caller and by eight, and its snapshot,
//! compared with a comparison with all marks. `--records` is the number of simulated marks, ten times as many as by default: 1,000,000.

use std::time::Instant;

use marks::index::{Change, Entry, Index};
use marks::{Classes, Mark};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::report::{figure, heading, latency, percentile, ratio};
use crate::{Failure, Settings};

/// Simulated marks for each record of the settings.
const MARKS_PER_RECORD: u64 = 10;
/// Names of each round.
const NAMES: usize = 2_000;
/// Names that are also compared with all marks.
const SCANNED_NAMES: usize = 5;
const CALLERS: usize = 8;
const CHECK_P99_MS_MAX: f64 = 5.0;
const CHECK_P99_MS_MAX_CALLERS: f64 = 10.0;
/// Limits for six million marks.
const LIMIT_MARKS: f64 = 6_000_000.0;
const BUILD_S_MAX: f64 = 90.0;
const MEMORY_GB_MAX: f64 = 1.5;
const RESTART_S_MAX: f64 = 5.0;

/// Builds the index and asks it.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let count = u32::try_from(settings.records * MARKS_PER_RECORD)?;
    heading(&format!("names: {count} simulated marks"));
    let mut random = StdRng::seed_from_u64(25);
    let changes: Vec<Change> = (1..=count).map(|seq| change(&mut random, seq)).collect();
    let share = LIMIT_MARKS / f64::from(count);
    let started = Instant::now();
    let index = Index::default().apply(changes, count, 0);
    let build_s = started.elapsed().as_secs_f64();
    figure("build, s", format!("{build_s:.2}"));
    ratio("build of 6 million, s", build_s * share, build_s * share <= BUILD_S_MAX, "<= 90");
    let memory = index.bytes() as f64 / 1e9 * share;
    figure("bytes a mark", format!("{:.0}", index.bytes() as f64 / f64::from(count)));
    ratio("memory of 6 million, GB", memory, memory <= MEMORY_GB_MAX, "<= 1.5");
    let names: Vec<Mark> = (0..NAMES * settings.rounds).filter_map(|_| Mark::new(&coined(&mut random))).collect();
    let alone = checks(&index, &names);
    latency("check, one caller", &alone);
    let p99 = percentile(alone, 0.99) * 1e3;
    ratio("check, p99 ms", p99, p99 <= CHECK_P99_MS_MAX, "<= 5");
    let names: Vec<Mark> = (0..NAMES * settings.rounds).filter_map(|_| Mark::new(&coined(&mut random))).collect();
    let together: Vec<f64> = std::thread::scope(|scope| {
        let index = &index;
        let callers: Vec<_> = names.chunks(names.len().div_ceil(CALLERS)).map(|names| scope.spawn(move || checks(index, names))).collect();
        callers.into_iter().filter_map(|caller| caller.join().ok()).flatten().collect()
    });
    latency("check, eight callers", &together);
    let p99 = percentile(together, 0.99) * 1e3;
    ratio("check, eight callers, p99 ms", p99, p99 <= CHECK_P99_MS_MAX_CALLERS, "<= 10");
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
    Ok(())
}

/// Seconds of each check.
fn checks(index: &Index, names: &[Mark]) -> Vec<f64> {
    let check = |name: &Mark| {
        let started = Instant::now();
        std::hint::black_box(index.find(&name.clone(), index.seq()));
        started.elapsed().as_secs_f64()
    };
    names.iter().map(check).collect()
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
    let classes = Classes::of(&[random.random_range(1..46)]);
    let entry = Entry { text, pseudo_marks: Vec::new(), classes, is_live: true };
    Change { seq, serial: seq, is_new: true, was_live: false, after: Some(entry) }
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
