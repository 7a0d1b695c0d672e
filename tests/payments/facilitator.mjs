// A facilitator of the official packages, of both versions, on loopback. Prints its port.
//
// POST /lose makes it settle once more and break off without an answer. POST /refuse/N makes it refuse the next N settlements and do nothing.
import { createServer } from "node:http";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";

const account = privateKeyToAccount(process.env.SETTLER_KEY);
const client = createWalletClient({ account, chain: base, transport: http(process.env.CHAIN_URL) }).extend(publicActions);
const signer = toFacilitatorEvmSigner({
  address: account.address,
  readContract: (call) => client.readContract({ ...call, args: call.args ?? [] }),
  writeContract: (call) => client.writeContract({ ...call, args: call.args ?? [] }),
  verifyTypedData: (data) => client.verifyTypedData(data),
  sendTransaction: (transaction) => client.sendTransaction(transaction),
  waitForTransactionReceipt: (of) => client.waitForTransactionReceipt({ ...of, pollingInterval: 50 }),
  getCode: (of) => client.getCode(of),
});
const facilitator = new x402Facilitator().register("eip155:8453", new ExactEvmScheme(signer)).registerV1("base", new ExactEvmSchemeV1(signer));

// One settlement at a time: the settler's own transactions are numbered, and two at once would take the same number.
let last = Promise.resolve();
const inTurn = (settle) => (last = last.then(settle, settle));
let loses = false;
let refusals = 0;

const server = createServer(async (request, response) => {
  const send = (status, answer) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? String(value) : value)));
  };
  try {
    let text = "";
    for await (const chunk of request) text += chunk;
    if (request.url === "/supported") return send(200, facilitator.getSupported());
    if (request.url === "/lose") return send(200, { loses: (loses = true) });
    if (request.url.startsWith("/refuse/")) return send(200, { refusals: (refusals = Number(request.url.slice(8))) });
    if (request.url === "/settle" && refusals > 0) {
      refusals -= 1;
      return send(200, { success: false, errorReason: "unexpected_settle_error", transaction: "", network: "eip155:8453" });
    }
    const { paymentPayload, paymentRequirements } = JSON.parse(text);
    let said;
    if (request.url === "/verify") said = await facilitator.verify(paymentPayload, paymentRequirements);
    else if (request.url === "/settle") said = await inTurn(() => facilitator.settle(paymentPayload, paymentRequirements));
    else return send(404, {});
    console.error(request.url, paymentPayload.payload?.authorization?.nonce, JSON.stringify(said));
    if (loses && request.url === "/settle") {
      loses = false;
      return response.destroy();
    }
    send(200, said);
  } catch (error) {
    console.error(error);
    send(500, { error: String(error.message ?? error) });
  }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
