"""The functions of `safetensors.numpy`, for files of every format.

    from modelcrate.numpy import load_file, safe_open, save_file
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _model
from ._safe_open import SafeOpen
from ._save import load_file, save_file
from .errors import UsageError

__all__ = ["load", "load_file", "safe_open", "save_file"]


def load(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Reads all tensors of a file that is in memory into memory of their own."""
    return load_file(data)


def safe_open(
    filename: str | os.PathLike[str], framework: str = "np", device: str = "cpu"
) -> SafeOpen[np.ndarray[Any, Any]]:
    """Opens a file of any format for its tensors, as `safetensors.safe_open` does.

    `framework` is `"np"` or `"numpy"`, and `device` `"cpu"`.
    """
    if framework not in ("np", "numpy"):
        raise UsageError(f'framework is {framework!r}, expected "np": see modelcrate.torch')
    if device != "cpu":
        raise UsageError(f'device is {device!r}, expected "cpu"')
    return SafeOpen(_model.open(filename), lambda tensor: tensor.numpy())


