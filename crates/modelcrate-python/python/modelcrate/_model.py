"""Open files and what is in them."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Union, cast

from . import _elements, _native
from ._report import Report, report
from .errors import Error, UnsupportedError, UsageError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from typing_extensions import CapsuleType

__all__ = ["File", "Files", "Model", "Port", "Readable", "Tensor", "Tensors", "open"]

Readable = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, BinaryIO]
"""What a model is read from: a path, bytes, or a binary file that can seek."""

Verify = Literal["always", "never", "once"]


def open(
    source: Readable, *, mmap: bool = False, lenient: bool = False, verify: Verify | None = None
) -> Model:
    """Opens a model file of any format, which its content tells.

    `source` is a path of a file, or of the folder of a carton or an nnpackage; bytes, which are not
    copied where they are `bytes`; or a binary file that can seek, which is read by position and not
    closed. Only the fixed parts and the document are read; tensors are when they are asked for.

    With `mmap` the file is mapped, and arrays are views of it: nothing may change or truncate the file
    as long as the model or such an array lives, or the process may end. With `lenient` whatever is not
    unsafe to read is read, for looking at broken files. `verify` says when digests in the file are
    compared: "once", at the first read of a part; "always", at every read; "never", only by
    `Model.verify`. By default that is what the format's own clients do.

    Raises `MalformedError`, `UnsupportedError` or `LimitError` where the file is at fault, and
    `NotFoundError` or `IoError`, which are `OSError`, where it cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if "://" in path:
            raise UnsupportedError(
                f"{path!r} is a URL, which this build does not read, expected a path or a binary file"
            )
        return Model(_native.Reader.open(path, map=mmap, lenient=lenient, verify=verify), path)
    if mmap:
        raise UsageError("mmap is for paths, expected mmap=False for bytes and binary files")
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = source if isinstance(source, bytes) else bytes(source)
        return Model(_native.Reader.from_bytes(data, lenient=lenient, verify=verify), None)
    if not hasattr(source, "read") or not hasattr(source, "seek"):
        raise TypeError(
            f"source is {type(source).__name__}, expected a path, bytes or a binary file that can seek"
        )
    file = _Seeking(source)
    reader = _native.Reader.from_object(file, file.length, lenient=lenient, verify=verify)
    return Model(reader, None)


class _Seeking:
    """A binary file, read by position; threads take turns."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._turn = threading.Lock()
        self.length = file.seek(0, io.SEEK_END)

    def read_at(self, offset: int, length: int, /) -> bytes:
        with self._turn:
            self._file.seek(offset)
            pieces: list[bytes] = []
            while length > 0:
                piece = self._file.read(length)
                if not piece:
                    break
                pieces.append(piece)
                length -= len(piece)
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@dataclass(frozen=True)
class Port:
    """An input or an output of a model."""

    name: str
    dtype: str
    """The type of its elements, as the format calls it."""
    shape: str | Sequence[int | str]
    """A symbol or, as `*`, any shape; else a number, a symbol or `*` for each dimension."""
    description: str | None = None
    """What its maker says of it."""
    internal_name: str | None = None
    """Its name inside the model, where that is another."""


class Tensor(_native.Tensor):
    """A tensor of an open model; nothing is read before it is asked for.

    Libraries take it as it is: `numpy.asarray`, `numpy.from_dlpack`, `torch.from_dlpack`, and on
    Python 3.11 or later `memoryview`.
    """

    __slots__ = ("_model", "_place")
    _model: Model
    _place: int

    def __new__(cls, model: Model, place: int) -> Tensor:
        tensor = cast(Tensor, super().__new__(cls, model._reader, place))
        tensor._model, tensor._place = model, place
        return tensor

    def numpy(self, *, dequantize: bool = False) -> np.ndarray[Any, Any]:
        """Reads it as an array of NumPy.

        An array that stands in the memory of a file, which was opened from bytes or with `mmap`, is
        read-only, is not a copy where its elements are aligned there, and keeps that memory alive
        whatever becomes of the model; so is one that had to be decoded. Any other has memory of its
        own, which can be written to.

        `bf16`, `f8_e4m3`, `f8_e5m2`, `i4` and `u4` need the package `ml_dtypes`. With `dequantize`
        whole numbers and blocks that stand for others become `float32`; without it whole numbers are
        given out as they are stored, and blocks are refused. Sparse tensors have their zeros. Texts are
        an array of objects.

        Raises `UnsupportedError` where NumPy has no such elements, and what `modelcrate.open` raises
        where they cannot be read.
        """
        return _elements.array(self, dequantize)

    def torch(self, *, dequantize: bool = False) -> torch.Tensor:
        """Reads it as a tensor of PyTorch on the CPU, which has memory of its own.

        `dequantize` and errors are as for `numpy`; `ml_dtypes` is not needed.
        """
        return _elements.torch_tensor(self, dequantize)

    def tobytes(self) -> bytes:
        """Reads its elements as bytes: decoded, little-endian and row-major; blocks, such as those of
        GGUF, as they are stored."""
        return super().tobytes()

    @property
    def info(self) -> Mapping[str, Any]:
        """What `modelcrate inspect --format json` says of it: `offset`, `encoding`, `quantization`,
        `digest`, `layout`, `metadata` and others, as far as it has them."""
        tensors = self._model.summary["tensors"]
        return cast("Mapping[str, Any]", tensors[self._place]) if self._place < len(tensors) else {}

    @property
    def quantization(self) -> Mapping[str, Any] | None:
        """How its whole numbers stand for real ones: `scale`, `zero_point` and, where they are for the
        indices of a dimension, `axis`; None where they do not."""
        return cast("Mapping[str, Any] | None", self.info.get("quantization"))

    def _memory(self) -> _native.Memory:
        return self.read(False, False, False)

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        found = self.numpy()
        if dtype is not None and dtype != found.dtype:
            if copy is False:
                raise ValueError(f"elements are {found.dtype}, so that {dtype} needs a copy")
            return found.astype(dtype)
        return found.copy() if copy else found

    def __dlpack__(
        self,
        *,
        stream: Any | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Hands out its elements as DLPack, which says from version 1.0 on whether they are
        read-only."""
        owned = max_version is None or max_version[0] < 1 or copy is True
        return self.read(owned, False, False).__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("a scalar has no length")
        return shape[0]

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r} {self.dtype} {list(self.shape)}>"

    def __reduce__(self) -> Any:
        raise _not_carried("a Tensor", "tensor.numpy()")

    def __copy__(self) -> Any:
        raise _not_carried("a Tensor", "tensor.numpy()")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise _not_carried("a Tensor", "tensor.numpy()")


class Tensors(Mapping[str, Tensor]):
    """The tensors of a model by name, in the order of the file.

    A tensor without a name is called by its place, such as `#3`; of several of one name the later ones
    have their place behind it, such as `w#7`.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._places = {name: place for place, name in enumerate(model._reader.names())}

    def __getitem__(self, name: str) -> Tensor:
        return Tensor(self._model, self._places[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __repr__(self) -> str:
        return f"<Tensors: {len(self)}>"

    def _repr_html_(self) -> str:
        return _table(self)


class File:
    """A file inside a model; nothing is read before it is asked for."""

    def __init__(self, model: Model, summary: Mapping[str, Any]) -> None:
        self._model = model
        self.info = summary
        """What `modelcrate inspect --format json` says of it."""

    @property
    def path(self) -> str:
        """Its path in the container."""
        return cast(str, self.info["path"])

    @property
    def nbytes(self) -> int | None:
        """The bytes of its content, where they are known."""
        return cast("int | None", self.info.get("bytes"))

    def read(self) -> bytes:
        """Reads its content; checksums are compared on the way."""
        content = self._model._reader.file(self.path)
        if content is None:
            raise UsageError(f"{self.path!r} has no content of its own: it is a link or a folder")
        return content

    def __repr__(self) -> str:
        return f"<File {self.path!r}>"


class Files(Mapping[str, File]):
    """The files inside a model by path, in the order of the container; none where it is no container."""

    def __init__(self, model: Model) -> None:
        self._files = {one["path"]: File(model, one) for one in model.summary.get("files", ())}

    def __getitem__(self, path: str) -> File:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"<Files: {len(self)}>"


class Model:
    """An open model file, which `modelcrate.open` returns.

    It is a context manager. Threads may use one model at the same time: other threads run while it
    reads. Arrays stay as they are when it is closed; its tensors cannot be read any more.
    """

    def __init__(self, reader: _native.Reader, path: str | None) -> None:
        self._reader = reader
        self._path = path

    @property
    def format(self) -> str:
        """The format: carton, circle, gguf, nnpackage, npy, npz, ptl, ptl-spec, rten, safetensors,
        tflite or ztensor."""
        return self._reader.format

    @property
    def version(self) -> str:
        """The version of the format, as the file says or shows it."""
        return cast(str, self.summary["version"])

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Metadata of the file, by key."""
        return cast("Mapping[str, Any]", self.summary["metadata"])

    @property
    def inputs(self) -> Sequence[Port]:
        """What the model takes, in order, where the format says."""
        return [Port(**port) for port in self.summary.get("inputs", ())]

    @property
    def outputs(self) -> Sequence[Port]:
        """What the model returns, in order, where the format says."""
        return [Port(**port) for port in self.summary.get("outputs", ())]

    @cached_property
    def files(self) -> Files:
        """The files inside."""
        return Files(self)

    @cached_property
    def tensors(self) -> Tensors:
        """The tensors by name."""
        return Tensors(self)

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """Everything that `modelcrate inspect --format json` says of the file."""
        return self.summarize()

    def summarize(
        self, *, digests: bool = False, stats: bool = False, values: int = 0
    ) -> Mapping[str, Any]:
        """Like `summary`, but with the SHA-256 of each tensor, statistics of its elements, or its first
        elements, for which tensor data are read."""
        found = json.loads(self._reader.summary(digests, stats, values))
        return cast("Mapping[str, Any]", found)

    def verify(self, *, data: bool = True) -> Report:
        """Checks every rule of the format over every byte, and the list of hashes beside the file where
        there is one; without `data` only what needs no tensor data."""
        return report(self._reader.check(data))

    def hash(self) -> str:
        """Computes the digest of the tensors: the same for every file that has the same tensors under
        the same names, whatever its format."""
        return self._reader.hash()

    def graph(self) -> Mapping[str, Any]:
        """Returns what `modelcrate graph --format json` prints: of RTen, Circle and TFLite models all
        operators, of an nnpackage how its models are connected.

        Raises `UnsupportedError` where the format has none.
        """
        return cast("Mapping[str, Any]", json.loads(self._reader.graph()))

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._reader.closed

    def close(self) -> None:
        """Lets go of the file. Arrays that were read stay as they are."""
        self._reader.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<Model, closed>"
        of = "" if self._path is None else f" {self._path!r}"
        return f"<Model{of}: {self.format}, {len(self.tensors)} tensors>"

    def _repr_html_(self) -> str:
        if self.closed:
            return "<p>closed model</p>"
        of = "" if self._path is None else f"<code>{escape(self._path)}</code>: "
        head = f"<p>{of}{escape(self.format)} {escape(self.version)}, {len(self.tensors)} tensors</p>"
        metadata = "".join(
            f"<tr><td>{escape(key)}</td><td>{escape(str(value)[:_SHOWN_TEXT])}</td></tr>"
            for key, value in list(self.metadata.items())[:_SHOWN]
        )
        return f"{head}<table>{metadata}</table>{_table(self.tensors)}"

    def __reduce__(self) -> Any:
        raise _not_carried("a Model", "its path")

    def __copy__(self) -> Any:
        raise _not_carried("a Model", "its path")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise _not_carried("a Model", "its path")


def _not_carried(what: str, instead: str) -> TypeError:
    return TypeError(f"{what} stands on an open file and is not copied or pickled: take {instead}")


def _table(tensors: Tensors) -> str:
    """Shows the first tensors; what a file says is escaped."""
    rows: list[str] = []
    for name in list(tensors)[:_SHOWN]:
        tensor = tensors[name]
        try:
            dtype, shape = tensor.dtype, " × ".join(map(str, tensor.shape))
        except Error as error:
            dtype, shape = str(error), ""
        cells = (name[:_SHOWN_TEXT], dtype[:_SHOWN_TEXT], shape)
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    more = len(tensors) - _SHOWN
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    head = "<tr><th>tensor</th><th>elements</th><th>shape</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>{rest}"


_SHOWN = 100
_SHOWN_TEXT = 200
