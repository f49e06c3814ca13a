"""The functions of `safetensors.numpy`, for files of every format.

    from modelcrate.numpy import load_file, safe_open, save_file
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _elements, _model, _save
from ._report import Converted
from ._safe_open import SafeOpen
from ._save import load_file
from .errors import UsageError

__all__ = ["load", "load_file", "safe_open", "save", "save_file"]


def save(
    tensor_dict: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """Returns what `save_file` writes to a safetensors file."""
    return _save.save(tensor_dict, metadata)


def save_file(
    tensor_dict: Mapping[str, np.ndarray[Any, Any]],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    *,
    sync: bool = True,
) -> Converted:
    """Writes arrays as a file, in place of one that is there, whole or not at all; see
    `modelcrate.save_file`."""
    return _save.save_file(tensor_dict, filename, metadata, sync=sync)


def load(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Reads all tensors of a file that is in memory into memory of their own."""
    return load_file(data)


def safe_open(
    filename: str | os.PathLike[str],
    framework: str = "np",
    device: str = "cpu",
    *,
    backend: str = "pread",
) -> SafeOpen[np.ndarray[Any, Any]]:
    """Opens a file of any format for its tensors, as `safetensors.safe_open` does.

    `framework` is `"np"` or `"numpy"`, and `device` `"cpu"`. Files are read by position whatever
    `backend` says, `"mmap"` or `"pread"`.
    """
    SafeOpen.check_backend(backend)
    if framework not in ("np", "numpy"):
        raise UsageError(f'framework is {framework!r}, expected "np": see modelcrate.torch')
    if device != "cpu":
        raise UsageError(f'device is {device!r}, expected "cpu"')
    return SafeOpen(_model.open(filename), lambda tensor: tensor.numpy(), _elements.array_of)
