// Buys a receipt with `@x402/axios`, version 2: node buy_axios.mjs URL BODY. Prints the status, the answer and what is said of the money.
import { decodePaymentResponseHeader, wrapAxiosWithPayment, x402Client } from "@x402/axios";
import { toClientEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import axios from "axios";
import { chain, payer } from "./chain.mjs";

const [url, body] = process.argv.slice(2);
const buyer = wrapAxiosWithPayment(axios.create(), new x402Client().register("eip155:*", new ExactEvmScheme(toClientEvmSigner(payer, chain))));
const answer = await buyer.post(url, JSON.parse(body));
const settled = answer.headers["payment-response"];
console.log(JSON.stringify({ status: answer.status, body: answer.data, settlement: settled && decodePaymentResponseHeader(settled) }));
