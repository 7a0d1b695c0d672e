"""Verifies artifacts of the exclusions service, with their receipts: python3 verify_artifact.py [PUBLIC_KEY_HEX] < artifact.json

The exit code is 0 if the hash is right and the receipt, if there is one, is valid and commits to it; else 1. Without a public key any signer is accepted:
compare the printed key with that of the issuer (/receipts/pubkey). The signature is verified by the rules of RFC 8032 with nothing but this file.
"""

import hashlib
import json
import sys

NOT_HASHED = ("artifactHash", "permalink", "receipt")

# The curve of Ed25519.
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


def canonical(value):
    """Returns the canonical form of a value. For values that artifacts and receipts have, sorted keys without white space are the form of RFC 8785."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def hash_of(value):
    """Returns the hash of a value as artifacts and receipts state it."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def hash_of_artifact(artifact):
    """Returns the hash of what an artifact contains."""
    return hash_of({name: value for name, value in artifact.items() if name not in NOT_HASHED})


def add(p, q):
    """Adds two points of the curve, each as (X, Y, Z, T)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(factor, point):
    """Multiplies a point of the curve."""
    result = (0, 1, 1, 0)
    while factor > 0:
        if factor & 1:
            result = add(result, point)
        point, factor = add(point, point), factor >> 1
    return result


def decode_point(data):
    """Decodes 32 bytes to a point of the curve; None if they are none."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * SQRT_OF_MINUS_ONE % P
    if (x * x - square) % P != 0 or (x == 0 and sign == 1):
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


BASE = decode_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(public, message, signature):
    """Returns whether an Ed25519 signature verifies."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, r = decode_point(public), decode_point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = multiply(s, BASE), add(r, multiply(challenge, key))
    return all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))


def faults_of_receipt(receipt, artifact_hash, public_key):
    """Returns what is wrong with the receipt of an artifact; nothing if it is valid."""
    body, content_hash, signature = receipt["body"], receipt["contentHash"], receipt["signature"]
    digest = bytes.fromhex(content_hash.removeprefix("sha256:"))
    signer = signature["publicKeyHex"]
    checks = {
        "outputs_hash does not commit to artifactHash": body["outputs_hash"] == hash_of({"artifactHash": artifact_hash}),
        "contentHash is not the hash of the body": content_hash == hash_of(body),
        "id does not follow from contentHash": receipt["id"] == "rcpt_" + digest.hex()[:32],
        "the signature does not verify": is_signed(bytes.fromhex(signer), digest, bytes.fromhex(signature["value"])),
        "another key signed it": public_key in ("", signer),
    }
    return [fault for fault, holds in checks.items() if not holds]


def main():
    """Verifies the artifact on standard input."""
    artifact = json.load(sys.stdin)
    public_key = sys.argv[1].lower() if len(sys.argv) > 1 else ""
    is_valid = hash_of_artifact(artifact) == artifact["artifactHash"]
    print("valid" if is_valid else "NOT VALID", artifact["artifactHash"], artifact.get("permalink", ""))
    receipt = artifact.get("receipt")
    if receipt is None and public_key:
        print("NOT VALID: the artifact has no receipt, so nobody signed it")
        is_valid = False
    if receipt is not None:
        faults = faults_of_receipt(receipt, artifact["artifactHash"], public_key)
        print("NOT VALID" if faults else "valid", receipt["id"], "signed by", receipt["signature"]["publicKeyHex"], "; ".join(faults))
        is_valid = is_valid and not faults
    return 0 if is_valid else 1


if __name__ == "__main__":
    sys.exit(main())
