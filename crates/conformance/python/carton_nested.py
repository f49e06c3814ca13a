"""Prints what the reference implementation of Carton complains about when it hands out the first
input of the first example, which is nested.

    carton_nested.py HOME FILE

It loads such a tensor, but has no form for it in Python.
"""

import os
import sys

from carton_client import HOME, cartonml, run


async def main():
    info = await cartonml.get_model_info(sys.argv[2])
    (nested,) = info.examples[0].inputs.values()
    with open(HOME / "complaints.txt", "w+b") as complaints:
        os.dup2(complaints.fileno(), 2)
        try:
            return repr(await nested.get())
        except BaseException:
            complaints.seek(0)
            return complaints.read().decode()


run(main)
