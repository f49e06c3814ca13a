"""Threads, memory, and files that mean harm."""

from __future__ import annotations

import gc
import io
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modelcrate
from modelcrate.numpy import safe_open, save

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


class Raising(io.BytesIO):
    """Raises once so many reads were made."""

    error: BaseException | None = None
    left = 0

    def read(self, size: int | None = -1, /) -> bytes:
        if self.error is not None:
            if self.left == 0:
                raise self.error
            self.left -= 1
        return super().read(size)


@pytest.mark.parametrize("end", ["zt", "npz", "safetensors"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("gone"), ValueError("odd")])
def test_what_reading_raises_comes_out_as_it_is(
    tmp_path: Path, end: str, error: BaseException
) -> None:
    path = tmp_path / f"a.{end}"
    arrays = {f"w{number}": np.full(1000, number, np.int32) for number in range(20)}
    modelcrate.save_file(arrays, path)
    file = Raising(path.read_bytes())
    calls: list[Callable[[modelcrate.Model], Any]] = [
        lambda model: model.verify(),
        lambda model: model.hash(),
        lambda model: [tensor.numpy() for tensor in model.tensors.values()],
        lambda model: model.summarize(stats=True),
        lambda model: model._reader.read_all(),
        lambda model: modelcrate.verify(file),
        lambda model: modelcrate.diff(file, path),
        lambda model: modelcrate.diff(path, file),
        lambda model: modelcrate.load_file(file),
    ]
    for call in calls:
        for left in (0, 1):
            file.error = None
            model = modelcrate.open(file)
            file.error, file.left = error, left
            with pytest.raises(type(error)) as raised:
                call(model)
            assert raised.value is error
            file.error = None
            assert model.verify().valid


def test_every_call_raises_what_its_own_reads_did(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    modelcrate.save_file({f"w{number}": np.ones(1000) for number in range(20)}, path)
    file = Raising(path.read_bytes())
    model = modelcrate.open(file)
    file.error = ZeroDivisionError("once")

    def verify(_: int) -> str:
        try:
            return model.verify().verdict
        except ZeroDivisionError:
            return "raised"

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(verify, range(40))) == {"raised"}
        file.error = None
        assert set(pool.map(verify, range(40))) == {"valid"}


@pytest.mark.skipif(os.name != "posix", reason="signals are sent")
def test_a_check_is_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    modelcrate.save_file({f"w{number}": np.ones(1000) for number in range(200)}, path)

    class Interrupting(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.reads += 1
            if self.reads == 20:
                signal.raise_signal(signal.SIGINT)
            return super().read(size)

    file = Interrupting(path.read_bytes())
    with pytest.raises(KeyboardInterrupt):
        modelcrate.verify(file)
    assert file.reads < 30


@pytest.mark.parametrize("use", ["verify", "hash", "read_all", "diff"])
def test_a_read_that_uses_its_model_is_refused(tmp_path: Path, use: str) -> None:
    path = tmp_path / "a.zt"
    modelcrate.save_file({f"w{number}": np.ones(1000) for number in range(20)}, path)

    class Inward(io.BytesIO):
        model: modelcrate.Model | None = None

        def read(self, size: int | None = -1, /) -> bytes:
            if self.model is not None:
                self.model.tensors["w1"].numpy()
            return super().read(size)

    file = Inward(path.read_bytes())
    model = modelcrate.open(file)
    assert len(model.tensors) == 20
    file.model = model
    calls: dict[str, Callable[[], Any]] = {
        "verify": model.verify,
        "hash": model.hash,
        "read_all": lambda: model._reader.read_all(),
        "diff": lambda: modelcrate._native.diff(
            model._reader, model._reader, tolerance=None, tensors_only=False
        ),
    }
    with pytest.raises(modelcrate.UsageError, match="a read of the model's own file"):
        calls[use]()


@pytest.mark.parametrize("call", ["hash", "verify", "numpy"])
def test_daemon_threads_that_read_do_not_break_the_end(tmp_path: Path, call: str) -> None:
    path = tmp_path / "a.zt"
    modelcrate.save_file({f"w{number}": np.zeros(1000) for number in range(50)}, path)
    program = f"""
import io, sys, threading, time
import modelcrate

class Slow(io.BytesIO):
    def read(self, size=-1, /):
        time.sleep(0.001)
        return super().read(size)

model = modelcrate.open(Slow(open({str(path)!r}, "rb").read()))
begun = threading.Barrier(4)

def run():
    begun.wait()
    while True:
        try:
            model.tensors["w7"].numpy() if {call!r} == "numpy" else model.{call}()
        except RuntimeError as error:
            if str(error) == "the interpreter is shutting down":
                return
            raise

for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
begun.wait()
time.sleep(0.02)
""".replace("model.numpy()", "None")
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descriptors are in /proc")
def test_a_model_that_is_let_go_is_closed_without_a_collection(testdata: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        before = descriptors()
        for _ in range(20):
            for path in ("carton/valid/ref_minimal.carton", "rten/valid/mlp.v1.rten"):
                model = modelcrate.open(testdata / path)
                assert model.tensors is model.tensors and model.files is model.files
                infos = [tensor.info for tensor in model.tensors.values()]
                assert model.summary and len(infos) == len(model.tensors)
                del model, infos
        assert descriptors() == before
    finally:
        gc.enable()
    # What is left of a model keeps its file.
    tensors = modelcrate.open(testdata / "rten/valid/mlp.v1.rten").tensors
    tensor = next(iter(tensors.values()))
    del tensors
    assert tensor.numpy().size and tensor.info["name"] == tensor.name
    assert descriptors() == before + 1
    del tensor
    assert descriptors() == before


def test_a_file_that_leads_to_its_model_is_collected(testdata: Path) -> None:
    class Leading(io.BytesIO):
        model: modelcrate.Model | None = None
        tensor: modelcrate.Tensor | None = None

    gone: list[int] = []
    for number in range(2):
        file = Leading((testdata / "rten/valid/mlp.v1.rten").read_bytes())
        file.model = modelcrate.open(file)
        if number:
            file.tensor = next(iter(file.model.tensors.values()))
            file.model = None
        weakref.finalize(file, gone.append, number)
        del file
    gc.collect()
    assert sorted(gone) == [0, 1]


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


LONG_CALLS: dict[str, Callable[[Path, Path, modelcrate.Model], Any]] = {
    "convert": lambda path, folder, model: modelcrate.convert(path, folder / "a.npz", overwrite=True),
    "diff": lambda path, folder, model: modelcrate.diff(path, path),
    "dlpack": lambda path, folder, model: model.tensors["w"].__dlpack__(copy=True),
    "hash": lambda path, folder, model: modelcrate.hash(path),
    "load_file": lambda path, folder, model: modelcrate.load_file(path),
    "read": lambda path, folder, model: model.tensors["w"].read(True, False, False),
    "safe_open": lambda path, folder, model: safe_open(path).get_tensors(),
    "save": lambda path, folder, model: modelcrate.save_file(
        {"w": model.tensors["w"].numpy()}, folder / "b.npz"
    ),
    "save_bytes": lambda path, folder, model: save({"w": model.tensors["w"].numpy()}),
    "summarize": lambda path, folder, model: model.summarize(digests=True),
    "verify": lambda path, folder, model: modelcrate.verify(path),
}


@pytest.mark.parametrize("call", LONG_CALLS)
def test_other_threads_run_meanwhile(tmp_path: Path, call: str) -> None:
    path = large(tmp_path)
    model = modelcrate.open(path)
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
            LONG_CALLS[call](path, tmp_path, model)
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
        for source in (path, data, io.BytesIO(data)):
            with modelcrate.open(source) as model:
                for tensor in model.tensors.values():
                    tensor.numpy()
                    tensor.__dlpack__()
                assert model.summary and model.verify(data=False)
        # Neither closed nor read.
        assert modelcrate.open(path).tensors
        for source in (broken, io.BytesIO(broken)):
            with pytest.raises(modelcrate.Error):
                modelcrate.open(source)
        failing = Raising(data)
        failing.error = ValueError("gone")
        with pytest.raises(ValueError, match="gone"):
            modelcrate.open(failing)

    for _ in range(500):
        once()
    gc.collect()
    before = resident()
    files = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(10_000 // 4):
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
