//! Properties of the simulated registers: conditions, pages and columns of Socrata, and what makes clients fail there.

use super::*;

const CENSUS: &str = "/resource/az4n-8mr2.json";
const COLORADO: &str = "/resource/4ykn-tg5h.json";
const OREGON: &str = "/resource/esjy-u4fc.json";
const AUTHORITY: &str = "/resource/yu5v-wbh6.json";

fn rows(sim: &Simulator, path: &str, query: &str) -> Vec<Value> {
    let answer = get(sim, path, query);
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    list(&answer)
}

/// Proves that conditions select by day and by number, that a number is quoted only in columns of texts, and that an unknown column is named.
#[test]
fn conditions() {
    let sim = Simulator::new(options(60));
    let recent = rows(&sim, CENSUS, "$where=add_date%20%3E%3D%20'20261117'&$limit=50000");
    assert!(recent.len() > 10 && recent.iter().all(|row| row["add_date"].as_str() >= Some("20261117")));
    assert_eq!(rows(&sim, CENSUS, "$where=dot_number%20in(4312345,3100001)").len(), 2);
    let padded = "$where=usdot_number%20in('3100003','03100003')&$select=usdot_number,reason";
    assert_eq!(
        rows(&sim, AUTHORITY, padded),
        [json!({"usdot_number": "03100003", "reason": "PENDING"}), json!({"usdot_number": "3100003", "reason": "GRANTED"})]
    );
    for (query, part) in [
        ("$where=usdot_number%20in(3100003)", "Type mismatch"),
        ("$select=usdot_number,fleet", "\"column\":\"fleet\""),
        ("$where=fleet%20%3E%20'1'", "\"column\":\"fleet\""),
        ("$where=reason%20LIKE%20'a'", "Could not parse"),
        ("$where=reason%20=%20'a", "Could not parse"),
    ] {
        let answer = get(&sim, AUTHORITY, query);
        assert_eq!(answer.status, 400, "{query}");
        assert!(String::from_utf8_lossy(&answer.body).contains(part), "{query}");
    }
}

/// Proves that on each of the last days a carrier of the census is granted authority as a broker, so that a demo has such leads.
#[test]
fn brokers() {
    let sim = Simulator::new(options(60));
    let granted = rows(&sim, AUTHORITY, "$where=status_change_date%20%3E%3D%20'20261117'%20AND%20reason%20=%20'GRANTED'&$limit=50000");
    let granted_of = |kind: &str| granted.iter().filter(|row| row["op_auth_type"].as_str().unwrap().starts_with(kind)).collect::<Vec<_>>();
    assert!(granted_of("Broker").len() > 1 && granted_of("Motor Carrier").len() > 1, "{granted:?}");
    for row in granted_of("Broker") {
        let carriers = rows(&sim, CENSUS, &format!("$where=dot_number%20in({})", row["usdot_number"].as_str().unwrap()));
        assert_eq!(carriers.len(), 1, "{row}");
    }
}

/// Proves that pages of keys read each row once, that days in both spellings are in order, and that the list of Oregon fills a page exactly.
#[test]
fn pages() {
    let sim = Simulator::new(options(60));
    let all = rows(&sim, COLORADO, "$select=:id,entityid,entityformdate&$order=entityformdate,:id&$limit=50000");
    let ids: BTreeSet<&str> = all.iter().map(|row| row["entityid"].as_str().unwrap()).collect();
    assert!(all.len() > 100 && ids.len() == all.len());
    let at = all.iter().position(|row| row["entityformdate"] == "11/15/2026").unwrap();
    assert!(all[at - 1]["entityformdate"].as_str() <= Some("2026-11-15T00:00:00.000"));
    assert_eq!(rows(&sim, OREGON, "").len(), 1_000);
    assert!(rows(&sim, OREGON, "$order=registry_number,:id&$where=(registry_number%20%3E%20'2026100245')").len() < 1_000);
}

/// Proves that the address of Iowa's register redirects to a stored archive of zip64 whose last row is followed by other bytes, and that every trap is in it.
#[test]
fn the_archive_of_iowa() {
    let sim = Simulator::new(options(60));
    let without_key = |path: &str| {
        let request = Request { path, query: "", body: &[], key: None, visit: sim.visit("") };
        sim.render(Endpoint::at(path).unwrap(), request, &Plan::default())
    };
    let redirect = without_key("/api/v1/datasets/554/rows.json");
    let location = redirect.location.unwrap();
    assert_eq!(redirect.status, 303);
    let answer = without_key(location.split('?').next().unwrap());
    assert!(answer.etag.is_none() && answer.last_modified.is_none());
    let mut zip = zip::ZipArchive::new(Cursor::new(&answer.body)).unwrap();
    let mut text = String::new();
    zip.by_index(0).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((zip.len(), zip.by_index_raw(0).unwrap().compression()), (1, zip::CompressionMethod::Stored));
    let end = answer.body.windows(4).position(|bytes| bytes == b"PK\x07\x08").unwrap();
    assert!(answer.body[..end].ends_with(text.as_bytes()) && !text.ends_with('\n'));
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let days: Vec<&str> = rows.iter().map(|row| row["effective_date"].as_str().unwrap()).collect();
    assert!(rows.len() > 100 && days.iter().max() <= Some(&"2026-11-15") && !days.is_sorted());
    assert!(rows.iter().any(|row| row["corp_number"].is_string()) && rows.iter().any(|row| row["corp_number"].is_number()));
    assert!(rows.iter().any(|row| row["ra_address_1"] == "312 CARTER ST" && row["ho_address_1"] == "312 EAST CARTER STREET"));
    assert!(rows.iter().any(|row| row.get("ho_city").is_none()));
    assert!(rows.iter().filter(|row| row["ra_address_1"] == "1 AGENT PLAZA").count() > 100);
    // The next file lacks a few entities, which have ended.
    sim.set_today(jiff::civil::date(2026, 12, 16));
    let next = without_key(location.split('?').next().unwrap());
    let mut next_text = String::new();
    zip::ZipArchive::new(Cursor::new(&next.body)).unwrap().by_index(0).unwrap().read_to_string(&mut next_text).unwrap();
    let next: Vec<Value> = next_text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended = rows.iter().filter(|row| next.iter().all(|other| other["corp_number"] != row["corp_number"])).count();
    assert!(ended > 0 && ended < rows.len() / 5, "{ended} of {}", rows.len());
}

/// Proves that a blank token is refused, and the faults that only these datasets have.
#[test]
fn refusals() {
    let sim = Simulator::new(options(60));
    let endpoint = Endpoint::at(CENSUS).unwrap();
    let answer_with = |key, name: Option<&str>| {
        let mut faults = Faults::default();
        if let Some(name) = name {
            faults.set(name, 1.0).unwrap();
        }
        let plan = faults.draw("fmcsa.census", "add_date", Random::new(1, 2, 3));
        let answer = sim.render(endpoint, Request { path: CENSUS, query: "", body: &[], key, visit: sim.visit("") }, &plan);
        (answer.status, answer.body.starts_with(b"["))
    };
    assert_eq!(
        [answer_with(None, None), answer_with(Some("token"), None), answer_with(Some(" "), None)],
        [(200, true), (200, true), (403, false)]
    );
    assert_eq!([answer_with(None, Some("202")), answer_with(None, Some("error_object"))], [(202, false), (200, false)]);
}
