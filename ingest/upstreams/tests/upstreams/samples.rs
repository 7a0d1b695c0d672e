//! Real records that other public projects recorded. They are read from a folder next to this checkout, if it exists.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::civil::date;
use schemas::facts::FactData;
use schemas::facts::stock::StockFact;
use upstreams::{Answer, Page, UpstreamError, Window};

use crate::common::*;
use crate::hacker_news::mentions;
use crate::usaspending::award_of;

/// Returns a sample page; `None` where there are no samples.
fn sample(stream: &str, file: &str) -> Option<Page> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples");
    if !folder.exists() {
        return None;
    }
    let page = map(stream, std::fs::read(folder.join(file)).unwrap()).unwrap();
    assert_eq!(page.rejects, []);
    Some(page)
}

/// Proves that real records of the Consumer Product Safety Commission are mapped completely.
#[test]
fn cpsc() {
    let Some(page) = sample("cpsc", "cpsc/recalls-2026-07.json") else { return };
    assert_eq!(page.observations.len(), 2);
    let (range, safe) = (with_key(&page, "cpsc/10854"), with_key(&page, "cpsc/10855"));
    assert_eq!((&*range.number, &*range.brand, &*range.date, &*range.remedy), ("26606", "Best Buy", "2026-07-09", "Repair"));
    assert_eq!(range.title, "Best Buy Recalls Insignia® Gas Ranges Due to Risk of Serious Injury from a Fire Hazard");
    assert_eq!(range.links, ["https://recalls-rappels.canada.ca/en/alert-recall/insigniar-gas-ranges-recalled-due-fire-hazard"]);
    assert_eq!((&*safe.brand, &*safe.units), ("BBRKIN", "9,100"));
}

/// Proves that real enforcement reports are mapped completely, one of them without a number.
#[test]
fn openfda() {
    let Some(page) = sample("openfda.food", "openfda/food-enforcement.json") else { return };
    assert_eq!(page.observations.len(), 3);
    let pop = with_key(&page, "openfda.food/H-1166-2026");
    assert_eq!(pop.title, "D'Dioses Fruit Pops, Inc.: Ice Pop");
    assert_eq!((&*pop.brand, &*pop.date, &*pop.initiated), ("D'Dioses Fruit Pops, Inc.", "2026-07-22", "2026-05-04"));
    assert_eq!((&*pop.classification, &*pop.event_number), ("Class I", "99040"));
    assert_eq!(pop.url, "https://www.accessdata.fda.gov/scripts/ires/index.cfm?Event=99040");
    let unnumbered = recall(&page.observations[2]);
    assert!(unnumbered.number.starts_with("EVT-99068-"));
    assert_eq!(unnumbered.date, "2026-06-10");
}

/// Returns a sample answer of EDGAR; `None` where there are no samples.
fn edgar_answer(file: &str, status: u16) -> Option<Answer> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/sec-edgar");
    folder.exists().then(|| Answer { status, ..ok(std::fs::read(folder.join(file)).unwrap()) })
}

/// Proves that real indexes are parsed completely, and that an empty and a missing one give none.
#[test]
fn edgar_indexes() {
    // In the first one, 28 rows were filed on earlier days: letters are published weeks later.
    for (file, day, rows, warnings) in [
        ("form.20200318.trimmed.idx", date(2020, 3, 18), 707, 1),
        ("master.20181231.idx", date(2018, 12, 31), 10, 0),
        ("form.empty-day.idx", TODAY, 0, 0),
    ] {
        let Some(answer) = edgar_answer(file, 200) else { return };
        let page = map_at("edgar.index", &start("edgar.index", &Window { from: Some(day), to: day }), &answer).unwrap();
        assert_eq!((page.observations.len(), page.rejects.len(), page.warnings.len()), (rows, 0, warnings), "{file}");
        for fact in crate::edgar::filings(&page) {
            assert!(!fact.company.is_empty() && !fact.company.contains("  ") && fact.filing_date <= day.to_string(), "{fact:?}");
            assert!(fact.form.len() <= 12 && fact.cik.len() == 10 && fact.accession.len() == 20, "{fact:?}");
        }
    }
    let Some(missing) = edgar_answer("archives-missing-file.403.xml", 403) else { return };
    assert_eq!(map_at("edgar.index", &start("edgar.index", &window()), &missing).unwrap().observations, []);
}

/// Proves that real feeds are parsed completely, with items only for 8-Ks.
#[test]
fn edgar_feeds() {
    for (file, parties) in [
        ("getcurrent.count40.start0.atom.xml", 40),
        ("getcurrent.type4.count100.start0.atom.xml", 100),
        // One filing names the same filer in the same role twice.
        ("getcurrent.type4.count100.start100.atom.xml", 99),
        ("getcurrent.with-8k-items.atom.xml", 100),
    ] {
        let Some(answer) = edgar_answer(file, 200) else { return };
        let page = map_at("edgar.current", &start("edgar.current", &window()), &answer).unwrap();
        assert_eq!((page.observations.len(), page.rejects.len()), (parties, 0), "{file}");
        for fact in crate::edgar::filings(&page) {
            assert_eq!(fact.items.is_empty(), !fact.form.starts_with("8-K"), "{fact:?}");
            assert!(fact.roles.len() == 1 && !fact.company.contains(&fact.cik) && !fact.company.is_empty(), "{fact:?}");
        }
        let events = crate::edgar::filings(&page).iter().filter(|fact| fact.form.starts_with("8-K")).count();
        assert!(file != "getcurrent.with-8k-items.atom.xml" || events == 63, "{events}");
    }
}

/// Proves that real lists of filings give their 8-Ks with items, and that an unknown filer has none.
#[test]
fn edgar_submissions() {
    let window = Window { from: None, to: date(2026, 3, 8) };
    for (file, events) in [("submissions.CIK0000940418.json", 0), ("submissions.CIK0001677077.json", 1)] {
        let Some(answer) = edgar_answer(file, 200) else { return };
        let page = map_at("edgar.submissions", &start("edgar.submissions", &window), &answer).unwrap();
        assert_eq!((page.observations.len(), page.rejects.len()), (events, 0), "{file}");
        if let Some(fact) = crate::edgar::filings(&page).first() {
            assert_eq!(
                (&*fact.accession, &*fact.items.join(","), &*fact.company),
                ("0001214659-26-002932", "1.01,9.01", "Alzamend Neuro, Inc.")
            );
        }
    }
    let Some(unknown) = edgar_answer("submissions-unknown-cik.404.xml", 404) else { return };
    assert_eq!(map_at("edgar.submissions", &start("edgar.submissions", &window), &unknown).unwrap().observations, []);
}

/// Proves that real ownership documents, without their submission file, are mapped completely for the requested filing.
#[test]
fn edgar_ownership() {
    let index = ok(format!(
        "CIK|Company Name|Form Type|Date Filed|File Name\n{}\n12|X|4|20260831|edgar/data/12/0000000012-26-000001.txt",
        "-".repeat(80)
    ));
    let at = map_at("edgar.ownership", &start("edgar.ownership", &window()), &index).unwrap().next.unwrap();
    for (file, rows, form, issuer, symbol) in [
        ("form3.nosecurities.xml", 1, "3", "0000867773", "SPWR"),
        ("form4.374water.xml", 2, "4", "0000933972", "SCWO"),
        ("form4.snow.xml", 7, "4", "0001640147", "SNOW"),
        ("form5.snow.xml", 1, "5", "0001640147", "SNOW"),
    ] {
        let Some(answer) = edgar_answer(file, 200) else { return };
        let transactions = String::from_utf8_lossy(&answer.body).matches("rivativeTransaction>").count() / 2;
        let page = map_at("edgar.ownership", &at, &answer).unwrap();
        let facts = crate::edgar::trades(&page);
        assert_eq!((facts.len(), page.rejects.len()), (rows, 0), "{file}");
        assert_eq!(transactions, facts.iter().filter(|fact| fact.is_trade()).count(), "{file}");
        for fact in facts {
            assert_eq!(
                (&*fact.form, &*fact.issuer_cik, &*fact.issuer_symbol, &*fact.accession),
                (form, issuer, symbol, "0000000012-26-000001")
            );
            assert!(!fact.is_trade() || (!fact.shares.is_empty() && !fact.date.is_empty() && !fact.code.is_empty()), "{fact:?}");
        }
    }
}

/// Proves that no real block page or outage page is accepted by any stream.
#[test]
fn edgar_pages() {
    for file in ["undeclared-automated-tool.html", "rate-threshold-exceeded.html", "getcurrent.503.html"] {
        let Some(answer) = edgar_answer(file, 200) else { return };
        for stream in ["edgar.current", "edgar.index", "edgar.submissions", "edgar.ownership", "edgar.tickers", "edgar.pdufa"] {
            let error = map_at(stream, &start(stream, &window()), &answer).unwrap_err();
            assert!(matches!(error, UpstreamError::Later { .. }), "{file} {stream}");
        }
    }
}

/// Proves that a real list of companies is read completely, with all tickers of a company, and that no real page of the server is a document.
#[test]
fn edgar_statements() {
    for (file, companies) in [("catalysts/company_tickers-first300.json", 300), ("sec-edgar/company_tickers.trimmed.json", 0)] {
        let Some(page) = sample("edgar.tickers", file) else { return };
        let facts = crate::edgar::statements(&page);
        assert!(facts.len() * 10 >= companies * 8 && !facts.is_empty(), "{file}: {}", facts.len());
        assert!(facts.iter().all(|fact| !fact.tickers.is_empty() && !fact.company.is_empty() && fact.cik.len() == 10), "{file}");
    }
    let next = fixture("edgar", "pdufa_search").unwrap().next.unwrap();
    let (upstream, stream) = stream("edgar.pdufa");
    let on = upstream.narrow(stream, &next, &Default::default()).unwrap();
    for file in ["undeclared-automated-tool.html", "rate-threshold-exceeded.html", "getcurrent.503.html"] {
        let Some(answer) = edgar_answer(file, 200) else { return };
        assert!(matches!(map_at("edgar.pdufa", &on, &answer), Err(UpstreamError::Later { .. })), "{file}");
    }
    let Some(missing) = edgar_answer("archives-missing-file.403.xml", 403) else { return };
    assert!(map_at("edgar.pdufa", &on, &missing).unwrap().observations.is_empty());
}

/// Proves that a real answer of the Federal Register is read, though it is about another agency: every document, and the address of the
/// next page, whose path differs from that of the search.
#[test]
fn federal_register() {
    let Some(page) = sample("federal_register.fda", "catalysts/federal-register-search.json") else { return };
    let facts = crate::federal_register::meetings(&page);
    assert_eq!((facts.len(), &*facts[0].number, &*facts[0].published), (5, "2026-07755", "2026-04-21"));
    assert!(facts.iter().all(|fact| fact.url.starts_with("https://www.federalregister.gov/documents/")));
    let next = path("federal_register.fda", &page.next.unwrap());
    assert!(next.starts_with("/api/v1/documents.json?conditions%5Bterm%5D=%22Bears+Ears%22&format=json"), "{next}");
}

/// Proves that real rows of the flat file are grouped to their two campaigns.
#[test]
fn nhtsa() {
    let Some(page) = sample("nhtsa.flat", "nhtsa/flat-rcl-post-2010.tsv") else { return };
    assert_eq!(page.observations.len(), 2);
    let (stream, light) = (with_key(&page, "nhtsa.flat/26V481000"), with_key(&page, "nhtsa.flat/26V421000"));
    assert_eq!(stream.title, "Mercedes-Benz USA, LLC: LATCHES/LOCKS/LINKAGES:DOORS:LOCK");
    assert_eq!((&*stream.brand, &*stream.date, &*stream.units), ("MERCEDES-BENZ", "2026-07-24", "310667"));
    assert_eq!(stream.hazard, "A vehicle rollaway increases the risk of a crash or injury.");
    assert!(stream.vehicles.contains(&"MERCEDES-BENZ C 300 2022".to_owned()));
    assert_eq!((&*light.brand, &*light.vehicles, &*light.aliases), ("RAM", &["RAM 1500 2026".to_owned()][..], &["62D".to_owned()][..]));
    assert_eq!(light.url, "https://www.nhtsa.gov/recalls?nhtsaId=26V421000");
}

/// Proves that a real record of the Food Safety and Inspection Service, not in an array, is mapped completely.
#[test]
fn fsis() {
    let Some(page) = sample("fsis", "fsis/class_i_state_specific.json") else { return };
    let recall = with_key(&page, "fsis/018-2026/en");
    assert_eq!((&*recall.agency, &*recall.number, &*recall.brand), ("USDA", "018-2026", "Shanghai Ravioli Corporation"));
    assert_eq!((&*recall.date, &*recall.hazard), ("2026-08-26", "Produced Without Benefit of Inspection"));
    assert_eq!(recall.distribution, "Maine, Massachusetts, New Hampshire, Rhode Island, Vermont");
    assert!(recall.url.starts_with("https://www.fsis.usda.gov/recalls-alerts/"));
}

/// Proves that real awards are mapped completely: one with every field, and answers to other requests, which have the number only in the
/// URL.
#[test]
fn nih_reporter() {
    let Some(page) = sample("nih_reporter", "nih-reporter/project-all-fields.json") else { return };
    let award = grant(&page.observations[0]);
    assert_eq!((&*page.observations[0].key, &*award.project_number), ("nih_reporter/10497514", "1R15DE032063-01A1"));
    assert_eq!((&*award.pi, &*award.pi_number, &*award.org), ("A.R.M. Ruhul Amin", "10583324", "MARSHALL UNIVERSITY"));
    assert_eq!((&*award.state, &*award.city, &*award.department, &*award.ic), ("WV", "Huntington", "PHARMACOLOGY", "NIDCR"));
    assert_eq!((award.amount, award.fiscal_year, &*award.notice_date), (Some(444_000), Some(2023), "2023-07-25"));
    assert_eq!((&*award.budget_start, &*award.budget_end, &*award.added), ("2023-08-01", "2026-07-31", "2023-08-05"));
    assert_eq!(award.terms, ["AKT1 gene", "Affect", "Animal Model"]);
    assert_eq!((&*award.url, award.categories.len()), ("https://reporter.nih.gov/project-details/10497514", 8));
    let page = sample("nih_reporter", "nih-reporter/projects-search-erbb2.json").unwrap();
    assert_eq!(page.observations.len(), 10);
    let award = grant(&page.observations[0]);
    assert_eq!((&*page.observations[0].key, &*award.pi, award.amount), ("nih_reporter/10697688", "Maria Morasso", Some(2_219_287)));
    assert_eq!((&*award.state, &*award.city), ("", ""));
}

/// Proves that real trials are mapped completely: two single ones, and the first page of a search with few fields.
#[test]
fn clinical_trials() {
    let Some(page) = sample("clinical_trials", "clinicaltrials/NCT04207047.json") else { return };
    let one = trial(&page.observations[0]);
    assert_eq!(
        (&*page.observations[0].key, &*one.sponsor, &*one.sponsor_class),
        ("clinical_trials/NCT04207047", "LUTRONIC Corporation", "INDUSTRY")
    );
    assert_eq!((&*one.status, &*one.last_known_status, &*one.phase), ("UNKNOWN", "ACTIVE_NOT_RECRUITING", "N/A"));
    assert_eq!((&*one.primary_completion, &*one.primary_completion_type, &*one.updated), ("2018-10-31", "ACTUAL", "2019-12-20"));
    assert_eq!((one.enrollment, one.interventions.len(), &*one.interventions[0].kind), (Some(3), 5, "DEVICE"));
    assert_eq!((one.states.len(), &*one.countries), (1, &["United States".to_owned()][..]));
    let page = sample("clinical_trials", "clinicaltrials/NCT06171568.json").unwrap();
    let one = trial(&page.observations[0]);
    assert_eq!((&*one.phase, &*one.status, &*one.start, &*one.start_type), ("", "NOT_YET_RECRUITING", "2024-02-01", "ESTIMATED"));
    assert_eq!((&*one.institutions, one.states.len()), (&["Neurosurgery - Lariboisière hospital".to_owned()][..], 0));
    let page = sample("clinical_trials", "clinicaltrials/search-page1-5of21.json").unwrap();
    assert_eq!((page.observations.len(), &*trial(&page.observations[0]).phase), (5, "PHASE2"));
    assert!(page.next.is_some());
}

/// Proves that real awards, actions and details of USAspending are mapped completely, through every stream.
#[test]
fn usaspending() {
    let file = |name: &str| format!("usaspending/{name}.json");
    let Some(actions) = sample("usaspending.transactions", &file("spending_by_transaction.page1")) else { return };
    assert_eq!(actions.observations.len(), 5);
    let base = award_of(&actions, "usaspending.transactions/CONT_AWD_1333BJ27C00280001_1344_-NONE-_-NONE-/0");
    assert_eq!((&*base.recipient, &*base.recipient_uei), ("GENERAL DYNAMICS INFORMATION TECHNOLOGY, INC.", "SMNWM6HN79X5"));
    assert_eq!(
        (base.action_cents, &*base.action_type, &*base.action_date, &*base.naics),
        (Some(6_048_825_195), "", "2026-10-01", "541519")
    );
    let taken = award_of(&actions, "usaspending.transactions/CONT_AWD_68HERC25F0013_6800_68HERC23D0002_6800/P00010");
    assert_eq!(
        (taken.action_cents, &*taken.action_type, &*taken.parent_piid, &*taken.psc),
        (Some(-2_890_900), "C", "68HERC23D0002", "R425")
    );

    let awards = sample("usaspending.awards", &file("spending_by_award_contracts")).unwrap();
    let webb = award_of(&awards, "usaspending.awards/CONT_AWD_GSFC0200211DNAS502200_8000_-NONE-_-NONE-");
    assert_eq!((webb.amount_cents, webb.outlays_cents), (Some(434_558_599_901), Some(51_911_295_652)));
    assert_eq!((&*webb.start, &*webb.end, &*webb.place_city, &*webb.place_zip), ("2003-10-01", "2022-12-25", "REDONDO BEACH", "90278"));
    assert_eq!(webb.url, "https://www.usaspending.gov/award/CONT_AWD_GSFC0200211DNAS502200_8000_-NONE-_-NONE-");

    let contract = sample("usaspending.details", &file("awards.contract")).unwrap();
    let tracers = award_of(&contract, "usaspending.details/CONT_AWD_80GSFC18C0008_8000_-NONE-_-NONE-");
    assert_eq!((&*tracers.potential_end, &*tracers.end, tracers.ceiling_cents), ("2025-08-23", "2025-08-19", Some(17_227_241_967)));
    assert_eq!((&*tracers.parent_recipient_uei, &*tracers.toptier_code, &*tracers.offers), ("Z1H9VJS8NG16", "080", "2"));
    assert_eq!(tracers.office, "NASA GODDARD SPACE FLIGHT CENTER");
    let vehicle = sample("usaspending.details", &file("awards.idv")).unwrap();
    let orion = award_of(&vehicle, "usaspending.details/CONT_IDV_80JSC019C0012_8000");
    assert_eq!((orion.is_vehicle(), &*orion.end, &*orion.potential_end, &*orion.holders), (true, "2030-09-30", "", "SINGLE AWARD"));
    assert_eq!((orion.exercised_cents, orion.ceiling_cents), (None, Some(1_048_931_461_900)));

    let history = sample("usaspending.details", &file("awards.transactions")).unwrap();
    assert_eq!(history.observations.len(), 3);
    let funded = award_of(&history, "usaspending.details/CONT_AWD_80GSFC18C0008_8000_-NONE-_-NONE-/P00063/0");
    assert_eq!((funded.action_cents, &*funded.action_date, &*funded.award_type_code), (Some(28_204_629), "2025-06-05", "D"));
}

/// Proves that a real page of a Shopify storefront is mapped completely: a coming product whose variants are all sold out, and times with an
/// offset.
#[test]
fn shopify() {
    let Some(page) = sample("shopify", "restocks/shopify-products-kith-10.json") else { return };
    let facts: Vec<&StockFact> = page
        .observations
        .iter()
        .map(|observation| if let FactData::Stock(fact) = &observation.data { &**fact } else { panic!("{observation:?}") })
        .collect();
    let products: BTreeSet<&str> = facts.iter().map(|fact| fact.product_id.as_str()).collect();
    assert_eq!(products.len(), 10);
    let first = facts[0];
    assert_eq!(page.observations[0].key, "shopify/shop.example/v/45132974882944");
    assert_eq!(first.product_id, "8285549396096");
    assert!(first.title.ends_with("Women Bikini - Nocturnal PH"), "{}", first.title);
    assert_eq!((&*first.variant_title, &*first.vendor, &*first.handle), ("XS", "Kith Women", "gw002297f20417n-ph"));
    assert_eq!((first.available, first.price_cents), (false, Some(107_500)));
    assert_eq!((&*first.published_at, &*first.updated_at), ("2025-07-08T18:23:21Z", "2025-07-09T04:42:45Z"));
    assert!(facts.iter().filter(|fact| fact.product_id == first.product_id).all(|fact| !fact.available));
}

/// Proves that real rows of the census of motor carriers are mapped, with their numbers as published. The recorded rows have six columns; those that every
/// row has are added.
#[test]
fn motor_carriers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/fmcsa");
    let Ok(text) = std::fs::read_to_string(folder.join("census-large-carriers.json")) else { return };
    let mut rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(map("fmcsa.census", text).unwrap().rejects.len(), rows.len(), "a row without its day is no record");
    for row in &mut rows {
        for (name, value) in
            [("add_date", "20260918"), ("carrier_operation", "A"), ("classdef", "AUTHORIZED FOR HIRE"), ("phy_state", "AZ")]
        {
            row[name] = value.into();
        }
    }
    let page = map("fmcsa.census", serde_json::to_vec(&rows).unwrap()).unwrap();
    assert_eq!((page.observations.len(), page.rejects.len()), (5, 0));
    let last = crate::fmcsa::carrier(&page.observations[4]);
    assert_eq!((&*last.legal_name, &*last.power_units, &*last.status), ("FEDEX GROUND PACKAGE SYSTEM INC", "101844", "I"));
}

/// Proves that each real amount of filings is read as whole dollars.
#[test]
fn amounts_of_filings() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/fmcsa/motus-amount-scale.json");
    let Ok(text) = std::fs::read_to_string(file) else { return };
    let sample: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cursor = r#"{"v":1,"from":"2026-09-01","step":"on_file","carriers":["1"]}"#;
    let cursor = schemas::position::UpstreamCursor(cursor.to_owned());
    for (row, dollars) in
        sample["distribution"].as_array().unwrap().iter().zip(["750000", "1000000", "75000", "5000", "5000000", "2000000"])
    {
        let body = serde_json::json!([{"usdot_number": "1", "bipd_file": row["max_cov_amount"]}]).to_string();
        let page = map_at("fmcsa.cancellations", &cursor, &ok(body)).unwrap();
        assert_eq!(crate::fmcsa::carrier(&page.observations[0]).bipd_on_file, dollars);
    }
}

/// Proves that the data file of classes has each class of the county's own dictionary, and for the classes without an incentive the levels of the county.
#[test]
fn cook_county_classes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/cook-county");
    if !folder.exists() {
        return;
    }
    let rows = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let levels = rows("level-of-assessment-2021-on.csv");
    let mut compared = 0;
    for row in levels.lines().skip(1) {
        let [_, class, level] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let level: f64 = level.parse().unwrap();
        // A class of the levels that the dictionary does not have has no parcels.
        if level > 0.0 && class.starts_with(['1', '2', '3', '4', '5']) && texts::cook::is_class(class) {
            assert_eq!(texts::cook::level(class), Some((level * 10_000.0).round() as i64), "{row}");
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
    let dictionary = rows("class-dictionary.csv");
    let classes: Vec<&str> = dictionary.lines().skip(1).filter_map(|row| row.split(',').nth(6)).collect();
    assert!(classes.len() > 200 && classes.iter().all(|class| texts::cook::is_class(class)), "{classes:?}");
}

/// Proves that a real row of assessments is mapped: numbers with a point, days with the month first, blanks, and an exempt parcel of a university.
#[test]
fn allegheny_county_assessments() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/allegheny");
    let Ok(text) = std::fs::read_to_string(folder.join("property-api-parcel-0028F00194000000.json")) else { return };
    let sample: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut row = sample["results"][0]["data"]["assessments"][0].clone();
    row["PARID"] = sample["results"][0]["parcel_id"].clone();
    let body = serde_json::json!({ "success": true, "result": { "records": [row], "total": 1 } });
    let page = map("allegheny.assessments", body.to_string()).unwrap();
    let FactData::Parcel(fact) = &page.observations[0].data else { panic!("{page:?}") };
    assert_eq!((&*page.observations[0].key, &*fact.pin), ("allegheny.assessments/0028F00194000000", "0028F00194000000"));
    assert_eq!((fact.year, &*fact.class, &*fact.township, &*fact.neighborhood), (2018, "G670", "104", "51C34"));
    assert_eq!((fact.certified, &*fact.street, &*fact.city, &*fact.zip), (Some(3_819_300), "3343 FORBES AVE", "PITTSBURGH", "15213"));
    assert_eq!((fact.is_exempt, fact.is_homestead, &*fact.owner_kind, &*fact.sale_date), (true, false, "CORPORATION", "2000-11-20"));
    assert_eq!((&*fact.use_label, &*fact.mailing_hash), ("OWNED BY COLLEGE/UNIV/ACADEMY", ""));
}

/// Proves that the PIN that the publisher of real liens expects is the only one of all known PINs that a block-lot can mean, and that one without a PIN has
/// none.
#[test]
fn allegheny_county_block_lots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/allegheny");
    let Ok(text) = std::fs::read_to_string(folder.join("block-lot-to-pin.csv")) else { return };
    let pairs: Vec<(&str, &str)> = text.lines().skip(1).filter_map(|line| line.split_once(',')).collect();
    let known: BTreeSet<&str> = pairs.iter().map(|(_, pin)| *pin).collect();
    assert_eq!(pairs.len(), 18);
    for (block_lot, pin) in pairs {
        let found: Vec<String> =
            texts::allegheny::pins_of_block_lot(block_lot).into_iter().filter(|pin| known.contains(pin.as_str())).collect();
        assert_eq!(found.join(","), pin, "{block_lot}");
    }
}

/// Proves that real items of the own API of Hacker News are mapped completely, without an advertisement for a job.
#[test]
fn hacker_news() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples");
    if !folder.exists() {
        return;
    }
    let body = std::fs::read(folder.join("phrases/hn-firebase-items-2015.json")).unwrap();
    let items: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
    let (upstream, stream) = stream("hacker_news");
    let page = upstream.map(stream, &upstream.start(stream, &window(), &settings()), &ok(body), TODAY).unwrap();
    assert_eq!(page.rejects, []);
    let facts = mentions(&page);
    assert_eq!(facts.len(), items.iter().filter(|item| item["type"] == "story").count());
    let seuss = facts.iter().find(|fact| fact.id == "9933147").unwrap();
    assert_eq!((&*seuss.title, &*seuss.author, &*seuss.domain), ("Dr. Seuss Book: Yes, They Found It in a Box", "pepys", "nytimes.com"));
    assert_eq!((&*seuss.published_at, &*seuss.hour, seuss.points), ("2015-07-22T23:54:53Z", "2015-07-22T23", Some(27)));
    let bosun = facts.iter().find(|fact| fact.id == "9934074").unwrap();
    assert_eq!((&*bosun.title, &*bosun.url), ("Bosun – open-source monitoring and alerting system by Stack Exchange", "http://bosun.org/"));
    assert!(facts.iter().all(|fact| !fact.title.is_empty() && !fact.author.is_empty() && (fact.url.is_empty() == fact.domain.is_empty())));
}

/// Proves that real case files are mapped completely: a full one, and one with only the status.
#[test]
fn uspto_trademarks() {
    let Some(page) = sample("uspto_trademarks.annual", "uspto-trademarks/case-file.annual-full.60146682.xml") else { return };
    let full = crate::uspto_trademarks::mark(&page, 0);
    assert_eq!(page.observations[0].key, "uspto_trademarks/60146682");
    assert_eq!((&*full.mark, &*full.registration, &*full.status_code, &*full.drawing_code), ("MACHINE-PISTOL", "0146682", "626", "3"));
    assert_eq!((&*full.filing_date, &*full.registration_date), ("1920-09-25", "1921-09-20"));
    assert_eq!((&*full.status_date, &*full.transaction_date), ("2005-10-11", "2016-03-16"));
    assert_eq!((&full.owners[..], full.sparse), (&["AUTO ORDNANCE CORPORATION".to_owned()][..], false));
    let class = &full.classes[0];
    let expected = ("009", "6", "2010-04-08", "1920-09-13");
    assert_eq!((full.classes.len(), (&*class.code, &*class.status_code, &*class.status_date, &*class.first_use)), (1, expected));
    assert_eq!((&*full.goods[0].code, &*full.goods[0].text, full.raw_dates.len()), ("009", "pistols", 0));
    let page = sample("uspto_trademarks.annual", "uspto-trademarks/case-file.annual-status-only.60172053.xml").unwrap();
    let sparse = crate::uspto_trademarks::mark(&page, 0);
    assert!(sparse.sparse && sparse.mark.is_empty() && sparse.owners.is_empty() && sparse.classes.is_empty());
    assert_eq!((&*sparse.serial, &*sparse.status_code, &*sparse.status_date), ("60172053", "626", "2005-10-25"));
    assert_eq!((&*sparse.registration_date, &*sparse.drawing_code), ("1923-08-21", "0"));
}

/// Proves that what real notes say of directives is read as the search shows it: number, title, abstract and day of every document.
#[test]
fn directives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples/faa-ad/abstracts");
    let Ok(files) = std::fs::read_dir(folder) else { return };
    let mut read = 0;
    for file in files {
        let note = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let after = |mark: &str| note.split_once(mark).map(|(_, rest)| rest.lines().next().unwrap_or_default().trim()).unwrap();
        let (number, title) = (after("**Document Number:** "), after("title: \"").trim_end_matches('"'));
        let published = after("original_published: ").split(' ').next().unwrap();
        let summary = note.split_once("## Summary").unwrap().1.trim().lines().next().unwrap();
        let found = crate::directives::found(number, title, summary, published);
        let answer = ok(serde_json::json!({ "count": 1, "results": [found] }).to_string());
        let at = start("federal_register.ads", &Window { from: Some(published.parse().unwrap()), to: date(2026, 9, 30) });
        let page = map_at("federal_register.ads", &at, &answer).unwrap();
        assert_eq!(page.rejects, []);
        let (upstream, stream) = stream("federal_register.ads");
        assert_eq!(upstream.depends_on(stream, &page.next.clone().unwrap()), [format!("federal_register.ads/{number}@{published}")]);
        let next = upstream.narrow(stream, &page.next.unwrap(), &Default::default()).unwrap();
        let text = format!("2026-15-05 Acme: Amendment 39-1.\n\n(c) Applicability\n\n{summary}");
        let page = map_at("federal_register.ads", &next, &ok(text)).unwrap();
        let fact = crate::directives::directives(&page)[0];
        assert_eq!((&*fact.number, &*fact.title, &*fact.summary), (number, title, summary));
        read += 1;
    }
    assert_eq!(read, 19);
}
