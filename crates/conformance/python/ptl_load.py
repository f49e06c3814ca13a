"""Loads models with PyTorch, calls each, and prints what came of it.

Arguments: a JSON file that lists them, each with `path`, `model`, the name of what it is called with,
and `full`, whether the full runtime loads it, too.
"""

import hashlib
import json
import sys

import torch
from torch.jit.mobile import _load_for_lite_interpreter

from ptl_models import digest, inputs


def called(module, model):
    """Calls a model that could be loaded; that it does not take its input is an output as well."""
    try:
        return digest(module(inputs(model)))
    except Exception as error:
        return {"error": str(error).splitlines()[0]}


def loaded(job):
    path, model = job["path"], job["model"]
    with open(path, "rb") as file:
        is_flat = file.read(8)[4:] == b"PTMF"
    found = {"output": called(_load_for_lite_interpreter(path), model)}
    if not is_flat:
        reader = torch._C.PyTorchFileReader(path)
        contents = {name: reader.get_record(name) for name in reader.get_all_records()}
        found["records"] = {
            name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
        }
    if job["full"]:
        # What is asked for and absent stays empty.
        extra = {name: "" for name in job["extra"]}
        module = torch.jit.load(path, _extra_files=extra)
        found["full"] = called(module, model)
        found["extra"] = {
            name: content.decode() if isinstance(content, bytes) else content
            for name, content in extra.items()
        }
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        jobs = json.load(file)
    results = []
    for job in jobs:
        try:
            results.append(loaded(job))
        except Exception as error:
            results.append({"error": f"{type(error).__name__}: {error}"})
    print(json.dumps(results))


main()
