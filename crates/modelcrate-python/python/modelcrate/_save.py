"""Tensors in memory as files, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _elements, _native
from ._model import Readable, open
from ._report import Converted, Note
from .errors import Error, UnsupportedError

__all__ = ["load_file", "save", "save_file"]


def save_file(
    tensors: Mapping[str, np.ndarray[Any, Any]],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    *,
    to: str | None = None,
    sync: bool = True,
) -> Converted:
    """Writes arrays as a file, in place of one that is there, whole or not at all.

    The format is what the name ends in, or `to`: `safetensors`, which is also that of a name without an
    end, `npz`, `npy`, `zt`, `zt2` or `gguf`. Elements are those of NumPy and of `ml_dtypes`, but 4-bit
    ones; what the format cannot hold raises `UsageError` before anything is written. The arrays are not
    copied if they are row-major and little-endian; they must not change meanwhile.

    The file is on the disk on return, and its name leads to the old one or the new one after a power cut.
    Without `sync` the system writes it when it likes: it is still whole after a crash of the process, but
    perhaps not after one of the machine.
    """
    given = [_given(name, array) for name, array in tensors.items()]
    done = json.loads(_native.save(given, os.fsdecode(filename), dict(metadata or {}), to=to, sync=sync))
    return Converted(
        to=done["to"],
        nbytes=done["nbytes"],
        notes=[Note(note["tensor"], note["effect"]) for note in done["notes"]],
        left_out=done["left_out"],
    )


def save(
    tensors: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """Returns what `save_file` writes to a safetensors file."""
    given = [_given(name, array) for name, array in tensors.items()]
    return _native.dump(given, dict(metadata or {}))


def load_file(filename: Readable) -> dict[str, np.ndarray[Any, Any]]:
    """Reads all tensors of a file of any format into memory of their own."""
    with open(filename) as model:
        names = list(model.tensors)
        try:
            memories = model._reader.read_all()
        except Error:
            # One that is not plain elements: it says which it is, or is read in another way.
            return {name: _own(tensor.numpy()) for name, tensor in model.tensors.items()}
        if any(memory.dtype in _elements.HALVES for memory in memories):
            return {name: _own(tensor.numpy()) for name, tensor in model.tensors.items()}
    return dict(zip(names, map(_elements.array_of, memories)))


def _own(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array if array.flags.writeable else array.copy()


def _given(name: str, array: Any) -> tuple[str, str, list[int], int, _Array]:
    array = np.asarray(array)
    dtype = _elements.name_of(array.dtype)
    if dtype in ("i4", "u4"):
        raise UnsupportedError(f"{name!r}: elements are {dtype}, expected whole bytes")
    # A scalar stays one.
    array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return name, dtype, list(array.shape), array.nbytes, _Array(array)


class _Array:
    """The bytes of an array, read by position."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._bytes = array.reshape(-1).view(np.uint8)

    def read_at(self, offset: int, length: int, /) -> bytes:
        return self._bytes[offset : offset + length].tobytes()
