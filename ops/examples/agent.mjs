// An agent's first call with the TypeScript SDK of MCP: npm install @modelcontextprotocol/sdk@1.32.2
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const client = new Client({ name: "agent", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
console.log((await client.callTool({ name: "search_recalls", arguments: { category: "food", limit: 3 } })).structuredContent);
await client.close();
