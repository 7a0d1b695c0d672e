// The visits of ops/checks/site: node site.mjs ADDRESS CHROMIUM [DIRECTORY OF PICTURES]

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

const [site, executablePath, images] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];
const SCHEMES = ["light", "dark"];
const IMAGE_BYTES_MAX = 100_000;
/** The services whose pages are the pictures of the documentation, with the name of the picture. */
const PICTURED = { recalls: ["explorer", "record"], awards: ["explorer-changes", "record-award"], filings: ["explorer-filings"], names: ["record-trademark"] };
const HOSTILE = `<script>window.hostile = 1</script>"><img src=x onerror="window.hostile = 1">\u202e\u2066 \u{1f98a}\u200d${"W".repeat(10_000)}`;

let failures = 0;
const figures = { pages: 0, looks: 0, axeRules: 0, controls: 0, pictures: 0 };
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
    const isDocument = message.location().url === page.url() && /status of 4\d\d/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isDocument) fail(page.url(), `console: ${message.text()}`);
  });
  return page;
};

const go = async (page, path, ...statuses) => {
  const answer = await page.goto(new URL(path, site).href);
  figures.pages += 1;
  if (!(statuses.length ? statuses : [200]).includes(answer.status())) fail(path, `the status is ${answer.status()}`);
  return answer;
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
    const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")];
    window.unreached = new Set(all.filter((control) => control.checkVisibility({ visibilityProperty: true })));
    document.addEventListener("focusin", (event) => window.unreached.delete(event.target));
    document.activeElement.blur();
    return window.unreached.size;
  });
  // A field for a day has three parts and a button.
  const dates = await page.locator("input[type=date]").count();
  for (let pressed = 0; pressed < wanted + 4 * dates + 2; pressed += 1) await page.keyboard.press("Tab");
  const left = await page.evaluate(() => [...window.unreached].map((control) => control.outerHTML.slice(0, 150)));
  figures.controls += wanted;
  if (left.length) fail(name, `${left.length} controls are not reached, first ${left[0]}`);
};

const picture = async (page, name, colorScheme = "light", size = SIZES[0]) => {
  if (!images) return;
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
    figures.pictures += 1;
    break;
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(SIZES[0]);
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
  await picture(page, "home-dark", "dark");
  await picture(page, "home-phone", "light", SIZES[1]);

  const records = {};
  for (const path of services) {
    const name = path.split("/").pop();
    const pictures = PICTURED[name] ?? [];
    await go(page, path);
    await look(page, `explorer of ${name}`);
    const explorer = pictures.find((picture) => picture.startsWith("explorer"));
    if (explorer) await picture(page, explorer);
    if (name === "recalls") await reach(page, `explorer of ${name}`);
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
    const record = pictures.find((picture) => picture.startsWith("record"));
    if (record) await picture(page, record);
    if (name === "recalls") await reach(page, `record of ${name}`);
  }

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
    if (["/status", "/verify", "/entities/company?name=Acme"].includes(path)) await reach(page, path);
    if (path.endsWith("q=recall")) await picture(page, "search");
  }

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

  await flow("the place of a record in the signed tree is checked in the browser, and an altered tile is found out", async () => {
    await go(page, records.recalls.at(-1));
    const check = async (verdict, lines) => {
      await page.getByRole("button", { name: "Check the proof in this browser" }).click();
      await page.waitForFunction((verdict) => document.getElementById("verdict").textContent === verdict, verdict);
      assert.equal(await page.locator("#checks li").count(), lines);
    };
    await check("VALID", 2);
    await look(page, "record with a proof");
    await page.route("**/tile/entries/**", async (route) => {
      const answer = await route.fetch();
      const body = await answer.body();
      return route.fulfill({ response: answer, body: Buffer.from(body.map((byte) => byte ^ 1)) });
    });
    await go(page, records.recalls.at(-1));
    await check("NOT VALID", 2);
    await page.unroute("**/tile/entries/**");
  });

  await flow("the live list receives a change, and holds it back while it is paused", async () => {
    await go(page, "/");
    await page.waitForSelector("#ticker li.fresh", { timeout: 120_000 });
    await page.click("#pause");
    const first = await page.locator("#ticker li").first().innerText();
    await page.waitForFunction(() => /\d+ newer/.test(document.getElementById("live-state").textContent), null, { timeout: 120_000 });
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

  await flow("a filter in view asks for an account, and comes back to the filter after signing in", async () => {
    await go(page, "/explore/filings?view=changes&form=8-K", 200, 403);
    await page.getByRole("link", { name: "Save this filter" }).click();
    assert.match(await page.locator("input[name=to]").getAttribute("value"), /^\/account\/filters\/new\?service=filings&form=8-K/);
  });

  await flow("the reference shows code, and calls an operation without a key", async () => {
    await go(page, "/recalls/docs");
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
    for (const name of ["filings", "awards", "catalysts", "research"]) {
      if (!records[name]?.length) continue;
      await go(page, records[name][0]);
      const links = page.locator("aside a[href^='/entities/']");
      if (!(await links.count())) continue;
      linked.push(name);
      await links.first().click();
      await page.waitForURL(/\/entities\//);
      assert((await page.locator("main section h2[id^='section-']").count()) >= 4, `${name}: the page of the entity lacks sections`);
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
    const { receipt } = await (await fetch(new URL(`/receipts/v1/verify/${id}`, site))).json();
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
    assert(sent.length > 0 && sent.every((one) => one === "GET /receipts/pubkey"), `it was sent: ${sent.join(", ").slice(0, 200)}`);
    await page.check("#ask");
    await verify(receipt, "VALID");
    assert(sent.includes(`GET /receipts/v1/verify/${id}`), "the server was not asked");
    page.off("request", watch);
    await page.setInputFiles("#file", { name: "receipt.json", mimeType: "application/json", buffer: Buffer.from("{") });
    await page.waitForFunction(() => document.getElementById("verdict").textContent === "THIS IS NOT JSON");
  });

  await flow("hostile texts are inert and keep the layout", async () => {
    const escaped = HOSTILE.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
    const hostile = await open(browser);
    await hostile.route("**/*", async (route) => {
      if (route.request().resourceType() !== "document") return route.continue();
      const answer = await route.fetch();
      const body = (await answer.text()).replaceAll(/<bdi>[^<]*<\/bdi>/g, () => `<bdi>${escaped}</bdi>`);
      return route.fulfill({ response: answer, body });
    });
    for (const path of ["/", "/explore?q=recall", "/explore/recalls", "/explore/awards", records.recalls?.[0], "/status", "/entities/company?name=Acme",
      "/verify?q=nobody", `/entities/contractor?name=${encodeURIComponent(HOSTILE.slice(0, 190))}`, `/verify?q=${encodeURIComponent(HOSTILE.slice(0, 190))}`,
      `/explore?q=${encodeURIComponent(HOSTILE.slice(0, 190))}`].filter(Boolean)) {
      await go(hostile, path);
      for (const size of SIZES) {
        await hostile.setViewportSize(size);
        assert((await hasScroll(hostile)) <= 0, `${path} scrolls to the side at ${size.width}`);
      }
      assert.equal(await hostile.evaluate(() => window.hostile), undefined, path);
    }
    await hostile.context().close();
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
    await go(plain, "/entities");
    await plain.locator("#company-name").fill("Acme");
    await plain.locator("form[action='/entities/company'] button").click();
    await plain.waitForURL(/\/entities\/company\?name=Acme/);
    await plain.context().close();
  });
} finally {
  await browser.close();
}

console.log(`${figures.pages} pages loaded, ${figures.looks} looks with up to ${figures.axeRules} rules of axe, ${figures.controls} controls reached by keyboard, ${figures.pictures} pictures`);
if (failures) {
  console.error(`${failures} failures`);
  process.exitCode = 1;
}
