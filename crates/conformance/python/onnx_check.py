"""Checks ONNX models but for their shapes, which may be lies.

Takes a folder and prints, for each model in it that is refused, its name and why.
"""

import json
import pathlib
import sys

import onnx


def forget_shapes(graph):
    """Takes the shapes of all values away, so that inference looks at types alone."""
    for value in [*graph.input, *graph.output, *graph.value_info]:
        value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                forget_shapes(attribute.g)


def refusal(path):
    """Returns why a model is refused; None where it is not."""
    model = onnx.load(path)
    try:
        onnx.checker.check_model(model)
        forget_shapes(model.graph)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:
        return str(error)
    return None


def main():
    found = {path.name: refusal(path) for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))}
    json.dump({name: reason for name, reason in found.items() if reason}, sys.stdout)


main()
