// Verifies receipts with what the browser has: SHA-256 over the canonical body (RFC 8785), Ed25519, and the path to the root of the signed tree
// (RFC 6962). A receipt that is pasted or dropped is not sent anywhere; only the public keys are fetched, and its place if the visitor asks for it.
(() => {
  "use strict";
  const list = document.getElementById("checks");
  const verdict = document.getElementById("verdict");
  if (!list || !verdict) return;
  const base = list.dataset.base || "../";
  const TEXT_CHARS_MAX = 1_000_000;
  const DEPTH_MAX = 100;
  let results = [];
  // A check that is overtaken by another one says nothing any more.
  let current = 0;

  const say = (holds, words) => {
    results.push(holds);
    const line = document.createElement("li");
    line.textContent = (holds === null ? "not checked: " : holds ? "holds: " : "DOES NOT HOLD: ") + words;
    list.append(line);
  };
  const conclude = (words, className) => {
    verdict.className = `verdict ${className}`;
    verdict.textContent = words;
  };
  const concludeByResults = () => {
    if (results.includes(false) || results.length === 0) conclude("NOT VALID", "bad");
    else if (results.includes(null)) conclude("NOT FULLY CHECKED", "unsure");
    else conclude("VALID", "good");
  };

  // JSON.stringify writes numbers and strings as RFC 8785 asks; what it lacks is the order.
  const canonical = (value, depth = 0) => {
    if (depth > DEPTH_MAX) throw new Error("the receipt is nested too deeply");
    if (Array.isArray(value)) return "[" + value.map((item) => canonical(item, depth + 1)).join(",") + "]";
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    return "{" + Object.keys(value).sort().map((name) => JSON.stringify(name) + ":" + canonical(value[name], depth + 1)).join(",") + "}";
  };

  const bytes = (text, length) => {
    if (typeof text !== "string" || !new RegExp(`^[0-9a-f]{${2 * length}}$`).test(text)) throw new Error("a hash, key or signature is not hexadecimal");
    return Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
  };
  const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const utf8 = (text) => new TextEncoder().encode(text);
  const base64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer()));

  const signed = async (publicKeyHex, signature, message) => {
    const key = await crypto.subtle.importKey("raw", bytes(publicKeyHex, 32), "Ed25519", false, ["verify"]);
    return crypto.subtle.verify("Ed25519", key, signature, message);
  };
  const hasEd25519 = async () => {
    try {
      await crypto.subtle.importKey("raw", new Uint8Array(32), "Ed25519", false, ["verify"]);
      return true;
    } catch (error) {
      return error.name !== "NotSupportedError";
    }
  };

  // Whether the path leads from the receipt to the root that the checkpoint names, and the checkpoint is signed by one of some keys.
  const included = async (receipt, { leafIndex, checkpoint, publicKeyHex, proof }, keys) => {
    const [text, signature] = checkpoint.split("\n\n");
    const [, size, root] = text.split("\n");
    let [at, last] = [leafIndex, Number(size) - 1];
    if (!Number.isSafeInteger(at) || !Number.isSafeInteger(last) || at < 0 || at > last) return false;
    const { id, body, contentHash } = receipt;
    let hash = await sha256(Uint8Array.of(0), utf8(canonical({ id, body, contentHash, signature: receipt.signature })));
    const up = () => { [at, last] = [Math.floor(at / 2), Math.floor(last / 2)]; };
    for (const other of proof.map((other) => bytes(other, 32))) {
      if (at % 2 === 1 || at === last) {
        hash = await sha256(Uint8Array.of(1), other, hash);
        while (at % 2 === 0 && at > 0) up();
      } else {
        hash = await sha256(Uint8Array.of(1), hash, other);
      }
      up();
    }
    const isRoot = last === 0 && hex(hash) === hex(base64(root));
    // The first signature is the issuer's; those of witnesses follow.
    const own = signature.split("\n")[0];
    return isRoot && keys.has(publicKeyHex) && signed(publicKeyHex, base64(own.trim().split(" ").at(-1)).slice(4), utf8(text + "\n"));
  };

  // A check that cannot be made because of what the receipt says does not hold.
  const holds = async (check) => {
    try {
      return await check();
    } catch {
      return false;
    }
  };

  const publicKeys = async () => {
    const answer = await fetch(base + "pubkey");
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return new Set((await answer.json()).keys.map((key) => key.publicKeyHex));
  };

  const check = async (receipt, inclusion, isAsked) => {
    current += 1;
    const own = current;
    results = [];
    list.replaceChildren();
    conclude("Checking…", "unsure");
    const report = (held, words) => { if (own === current) say(held, words); };
    if (!window.crypto || !crypto.subtle) {
      report(null, "anything: browsers have cryptography only on https pages and on this computer itself");
      return concludeByResults();
    }
    if (receipt === null || typeof receipt !== "object" || receipt.body === null || typeof receipt.body !== "object") {
      report(false, "it has a body");
      return concludeByResults();
    }
    const hash = await sha256(utf8(canonical(receipt.body)));
    const digits = hex(hash);
    report(receipt.contentHash === "sha256:" + digits, "the content hash is that of the body");
    report(receipt.id === "rcpt_" + digits.slice(0, 32), "the id is that of the content hash");
    const { value, publicKeyHex, algorithm } = receipt.signature ?? {};
    if (await hasEd25519()) {
      const isSigned = await holds(() => algorithm === "Ed25519" && signed(publicKeyHex, bytes(value, 64), hash));
      report(isSigned, "the signature is over that hash, by the key named");
    } else {
      report(null, "the signature; this browser has no Ed25519");
    }
    let keys = null;
    try {
      keys = await publicKeys();
      report(keys.has(publicKeyHex), "the key is one of this issuer's");
    } catch (error) {
      report(null, "that the key is one of this issuer's: " + error.message);
    }
    let isKnown = false;
    if (isAsked) {
      const answer = await fetch(base + "v1/verify/" + encodeURIComponent(String(receipt.id)));
      isKnown = answer.ok;
      if (isKnown) {
        const { checks, position, inclusion: proof } = await answer.json();
        report(checks.chain, "it is in its agent's chain, at place " + (position ? `${position.seq} of ${position.length}` : "none"));
        inclusion = proof;
      } else {
        report(false, "this issuer knows its id");
      }
    }
    if (inclusion && keys) {
      const leaf = Number.isSafeInteger(inclusion.leafIndex) ? `leaf ${inclusion.leafIndex}` : "a leaf";
      report(await holds(() => included(receipt, inclusion, keys)), `it is ${leaf} of the tree that the issuer signed`);
    } else if (isKnown) {
      report(null, "that it is a leaf of the signed tree: the next checkpoint is not out yet");
    }
    if (own === current) concludeByResults();
  };

  const run = (receipt, inclusion, isAsked) => check(receipt, inclusion, isAsked).catch((error) => {
    say(null, "the rest: " + error.message);
    concludeByResults();
  });

  const shown = document.getElementById("receipt");
  if (shown) run(JSON.parse(shown.content.textContent), null, true);

  // The form for a receipt of the visitor's own.
  const form = document.getElementById("verifier");
  const text = document.getElementById("pasted");
  const file = document.getElementById("file");
  const ask = document.getElementById("ask");
  if (!form || !text || !file || !ask) return;
  form.hidden = false;
  const needed = document.getElementById("needs-script");
  if (needed) needed.remove();

  const verify = () => {
    if (text.value.length > TEXT_CHARS_MAX) {
      list.replaceChildren();
      return conclude("TOO LONG FOR A RECEIPT", "unsure");
    }
    let given = null;
    try {
      given = JSON.parse(text.value);
    } catch {
      list.replaceChildren();
      return conclude("THIS IS NOT JSON", "unsure");
    }
    // An answer of the issuer holds the receipt, and often the proof of its place in the tree.
    const receipt = given && typeof given.receipt === "object" && given.receipt !== null ? given.receipt : given;
    const inclusion = (given && given.inclusion) || (receipt && receipt.inclusion) || null;
    return run(receipt, inclusion, ask.checked);
  };
  const read = async (given) => {
    if (!given) return;
    if (given.size > TEXT_CHARS_MAX) return conclude("TOO LONG FOR A RECEIPT", "unsure");
    text.value = await given.text();
    verify();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    verify();
  });
  file.addEventListener("change", () => read(file.files[0]));
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    const dropped = event.dataTransfer.files[0];
    if (dropped) read(dropped);
    else {
      text.value = event.dataTransfer.getData("text/plain");
      verify();
    }
  });
})();
