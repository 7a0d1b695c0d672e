// Compiles a contract of this folder. What it prints is stored next to the source, so that a run needs no compiler. In a copy of this folder:
//
//   npm install && node compile.mjs Token > Token.hex && node compile.mjs Multicall > Multicall.hex
import { readFileSync } from "node:fs";
import solc from "solc";

const name = process.argv[2];
const file = `${name}.sol`;
const settings = {
  optimizer: { enabled: true, runs: 200 },
  viaIR: true,
  evmVersion: "paris",
  metadata: { appendCBOR: false },
  outputSelection: { "*": { "*": ["evm.deployedBytecode.object"] } },
};
const sources = { [file]: { content: readFileSync(file, "utf8") } };
const made = JSON.parse(solc.compile(JSON.stringify({ language: "Solidity", sources, settings })));
for (const error of made.errors ?? []) console.error(error.formattedMessage);
const code = made.contracts?.[file]?.[name]?.evm.deployedBytecode.object;
if (!code) process.exit(1);
console.log(`0x${code}`);
