"""Checks with cbor2 that the manifest of a file is a single item of deterministic CBOR, except that
the keys of maps stand in the order that zTensor gives them: definite lengths, shortest heads and
floats, no key twice. Prints its version and the names of its objects in their order.

    manifest.py FILE
"""

import json
import struct
import sys

import cbor2

MAGIC = b"ZTEN1000"


def manifest(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data.startswith(MAGIC) and data.endswith(MAGIC)
    (size,) = struct.unpack("<Q", data[-16:-8])
    return data[-16 - size : -16]


def head(major, number):
    """Encodes the head of an item from that of a number."""
    encoded = bytearray(cbor2.dumps(number))
    encoded[0] |= major << 5
    return bytes(encoded)


def encode(value):
    """Encodes what was decoded, maps in the order in which they came."""
    if isinstance(value, cbor2.CBORTag):
        return head(6, value.tag) + encode(value.value)
    if isinstance(value, (list, tuple)):
        return head(4, len(value)) + b"".join(map(encode, value))
    if isinstance(value, dict):
        items = (encode(key) + encode(item) for key, item in value.items())
        return head(5, len(value)) + b"".join(items)
    return cbor2.dumps(value, canonical=True)


def main():
    encoded = manifest(sys.argv[1])
    root = cbor2.loads(encoded)
    again = encode(root)
    at = next((at for at, pair in enumerate(zip(encoded, again)) if pair[0] != pair[1]), None)
    assert again == encoded, f"at byte {at}: {encoded[at or 0:][:40]} is not {again[at or 0:][:40]}"
    for entries in [root["objects"], *(o["components"] for o in root["objects"].values())]:
        assert list(entries) == sorted(entries, key=str.encode), list(entries)
    json.dump({"version": root["version"], "objects": list(root["objects"])}, sys.stdout)


main()
