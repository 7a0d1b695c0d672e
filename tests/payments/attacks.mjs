// What a dishonest, hasty or unlucky buyer may try. Payments are signed here with viem alone, so that every field can be wrong.
import { randomBytes } from "node:crypto";
import { createWalletClient, encodeFunctionData, http } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";
import { CHAIN_URL, MULTICALL, PRICE, SHOP, USDC, abi, chain, check, issue, moved, payer } from "./chain.mjs";

const OTHER = "0x00000000000000000000000000000000DeaDBeef";
const PARALLEL = 20;
const NONCES = 6;
const fields = ["address from", "address to", "uint256 value", "uint256 validAfter", "uint256 validBefore", "bytes32 nonce"];
const types = { TransferWithAuthorization: fields.map((field) => field.split(" ")).map(([type, name]) => ({ name, type })) };
const domain = { name: "USD Coin", version: "2", chainId: 8453, verifyingContract: USDC };
const seconds = () => Math.floor(Date.now() / 1000);
let agents = 0;

/// A request nobody sent before.
function request() {
  agents += 1;
  return { action: "send_invoice", agent_id: `agent-attack-${agents}`, inputs: { customer: "c_17" }, outputs: { invoice: "inv_9" } };
}

/// What is sold, as the terms name it.
const { resource } = (await issue(request())).body.accepts[0];

/// A payment signed as it should be, except for the fields given.
async function signed(version, given = {}, { by = payer, asset = USDC } = {}) {
  const now = seconds();
  const nonce = `0x${randomBytes(32).toString("hex")}`;
  const message = { from: by.address, to: SHOP, value: PRICE, validAfter: now - 60, validBefore: now + 120, nonce, ...given };
  const of = { ...domain, verifyingContract: asset };
  const signature = await by.signTypedData({ domain: of, types, primaryType: "TransferWithAuthorization", message });
  const authorization = Object.fromEntries(Object.entries(message).map(([name, value]) => [name, String(value)]));
  const payload = { signature, authorization };
  if (version === 1) return { x402Version: 1, scheme: "exact", network: "base", payload };
  const terms = { scheme: "exact", network: "eip155:8453", amount: String(PRICE), asset: USDC, payTo: SHOP };
  const accepted = { ...terms, maxTimeoutSeconds: 180, extra: { name: domain.name, version: domain.version } };
  return { x402Version: 2, resource: { url: resource, description: "", mimeType: "application/json" }, accepted, payload };
}

/// Sends a request with a payment.
function send(body, payment) {
  const header = payment.x402Version === 1 ? "x-payment" : "payment-signature";
  return issue(body, { [header]: Buffer.from(JSON.stringify(payment)).toString("base64") });
}

/// Sends a request with a payment, and the same again while the answer says that it is not known yet whether it is settled: a slow machine says so.
async function sendUntilKnown(body, payment) {
  for (let tries = 0; ; tries += 1) {
    const answer = await send(body, payment);
    if (answer.status !== 503 || tries === 60) return answer;
    await new Promise((resolve) => setTimeout(resolve, 1000 * answer.body.retryAfter));
  }
}

const receipt = (answer) => JSON.stringify(answer.body.receipt);
const bought = (answer) => [200, 201].includes(answer.status) && answer.body.receipt?.id.startsWith("rcpt_");
const statuses = (answers) => answers.map(({ status, body }) => ({ status, body }));
const still = ({ paid, taken, transfers }) => paid === 0n && taken === 0n && transfers.length === 0;
const times = ({ paid, taken, transfers }, count) => paid === PRICE * BigInt(count) && taken === paid && transfers.length === count;

for (const version of [1, 2]) {
  const about = `version ${version}:`;
  const wanted = request();
  const payment = await signed(version);
  const first = await moved(() => send(wanted, payment));
  check(`${about} a payment buys a receipt`, bought(first.result) && times(first, 1), first);

  const again = await moved(() => send(wanted, payment));
  const isSame = bought(again.result) && receipt(again.result) === receipt(first.result);
  check(`${about} the same payment for the same request gets the same receipt`, isSame && still(again), [first, again]);

  const elsewhere = await moved(() => send(request(), payment));
  check(`${about} the same payment for another request gets 402`, elsewhere.result.status === 402 && still(elsewhere), elsewhere);

  const copied = await signed(version);
  const meant = request();
  const copies = await moved(() => Promise.all(Array.from({ length: PARALLEL }, () => sendUntilKnown(meant, copied))));
  const given = new Set(copies.result.filter(bought).map(receipt));
  check(`${about} ${PARALLEL} copies at once: one transfer, one receipt or 402`, times(copies, 1) && given.size === 1
    && copies.result.every((answer) => bought(answer) || answer.status === 402), { ...copies, result: statuses(copies.result) });
  const kept = await moved(() => send(meant, copied));
  check(`${about} one more copy gets the same receipt`, bought(kept.result) && given.has(receipt(kept.result)) && still(kept), kept);

  const repeated = request();
  const payments = await Promise.all(Array.from({ length: PARALLEL }, () => signed(version)));
  const many = await moved(() => Promise.all(payments.map((payment) => sendUntilKnown(repeated, payment))));
  const ids = new Set(many.result.filter(bought).map((answer) => answer.body.receipt.id));
  check(`${about} ${PARALLEL} payments at once: as many transfers and receipts`, times(many, PARALLEL) && ids.size === PARALLEL,
    { ...many, result: statuses(many.result) });
  const seqs = many.result.map((answer) => answer.body.receipt.body.seq).sort((a, b) => a - b);
  check(`${about} these receipts count up without a gap`, seqs.every((seq, at) => seq === at + 1), seqs);
}

/// A payment changed after it was signed.
const edited = (change, given) => async (version) => {
  const payment = await signed(version, given);
  change(payment);
  return payment;
};
const otherDigit = (start) => (start === "0x1" ? "0x2" : "0x1");
const poor = privateKeyToAccount(generatePrivateKey());
const both = [1, 2];
const frauds = [
  ["the amount edited in the terms", [2], edited((payment) => { payment.accepted.amount = "1"; })],
  ["the payee edited in the terms", [2], edited((payment) => { payment.accepted.payTo = OTHER; })],
  ["the asset edited in the terms", [2], edited((payment) => { payment.accepted.asset = OTHER; })],
  ["the network edited", both, edited((payment) => { (payment.accepted ?? payment).network = "eip155:84532"; })],
  ["the value edited", both, edited((payment) => { payment.payload.authorization.value = "1"; })],
  ["the payee edited", both, edited((payment) => { payment.payload.authorization.to = OTHER; })],
  ["the payer edited", both, edited((payment) => { payment.payload.authorization.from = poor.address; })],
  ["the nonce edited", both, edited((payment) => { payment.payload.authorization.nonce = `0x${randomBytes(32).toString("hex")}`; })],
  ["the signature edited", both, edited(({ payload }) => { payload.signature = payload.signature.replace(/^0x./, otherDigit); })],
  ["a signature of nobody", both, edited((payment) => { payment.payload.signature = `0x${"11".repeat(65)}`; })],
  ["signed for less", both, (version) => signed(version, { value: 1n })],
  ["signed for less, and the terms say so", [2], edited((payment) => { payment.accepted.amount = "1"; }, { value: 1n })],
  ["signed for another payee", both, (version) => signed(version, { to: OTHER })],
  ["signed for another token", both, (version) => signed(version, {}, { asset: OTHER })],
  ["expired", both, (version) => signed(version, { validAfter: seconds() - 300, validBefore: seconds() - 10 })],
  ["not valid yet", both, (version) => signed(version, { validAfter: seconds() + 100 })],
  ["signed for something else", [2], edited((payment) => { payment.resource.url = resource.replace("/issue", "/verify"); })],
  ["of a payer without money", both, (version) => signed(version, {}, { by: poor })],
];
for (const [name, versions, made] of frauds) {
  for (const version of versions) {
    const refused = await moved(async () => send(request(), await made(version)));
    check(`version ${version}: ${name}: 402`, refused.result.status === 402 && still(refused), refused);
  }
}

const wanted = request();
const payment = await signed(2);
await fetch(`${process.env.FACILITATOR_URL}/lose`, { method: "POST" });
const answers = [];
const lost = await moved(async () => {
  // What nobody knows yet is answered 503; an honest client sends the same payment again.
  for (let tries = 0; tries < 10 && answers.at(-1)?.status !== 201; tries += 1) {
    answers.push(await send(wanted, payment));
    if (answers.at(-1).status === 503) await new Promise((done) => setTimeout(done, 1000));
  }
});
check("the facilitator settles and its answer is lost: one transfer, never 402, and the receipt", times(lost, 1) && bought(answers.at(-1))
  && answers.every(({ status }) => [201, 503].includes(status)), { ...lost, answers: statuses(answers) });

/// Uses the nonces of payments in one transaction: that of the payment at a place as it was signed, those of the others for transfers of nothing from
/// the payer to himself.
async function useTogether(payments, real) {
  const calls = await Promise.all(payments.map(async ({ payload }, place) => {
    const { nonce } = payload.authorization;
    const { authorization, signature } = place === real ? payload : (await signed(1, { to: payer.address, value: 0n, nonce })).payload;
    const { from, to, value, validAfter, validBefore } = authorization;
    const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature];
    return encodeFunctionData({ abi, functionName: "transferWithAuthorization", args });
  }));
  const wallet = createWalletClient({ account: payer, chain: base, transport: http(CHAIN_URL) });
  const hash = await wallet.writeContract({ address: MULTICALL, abi, functionName: "callAll", args: [USDC, calls] });
  const { status } = await chain.waitForTransactionReceipt({ hash, pollingInterval: 50 });
  check("one transaction uses all nonces", status === "success", { hash, status });
}

for (const [when, isClaimed] of [["after", false], ["before and after", true]]) {
  for (const real of [0, NONCES - 1]) {
    const payments = await Promise.all(Array.from({ length: NONCES }, () => signed(2)));
    const requests = payments.map(() => request());
    const sendAll = () => Promise.all(payments.map((sent, place) => send(requests[place], sent)));
    if (isClaimed) {
      await fetch(`${process.env.FACILITATOR_URL}/refuse/${3 * NONCES}`, { method: "POST" });
      const refused = await moved(sendAll);
      check(`${NONCES} payments that the facilitator does not settle: 402`, still(refused)
        && refused.result.every(({ status }) => status === 402), { ...refused, result: statuses(refused.result) });
    }
    const sent = await moved(async () => {
      await useTogether(payments, real);
      return sendAll();
    });
    const places = sent.result.flatMap((answer, place) => (bought(answer) ? [place] : []));
    check(`${NONCES} nonces used by one transaction, number ${real + 1} of them to pay, sent ${when} it: one transfer, one receipt, else 402`,
      times(sent, 1) && places.length === 1 && places[0] === real
      && sent.result.every((answer, place) => place === real || answer.status === 402), { ...sent, result: statuses(sent.result) });
  }
}
