//! The portal of an account: its session and what it refuses. What its pages show is tested in the crate `site`, with a key that works in the scenarios.

use access::keys::Key;
use access::session;
use serde_json::json;

use super::{Ask, Fixture, TextResponse, ask, send};

const OWN: (&str, &str) = ("origin", "https://fake.example");
const BROWSER: (&str, &str) = ("accept", "text/html");
const CLEARED: &str = "__Secure-highwater-session=; Path=/account; HttpOnly; SameSite=Strict; Secure; Max-Age=0";

fn form(path: &str, body: &str) -> Ask {
    ask().method("POST").path(path).header("content-type", "application/x-www-form-urlencoded").body(body.to_owned())
}

/// Checks what holds for every response of the portal, and returns it.
async fn read(fixture: &Fixture, request: Ask) -> TextResponse {
    let shown = format!("{request:?}");
    let read = send(fixture, request).await;
    assert_eq!((read.header("cache-control"), read.header("referrer-policy")), ("no-store", "same-origin"), "{shown}");
    if read.header("content-type").starts_with("text/html") {
        let policy = read.header("content-security-policy");
        assert!(policy.contains("form-action 'self'") && !policy.contains("unsafe"), "{shown}: {policy}");
    }
    read
}

/// Proves that nobody who has not signed in sees a page, that the address of the old page of webhooks leads to the new one, and what else is answered.
#[tokio::test]
async fn without_a_session() {
    let fixture = Fixture::new(|_| {});
    for path in ["/account", "/account/", "/account/saved", "/account/webhooks", "/account/webhooks/fake/watch_1"] {
        let page = read(&fixture, ask().path(path).header(BROWSER.0, BROWSER.1)).await;
        assert_eq!((page.status.as_u16(), page.header("set-cookie")), (200, ""), "{path}");
        assert!(page.body.contains("type=\"password\"") && page.body.contains("action=\"/account/sign-in\""), "{path}");
    }
    let back = read(&fixture, ask().path("/account?signed-in=1")).await;
    assert!(back.body.contains("did not keep the session"), "{}", back.body);
    // A key in the query, in whatever parameter and spelling, is not repeated; the rest of the query is.
    let key = Key::random().reveal().to_owned();
    for given in [format!("apikey={key}"), format!("{key}=x"), key.clone(), format!("q={}", key.replace('_', "%5F"))] {
        let asked = read(&fixture, ask().path(&format!("/account/webhooks?kind=a&{given}")).header(BROWSER.0, BROWSER.1)).await;
        let secret = key.rsplit('_').next().unwrap();
        assert!(asked.body.contains("/account/webhooks?kind=a") && !asked.body.contains(secret), "{given}: {}", asked.body);
    }
    let old = read(&fixture, form("/webhooks", "key=x")).await;
    assert_eq!((old.status.as_u16(), old.header("location")), (303, "/account/webhooks"));
    for path in ["/account/sign-in", "/account/sign-out", "/account/keys"] {
        let shown = read(&fixture, ask().path(path).header(BROWSER.0, BROWSER.1)).await;
        assert_eq!((shown.status.as_u16(), shown.header("location"), shown.header("set-cookie")), (303, "/account", ""), "{path}");
    }
    assert_eq!(read(&fixture, ask().path("/account/none")).await.problem().0, "not-found");
    assert_eq!(read(&fixture, ask().method("DELETE").path("/account")).await.problem().0, "method-not-allowed");
    assert_eq!(send(&fixture, ask().method("OPTIONS").path("/account")).await.status, 204);
    let accounts = send(&fixture, ask().path("/accounts")).await;
    assert_eq!(accounts.problem().0, "not-found");
}

/// Proves that a form that no page of this server sent is refused before it is read, whatever it asks for, and begins no session.
#[tokio::test]
async fn forms_of_other_origins_are_refused() {
    let fixture = Fixture::new(|_| {});
    let body = format!("key={}", Key::random().reveal());
    for path in
        ["/account/sign-in", "/account/sign-out", "/account/keys", "/account/saved", "/account/webhooks/new", "/account/webhooks/fake/x"]
    {
        for (name, value) in [("x-none", "1"), ("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
            let refused = read(&fixture, form(path, &body).header(name, value)).await;
            assert_eq!(refused.problem().0, "origin-refused", "{path} {name}");
            assert_eq!(refused.header("set-cookie"), "", "{path} {name}");
            let page = read(&fixture, form(path, &body).header(name, value).header(BROWSER.0, BROWSER.1)).await;
            assert_eq!((page.status.as_u16(), page.header("content-type")), (403, "text/html; charset=utf-8"), "{path} {name}");
        }
    }
}

/// Proves that a key that does not work begins no session and is repeated nowhere, and that signing in leads to pages of the portal only.
#[tokio::test]
async fn keys_that_do_not_work() {
    let fixture = Fixture::new(|_| {});
    let unknown = Key::random();
    for key in ["", "x", "hw_live_none", unknown.reveal()] {
        for to in [
            "https%3A%2F%2Fevil.example",
            "%2F%2Fevil.example",
            "%2Faccount%2F..%2Fx",
            "%2Faccounts%3Fa",
            "%2Faccount%3Fa%5Cb",
            "%2Faccount%0d%0aX%3A1",
        ] {
            let request = || form("/account/sign-in", &format!("key={key}&to={to}")).header(OWN.0, OWN.1);
            let refused = read(&fixture, request()).await;
            assert_eq!((refused.problem().0.as_str(), refused.header("set-cookie")), ("key-invalid", ""), "{key} {to}");
            let page = read(&fixture, request().header(BROWSER.0, BROWSER.1)).await;
            assert_eq!((page.status.as_u16(), page.header("www-authenticate")), (401, "Bearer"));
            assert!(page.body.contains("name=\"to\" value=\"/account\"") && !page.body.contains("evil"), "{}", page.body);
            assert!(!page.body.contains("hw_live_none") && !page.body.contains(unknown.reveal()));
        }
    }
    // The page that asked for it is shown after signing in, with its query.
    let asked = read(&fixture, ask().path("/account/filters/new?service=fake&keyword=a+b&signed-in=1").header(BROWSER.0, BROWSER.1)).await;
    let to = "/account/filters/new?service=fake&amp;keyword=a+b";
    assert!(asked.body.contains(&format!("name=\"to\" value=\"{to}\"")), "{}", asked.body);
    let again = form("/account/sign-in", "key=x&to=%2Faccount%2Ffilters%2Fnew%3Fservice%3Dfake%26keyword%3Da%2Bb");
    let again = read(&fixture, again.header(OWN.0, OWN.1).header(BROWSER.0, BROWSER.1)).await;
    assert!(again.body.contains(&format!("value=\"{to}\"")), "{}", again.body);
    let long = read(&fixture, form("/account/sign-in", &format!("key={}", "x".repeat(20_000))).header(OWN.0, OWN.1)).await;
    assert_eq!(long.problem().0, "body-too-large");
}

/// Proves that a session that was changed, that another server sealed, or whose key does not work is ended, its cookie removed, and nothing done for it.
#[tokio::test]
async fn sessions_that_do_not_work() {
    let fixture = Fixture::new(|_| {});
    let sealed = session::begin(&fixture.context, &Key::random()).unwrap();
    for (value, words) in [("x", "at most"), (&sealed[1..], "at most"), (sealed.as_str(), "unknown")] {
        let cookie = format!("other=1; __Secure-highwater-session={value}");
        for request in [ask().path("/account"), form("/account/saved", "act=delete_filter").header(OWN.0, OWN.1)] {
            let ended = read(&fixture, request.header("cookie", &cookie).header(BROWSER.0, BROWSER.1)).await;
            assert_eq!((ended.status.as_u16(), ended.header("set-cookie")), (401, CLEARED), "{value}");
            assert!(ended.body.contains("Your session has ended") && ended.body.contains(words), "{}", ended.body);
        }
    }
    let nobody = read(&fixture, form("/account/saved", "act=delete_filter").header(OWN.0, OWN.1)).await;
    assert_eq!(nobody.problem().0, "key-invalid");
    let out = read(&fixture, form("/account/sign-out", "").header(OWN.0, OWN.1)).await;
    assert_eq!((out.status.as_u16(), out.header("location"), out.header("set-cookie")), (303, "/account", CLEARED));
    // The name of the cookie over plain http is another one, so that such a cookie is not taken here.
    let plain = ask().path("/account").header("cookie", &format!("highwater-session={sealed}"));
    assert_eq!(read(&fixture, plain).await.status, 200);
    assert_eq!(nobody.json()["status"], json!(401));
}

/// Proves that a listener of this machine that is reached by plain http sets a cookie that browsers send there.
#[tokio::test]
async fn plain_http_on_this_machine() {
    for (listening, base_url, is_secure) in [
        ("127.0.0.1", "http://127.0.0.1:8080/fake", false),
        ("::1", "http://[::1]:8080/fake", false),
        ("127.0.0.1", "https://own.example/fake", true),
        ("0.0.0.0", "http://own.example/fake", true),
    ] {
        let fixture = Fixture::new(|settings| {
            settings.listening = Some(listening.parse().unwrap());
            settings.services.get_mut("fake").unwrap().base_url = base_url.to_owned();
        });
        let origin = base_url.strip_suffix("/fake").unwrap();
        let out = read(&fixture, form("/account/sign-out", "").header("origin", origin)).await;
        assert_eq!(out.header("set-cookie").contains("; Secure"), is_secure, "{listening} {base_url}");
        assert_eq!(out.header("set-cookie").starts_with("__Secure-"), is_secure, "{listening} {base_url}");
    }
}
