"""Prints what the reference implementation of Carton tells a runner when it loads cartons.

    carton_load.py HOME FILE...
"""

import json
import sys

from carton_client import cartonml, install_runner, run


async def load(path, log):
    await cartonml.load(path)
    return json.loads(log.read_text())


async def main():
    log = install_runner()
    return [await load(path, log) for path in sys.argv[2:]]


run(main)
