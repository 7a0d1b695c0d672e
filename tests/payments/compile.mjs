// Compiles Token.sol. What it prints is kept in Token.hex, so that a run needs no compiler. In a copy of this folder:
//
//   npm install && node compile.mjs > Token.hex
import { readFileSync } from "node:fs";
import solc from "solc";

const settings = {
  optimizer: { enabled: true, runs: 200 },
  viaIR: true,
  evmVersion: "paris",
  metadata: { appendCBOR: false },
  outputSelection: { "*": { "*": ["evm.deployedBytecode.object"] } },
};
const sources = { "Token.sol": { content: readFileSync("Token.sol", "utf8") } };
const made = JSON.parse(solc.compile(JSON.stringify({ language: "Solidity", sources, settings })));
for (const error of made.errors ?? []) console.error(error.formattedMessage);
const code = made.contracts?.["Token.sol"]?.Token?.evm.deployedBytecode.object;
if (!code) process.exit(1);
console.log(`0x${code}`);
