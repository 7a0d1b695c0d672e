//! Rounds, in which an upstream of every service publishes something.

use super::*;

/// The time of the clock, in milliseconds since 1970.
const NOW_MS: i64 = 1_795_176_000_000;

/// What the upstreams show, by upstream: each record as a text.
fn shown(sim: &Simulator, today: &str) -> BTreeMap<&'static str, BTreeSet<String>> {
    let texts = |records: Vec<Value>| records.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    let actions = |types: &[&str]| {
        let mut filters = awards::filters("action_date", today, today);
        filters["award_type_codes"] = json!(types);
        awards::read(sim, awards::TRANSACTIONS, &filters, "Award ID", "asc", 100)
    };
    let feed = String::from_utf8(get(sim, "/cgi-bin/browse-edgar", "count=100").body).unwrap();
    let stores = STORES.iter().flat_map(|(host, _)| {
        let answer = sim.store_answer(host, "/products.json", "limit=250").unwrap();
        if answer.status != 200 {
            // The store has a fault at this time.
            return Vec::new();
        }
        value(&answer)["products"].as_array().cloned().unwrap_or_default()
    });
    BTreeMap::from([
        ("nih_reporter", texts(grants::read(sim, &json!({}), 500, "asc"))),
        ("clinical_trials", texts(trials::read(sim, "pageSize=1000"))),
        ("usaspending", texts([actions(&awards::CONTRACTS), actions(&awards::VEHICLES)].concat())),
        ("edgar", feed.split("</entry>").filter_map(|entry| Some(entry.split_once("<entry>")?.1.to_owned())).collect()),
        ("shopify", texts(stores.collect())),
        ("sos", texts(list(&get(sim, "/resource/4ykn-tg5h.json", "$limit=50000")))),
        ("chicago", texts(list(&get(sim, "/resource/ydr8-5enu.json", "$limit=5000")))),
        ("uspto_trademarks", BTreeSet::from([trademarks::yearly_text(sim, trademarks::yearly_names(sim).last().unwrap())])),
        // Stories appear and disappear by turns.
        ("hacker_news", BTreeSet::from([format!("{:?}", sim.stories(NOW_MS - 24 * HOUR_MS, NOW_MS))])),
        ("faa_drs", texts(value(&get(sim, "/api/drs/data-pull/ADFRAWD", "offset=2"))["documents"].as_array().unwrap().clone())),
    ])
}

/// Proves that each round adds something new at each of these upstreams, on business days and at weekends, and that its filing can be read.
#[test]
fn every_upstream_publishes_in_each_round() {
    let sim = Simulator::new(Options { clock: Clock::Fixed("2026-11-20T12:00:00Z".parse().unwrap()), ..options(60) });
    for day in [date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 23)] {
        sim.set_today(day);
        let mut before = shown(&sim, &day.to_string());
        for round in 0..4 {
            sim.publish_round();
            let after = shown(&sim, &day.to_string());
            for (upstream, records) in &after {
                assert!(records.difference(&before[upstream]).next().is_some(), "{upstream}, {day}, round {round}");
            }
            let new =
                after["edgar"].difference(&before["edgar"]).find(|entry| entry.contains(&day.to_string())).expect("a filing of the day");
            let accession = new.split("accession-number=").nth(1).unwrap().split('<').next().unwrap();
            let path = format!("/Archives/edgar/data/1/{accession}.txt");
            assert_eq!(get(&sim, &path, "").status, 200, "{new}");
            before = after;
        }
    }
}

/// Proves that each round changes the amount of one contract, which others can win: with an exercised option, large enough, and not so large that its
/// details are read, whose amount would hide later ones. A day has one modification of it, whatever its rounds.
#[test]
fn each_round_changes_the_amount_of_a_contract() {
    for seed in 1..9 {
        let sim = Simulator::new(Options { seed, ..options(60) });
        let mut before = 0.0;
        for day in [date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 22)] {
            sim.set_today(day);
            let day = day.to_string();
            for round in 0..4 {
                sim.publish_round();
                let mut actions =
                    awards::read(&sim, awards::TRANSACTIONS, &awards::filters("action_date", &day, &day), "Award ID", "asc", 100);
                actions.retain(|action| text(&action["Mod"]).starts_with("P1"));
                assert_eq!((actions.len(), text(&actions[0]["Action Type"]).as_str()), (1, "G"), "seed {seed}, {day}, round {round}");
                let mut filters = awards::filters("last_modified_date", &day, &day);
                filters["award_ids"] = json!([format!("\"{}\"", text(&actions[0]["Award ID"]))]);
                let found = awards::read(&sim, awards::AWARDS, &filters, "Award ID", "asc", 100);
                let amount = found[0]["Award Amount"].as_f64().unwrap();
                assert!(
                    found.len() == 1 && amount != before && (250_000.0..5_000_000.0).contains(&amount),
                    "seed {seed}, {day}, round {round}: {before} to {amount}"
                );
                before = amount;
            }
        }
    }
}

/// Proves that the stories of a round are about one phrase, by several authors, in the newest hour that readers take as final; that the next round takes
/// no more of them back than a reader believes, and the one after it begins with other stories; that other hours have other phrases; and that the stories of
/// an hour stay as its last round left them.
#[test]
fn stories_of_rounds() {
    let at = |hours: i64| Clock::Fixed(jiff::Timestamp::from_millisecond(NOW_MS + hours * HOUR_MS).unwrap());
    let added = |sim: &Simulator, without: &Simulator| -> Vec<ShownStory> {
        let before: BTreeSet<u64> = without.stories(NOW_MS - 24 * HOUR_MS, NOW_MS).into_iter().map(|story| story.id).collect();
        sim.stories(NOW_MS - 24 * HOUR_MS, NOW_MS).into_iter().filter(|story| !before.contains(&story.id)).collect()
    };
    let (sim, quiet) = (Simulator::new(options(60)), Simulator::new(options(60)));
    let round = sim.publish_round();
    assert_eq!((round.day, round.at_ms), (date(2026, 11, 20), NOW_MS));
    let four = added(&sim, &quiet);
    let authors: BTreeSet<&str> = four.iter().map(|story| story.author.as_str()).collect();
    assert_eq!((four.len(), authors.len()), (4, 4), "{four:?}");
    assert!(four.iter().all(|story| (NOW_MS - 2 * HOUR_MS..NOW_MS - HOUR_MS).contains(&story.created_ms)), "{four:?}");
    sim.publish_round();
    let two = added(&sim, &quiet);
    assert!(two.len() == 2 && two.iter().all(|story| four.contains(story)), "{two:?}");
    sim.publish_round();
    let of_another_phrase = added(&sim, &quiet);
    assert!(of_another_phrase.len() == 4 && of_another_phrase.iter().all(|story| !four.contains(story)), "{of_another_phrase:?}");
    // An hour later, with the rounds of before and one of its own.
    let (next, quiet) = (Simulator::new(Options { clock: at(1), ..options(60) }), Simulator::new(Options { clock: at(1), ..options(60) }));
    next.restore_rounds(vec![round, round]);
    let left: BTreeSet<u64> = added(&next, &quiet).iter().map(|story| story.id).collect();
    assert_eq!(left, two.iter().map(|story| story.id).collect::<BTreeSet<u64>>());
    next.publish_round();
    let both = added(&next, &quiet);
    assert_eq!(both.len(), 6, "{both:?}");
    let titles = |of_before: bool| -> Vec<String> {
        both.iter().filter(|story| left.contains(&story.id) == of_before).map(|story| story.title.to_lowercase()).collect()
    };
    let words = |title: &str| -> BTreeSet<String> { title.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect() };
    let shared = |titles: &[String]| titles.iter().map(|title| words(title)).reduce(|one, other| &one & &other).unwrap();
    let (earlier, later) = (shared(&titles(true)), shared(&titles(false)));
    assert!(!later.is_subset(&earlier) && !earlier.is_subset(&later), "{earlier:?} {later:?}");
}

/// Proves that a day has a filing for each of its rounds, also if it has more than the numbers of one filing agent allow, each of which can be read.
#[test]
fn a_day_of_rounds_has_a_filing_each() {
    let sim = Simulator::new(options(60));
    for _ in 0..2_100 {
        sim.publish_round();
    }
    let feed = String::from_utf8(get(&sim, "/cgi-bin/browse-edgar", "count=100").body).unwrap();
    let numbers: BTreeSet<&str> = feed
        .split("accession-number=")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap())
        .filter(|number| number.starts_with("0001683170"))
        .collect();
    assert!(numbers.len() > 50, "{numbers:?}");
    for number in numbers {
        assert_eq!(get(&sim, &format!("/Archives/edgar/data/1/{number}.txt"), "").status, 200, "{number}");
    }
}

/// Proves that each round adds a part to the yearly set, with another status of one mark; that a part keeps its content; and that a later set begins
/// before a number has four digits.
#[test]
fn parts_of_the_yearly_set() {
    let sim = Simulator::new(options(60));
    let publish = |rounds: usize| (0..rounds).for_each(|_| _ = sim.publish_round());
    let status = |name: &str| -> String {
        let text = trademarks::yearly_text(&sim, &format!("apc18840407-{name}.zip"));
        text.split("<status-code>").nth(1).unwrap()[..3].to_owned()
    };
    publish(2);
    assert_eq!((status("20251231-03").as_str(), status("20251231-04").as_str()), ("630", "638"));
    publish(898);
    let names = trademarks::yearly_names(&sim);
    assert!(names.len() == 902 && names.contains("apc18840407-20251231-902.zip"), "{}", names.len());
    assert_eq!(status("20251231-03"), "630");
    let last = status("20251231-902");
    publish(5);
    let names = trademarks::yearly_names(&sim);
    assert!(names.len() == 7 && names.iter().all(|name| name.starts_with("apc18840407-20260101-0")), "{names:?}");
    assert_ne!(status("20260101-03"), last);
}
