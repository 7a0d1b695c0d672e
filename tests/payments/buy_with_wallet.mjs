// Buys a receipt with `@x402/fetch`, version 2, and the wallet of the browser, in a page: node buy_in_page.mjs buy_with_wallet.mjs URL BODY. Prints the
// status, the answer and what is said of the money.
import { toClientEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { createPublicClient, createWalletClient, custom } from "viem";
import { base } from "viem/chains";

const [url, body] = process.argv.slice(2);
const transport = custom(window.ethereum);
const wallet = createWalletClient({ chain: base, transport });
const [address] = await wallet.requestAddresses();
const signer = { address, signTypedData: (message) => wallet.signTypedData({ account: address, ...message }) };
const chain = createPublicClient({ chain: base, transport });
const pay = wrapFetchWithPayment(fetch, new x402Client().register("eip155:*", new ExactEvmScheme(toClientEvmSigner(signer, chain))));
const answer = await pay(url, { method: "POST", headers: { "content-type": "application/json" }, body });
const settled = answer.headers.get("payment-response");
console.log(JSON.stringify({ status: answer.status, body: await answer.json(), settlement: settled && decodePaymentResponseHeader(settled) }));
