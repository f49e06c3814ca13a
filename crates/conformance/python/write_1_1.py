"""Writes a file with ztensor 1.1.1 and prints what is in it, in the form of read_1_1.py.

    write_1_1.py FILE
"""

import json
import sys

import numpy
import ztensor

from common import sha256

DTYPES = (
    "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()
)


def main():
    written = {}

    def note(name, form, dtype, shape, **components):
        digests = {role: sha256(array) for role, array in components.items()}
        written[name] = dict(dtype=dtype, shape=shape, format=form, components=digests)

    with ztensor.Writer(sys.argv[1]) as writer:
        for dtype in DTYPES:
            values = numpy.arange(-6, 6).astype(dtype)
            for compress in [False, True, 1, 19]:
                name, array = f"{dtype}.{compress}", values.reshape(3, 4)
                writer.add_tensor(name, array, compress=compress)
                note(name, "dense", dtype, [3, 4], data=array)
            name, array = f"{dtype}.empty", values[:0]
            writer.add_tensor(name, array)
            note(name, "dense", dtype, [0], data=array)

            name, values = f"{dtype}.csr", values[:3]
            indices = numpy.array([3, 0, 4], "uint64")
            indptr = numpy.array([0, 1, 1, 3], "uint64")
            writer.add_sparse_csr(name, values, indices, indptr, (3, 5))
            parts = dict(values=values, indices=indices, indptr=indptr)
            note(name, "sparse_csr", dtype, [3, 5], **parts)

            name, coords = f"{dtype}.coo", numpy.array([[0, 1, 1], [4, 0, 3]], "uint64")
            writer.add_sparse_coo(name, values, coords, (2, 5))
            note(name, "sparse_coo", dtype, [2, 5], values=values, coords=coords)
    json.dump(written, sys.stdout)


main()
