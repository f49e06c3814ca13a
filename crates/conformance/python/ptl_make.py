"""Saves models with PyTorch in every way that it has, and prints what is in each file.

Arguments: the folder to save them in.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch
from torch.jit.mobile import _backport_for_mobile

from ptl_models import digest, inputs, models, state

SPEC = "model/live.spec.json"
EXTRA = {SPEC: "{}", "labels.txt": "a\nb\n", "unicode/ü.txt": "ü"}


def records(path):
    """Returns digests of the records of a ZIP file, as PyTorch's own reader finds them."""
    reader = torch._C.PyTorchFileReader(str(path))
    contents = ((name, reader.get_record(name)) for name in reader.get_all_records())
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents}


def main():
    folder = Path(sys.argv[1])
    made = []

    def add(file, model, module, container, **more):
        path = folder / file
        made.append({
            "file": file,
            "model": model,
            "container": container,
            "records": records(path) if container == "zip" else None,
            "state": state(module),
            "output": digest(module(inputs(model))),
            **more,
        })

    for model, module in models().items():
        file = model + ".ptl"
        module._save_for_lite_interpreter(str(folder / file), _extra_files=EXTRA)
        add(file, model, module, "zip", version=8)
        file = model + "_bare.ptl"
        module._save_for_lite_interpreter(str(folder / file))
        add(file, model, module, "zip", version=8)
        if model in ("net", "frozen", "optimized"):
            for version in (7, 6, 5, 4):
                file = f"{model}_{version}.ptl"
                if not _backport_for_mobile(str(folder / (model + ".ptl")), str(folder / file), version):
                    sys.exit(f"no version {version} of {model}")
                add(file, model, module, "zip", version=version)
        # It has no place for sparse tensors.
        if model != "sparse":
            file = model + "_flat.ptl"
            path = str(folder / file)
            module._save_for_lite_interpreter(path, _extra_files=EXTRA, _use_flatbuffer=True)
            add(file, model, module, "flatbuffer", version=9)
            file = model + "_flat_bare.ptl"
            module._save_for_lite_interpreter(str(folder / file), _use_flatbuffer=True)
            add(file, model, module, "flatbuffer", version=9)
    print(json.dumps({"torch": torch.__version__, "made": made}))


main()
