"""Threads, memory, and files that mean harm."""

from __future__ import annotations

import gc
import resource
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modelcrate

from .conftest import ROOT


def test_many_threads_read_one_model(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    arrays = {f"w{number}": np.full(10_000, number, np.int32) for number in range(50)}
    modelcrate.save_file(arrays, path)
    for source in (path, path.read_bytes()):
        with modelcrate.open(source) as model, ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda name: model.tensors[name].numpy(), list(arrays) * 4))
        for name, array in zip(list(arrays) * 4, found):
            np.testing.assert_array_equal(array, arrays[name])


def test_many_threads_read_one_python_file(tmp_path: Path) -> None:
    path = tmp_path / "a.zt"
    arrays = {f"w{number}": np.full(10_000, number, np.int32) for number in range(20)}
    modelcrate.save_file(arrays, path)
    with open(path, "rb") as file, modelcrate.open(file) as model, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: model.tensors[name].numpy(), list(arrays) * 4))
        for name, array in zip(list(arrays) * 4, found):
            np.testing.assert_array_equal(array, arrays[name])
        # On several threads of ours, too, each of which needs the interpreter.
        assert model.verify().valid and model.hash()


def test_a_model_is_closed_while_others_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    modelcrate.save_file({"w": np.ones(1 << 20, np.float32)}, path)
    for _ in range(20):
        model = modelcrate.open(path)
        tensor = model.tensors["w"]

        def read(tensor: modelcrate.Tensor = tensor) -> float:
            try:
                return float(tensor.numpy().sum())
            except modelcrate.UsageError:
                return float(1 << 20)

        with ThreadPoolExecutor(4) as pool:
            sums = [pool.submit(read) for _ in range(8)]
            model.close()
            assert {done.result() for done in sums} == {float(1 << 20)}


def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.zt"
    rng = np.random.default_rng(1)
    modelcrate.save_file({"w": rng.random(16 << 20)}, path)
    return path


@pytest.mark.parametrize("call", ["hash", "verify", "diff", "convert", "save", "read"])
def test_other_threads_run_meanwhile(tmp_path: Path, call: str) -> None:
    path = large(tmp_path)
    model = modelcrate.open(path)
    array = model.tensors["w"].numpy()
    calls: dict[str, Callable[[], Any]] = {
        "hash": lambda: modelcrate.hash(path),
        "verify": lambda: modelcrate.verify(path),
        "diff": lambda: modelcrate.diff(path, path),
        "convert": lambda: modelcrate.convert(path, tmp_path / "a.npz", overwrite=True),
        "save": lambda: modelcrate.save_file({"w": array}, tmp_path / "b.npz"),
        "read": lambda: model.tensors["w"].read(True, False, False),
    }
    # A thread that asks for the interpreter every millisecond gets it while calls last. Where they
    # held it, that would be once between two of them.
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    ticking = threading.Thread(target=tick)
    end, made = time.perf_counter() + 1, 0
    ticking.start()
    try:
        while time.perf_counter() < end:
            calls[call]()
            made += 1
    finally:
        done.set()
        ticking.join()
    assert ticks > 2 * (made + 1), (ticks, made)


def resident() -> int:
    """Returns the bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_nothing_is_left_of_ten_thousand_opens(testdata: Path) -> None:
    path = testdata / "rten/valid/mlp.v1.rten"
    data = path.read_bytes()
    broken = data[: len(data) // 2]

    def once() -> None:
        for source in (path, data):
            with modelcrate.open(source) as model:
                for tensor in model.tensors.values():
                    tensor.numpy()
                    tensor.__dlpack__()
                assert model.summary and model.verify(data=False)
        try:
            modelcrate.open(broken)
        except modelcrate.Error:
            pass

    for _ in range(500):
        once()
    gc.collect()
    before = resident()
    files = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5_000):
        once()
    gc.collect()
    grown = resident() - before
    assert grown < 8 << 20, grown
    assert len(list(Path("/proc/self/fd").iterdir())) <= files


def hostile_files() -> list[Path]:
    testdata = [path for path in ROOT.glob("testdata/*/invalid/**/*") if path.is_file()]
    corpus = [path for path in ROOT.glob("fuzz/corpus/*/*") if path.is_file()]
    assert len(testdata) > 300 and len(corpus) > 50, (len(testdata), len(corpus))
    return testdata + corpus


def described(tensor: modelcrate.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.nbytes, tensor.info


def everything(source: Path | bytes) -> None:
    """Does all that can be done with a file; errors must be ours."""
    with modelcrate.open(source, lenient=True) as model:
        steps: list[Callable[[], Any]] = [model.verify, model.hash, model.graph, model._repr_html_]
        steps += [lambda: (repr(model), model.metadata, model.inputs, model.outputs)]
        steps += [file.read for file in model.files.values()]
        for tensor in model.tensors.values():
            steps += [tensor.numpy, partial(tensor.numpy, dequantize=True), tensor.tobytes]
            steps += [partial(described, tensor), tensor.verify]
        for step in steps:
            try:
                step()
            except modelcrate.Error:
                pass


def test_hostile_files_raise_or_are_read() -> None:
    opened = refused = 0
    for path in hostile_files():
        assert modelcrate.verify(path).verdict in ("valid", "warnings", "invalid")
        for source in (path, path.read_bytes()):
            try:
                everything(source)
                opened += 1
            except modelcrate.Error as error:
                assert error.rule and error.kind and str(error)
                refused += 1
    assert opened > 100 and refused > 100, (opened, refused)


def test_hostile_folders_raise_or_are_read() -> None:
    folders = [path for path in ROOT.glob("testdata/*/invalid/*") if path.is_dir()]
    assert folders
    for path in folders:
        try:
            modelcrate.verify(path)
            everything(path)
        except modelcrate.Error:
            pass


def test_truncated_files_raise_or_are_read(testdata: Path) -> None:
    for path in ("rten/valid/mlp.v1.rten", "ztensor/valid/v1.1-ref/digests.zt"):
        data = (testdata / path).read_bytes()
        for end in range(0, len(data), 97):
            try:
                everything(data[:end])
            except modelcrate.Error:
                pass
