//! Real records as other public projects recorded them, where the folder that holds them stands beside this checkout.

use std::path::Path;

use upstreams::Page;

use crate::common::*;

/// The page of a sample; `None` where there are no samples.
fn sample(door: &str, file: &str) -> Option<Page> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstreams/samples");
    if !folder.exists() {
        return None;
    }
    let page = map(door, std::fs::read(folder.join(file)).unwrap()).unwrap();
    assert_eq!(page.rejects, []);
    Some(page)
}

/// Proves that real records of the Consumer Product Safety Commission are mapped whole.
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

/// Proves that real enforcement reports are mapped whole, one of them without a number.
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

/// Proves that real rows of the flat file are grouped to their two campaigns.
#[test]
fn nhtsa() {
    let Some(page) = sample("nhtsa.flat", "nhtsa/flat-rcl-post-2010.tsv") else { return };
    assert_eq!(page.observations.len(), 2);
    let (door, light) = (with_key(&page, "nhtsa.flat/26V481000"), with_key(&page, "nhtsa.flat/26V421000"));
    assert_eq!(door.title, "Mercedes-Benz USA, LLC: LATCHES/LOCKS/LINKAGES:DOORS:LOCK");
    assert_eq!((&*door.brand, &*door.date, &*door.units), ("MERCEDES-BENZ", "2026-07-24", "310667"));
    assert_eq!(door.hazard, "A vehicle rollaway increases the risk of a crash or injury.");
    assert!(door.vehicles.contains(&"MERCEDES-BENZ C 300 2022".to_owned()));
    assert_eq!((&*light.brand, &*light.vehicles, &*light.aliases), ("RAM", &["RAM 1500 2026".to_owned()][..], &["62D".to_owned()][..]));
    assert_eq!(light.url, "https://www.nhtsa.gov/recalls?nhtsaId=26V421000");
}

/// Proves that a real record of the Food Safety and Inspection Service, not in an array, is mapped whole.
#[test]
fn fsis() {
    let Some(page) = sample("fsis", "fsis/class_i_state_specific.json") else { return };
    let recall = with_key(&page, "fsis/018-2026/en");
    assert_eq!((&*recall.agency, &*recall.number, &*recall.brand), ("USDA", "018-2026", "Shanghai Ravioli Corporation"));
    assert_eq!((&*recall.date, &*recall.hazard), ("2026-08-26", "Produced Without Benefit of Inspection"));
    assert_eq!(recall.distribution, "Maine, Massachusetts, New Hampshire, Rhode Island, Vermont");
    assert!(recall.url.starts_with("https://www.fsis.usda.gov/recalls-alerts/"));
}
