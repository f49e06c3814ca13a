"""Verifies a file with ztensor 2.1.2 and prints what it reads: for each object its shape and layout, and
of each part the dtype, the type and the digest of the decoded bytes.

    read_2.py FILE
"""

import json
import sys

import ztensor

from common import sha256


def read_part(tensor, role):
    part = tensor[role]
    found = {"dtype": part.dtype, "type": part.logical, "sha256": sha256(part.tobytes())}
    return {key: value for key, value in found.items() if value is not None}


def main():
    with ztensor.open(sys.argv[1]) as source:
        verified = source.verify()
        assert verified.undigested == 0, verified
        tensors = {
            name: {
                "shape": list(tensor.shape),
                "layout": tensor.layout,
                "parts": {role: read_part(tensor, role) for role in tensor.parts},
            }
            for name, tensor in source.items()
        }
    json.dump({"attributes": source_attributes(sys.argv[1]), "tensors": tensors}, sys.stdout)


def source_attributes(path):
    with ztensor.open(path) as source:
        return source.attributes


main()
