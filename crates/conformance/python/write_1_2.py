"""Writes a file with ztensor 1.2.3, the second half of it by appending, and prints what is in it, in
the form of read_1_2.py.

    write_1_2.py FILE
"""

import json
import sys

import numpy
import ztensor

from common import sha256

DTYPES = (
    "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()
)


def tensors():
    """Yields names and tensors of every format."""
    for dtype in DTYPES:
        values = numpy.arange(-6, 6).astype(dtype)
        yield dtype, ztensor.Tensor({"data": values.reshape(3, 4)})
        parts = {
            "values": values[:3],
            "indices": numpy.array([3, 0, 4], "uint64"),
            "indptr": numpy.array([0, 1, 1, 3], "uint64"),
        }
        yield f"{dtype}.csr", ztensor.Tensor(parts, shape=[3, 5], format="sparse_csr")
        parts = {"values": values[:3], "coords": numpy.array([0, 1, 1, 4, 0, 3], "uint64")}
        yield f"{dtype}.coo", ztensor.Tensor(parts, shape=[2, 5], format="sparse_coo")
    data = {"data": numpy.arange(256, dtype="uint8")}
    for meant in ["f8_e4m3fn", "f8_e5m2"]:
        yield meant, ztensor.Tensor(data, type=meant)
    for meant, stored in [("complex64", "float32"), ("complex128", "float64")]:
        data = {"data": numpy.arange(12, dtype=stored)}
        yield meant, ztensor.Tensor(data, shape=[2, 3], type=meant)
    parts = {
        "packed_weight": numpy.arange(16, dtype="int32"),
        "scales": numpy.ones(8, "float16"),
        "zeros": numpy.zeros(8, "float16"),
    }
    attributes = {"bits": 4, "group_size": 16, "packing": "8_per_i32"}
    yield "quantized", ztensor.Tensor(
        parts, shape=[8, 16], format="quantized_group", attributes=attributes
    )


def describe(tensor):
    described = {
        "dtype": tensor.dtype,
        "type": tensor.type,
        "shape": tensor.shape,
        "format": tensor.format,
        "attributes": tensor.attributes,
        "components": {role: sha256(array) for role, array in tensor.components.items()},
    }
    return {key: value for key, value in described.items() if value is not None}


def write(writer, prefix, compress, checksum):
    written = {}
    for name, tensor in tensors():
        writer.write(prefix + name, tensor, compress=compress, checksum=checksum)
        written[prefix + name] = describe(tensor)
    return written


def main():
    path = sys.argv[1]
    with ztensor.Writer(path) as writer:
        written = write(writer, "raw/", False, "none")
        written |= write(writer, "zstd/", True, "sha256")
    with ztensor.Writer.append(path) as writer:
        written |= write(writer, "appended/", 9, "crc32c")
    json.dump(written, sys.stdout)


main()
