// Verifies receipts and the places of changes with what the browser has: SHA-256 over the canonical body (RFC 8785), Ed25519, and the path to the root of
// the signed tree (RFC 6962). A receipt that is pasted or dropped is not sent anywhere; only the public keys are fetched, and its place if the visitor
// asks for it. The place of a change is computed from the tiles of the tree of its service.
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

  const leaf = (content) => sha256(Uint8Array.of(0), content);
  const pair = (left, right) => sha256(Uint8Array.of(1), left, right);

  // A checkpoint: what is signed, and the first signature, which is the issuer's; those of witnesses follow.
  const opened = (checkpoint) => {
    const [text, signatures] = checkpoint.split("\n\n");
    const [, size, root] = text.split("\n");
    if (!Number.isSafeInteger(Number(size))) throw new Error("the checkpoint has no number of leaves");
    const own = signatures.split("\n")[0].trim().split(" ").at(-1);
    return { size: Number(size), root: hex(base64(root)), signature: base64(own).slice(4), text: utf8(text + "\n") };
  };

  // Whether the path leads from a leaf to the root of a tree of so many leaves.
  const leadsUp = async (hash, at, size, path, root) => {
    let last = size - 1;
    if (!Number.isSafeInteger(at) || !Number.isSafeInteger(last) || at < 0 || at > last) return false;
    const up = () => { [at, last] = [Math.floor(at / 2), Math.floor(last / 2)]; };
    for (const other of path) {
      if (at % 2 === 1 || at === last) {
        hash = await pair(other, hash);
        while (at % 2 === 0 && at > 0) up();
      } else {
        hash = await pair(hash, other);
      }
      up();
    }
    return last === 0 && hex(hash) === root;
  };

  // Whether the path leads from the receipt to the root that the checkpoint names, and the checkpoint is signed by one of some keys.
  const included = async (receipt, { leafIndex, checkpoint, publicKeyHex, proof }, keys) => {
    const { size, root, signature, text } = opened(checkpoint);
    const { id, body, contentHash } = receipt;
    const hash = await leaf(utf8(canonical({ id, body, contentHash, signature: receipt.signature })));
    const isLeaf = await leadsUp(hash, leafIndex, size, proof.map((other) => bytes(other, 32)), root);
    return isLeaf && keys.has(publicKeyHex) && signed(publicKeyHex, signature, text);
  };

  // A check that cannot be made because of what the receipt says does not hold.
  const holds = async (check) => {
    try {
      return await check();
    } catch {
      return false;
    }
  };

  const fetched = async (address) => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return answer;
  };
  const publicKeys = async (address) => {
    const { keys } = await (await fetched(address)).json();
    return new Set(keys.map((key) => key.publicKeyHex));
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
      keys = await publicKeys(base + "pubkey");
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

  const run = (receipt, inclusion, isAsked) => {
    const own = current + 1;
    return check(receipt, inclusion, isAsked).catch((error) => {
      if (own !== current) return;
      say(null, "the rest: " + error.message);
      concludeByResults();
    });
  };

  // What cannot be a receipt takes the place of an earlier verdict, also of one that is still being found.
  const refuse = (words) => {
    current += 1;
    list.replaceChildren();
    conclude(words, "unsure");
  };

  // The tiles of a tree of so many leaves (C2SP tlog-tiles): 256 hashes of one level, or as many as there are.
  const TILE_HASHES = 256;
  const tilesOf = (at, size) => {
    const known = new Map();
    return (kind, level, number) => {
      const width = Math.min(TILE_HASHES, Math.floor(size / TILE_HASHES ** level) - number * TILE_HASHES);
      let name = String(number % 1000).padStart(3, "0");
      for (let rest = Math.floor(number / 1000); rest > 0; rest = Math.floor(rest / 1000)) name = `x${String(rest % 1000).padStart(3, "0")}/${name}`;
      const address = `${at}tile/${kind}/${name}${width < TILE_HASHES ? `.p/${width}` : ""}`;
      if (!known.has(address)) known.set(address, fetched(address).then(async (answer) => new Uint8Array(await answer.arrayBuffer())));
      return known.get(address);
    };
  };

  // The path of a leaf: the hashes with which it leads up to the root, the lowest first.
  const pathOf = async (tile, index, size) => {
    const halfOf = (count) => {
      let half = 1;
      while (half * 2 < count) half *= 2;
      return half;
    };
    const rootOf = async (start, end) => {
      const count = end - start;
      const half = halfOf(count);
      if (count > 1 && count !== half * 2) return pair(await rootOf(start, start + half), await rootOf(start + half, end));
      // A whole subtree: the hashes of the nearest level below that has tiles are combined.
      let [level, width] = [0, count];
      while (width >= TILE_HASHES) [level, width] = [level + 1, width / TILE_HASHES];
      const first = start / TILE_HASHES ** level;
      const held = await tile(level, level, Math.floor(first / TILE_HASHES));
      let hashes = Array.from({ length: width }, (_, at) => held.slice(((first % TILE_HASHES) + at) * 32, ((first % TILE_HASHES) + at + 1) * 32));
      while (hashes.length > 1) hashes = await Promise.all(hashes.filter((_, at) => at % 2 === 0).map((left, at) => pair(left, hashes[2 * at + 1])));
      return hashes[0];
    };
    const within = async (start, end) => {
      if (end - start === 1) return [];
      const split = start + halfOf(end - start);
      if (index < split) return [...await within(start, split), await rootOf(split, end)];
      return [...await within(split, end), await rootOf(start, split)];
    };
    return within(0, size);
  };

  // The hash of a change, which is a leaf of the tree of its service.
  const hashOf = async (tile, index) => {
    const ENTRY_BYTES = 34;
    const held = await tile("entries", 0, Math.floor(index / TILE_HASHES));
    const start = (index % TILE_HASHES) * ENTRY_BYTES;
    return held.slice(start + 2, start + ENTRY_BYTES);
  };

  const checkChange = async ({ seq, tree, keys }) => {
    current += 1;
    results = [];
    list.replaceChildren();
    conclude("Checking…", "unsure");
    if (!window.crypto || !crypto.subtle) {
      say(null, "anything: browsers have cryptography only on https pages and on this computer itself");
      return concludeByResults();
    }
    const { size, root, signature, text } = opened(await (await fetched(tree + "checkpoint")).text());
    const index = Number(seq) - 1;
    if (index >= size) {
      say(null, `that change ${seq} is in the signed tree: the newest checkpoint ends with change ${size}, the next one is not out yet`);
      return concludeByResults();
    }
    const tile = tilesOf(tree, size);
    const hash = await hashOf(tile, index);
    const isLeaf = await leadsUp(await leaf(hash), index, size, await pathOf(tile, index, size), root);
    say(isLeaf, `change ${seq} is leaf ${index} of the tree of ${size} changes; its hash is ${hex(hash)}`);
    if (!keys) {
      say(null, "the signature: this server shows no public keys");
    } else if (await hasEd25519()) {
      let isSigned = false;
      for (const key of await publicKeys(keys)) isSigned ||= await holds(() => signed(key, signature, text));
      say(isSigned, "the root of the tree is signed by a key of this server");
    } else {
      say(null, "the signature; this browser has no Ed25519");
    }
    return concludeByResults();
  };
  const proof = document.getElementById("proof");
  if (proof) {
    const button = proof.querySelector("button");
    proof.hidden = false;
    button.addEventListener("click", async () => {
      button.disabled = true;
      await checkChange(proof.dataset).catch((error) => {
        say(null, "the rest: " + error.message);
        concludeByResults();
      });
      button.disabled = false;
    });
  }

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
    if (text.value.length > TEXT_CHARS_MAX) return refuse("TOO LONG FOR A RECEIPT");
    let given = null;
    try {
      given = JSON.parse(text.value);
    } catch {
      return refuse("THIS IS NOT JSON");
    }
    // An answer of the issuer holds the receipt, and often the proof of its place in the tree.
    const receipt = given && typeof given.receipt === "object" && given.receipt !== null ? given.receipt : given;
    const inclusion = (given && given.inclusion) || (receipt && receipt.inclusion) || null;
    return run(receipt, inclusion, ask.checked);
  };
  const read = async (given) => {
    if (!given) return;
    if (given.size > TEXT_CHARS_MAX) return refuse("TOO LONG FOR A RECEIPT");
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
