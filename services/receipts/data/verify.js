// Checks the receipt of this page with what the browser has: SHA-256 over the canonical body (RFC 8785), Ed25519, and the path to the root of
// the signed tree (RFC 6962).
"use strict";

const list = document.getElementById("checks");
const receipt = JSON.parse(document.getElementById("receipt").content.textContent);

function say(holds, words) {
    const line = document.createElement("li");
    line.textContent = (holds === null ? "not checked: " : holds ? "holds: " : "DOES NOT HOLD: ") + words;
    list.append(line);
}

// JSON.stringify writes numbers and strings as RFC 8785 asks; what it lacks is the order.
function canonical(value) {
    if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    return "{" + Object.keys(value).sort().map((name) => JSON.stringify(name) + ":" + canonical(value[name])).join(",") + "}";
}

const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

const utf8 = (text) => new TextEncoder().encode(text);
const base64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

async function sha256(...parts) {
    return new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer()));
}

async function signed(publicKeyHex, signature, message) {
    const key = await crypto.subtle.importKey("raw", bytes(publicKeyHex), "Ed25519", false, ["verify"]);
    return crypto.subtle.verify("Ed25519", key, signature, message);
}

// Whether the path leads from the receipt to the root that the checkpoint names, and the checkpoint is signed by one of some keys.
async function included({ leafIndex, checkpoint, publicKeyHex, proof }, keys) {
    const [text, signature] = checkpoint.split("\n\n");
    const [, size, root] = text.split("\n");
    let [at, last] = [leafIndex, Number(size) - 1];
    let hash = await sha256(Uint8Array.of(0), utf8(canonical(receipt)));
    const up = () => { [at, last] = [Math.floor(at / 2), Math.floor(last / 2)]; };
    for (const other of proof.map(bytes)) {
        if (at % 2 === 1 || at === last) {
            hash = await sha256(Uint8Array.of(1), other, hash);
            while (at % 2 === 0 && at > 0) up();
        } else {
            hash = await sha256(Uint8Array.of(1), hash, other);
        }
        up();
    }
    const isRoot = last === 0 && hex(hash) === hex(base64(root));
    return isRoot && keys.has(publicKeyHex) && signed(publicKeyHex, base64(signature.trim().split(" ").at(-1)).slice(4), utf8(text + "\n"));
}

async function check() {
    list.replaceChildren();
    const hash = await sha256(utf8(canonical(receipt.body)));
    const digits = hex(hash);
    say(receipt.contentHash === "sha256:" + digits, "the content hash is that of the body");
    say(receipt.id === "rcpt_" + digits.slice(0, 32), "the id is that of the content hash");
    const { value, publicKeyHex } = receipt.signature;
    try {
        say(await signed(publicKeyHex, bytes(value), hash), "the signature is over that hash, by the key named");
    } catch {
        say(null, "the signature; this browser has no Ed25519");
    }
    const keys = new Set((await (await fetch("../pubkey")).json()).keys.map((key) => key.publicKeyHex));
    say(keys.has(publicKeyHex), "the key is one of this issuer's");
    const { checks, position, inclusion } = await (await fetch("../v1/verify/" + receipt.id)).json();
    say(checks.chain, "it is in its agent's chain, at place " + position.seq + " of " + position.length);
    if (inclusion === null) say(null, "that it is a leaf of the signed tree: the next checkpoint is not out yet");
    else say(await included(inclusion, keys), "it is leaf " + inclusion.leafIndex + " of the tree that the issuer signed");
}

check().catch((error) => say(null, "the rest: " + error.message));
