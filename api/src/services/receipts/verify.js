// Checks the receipt of this page with what the browser has: SHA-256 over the canonical body (RFC 8785), and Ed25519.
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

async function check() {
    list.replaceChildren();
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(receipt.body)));
    const digits = hex(hash);
    say(receipt.contentHash === "sha256:" + digits, "the content hash is that of the body");
    say(receipt.id === "rcpt_" + digits.slice(0, 32), "the id is that of the content hash");
    const { value, publicKeyHex } = receipt.signature;
    try {
        const key = await crypto.subtle.importKey("raw", bytes(publicKeyHex), "Ed25519", false, ["verify"]);
        say(await crypto.subtle.verify("Ed25519", key, bytes(value), hash), "the signature is over that hash, by the key named");
    } catch {
        say(null, "the signature; this browser has no Ed25519");
    }
    const keys = (await (await fetch("../pubkey")).json()).keys;
    say(keys.some((key) => key.publicKeyHex === publicKeyHex), "the key is one of this issuer's");
    const verified = await (await fetch("../v1/verify/" + receipt.id)).json();
    say(verified.checks.chain, "it stands in its agent's chain, at place " + verified.position.seq + " of " + verified.position.length);
    say(verified.inclusion === null ? null : true, "it is a leaf of the signed tree" + (verified.inclusion === null ? " (the next checkpoint is not out yet)" : ""));
}

check().catch((error) => say(null, "the rest: " + error.message));
