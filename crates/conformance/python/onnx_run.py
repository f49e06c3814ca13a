"""Checks ONNX models and runs them.

Takes triples: a model, a file of runs with their inputs, or "-" to only load the model, and names
of outputs that are left away before it is loaded, or "-". Prints what the checker says of each,
its inputs and outputs, and the outputs of each run in the order of the model.
"""

import json
import math
import sys

import numpy
import onnx
import onnxruntime

DTYPES = {
    "tensor(float)": numpy.float32,
    "tensor(int64)": numpy.int64,
    "tensor(int32)": numpy.int32,
    "tensor(bool)": numpy.bool_,
    "tensor(uint8)": numpy.uint8,
    "tensor(int8)": numpy.int8,
}
NOT_FINITE = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}


def check(path):
    """Returns why the checker refuses a model; None where it does not."""
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as error:
        return str(error)
    return None


def session(path, without):
    """Loads a model but for some of its outputs, and what only they need."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not without:
        return onnxruntime.InferenceSession(path, options)
    model = onnx.load(path)
    outputs = [output for output in model.graph.output if output.name not in without]
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    nodes = [node for node in model.graph.node if not without.intersection(node.output)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def array(value, dtype):
    data = [NOT_FINITE.get(one, one) if isinstance(one, str) else one for one in value["data"]]
    return numpy.array(data, dtype=dtype).reshape(value["shape"])


def number(value):
    """Returns a number as JSON can say it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    return value


def printed(value):
    if isinstance(value, list):
        return [printed(one) for one in value]
    value = numpy.asarray(value)
    data = [number(one) for one in value.flatten().tolist()]
    return {"dtype": str(value.dtype), "shape": list(value.shape), "data": data}


def run(path, runs, without):
    found = {"check": check(path)}
    model = session(path, without)
    found["inputs"] = [[one.name, one.type, one.shape] for one in model.get_inputs()]
    found["outputs"] = [[one.name, one.type, one.shape] for one in model.get_outputs()]
    found["runs"] = []
    for one in runs:
        values = model.get_inputs() + model.get_overridable_initializers()
        dtypes = {value.name: DTYPES[value.type] for value in values}
        given = one["inputs"].items()
        inputs = {name: array(value, dtypes[name]) for name, value in given if name in dtypes}
        found["runs"].append([printed(output) for output in model.run(None, inputs)])
    return found


def main():
    arguments = sys.argv[1:]
    results = []
    for path, runs, without in zip(arguments[::3], arguments[1::3], arguments[2::3]):
        loaded = json.load(open(runs))["runs"] if runs != "-" else []
        without = set(without.split(",")) if without != "-" else set()
        try:
            results.append(run(path, loaded, without))
        except Exception as error:
            results.append({"error": str(error)})
    json.dump(results, sys.stdout)


main()
