//! The licences of what upstreams publish, which the reference page of each service (`/docs`) shows of those that it reads: whoever passes its records on has
//! to know them.

use projector::service_def::ServiceDef;
use schemas::topics::Topic;
use texts::data_file::ShownFile;
use upstreams::{Licence, Manifest};

/// The name of the data file.
const NAME: &str = "licences";
/// The version of the list; a change of a licence increases it.
const VERSION: u32 = 1;

/// The licences of the upstreams that a service reads, directly or through another service, as a data file; `None` if it reads none.
pub(crate) fn of(service: &str, defs: &[ServiceDef]) -> Option<ShownFile> {
    let def = defs.iter().find(|def| def.view.name == service)?;
    let manifests = upstreams::ALL.iter().map(|upstream| upstream.manifest());
    let read = manifests.filter(|manifest| manifest.streams.iter().any(|stream| reads(def, stream.topic, defs)));
    let entry = |Manifest { name, licence: Licence { terms, publisher }, .. }: &Manifest| {
        ((*name).to_owned(), vec![(*terms).to_owned(), (*publisher).to_owned()])
    };
    let entries: Vec<(String, Vec<String>)> = read.map(entry).collect();
    let about = "The licence of the data of each upstream, and its publisher. Whoever passes records on observes it.".to_owned();
    (!entries.is_empty()).then(|| ShownFile { name: NAME, version: VERSION, about, sources: Vec::new(), entries })
}

/// Whether a service decides from the records of a topic, or from the changes of a service that does.
fn reads(def: &ServiceDef, topic: &Topic, defs: &[ServiceDef]) -> bool {
    let is_of_input = |other: &&ServiceDef| def.reads(other.changes);
    def.reads(topic) || defs.iter().filter(is_of_input).any(|other| reads(other, topic, defs))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the data files of each service name the licence of every upstream that it reads, also through another service, but of receipts, which are
    /// made here; and that coverage has a list of its own, by source.
    #[test]
    fn services_name_their_licences() {
        for registration in crate::registered() {
            let name = registration.service.name;
            let files: Vec<&ShownFile> = registration.service.data.iter().filter(|file| file.name == NAME).collect();
            assert_eq!(files.len(), usize::from(name != "receipts"), "{name}");
            let named: Vec<&str> = files.iter().flat_map(|file| &file.entries).map(|(upstream, _)| upstream.as_str()).collect();
            let values = || files.iter().flat_map(|file| &file.entries).flat_map(|(_, values)| values);
            assert!(values().all(|value| !value.is_empty()) && values().count() == 2 * named.len(), "{name}");
            let expected: &[&str] = match name {
                "aviation" => &["faa_drs", "federal_register"],
                "catalysts" => &["clinical_trials", "edgar", "federal_register"],
                "exclusions" => &["edgar", "sam_exclusions", "usaspending"],
                "labs" => {
                    assert!(!named.contains(&"clinical_trials"), "{named:?}");
                    &["nih_reporter"]
                }
                "parcels" => &["allegheny", "chicago", "cook"],
                "phrases" => &["hacker_news", "wikimedia"],
                "recalls" => &["cpsc", "fsis", "nhtsa", "openfda"],
                "research" => &["clinical_trials", "nih_reporter"],
                _ => continue,
            };
            assert!(expected.iter().all(|upstream| named.contains(upstream)), "{name}: {named:?}");
        }
    }
}
