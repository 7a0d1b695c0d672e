//! The portal of an account in a running server: what somebody does with a browser, and what a page of another site cannot do.

use serde_json::{Value, json};

use crate::commands::NOWHERE;
use crate::process::{Answer, Server, highwater, send, stdout};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const BROWSER: (&str, &str) = ("accept", "text/html");

/// Somebody with a browser.
pub(crate) struct Visitor<'a> {
    server: &'a Server,
    cookie: String,
}

impl<'a> Visitor<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        Self { server, cookie: String::new() }
    }

    /// Somebody who signed in with a key.
    pub(crate) fn signed_in(server: &'a Server, key: &str) -> Self {
        let mut visitor = Self::new(server);
        let answer = visitor.post("/account/sign-in", &format!("key={key}"));
        assert_eq!((answer.status, answer.header("location")), (303, "/account?signed-in=1"), "{}", text(&answer));
        visitor.keep(&answer);
        visitor
    }

    /// Keeps the cookie of an answer, as a browser does.
    fn keep(&mut self, answer: &Answer) {
        answer.header("set-cookie").split(';').next().unwrap().clone_into(&mut self.cookie);
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        send(self.server.address, "GET", path, &[BROWSER, ("cookie", &self.cookie)], "")
    }

    /// Sends a form of the page.
    pub(crate) fn post(&self, path: &str, form: &str) -> Answer {
        let origin = format!("http://{}", self.server.address);
        self.post_from(path, form, &[("origin", &origin), ("sec-fetch-site", "same-origin")])
    }

    fn post_from(&self, path: &str, form: &str, headers: &[(&str, &str)]) -> Answer {
        let headers = [&[BROWSER, FORM, ("cookie", self.cookie.as_str())][..], headers].concat();
        send(self.server.address, "POST", path, &headers, form)
    }
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// The part of a text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    text.split(before).nth(1).and_then(|rest| rest.split(after).next()).unwrap_or_else(|| panic!("no {before} in {text}"))
}

/// Proves that somebody can sign in, mint a key that is shown once, register a webhook, see it with its attempts, replace its secret, delete it and a saved
/// filter, and sign out; that the pages cost no calls; that a page of another site cannot send the forms; that no page has the key, and no cache a page; and
/// that a revoked key ends the session.
#[test]
fn an_account_is_used_without_a_program() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let command = |arguments: &[&str]| {
        let mut command = highwater(&data, NOWHERE, arguments);
        command.env("HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true");
        command
    };
    let key = stdout(command(&["keys", "mint", "--tier", "business"])).trim().to_owned();
    let server = Server::signing(command(&["serve"]));

    let mut visitor = Visitor::new(&server);
    let old = visitor.get("/webhooks");
    assert_eq!((old.status, old.header("location")), (303, "/account/webhooks"));
    assert!(text(&visitor.get("/account/webhooks")).contains("type=\"password\""));
    let minted = text(&visitor.post("/account/keys", "email=ann%40example.org&once=form1"));
    let free = between(&minted, "<code>hw_live_", "<");
    assert_eq!(free.len(), 36, "{minted}");
    let again = text(&visitor.post("/account/keys", "email=ann%40example.org&once=form1"));
    assert!(again.contains("cannot be shown again") && !again.contains("hw_live_"), "{again}");

    let wrong = visitor.post("/account/sign-in", "key=hw_live_none");
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, ""));
    let signed_in = visitor.post("/account/sign-in", &format!("key={key}&to=%2Faccount%2Fwebhooks"));
    assert_eq!((signed_in.status, signed_in.header("location")), (303, "/account/webhooks?signed-in=1"));
    let cookie = signed_in.header("set-cookie").to_owned();
    assert!(cookie.ends_with("; Path=/account; HttpOnly; SameSite=Strict") && !cookie.contains(&key[8..]), "{cookie}");
    visitor.keep(&signed_in);
    let mut pages = vec![visitor.get("/account")];
    assert!(text(&pages[0]).contains("business") && text(&pages[0]).contains(">0 of "), "{}", text(&pages[0]));

    let form = text(&visitor.get("/account/webhooks/new?service=recalls"));
    let once = between(&form, "name=\"once\" value=\"", "\"");
    let fields = format!("service=recalls&once={once}&url=http%3A%2F%2F127.0.0.1%3A9%2Fx");
    for headers in [&[][..], &[("origin", "https://evil.example")], &[("origin", "null")], &[("sec-fetch-site", "cross-site")]] {
        for (path, form) in
            [("/account/webhooks/new", fields.as_str()), ("/account/sign-in", &format!("key={key}")), ("/account/sign-out", "")]
        {
            let refused = visitor.post_from(path, form, headers);
            assert_eq!((refused.status, refused.header("set-cookie")), (403, ""), "{path} {headers:?}");
        }
    }
    assert!(text(&visitor.get("/account/webhooks")).contains("This account has no webhooks."));
    let registered = visitor.post("/account/webhooks/new", &fields);
    let secret = between(&text(&registered), "<code>whsec_", "<").to_owned();
    let id = between(&text(&registered), "The webhook ", " ").to_owned();
    let path = format!("/account/webhooks/recalls/{id}");
    // The same form again is the same webhook.
    visitor.post("/account/webhooks/new", &fields);
    let list = visitor.get("/account/webhooks");
    assert_eq!(text(&list).matches("href=\"/account/webhooks/recalls/").count(), 1);
    let rotated = text(&visitor.post(&path, "act=rotate&once=form2"));
    assert!(rotated.contains("whsec_") && !rotated.contains(&secret), "{rotated}");
    let pinged = text(&visitor.post(&path, "act=ping"));
    assert!(pinged.contains("The test message was not accepted"), "{pinged}");
    let body = json!({ "name": "<b>mine", "filter": { "recipient": "acme" } }).to_string();
    assert_eq!(server.send("POST", "/awards/v1/filters", &key, &body).status, 201);
    let saved = visitor.get("/account/saved");
    assert!(text(&saved).contains("&lt;b&gt;mine"), "{}", text(&saved));
    assert!(
        text(&visitor.post("/account/saved", "act=delete_filter&service=awards&name=%3Cb%3Emine"))
            .contains("This account has no saved filters.")
    );
    pages.extend([list, saved, visitor.get(&path)]);
    let deleted = text(&visitor.post(&path, "act=delete"));
    assert!(deleted.contains("was deleted") && deleted.contains("This account has no webhooks."), "{deleted}");
    assert_eq!(visitor.get(&path).status, 404);
    assert_eq!(server.json("/recalls/api/webhook", &key), json!({ "next": Value::Null, "webhooks": [] }));

    for page in &pages {
        let html = text(page);
        assert_eq!((page.status, page.header("cache-control"), page.header("referrer-policy")), (200, "no-store", "same-origin"));
        assert!(
            !page.header("content-security-policy").contains("unsafe")
                && page.header("content-security-policy").contains("form-action 'self'")
        );
        assert!(!html.contains(&key) && !html.contains("whsec_") && !html.contains(" style="), "{html}");
    }
    let out = visitor.post("/account/sign-out", "");
    assert!(
        out.status == 303 && out.header("set-cookie").contains("=; Path=/account") && out.header("set-cookie").ends_with("; Max-Age=0")
    );

    // The id of the key is on the page, so that its owner can ask the operator to revoke it.
    let key_id = between(&text(&pages[0]), "<code>key_", "<").to_owned();
    let cookie = visitor.cookie;
    assert_eq!(server.terminate().code(), Some(0));
    stdout(command(&["keys", "revoke", &format!("key_{key_id}")]));
    let server = Server::signing(command(&["serve"]));
    let visitor = Visitor { server: &server, cookie };
    let ended = visitor.get("/account");
    assert_eq!((ended.status, ended.header("set-cookie").ends_with("; Max-Age=0")), (401, true));
    assert!(text(&ended).contains("Your session has ended") && text(&ended).contains("revoked"), "{}", text(&ended));
}
