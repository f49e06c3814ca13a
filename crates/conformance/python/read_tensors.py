"""Prints what a client finds in a file of tensors, by name: [dtype, shape, sha256 of the elements].

The first argument says which client reads: safetensors, numpy, gguf or ztensor.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from common import plain


def described(dtype, shape, data):
    return [dtype, [int(dim) for dim in shape], hashlib.sha256(data).hexdigest()]


def of_array(array):
    array = np.asarray(array)
    return described(str(array.dtype), array.shape, array.tobytes())


def of_safetensors(path):
    # Without a framework: element types that NumPy does not have are read as bytes.
    from safetensors import deserialize

    found = deserialize(Path(path).read_bytes())
    return {name: described(one["dtype"], one["shape"], bytes(one["data"])) for name, one in found}


def of_numpy(path):
    with np.load(path, allow_pickle=False) as found:
        return {name: of_array(found[name]) for name in found.files}


def of_gguf(path):
    import gguf

    def one(tensor):
        if tensor.tensor_type in PLAIN or sys.argv[3:] != ["dequantize"]:
            data, dtype = tensor.data.tobytes(), tensor.tensor_type.name
        else:
            values = gguf.dequantize(tensor.data, tensor.tensor_type)
            data, dtype = values.astype("<f4").tobytes(), "F32"
        return described(dtype, list(reversed(tensor.shape)), data)

    names = gguf.GGMLQuantizationType
    PLAIN = {names.F32, names.F16, names.BF16, names.F64, names.I8, names.I16, names.I32, names.I64}
    return {tensor.name: one(tensor) for tensor in gguf.GGUFReader(path).tensors}


def of_ztensor(path):
    import ztensor

    def one(reader, found):
        # As bytes: the memory of the first value is gone with the second.
        data, owner = reader._read_component(found.name, "data", lambda: np.uint8)
        # The binding has no numpy type for bfloat16 without a further package.
        if found.dtype_str != "bfloat16":
            assert reader.read_tensor(found.name).tobytes() == data.tobytes(), found.name
        return described(found.dtype_str, found.shape, data.tobytes())

    with ztensor.Reader(path) as reader:
        return {found.name: one(reader, found) for found in reader}


READERS = {
    "safetensors": of_safetensors,
    "numpy": of_numpy,
    "gguf": of_gguf,
    "ztensor": of_ztensor,
}
print(json.dumps(plain(READERS[sys.argv[1]](sys.argv[2]))))
