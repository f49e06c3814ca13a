"""Files at addresses, of a server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import modelcrate
from modelcrate import _native, batch

pytestmark = pytest.mark.skipif(
    _native.remote_stats() is None, reason="the build reads no addresses"
)


class Files(BaseHTTPRequestHandler):
    """Serves bytes with ranges and entity tags."""

    files: dict[str, bytes] = {}
    broken: set[str] = set()
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        content = self.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        start, end = int(first), min(int(last or len(content)) + 1, len(content))
        if self.path in self.broken and start > 0:
            self.send_error(403)
            return
        part = content[start:end]
        self.send_response(206)
        self.send_header("ETag", f'"{len(content)}"')
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Files.files, Files.broken, Files.asked = {}, set(), 0
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def saved(tmp_path: Path) -> bytes:
    path = tmp_path / "a.zt"
    rng = np.random.default_rng(1)
    modelcrate.save_file({"w": rng.random(1 << 19), "b": np.arange(3)}, path)
    return path.read_bytes()


def test_addresses_are_read_where_they_are_asked_for(server: str, tmp_path: Path) -> None:
    data = Files.files["/a.zt"] = saved(tmp_path)
    address = f"{server}/a.zt"
    before = _native.remote_stats()
    with modelcrate.open(address) as model:
        assert list(model.tensors) == list(modelcrate.open(data).tensors)
        assert Files.asked <= 2 and model.nbytes == len(data)
        assert model.etag == f'"{len(data)}"' and repr(model).startswith(f"<Model '{address}'")
        np.testing.assert_array_equal(
            model.tensors["w"].numpy(), modelcrate.open(data).tensors["w"].numpy()
        )
        assert model.verify().valid
    after = _native.remote_stats()
    assert before is not None and after is not None and after[0] - before[0] == Files.asked
    assert modelcrate.hash(address) == modelcrate.hash(data)
    modelcrate.convert(address, tmp_path / "b.npz")
    assert modelcrate.diff(address, tmp_path / "b.npz").equal


def test_what_is_not_there_is_not_found(server: str) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        modelcrate.open(f"{server}/none.zt")
    assert missing.value.filename == f"{server}/none.zt"


def test_what_a_server_does_not_send_is_no_fault_of_the_file(server: str, tmp_path: Path) -> None:
    Files.files["/a.zt"] = saved(tmp_path)
    with modelcrate.open(f"{server}/a.zt") as model:
        list(model.tensors)
        Files.broken = {"/a.zt"}
        with pytest.raises(modelcrate.IoError):
            model.verify()
        with pytest.raises(modelcrate.Error):
            model.tensors["w"].numpy()


def test_rows_of_addresses(server: str, tmp_path: Path) -> None:
    import pyarrow as pa

    data = Files.files["/a.zt"] = saved(tmp_path)
    Files.files["/bad.zt"] = b"no model"
    paths = [f"{server}/{name}" for name in ("a.zt", "bad.zt", "none.zt", "a.zt")]
    etags = [None, None, None, '"other"']
    table = pa.table({"path": paths, "etag": pa.array(etags, pa.string())})
    good, bad, missing, other = batch.verify(table).to_pylist()
    assert (good["verdict"], good["nbytes"], good["error"]) == ("valid", len(data), None)
    assert good["etag"] == f'"{len(data)}"' and bad["verdict"] == "invalid"
    assert missing["verdict"] is None and "is not there" in missing["error"]
    assert other["verdict"] is None and other["rule"] == "file/busy"
    done = batch.convert(table.slice(0, 1), folder=tmp_path / "out").to_pylist()
    assert modelcrate.load_file(done[0]["output"])["b"].tolist() == [0, 1, 2]
