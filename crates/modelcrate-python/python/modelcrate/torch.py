"""The functions of `safetensors.torch`, for files of every format.

    from modelcrate.torch import load_file, safe_open, save_file
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import _elements, _model, _native
from ._model import Readable
from ._safe_open import SafeOpen
from .errors import UsageError

if TYPE_CHECKING:
    import torch

__all__ = ["load", "load_file", "safe_open", "save", "save_file"]


def load_file(
    filename: Readable, device: str | torch.device | int = "cpu"
) -> dict[str, torch.Tensor]:
    """Reads all tensors of a file of any format, and moves them to a device."""
    with _model.open(filename) as model:
        found = {name: tensor.torch() for name, tensor in model.tensors.items()}
    if str(device) == "cpu":
        return found
    return {name: tensor.to(device) for name, tensor in found.items()}


def load(data: bytes) -> dict[str, torch.Tensor]:
    """Reads all tensors of a file that is in memory."""
    return load_file(data)


def save_file(
    tensors: Mapping[str, torch.Tensor],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    *,
    sync: bool = True,
) -> None:
    """Writes tensors as a file, in place of one that is there, whole or not at all.

    The format is what the name ends in: `safetensors`, which is also that of a name without an end,
    `npz`, `npy`, `zt` or `gguf`. Tensors of other devices are copied to memory, those that are not
    contiguous are made so; what the format cannot hold raises `UsageError` before anything is written. `sync` is as for `modelcrate.save_file`.
    """
    given = [(name, *_given(tensor)) for name, tensor in tensors.items()]
    _native.save(given, os.fsdecode(filename), dict(metadata or {}), to=None, sync=sync)


def save(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Returns what `save_file` writes to a safetensors file."""
    given = [(name, *_given(tensor)) for name, tensor in tensors.items()]
    return _native.dump(given, dict(metadata or {}))


def safe_open(
    filename: str | os.PathLike[str],
    framework: str = "pt",
    device: str | torch.device | int = "cpu",
    *,
    backend: str = "pread",
) -> SafeOpen[torch.Tensor]:
    """Opens a file of any format for its tensors, as `safetensors.safe_open` does.

    `framework` is `"pt"`, `"torch"` or `"pytorch"`. Files are read by position whatever `backend` says,
    `"mmap"` or `"pread"`.
    """
    SafeOpen.check_backend(backend)
    if framework not in ("pt", "pytorch", "torch"):
        message = f'framework is {framework!r}, expected "pt": see modelcrate.numpy'
        raise UsageError(message)
    return SafeOpen(_model.open(filename), lambda tensor: tensor.torch().to(device))


def _given(tensor: torch.Tensor) -> tuple[str, list[int], int, _Bytes]:
    import torch

    tensor = tensor.detach().to("cpu").contiguous()
    dtype = _elements.torch_name(tensor.dtype)
    data = tensor.reshape(-1).view(torch.uint8)
    return dtype, list(tensor.shape), data.numel(), _Bytes(data)


class _Bytes:
    """The bytes of a tensor, read by position."""

    def __init__(self, data: torch.Tensor) -> None:
        self._data = data

    def read_at(self, offset: int, length: int, /) -> bytes:
        part: bytes = self._data[offset : offset + length].numpy().tobytes()
        return part
