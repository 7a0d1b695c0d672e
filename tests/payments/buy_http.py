"""Buys a receipt with the Python client over httpx, version 2: python buy_http.py URL BODY.

Prints the status, the answer and what is said of the money.
"""
import asyncio
import base64
import json
import os
import sys

from eth_account import Account
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import ExactEvmScheme


async def main(url, body):
    payer = x402Client()
    payer.register("eip155:*", ExactEvmScheme(EthAccountSigner(Account.from_key(os.environ["PAYER_KEY"]))))
    async with x402HttpxClient(payer, timeout=60) as http:
        answer = await http.post(url, content=body, headers={"content-type": "application/json"})
    settled = answer.headers.get("payment-response")
    settlement = settled and json.loads(base64.b64decode(settled))
    print(json.dumps({"status": answer.status_code, "body": answer.json(), "settlement": settlement}))


asyncio.run(main(*sys.argv[1:]))
