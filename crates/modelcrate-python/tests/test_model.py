"""What is in files, and what becomes of models."""

from __future__ import annotations

import copy
import io
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modelcrate
from modelcrate import Model

VALID = {
    "carton": "carton/valid/ref_minimal.carton",
    "circle": "nnpackage/valid/everything.circle",
    "ptl": "ptl/valid/torch251/zoo_fb.ptl",
    "rten": "rten/valid/mlp.v1.rten",
    "ztensor": "ztensor/valid/v1.1-ref/scalars.zt",
}


def test_formats_are_told_by_content(testdata: Path) -> None:
    for format, path in VALID.items():
        with modelcrate.open(testdata / path) as model:
            assert model.format == format
            assert isinstance(model.metadata, Mapping)


def test_a_model_says_what_it_takes_and_returns(testdata: Path) -> None:
    with modelcrate.open(testdata / "rten/valid/mlp.v1.rten") as model:
        assert [port.name for port in model.inputs] == ["x"]
        assert model.version == "1"
        assert all(port.shape for port in model.outputs)


def test_paths_bytes_and_files_give_the_same(testdata: Path) -> None:
    path = testdata / VALID["ptl"]
    data = path.read_bytes()
    sources: list[Any] = [str(path), path, data, bytearray(data), memoryview(data), io.BytesIO(data)]
    with open(path, "rb") as file:
        sources.append(file)
        found = [modelcrate.open(source) for source in sources]
        found.append(modelcrate.open(path, mmap=True))
        hashes = {model.hash() for model in found}
    assert len(hashes) == 1
    assert {model.format for model in found} == {"ptl"}


def test_tensors_are_a_mapping_in_the_order_of_the_file(testdata: Path) -> None:
    with modelcrate.open(testdata / "rten/valid/mlp.v1.rten") as model:
        tensors = model.tensors
        assert isinstance(tensors, Mapping)
        assert len(tensors) == len(list(tensors)) > 0
        name = next(iter(tensors))
        assert name in tensors and tensors[name].name == name
        assert "no such tensor" not in tensors and tensors.get("no such tensor") is None
        with pytest.raises(KeyError):
            tensors["no such tensor"]


def test_tensors_and_their_summaries_are_the_same(valid_models: Iterator[Model]) -> None:
    for model in valid_models:
        summaries = model.summary["tensors"]
        assert len(summaries) == len(model.tensors), model
        for tensor, summary in zip(model.tensors.values(), summaries):
            assert tensor.info == summary
            assert tensor.name == summary["name"] or "#" in tensor.name, model
            if tensor.nbytes is not None and summary["dtype"] == tensor.dtype:
                assert list(tensor.shape) == summary["shape"], model


def test_files_inside_are_a_mapping(testdata: Path) -> None:
    path = testdata / VALID["carton"]
    with modelcrate.open(path) as model, zipfile.ZipFile(path) as archive:
        assert "carton.toml" in model.files
        for name, file in model.files.items():
            assert file.path == name and len(file.read()) == archive.getinfo(name).file_size
    path = testdata / "ptl/valid/torch251/img_extras.ptl"
    with modelcrate.open(path) as model, zipfile.ZipFile(path) as archive:
        assert model.files
        for name, file in model.files.items():
            (entry,) = [entry for entry in archive.namelist() if entry.endswith("/" + name)]
            assert file.read() == archive.read(entry)
    with modelcrate.open(testdata / VALID["rten"]) as model:
        assert len(model.files) == 0


def test_a_closed_model_reads_nothing_but_arrays_stay(testdata: Path) -> None:
    data = (testdata / VALID["ztensor"]).read_bytes()
    with modelcrate.open(data) as model:
        tensor = next(iter(model.tensors.values()))
        array = tensor.numpy()
        expected = array.tobytes()
    assert model.closed and repr(model) == "<Model, closed>"
    del model
    assert array.tobytes() == expected
    with pytest.raises(modelcrate.UsageError, match="the model is closed"):
        tensor.numpy()
    with pytest.raises(modelcrate.UsageError, match="the model is closed"):
        tensor.dtype


def test_models_and_tensors_are_not_pickled_or_copied(testdata: Path) -> None:
    model = modelcrate.open(testdata / VALID["rten"])
    for of in (model, next(iter(model.tensors.values()))):
        for carry in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="stands on an open file and is not copied or pickled"):
                carry(of)


def test_reports_are_pages(testdata: Path) -> None:
    for path in (testdata / name for name in VALID.values()):
        page = modelcrate.report(path, stats=True)
        assert page.startswith("<!DOCTYPE html>") and "Content-Security-Policy" in page
        with modelcrate.open(path) as model:
            text = model.report(format="markdown")
        assert text.startswith("# ") and "<script" not in text
        with modelcrate.open(path) as model, pytest.raises(modelcrate.UsageError, match="expected 'html'"):
            model.report(format="pdf")  # type: ignore[arg-type]


def test_graphs_are_those_of_the_command(testdata: Path) -> None:
    with modelcrate.open(testdata / VALID["rten"]) as model:
        graph = model.graph()
    assert graph["schema"] == 1 and graph["subgraphs"][0]["nodes"]
    assert modelcrate.graph(testdata / VALID["rten"]) == graph
    with pytest.raises(modelcrate.UnsupportedError, match="has no graph to be drawn"):
        modelcrate.graph(testdata / VALID["ztensor"])


def test_summaries_read_tensors_where_they_are_asked_to(testdata: Path) -> None:
    with modelcrate.open(testdata / VALID["rten"]) as model:
        plain = model.summary["tensors"][0]
        full = model.summarize(digests=True, stats=True, values=3)["tensors"][0]
    assert "sha256" not in plain and "stats" not in plain
    assert len(full["sha256"]) == 64 and full["stats"] and len(full["values"]) <= 3


def test_notebooks_show_names_escaped(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    modelcrate.save_file(
        {"<script>alert(1)</script>": np.zeros((2, 3), np.float32)}, path, {"<b>": "<i>"}
    )
    with modelcrate.open(path) as model:
        shown = model._repr_html_()
        assert "&lt;script&gt;" in shown and "&lt;i&gt;" in shown and "2 × 3" in shown
        assert "<script>" not in shown and "<i>" not in shown
        assert "<script>" not in model.tensors._repr_html_()
    report = modelcrate.Report("zt", "invalid", [modelcrate.Finding("<r>", "error", {}, "<m>")])
    assert "&lt;r&gt;" in report._repr_html_() and "<m>" not in report._repr_html_()


def test_notebooks_show_the_start_of_what_is_long(tmp_path: Path) -> None:
    path = tmp_path / "a\udcff.safetensors"
    long = "x" * 1_000_000
    modelcrate.save_file({long: np.zeros((1,) * 30)}, path, {long: long, "k": "v"})
    with modelcrate.open(path) as model:
        shown = model._repr_html_()
    assert shown.encode() and "a\\udcff.safetensors" in shown
    assert "x" * 200 + "…" in shown and len(shown) < 3000
    report = modelcrate.Report("zt", "invalid", [modelcrate.Finding("r", "error", {"path": "\udcff"}, long)])
    assert report._repr_html_().encode() and len(report._repr_html_()) < 1000


def test_files_may_read_into_any_bytes(testdata: Path) -> None:
    class Other(io.BytesIO):
        of: Any = bytearray

        def read(self, size: int | None = -1, /) -> bytes:
            found: bytes = self.of(super().read(size))
            return found

    class Wide(Other):
        def of(self, data: bytes) -> memoryview:
            return memoryview(data).cast("H") if len(data) % 2 == 0 else memoryview(data)

    data = (testdata / VALID["ztensor"]).read_bytes()
    expected = modelcrate.hash(data)
    for of in (bytearray, memoryview):
        file = Other(data)
        file.of = of
        assert modelcrate.hash(file) == expected
    assert modelcrate.hash(Wide(data)) == expected
    with pytest.raises(TypeError, match="bytes-like object"):
        modelcrate.open(io.StringIO("no model" * 20))  # type: ignore[arg-type]


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        modelcrate.open(tmp_path / "none.zt")
    assert isinstance(missing.value, modelcrate.NotFoundError)
    assert missing.value.errno == 2 and missing.value.filename == str(tmp_path / "none.zt")
    with pytest.raises(modelcrate.Error, match="mmap is for paths"):
        modelcrate.open("s3://bucket/model.zt", mmap=True)
    with pytest.raises(modelcrate.UsageError, match="mmap is for paths"):
        modelcrate.open(b"", mmap=True)
    with pytest.raises(TypeError, match="source is int, expected a path"):
        modelcrate.open(3)  # type: ignore[arg-type]
    with pytest.raises(modelcrate.UsageError, match='verify is "sometimes"'):
        modelcrate.open(b"", verify="sometimes")  # type: ignore[arg-type]
    with pytest.raises(modelcrate.UnsupportedError) as unknown:
        modelcrate.open(b"no model")
    assert unknown.value.rule == "file/unknown-format" and unknown.value.at == {"offset": 0}


def test_errors_go_to_other_processes(testdata: Path) -> None:
    with pytest.raises(modelcrate.Error) as found:
        modelcrate.open(b"no model")
    again = pickle.loads(pickle.dumps(found.value))
    assert type(again) is type(found.value) and str(again) == str(found.value)
    assert again.rule == found.value.rule and again.at == found.value.at
    with pytest.raises(modelcrate.NotFoundError) as missing:
        modelcrate.open("none.zt")
    again = pickle.loads(pickle.dumps(missing.value))
    assert str(again) == str(missing.value)
    assert (again.errno, again.filename) == (missing.value.errno, missing.value.filename) == (2, "none.zt")


def test_the_tree_of_errors() -> None:
    for kind in (modelcrate.IoError, modelcrate.NotFoundError, modelcrate.BusyError):
        assert issubclass(kind, modelcrate.Error) and issubclass(kind, OSError)
    assert issubclass(modelcrate.ExistsError, FileExistsError)
    assert issubclass(modelcrate.MalformedError, ValueError)


def test_files_that_fail_say_so() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise RuntimeError("the store is gone")

    with pytest.raises(RuntimeError, match="the store is gone"):
        modelcrate.open(Broken(b"x" * 100))

    class Short(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return b""

    with pytest.raises(modelcrate.IoError, match="at byte 0 gave 0 bytes, expected 64"):
        modelcrate.open(Short(b"x" * 100))


def test_rules_are_explained(testdata: Path) -> None:
    rule = modelcrate.explain("zt/padding")
    assert rule.id == "zt/padding" and "warning" in rule.severities and rule.remedy
    with pytest.raises(KeyError):
        modelcrate.explain("zt/no-such-rule")


def test_verify_reports_what_is_wrong_and_where(testdata: Path) -> None:
    report = modelcrate.verify(testdata / "ztensor/invalid/digest_crc_wrong.zt")
    assert not report.valid and not report and report.verdict == "invalid"
    (finding,) = report
    assert finding.rule == "zt/digest-mismatch" and finding.severity == "error"
    assert finding.at["tensor"] == "t" and "0x05152CBE" in finding.message
    assert modelcrate.verify(testdata / VALID["ztensor"])
    # A file that does not open is one with a finding.
    report = modelcrate.verify(b"no model")
    assert report.findings[0].rule == "file/unknown-format" and not report
    with pytest.raises(FileNotFoundError):
        modelcrate.verify("none.zt")


def test_a_list_of_hashes_beside_a_file_counts(testdata: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.zt"
    path.write_bytes((testdata / VALID["ztensor"]).read_bytes())
    digest = modelcrate.hash(path)
    assert digest.startswith("tensors-v1:") and len(digest) == 75
    (tmp_path / "a.zt.hash").write_text(f"{digest}  a.zt\n")
    assert modelcrate.verify(path).valid
    (tmp_path / "a.zt.hash").write_text(f"tensors-v1:{'0' * 64}  a.zt\n")
    assert [found.rule for found in modelcrate.verify(path)] == ["file/hash"]


def test_lint_reads_no_tensor_data(testdata: Path) -> None:
    with modelcrate.open(testdata / "ztensor/invalid/digest_crc_wrong.zt") as model:
        assert model.verify(data=False).valid and not model.verify().valid


def test_a_model_may_be_used_by_many(testdata: Path) -> None:
    model: Model = modelcrate.open(testdata / VALID["rten"])
    assert model.tensors is model.tensors and model.summary is model.summary
