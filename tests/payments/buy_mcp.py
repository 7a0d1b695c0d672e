"""Buys a receipt with the Python client over MCP, version 2: python buy_mcp.py URL ARGUMENTS.

Prints 201 for a result that is no error, the receipt and what is said of the money.
"""
import asyncio
import json
import os
import sys
from types import SimpleNamespace

from eth_account import Account
from mcp import Client
from x402 import x402Client
from x402.mcp import x402MCPClient
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import ExactEvmScheme


class Session:
    """x402 asks with one dictionary and reads the names of mcp 1; mcp 2 takes keywords and has names of its own."""

    def __init__(self, client):
        self.client = client

    async def call_tool(self, asked, **_):
        result = await self.client.call_tool(asked["name"], asked.get("arguments") or {}, meta=asked.get("_meta"))
        names = {"isError": result.is_error, "structuredContent": result.structured_content, "_meta": result.meta or {}}
        return SimpleNamespace(content=result.content, **names)


async def main(url, arguments):
    payer = x402Client()
    payer.register("eip155:*", ExactEvmScheme(EthAccountSigner(Account.from_key(os.environ["PAYER_KEY"]))))
    async with Client(url) as client:
        result = await x402MCPClient(Session(client), payer, auto_payment=True).call_tool("issue_receipt", json.loads(arguments))
    settlement = result.payment_response and result.payment_response.model_dump(by_alias=True, mode="json")
    status = 201 if result.payment_made and not result.is_error else 0
    print(json.dumps({"status": status, "body": json.loads(result.content[0].text), "settlement": settlement}))


asyncio.run(main(*sys.argv[1:]))
