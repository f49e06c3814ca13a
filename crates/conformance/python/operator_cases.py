"""Makes RTen models of the cases that ONNX tests its backends with.

Takes a folder, and writes into it, for each case that RTen's converter takes, the model and what goes
in. Prints how many cases there are, and the names of those.
"""

import contextlib
import io
import json
import math
import pathlib
import sys
import warnings

import numpy
import onnx
import rten_convert.converter

warnings.simplefilter("ignore")

DTYPES = {"f": "f32", "b": "i32", "i": "i32", "u": "i32"}
LARGEST = 100_000


def number(value):
    """Returns a number as JSON can say it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    return value


def tensor(value):
    """Returns a tensor as RTen takes it; an error for what it has no elements for."""
    value = numpy.asarray(value)
    if value.size > LARGEST:
        raise ValueError("large")
    bytes_ = {"int8": "i8", "uint8": "u8"}
    dtype = bytes_.get(str(value.dtype)) or DTYPES[value.dtype.kind]
    data = [number(one) for one in value.flatten().tolist()]
    return {"dtype": dtype, "shape": list(value.shape), "data": data}


def convert(path, target):
    """Converts a model; False where the converter does not."""
    sys.argv = ["rten-convert", str(path), str(target)]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            rten_convert.converter.main()
    except (Exception, SystemExit):
        return False
    return target.exists()


def make(case, folder):
    """Makes the files of a case; False where RTen does not have what it needs."""
    try:
        names = [one.name for one in case.model.graph.input]
        runs = [
            {"inputs": {name: tensor(value) for name, value in zip(names, inputs)}}
            for inputs, _ in case.data_sets
        ]
    except (KeyError, ValueError, TypeError):
        return False
    original = folder / "original.onnx"
    onnx.save(case.model, original)
    if not convert(original, folder / f"{case.name}.rten"):
        return False
    (folder / f"{case.name}.run.json").write_text(json.dumps({"runs": runs}))
    return True


def main():
    folder = pathlib.Path(sys.argv[1])
    with contextlib.redirect_stdout(io.StringIO()):
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    made = [case.name for case in cases if make(case, folder)]
    json.dump({"cases": len(cases), "made": made}, sys.stdout)


main()
