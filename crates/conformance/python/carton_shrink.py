"""Lets the reference implementation of Carton write a carton again, with links instead of files.

    carton_shrink.py HOME FILE OUT [DIGEST=URL]...
"""

import os
import sys

from carton_client import cartonml, run


async def main():
    path, out, *links = sys.argv[2:]
    urls = {digest: [url] for digest, url in (link.split("=", 1) for link in links)}
    os.replace(await cartonml.shrink(path, urls), out)


run(main)
