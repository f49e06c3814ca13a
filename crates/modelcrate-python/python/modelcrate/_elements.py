"""Element types of this package as those of NumPy and PyTorch."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import UnsupportedError

if TYPE_CHECKING:
    import torch

    from ._native import Memory, Tensor

__all__ = ["array", "dtype_of", "name_of", "torch_dtype", "torch_name", "torch_tensor"]

# What NumPy has itself.
_NUMPY = {
    "bool": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}

# What ml_dtypes adds to NumPy.
_ML_DTYPES = {
    "bf16": "bfloat16",
    "f8_e4m3": "float8_e4m3fn",
    "f8_e5m2": "float8_e5m2",
    "i4": "int4",
    "u4": "uint4",
}

_TORCH = {name: of for name, of in _NUMPY.items()} | {
    "bf16": "bfloat16",
    "f8_e4m3": "float8_e4m3fn",
    "f8_e5m2": "float8_e5m2",
}

_NAMES = {of: name for name, of in (_NUMPY | _ML_DTYPES).items()}


@cache
def dtype_of(name: str) -> np.dtype[Any]:
    """Returns the NumPy type of elements, such as those of `"f32"`."""
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name not in _ML_DTYPES:
        raise UnsupportedError(
            f"elements are {name}, which NumPy does not have"
            " (numpy(dequantize=True) makes f32 of those that stand for others)"
        )
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError(
            f"elements are {name}, which NumPy has with the package ml_dtypes alone:"
            " pip install ml_dtypes"
        ) from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return dtype


def name_of(dtype: np.dtype[Any]) -> str:
    """Returns what elements of a NumPy type are called here."""
    try:
        return _NAMES[dtype.name]
    except KeyError:
        raise UnsupportedError(
            f"elements are {dtype}, expected one of {', '.join(_NAMES.values())}"
        ) from None


def array(tensor: Tensor, dequantize: bool) -> np.ndarray[Any, Any]:
    """Reads a tensor as an array."""
    name = tensor.dtype
    if name == "str":
        return np.array(tensor.strings(), dtype=object).reshape(tensor.shape)
    if not dequantize:
        dtype_of(name)
    memory = tensor.read(False, dequantize, False)
    name = memory.dtype
    found = _plain(memory)
    if name in _NUMPY:
        return found
    dtype = dtype_of(name)
    if name in ("i4", "u4"):
        return _halves(found, name == "i4", tensor.shape, dtype)
    return found.view(dtype)


def _plain(memory: Memory) -> np.ndarray[Any, Any]:
    """Returns memory as an array without a copy."""
    if memory.rank > _MAX_RANK:
        raise UnsupportedError(
            f"the tensor has {memory.rank} dimensions, and arrays have at most {_MAX_RANK}"
        )
    found: np.ndarray[Any, Any] = np.asarray(memory)
    return found


# What every release of NumPy has.
_MAX_RANK = 32


def _halves(
    pairs: np.ndarray[Any, np.dtype[np.uint8]],
    is_signed: bool,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> np.ndarray[Any, Any]:
    """Gives each of two elements of a byte a byte of its own: the first is in the low four bits."""
    halves = np.empty(2 * len(pairs), np.uint8)
    halves[0::2] = pairs & 15
    halves[1::2] = pairs >> 4
    elements = halves[: int(np.prod(shape, dtype=np.int64))].view(np.int8)
    if is_signed:
        elements = (elements ^ np.int8(8)) - np.int8(8)
    found: np.ndarray[Any, Any] = elements.astype(dtype).reshape(shape)
    return found


def torch_dtype(name: str) -> torch.dtype:
    """Returns the PyTorch type of elements."""
    import torch

    dtype = getattr(torch, _TORCH[name], None) if name in _TORCH else None
    if not isinstance(dtype, torch.dtype):
        raise UnsupportedError(f"elements are {name}, which this PyTorch does not have")
    return dtype


def torch_name(dtype: torch.dtype) -> str:
    """Returns what elements of a PyTorch type are called here."""
    found = str(dtype).removeprefix("torch.")
    for name, of in _TORCH.items():
        if of == found:
            return name
    raise UnsupportedError(f"elements are {dtype}, expected one of {', '.join(_TORCH)}")


def torch_tensor(tensor: Tensor, dequantize: bool) -> torch.Tensor:
    """Reads a tensor as one of PyTorch, which has memory of its own."""
    import torch

    if not dequantize:
        torch_dtype(tensor.dtype)
    is_small = tensor.dtype.startswith("f8")
    memory = tensor.read(True, dequantize, is_small)
    dtype = torch_dtype(memory.dtype)
    found = torch.from_dlpack(memory)
    return found.view(dtype) if is_small else found
