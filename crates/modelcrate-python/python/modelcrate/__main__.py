"""The command `modelcrate`."""

from __future__ import annotations

import sys

from . import _native


def main() -> int:
    """Runs the command with the arguments of this process, and returns its exit status."""
    return _native.command(["modelcrate", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
