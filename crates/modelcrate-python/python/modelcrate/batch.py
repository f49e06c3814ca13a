"""Many files at once: tables in, tables out, for Spark, Ray and whatever else moves Arrow tables.

    dataset.map_batches(modelcrate.batch.verify, batch_format="pyarrow")         # Ray
    frame.mapInArrow(modelcrate.batch.in_arrow(modelcrate.batch.verify), schema) # Spark

Each function takes a table with a column `path`, and perhaps one `etag`, and returns one with a row for
each of its rows, in their order, and always the same columns. A file that cannot be read is a row with its
`error`, and so is no reason for a task to fail. Files are looked at one after another, and a row takes at
most 64 KiB for each of its texts, so that what a task needs does not grow with its files or their number.

An `etag` says which content of a file is meant, as stores do; of local files without one it is made of
the time of the last change and the length. A file that has another one by now is a row with an error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from . import _model
from . import convert as _convert
from . import verify as _verify
from .errors import BusyError, Error

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

    A file that is there already is the result of the same content, and is not made again: a task that is
    tried again goes on where it was, and files are there whole or not at all. Options are those of
    `modelcrate.convert`.
    """

    def converted(path: str, etag: str) -> dict[str, Any]:
        output = output_of(folder, path, etag, to)
        if not output.exists():
            output.parent.mkdir(parents=True, exist_ok=True)
            # Two tasks may have the same file: both write the same, and the last one stays.
            _convert(
                path,
                output,
                to=to,
                lossy=lossy,
                densify=densify,
                dequantize=dequantize,
                overwrite=True,
            )
        return {"output": str(output), "output_bytes": output.stat().st_size}

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


def output_of(folder: str | os.PathLike[str], path: str, etag: str, to: str) -> Path:
    """Returns which file of a folder is made of the content of another: two levels of folders, named by a
    digest of its path and ETag."""
    key = hashlib.sha256(f"{path}\n{etag}".encode(errors="surrogateescape")).hexdigest()[:40]
    return Path(folder) / key[:2] / f"{key}.{_ENDS.get(to, to)}"


def _each(
    table: pa.Table, schema: pa.Schema, row: Callable[[str, str], Mapping[str, Any]]
) -> pa.Table:
    """Makes a row of each row of a table."""
    paths = table.column("path").to_pylist()
    if "etag" in table.column_names:
        etags = table.column("etag").to_pylist()
    else:
        etags = [None] * len(paths)
    names = schema.names
    rows: list[dict[str, Any]] = []
    for path, etag in zip(paths, etags):
        found: dict[str, Any] = dict.fromkeys(names)
        found.update(path=path, etag=etag)
        try:
            found["nbytes"] = _length(path)
            found["etag"] = _same(path, etag)
            found.update(row(path, found["etag"]))
        except (Error, OSError) as error:
            found["error"] = str(error)[:_TEXT]
            found["rule"] = getattr(error, "rule", "file/read")
        rows.append(found)
    return pa.Table.from_pylist(rows, schema=schema)


def _same(path: str, etag: str | None) -> str:
    """Returns the ETag of a file; an error where it has another content than is meant."""
    found = etag_of(path)
    if etag is not None and etag != found:
        raise BusyError(f"{path!r} has the ETag {found}, expected {etag}", rule="file/busy")
    return found


def _length(path: str) -> int | None:
    return None if os.path.isdir(path) else os.stat(path).st_size


def _inspected(path: str, _: str) -> dict[str, Any]:
    with _model.open(path) as model:
        summary = model.summary
        return {
            "format": summary["format"],
            "version": summary["version"],
            "tensors": len(summary["tensors"]),
            "tensor_bytes": sum(tensor["bytes"] for tensor in summary["tensors"]),
            "inputs": _text(summary.get("inputs", [])),
            "outputs": _text(summary.get("outputs", [])),
            "metadata": _text(summary["metadata"]),
        }


def _verified(path: str, _: str) -> dict[str, Any]:
    report = _verify(path)
    severities = [finding.severity for finding in report]
    return {
        "format": report.format,
        "verdict": report.verdict,
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "at": json.dumps(dict(finding.at))[:_TEXT],
                "message": finding.message[:_TEXT],
            }
            for finding in report.findings[:_FINDINGS]
        ],
    }


def _text(value: Any) -> str | None:
    text = json.dumps(value)
    return text if len(text) <= _TEXT else None


# What names of files end in, where that is not the name of the format.
_ENDS = {"torchscript": "pt", "ztensor": "zt", "rten1": "rten", "rten2": "rten"}

_FINDINGS = 100
_ROWS = 100
_TEXT = 64 << 10
