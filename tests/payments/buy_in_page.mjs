// Runs a client in a page of another origin, in Chromium: node buy_in_page.mjs PROGRAM URL BODY. What PROGRAM, a module of this folder, prints is printed. A
// page may send and read only what the server allows to scripts of other origins. For buy_with_wallet.mjs the page has a wallet, headless-web3-provider of
// npm, whose user agrees to everything; the other programs have the payer's key.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const [program, url, body] = process.argv.slice(2);
const { CHAIN_URL, API, PAYER_KEY, SHOP } = process.env;
const TIME_MAX_MS = 60_000;
const BASE_CHAIN_ID = 8453;
const hasWallet = program === "buy_with_wallet.mjs";

const bundle = await build({
  entryPoints: [program],
  bundle: true,
  format: "esm",
  platform: "browser",
  write: false,
  define: {
    global: "globalThis",
    "process.argv": JSON.stringify(["", "", url, body]),
    "process.env": JSON.stringify(hasWallet ? {} : { CHAIN_URL, API, PAYER_KEY, SHOP }),
  },
});
const [{ text: script }] = bundle.outputFiles;
const server = createServer((request, answer) => {
  const [type, text] = request.url === "/script.js" ? ["text/javascript", script] : ["text/html", "<!doctype html><title>shop</title>"];
  answer.writeHead(200, { "content-type": type }).end(text);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  const printed = page.waitForEvent("console", { predicate: (message) => message.type() === "log", timeout: TIME_MAX_MS });
  printed.catch(() => {});
  if (hasWallet) {
    const { injectHeadlessWeb3Provider, Web3RequestKind } = createRequire(import.meta.url)("headless-web3-provider");
    const wallet = await injectHeadlessWeb3Provider(page, [PAYER_KEY], BASE_CHAIN_ID, CHAIN_URL);
    for (const kind of [Web3RequestKind.RequestAccounts, Web3RequestKind.SignTypedDataV4]) wallet.authorize(kind).catch(() => {});
  }
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.addScriptTag({ type: "module", url: "/script.js" });
  const message = await printed.catch((error) => {
    throw new Error(`${error.message}; the page said: ${errors.join("; ")}`);
  });
  console.log(message.text());
} finally {
  await browser.close();
  server.close();
}
