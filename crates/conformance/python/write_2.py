"""Writes files with ztensor 2.1.2, a canonical one and one 4096 bytes apart, and prints what is in them, in
the form of read_2.py.

    write_2.py CANONICAL FREE
"""

import json
import sys

import numpy
import ztensor

from common import sha256

DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
}


def tensors():
    for dtype, name in sorted(DTYPES.items()):
        yield dtype, dtype, None, numpy.arange(12).astype(name).reshape(3, 4)
    yield "z.bool", "u8", "bool", numpy.array([1, 0, 1], "uint8")
    yield "z.complex", "f32", "complex64", numpy.arange(6).astype("float32")
    yield "z.tied", "u8", "f8_e8m0", numpy.array([1, 0, 1], "uint8")


def main():
    canonical, free = sys.argv[1:]
    found = {}
    for path, options in [(canonical, {}), (free, {"canonical": False, "align": 4096})]:
        writer = ztensor.Writer(path, **options)
        for name, dtype, logical, array in tensors():
            shape = [3] if logical else list(array.shape)
            encoding = None if path == canonical else "zt.zstd-seekable/1"
            data = array.tobytes()
            writer.add(name, data, shape, dtype, logical=logical, encoding=encoding)
            part = {"dtype": dtype, "type": logical, "sha256": sha256(data)}
            part = {key: value for key, value in part.items() if value is not None}
            found[name] = {"shape": shape, "layout": "dense", "parts": {"data": part}}
        writer.set_attributes({"license": "MIT", "n": 1})
        writer.finish()
    json.dump({"attributes": {"license": "MIT", "n": 1}, "tensors": found}, sys.stdout)


main()
