"""Tables of many files."""

from __future__ import annotations

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import modelcrate
from modelcrate import batch

from .conftest import ROOT


def paths(count: int | None = None) -> list[str]:
    """Files of all formats, sound and broken, and one that is not there."""
    found = sorted(str(path) for path in ROOT.glob("testdata/*/*valid/**/*") if path.is_file())
    return [str(ROOT / "none.zt"), *(found if count is None else found[:: len(found) // count])]


def table(files: list[str], **columns: list[Any]) -> pa.Table:
    return pa.table({"path": pa.array(files, pa.string()), **columns})


def test_every_file_is_a_row_of_fixed_columns() -> None:
    files = paths()
    for function, schema in [(batch.inspect, batch.INSPECT), (batch.verify, batch.VERIFY)]:
        found = function(table(files))
        assert found.schema.equals(schema) and found["path"].to_pylist() == files
        empty = function(table([]))
        assert empty.schema.equals(schema) and empty.num_rows == 0
        first = found.slice(0, 1).to_pylist()[0]
        assert "No such file or directory" in first["error"] and "none.zt" in first["error"]
        assert first["rule"] == "file/read"


def test_rows_say_what_single_calls_say() -> None:
    files = paths(60)
    for row in batch.verify(table(files)).to_pylist():
        if row["error"] is not None:
            continue
        report = modelcrate.verify(row["path"])
        assert row["verdict"] == report.verdict and row["format"] == report.format
        assert [one["rule"] for one in row["findings"]] == [one.rule for one in report][:100]
        assert row["errors"] == sum(one.severity == "error" for one in report)
    described = 0
    for row in batch.inspect(table(files)).to_pylist():
        if row["error"] is None:
            with modelcrate.open(row["path"]) as model:
                assert row["tensors"] == len(model.summary["tensors"])
                assert row["version"] == model.version
                assert json.loads(row["metadata"]) == model.metadata
                assert json.loads(row["inputs"]) == model.summary.get("inputs", [])
            described += 1
        else:
            with pytest.raises((modelcrate.Error, OSError)):
                modelcrate.open(row["path"])
    assert described > 20


def test_a_file_that_has_changed_is_a_row_with_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    modelcrate.save_file({"w": np.ones(3)}, path)
    etag = batch.etag_of(path)
    assert batch.verify(table([str(path)], etag=[etag])).to_pylist()[0]["verdict"] == "valid"
    modelcrate.save_file({"w": np.ones(4)}, path)
    (row,) = batch.verify(table([str(path)], etag=[etag])).to_pylist()
    assert row["verdict"] is None and row["rule"] == "file/busy" and etag in row["error"]


def test_conversions_are_made_once_for_a_content(tmp_path: Path) -> None:
    source, folder = tmp_path / "a.npz", tmp_path / "out"
    modelcrate.save_file({"w": np.arange(3)}, source)
    files = [str(source), str(tmp_path / "none.zt")]
    first = batch.convert(table(files), folder=folder)
    assert first.schema.equals(batch.CONVERT)
    good, bad = first.to_pylist()
    assert bad["output"] is None and bad["error"] and good["error"] is None
    output = Path(good["output"])
    assert modelcrate.load_file(output)["w"].tolist() == [0, 1, 2]
    assert output == batch.output_of(folder, str(source), good["etag"], "safetensors")
    changed = output.stat().st_mtime_ns
    assert batch.convert(table(files), folder=folder).equals(first)
    assert output.stat().st_mtime_ns == changed
    modelcrate.save_file({"w": np.arange(4)}, source)
    again = batch.convert(table(files), folder=folder).to_pylist()[0]
    assert again["output"] != good["output"] and output.exists()


def test_options_make_another_conversion(tmp_path: Path) -> None:
    source, folder = tmp_path / "a.npz", tmp_path / "out"
    modelcrate.save_file({"w": np.array([1.5, 1 / 3])}, source)
    one, other = (
        batch.convert(table([str(source)]), folder=folder, lossy=lossy).to_pylist()[0]
        for lossy in (False, True)
    )
    assert one["output"] != other["output"] and one["error"] is other["error"] is None
    assert not list(folder.rglob(".*"))


def test_a_file_that_changes_meanwhile_is_not_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = tmp_path / "a.npz", tmp_path / "out"
    modelcrate.save_file({"w": np.arange(3)}, source)

    def late(*args: Any, **options: Any) -> None:
        modelcrate.save_file({"w": np.arange(4)}, source)
        modelcrate.convert(*args, **options)

    monkeypatch.setattr(batch, "_convert", late)
    (row,) = batch.convert(table([str(source)]), folder=folder).to_pylist()
    assert row["rule"] == "file/busy" and row["output"] is None
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_addresses_of_files_have_the_etags_of_files(tmp_path: Path) -> None:
    path = tmp_path / "a file.npz"
    modelcrate.save_file({"w": np.ones(3)}, path)
    for etag, is_there in [(batch.etag_of(path), True), ("other", False)]:
        (row,) = batch.inspect(table([path.as_uri()], etag=[etag])).to_pylist()
        assert (row["error"] is None) == is_there, row


def test_rows_that_are_none_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    modelcrate.save_file({"w": np.ones(3)}, path)
    files = pa.table({"path": pa.array([str(path), None, "a\0"], pa.string()), "etag": [None, 1, 2]})
    for function in (batch.inspect, batch.verify, partial(batch.convert, folder=tmp_path / "out")):
        good, none, odd = function(files).to_pylist()
        assert good["error"] is None and odd["error"]
        assert none["error"] == "the row has no path, expected one"


def test_refused_conversions_are_rows(tmp_path: Path) -> None:
    source = tmp_path / "a.npz"
    modelcrate.save_file({"w": np.array([1j])}, source)
    (row,) = batch.convert(table([str(source)]), folder=tmp_path / "out", to="gguf").to_pylist()
    assert "gguf cannot hold it" in row["error"] and row["output"] is None
    assert not list((tmp_path / "out").rglob("*.gguf"))


def test_batches_of_spark_are_small(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{number}.zt") for number in range(250)]
    batches = table(files).to_batches()
    function = batch.in_arrow(batch.verify)
    found = list(function(iter(batches)))
    assert [one.num_rows for one in found] == [100, 100, 50]
    assert pa.Table.from_batches(found).equals(batch.verify(table(files)))
    assert pickle.loads(pickle.dumps(batch.verify)) is batch.verify


def test_rows_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    modelcrate.save_file({"w": np.ones(1)}, path, {"long": "x" * (1 << 20)})
    (row,) = batch.inspect(table([str(path)])).to_pylist()
    assert row["error"] is None and row["metadata"] is None and row["tensors"] == 1


def test_folders_are_models_too(testdata: Path) -> None:
    folders = [path.parent for path in testdata.glob("*/valid/**/MANIFEST")]
    for folder in folders:
        (row,) = batch.verify(table([str(folder)])).to_pylist()
        assert row["nbytes"] is None and len(row["etag"]) == 32
