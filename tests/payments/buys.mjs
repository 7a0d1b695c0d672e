// Five clients of five official packages buy a receipt each, three of them also in a page of another origin in Chromium, and one there with a wallet. Each
// receipt is verified by the server's own program and by one of ours in Python.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { API, PRICE, SHOP, USDC, chain, check, issue, moved, payer } from "./chain.mjs";

const { HIGHWATER, PYTHON } = process.env;
const node = process.execPath;
const [route, tools] = [`${API}/receipts/v1/issue`, `${API}/receipts/mcp`];
const clients = [
  { name: "x402-fetch (npm, version 1)", agent: "agent-x402-fetch", program: [node, "buy_v1.mjs", route], network: "base" },
  { name: "@x402/fetch (npm, version 2)", agent: "agent-x402-fetch-2", program: [node, "buy_v2.mjs", route], network: "eip155:8453" },
  { name: "x402-fetch in Chromium", agent: "agent-page", program: [node, "buy_in_page.mjs", "buy_v1.mjs", route], network: "base" },
  { name: "@x402/fetch in Chromium", agent: "agent-page-2", program: [node, "buy_in_page.mjs", "buy_v2.mjs", route], network: "eip155:8453" },
  { name: "@x402/axios (npm, version 2)", agent: "agent-x402-axios", program: [node, "buy_axios.mjs", route], network: "eip155:8453" },
  { name: "@x402/axios in Chromium", agent: "agent-page-axios", program: [node, "buy_in_page.mjs", "buy_axios.mjs", route], network: "eip155:8453" },
  { name: "@x402/fetch and a wallet in Chromium", agent: "agent-wallet", program: [node, "buy_in_page.mjs", "buy_with_wallet.mjs", route], network: "eip155:8453" },
  { name: "x402 over httpx (Python, version 2)", agent: "agent-x402-httpx", program: [PYTHON, "buy_http.py", route], network: "eip155:8453" },
  { name: "x402 over MCP (Python, version 2)", agent: "agent-x402-mcp", program: [PYTHON, "buy_mcp.py", tools], network: "eip155:8453" },
];

const run = promisify(execFile);
/// Whether a program ends well, and what it said.
async function ends(program, ...asked) {
  try {
    return { well: true, said: (await run(program, asked)).stdout.trim() };
  } catch (error) {
    return { well: false, said: `${error.stdout}${error.stderr}` };
  }
}
const same = (a, b) => String(a).toLowerCase() === String(b).toLowerCase();
const hashed = (canonical) => `sha256:${createHash("sha256").update(canonical).digest("hex")}`;

const unpaid = await moved(() => issue({ action: "send_invoice", agent_id: "agent-unpaid", inputs: {}, outputs: {} }));
const terms = unpaid.result.body.accepts?.[0] ?? {};
const header = unpaid.result.headers.get("payment-required");
const later = header ? JSON.parse(Buffer.from(header, "base64")).accepts[0] : {};
check("an unpaid call is answered 402 with the terms of both versions", unpaid.result.status === 402
  && terms.maxAmountRequired === String(PRICE) && terms.network === "base" && same(terms.payTo, SHOP) && same(terms.asset, USDC)
  && later.amount === String(PRICE) && later.network === "eip155:8453" && same(later.payTo, SHOP) && same(later.asset, USDC)
  && unpaid.paid === 0n, { unpaid, later });

const keys = await (await fetch(`${API}/receipts/pubkey`)).json();
check("the issuer's key is there", /^[0-9a-f]{64}$/.test(keys.publicKeyHex) && keys.algorithm === "Ed25519", keys);

for (const { name, agent, program, network } of clients) {
  const body = { action: "send_invoice", agent_id: agent, inputs: { amount: 120, customer: "c_17" }, outputs: { invoice: "inv_9" } };
  const { result, paid, taken, transfers } = await moved(() => ends(...program, JSON.stringify(body)));
  check(`${name}: it ends well`, result.well, result.said);
  const { status, body: answer, settlement } = JSON.parse(result.said);
  const receipt = answer.receipt ?? {};
  const { action, agent_id, inputs_hash, outputs_hash, seq, prevHash } = receipt.body ?? {};
  const isOurs = action === body.action && agent_id === agent && seq === 1 && /^(sha256:)?0+$/.test(prevHash);
  const areCommitted = inputs_hash === hashed('{"amount":120,"customer":"c_17"}') && outputs_hash === hashed('{"invoice":"inv_9"}');
  check(`${name}: 201, and the receipt says what was done`, status === 201 && isOurs && areCommitted, { status, answer });
  const isPaid = paid === PRICE && taken === PRICE && transfers.length === 1;
  check(`${name}: 10000 left the payer, 10000 reached the shop`, isPaid, { paid, taken, transfers });
  const { success, transaction, payer: who, network: where } = settlement ?? {};
  const isReported = success && transaction === transfers[0] && same(who, payer.address) && where === network;
  check(`${name}: the answer names the transaction that moved them`, isReported, { settlement, transfers });
  const block = await chain.getTransactionReceipt({ hash: transaction });
  check(`${name}: the chain has the transaction`, block.status === "success" && same(block.to, USDC), block);

  const file = `receipt-${agent}.json`;
  writeFileSync(file, JSON.stringify({ receipt }));
  const own = await ends(HIGHWATER, "verify", file, "--pubkey", keys.publicKeyHex);
  check(`${name}: highwater verify takes the receipt`, own.well && own.said.includes(`${receipt.id}: valid`), own);
  const other = await ends(PYTHON, "verify.py", file, keys.publicKeyHex);
  check(`${name}: verify.py takes the receipt`, other.well && other.said === `${receipt.id}: valid`, other);

  const forged = `forged-${agent}.json`;
  writeFileSync(forged, JSON.stringify({ receipt: { ...receipt, body: { ...receipt.body, action: "send_money" } } }));
  const asked = [[HIGHWATER, "verify", forged, "--pubkey", keys.publicKeyHex], [PYTHON, "verify.py", forged, keys.publicKeyHex]];
  const refusals = await Promise.all(asked.map((program) => ends(...program)));
  check(`${name}: neither takes it with another action`, refusals.every(({ well }) => !well) && refusals[0].said.includes("NOT VALID: hash")
    && refusals[1].said.includes("contentHash is not that of the body"), refusals);
}
