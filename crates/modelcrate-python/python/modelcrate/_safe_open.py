"""What `safe_open` returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

from . import _elements
from ._model import Model, Tensor
from ._native import Memory
from .errors import UnsupportedError, UsageError

__all__ = ["SafeOpen", "Slice"]

T = TypeVar("T")


class Slice(Generic[T]):
    """A tensor of which parts are asked for. All of it is read with the first part."""

    def __init__(self, tensor: Tensor, read: Callable[[Tensor], T]) -> None:
        self._tensor = tensor
        self._read = read
        self._found: T | None = None

    def get_shape(self) -> list[int]:
        """Returns its dimensions, outermost first."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """Returns the type of its elements, as safetensors writes it, such as `F32`."""
        return self._tensor.dtype.upper()

    def __getitem__(self, index: Any) -> T:
        if self._found is None:
            self._found = self._read(self._tensor)
        part: Any = self._found[index]  # type: ignore[index]
        # It is the caller's, as is what every other part is asked for.
        copied: T = part.clone() if hasattr(part, "clone") else part.copy()
        return copied


class SafeOpen(Generic[T]):
    """An open file for its tensors. It is a context manager."""

    def __init__(
        self,
        model: Model,
        read: Callable[[Tensor], T],
        plain: Callable[[Memory], T] | None = None,
    ) -> None:
        self._model = model
        self._read = read
        self._plain = plain
        self._reader = model._reader

    @staticmethod
    def check_backend(backend: str) -> None:
        if backend not in ("mmap", "pread"):
            raise UsageError(f'backend is {backend!r}, expected "mmap" or "pread"')

    def keys(self) -> list[str]:
        """Returns the names of all tensors, sorted."""
        return sorted(self._model.tensors)

    def offset_keys(self) -> list[str]:
        """Returns the names of all tensors, in the order of the file."""
        return list(self._model.tensors)

    def metadata(self) -> dict[str, str] | None:
        """Returns the metadata as texts; None where there are none."""
        found = self._model.metadata
        texts = {key: of if isinstance(of, str) else _text(of) for key, of in found.items()}
        return texts or None

    def get_tensor(self, name: str) -> T:
        """Reads a tensor."""
        if self._plain is not None:
            try:
                memory = self._reader.read(name, False)
            except UnsupportedError:
                # Texts, say, which are read in another way.
                memory = None
            if memory is not None and memory.dtype not in _elements.HALVES:
                return self._plain(memory)
        return self._read(self._tensor(name))

    def get_tensors(self) -> dict[str, T]:
        """Reads all tensors, in the order of the file."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> Slice[T]:
        """Returns a tensor of which parts are asked for."""
        return Slice(self._tensor(name), self._read)

    def _tensor(self, name: str) -> Tensor:
        try:
            return self._model.tensors[name]
        except KeyError:
            raise UsageError(f"there is no tensor {name!r}") from None

    def __enter__(self) -> SafeOpen[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._model.close()


def _text(value: Any) -> str:
    return json.dumps(value)
