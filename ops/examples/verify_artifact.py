"""Verifies artifacts of the exclusions service: python3 verify_artifact.py < artifact.json. The exit code is 0 if the hash is right, else 1."""

import hashlib
import json
import sys

NOT_HASHED = ("artifactHash", "permalink", "receipt", "note")


def hash_of(artifact):
    """Returns the hash of what an artifact contains. For values that artifacts have, sorted keys without white space are the form of RFC 8785."""
    hashed = {name: value for name, value in artifact.items() if name not in NOT_HASHED}
    body = json.dumps(hashed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(body.encode()).hexdigest()


if __name__ == "__main__":
    given = json.load(sys.stdin)
    is_valid = hash_of(given) == given["artifactHash"]
    print("valid" if is_valid else "NOT VALID", given["artifactHash"], given.get("permalink", ""))
    sys.exit(0 if is_valid else 1)
