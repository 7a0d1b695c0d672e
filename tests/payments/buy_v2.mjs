// Buys a receipt with `@x402/fetch`, version 2: node buy_v2.mjs URL BODY. Prints the status, the answer and what is said of the money.
import { toClientEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { chain, payer } from "./chain.mjs";

const [url, body] = process.argv.slice(2);
const pay = wrapFetchWithPayment(fetch, new x402Client().register("eip155:*", new ExactEvmScheme(toClientEvmSigner(payer, chain))));
const answer = await pay(url, { method: "POST", headers: { "content-type": "application/json" }, body });
const settled = answer.headers.get("payment-response");
console.log(JSON.stringify({ status: answer.status, body: await answer.json(), settlement: settled && decodePaymentResponseHeader(settled) }));
