// What ops/checks/site asks a server without a browser: addresses and their descriptions, the size of scripts, quotas and the limit of an address.

import assert from "node:assert/strict";
import { get } from "node:http";
import { gzipSync } from "node:zlib";

const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };
const SCRIPT_BYTES_MAX = 60_000;
/** One address may read 300 pages a minute; the requests can begin in one minute and end in the next one. */
const PAGES_MAX = 601;
/** Addresses of this machine that nothing else in the check uses. */
const COUNTED_ADDRESS = "127.0.0.100";
const LIMITED_ADDRESS = "127.0.0.101";

/** Reads an address, from an address of this machine. */
const ask = (url, headers, localAddress) => new Promise((resolve, reject) => {
  const request = get(url, { headers, localAddress }, (response) => {
    const parts = [];
    response.on("data", (part) => parts.push(part));
    response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts).toString() }));
    response.on("error", reject);
  });
  request.on("error", reject);
});

/** The text of the first match in a page, with the characters that HTML escapes. */
const found = (html, pattern) => {
  const text = html.match(pattern)?.[1] ?? "";
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
};

/** Each page that the sitemap lists answers, says what it is, and names the address under which the sitemap lists it. */
const describedPages = async (site) => {
  const { body } = await ask(new URL("/sitemap.xml", site), BROWSER);
  const addresses = [...body.matchAll(/<loc>([^<]+)<\/loc>/g)].map(([, address]) => address.replaceAll("&amp;", "&"));
  assert(addresses.length > 40, `the sitemap has ${addresses.length} pages`);
  const titles = new Map();
  for (const address of addresses) {
    const { status, body: html } = await ask(new URL(new URL(address).pathname, site), BROWSER);
    assert.equal(status, 200, address);
    const title = found(html, /<title>([^<]+)<\/title>/);
    assert(title && !titles.has(title), `${address} has the title of ${titles.get(title)}: ${title}`);
    titles.set(title, address);
    assert(found(html, /<meta name="description" content="([^"]+)">/).length > 20, `${address} has no description`);
    assert.equal(found(html, /<link rel="canonical" href="([^"]+)">/), address);
    assert.match(html, /<link rel="icon" /, address);
  }
};

/** Parameters that count visitors change nothing, for pages and for operations. */
const countedVisitors = async (site) => {
  const mark = "utm_source=news&utm_campaign=a&gclid=b";
  for (const path of ["/explore/recalls?category=food", "/guides/webhooks", "/recalls/api/recalls?limit=2"]) {
    const answers = [];
    for (const address of [path, `${path}${path.includes("?") ? "&" : "?"}${mark}`]) answers.push(await ask(new URL(address, site), BROWSER));
    assert.deepEqual(answers.map(({ status }) => status), [200, 200], path);
    assert(!answers[1].body.includes("utm_"), `${path} repeats the parameters`);
  }
};

/** No page has more than 60 kB of scripts, compressed. */
const smallScripts = async (site, paths) => {
  for (const path of paths) {
    const { body } = await ask(new URL(path, site), BROWSER);
    const scripts = [...body.matchAll(/<script src="([^"]+)"/g)].map(([, address]) => address);
    assert(scripts.length > 0, `${path} has no script`);
    let bytes = 0;
    for (const script of scripts) bytes += gzipSync((await ask(new URL(script, site), {})).body).length;
    assert(bytes <= SCRIPT_BYTES_MAX, `${path}: ${bytes} bytes of scripts`);
  }
};

/** Pages cost nothing of the quota that an address has for operations. */
const freePages = async (site) => {
  const left = async () => {
    const { status, headers } = await ask(new URL("/recalls/api/recalls?limit=1", site), {}, COUNTED_ADDRESS);
    assert.equal(status, 200);
    return Number(headers.ratelimit.match(/r=(\d+)/)[1]);
  };
  const before = await left();
  for (const path of ["/", "/explore/recalls", "/explore?q=recall", "/status", "/recalls/docs", "/verify", "/account"]) {
    assert.equal((await ask(new URL(path, site), BROWSER, COUNTED_ADDRESS)).status, 200, path);
  }
  // A day can begin between the two calls.
  const after = await left();
  assert(after === before - 1 || after > before, `${before} calls were left, and ${after} after reading pages and one more call`);
};

/** An address that reads too many pages gets a page that says so and what to do, and its calls are answered. */
const limitedPages = async (site) => {
  let refused;
  for (let read = 0; read < PAGES_MAX && !refused; read += 1) {
    const answer = await ask(new URL("/guides", site), BROWSER, LIMITED_ADDRESS);
    if (answer.status !== 200) refused = answer;
  }
  assert.equal(refused?.status, 429, "the address has no limit");
  assert.match(refused.headers["content-type"], /^text\/html/);
  assert(Number(refused.headers["retry-after"]) > 0, "it does not say when to come back");
  assert.match(refused.body, /<h1>Too many requests<\/h1>[\s\S]*Wait a minute/);
  assert.equal((await ask(new URL("/recalls/api/recalls?limit=1", site), {}, LIMITED_ADDRESS)).status, 200);
};

/** Runs the flows. `paths` are pages of every template; `flow` runs one and says what came of it. */
export const requests = async (site, paths, flow) => {
  await flow("each page of the sitemap says what it is, under its own address", () => describedPages(site));
  await flow("links with parameters that count visitors work", () => countedVisitors(site));
  await flow("no page has more than 60 kB of scripts", () => smallScripts(site, paths));
  // Other addresses of the machine reach a server on a loopback address only.
  if (new URL(site).hostname !== "127.0.0.1") return console.log("NOT RUN: limits by address: the server is not at 127.0.0.1");
  await flow("pages cost no calls of the API", () => freePages(site));
  await flow("an address that reads too many pages gets a page that says what to do", () => limitedPages(site));
};
