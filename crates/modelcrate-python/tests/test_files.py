"""Files that are written, and what the other libraries say of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import modelcrate
import modelcrate.numpy

ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "a.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "a.bias": np.array([-1, 2, 3], dtype=np.int64),
    "half": np.linspace(0, 1, 5, dtype=np.float16),
}


def same(found: dict[str, Any], expected: dict[str, Any] = ARRAYS) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert np.asarray(found[name]).tobytes() == array.tobytes(), name


@pytest.mark.parametrize("end", ["safetensors", "npz", "zt", "gguf"])
def test_files_of_every_format_read_back(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"a.{end}"
    done = modelcrate.save_file(ARRAYS, path)
    assert done.nbytes == path.stat().st_size and not done.notes
    same(modelcrate.load_file(path))
    same(modelcrate.load_file(path.read_bytes()))
    assert all(array.flags.writeable for array in modelcrate.load_file(path).values())
    assert modelcrate.verify(path).valid


def test_safetensors_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    modelcrate.save_file(ARRAYS, ours, {"k": "v"})
    same(safetensors.numpy.load_file(ours))
    with safetensors.safe_open(ours, "np") as file:
        assert file.metadata() == {"k": "v"}
    safetensors.numpy.save_file(ARRAYS, theirs, {"k": "v"})
    same(modelcrate.numpy.load_file(theirs))
    assert modelcrate.diff(ours, theirs).equal


def test_npz_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.npz", tmp_path / "theirs.npz"
    modelcrate.save_file(ARRAYS, ours)
    with np.load(ours) as file:
        same(dict(file))
    for save in (np.savez, np.savez_compressed):
        save(theirs, **ARRAYS)  # type: ignore[arg-type]
        same(modelcrate.load_file(theirs))


def test_ztensor_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    ztensor = pytest.importorskip("ztensor")
    ours, theirs = tmp_path / "ours.zt", tmp_path / "theirs.zt"
    modelcrate.save_file(ARRAYS, ours)
    with ztensor.Reader(str(ours)) as file:
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(file.read_tensor(name), array)
    with ztensor.Writer(str(theirs)) as file:
        for name, array in ARRAYS.items():
            file.add_tensor(name, array)
    same(modelcrate.load_file(theirs))


def test_files_of_ztensor_2_are_read_or_refused_by_name(tmp_path: Path) -> None:
    folder = os.environ.get("ZTENSOR_2")
    if not folder:
        pytest.skip("zTensor 2 is not installed")
    path = tmp_path / "a.zt"
    write = (
        "import sys, numpy, ztensor.numpy;"
        "ztensor.numpy.save_file({'w': numpy.arange(6, dtype='f4').reshape(2, 3)}, sys.argv[1])"
    )
    subprocess.run(
        [sys.executable, "-c", write, path], check=True, env={**os.environ, "PYTHONPATH": folder}
    )
    try:
        found = modelcrate.load_file(path)
    except modelcrate.UnsupportedError as error:
        assert "zTensor" in str(error)
    else:
        same(found, {"w": np.arange(6, dtype=np.float32).reshape(2, 3)})


def test_switching_from_safetensors_is_one_import(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file(ARRAYS, path, {"k": "v"})
    with safetensors.safe_open(path, "np") as theirs, modelcrate.numpy.safe_open(path, "np") as ours:
        assert ours.keys() == sorted(theirs.keys())
        assert ours.offset_keys() == list(theirs.offset_keys())
        assert ours.metadata() == theirs.metadata()
        for name in ours.keys():
            np.testing.assert_array_equal(ours.get_tensor(name), theirs.get_tensor(name))
            mine, other = ours.get_slice(name), theirs.get_slice(name)
            assert not np.shares_memory(mine[...], mine[...])
            assert mine.get_shape() == other.get_shape() and mine.get_dtype() == other.get_dtype()
            np.testing.assert_array_equal(mine[1:], other[1:])
        assert list(ours.get_tensors()) == list(theirs.get_tensors())
        same(ours.get_tensors())
        assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))
        with pytest.raises(modelcrate.UsageError, match="there is no tensor 'none'"):
            ours.get_tensor("none")
    same(modelcrate.numpy.load(path.read_bytes()))
    assert modelcrate.numpy.save(tensor_dict=ARRAYS, metadata={"k": "v"}) == path.read_bytes()
    modelcrate.numpy.save_file(tensor_dict=ARRAYS, filename=path, metadata={"k": "v"})
    assert safetensors.numpy.save(ARRAYS, {"k": "v"}) == path.read_bytes()
    for backend in ("mmap", "pread"):
        assert len(modelcrate.numpy.safe_open(path, "np", backend=backend).keys()) == len(ARRAYS)
    with pytest.raises(modelcrate.UsageError, match="backend is 'none'"):
        modelcrate.numpy.safe_open(path, "np", backend="none")
    with pytest.raises(modelcrate.UsageError, match="expected \"np\""):
        modelcrate.numpy.safe_open(path, "pt")


def test_models_are_read_like_safetensors(testdata: Path) -> None:
    found = modelcrate.numpy.load_file(testdata / "rten/valid/mlp.v1.rten")
    assert found and all(array.flags.writeable for array in found.values())


def test_arrays_of_any_order_are_saved_as_they_are_indexed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    array = np.arange(24, dtype=">i4").reshape(2, 3, 4)
    given: dict[str, Any] = {"turned": array.transpose(), "stepped": array[:, ::2], "scalar": np.int16(3)}
    modelcrate.save_file(given, path)
    for name, found in modelcrate.load_file(path).items():
        np.testing.assert_array_equal(found, given[name])


def test_complex_and_small_floats_are_saved_where_the_format_has_them(tmp_path: Path) -> None:
    wide = {"c": np.array([1 + 2j])}
    modelcrate.save_file(wide, tmp_path / "a.npz")
    same(modelcrate.load_file(tmp_path / "a.npz"), wide)
    with pytest.raises(modelcrate.UsageError) as refused:
        modelcrate.save_file(wide, tmp_path / "a.safetensors")
    (refusal,) = refused.value.refused
    assert refusal.tensor == "c" and "c128" in refusal.reason
    assert not (tmp_path / "a.safetensors").exists()
    small = {"b": np.arange(4).astype(ml_dtypes.bfloat16)}
    modelcrate.save_file(small, tmp_path / "a.zt")
    same(modelcrate.load_file(tmp_path / "a.zt"), small)


def test_names_without_an_end_are_of_safetensors(tmp_path: Path) -> None:
    done = modelcrate.save_file(ARRAYS, tmp_path / "model")
    assert done.to == "safetensors"
    same(safetensors.numpy.load_file(tmp_path / "model"))
    assert modelcrate.save_file(ARRAYS, tmp_path / "model", to="npz").to == "npz"
    with pytest.raises(modelcrate.UsageError, match="expected one of"):
        modelcrate.convert(tmp_path / "model", tmp_path / "other")
    with pytest.raises(modelcrate.UsageError, match="npz cannot hold it"):
        modelcrate.save_file({}, tmp_path / "none", to="npz")
    assert modelcrate.numpy.save({}) == safetensors.numpy.save({})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="calls are listed by strace")
def test_files_are_forced_to_the_disk_unless_that_is_left_out(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "true"], capture_output=True).returncode != 0:
        pytest.skip("there is no strace, or it may not look")
    for sync in (True, False):
        program = (
            "import modelcrate, numpy, sys;"
            f"modelcrate.save_file({{'w': numpy.ones(3)}}, sys.argv[1], sync={sync})"
        )
        path, log = tmp_path / f"{sync}.npz", tmp_path / "log"
        calls = [strace, "-f", "-e", "trace=fsync,fdatasync", "-o", str(log)]
        subprocess.run([*calls, sys.executable, "-c", program, path], check=True)
        assert ("sync(" in log.read_text()) == sync
        assert modelcrate.verify(path).valid


def test_paths_may_be_bytes_of_the_system(testdata: Path, tmp_path: Path) -> None:
    class Named:
        def __init__(self, path: Path) -> None:
            self.path = path

        def __fspath__(self) -> Any:
            return os.fsencode(self.path)

    path: Any = Named(tmp_path / "a.safetensors")
    modelcrate.save_file(ARRAYS, path)
    same(modelcrate.load_file(path))
    modelcrate.convert(path, Named(tmp_path / "a.npz"))
    assert modelcrate.diff(path, tmp_path / "a.npz").equal
    with modelcrate.numpy.safe_open(path) as file:
        same(file.get_tensors())


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    with pytest.raises(modelcrate.UnsupportedError, match="elements are <U1"):
        modelcrate.save_file({"w": np.array(["a"])}, tmp_path / "a.npz")
    with pytest.raises(modelcrate.UsageError, match="says no format by its end"):
        modelcrate.save_file(ARRAYS, tmp_path / "a.bin")
    with pytest.raises(modelcrate.UsageError, match="expected a format of tensors"):
        modelcrate.save_file(ARRAYS, tmp_path / "a.onnx")
    with pytest.raises(modelcrate.IoError):
        modelcrate.save_file(ARRAYS, tmp_path / "none" / "a.npz")
    assert not list(tmp_path.iterdir())


def test_conversions_are_those_of_the_command(testdata: Path, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    done = modelcrate.convert(testdata / "rten/valid/mlp.v1.rten", tmp_path / "a.onnx")
    assert done.to == "onnx" and done.nbytes == (tmp_path / "a.onnx").stat().st_size
    onnx.checker.check_model(onnx.load(tmp_path / "a.onnx"))
    for source, end in [
        ("rten/valid/mlp.v1.rten", "safetensors"),
        ("ptl/valid/torch251/zoo_fb.ptl", "npz"),
        ("ztensor/valid/v1.1-ref/scalars.zt", "zt"),
    ]:
        path = tmp_path / f"a.{end}"
        modelcrate.convert(testdata / source, path, lossy=True, dequantize=True, densify=True)
        assert modelcrate.verify(path).valid
    scalars = testdata / "ztensor/valid/v1.1-ref/scalars.zt"
    done = modelcrate.convert(scalars, tmp_path / "b.zt", to="zt2")
    assert done.to == "zt2" and modelcrate.open(tmp_path / "b.zt").version.startswith("2")
    modelcrate.convert(testdata / "rten/valid/mlp.v1.rten", tmp_path / "b.rten", to="rten2")
    assert modelcrate.open(tmp_path / "b.rten").version == "2"
    with modelcrate.open(testdata / "nnpackage/valid/01_minimal_circle_stored.zip") as package:
        (model,) = [file for path, file in package.files.items() if path.endswith(".circle")]
        (tmp_path / "b.circle").write_bytes(model.read())
    modelcrate.convert(tmp_path / "b.circle", tmp_path / "b.tflite")
    assert modelcrate.open(tmp_path / "b.tflite").format == "tflite"
    modelcrate.convert(tmp_path / "b.tflite", tmp_path / "c.circle")
    assert modelcrate.diff(tmp_path / "b.circle", tmp_path / "c.circle").equal
    modelcrate.convert(testdata / "ptl/valid/torch251/zoo_fb.ptl", tmp_path / "b.pt")
    assert (tmp_path / "b.pt").read_bytes().startswith(b"PK")


def test_conversions_that_cannot_be_leave_nothing(testdata: Path, tmp_path: Path) -> None:
    source = testdata / "rten/valid/mlp.v1.rten"
    path = tmp_path / "a.npz"
    modelcrate.convert(source, path)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        modelcrate.convert(source, path)
    modelcrate.convert(source, path, overwrite=True)
    with pytest.raises(modelcrate.UsageError, match="which cannot become circle: it can become onnx"):
        modelcrate.convert(source, tmp_path / "a.circle")
    with pytest.raises(modelcrate.UsageError, match="the output is the input"):
        modelcrate.convert(path, path, overwrite=True)
    with pytest.raises(modelcrate.UsageError, match="cannot become rten: it can become onnx, rten1"):
        modelcrate.convert(source, tmp_path / "a.rten")
    with pytest.raises(modelcrate.UsageError, match="says no format by its end, expected one of .circle"):
        modelcrate.convert(source, tmp_path / "a")
    with pytest.raises(modelcrate.UsageError, match="to: \"zip\" is none of circle"):
        modelcrate.convert(source, tmp_path / "a", to="zip")
    with pytest.raises(modelcrate.NotFoundError):
        modelcrate.convert(tmp_path / "none.zt", tmp_path / "b.npz")
    assert [one.name for one in tmp_path.iterdir()] == ["a.npz"]


def test_differences_are_listed(tmp_path: Path) -> None:
    old, new = tmp_path / "old.zt", tmp_path / "new.safetensors"
    modelcrate.save_file(ARRAYS, old)
    modelcrate.save_file({**ARRAYS, "half": ARRAYS["half"] + np.float16(0.25)}, new)
    diff = modelcrate.diff(old, new)
    assert not diff.equal and diff.same == 2
    (tensor,) = diff.tensors
    assert tensor["new"] == "half" and tensor["change"] == "values"
    assert modelcrate.diff(old, new, atol=0.5).equal
    assert modelcrate.diff(old, new, rtol=0.9, atol=0.25).equal
    assert not modelcrate.diff(old, new, rtol=0.5).equal
    for wrong in (-1.0, float("nan")):
        with pytest.raises(modelcrate.UsageError, match="rtol is .*, expected a number of at least 0"):
            modelcrate.diff(old, new, rtol=wrong)
        with pytest.raises(modelcrate.UsageError, match="atol is"):
            modelcrate.diff(old, new, atol=wrong)
    assert modelcrate.hash(old) != modelcrate.hash(new)
    assert modelcrate.hash(old) == modelcrate.hash(old.read_bytes())


def test_the_command_is_in_the_wheel(testdata: Path) -> None:
    program = Path(sys.executable).with_name("modelcrate")
    for command in ([program], [sys.executable, "-m", "modelcrate"]):
        invalid = testdata / "ztensor/invalid/digest_crc_wrong.zt"
        done = subprocess.run([*command, "verify", invalid], capture_output=True, text=True)
        assert done.returncode == 1 and "zt/digest-mismatch" in done.stdout
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert done.stdout == f"modelcrate {modelcrate.__version__}\n"
        done = subprocess.run([*command, "no-such-verb"], capture_output=True, text=True)
        assert done.returncode == 2 and "no-such-verb" in done.stderr


def test_the_front_page_does_what_it_says(
    testdata: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(__file__).parents[1] / "README.md"
    first, second = (block.split("```")[0] for block in page.read_text().split("```python\n")[1:])
    (tmp_path / "testdata").symlink_to(testdata)
    monkeypatch.chdir(tmp_path)
    exec(first, {})
    assert "dt_f32 f32 (2, 3)" in capsys.readouterr().out
    assert Path("model.onnx").exists()
    names: dict[str, Any] = {}
    exec(second, names)
    assert {"load_file", "safe_open", "save_file"} <= set(names)


def test_torch_shares_what_it_is_given(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
    import modelcrate.torch

    path = tmp_path / "a.safetensors"
    given = {name: torch.tensor(array) for name, array in ARRAYS.items()}
    given["brain"] = torch.linspace(-1, 1, 6).to(torch.bfloat16).reshape(2, 3)
    modelcrate.torch.save_file(given, path, {"k": "v"})
    found = modelcrate.torch.load_file(path)
    assert set(found) == set(given)
    for name, tensor in given.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor)
    with modelcrate.open(path) as model:
        brain: Any = model.tensors["brain"].torch()
        also = torch.utils.dlpack.from_dlpack(model.tensors["brain"].__dlpack__())
    assert torch.equal(brain, given["brain"]) and torch.equal(also, given["brain"])
    brain += 1
    with modelcrate.torch.safe_open(path, "pt") as file:
        assert torch.equal(file.get_tensor("half"), given["half"])
    # Memory of a file is copied: PyTorch does not know what is read-only.
    with modelcrate.open(path.read_bytes()) as model:
        half: Any = model.tensors["half"].torch()
        half += 1
        assert torch.equal(model.tensors["half"].torch(), given["half"])
