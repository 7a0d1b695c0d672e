#!/usr/bin/env python3
"""Shows webhooks of a running demo: registers some on most services, then verifies and prints every message that arrives.

  HIGHWATER_WEBHOOKS__ALLOW_PRIVATE_TARGETS=true highwater demo
  python3 ops/examples/webhooks.py "$(highwater keys mint --tier business)" [http://127.0.0.1:8080] [messages]

Ends after the given number of messages, or with Ctrl-C, and deletes the webhooks that it registered. Needs only Python 3.8. verify_webhook.py verifies
messages with the Standard Webhooks library instead.
"""

import base64
import hashlib
import hmac
import json
import signal
import sys
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

KEY = sys.argv[1]
API = sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:8080"
MESSAGES = int(sys.argv[3]) if len(sys.argv) > 3 else 0
TOLERANCE_S = 300
SECRETS = {}  # the secret of each webhook, by the path of its URL
SEEN = set()  # webhook-ids of processed messages: a repeated message has the same id


def is_authentic(secret, headers, body):
    """Returns whether the message is signed with the secret and at most TOLERANCE_S seconds old."""
    ident, at, signatures = (headers.get(name, "") for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    if not at.isdigit() or abs(time.time() - int(at)) > TOLERANCE_S:
        return False
    key = base64.b64decode(secret[len("whsec_"):])
    signed = b".".join([ident.encode(), at.encode(), body])
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in signatures.split(" "))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), 1 << 20))
        good = self.path in SECRETS and is_authentic(SECRETS[self.path], self.headers, body)
        self.send_response(204 if good else 400)
        self.end_headers()
        ident = self.headers.get("webhook-id", "")
        if good and ident not in SEEN:
            SEEN.add(ident)
            message = json.loads(body)
            print(f"{self.path[1:]:<18} {ident} {message['event']}: {body[:160].decode(errors='replace')}…", flush=True)

    def log_message(self, *_):
        pass


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(API + path, data, {"x-api-key": KEY, "content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


def delete(paths):
    """Deletes webhooks, so that the demo does not send messages to a port that nobody listens on."""
    for path in paths:
        try:
            call("DELETE", path)
        except (urllib.error.URLError, OSError) as error:
            print(f"{path} remains: {error}", file=sys.stderr)
    print(f"{len(paths)} webhooks are deleted", flush=True)


def changed_last(service, field, most):
    """Returns the values of a field in the records that changed last, each once, the newest first. A record with hidden fields cannot be watched by its id."""
    changes = call("GET", f"/{service}/v1/changes?start=newest&limit=200")["changes"]
    records = [change["record"] for change in reversed(changes)]
    values = [record.get(field) for record in records if not record.get("suppressed")]
    return list(dict.fromkeys(filter(None, values)))[:most]


def watches():
    """Returns what is watched: a service, and the fields of the watch."""
    yield "research", {"entity": {"type": "institution", "value": "university"}}
    for category in call("GET", "/labs/categories")["categories"]:
        yield "labs", {"entity": {"type": "category", "value": category["name"]}}
    for recipient in changed_last("awards", "recipient", 20):
        yield "awards", {"contractor": recipient}
    companies = {f["cik"] for f in call("GET", "/filings/v1/whats_new_since?start=earliest&limit=200")["filings"]}
    for cik in sorted(companies)[:20]:
        yield "filings", {"cik": cik}
    for item in changed_last("cadence", "id", 20):
        yield "cadence", {"item": item}
    yield "catalysts", {"entity": {"type": "kind", "value": "readout"}}
    yield "aviation", {"make": "Piper", "model": "PA-24-250"}
    yield "parcels", {"county": "cook-il"}
    for phrase in changed_last("phrases", "phrase", 20):
        yield "phrases", {"phrase": phrase}


def main():
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    here = f"http://127.0.0.1:{server.server_port}"
    targets = [
        ("recalls", "/recalls/api/webhook", {"webhook_url": f"{here}/recalls"}),
        ("names", "/names/api/watch", {"name": "Oxberrin", "webhook": f"{here}/names"}),
    ]
    for number, (service, fields) in enumerate(watches()):
        name = f"{service}/{number}"
        targets.append((name, f"/{service}/v1/watchlist", {**fields, "webhook": f"{here}/{name}"}))
    registered = []
    try:
        for name, path, body in targets:
            webhook = call("POST", path, body)
            registered.append(f"{path}/{webhook['id']}")
            SECRETS["/" + name] = webhook["secret"]
        print(f"{len(targets)} webhooks are registered; messages are printed here", flush=True)
        while not MESSAGES or len(SEEN) < MESSAGES:
            server.handle_request()
    finally:
        delete(registered)


# SIGTERM ends the program as Ctrl-C does, so that it cleans up.
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    main()
except KeyboardInterrupt:
    pass
except urllib.error.HTTPError as error:
    sys.exit(f"{error.url}: {error.code} {error.read().decode(errors='replace')}")
except urllib.error.URLError as error:
    sys.exit(f"{API} does not answer: {error.reason}")
