// What all programs of the test know: the chain, the token, who pays and who is paid, and how a check is reported.
import { createPublicClient, http, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";

// USDC's own address on Base: clients take it for what it is.
export const USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
// Makes many calls in one transaction.
export const MULTICALL = "0x00000000000000000000000000000000ca11ca11";
export const PRICE = 10_000n;
export const abi = parseAbi([
  "function balanceOf(address) view returns (uint256)",
  "function mint(address to, uint256 value)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function callAll(address target, bytes[] calls)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);
export const { CHAIN_URL, API, PAYER_KEY, SHOP } = process.env;
export const payer = privateKeyToAccount(PAYER_KEY);
export const chain = createPublicClient({ chain: base, transport: http(CHAIN_URL), cacheTime: 0 });

const balanceOf = (address) => chain.readContract({ address: USDC, abi, functionName: "balanceOf", args: [address] });

/// What changes while something is done: the payer's and the shop's money, and the transfers from one to the other.
export async function moved(what) {
  const [block, ...before] = await Promise.all([chain.getBlockNumber(), balanceOf(payer.address), balanceOf(SHOP)]);
  const result = await what();
  const after = await Promise.all([balanceOf(payer.address), balanceOf(SHOP)]);
  // From the first block: one that is not there yet may not be asked for.
  const logs = await chain.getContractEvents({ address: USDC, abi, eventName: "Transfer", args: { from: payer.address, to: SHOP }, fromBlock: 0n });
  const transfers = logs.filter((log) => log.blockNumber > block).map((log) => log.transactionHash);
  return { result, paid: before[0] - after[0], taken: after[1] - before[1], transfers };
}

/// Prints one line; ends the run if it does not hold.
export function check(what, holds, shown) {
  if (holds) return console.log(`ok ${what}`);
  console.error(`NOT SO: ${what}\n${JSON.stringify(shown, (_, value) => (typeof value === "bigint" ? String(value) : value), 2)}`);
  process.exit(1);
}

/// Sends a request for a receipt.
export async function issue(body, headers = {}) {
  const answer = await fetch(`${API}/receipts/v1/issue`, {
    method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body),
  });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}
