"""Prints what the reference implementation of Carton reads of cartons: all that carton.toml says,
the tensors and files that it refers to, and the digest of each file below misc/.

    carton_read.py HOME FILE...
"""

import hashlib
import sys

from carton_client import cartonml, description, run


async def read(path):
    info = await cartonml.get_model_info(path)
    misc = {
        name: hashlib.sha256(await file.read()).hexdigest()
        for name, file in (info.misc_files or {}).items()
    }
    return {"description": await description(info), "misc": misc}


async def main():
    return [await read(path) for path in sys.argv[2:]]


run(main)
