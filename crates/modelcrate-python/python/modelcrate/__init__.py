"""Reads, verifies, compares and converts model files whose toolchains are gone.

    import modelcrate

    with modelcrate.open("model.ptl") as model:
        print(model.format, model.metadata)
        weight = model.tensors["fc.weight"].numpy()

    report = modelcrate.verify("model.carton")
    modelcrate.convert("old.rten", "model.onnx")

It opens Carton, Circle, TFLite, nnpackage, PyTorch Live, RTen and zTensor files, and safetensors, GGUF,
npy and npz. `modelcrate.numpy` and `modelcrate.torch` have the functions of `safetensors.numpy` and
`safetensors.torch` for all of these; `modelcrate.batch` has tables of many files, for Spark and Ray.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from . import _native
from ._model import File, Files, Model, Port, Readable, Tensor, Tensors, open
from ._report import Converted, Diff, Finding, Note, Report, Rule, findings, refused
from ._save import load_file, save_file
from .errors import (
    BusyError,
    Error,
    ExistsError,
    IoError,
    LimitError,
    MalformedError,
    NotFoundError,
    Refusal,
    UnsupportedError,
    UsageError,
)

__all__ = [
    "BusyError",
    "Converted",
    "Diff",
    "Error",
    "ExistsError",
    "File",
    "Files",
    "Finding",
    "IoError",
    "LimitError",
    "MalformedError",
    "Model",
    "NotFoundError",
    "Note",
    "Port",
    "Readable",
    "Refusal",
    "Report",
    "Rule",
    "Tensor",
    "Tensors",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "convert",
    "diff",
    "explain",
    "graph",
    "hash",
    "load_file",
    "open",
    "report",
    "save_file",
    "verify",
]

__version__: str = _native.__version__


def verify(source: Readable, *, lenient: bool = False) -> Report:
    """Checks a file whole: structure, digests, contents, and the list of hashes beside it.

    A file that does not open because it is at fault is one with a finding, not an exception; what is in
    the way of reading it raises `NotFoundError` or `IoError`. With `lenient` a file whose end is missing
    is checked as the last complete one inside it.
    """
    try:
        model = open(source, lenient=lenient)
    except (MalformedError, UnsupportedError, LimitError) as error:
        return refused(error)
    with model:
        return model.verify()


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    to: str | None = None,
    lossy: bool = False,
    densify: bool = False,
    dequantize: bool = False,
    overwrite: bool = False,
) -> Converted:
    """Writes the tensors of a file, or a model, in another format: what `modelcrate convert` does.

    The format is what the name of `dst` ends in, or `to`: tensors of any file become `safetensors`,
    `npz`, `npy`, `zt` or `gguf`; RTen models `onnx`, `rten1` or `rten2`; TFLite models `circle`, and
    those `tflite`; PyTorch Live models `torchscript`. `dst` is there whole or not at all, and only after
    it was opened and checked.

    `lossy` takes the nearest element type where the format does not have one, `densify` stores sparse
    tensors with their zeros, `dequantize` stores quantized ones as `f32`.

    Raises `UsageError`, which lists in `refused` all tensors that the format cannot hold, before anything
    is written; `ExistsError` where `dst` is there, unless `overwrite` is given; and what
    `modelcrate.open` raises.
    """
    done = json.loads(
        _native.convert(
            os.fsdecode(src),
            os.fsdecode(dst),
            to=to,
            lossy=lossy,
            densify=densify,
            dequantize=dequantize,
            overwrite=overwrite,
        )
    )
    return Converted(
        to=done["to"],
        nbytes=done["nbytes"],
        notes=[Note(note["tensor"], note["effect"]) for note in done["notes"]],
        left_out=done["left_out"],
        findings=findings(done["findings"]),
    )


def diff(
    old: Readable,
    new: Readable,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    tensors_only: bool = False,
) -> Diff:
    """Compares two files of any formats: tensors, metadata, inputs and outputs, graphs, files inside.

    Bits count, unless `rtol` or `atol` says how far values may be apart: by so much of the magnitude of
    the old one, and by so much whatever the magnitude. Where one is given, the other is 0.

    Raises `UsageError` where one is negative or NaN, and what `modelcrate.open` raises.
    """
    for name, tolerated in (("rtol", rtol), ("atol", atol)):
        if tolerated is not None and not tolerated >= 0:
            raise UsageError(f"{name} is {tolerated}, expected a number of at least 0")
    tolerance = None if rtol is None and atol is None else (rtol or 0.0, atol or 0.0)
    with open(old, lenient=True) as first, open(new, lenient=True) as second:
        found = _native.diff(
            first._reader, second._reader, tolerance=tolerance, tensors_only=tensors_only
        )
    return Diff(**json.loads(found))


def hash(source: Readable) -> str:
    """Computes the digest of the tensors of a file, `tensors-v1:` and 64 hex digits: the same for every
    file that has the same tensors under the same names, whatever its format. Checksums and digests in
    the file are compared."""
    with open(source, lenient=True, verify="once") as model:
        return model.hash()


def graph(source: Readable) -> Mapping[str, Any]:
    """Returns what `modelcrate graph --format json` prints of a file; see `Model.graph`."""
    with open(source) as model:
        return model.graph()


def report(
    source: Readable,
    *,
    stats: bool = False,
    digests: bool = False,
    format: Literal["html", "markdown"] = "html",
) -> str:
    """Returns a page about a file, as `modelcrate report` writes it; see `Model.report`."""
    with open(source, lenient=True) as model:
        return model.report(stats=stats, digests=digests, format=format)


def explain(rule: str) -> Rule:
    """Returns what a rule means that a finding or an error names.

    Raises `KeyError` where there is no such rule.
    """
    found = _native.explain(rule)
    if found is None:
        raise KeyError(rule)
    return Rule(**json.loads(found))
