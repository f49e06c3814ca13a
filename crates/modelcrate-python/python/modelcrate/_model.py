"""Open files and what is in them."""

from __future__ import annotations

import io
import json
import os
import reprlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Union, cast

from . import _elements, _native
from ._report import Report, html, report
from .errors import Error, UsageError

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

    `source` is a path of a file, or of the folder of a carton or an nnpackage; an address, `s3://`,
    `gs://`, `az://`, `https://` or `hf://`, of which one or two requests are made to open it; bytes,
    which are not copied where they are `bytes`; or a binary file that can seek, which is read by position
    and not closed. Credentials come from where the store's own tools take them. Only the fixed parts and the document are read; tensors are when they are asked for.

    With `mmap` the file is mapped, and arrays are views of it: nothing may change or truncate the file
    as long as the model or such an array lives, or the process may end. With `lenient` whatever is not
    unsafe to read is read, for looking at broken files. `verify` says when digests in the file are
    compared: "once", at the first read of a part; "always", at every read; "never", only by
    `Model.verify`. By default that is what the format's own clients do.

    Raises `MalformedError`, `UnsupportedError` or `LimitError` where the file is at fault, and
    `NotFoundError` or `IoError`, which are `OSError`, where it cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fsdecode(source)
        if "://" in path:
            if mmap:
                raise UsageError("mmap is for paths, expected mmap=False for an address")
            return Model(_native.Reader.open_address(path, lenient=lenient, verify=verify), path)
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
                length -= memoryview(piece).nbytes
            return b"".join(pieces)


class _Opened:
    """An open file and what is said of it: all that a model shares with its tensors and files, so that
    these do not lead back to it."""

    def __init__(self, reader: _native.Reader) -> None:
        self.reader = reader

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        return self.summarize()

    def summarize(
        self, *, digests: bool = False, stats: bool = False, values: int = 0
    ) -> Mapping[str, Any]:
        found = json.loads(self.reader.summary(digests, stats, values))
        return cast("Mapping[str, Any]", found)


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

    __slots__ = ()

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
        opened: _Opened = self._opened
        tensors = opened.summary["tensors"]
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
        if copy is False:
            memory = self._memory()
            if not memory.is_view or memory.dtype in _elements.HALVES:
                raise ValueError("elements have to be read or decoded, so that arrays are copies")
            found = _elements.array_of(memory)
        else:
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
        """Hands out its elements as DLPack.

        They are a copy where `copy` is true, where the file is not in memory, and where they have to be
        decoded; from version 1.0 on they say so, and otherwise are those of the file and read-only.

        Raises `BufferError` where DLPack of `max_version` has no such elements, for another device than
        that of the host, and where `copy` is false and they would be one.
        """
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
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

    def __init__(self, opened: _Opened) -> None:
        self._opened, self._reader = opened, opened.reader
        self._places = {name: place for place, name in enumerate(opened.reader.names())}

    def __getitem__(self, name: str) -> Tensor:
        return Tensor(self._opened, self._reader, self._places[name])

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

    def __init__(self, reader: _native.Reader, summary: Mapping[str, Any]) -> None:
        self._reader = reader
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
        content = self._reader.file(self.path)
        if content is None:
            raise UsageError(f"{self.path!r} has no content of its own: it is a link or a folder")
        return content

    def __repr__(self) -> str:
        return f"<File {self.path!r}>"


class Files(Mapping[str, File]):
    """The files inside a model by path, in the order of the container; none where it is no container."""

    def __init__(self, opened: _Opened) -> None:
        found = opened.summary.get("files", ())
        self._files = {one["path"]: File(opened.reader, one) for one in found}

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
        self._opened = _Opened(reader)
        self._path = path

    @property
    def format(self) -> str:
        """The format: carton, circle, gguf, nnpackage, npy, npz, ptl, ptl-spec, rten, safetensors,
        tflite or ztensor."""
        return self._reader.format

    @property
    def nbytes(self) -> int | None:
        """The bytes of the file; None of a folder or of shards."""
        return self._reader.nbytes

    @property
    def etag(self) -> str | None:
        """The entity tag of a file at an address, where the store has one: all that is read is of this
        version."""
        return self._reader.etag

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
        return Files(self._opened)

    @cached_property
    def tensors(self) -> Tensors:
        """The tensors by name."""
        return Tensors(self._opened)

    @property
    def summary(self) -> Mapping[str, Any]:
        """Everything that `modelcrate inspect --format json` says of the file."""
        return self._opened.summary

    def summarize(
        self, *, digests: bool = False, stats: bool = False, values: int = 0
    ) -> Mapping[str, Any]:
        """Like `summary`, but with the SHA-256 of each tensor, statistics of its elements, or its first
        elements, for which tensor data are read."""
        return self._opened.summarize(digests=digests, stats=stats, values=values)

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
        operators with the values between them, of an nnpackage how its models are connected, of a
        PyTorch Live model what its methods call and its modules, of a carton its runner.

        Raises `UnsupportedError` where the format has none.
        """
        return cast("Mapping[str, Any]", json.loads(self._reader.graph()))

    def report(
        self,
        *,
        stats: bool = False,
        digests: bool = False,
        format: Literal["html", "markdown"] = "html",
    ) -> str:
        """Returns a page about the file, as `modelcrate report` writes it: one HTML file that needs
        nothing else, or Markdown. All of the file is checked for it; `stats` computes statistics of
        every tensor and `digests` its SHA-256.
        """
        if format not in ("html", "markdown"):
            raise UsageError(f"format is {format!r}, expected 'html' or 'markdown'")
        return self._reader.report(stats, digests, format == "markdown")

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
        of = "" if self._path is None else f"<code>{html(self._path)}</code>: "
        head = f"<p>{of}{self.format} {html(self.version)}, {len(self.tensors)} tensors</p>"
        # Of a list of any length the first few.
        metadata = "".join(
            f"<tr><td>{html(key)}</td>"
            f"<td>{html(value if isinstance(value, str) else reprlib.repr(value))}</td></tr>"
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
        cells = "".join(f"<td>{html(cell)}</td>" for cell in (name, dtype, shape))
        rows.append(f"<tr>{cells}</tr>")
    more = len(tensors) - _SHOWN
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    head = "<tr><th>tensor</th><th>elements</th><th>shape</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>{rest}"


_SHOWN = 100
