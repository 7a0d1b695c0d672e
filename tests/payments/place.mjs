// Places the token at USDC's address and a contract that makes many calls in one transaction, gives the payer money, and the payer and the one who
// settles what transactions cost.
import { readFileSync } from "node:fs";
import { createTestClient, http, publicActions, walletActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";
import { CHAIN_URL, MULTICALL, USDC, abi, chain, check, payer } from "./chain.mjs";

const account = privateKeyToAccount(process.env.SETTLER_KEY);
const node = createTestClient({ mode: "anvil", chain: base, transport: http(CHAIN_URL), account }).extend(publicActions).extend(walletActions);
await node.setCode({ address: USDC, bytecode: readFileSync("Token.hex", "utf8").trim() });
await node.setCode({ address: MULTICALL, bytecode: readFileSync("Multicall.hex", "utf8").trim() });
for (const { address } of [account, payer]) await node.setBalance({ address, value: 10n ** 20n });
const hash = await node.writeContract({ address: USDC, abi, functionName: "mint", args: [payer.address, 100_000_000n] });
await node.waitForTransactionReceipt({ hash, pollingInterval: 50 });
const has = await chain.readContract({ address: USDC, abi, functionName: "balanceOf", args: [payer.address] });
const id = await chain.getChainId();
check("the token is at USDC's address on chain 8453, and the payer has 100 dollars", has === 100_000_000n && id === 8453, { has, id });
