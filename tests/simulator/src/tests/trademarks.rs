//! The content of the trademark register: lists, archives, and the files with a bad first day.

use super::*;
use crate::render::Request;

const LIST: &str = "/api/v1/datasets/products/TRTDXFAP";
const YEARLY_LIST: &str = "/api/v1/datasets/products/TRTYRAP";

/// The names of the parts of the yearly set, sorted.
pub(super) fn yearly_names(sim: &Simulator) -> BTreeSet<String> {
    names_of(sim, YEARLY_LIST)
}

/// The document of a part of the yearly set.
pub(super) fn yearly_text(sim: &Simulator, name: &str) -> String {
    document(&file(sim, "TRTYRAP", name))
}

fn names(sim: &Simulator) -> BTreeSet<String> {
    names_of(sim, LIST)
}

fn names_of(sim: &Simulator, list: &str) -> BTreeSet<String> {
    let body: Value = serde_json::from_slice(&get(sim, list, "").body).unwrap();
    let files = body["bulkDataProductBag"][0]["productFileBag"]["fileDataBag"].as_array().unwrap();
    files.iter().map(|file| file["fileName"].as_str().unwrap().to_owned()).filter(|name| name.ends_with(".zip")).collect()
}

/// Requests a path without a key.
fn without_key(sim: &Simulator, path: &str) -> Answer {
    let request = Request { path, query: "", body: &[], key: None, visit: sim.visit("") };
    sim.render(Endpoint::at(path).unwrap(), request, &Plan::default())
}

fn document(answer: &Answer) -> String {
    let mut zip = zip::ZipArchive::new(Cursor::new(&answer.body)).unwrap();
    let mut text = String::new();
    zip.by_index(0).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn file(sim: &Simulator, product: &str, name: &str) -> Answer {
    let path = format!("/api/v1/datasets/products/files/{product}/{name}");
    let redirect = get(sim, &path, "");
    let location = redirect.location.unwrap();
    without_key(sim, location.split('?').next().unwrap())
}

/// Proves that a key is needed, that the signed address refuses it, and that every trap of the register is in a file.
#[test]
fn files_and_traps() {
    let sim = Simulator::new(options(600));
    assert_eq!(without_key(&sim, LIST).status, 403);
    assert_eq!(get(&sim, "/simulated-signed-files/TRTDXFAP/apc261119.zip", "").status, 400);
    let days = names(&sim);
    assert_eq!((days.len(), days.last().unwrap().as_str()), (20, "apc261119.zip"));
    let all: String = days.iter().map(|name| document(&file(&sim, "TRTDXFAP", name))).collect();
    let set = document(&file(&sim, "TRTYRAP", "apc18840407-20251231-01.zip"));
    assert!(set.matches("<case-file>").count() > 60 && set.contains("<mark-identification>VELTRAXON<"));
    for (text, trap) in [
        (&all, "<party-type>43</party-type>"),
        (&all, "<registration-number>0000000<"),
        (&all, "<status-date>20051</status-date>"),
        (&all, "<international-code>043</international-code><international-code>041</international-code>"),
        (&all, "<correspondent></correspondent></case-file>"),
        (&all, "<status-code>602</status-code>"),
        (&set, "<first-use-anywhere-date>19200900<"),
        (&set, "<status-code>999</status-code>"),
        (&set, "<mark-drawing-code>2</mark-drawing-code>"),
    ] {
        assert!(text.contains(trap), "{trap}");
    }
    assert!(all.matches("<code>CHAN</code>").count() > 26_000);
    assert_eq!(all.matches("<serial-number>97000111<").count(), 2);
}

/// Proves that a day is missing for two days, and that three files are bad on their first day and good on the next.
#[test]
fn bad_first_days() {
    let sim = Simulator::new(options(600));
    let day = |offset: i64| date(2026, 11, 20).saturating_add(jiff::ToSpan::days(offset));
    sim.set_today(day(4));
    assert!(!names(&sim).contains("apc261122.zip") && names(&sim).contains("apc261123.zip"));
    sim.set_today(day(5));
    assert!(names(&sim).contains("apc261122.zip"));
    sim.set_today(day(7));
    let html = file(&sim, "TRTDXFAP", "apc261126.zip");
    assert!(html.status == 200 && html.body.starts_with(b"<!DOCTYPE html>"));
    sim.set_today(day(10));
    assert!(document(&file(&sim, "TRTDXFAP", "apc261129.zip")).contains("<!ENTITY b \"&a;"));
    assert!(document(&file(&sim, "TRTDXFAP", "apc261126.zip")).contains("<case-file>"));
    sim.set_today(day(13));
    assert!(zip::ZipArchive::new(Cursor::new(file(&sim, "TRTDXFAP", "apc261202.zip").body)).is_err());
    sim.set_today(day(14));
    assert!(document(&file(&sim, "TRTDXFAP", "apc261202.zip")).contains("<case-file>"));
}
