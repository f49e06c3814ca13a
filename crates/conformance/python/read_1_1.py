"""Prints what ztensor 1.1.1 reads from a file: for each tensor its dtype, shape, format and the
digest of the decoded bytes of each component.

    read_1_1.py FILE
"""

import json
import sys

import numpy
import ztensor

from common import sha256

ROLES = {
    "dense": ["data"],
    "sparse_csr": ["values", "indices", "indptr"],
    "sparse_coo": ["values", "coords"],
}


def component(reader, name, role):
    """Returns the digest of a component; its memory is gone with the second value."""
    array, owner = reader._read_component(name, role, lambda: numpy.uint8)
    return sha256(array)


def dense(reader, metadata):
    """Reads a tensor as an array, in each way that there is."""
    name = metadata.name
    arrays = [
        reader[name],
        reader.read_tensor(name, verify_checksum=True),
        reader.read_tensors([name], verify_checksum=True)[0],
    ]
    for array in arrays:
        assert array.dtype == metadata.dtype, (name, array.dtype)
        assert array.shape == metadata.shape, (name, array.shape)
        assert array.tobytes() == arrays[0].tobytes(), name
    return arrays[0]


def read(reader, metadata):
    name, layout = metadata.name, metadata.layout
    components = {role: component(reader, name, role) for role in ROLES[layout]}
    # The binding has no numpy type for bfloat16 without a further package.
    if layout == "dense" and metadata.dtype_str != "bfloat16":
        assert sha256(dense(reader, metadata)) == components["data"], name
    return {
        "dtype": metadata.dtype_str,
        "shape": metadata.shape,
        "format": layout,
        "components": components,
    }


def main():
    with ztensor.Reader(sys.argv[1]) as reader:
        tensors = {metadata.name: read(reader, metadata) for metadata in reader}
        assert len(tensors) == len(reader)
    json.dump(tensors, sys.stdout)


main()
