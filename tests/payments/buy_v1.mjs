// Buys a receipt with `x402-fetch`, version 1: node buy_v1.mjs URL BODY. Prints the status, the answer and what is said of the money.
import { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } from "x402-fetch";

const [url, body] = process.argv.slice(2);
const pay = wrapFetchWithPayment(fetch, await createSigner("base", process.env.PAYER_KEY));
const answer = await pay(url, { method: "POST", headers: { "content-type": "application/json" }, body });
const settled = answer.headers.get("x-payment-response");
console.log(JSON.stringify({ status: answer.status, body: await answer.json(), settlement: settled && decodeXPaymentResponse(settled) }));
