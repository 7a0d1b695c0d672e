//! The airworthiness directives of the Federal Register: rules only, oldest first, each with a text at its address.

use super::*;

/// Proves that the search for rules of part 39 shows no proposal, page by page, that each document has a text, and that documents of the future have
/// none.
#[test]
fn directives_have_texts() {
    let sim = Simulator::new(options(600));
    let path = "/api/v1/documents.json";
    let mut query = "conditions[cfr][title]=14&conditions[cfr][part]=39&conditions[type][]=RULE&order=oldest".to_owned();
    let mut documents: Vec<Value> = Vec::new();
    loop {
        let page = value(&get(&sim, path, &query));
        documents.extend(page["results"].as_array().unwrap().iter().cloned());
        match page["next_page_url"].as_str().and_then(|next| next.split_once('?')) {
            Some((_, next)) => query = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(documents.len(), 11);
    assert!(documents.windows(2).all(|pair| text(&pair[0]["publication_date"]) <= text(&pair[1]["publication_date"])));
    for document in &documents {
        assert_eq!(document["type"], "Rule");
        let address = text(&document["raw_text_url"]);
        let answer = get(&sim, address.strip_prefix("https://www.federalregister.gov").unwrap(), "");
        assert_eq!(answer.status, 200, "{address}");
    }
    let later = "/documents/full_text/text/2026/11/23/2026-18101.txt";
    assert_eq!(get(&sim, later, "").status, 404);
    sim.set_today(date(2026, 11, 23));
    assert_eq!(get(&sim, later, "").status, 200);
}
