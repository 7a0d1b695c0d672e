//! A feed over a filled view, as Atom documents, and how caches keep its pages.

use std::sync::Arc;

use feed::testing::{HOUR_MS, SOURCE, START_MS, World};
use feed::{Source, changes};
use operation::context::{Context, ServiceSettings, Settings};
use quick_xml::Reader;
use quick_xml::events::Event;
use schemas::views::recalls::Recall;

use super::*;

const DAY_MS: i64 = 24 * HOUR_MS;
/// The text of a record that an XML document must not take for its own: markup, an end of CDATA, and characters that XML forbids even escaped.
const HOSTILE: &str = "</title><script>&\"' ]]> \u{0}\u{b}\u{1b}\u{fffe}\u{ffff} \u{1f600} \u{202e}end";
/// The same text as a reader of a document gets it.
const HARMLESS: &str = "</title><script>&\"' ]]>  \u{1f600} \u{202e}end";

/// A site with the feed of a view, at a time.
struct Feed {
    world: World,
    site: Arc<Site>,
}

impl Feed {
    async fn new(records: &[(i64, Recall)], source: Source, now_ms: i64) -> Self {
        let mut world = World::new().await;
        for (at_ms, record) in records {
            world.change(*at_ms, record);
        }
        world.commit().await;
        let site = Self::site(&world, source, now_ms);
        Self { world, site }
    }

    /// The site at a time.
    fn site(world: &World, source: Source, now_ms: i64) -> Arc<Site> {
        let services = BTreeMap::from([("fake".to_owned(), ServiceSettings::new(BASE.to_owned(), "/fake".to_owned()))]);
        let tiers = Tiers::of_two(Limits::new(100, 0, 25, 0, 0), Limits::new(100_000, 50_000, 200, 20, 50));
        let clock = Clock::Fixed(schemas::clock::rfc3339(now_ms).parse().unwrap());
        let secrets = Secrets::from_master(&[7; 32]).unwrap();
        let context = Context::new(Settings::new(services, tiers), clock, secrets, world.log.clone(), world.store.clone());
        let record = Definition { surface: Surface::Route, ..words("record", Method::Get, "/v1/records/{id}") };
        let record = Operation::define::<ById, Anything, _, _>(record, |_: Call, by: ById| async move { value(json!({"id": by.id})) });
        let operations = vec![changes::operation::<Recall>(source, changes::example()), record];
        let service = Service {
            name: "fake",
            title: "Fakes & <more>",
            about: "Made up.",
            operations,
            files: None,
            data: Vec::new(),
            page: operation::RecordPage::default(),
        };
        Arc::new(Site::new(Arc::new(context), vec![service], Arc::new(|| Ok(()))).unwrap())
    }

    async fn ask(&self, ask: Ask) -> Read {
        ask.reply(Arc::clone(&self.site)).await
    }

    async fn get(&self, path: &str) -> Read {
        self.ask(ask().path(path)).await
    }
}

fn recall(id: &str, title: &str) -> Recall {
    Recall { id: id.to_owned(), title: title.to_owned(), url: "https://www.cpsc.gov/a?b=1&c=2".to_owned(), ..Recall::default() }
}

/// Recalls, one every hour.
fn recalls(count: i64) -> Vec<(i64, Recall)> {
    (0..count).map(|n| (START_MS + n * HOUR_MS, recall(&format!("CPSC:{n}"), &format!("title {n}")))).collect()
}

/// The name of an element of an XML document, its attributes and the text directly in it.
type Element = (String, BTreeMap<String, String>, String);

/// The elements of an XML document in order. Fails if the document is not well-formed.
fn elements(text: &str) -> Vec<Element> {
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let (mut found, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
    loop {
        let event = reader.read_event().unwrap();
        match event {
            Event::Start(start) => {
                let name = start.name().as_ref().to_owned();
                let attributes = start.attributes().map(|attribute| {
                    let attribute = attribute.unwrap();
                    (attribute.key.as_ref().to_owned(), quick_xml::escape::unescape(&attribute.value).unwrap().into_owned())
                });
                found.push((name, attributes.collect(), String::new()));
                open.push(found.len() - 1);
            }
            Event::End(_) => drop(open.pop().unwrap()),
            Event::Text(text) => {
                if let Some(at) = open.last() {
                    found[*at].2.push_str(&text);
                }
            }
            Event::GeneralRef(reference) => {
                found[*open.last().unwrap()].2.push_str(&quick_xml::escape::unescape(&format!("&{};", &*reference)).unwrap());
            }
            Event::Eof => return found,
            _ => {}
        }
    }
}

/// The texts of all elements of a name.
fn texts(document: &str, name: &str) -> Vec<String> {
    elements(document).into_iter().filter(|(own, ..)| own == name).map(|(.., text)| text).collect()
}

/// The addresses of all links with a relation.
fn links(document: &str, relation: &str) -> Vec<String> {
    let all = elements(document).into_iter().filter(|(own, attributes, _)| own == "link" && attributes["rel"] == relation);
    all.map(|(_, attributes, _)| attributes["href"].clone()).collect()
}

/// The path and query of an address of the service.
fn below(url: &str) -> String {
    format!("/fake{}", url.strip_prefix(BASE).unwrap())
}

/// Proves that hostile texts stay texts, that forbidden characters are left out, that the content of an entry is the change of the JSON feed, and that
/// only addresses of the web become links.
#[tokio::test]
async fn hostile_texts() {
    let bad_link = Recall { url: "javascript:alert(1)".to_owned(), ..recall("CPSC:a/b c?d", "modest") };
    let feed = Feed::new(&[(START_MS, recall("CPSC:1", HOSTILE)), (START_MS + 1, bad_link)], SOURCE, START_MS + HOUR_MS).await;
    let read = feed.get("/fake/v1/changes.atom").await;
    assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "application/atom+xml"));
    assert_eq!(texts(&read.body, "title"), ["Fakes & <more>", format!("new: {HARMLESS}").as_str(), "new: modest"]);
    let shown: Vec<Value> = texts(&read.body, "content").iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let mut expected = feed.get("/fake/v1/changes").await.json()["changes"].clone();
    // JSON escapes control characters, so only what XML forbids as such is missing.
    expected[0]["record"]["title"] = json!(HOSTILE.replace(['\u{fffe}', '\u{ffff}'], ""));
    assert_eq!(json!(shown), expected);
    assert_eq!(links(&read.body, "related"), ["https://www.cpsc.gov/a?b=1&c=2"]);
    assert_eq!(
        links(&read.body, "alternate"),
        [format!("{BASE}/docs"), format!("{BASE}/v1/records/CPSC%3A1"), format!("{BASE}/v1/records/CPSC%3Aa%2Fb%20c%3Fd")]
    );
    for link in &links(&read.body, "alternate")[1..] {
        assert_eq!(feed.get(&below(link)).await.status, 200, "{link}");
    }
}

/// Proves that documents follow each other by their links without a gap, that ids are different and stay, that the document without a position has the
/// newest changes, and that an empty document is one.
#[tokio::test]
async fn documents_follow_each_other() {
    let feed = Feed::new(&recalls(60), SOURCE, START_MS + 90 * HOUR_MS).await;
    let (mut path, mut ids, mut seqs) = ("/fake/v1/changes.atom?start=earliest&limit=25".to_owned(), Vec::new(), Vec::new());
    loop {
        let read = feed.get(&path).await;
        ids.extend(texts(&read.body, "id").into_iter().skip(1));
        seqs.extend(texts(&read.body, "content").iter().map(|text| serde_json::from_str::<Value>(text).unwrap()["seq"].as_u64().unwrap()));
        assert_eq!(links(&read.body, "self"), [format!("{BASE}{}", reordered(path.strip_prefix("/fake").unwrap()))]);
        assert_eq!(texts(&read.body, "updated").first(), texts(&read.body, "updated").last());
        match links(&read.body, "next").first() {
            Some(next) => path = below(next),
            None => break,
        }
    }
    assert_eq!(seqs, (1..=60).collect::<Vec<u64>>());
    assert!(ids.iter().all(|id| id.starts_with("urn:uuid:") && id.len() == 45 && id.as_bytes()[23] == b'8'), "{ids:?}");
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 60);
    let newest = feed.get("/fake/v1/changes.atom?limit=7").await;
    assert_eq!(texts(&newest.body, "id")[1..], ids[53..]);
    assert_eq!(links(&newest.body, "next"), Vec::<String>::new());
    let empty = feed.get("/fake/v1/changes.atom?start=latest").await;
    assert_eq!((empty.status.as_u16(), texts(&empty.body, "entry").len()), (200, 0));
    assert_eq!(texts(&empty.body, "updated"), ["1970-01-01T00:00:00Z"]);
    assert_eq!(texts(&empty.body, "id"), texts(&newest.body, "id")[..1], "all documents are of one feed");
}

/// The arguments of an address in the order in which documents have them.
fn reordered(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap();
    let mut pairs: Vec<&str> = query.split('&').collect();
    pairs.sort_unstable();
    format!("{path}?{}", pairs.join("&"))
}

/// Proves that a document has the parameters, refusals and free window of the feed, is read with HEAD, and is read-only.
#[tokio::test]
async fn as_the_feed() {
    let source = Source { sample_days: Some(7), ..SOURCE };
    let feed =
        Feed::new(&[(START_MS, recall("CPSC:1", "old")), (START_MS + 8 * DAY_MS, recall("CPSC:2", "free"))], source, START_MS + 9 * DAY_MS)
            .await;
    let read = feed.get("/fake/v1/changes.atom?start=earliest").await;
    assert_eq!(texts(&read.body, "title")[1..], ["new: free"]);
    assert_eq!(texts(&feed.get("/fake/v1/changes.atom").await.body, "title")[1..], ["new: free"]);
    let as_of = schemas::clock::rfc3339(START_MS + 8 * DAY_MS - 1);
    let read = feed.get(&format!("/fake/v1/changes.atom?start=earliest&asOf={as_of}")).await;
    assert_eq!((read.status.as_u16(), texts(&read.body, "entry").len()), (200, 0));
    for query in ["cursor=none", "cursor=", "limit=201", "limit=0", "start=soon", "none=1", "asOf=soon", "cursor=a&start=latest"] {
        let [atom, json] = ["/fake/v1/changes.atom", "/fake/v1/changes"].map(|path| format!("{path}?{query}"));
        let (atom, json) = (feed.get(&atom).await, feed.get(&json).await);
        assert_eq!((atom.status, atom.problem()), (json.status, json.problem()), "{query}");
    }
    let read = feed.ask(ask().path("/fake/v1/changes.atom?api_key=a")).await;
    assert_eq!((read.status.as_u16(), read.problem().0.as_str()), (401, "key-invalid"));
    let head = feed.ask(ask().method("HEAD").path("/fake/v1/changes.atom")).await;
    assert_eq!((head.status.as_u16(), head.header("content-type")), (200, "application/atom+xml"));
    let post = feed.ask(ask().method("POST").path("/fake/v1/changes.atom")).await;
    assert_eq!((post.status.as_u16(), post.header("allow")), (405, "GET, HEAD, OPTIONS"));
}

/// Proves that a document is revalidated by its ETag, which is not that of the JSON page, until another change is recorded.
#[tokio::test]
async fn documents_are_revalidated() {
    let mut feed = Feed::new(&recalls(3), SOURCE, START_MS + DAY_MS).await;
    let path = "/fake/v1/changes.atom";
    let first = feed.get(path).await;
    let again = feed.ask(ask().path(path).header("if-none-match", first.header("etag"))).await;
    assert_eq!((again.status.as_u16(), again.body.as_str(), again.header("etag")), (304, "", first.header("etag")));
    let page = feed.get("/fake/v1/changes?start=earliest").await;
    let atom = feed.get("/fake/v1/changes.atom?start=earliest").await;
    assert!(page.header("etag").len() > 10 && page.header("etag") != atom.header("etag"));
    feed.world.change(START_MS + 5 * HOUR_MS, &recall("CPSC:9", "later"));
    feed.world.commit().await;
    let changed = feed.ask(ask().path(path).header("if-none-match", first.header("etag"))).await;
    assert_eq!((changed.status.as_u16(), texts(&changed.body, "entry").len()), (200, 4));
}

/// Proves that caches may keep a page from a given position that more changes follow, as JSON, lines and Atom, and no other page; and that a page that
/// was kept is not confirmed when the free window has moved.
#[tokio::test]
async fn closed_pages_are_kept() {
    let source = Source { sample_days: Some(7), ..SOURCE };
    let feed = Feed::new(&recalls(30), source, START_MS + 2 * DAY_MS).await;
    let (kept, asked_again) = ("public, max-age=60, must-revalidate", "no-cache");
    let cursor = feed.get("/fake/v1/changes?start=earliest&limit=5").await.json()["cursor"].as_str().unwrap().to_owned();
    for (query, caching) in [
        (format!("cursor={cursor}&limit=5"), kept),
        ("start=earliest&limit=5".to_owned(), kept),
        ("start=2026-11-01&limit=5".to_owned(), kept),
        (format!("cursor={cursor}&limit=25"), asked_again),
        ("start=latest".to_owned(), asked_again),
        ("limit=5".to_owned(), asked_again),
    ] {
        for (path, accept) in [("changes", "*/*"), ("changes", "application/x-ndjson"), ("changes.atom", "*/*")] {
            let read = feed.ask(ask().path(&format!("/fake/v1/{path}?{query}")).header("accept", accept)).await;
            assert_eq!((read.status.as_u16(), read.header("cache-control")), (200, caching), "{path} {accept} {query}");
            assert!(read.header("etag").len() > 10 && read.header("vary").contains("Authorization"));
        }
    }
    let path = format!("/fake/v1/changes?cursor={cursor}&limit=5");
    let etag = feed.get(&path).await.header("etag").to_owned();
    let again = feed.ask(ask().path(&path).header("if-none-match", &etag)).await;
    assert_eq!((again.status.as_u16(), again.header("cache-control")), (304, kept));
    let later = Feed { site: Feed::site(&feed.world, source, START_MS + 7 * DAY_MS + 8 * HOUR_MS), world: feed.world };
    let read = later.ask(ask().path(&path).header("if-none-match", &etag)).await;
    assert_eq!((read.status.as_u16(), &read.json()["from"]), (200, &json!(9)), "{}", read.body);
}
