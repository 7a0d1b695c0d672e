# An agent's first call with the Python SDK of MCP: pip install mcp==2.3.0
import asyncio, sys
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
async def main():
    async with Client(streamable_http_client(sys.argv[1])) as client:
        print((await client.call_tool("search_recalls", {"category": "food", "limit": 3})).structured_content)
asyncio.run(main())
