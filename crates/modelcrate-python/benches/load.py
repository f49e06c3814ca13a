"""Measures reading and writing beside safetensors, on the same data, in turns.

Prints how many times as fast as safetensors the package is, of the best of several turns of each; ends
with status 1 where that is below 1.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

import modelcrate
import modelcrate.numpy

TURNS = 15


def few_large() -> dict[str, np.ndarray[Any, Any]]:
    """Eight tensors of 32 MiB."""
    rng = np.random.default_rng(1)
    return {f"layer.{number}": rng.random((2048, 4096), np.float32) for number in range(8)}


def many_small() -> dict[str, np.ndarray[Any, Any]]:
    """Two thousand tensors of 4 KiB."""
    rng = np.random.default_rng(1)
    return {f"layer.{number}.weight": rng.random((16, 64), np.float32) for number in range(2000)}


def mixed() -> dict[str, np.ndarray[Any, Any]]:
    """A hundred layers of a transformer: matrices of 1 MiB, vectors of 2 KiB."""
    rng = np.random.default_rng(1)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for number in range(100):
        found[f"layers.{number}.weight"] = rng.random((512, 512), np.float32)
        found[f"layers.{number}.bias"] = rng.random(512, np.float32)
    return found


def all_of(opened: Any) -> int:
    """Reads all tensors of an open file, and looks at an element of each."""
    with opened as file:
        return sum(int(file.get_tensor(name).shape[0]) for name in file.keys())


def one_of(opened: Any) -> int:
    """Reads one tensor of an open file."""
    with opened as file:
        return int(file.get_tensor(sorted(file.keys())[0]).shape[0])


def best(calls: list[Callable[[], Any]]) -> list[float]:
    """Returns the best time of each, in seconds; they take turns, so that neither has the machine for
    itself."""
    times = [float("inf")] * len(calls)
    for _ in range(TURNS):
        for index, call in enumerate(calls):
            start = time.perf_counter()
            found = call()
            times[index] = min(times[index], time.perf_counter() - start)
            del found
    return times


def main() -> int:
    slower = 0
    print(f"{'data':12} {'call':24} {'modelcrate':>12} {'safetensors':>12} {'times as fast':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for data in (few_large, many_small, mixed):
            arrays = data()
            path = Path(folder) / f"{data.__name__}.safetensors"
            other = Path(folder) / f"{data.__name__}.other.safetensors"
            safetensors.numpy.save_file(arrays, path)
            for name, ours, theirs in [
                (
                    "load_file",
                    lambda: modelcrate.numpy.load_file(path),
                    lambda: safetensors.numpy.load_file(path),
                ),
                (
                    "safe_open, all tensors",
                    lambda: all_of(modelcrate.numpy.safe_open(path, "np")),
                    lambda: all_of(safetensors.safe_open(path, "np")),
                ),
                (
                    "safe_open, one tensor",
                    lambda: one_of(modelcrate.numpy.safe_open(path, "np")),
                    lambda: one_of(safetensors.safe_open(path, "np")),
                ),
            ]:
                mine, peer = best([ours, theirs])
                slower += mine > peer
                print(
                    f"{data.__name__:12} {name:24} {mine * 1e3:9.2f} ms {peer * 1e3:9.2f} ms"
                    f" {peer / mine:14.2f}"
                )
            # Ours is a new file that takes the place of the old one, whole or not at all.
            for name, ours, theirs in [
                (
                    "save_file",
                    lambda: modelcrate.save_file(arrays, other, sync=False),
                    lambda: safetensors.numpy.save_file(arrays, other),
                ),
                (
                    "save_file, synced",
                    lambda: modelcrate.save_file(arrays, other),
                    lambda: save_synced(arrays, other),
                ),
            ]:
                mine, peer = best([ours, theirs])
                print(
                    f"{data.__name__:12} {name:24} {mine * 1e3:9.2f} ms {peer * 1e3:9.2f} ms"
                    f" {peer / mine:14.2f}"
                )
    print(f"slower than safetensors: {slower} of 9 ways to read")
    return int(slower > 0)


def save_synced(arrays: dict[str, np.ndarray[Any, Any]], path: Path) -> None:
    """Writes a file with safetensors and forces it to the disk."""
    safetensors.numpy.save_file(arrays, path)
    with open(path, "rb") as file:
        os.fsync(file.fileno())


if __name__ == "__main__":
    sys.exit(main())
