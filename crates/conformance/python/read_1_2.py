"""Prints what ztensor 1.2.3 reads from a file: for each tensor its dtype, type, shape, format,
attributes, and the digest of the decoded bytes of each component.

    read_1_2.py FILE
"""

import json
import sys

import numpy
import ztensor

from common import sha256


def read(reader, name):
    metadata = reader.metadata(name)
    components = {}
    for role in metadata.components:
        stored, dtype = reader._inner._read_component_raw(name, role)
        components[role] = sha256(numpy.asarray(stored))
    # There is no numpy type for bfloat16 without a further package, and this release counts the
    # elements of complex tensors wrongly when it reads them as a whole.
    is_plain = metadata.type is None and metadata.dtype != "bfloat16"
    if metadata.format == "dense" and is_plain:
        array = reader.read_numpy(name, copy=True)
        # A scalar comes as an array of one element.
        assert list(array.shape) == (metadata.shape or [1]), (name, array.shape)
        assert sha256(array) == components["data"], name
    found = {
        "dtype": metadata.dtype,
        "type": metadata.type,
        "shape": metadata.shape,
        "format": metadata.format,
        "attributes": metadata.attributes,
        "components": components,
    }
    return {key: value for key, value in found.items() if value is not None}


def main():
    with ztensor.Reader(sys.argv[1]) as reader:
        tensors = {name: read(reader, name) for name in reader.keys()}
        assert len(tensors) == len(reader)
    json.dump(tensors, sys.stdout)


main()
