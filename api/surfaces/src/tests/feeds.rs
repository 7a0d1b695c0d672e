//! A feed over a filled view, as Atom documents, and how caches keep its pages.

use std::sync::Arc;

use feed::page_request::PageRequest;
use feed::testing::{HOUR_MS, SOURCE, START_MS, World};
use feed::{Source, changes, stream};
use operation::FileBody;
use operation::context::{Context, ServiceSettings, Settings};
use quick_xml::Reader;
use quick_xml::events::Event;
use schemas::views::recalls::Recall;

use super::*;

const DAY_MS: i64 = 24 * HOUR_MS;
/// The public URL of the site.
const SITE: &str = "https://fake.example";
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
        let all = changes::operation::<Recall>(source, changes::example());
        let operations = vec![all, stream::operation::<Recall>(source), record, filtered(), file()];
        let service = Service {
            name: "fake",
            title: "Fakes & <more>",
            about: "Made up.",
            operations,
            files: None,
            data: Vec::new(),
            page: operation::RecordPage { title: &["title"], ..operation::RecordPage::default() },
            entities: &[],
        };
        Arc::new(Site::new(Arc::new(context), vec![service], Arc::new(|| Ok(()))).unwrap())
    }

    async fn ask(&self, ask: Ask) -> TextResponse {
        ask.reply(Arc::clone(&self.site)).await
    }

    async fn get(&self, path: &str) -> TextResponse {
        self.ask(ask().path(path)).await
    }
}

/// What the answers of the feed under a filter say of themselves.
const NOTE: &str = "records that are hidden on request and left out: 2";

/// A page of a feed under a filter.
#[derive(Serialize, JsonSchema)]
struct FilteredPage {
    changes: Vec<u64>,
    cursor: String,
    older: Option<String>,
    note: String,
}

/// A feed under a filter, of which the page with the last changes has one before it.
fn filtered() -> Operation {
    let definition = Definition { list: "changes", ..words("filtered", Method::Get, "/v1/filtered") };
    Operation::define::<PageRequest, FilteredPage, _, _>(definition, |call: Call, request: PageRequest| async move {
        let older = request.cursor.is_none().then(|| "o1".to_owned());
        if call.form.has_events() {
            let body = Body::Events { from: "f1".to_owned(), older, items: Vec::new(), updated: None, note: Some(NOTE.to_owned()) };
            return Ok(Answer { body, etag: String::new(), next_cursor: "c2".to_owned(), has_more: false, status: 200 });
        }
        let page = FilteredPage { changes: vec![2], cursor: "c2".to_owned(), older, note: NOTE.to_owned() };
        Answer::json(&page)
    })
}

/// A file with a note.
fn file() -> Operation {
    let definition = Definition { surface: Surface::Route, ..words("file", Method::Get, "/v1/file.csv") };
    let operation = Operation::define::<Nothing, (), _, _>(definition, |_: Call, _: Nothing| async move {
        let mut file = FileBody::of_bytes("text/csv", "file.csv".to_owned(), "a\r\n");
        file.note = Some(NOTE.to_owned());
        Ok(Answer { body: Body::File(file), etag: String::new(), next_cursor: String::new(), has_more: false, status: 200 })
    });
    operation.with_files(&[("text/csv", true)])
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
        [
            format!("{BASE}/docs"),
            format!("{SITE}/explore/fake/CPSC:1"),
            format!("{BASE}/v1/records/CPSC:1"),
            format!("{SITE}/explore/fake/CPSC:a%2Fb%20c%3Fd"),
            format!("{BASE}/v1/records/CPSC:a%2Fb%20c%3Fd"),
        ]
    );
    for link in &links(&read.body, "alternate")[1..] {
        let path = link.strip_prefix(BASE).map_or_else(|| link.strip_prefix(SITE).unwrap().to_owned(), |_| below(link));
        assert_eq!(feed.get(&path).await.status, 200, "{link}");
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
    assert_eq!(texts(&empty.body, "updated"), [schemas::clock::rfc3339(START_MS + 59 * HOUR_MS)]);
    assert_eq!(texts(&empty.body, "id"), texts(&newest.body, "id")[..1], "all documents are of one feed");
}

/// Proves that the cursor of the page before the newest one is a header of lines and tables, which the OpenAPI document has, and a link of Atom documents,
/// which does not wait; and that a page without one before it has neither.
#[tokio::test]
async fn pages_before_the_newest() {
    let feed = Feed::new(&[], SOURCE, START_MS).await;
    for accept in ["application/x-ndjson", "text/csv"] {
        let ask_for = async |query: &str| feed.ask(ask().path(&format!("/fake/v1/filtered?{query}")).header("accept", accept)).await;
        let newest = ask_for("start=newest").await;
        assert_eq!((newest.header("older-cursor"), newest.header("next-cursor")), ("o1", "c2"), "{accept}");
        assert_eq!(ask_for("start=newest&cursor=o1").await.header("older-cursor"), "", "{accept}");
    }
    let newest = feed.get("/fake/v1/filtered.atom?limit=7&wait=1").await;
    let previous = format!("{BASE}/v1/filtered.atom?limit=7&cursor=o1&start=newest");
    assert_eq!(links(&newest.body, "previous"), [previous.as_str()]);
    assert_eq!(links(&feed.get(&below(&previous)).await.body, "previous"), Vec::<String>::new());
    let document = feed.get("/fake/openapi.json").await.json();
    let is_documented = |path: &str| document["paths"][path]["get"]["responses"]["200"]["headers"]["Older-Cursor"].is_object();
    assert_eq!([is_documented("/v1/filtered"), is_documented("/v1/changes"), is_documented("/v1/records/{id}")], [true, true, false]);
}

/// Proves that the note of a list is a header of its lines and tables, of an Atom document, of a stream of events and of a file, which have no field for it,
/// and that the JSON answer has it as a field alone; that the first event of a stream has it; and that the OpenAPI document has the header.
#[tokio::test]
async fn notes_of_lists() {
    let feed = Feed::new(&[], SOURCE, START_MS).await;
    for accept in ["application/x-ndjson", "text/csv"] {
        let read = feed.ask(ask().path("/fake/v1/filtered").header("accept", accept)).await;
        assert_eq!(read.header("answer-note"), NOTE, "{accept}");
        assert!(!read.body.contains("hidden"), "{accept}: {}", read.body);
    }
    assert_eq!(feed.get("/fake/v1/filtered.atom").await.header("answer-note"), NOTE);
    for range in ["lines=1", "bytes=0-0"] {
        let read = feed.ask(ask().path("/fake/v1/file.csv").header("range", range)).await;
        assert_eq!((read.header("answer-note"), read.header("content-type")), (NOTE, "text/csv"), "{range}");
    }
    let read = feed.get("/fake/v1/filtered").await;
    assert_eq!((read.header("answer-note"), &read.json()["note"]), ("", &json!(NOTE)));
    // A stream ends after its first page when the server stops.
    feed.site.context().stopping.send_replace(true);
    let read = feed.ask(ask().path("/fake/v1/filtered").header("accept", "text/event-stream")).await;
    assert_eq!((read.header("answer-note"), read.header("content-type")), (NOTE, "text/event-stream; charset=utf-8"));
    let position = json!({ "cursor": "c2", "note": NOTE });
    assert!(read.body.starts_with(&format!("retry: 1000\n: keep-alive\nevent: position\nid: c2\ndata: {position}\n\n")), "{}", read.body);
    let document = feed.get("/fake/openapi.json").await.json();
    let is_documented = |path: &str| document["paths"][path]["get"]["responses"]["200"]["headers"]["Answer-Note"].is_object();
    let documented = ["/v1/filtered", "/v1/changes", "/v1/file.csv", "/v1/records/{id}"].map(is_documented);
    assert_eq!(documented, [true, true, true, false]);
}

/// Proves that a stream which begins at the latest change gives an id before the first change, and that a reader which is cut there, or after any event,
/// gets each change once when it continues from the last id.
#[tokio::test]
async fn cut_streams_continue_from_any_id() {
    let mut feed = Feed::new(&recalls(3), SOURCE, START_MS + 9 * HOUR_MS).await;
    // A stream ends after its first page when the server stops.
    feed.site.context().stopping.send_replace(true);
    let events = async |feed: &Feed, query: &str, last: &str| {
        let path = format!("/fake/v1/changes{query}");
        let read = feed.ask(ask().path(&path).header("accept", "text/event-stream").header("last-event-id", last)).await;
        let line = |block: &str, name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
        let event = |block: &str| {
            let data: Value = serde_json::from_str(&line(block, "data: ")).unwrap();
            (line(block, "event: "), line(block, "id: "), data["seq"].as_u64())
        };
        let events: Vec<(String, String, Option<u64>)> = read.body.split_terminator("\n\n").map(event).collect();
        assert!(events.iter().all(|(_, id, _)| !id.is_empty()) && events[0].0 == "position", "{}", read.body);
        events
    };
    let begun = events(&feed, "?start=latest", "").await;
    assert!(begun.iter().all(|(name, _, seq)| ["position", "end"].contains(&name.as_str()) && seq.is_none()), "{begun:?}");
    for n in 3..8 {
        feed.world.change(START_MS + n * HOUR_MS, &recall(&format!("CPSC:{n}"), "later"));
    }
    feed.world.commit().await;
    let all = events(&feed, "?start=latest", &begun[0].1).await;
    let seqs = |events: &[(String, String, Option<u64>)]| events.iter().filter_map(|(.., seq)| *seq).collect::<Vec<u64>>();
    assert_eq!(seqs(&all), [4, 5, 6, 7, 8]);
    for (at, (_, id, _)) in all.iter().enumerate() {
        let (before, rest) = (seqs(&all[..=at]), events(&feed, "", id).await);
        assert_eq!([before, seqs(&rest)].concat(), [4, 5, 6, 7, 8], "cut after event {at}");
    }
}

/// Proves that all changes are read backwards without a filter, too: by the links of Atom documents, each change once, and by the header of lines and tables.
#[tokio::test]
async fn all_changes_are_read_backwards() {
    let feed = Feed::new(&recalls(60), SOURCE, START_MS + 90 * HOUR_MS).await;
    let (mut path, mut got) = (Some("/fake/v1/changes.atom?limit=25".to_owned()), Vec::new());
    while let Some(of) = path {
        let read = feed.get(&of).await;
        let changes = texts(&read.body, "content");
        got.extend(changes.iter().rev().map(|text| serde_json::from_str::<Value>(text).unwrap()["seq"].as_u64().unwrap()));
        path = links(&read.body, "previous").first().map(|previous| below(previous));
    }
    assert_eq!(got, (1..=60).rev().collect::<Vec<u64>>());
    for accept in ["application/x-ndjson", "text/csv"] {
        let (mut path, mut pages) = ("/fake/v1/changes?start=newest&limit=25".to_owned(), 0);
        loop {
            let read = feed.ask(ask().path(&path).header("accept", accept)).await;
            pages += 1;
            match read.header("older-cursor") {
                "" => break,
                older => path = format!("/fake/v1/changes?start=newest&limit=25&cursor={older}"),
            }
        }
        assert_eq!(pages, 3, "{accept}");
    }
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

/// Proves that a document without entries has the time of the last change up to its end, and only before the first change none of its own.
#[tokio::test]
async fn documents_without_entries() {
    let feed = Feed::new(&recalls(3), SOURCE, START_MS + DAY_MS).await;
    let older = schemas::clock::rfc3339(START_MS + HOUR_MS);
    for (query, changed_at_ms) in
        [("?start=latest".to_owned(), START_MS + 2 * HOUR_MS), (format!("?start=latest&asOf={older}"), START_MS + HOUR_MS)]
    {
        let read = feed.get(&format!("/fake/v1/changes.atom{query}")).await;
        assert_eq!((read.status.as_u16(), texts(&read.body, "entry").len()), (200, 0), "{query}");
        assert_eq!(texts(&read.body, "updated"), [schemas::clock::rfc3339(changed_at_ms)], "{query}");
    }
    let empty = Feed::new(&[], SOURCE, START_MS).await;
    assert_eq!(texts(&empty.get("/fake/v1/changes.atom").await.body, "updated"), ["1970-01-01T00:00:00Z"]);
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

/// The offset after a change.
fn offset(seq: u64) -> String {
    format!("{seq:020}")
}

/// The seqs in an answer of a stream.
fn streamed(read: &TextResponse) -> Vec<u64> {
    read.json().as_array().unwrap().iter().map(|change| change["seq"].as_u64().unwrap()).collect()
}

/// Proves that reads of a stream follow each other without a gap from the beginning to the end, and have the changes of the feed.
#[tokio::test]
async fn streams_are_read_to_their_end() {
    let feed = Feed::new(&recalls(60), SOURCE, START_MS + 90 * HOUR_MS).await;
    for beginning in ["?limit=25", "?offset=-1&limit=25"] {
        let (mut query, mut seqs) = (beginning.to_owned(), Vec::new());
        loop {
            let read = feed.get(&format!("/fake/v1/stream{query}")).await;
            assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "application/json"));
            assert!(!read.header("etag").is_empty() && read.header("stream-cursor").is_empty());
            seqs.extend(streamed(&read));
            let (next, is_at_end) = (read.header("stream-next-offset").to_owned(), read.header("stream-up-to-date") == "true");
            assert_eq!((&next, is_at_end), (&offset(*seqs.last().unwrap()), seqs.len() == 60));
            let kept = if is_at_end { "no-cache" } else { "public, max-age=60, must-revalidate" };
            assert_eq!(read.header("cache-control"), kept);
            query = format!("?offset={next}&limit=25");
            if is_at_end {
                break;
            }
        }
        assert_eq!(seqs, (1..=60).collect::<Vec<u64>>());
        let end = feed.get(&format!("/fake/v1/stream{query}")).await;
        assert_eq!((end.status.as_u16(), end.body.as_str(), end.header("stream-up-to-date")), (200, "[]", "true"));
        assert_eq!(end.header("stream-next-offset"), offset(60));
    }
    let [stream, page] = ["/fake/v1/stream?limit=3", "/fake/v1/changes?start=earliest&limit=3"];
    assert_eq!(feed.get(stream).await.json(), feed.get(page).await.json()["changes"]);
}

/// Proves what the end of a stream answers, also of an empty one, with HEAD and GET, and that it is not kept.
#[tokio::test]
async fn the_end_of_a_stream() {
    for count in [0, 3] {
        let feed = Feed::new(&recalls(count), SOURCE, START_MS + DAY_MS).await;
        let tail = offset(u64::try_from(count).unwrap());
        let head = feed.ask(ask().method("HEAD").path("/fake/v1/stream")).await;
        let now = feed.get("/fake/v1/stream?offset=now").await;
        for read in [&head, &now] {
            assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "application/json"));
            assert_eq!(
                (read.header("stream-next-offset"), read.header("cache-control"), read.header("etag")),
                (tail.as_str(), "no-store", "")
            );
        }
        assert_eq!((head.body.as_str(), now.body.as_str(), now.header("stream-up-to-date")), ("", "[]", "true"));
        let exposed = now.header("access-control-expose-headers");
        assert!(["Stream-Next-Offset", "Stream-Up-To-Date", "Stream-Cursor"].iter().all(|name| exposed.contains(name)), "{exposed}");
        assert_eq!(now.header("cross-origin-resource-policy"), "cross-origin");
    }
}

/// Proves that wrong arguments are refused by name, that a stream is for reading only, and that an unchanged read is answered with 304.
#[tokio::test]
async fn refusals_of_streams() {
    let feed = Feed::new(&recalls(3), SOURCE, START_MS + DAY_MS).await;
    for (query, code, parameter) in [
        ("offset=", "parameter-invalid", "offset"),
        ("offset=3", "parameter-invalid", "offset"),
        ("offset=-2", "parameter-invalid", "offset"),
        ("offset=00000000000000000001,2", "parameter-invalid", "offset"),
        ("offset=-1&offset=now", "parameter-invalid", "offset"),
        ("offset=00000000000000000009", "cursor-invalid", "offset"),
        ("offset=18446744073709551615", "cursor-invalid", "offset"),
        ("offset=99999999999999999999", "parameter-invalid", "offset"),
        ("live=long-poll", "parameter-invalid", "offset"),
        ("live=sse", "parameter-invalid", "offset"),
        ("offset=-1&live=ever", "parameter-invalid", "live"),
        ("offset=-1&limit=201", "parameter-invalid", "limit"),
        ("offset=-1&start=earliest", "parameter-invalid", "start"),
    ] {
        let read = feed.get(&format!("/fake/v1/stream?{query}")).await;
        assert_eq!((read.status.as_u16(), read.problem()), (400, (code.to_owned(), parameter.to_owned())), "{query}");
    }
    for method in ["PUT", "POST", "PATCH", "DELETE"] {
        let read = feed.ask(ask().method(method).path("/fake/v1/stream")).await;
        assert_eq!((read.status.as_u16(), read.header("allow")), (405, "GET, HEAD, OPTIONS"), "{method}");
    }
    let etag = feed.get("/fake/v1/stream?offset=-1").await.header("etag").to_owned();
    for (query, status) in [("offset=-1", 304), ("", 304), ("offset=-1&limit=2", 200), ("offset=now", 200)] {
        let read = feed.ask(ask().path(&format!("/fake/v1/stream?{query}")).header("if-none-match", &etag)).await;
        assert_eq!((read.status.as_u16(), read.body.is_empty()), (status, status == 304), "{query}");
        assert!(!read.header("stream-next-offset").is_empty(), "{query}");
    }
}

/// Proves that a caller without a key is shown the last days only, whatever the offset.
#[tokio::test]
async fn streams_have_the_free_window() {
    let source = Source { sample_days: Some(7), ..SOURCE };
    let old_and_free = [(START_MS, recall("CPSC:1", "old")), (START_MS + 8 * DAY_MS, recall("CPSC:2", "free"))];
    let feed = Feed::new(&old_and_free, source, START_MS + 9 * DAY_MS).await;
    for query in ["", "?offset=-1", "?offset=00000000000000000000", "?offset=00000000000000000001"] {
        assert_eq!(streamed(&feed.get(&format!("/fake/v1/stream{query}")).await), [2], "{query}");
    }
}

/// Proves that a long poll is answered at once with what is there, otherwise when a change comes, and with 204 when the server stops; and that its cursor
/// moves on.
#[tokio::test]
async fn long_polls() {
    let mut feed = Feed::new(&recalls(3), SOURCE, START_MS + DAY_MS).await;
    let there = feed.get("/fake/v1/stream?offset=-1&live=long-poll").await;
    assert_eq!((there.status.as_u16(), streamed(&there)), (200, vec![1, 2, 3]));
    let cursor: u64 = there.header("stream-cursor").parse().unwrap();
    let path = format!("/fake/v1/stream?offset={}&live=long-poll&cursor={cursor}", offset(3));
    let mut waiting = std::pin::pin!(ask().path(&path).reply(Arc::clone(&feed.site)));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    feed.world.change(START_MS + 5 * HOUR_MS, &recall("CPSC:9", "awaited"));
    feed.world.commit().await;
    let read = waiting.await;
    assert_eq!((read.status.as_u16(), streamed(&read), read.header("stream-next-offset")), (200, vec![4], offset(4).as_str()));
    assert!(read.header("stream-cursor").parse::<u64>().unwrap() > cursor);
    feed.site.context().stopping.send_replace(true);
    for from in [offset(4).as_str(), "now"] {
        let read = feed.get(&format!("/fake/v1/stream?offset={from}&live=long-poll")).await;
        assert_eq!((read.status.as_u16(), read.body.as_str(), read.header("cache-control")), (204, "", "no-store"));
        assert_eq!((read.header("stream-next-offset"), read.header("stream-up-to-date")), (offset(4).as_str(), "true"));
        assert!(!read.header("stream-cursor").is_empty());
    }
}

/// Proves that a stream of events has the changes and then says where it is, and that one from the end says so first.
#[tokio::test]
async fn events_of_streams() {
    let feed = Feed::new(&recalls(3), SOURCE, START_MS + DAY_MS).await;
    // A stream ends after its first page when the server stops.
    feed.site.context().stopping.send_replace(true);
    for (query, seqs, next) in [("offset=-1&limit=2", Some(vec![1, 2]), 2), ("offset=-1", Some(vec![1, 2, 3]), 3), ("offset=now", None, 3)]
    {
        let read = feed.get(&format!("/fake/v1/stream?{query}&live=sse")).await;
        assert_eq!((read.status.as_u16(), read.header("content-type")), (200, "text/event-stream"));
        assert_eq!((read.header("cache-control"), read.header("x-accel-buffering")), ("no-cache, no-store, no-transform", "no"));
        let (mut events, mut data) = (read.body.split_terminator("\n\n"), None);
        let mut event = events.next().unwrap();
        if let Some(text) = event.strip_prefix("event: data\ndata:") {
            let changes: Vec<Value> = serde_json::from_str(text).unwrap();
            data = Some(changes.iter().map(|change| change["seq"].as_u64().unwrap()).collect::<Vec<u64>>());
            event = events.next().unwrap();
        }
        let control: Value = serde_json::from_str(event.strip_prefix("event: control\ndata:").unwrap()).unwrap();
        assert_eq!((data, events.next()), (seqs, None), "{query}");
        let is_up_to_date = if next == 3 { json!(true) } else { Value::Null };
        assert_eq!((&control["streamNextOffset"], &control["upToDate"]), (&json!(offset(next)), &is_up_to_date), "{query}");
        assert!(control["streamCursor"].as_str().unwrap().parse::<u64>().is_ok());
    }
}
