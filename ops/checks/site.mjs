// The visits of ops/checks/site: node site.mjs ADDRESS CHROMIUM [DIRECTORY OF PICTURES]
// SITE_KEY is a key that may register webhooks on this machine, if there is one. With SITE_GOALS=1 a page that is slower than its goal is a failure.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, get } from "node:http";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

import { requests } from "./site-requests.mjs";

const [site, executablePath, images] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];
const SCHEMES = ["light", "dark"];
const IMAGE_BYTES_MAX = 100_000;
/** The pictures of the documentation, one of each main page. */
const PICTURES = ["home", "home-phone", "explorer", "record", "search", "entity", "status", "reference", "webhook", "receipts"];
/** Requests of each page whose time to the first byte is measured. One address may read 300 pages a minute. */
const MEASURED_REQUESTS = 200;
const FIRST_BYTE_MS_MAX = 20;
const PAINT_MS_MAX = 1_000;
const CPU_SLOWDOWN = 4;
/** How long is waited for a change of the demo: for a message of it, for its place in a signed tree, and for the live list. */
const CHANGE_MS_MAX = 300_000;
/** How long the program waits before it looks again. One address may read 300 pages a minute. */
const UNTIL_PAUSE_MS = 1_000;
const HOSTILE = `<script>window.hostile = 1</script>"><img src=x onerror="window.hostile = 1">\u202e\u2066 \u{1f98a}\u200d${"W".repeat(10_000)}`;

let failures = 0;
const figures = { pages: 0, looks: 0, axeRules: 0, controls: 0 };
const pictures = new Set();
const fail = (where, what) => {
  failures += 1;
  console.error(`FAIL ${where}: ${what}`);
};
/** Runs one flow; what it throws is a failure of its own. */
const flow = async (name, run) => {
  try {
    await run();
    console.log(`ok   ${name}`);
  } catch (error) {
    fail(name, error.message.split("\n").slice(0, 4).join(" "));
  }
};

/** The address that a page was last sent to. A refused document is reported before the page has its address. */
const asked = new WeakMap();

/** A page that reports errors of its scripts and violations of the policy. `expected` are statuses of the document that are no error. */
const open = async (browser, options = {}) => {
  const context = await browser.newContext({ viewport: SIZES[0], ...options });
  // A machine that runs other tests at the same time is slow.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  if (options.javaScriptEnabled !== false) {
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
    });
  }
  page.on("pageerror", (error) => fail(page.url(), error.message));
  page.on("console", (message) => {
    const isDocument = [page.url(), asked.get(page)].includes(message.location().url) && /status of 4\d\d/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isDocument) fail(page.url(), `console: ${message.text()}`);
  });
  return page;
};

const go = async (page, path, ...statuses) => {
  const address = new URL(path, site).href;
  asked.set(page, address);
  const answer = await page.goto(address);
  figures.pages += 1;
  if (!(statuses.length ? statuses : [200]).includes(answer.status())) fail(path, `the status is ${answer.status()}`);
  return answer;
};

/** A page of somebody who signed in with the key of the check. */
const signedIn = async (browser, options) => {
  const page = await open(browser, options);
  await go(page, "/account");
  await page.fill("#key", process.env.SITE_KEY);
  await page.locator("main .primary").click();
  await page.waitForURL(/signed-in/);
  return page;
};

/** The first notice of a page that answers a form, once all of the page is there. */
const noticeOf = async (page) => {
  const words = await page.locator("main .notice").first().textContent();
  await page.waitForLoadState();
  return words;
};

const hasScroll = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

/** Looks at a page in every size and colour scheme. */
const look = async (page, name) => {
  for (const size of SIZES) {
    await page.setViewportSize(size);
    const over = await hasScroll(page);
    if (over > 0) fail(name, `${size.width} wide: ${over} pixels to scroll to the side`);
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(axe);
      const found = await page.evaluate(async () => {
        const { passes, violations } = await window.axe.run();
        return { rules: passes.length, violations: violations.map(({ id, nodes }) => `${id}: ${nodes.length}, first ${nodes[0].html.slice(0, 200)}`) };
      });
      figures.axeRules = Math.max(figures.axeRules, found.rules);
      figures.looks += 1;
      for (const violation of found.violations) fail(name, `${size.width} wide, ${colorScheme}: axe ${violation}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(SIZES[0]);
};

/** Every visible control gets the focus by the Tab key. */
const reach = async (page, name) => {
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, select, summary, [tabindex='0']")];
    window.unreached = new Set(all.filter((control) => control.checkVisibility({ visibilityProperty: true })));
    document.addEventListener("focusin", (event) => window.unreached.delete(event.target));
    document.activeElement.blur();
    window.scrollTo(0, 0);
    return window.unreached.size;
  });
  // The live list takes the links of older changes away.
  const left = () => page.evaluate(() => [...window.unreached].filter((one) => one.isConnected).map((one) => one.outerHTML.slice(0, 150)));
  // A field for a day has three parts and a button, and a place that scrolls can get the focus, too.
  const pressesMax = 2 * wanted + 4 * (await page.locator("input[type=date]").count()) + 20;
  let unreached = await left();
  for (let pressed = 1; unreached.length && pressed <= pressesMax; pressed += 1) {
    await page.keyboard.press("Tab");
    if (pressed % 20 === 0 || pressed === pressesMax) unreached = await left();
  }
  figures.controls += wanted;
  if (unreached.length) fail(name, `${unreached.length} controls are not reached, first ${unreached[0]}`);
};

const picture = async (page, name, colorScheme = "light", size = SIZES[0]) => {
  if (!images) return;
  assert(PICTURES.includes(name), `${name} is no picture of the documentation`);
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(size);
  await page.evaluate(() => window.scrollTo(0, 0));
  const session = await page.context().newCDPSession(page);
  for (const quality of [85, 70, 50, 30]) {
    const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality });
    const bytes = Buffer.from(data, "base64");
    if (bytes.length > IMAGE_BYTES_MAX) continue;
    mkdirSync(images, { recursive: true });
    writeFileSync(`${images}/${name}.webp`, bytes);
    pictures.add(`${name}.webp`);
    break;
  }
  if (!pictures.has(`${name}.webp`)) fail(name, `the picture is larger than ${IMAGE_BYTES_MAX} bytes in any quality`);
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(SIZES[0]);
};

/** Waits until something is true of this program or of a page, and returns it. */
const until = async (what, isTrue) => {
  for (const end = Date.now() + CHANGE_MS_MAX; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, UNTIL_PAUSE_MS))) {
    const found = await isTrue();
    if (found) return found;
  }
  throw new Error(`${what}: not within ${CHANGE_MS_MAX / 1_000} seconds`);
};

/** Receives the messages of webhooks on a port of this machine. */
const receiver = async () => {
  const messages = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      messages.push({ id: request.headers["webhook-id"], headers: request.headers, body: Buffer.concat(parts).toString() });
      response.writeHead(204).end();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { messages, url: `http://127.0.0.1:${server.address().port}/messages`, close: () => server.close() };
};

/** Whether a message is signed with a secret, as Standard Webhooks define it. */
const isSigned = ({ id, headers, body }, secret) => {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${headers["webhook-timestamp"]}.${body}`).digest("base64");
  return headers["webhook-signature"].split(" ").includes(`v1,${signature}`);
};

/** Prints a time, and compares it with its goal. */
const measured = (what, path, ms, goal) => {
  console.log(`${what} ${path}: ${ms.toFixed(1)} ms, goal ${goal} ms${ms > goal ? ", missed" : ""}`);
  if (ms > goal && process.env.SITE_GOALS) fail(path, `${what}: ${ms.toFixed(1)} ms, more than ${goal}`);
};

/** The times to the first byte of a page, in milliseconds, sorted. On a loopback address each page is read from an address of its own. */
const firstBytes = async (path, index) => {
  const url = new URL(path, site);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const localAddress = url.hostname === "127.0.0.1" ? `127.0.0.${2 + index}` : undefined;
  const times = [];
  for (let sent = 0; sent < MEASURED_REQUESTS; sent += 1) {
    const begin = performance.now();
    const status = await new Promise((resolve, reject) => {
      const request = get(url, { agent, localAddress, headers: { accept: "text/html" } }, (response) => {
        response.once("data", () => times.push(performance.now() - begin));
        response.on("end", () => resolve(response.statusCode));
        response.on("error", reject);
      });
      request.on("error", reject);
    });
    assert.equal(status, 200, path);
  }
  agent.destroy();
  return times.sort((one, other) => one - other);
};

/** The largest contentful paint of a page that a browser without a cache opens, in milliseconds. */
const largestPaint = async (browser, path) => {
  const page = await open(browser);
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: CPU_SLOWDOWN });
  await go(page, path);
  const ms = await page.evaluate(() => new Promise((resolve) => {
    let last = 0;
    const observer = new PerformanceObserver((list) => { last = list.getEntries().at(-1).startTime; });
    observer.observe({ type: "largest-contentful-paint", buffered: true });
    setTimeout(() => resolve(last), 1_000);
  }));
  await page.context().close();
  assert(ms > 0, `${path} paints nothing`);
  return ms;
};

const day = (back) => new Date(Date.now() - back * 86_400_000).toISOString().slice(0, 10);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await open(browser);
  await go(page, "/");
  const services = await page.$$eval("#services .card h3 a", (links) => links.map((link) => link.getAttribute("href")));
  assert(services.length > 0, "the home page has no services");
  await look(page, "home");
  await reach(page, "home");
  await go(page, "/");
  await picture(page, "home");
  await picture(page, "home-phone", "light", SIZES[1]);

  const records = {};
  for (const path of services) {
    const name = path.split("/").pop();
    await go(page, path);
    await look(page, `explorer of ${name}`);
    if (name === "recalls") {
      await picture(page, "explorer");
      await reach(page, `explorer of ${name}`);
    }
    if (await page.locator(".tabs").count()) {
      // The feeds of some services need a key.
      await go(page, `${path}?view=changes`, 200, 403);
      await look(page, `changes of ${name}`);
    }
    records[name] = await page.$$eval("table.rows tbody th a", (links) => links.map((link) => link.getAttribute("href")));
    // Redacted records have no page.
    if (!records[name].length) continue;
    await go(page, records[name][0]);
    await look(page, `record of ${name}`);
    if (name === "recalls") {
      await picture(page, "record");
      await reach(page, `record of ${name}`);
    }
  }

  if (!records.recalls?.length) fail("explorers", "no recall has a page");
  const withRecords = Object.values(records).filter((links) => links.length).length;
  if (withRecords < 8) fail("explorers", `only ${withRecords} lead to records`);

  for (const [path, status] of [["/explore", 200], ["/explore?q=recall", 200], ["/explore?q=nothing-has-this", 200], ["/none", 404], ["/explore/none", 404],
    ["/explore/recalls/none", 404], ["/explore/recalls?asOf=none", 400], ["/status", 200], ["/guides", 200], ["/guides/webhooks", 200],
    ["/guides/troubleshooting", 200], ["/guides/reference/limits", 200], ["/docs/errors", 200], ["/recalls/docs", 200], ["/account", 200], ["/webhooks", 200],
    ["/entities", 200], ["/entities/company", 200], ["/entities/company?name=Acme", 200], ["/entities/institution?name=University", 200],
    ["/entities/contractor?name=Federal", 200], ["/entities/none", 404], ["/verify", 200], ["/verify?q=nobody", 200],
    ["/verify?q=rcpt_00000000000000000000000000000000", 200]]) {
    await go(page, path, status);
    await look(page, path);
    if (path.endsWith("q=recall")) await picture(page, "search");
    if (path === "/status") await picture(page, "status");
    if (status === 200 || path === "/none") await reach(page, path);
  }

  await flow("the reference of each service fits, and says what it is", async () => {
    for (const path of services) {
      const reference = `/${path.split("/").pop()}/docs`;
      await go(page, reference);
      for (const size of SIZES) {
        await page.setViewportSize(size);
        assert((await hasScroll(page)) <= 0, `${reference} scrolls to the side at ${size.width}`);
      }
      const description = await page.locator("meta[name=description]").getAttribute("content");
      assert(description.length > 20 && (await page.title()).length > 10, `${reference} does not say what it is`);
    }
    await page.setViewportSize(SIZES[0]);
  });

  await flow("a search leads to a party in all services, and says what it could not search", async () => {
    await go(page, "/explore?q=Federal+Systems");
    assert((await page.locator("#unsearched").count()) === 1, "no service is said to be silent");
    await page.locator("section[aria-labelledby=as-a-whole] a[href^='/entities/contractor?']").click();
    await page.waitForURL(/\/entities\/contractor\?name=Federal\+Systems/);
    assert((await page.locator("main section h2[id^='section-']").count()) >= 3, "the contractor lacks sections");
  });

  await flow("from a search to a record and its versions", async () => {
    await go(page, "/explore/recalls?view=changes");
    const title = await page.locator("table.rows tbody th a").first().textContent();
    const word = title.match(/[A-Za-z]{5,}/)[0];
    await go(page, "/");
    await page.fill("#q", word);
    await page.press("#q", "Enter");
    await page.locator(".hits li a").first().click();
    await page.waitForSelector(".timeline > li");
    await page.locator(".since a").first().click();
    const target = await page.evaluate(() => document.querySelector(".timeline > li:target") !== null);
    assert(target, "the link of a field does not lead to its version");
  });

  await flow("a record and a list as of an earlier day", async () => {
    await go(page, "/explore/recalls?view=changes");
    await page.fill("#f-asOf", day(3));
    await page.locator(".filters .primary").click();
    await page.waitForURL(/asOf=/);
    const link = page.locator("table.rows tbody th a").first();
    await go(page, `${await link.getAttribute("href")}?asOf=${day(3)}`);
    const said = await page.locator("main .notice").allTextContents();
    assert(said.some((text) => text.includes(day(3))), "the page does not say that it shows the past");
    await page.getByText("Show it as it is now").click();
    await page.waitForURL((url) => !url.search);
  });

  await flow("the commands of a view get the rows that it shows, in each format", async () => {
    await go(page, "/explore/recalls?category=food");
    const rows = await page.locator("table.rows tbody tr").count();
    const commands = await page.locator(".ways pre code").allTextContents();
    for (const type of ["application/x-ndjson", "text/csv", "application/vnd.apache.parquet"]) {
      const command = commands.find((command) => command.includes(`accept: ${type}'`));
      const { pathname, search } = new URL(command.match(/'(http[^']+)'$/)[1]);
      assert.match(search, /category=food/);
      const answer = await fetch(new URL(pathname + search, site), { headers: { accept: type } });
      assert.equal(answer.status, 200, command);
      assert(answer.headers.get("content-type").startsWith(type), command);
      const body = Buffer.from(await answer.arrayBuffer());
      if (type === "application/x-ndjson") assert.equal(body.toString().trim().split("\n").length, rows);
      if (type === "application/vnd.apache.parquet") assert.equal(body.subarray(0, 4).toString(), "PAR1");
    }
  });

  await flow("the place of a record in the signed tree is checked in the browser, and an altered tile is found out", async () => {
    const check = async (verdict, lines) => {
      // The newest changes are not in a checkpoint yet.
      await until(`the verdict ${verdict}`, async () => {
        await go(page, records.recalls.at(-1));
        await page.getByRole("button", { name: "Check the proof in this browser" }).click();
        await page.waitForFunction(() => !["", "Checking…"].includes(document.getElementById("verdict").textContent));
        const found = await page.locator("#verdict").textContent();
        assert([verdict, "NOT FULLY CHECKED"].includes(found), `the verdict is ${found}: ${await page.locator("#checks").textContent()}`);
        return found === verdict;
      });
      assert.equal(await page.locator("#checks li").count(), lines);
    };
    await check("VALID", 2);
    await look(page, "record with a proof");
    await page.route("**/tile/entries/**", async (route) => {
      const answer = await route.fetch();
      const body = await answer.body();
      return route.fulfill({ response: answer, body: Buffer.from(body.map((byte) => byte ^ 1)) });
    });
    await check("NOT VALID", 2);
    await page.unroute("**/tile/entries/**");
  });

  await flow("the live list receives a change, and holds it back while it is paused", async () => {
    await go(page, "/");
    await page.waitForSelector("#ticker li.fresh", { timeout: CHANGE_MS_MAX });
    await page.click("#pause");
    const first = await page.locator("#ticker li").first().innerText();
    await page.waitForFunction(() => /\d+ newer/.test(document.getElementById("live-state").textContent), null, { timeout: CHANGE_MS_MAX });
    assert.equal(await page.locator("#ticker li").first().innerText(), first);
    await page.click("#pause");
    assert.notEqual(await page.locator("#ticker li").first().innerText(), first);
  });

  await flow("a key is created, signs in to the account, and signs out", async () => {
    await go(page, "/account");
    await page.fill("#email", "visitor@example.org");
    await page.getByRole("button", { name: "Create a free key" }).click();
    const key = (await page.locator(".secret code").textContent()).trim();
    assert.match(key, /^hw_live_/);
    await look(page, "new key");
    await go(page, "/account");
    await page.fill("#key", key);
    await page.locator("main .primary").click();
    await page.waitForURL(/signed-in/);
    for (const path of ["/account", "/account/saved", "/account/filters/new?service=filings&ticker=X", "/account/watches/new?service=filings", "/account/webhooks",
      "/account/webhooks/new?service=recalls"]) {
      await go(page, path);
      await look(page, path);
      await reach(page, path);
      assert(!(await page.content()).includes(key), `${path} has the key`);
    }
    await go(page, "/account");
    await page.getByRole("button", { name: "Create another key" }).click();
    const another = (await page.locator(".secret code").textContent()).trim();
    assert.match(another, /^hw_live_/);
    assert.equal(await page.locator("table.rows tbody tr").count(), 2);
    const other = page.locator("table.rows tbody tr").filter({ hasText: another.slice(-4) });
    await other.locator("summary", { hasText: "Rotate" }).click();
    await other.getByRole("button", { name: "Replace the key" }).click();
    await look(page, "rotated key");
    assert.equal(await page.locator("table.rows tbody tr").count(), 3);
    const ending = page.locator("table.rows tbody tr").filter({ hasText: "Ending" });
    await ending.locator("summary", { hasText: "Revoke" }).click();
    await ending.getByRole("button", { name: "Revoke for good" }).click();
    assert((await page.locator("main .notice").first().textContent()).includes("was revoked"));
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForSelector("#key");
  });

  await flow("a webhook is registered, receives a change, and receives it again when it is replayed and when it is sent again", async () => {
    if (!process.env.SITE_KEY) {
      console.log("NOT RUN: webhooks: SITE_KEY is no key of the tier business");
      return;
    }
    const { messages, url, close } = await receiver();
    const owner = await signedIn(browser);
    const said = () => noticeOf(owner);
    const copies = (id) => messages.filter((message) => message.id === id).length;
    try {
      await go(owner, "/account/webhooks/new?service=recalls");
      await owner.fill("#url", url);
      await owner.getByRole("button", { name: "Register", exact: true }).click();
      const secret = (await owner.locator(".secret code").textContent()).trim();
      const [, id] = (await said()).match(/The webhook (\S+) was registered/);
      const path = `/account/webhooks/recalls/${id}`;
      await go(owner, path);
      await owner.getByRole("button", { name: "Send a test message" }).click();
      assert.match(await said(), /was accepted with status 204/);
      const message = await until("a new recall", () => messages.find(({ body }) => JSON.parse(body).event === "recalls.new"));
      assert(isSigned(message, secret), "the message is not signed with the secret of the webhook");
      const row = await until("the attempt on the page", async () => {
        await go(owner, path);
        const row = owner.locator("tbody tr").filter({ hasText: message.id }).first();
        return (await row.count()) ? row : undefined;
      });
      assert.match(await row.innerText(), /204[\s\S]*accepted/);
      await look(owner, "webhook with an attempt");
      await reach(owner, "webhook with an attempt");
      await go(owner, path);
      await picture(owner, "webhook");
      await row.locator("th a").click();
      const body = await owner.locator("#message ~ pre").first().textContent();
      assert.deepEqual(JSON.parse(body), JSON.parse(message.body));
      await go(owner, path);
      await owner.fill("#after", await owner.getAttribute("#after", "min"));
      await owner.getByRole("button", { name: "Replay", exact: true }).click();
      assert.match(await said(), /Delivery continues after change/);
      await until("the replayed message", () => copies(message.id) >= 2);
      await go(owner, path);
      const before = copies(message.id);
      await owner.getByRole("button", { name: `Send again ${message.id}` }).first().click();
      assert.match(await said(), /was accepted with status 204/);
      await until("the message that was sent again", () => copies(message.id) > before);
      assert(messages.filter((one) => one.id === message.id).every((one) => one.body === message.body && isSigned(one, secret)), "a copy differs");
      await go(owner, path);
      await owner.locator("summary", { hasText: "Delete" }).click();
      await owner.getByRole("button", { name: "Delete for good" }).click();
      assert.match(await said(), /was deleted/);
    } finally {
      close();
      await owner.context().close();
    }
  });

  await flow("a filter and a watch are saved, are listed with the way back to what they select, and are deleted", async () => {
    if (!process.env.SITE_KEY) {
      console.log("NOT RUN: saved filters: SITE_KEY is no key of the tier business");
      return;
    }
    const owner = await signedIn(browser);
    const said = () => noticeOf(owner);
    const remove = async (row) => {
      await row.locator("summary", { hasText: "Delete" }).click();
      await row.getByRole("button", { name: "Delete for good" }).click();
      assert.match(await said(), /^Deleted /);
    };
    await go(owner, "/explore/filings?view=changes&form=8-K", 200, 403);
    await owner.getByRole("link", { name: "Save this filter" }).click();
    await owner.fill("#name", "seen by the check");
    await owner.getByRole("button", { name: "Save", exact: true }).click();
    assert.match(await said(), /The filter seen by the check .* was saved/);
    const filter = owner.locator("tbody tr").filter({ hasText: "seen by the check" });
    assert.match(await filter.innerText(), /8-K/);
    const watchable = await owner.evaluate(async (paths) => {
      for (const path of paths) {
        const page = new DOMParser().parseFromString(await (await fetch(path)).text(), "text/html");
        // The record names what is watched.
        const link = page.querySelector("a[href^='/account/watches/new?'][href*='&']");
        if (link) return link.getAttribute("href");
      }
      return undefined;
    }, [records.filings, ...Object.values(records)].map((links) => links?.[0]).filter(Boolean));
    assert(watchable, "no record can be watched without a webhook");
    await go(owner, watchable);
    await owner.getByRole("button", { name: "Watch", exact: true }).click();
    const [, id] = (await said()).match(/The watch (\S+) was created/);
    const watch = owner.locator("tbody tr").filter({ has: owner.locator(`input[name=id][value="${id}"]`) });
    assert.equal(await watch.count(), 1, "the watch is not listed");
    // A page that answers a form is not what is looked at and reached: this is.
    await go(owner, "/account/saved");
    await look(owner, "saved filter and watch");
    await reach(owner, "saved filter and watch");
    await go(owner, "/account/saved");
    await watch.locator("th a").click();
    await owner.waitForURL((url) => url.pathname.startsWith("/account/watches/") && url.pathname.endsWith(`/${id}`));
    assert.equal(await owner.getByRole("heading", { name: "Matches", exact: true }).count(), 1, "the watch does not show its matches");
    await look(owner, "watch");
    await reach(owner, "watch");
    await go(owner, "/account/saved");
    await remove(watch);
    await remove(filter);
    assert.equal(await watch.count() + await filter.count(), 0, "something is still listed");
    await owner.context().close();
  });

  await flow("a filter in view asks for an account, and comes back to the filter after signing in", async () => {
    await go(page, "/explore/filings?view=changes&form=8-K", 200, 403);
    await page.getByRole("link", { name: "Save this filter" }).click();
    assert.match(await page.locator("input[name=to]").getAttribute("value"), /^\/account\/filters\/new\?service=filings&form=8-K/);
  });

  await flow("a filtered list has the newest changes first, and leads to the older ones and to the oldest", async () => {
    const times = () => page.$$eval("td.recorded time", (all) => all.map((time) => time.dateTime));
    const isNewestFirst = (all) => all.every((time, at) => at === 0 || all[at - 1] >= time);
    let continued = 0;
    for (const name of ["awards", "exclusions", "filings", "names", "research"]) {
      await go(page, `/explore/${name}?view=changes&includeBackfill=true`);
      const newest = await times();
      assert(isNewestFirst(newest), `${name}: the newest changes do not come first`);
      if (!(await page.locator(".pager .next").count())) continue;
      continued += 1;
      await page.locator(".pager .next").click();
      await page.waitForURL(/cursor=[^&]+&start=newest/);
      const older = await times();
      assert(older.length > 0 && isNewestFirst([newest.at(-1), ...older]), `${name}: the next page has no older changes`);
      await page.getByRole("link", { name: "Show from the oldest on" }).click();
      await page.waitForURL(/start=earliest/);
      assert(isNewestFirst((await times()).reverse()), `${name}: the oldest changes do not come first`);
      assert((await page.getByRole("link", { name: "Show the newest first" }).count()) === 1, `${name}: no way back to the newest`);
    }
    assert(continued > 0, "no filtered list has a second page");
  });

  await flow("a form says in the page what its fields mean", async () => {
    for (const [path, words] of [["/explore/awards?view=changes", "What the filters mean"], ["/entities/company", "What the fields mean"]]) {
      await go(page, path);
      await page.locator("summary", { hasText: words }).click();
      assert(await page.locator("details.about[open] dl.nested dd").first().isVisible(), `${path}: the help cannot be opened`);
      await look(page, `help of ${path}`);
    }
  });

  await flow("the reference shows code, and calls an operation without a key", async () => {
    await go(page, "/recalls/docs");
    await picture(page, "reference");
    await reach(page, "reference");
    // On the page already: following its own link loads nothing.
    await page.locator("a[href='#health']").first().click();
    const health = page.locator("#health");
    assert((await health.locator(".ways > details").allTextContents()).some((text) => text.includes("requests.get(")), "there is no Python");
    await health.locator("details.try summary").click();
    await health.locator("details.try button").click();
    await health.locator("details.try pre").waitFor();
    assert.match(await health.locator("details.try [role=status]").textContent(), /Status 200/);
    assert(JSON.parse(await health.locator("details.try pre").textContent()), "the answer is no JSON");
    await look(page, "reference with an answer");
  });

  await flow("the status page has bars and assumptions for each stream, and its feed is well-formed", async () => {
    await go(page, "/status");
    const streams = await page.locator("[id^='stream-']").count();
    assert(streams > 0, "no stream is shown");
    assert.equal(await page.locator("[id^='stream-'] svg.uptime path").count() >= streams, true, "a stream has no bars");
    assert.equal(await page.locator("[id^='stream-'] details").count(), streams);
    await page.locator("[id^='stream-'] summary").first().click();
    assert(await page.locator("[id^='stream-'] details li").first().isVisible(), "the assumptions cannot be opened");
    const feed = await page.evaluate(async (path) => {
      const answer = await fetch(path);
      const document = new DOMParser().parseFromString(await answer.text(), "application/xml");
      return { type: answer.headers.get("content-type"), error: document.querySelector("parsererror")?.textContent, root: document.documentElement.localName };
    }, await page.locator("main a[type='application/atom+xml']").getAttribute("href"));
    assert.deepEqual(feed, { type: "application/atom+xml", error: undefined, root: "feed" });
  });

  await flow("a record leads to what all services have about its company, and from there to an explorer", async () => {
    const linked = [];
    for (const name of ["filings", "awards", "catalysts", "research", "names"]) {
      if (!records[name]?.length) continue;
      await go(page, records[name][0]);
      const links = page.locator("aside a[href^='/entities/']");
      if (!(await links.count())) continue;
      linked.push(name);
      await links.first().click();
      await page.waitForURL(/\/entities\//);
      assert((await page.locator("main section h2[id^='section-']").count()) >= 4, `${name}: the page of the entity lacks sections`);
      if (linked.length === 1) await picture(page, "entity");
      await look(page, `entity of ${name}`);
    }
    assert(linked.length > 0, "no record links to an entity");
    assert((await page.locator("main section table tbody tr").count()) > 0, "no service has a row about the entity");
    await page.locator("main section p > a[href^='/explore/']").first().click();
    await page.waitForURL(/\/explore\//);
  });

  await flow("a receipt is verified in the browser without being sent, and a forged one is refused", async () => {
    const id = records.receipts?.[0]?.split("/").pop();
    assert(id, "the demo has no receipt");
    await go(page, `/verify?q=${id}`);
    assert.equal((await page.locator("#found ~ .verdict").textContent()).trim(), "VALID");
    await look(page, "verify a receipt");
    await picture(page, "receipts");
    await go(page, `/receipts/verify/${id}`);
    // The newest receipts are not in a signed tree yet.
    await page.waitForFunction(() => ["VALID", "NOT FULLY CHECKED"].includes(document.getElementById("verdict").textContent));
    await look(page, "page of a receipt");
    await reach(page, "page of a receipt");
    await go(page, `/verify?q=${id}`);
    const ofServer = async () => (await fetch(new URL(`/receipts/v1/verify/${id}`, site))).json();
    const { receipt } = await ofServer();
    const sent = [];
    const watch = (request) => sent.push(`${request.method()} ${new URL(request.url()).pathname} ${request.postData() ?? ""}`.trim());
    page.on("request", watch);
    const verify = async (given, verdict) => {
      await page.fill("#pasted", JSON.stringify(given));
      await page.getByRole("button", { name: "Verify in this browser" }).click();
      await page.waitForFunction((verdict) => document.getElementById("verdict").textContent === verdict, verdict);
    };
    await verify(receipt, "VALID");
    await verify({ ...receipt, body: { ...receipt.body, action: "something else" } }, "NOT VALID");
    await look(page, "a forged receipt");
    await verify({ ...receipt, signature: { ...receipt.signature, value: "0".repeat(128) } }, "NOT VALID");
    const drop = async (given, verdict) => {
      const dataTransfer = await page.evaluateHandle((text) => {
        const dropped = new DataTransfer();
        dropped.items.add(new File([text], "receipt.json", { type: "application/json" }));
        return dropped;
      }, JSON.stringify(given));
      await page.locator("#verifier").dispatchEvent("drop", { dataTransfer });
      await page.waitForFunction((verdict) => document.getElementById("verdict").textContent === verdict, verdict);
    };
    await drop(receipt, "VALID");
    await drop({ ...receipt, body: { ...receipt.body, agent_id: "somebody else" } }, "NOT VALID");
    // The browser may ask for the icon of the page at any time.
    const unknown = sent.filter((one) => one !== "GET /receipts/pubkey" && !one.startsWith("GET /assets/"));
    assert(sent.length > 0 && unknown.length === 0, `it was sent: ${sent.join(", ").slice(0, 200)}`);
    await page.check("#ask");
    await until("the receipt in a signed tree", async () => (await ofServer()).inclusion);
    await verify(receipt, "VALID");
    assert(sent.includes(`GET /receipts/v1/verify/${id}`), "the server was not asked");
    page.off("request", watch);
    await page.setInputFiles("#file", { name: "receipt.json", mimeType: "application/json", buffer: Buffer.from("{") });
    await page.waitForFunction(() => document.getElementById("verdict").textContent === "THIS IS NOT JSON");
  });

  await flow("hostile texts are inert and keep the layout", async () => {
    const escaped = HOSTILE.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
    const hostile = process.env.SITE_KEY ? await signedIn(browser) : await open(browser);
    const ofAccount = [];
    const { url, close } = await receiver();
    let webhook;
    try {
      if (process.env.SITE_KEY) {
        // A webhook has a page with changes, which are texts of upstreams.
        await go(hostile, "/account/webhooks/new?service=recalls");
        await hostile.fill("#url", url);
        await hostile.getByRole("button", { name: "Register", exact: true }).click();
        const [, id] = (await noticeOf(hostile)).match(/The webhook (\S+) was registered/);
        webhook = `/account/webhooks/recalls/${id}`;
        ofAccount.push("/account", "/account/saved", "/account/webhooks", "/account/webhooks/new?service=recalls", webhook,
          `/account/filters/new?service=filings&form=${encodeURIComponent(HOSTILE.slice(0, 190))}`);
      }
      const ofReceipt = records.receipts?.[0]?.replace("/explore/receipts/", "/receipts/verify/");
      await hostile.route("**/*", async (route) => {
        if (route.request().resourceType() !== "document") return route.continue();
        const answer = await route.fetch();
        const link = encodeURIComponent(HOSTILE.slice(0, 190)).replaceAll("'", "%27");
        const body = (await answer.text()).replaceAll(/<bdi>[^<]*<\/bdi>/g, () => `<bdi>${escaped}</bdi>`)
          .replaceAll(/<title>[^<]*<\/title>/g, () => `<title>${escaped}</title>`)
          .replaceAll(/ title="[^"]*"/g, () => ` title="${escaped}"`)
          .replaceAll(/(href="\/entities\/\w+\?name=)[^"&]*/g, (_, start) => `${start}${link}`);
        return route.fulfill({ response: answer, body });
      });
      const ofServices = services.flatMap((path) => [path, `${path}?view=changes`]).concat(Object.values(records).map((links) => links[0]));
      for (const path of ["/", "/explore?q=recall", ...ofServices, ...ofAccount, ofReceipt, "/status", "/guides", "/none", "/entities/company?name=Acme",
        "/verify?q=nobody", `/entities/contractor?name=${encodeURIComponent(HOSTILE.slice(0, 190))}`, `/verify?q=${encodeURIComponent(HOSTILE.slice(0, 190))}`,
        `/explore?q=${encodeURIComponent(HOSTILE.slice(0, 190))}`].filter(Boolean)) {
        await go(hostile, path, 200, 403, ...(path === "/none" ? [404] : []));
        for (const size of SIZES) {
          await hostile.setViewportSize(size);
          assert((await hasScroll(hostile)) <= 0, `${path} scrolls to the side at ${size.width}`);
        }
        assert.equal(await hostile.evaluate(() => window.hostile), undefined, path);
      }
      await hostile.unroute("**/*");
      if (webhook) {
        await go(hostile, webhook);
        await hostile.locator("summary", { hasText: "Delete" }).click();
        await hostile.getByRole("button", { name: "Delete for good" }).click();
      }
    } finally {
      close();
      await hostile.context().close();
    }
  });

  await flow("without JavaScript all reads work", async () => {
    const plain = await open(browser, { javaScriptEnabled: false });
    await go(plain, "/");
    assert((await plain.locator("#ticker li").count()) > 0, "the home page has no changes");
    assert(await plain.locator("#pause").isHidden(), "a button that does nothing is shown");
    await plain.fill("#q", "recall");
    await plain.press("#q", "Enter");
    await plain.waitForURL(/\/explore\?q=recall/);
    await go(plain, "/explore/recalls?view=changes");
    await plain.locator(".pager .next").click();
    await plain.waitForURL(/until=/);
    assert((await plain.locator("table.rows tbody tr").count()) > 0, "the second page is empty");
    await plain.locator("table.rows tbody th a").first().click();
    await plain.waitForSelector(".timeline > li");
    await plain.locator(".ways summary").nth(1).click();
    assert(await plain.locator(".ways details pre").nth(1).isVisible(), "the commands cannot be opened");
    await go(plain, "/status");
    assert((await plain.locator("svg.uptime").count()) > 0, "the status page has no bars");
    await go(plain, "/verify?q=nobody");
    assert((await plain.locator("#needs-script").isVisible()) && (await plain.locator("#verifier").isHidden()), "a form that does nothing is shown");
    await go(plain, "/recalls/docs");
    assert(await plain.locator("#health details.try").isHidden(), "a form that does nothing is shown");
    await plain.locator("#health .ways > details:not(.try) > summary").nth(1).click();
    assert(await plain.locator("#health .ways > details:not(.try) pre").nth(1).isVisible(), "the code cannot be opened");
    await go(plain, "/guides/troubleshooting");
    await plain.locator("aside a[href='#i-get-0-rows']").click();
    assert(await plain.locator("#i-get-0-rows").isVisible(), "the symptom is not shown");
    await go(plain, "/entities");
    await plain.locator("#company-name").fill("Acme");
    await plain.locator("form[action='/entities/company'] button").click();
    await plain.waitForURL(/\/entities\/company\?name=Acme/);
    await plain.context().close();
  });

  const templates = ["/", "/explore?q=recall", "/explore/recalls", records.recalls?.[0], "/entities/company?name=Acme", "/status", "/guides/webhooks", "/verify",
    records.receipts?.[0]?.replace("/explore/receipts/", "/receipts/verify/"), "/recalls/docs", "/docs/errors", "/account"].filter(Boolean);
  await requests(site, templates, flow);

  const timed = ["/", "/explore/recalls", records.recalls?.[0], "/explore?q=recall", "/status", "/entities/company?name=Acme"].filter(Boolean);
  for (const [index, path] of timed.entries()) {
    await flow(`how long ${path} takes`, async () => {
      const times = await firstBytes(path, index);
      measured("time to the first byte, 99 of 100 requests,", path, times[Math.ceil(times.length * 0.99) - 1], FIRST_BYTE_MS_MAX);
      measured(`largest contentful paint, CPU slowed down ${CPU_SLOWDOWN} times,`, path, await largestPaint(browser, path), PAINT_MS_MAX);
    });
  }
} finally {
  await browser.close();
}

if (images) {
  const absent = PICTURES.filter((name) => !pictures.has(`${name}.webp`));
  if (absent.length) fail("pictures", `not made: ${absent.join(", ")}`);
  else for (const file of readdirSync(images).filter((file) => file.endsWith(".webp") && !pictures.has(file))) rmSync(`${images}/${file}`);
}
console.log(`${figures.pages} pages loaded, ${figures.looks} looks with up to ${figures.axeRules} rules of axe, ${figures.controls} controls reached by keyboard, ${pictures.size} pictures`);
if (failures) {
  console.error(`${failures} failures`);
  process.exitCode = 1;
}
