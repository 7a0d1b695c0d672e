//! What holds of the messages of webhooks, also after kills: one check for each behaviour.

use std::path::Path;

use serde_json::{Value, json};

use super::receiver::{Message, Receiver};
use super::{RECALLS_ENDPOINT, Target, new_recalls, verify_with_examples};
use crate::portal::{Visitor, text};
use crate::process::{Answer, Server, wait_for};

/// A server that sends messages, the key of their owner, and what received them.
pub(super) struct Checks<'a> {
    pub(super) server: &'a Server,
    pub(super) key: &'a str,
    pub(super) receiver: &'a Receiver,
}

impl Checks<'_> {
    /// Every change that a target must get arrives in the order of the feed, and then its deliveries are idle.
    pub(super) fn assert_all_arrive(&self, all: &[Target]) {
        let Self { server, key, receiver } = *self;
        let mut filings = 0;
        for target in all {
            let expected = target.expected(server, key);
            let is_filing = target.path.starts_with("filings");
            filings += if is_filing { expected.len() } else { 0 };
            assert!(is_filing || !expected.is_empty(), "{}", target.path);
            wait_for("all messages", || (target.accepted(receiver) == expected).then_some(()));
            let state = wait_for("the end of its deliveries", || {
                let state = server.json(&target.at("/deliveries"), key);
                (state["state"] == "idle").then_some(state)
            });
            assert_eq!(state["failingSince"], "", "{state}");
            assert!(state["deliveries"].as_array().unwrap().iter().all(|attempt| attempt["status"] == 204 || attempt["status"] == 503));
        }
        assert!(filings > 0, "no company filed");
    }

    /// A target that answered 410 gets nothing more until its owner resumes it.
    pub(super) fn assert_gone_waits_for_its_owner(&self, gone: &Target, run: &dyn Fn(&[&str]) -> String) {
        let Self { server, key, receiver } = *self;
        let state = server.json(&gone.at("/deliveries"), key);
        assert_eq!((&state["state"], &state["status"]), (&json!("disabled"), &json!(410)), "{state}");
        // A kill after the message was posted and before its outcome is recorded repeats it, under the same id.
        let posted = receiver.messages("gone");
        let same = |message: &Message, other: &Message| message.id == other.id && message.body == other.body;
        assert!(!posted.is_empty() && posted.iter().all(|message| same(message, &posted[0])), "{posted:?}");
        assert!(run(&["webhooks", "list"]).lines().next().unwrap().starts_with(&gone.id), "failing targets must be listed first");
        run(&["webhooks", "replay", &gone.id]);
        let again = wait_for("another attempt", || receiver.messages("gone").split_off(posted.len()).pop());
        assert!(same(&again, &posted[0]), "a resumed target must get the same message again: {again:?}");
    }

    /// The portal shows the webhooks and their attempts, and sends a test message.
    pub(super) fn assert_portal_shows_webhooks(&self, gone: &Target, all: &[Target]) {
        let Self { server, key, receiver } = *self;
        let portal = Visitor::signed_in(server, key);
        let page = |answer: Answer| {
            assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"));
            text(&answer)
        };
        let shown = page(portal.get("/account/webhooks"));
        for words in [gone.id.as_str(), all[1].id.as_str(), "127.0.0.1"] {
            assert!(shown.contains(words), "{words} is not in {shown}");
        }
        let path_of = |target: &Target| format!("/account/webhooks/{}/{}", target.endpoint.split('/').nth(1).unwrap(), target.id);
        let attempts = page(portal.get(&path_of(gone)));
        assert!(attempts.contains("the receiver answered 410 (gone)") && attempts.contains("value=\"resend\""), "{attempts}");
        let awards = format!("/account/webhooks/awards/{}", all[2].id);
        let before = receiver.messages("awards").len();
        let pinged = page(portal.post(&awards, "act=ping"));
        assert_eq!(receiver.messages("awards").len(), before + 1);
        assert!(
            pinged.contains("The test message was accepted with status 204.")
                || pinged.contains("The test message was not accepted: the receiver answered 503."),
            "{pinged}"
        );
        let wrong = portal.post(&awards, "act=replay&after=%3Cb%3E");
        assert!(wrong.status == 400 && !text(&wrong).contains("<b>"), "{}", text(&wrong));
    }

    /// A rebuild while the sender runs, and a new decision, send nothing; nor does the next check of the sender. Both secrets sign during a rotation.
    pub(super) fn assert_rebuilds_send_nothing(&self, gone: &Target, all: &[Target], run: &dyn Fn(&[&str]) -> String, dir: &Path) {
        let Self { server, key, receiver } = *self;
        let before = receiver.count();
        run(&["replay", "all"]);
        run(&["redecide", "deliveries"]);
        let awards = &all[2];
        assert_eq!(server.send("DELETE", &gone.at(""), key, "").status, 200);
        let rotated = server.send("PATCH", &awards.at(""), key, &json!({"rotateSecret": true}).to_string());
        assert_eq!(rotated.status, 200, "{}", String::from_utf8_lossy(&rotated.body));
        let rotated: Value = serde_json::from_slice(&rotated.body).unwrap();
        let ping = || server.send("POST", &awards.at("/ping"), key, "{}").status;
        std::iter::repeat_with(ping).take(8).for_each(|status| assert_eq!(status, 200));
        wait_for("eight pings", || (receiver.count() >= before + 8).then_some(()));
        let pings = receiver.messages("awards").split_off(receiver.messages("awards").len() - 8);
        let secrets = [rotated["secret"].as_str().unwrap(), &awards.secret];
        for ping in &pings {
            assert_eq!(
                ping.signatures,
                secrets.map(|secret| ping.expected_signature(secret)).join(" "),
                "both secrets must sign during the rotation"
            );
        }
        let lasts = all.iter().filter_map(|target| Some(receiver.messages(&target.path).pop()?.to_example_json(&target.secret)));
        let pings = pings.iter().flat_map(|ping| secrets.map(|secret| ping.to_example_json(secret)));
        verify_with_examples(dir, lasts.chain(pings).collect());
    }

    /// A replay from the beginning sends each recall in its own message, with its earlier id. Returns the ids.
    pub(super) fn assert_replay_from_the_beginning(&self, recalls: &Target) -> Vec<String> {
        let Self { server, key, receiver } = *self;
        let ids = |receiver: &Receiver| {
            receiver.messages("recalls").into_iter().filter(|message| message.status == 204).map(|message| message.id).collect::<Vec<_>>()
        };
        let mut known = ids(receiver);
        known.dedup();
        let replayed = server.send("POST", &recalls.at("/replay"), key, &json!({"after": recalls.after}).to_string());
        assert_eq!(replayed.status, 200, "{}", String::from_utf8_lossy(&replayed.body));
        wait_for("all messages again", || {
            let mut again = ids(receiver);
            again.dedup();
            (again.len() == 2 * known.len() && again[known.len()..] == known).then_some(())
        });
        known
    }

    /// After a replay of a range, by seqs up to before a recall or by cursors, delivery continues at its earlier position.
    pub(super) fn assert_replay_of_ranges(&self, recalls: &Target, known: &[String]) {
        let Self { server, key, receiver } = *self;
        let received = |wanted: u64| {
            wait_for("the replayed messages", || {
                let state = server.json(&recalls.at("/deliveries"), key);
                let delivered = state["deliveredSeq"].as_u64().unwrap();
                (state["state"] == "idle" && state["rangeEnd"].is_null() && delivered >= wanted).then_some(delivered)
            })
        };
        let seqs: Vec<u64> = new_recalls(server, key).into_iter().map(|(seq, _)| seq).filter(|seq| *seq > recalls.after).collect();
        let (at, last) = (known.len() / 2, *seqs.last().unwrap());
        let position = received(last);
        let replay = |body: &Value| server.send("POST", &recalls.at("/replay"), key, &body.to_string());
        let ranged = |body: Value, wanted: &[String]| {
            let before = receiver.messages("recalls").len();
            let answer = replay(&body);
            assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
            assert_eq!(received(last), position, "delivery must continue at its earlier position");
            let mut again = receiver.messages("recalls").split_off(before);
            again.retain(|message| message.status == 204);
            let mut again: Vec<String> = again.into_iter().map(|message| message.id).collect();
            again.dedup();
            assert_eq!(again, wanted, "{body}");
        };
        ranged(json!({"after": recalls.after, "upto": seqs[at + 1] - 1}), &known[..=at]);
        ranged(json!({"cursor": self.cursor_at("recalls", recalls.after), "uptoCursor": self.cursor_at("recalls", seqs[0])}), &known[..1]);
    }

    /// A replay of what cannot be sent is refused, and the error names the parameter.
    pub(super) fn assert_wrong_replays_are_refused(&self, recalls: &Target) {
        let Self { server, key, .. } = *self;
        for (body, parameter) in [
            (json!({"upto": 5}), "upto"),
            // Changes from before the watch was made are not sent.
            (json!({"after": recalls.after - 1}), "after"),
            (json!({"after": recalls.after - 1, "upto": recalls.after}), "after"),
            (json!({"cursor": self.cursor_before("recalls", recalls.after)}), "cursor"),
            (json!({"after": recalls.after, "upto": recalls.after}), "upto"),
            (json!({"after": 1_u64 << 40}), "after"),
            (json!({"after": -1}), "after"),
            (json!({"after": 0, "cursor": "x"}), "cursor"),
            (json!({"after": 0, "uptoCursor": "x"}), "uptoCursor"),
            (json!({"cursor": self.cursor_at("awards", 1)}), "cursor"),
            (json!({"from": 0}), "from"),
        ] {
            let refused = server.send("POST", &recalls.at("/replay"), key, &body.to_string());
            let problem: Value = serde_json::from_slice(&refused.body).unwrap();
            assert_eq!((refused.status, problem["parameter"].as_str()), (400, Some(parameter)), "{body}: {problem}");
        }
    }

    /// A webhook that cannot be registered is refused, and the error names the parameter.
    pub(super) fn assert_wrong_webhooks_are_refused(&self) {
        let Self { server, key, receiver } = *self;
        for (body, parameter) in [
            (json!({"webhook_url": receiver.url("x"), "secret": "whsec_c2hvcnQ="}), "secret"),
            (json!({"webhook_url": 7}), "webhook_url"),
            (json!({}), "webhook_url"),
            (json!({"webhook_url": receiver.url("x"), "extra": 1}), "extra"),
        ] {
            let refused = server.send("POST", RECALLS_ENDPOINT, key, &body.to_string());
            let problem: Value = serde_json::from_slice(&refused.body).unwrap();
            assert_eq!((refused.status, problem["parameter"].as_str()), (400, Some(parameter)), "{body}: {problem}");
        }
    }

    /// A message is sent again under its id; one that was never sent is unknown.
    pub(super) fn assert_resend(&self, recalls: &Target, one: &str) {
        let Self { server, key, receiver } = *self;
        let resent = server.send("POST", &recalls.at("/resend"), key, &json!({"message": one}).to_string());
        assert_eq!(resent.status, 200, "{}", String::from_utf8_lossy(&resent.body));
        assert_eq!(receiver.messages("recalls").last().unwrap().id, one);
        let unknown = server.send("POST", &recalls.at("/resend"), key, &json!({"message": "msg_0"}).to_string());
        assert_eq!(unknown.status, 404);
    }

    /// The cursor after the changes of a service up to a seq; if the feed does not show that one, up to the next one that it shows.
    fn cursor_at(&self, service: &str, upto: u64) -> String {
        self.cursors_around(service, upto)[1].clone()
    }

    /// The cursor of the last change of a service that the feed shows before a seq.
    fn cursor_before(&self, service: &str, seq: u64) -> String {
        self.cursors_around(service, seq)[0].clone()
    }

    /// The cursors of the last change that the feed of a service shows before a seq, and of the first one from there on.
    fn cursors_around(&self, service: &str, seq: u64) -> [String; 2] {
        let Self { server, key, .. } = *self;
        let page_at = |from: &str| server.json(&format!("/{service}/v1/changes?limit=1&{from}"), key);
        let cursor_of = |page: &Value| page["cursor"].as_str().unwrap().to_owned();
        let (mut page, mut before) = (page_at("start=earliest"), String::new());
        while page["to"].as_u64().unwrap() < seq {
            before = cursor_of(&page);
            page = page_at(&format!("cursor={before}"));
        }
        [before, cursor_of(&page)]
    }
}
