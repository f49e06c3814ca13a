"""Many files at once: tables in, tables out, for Spark, Ray and whatever else moves Arrow tables.

    dataset.map_batches(modelcrate.batch.verify, batch_format="pyarrow")         # Ray
    frame.mapInArrow(modelcrate.batch.in_arrow(modelcrate.batch.verify), schema) # Spark

Each function takes a table with a column `path`, and perhaps one `etag`, and returns one with a row for
each of its rows, in their order, and always the same columns. A file that cannot be read is a row with its
`error`, and so is no reason for a task to fail. Files are looked at one after another, and a row takes at
most 64 KiB for each of its texts, so that what a task needs does not grow with its files or their number.

A path may be an address, as for `modelcrate.open`. An `etag` says which content of a file is meant, as
stores do; that of a local file is made of the time of the last change and the length (`etag_of`). A file that has another one by now is a row with an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa

from . import _model
from . import convert as _convert
from ._report import refused
from .errors import BusyError, Error, LimitError, MalformedError, UnsupportedError, UsageError

__all__ = [
    "CONVERT",
    "INSPECT",
    "VERIFY",
    "convert",
    "etag_of",
    "in_arrow",
    "inspect",
    "output_of",
    "verify",
]

_FILE = [
    pa.field("path", pa.string(), nullable=False),
    pa.field("etag", pa.string()),
    pa.field("nbytes", pa.int64()),
]

_ERROR = [pa.field("error", pa.string()), pa.field("rule", pa.string())]

INSPECT: pa.Schema = pa.schema(
    [
        *_FILE,
        pa.field("format", pa.string()),
        pa.field("version", pa.string()),
        pa.field("tensors", pa.int64()),
        pa.field("tensor_bytes", pa.int64()),
        pa.field("inputs", pa.string()),
        pa.field("outputs", pa.string()),
        pa.field("metadata", pa.string()),
        *_ERROR,
    ]
)
"""The columns of `inspect`: `inputs`, `outputs` and `metadata` are JSON, and null where they are over
64 KiB."""

VERIFY: pa.Schema = pa.schema(
    [
        *_FILE,
        pa.field("format", pa.string()),
        pa.field("verdict", pa.string()),
        pa.field("errors", pa.int64()),
        pa.field("warnings", pa.int64()),
        pa.field(
            "findings",
            pa.list_(
                pa.struct(
                    [
                        pa.field("rule", pa.string()),
                        pa.field("severity", pa.string()),
                        pa.field("at", pa.string()),
                        pa.field("message", pa.string()),
                    ]
                )
            ),
        ),
        *_ERROR,
    ]
)
"""The columns of `verify`: of `findings`, whose `at` is JSON, there are the first 100, and all are counted
in `errors` and `warnings`."""

CONVERT: pa.Schema = pa.schema(
    [
        *_FILE,
        pa.field("output", pa.string()),
        pa.field("output_bytes", pa.int64()),
        *_ERROR,
    ]
)
"""The columns of `convert`."""


def inspect(table: pa.Table) -> pa.Table:
    """Describes files: a row of `INSPECT` for each; no tensor data are read."""
    return _each(table, INSPECT, _inspected)


def verify(table: pa.Table) -> pa.Table:
    """Checks every byte of files: a row of `VERIFY` for each."""
    return _each(table, VERIFY, _verified)


def convert(
    table: pa.Table,
    *,
    folder: str | os.PathLike[str],
    to: str = "safetensors",
    lossy: bool = False,
    densify: bool = False,
    dequantize: bool = False,
) -> pa.Table:
    """Converts files, each to the file of `folder` that `output_of` names: a row of `CONVERT` for each.

    A file that is there already is the result of the same content by the same options, and is not made
    again: a task that is tried again goes on where it was, and files are there whole or not at all. Of a
    file without an ETag it is always made again. Options are those of `modelcrate.convert`.
    """
    options = {"lossy": lossy, "densify": densify, "dequantize": dequantize}

    def converted(path: str, etag: str | None) -> dict[str, Any]:
        found = _file(path, etag)
        output = output_of(folder, path, found["etag"] or "", to, **options)
        if found["etag"] is None or not output.exists():
            output.parent.mkdir(parents=True, exist_ok=True)
            # Two tasks may have the same file: both write the same, and the last one stays.
            part = output.with_name(f".{uuid.uuid4().hex}.{output.name}")
            try:
                _convert(path, part, to=to, **options)
                # It may have changed before it was read.
                _file(path, found["etag"])
                os.replace(part, output)
            finally:
                part.unlink(missing_ok=True)
        return {**found, "output": str(output), "output_bytes": output.stat().st_size}

    return _each(table, CONVERT, converted)


def in_arrow(
    function: Callable[..., pa.Table], **options: Any
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Turns one of these functions into what `pyspark.sql.DataFrame.mapInArrow` takes, with options of
    it: batches of at most 100 rows come out."""

    def batches(incoming: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in incoming:
            for start in range(0, batch.num_rows, _ROWS):
                part = pa.Table.from_batches([batch.slice(start, _ROWS)])
                yield from function(part, **options).combine_chunks().to_batches()

    return batches


def etag_of(path: str | os.PathLike[str]) -> str:
    """Returns what says which content a local file has: its time of change in nanoseconds and its length
    in bytes, in hex digits; of a folder those of all files in it, hashed."""
    found = os.stat(path)
    if not os.path.isdir(path):
        return f"{found.st_mtime_ns:x}-{found.st_size:x}"
    whole = hashlib.sha256()
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            file = os.path.join(folder, name)
            of = os.lstat(file)
            line = f"{os.path.relpath(file, path)}\n{of.st_mtime_ns:x}-{of.st_size:x}\n"
            whole.update(os.fsencode(line))
    return whole.hexdigest()[:32]


def output_of(
    folder: str | os.PathLike[str], path: str, etag: str, to: str, **options: bool
) -> Path:
    """Returns which file of a folder is made of the content of another: two levels of folders, named by a
    digest of its path, its ETag and the options that are set."""
    parts = [path, etag, *sorted(name for name, is_set in options.items() if is_set)]
    key = hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:40]
    return Path(folder) / key[:2] / f"{key}.{_ENDS.get(to, to)}"


def _each(
    table: pa.Table, schema: pa.Schema, row: Callable[[str, str | None], Mapping[str, Any]]
) -> pa.Table:
    """Makes a row of each row of a table."""
    paths = table.column("path").to_pylist()
    if "etag" in table.column_names:
        etags = table.column("etag").cast(pa.string()).to_pylist()
    else:
        etags = [None] * len(paths)
    rows: list[dict[str, Any]] = []
    for path, etag in zip(paths, etags):
        found: dict[str, Any] = dict.fromkeys(schema.names)
        found.update(path=path or "", etag=etag)
        try:
            if not path:
                raise UsageError("the row has no path, expected one", rule="file/usage")
            found.update(row(path, etag))
        # Python's own say what it cannot take, such as a path with a byte of 0.
        except (Error, OSError, TypeError, ValueError) as error:
            found["error"] = _cut(str(error))
            found["rule"] = getattr(error, "rule", "file/read")
        rows.append(found)
    return pa.Table.from_pylist(rows, schema=schema)


def _file(path: str, etag: str | None) -> dict[str, Any]:
    """Returns the ETag and the length of a file; an error where it has another content than is meant."""
    local = _local(path)
    if local is None:
        with _model.open(path) as model:
            return _of(model, path, etag)
    nbytes = None if os.path.isdir(local) else os.stat(local).st_size
    return _pinned(path, etag, etag_of(local), nbytes)


def _of(model: _model.Model, path: str, etag: str | None) -> dict[str, Any]:
    """Like `_file`, but of a file that is open."""
    if _local(path) is None:
        return _pinned(path, etag, model.etag, model.nbytes)
    return _file(path, etag)


def _local(path: str) -> str | None:
    """Returns the path of what is on this machine; None for what is at an address."""
    if path.lower().startswith("file://"):
        return url2pathname(urlsplit(path).path)
    return None if "://" in path else path


def _pinned(path: str, etag: str | None, found: str | None, nbytes: int | None) -> dict[str, Any]:
    # Stores quote them, and listings of stores may not.
    if etag is not None and found is not None and etag.strip('"') != found.strip('"'):
        raise BusyError(f"{path!r} has the ETag {found}, expected {etag}", rule="file/busy")
    return {"etag": etag or found, "nbytes": nbytes}


def _inspected(path: str, etag: str | None) -> dict[str, Any]:
    with _model.open(path) as model:
        summary = model.summary
        return {
            **_of(model, path, etag),
            "format": summary["format"],
            "version": summary["version"],
            "tensors": len(summary["tensors"]),
            "tensor_bytes": sum(tensor["bytes"] for tensor in summary["tensors"]),
            "inputs": _text(summary.get("inputs", [])),
            "outputs": _text(summary.get("outputs", [])),
            "metadata": _text(summary["metadata"]),
        }


def _verified(path: str, etag: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if _local(path) is None else _file(path, etag)
    try:
        model = _model.open(path)
    except (MalformedError, UnsupportedError, LimitError) as error:
        # Why it does not open is what is found.
        report = refused(error)
    else:
        with model:
            found = found or _of(model, path, etag)
            report = model.verify()
    severities = [finding.severity for finding in report]
    return {
        **found,
        "format": report.format,
        "verdict": report.verdict,
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "at": json.dumps(dict(finding.at))[:_TEXT],
                "message": _cut(finding.message),
            }
            for finding in report.findings[:_FINDINGS]
        ],
    }


def _cut(text: str) -> str:
    """Returns as much of a text as takes 64 KiB."""
    return text.encode(errors="replace")[:_TEXT].decode(errors="ignore")


def _text(value: Any) -> str | None:
    text = json.dumps(value)
    return text if len(text) <= _TEXT else None


# What names of files end in, where that is not the name of the format.
_ENDS = {"torchscript": "pt", "ztensor": "zt", "rten1": "rten", "rten2": "rten"}

_FINDINGS = 100
_ROWS = 100
_TEXT = 64 << 10
