"""What tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import modelcrate

ROOT = Path(__file__).parents[3]


@pytest.fixture
def testdata() -> Path:
    """The folder of test data."""
    return ROOT / "testdata"


@pytest.fixture
def valid_models(testdata: Path) -> Iterator[modelcrate.Model]:
    """Every file that the makers of its format wrote, open."""
    ends = {".carton", ".circle", ".ptl", ".rten", ".tflite", ".zip", ".zt"}
    files = [path for path in sorted(testdata.glob("*/valid/**/*")) if path.suffix in ends]
    assert len(files) > 100

    def opened() -> Iterator[modelcrate.Model]:
        for path in files:
            try:
                model = modelcrate.open(path)
            except modelcrate.MalformedError as error:
                # What a tool of its time wrote, and no reader agrees on.
                assert "name stands twice" in str(error), (path, error)
                continue
            with model:
                yield model

    return opened()
