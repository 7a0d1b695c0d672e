"""Verifies a receipt with nothing of ours: python verify.py FILE PUBLIC_KEY_HEX. For bodies of ASCII, whose canonical form (RFC 8785) is this."""
import hashlib
import json
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

receipt = json.load(open(sys.argv[1]))["receipt"]
canonical = json.dumps(receipt["body"], sort_keys=True, separators=(",", ":")).encode("ascii")
digest = hashlib.sha256(canonical).digest()
assert receipt["contentHash"] == "sha256:" + digest.hex(), "contentHash is not that of the body"
assert receipt["id"] == "rcpt_" + digest.hex()[:32], "id is not that of the body"
assert receipt["signature"]["publicKeyHex"] == sys.argv[2], "somebody else signed it"
key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(receipt["signature"]["publicKeyHex"]))
key.verify(bytes.fromhex(receipt["signature"]["value"]), digest)  # raises InvalidSignature
print(receipt["id"] + ": valid")
