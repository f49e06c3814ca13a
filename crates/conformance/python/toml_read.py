"""Prints what Python's tomllib reads of all documents in a carton, by their paths; null where this
Python is older than tomllib. Nothing in the carton may be compressed by zstd.

    toml_read.py FILE
"""

import json
import sys
import zipfile

from common import plain

try:
    import tomllib
except ImportError:
    tomllib = None


def main():
    with zipfile.ZipFile(sys.argv[1]) as archive:
        names = [name for name in archive.namelist() if name.endswith(".toml") or name == "LINKS"]
        documents = {name: tomllib.loads(archive.read(name).decode()) for name in names}
    json.dump(plain(documents), sys.stdout)


if tomllib:
    main()
else:
    json.dump(None, sys.stdout)
