//! Rounds, in which an upstream of every service that is not one of whole days or hours publishes something.

use super::*;

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
