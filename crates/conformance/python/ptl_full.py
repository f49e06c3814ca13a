"""Saves models with PyTorch, or loads some with its full runtime and calls each.

Arguments: `make` and the folder to save them in; or `load` and a JSON file that lists them, each with
`path` and `model`, the name of what it is called with.
"""

import json
import sys
from pathlib import Path

import torch

from ptl_models import digest, full_models, inputs, state


def make(folder):
    made = []
    for model, module in full_models().items():
        for end in ("", "_flat", "_full"):
            # A FlatBuffer has no place for sparse tensors.
            if end and model == "sparse":
                continue
            file = model + end + ".ptl"
            path = str(folder / file)
            if end == "_full":
                torch.jit.save_jit_module_to_flatbuffer(module, path)
            else:
                module._save_for_lite_interpreter(path, _use_flatbuffer=end == "_flat")
            made.append({"file": file, "model": model, "state": state(module)})
    # A call may change a model. The runtime crashes on some FlatBuffers of its own.
    for one in made:
        path = folder / one["file"].replace("_flat.", ".").replace("_full.", ".")
        one["output"] = digest(torch.jit.load(str(path))(inputs(one["model"])))
    return made


def load(job):
    try:
        module = torch.jit.load(job["path"])
        found = {"state": state(module), "code": module.code}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    try:
        output = digest(module(inputs(job["model"])))
    except Exception as error:
        output = {"error": str(error).splitlines()[0]}
    return {**found, "output": output}


def main():
    if sys.argv[1] == "make":
        print(json.dumps(make(Path(sys.argv[2]))))
        return
    with open(sys.argv[2], encoding="utf-8") as file:
        print(json.dumps([load(job) for job in json.load(file)]))


main()
