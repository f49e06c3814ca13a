"""Runs the programs for Spark and Ray on 2,000 files, with a worker killed in the middle: the result has
to be that of a single process.

Where `moto` is installed, Ray reads them from a bucket that a server on this machine has.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from modelcrate import batch

ROOT = Path(__file__).parents[1]
COUNT = 2000
ENDS = {".carton", ".circle", ".gguf", ".npz", ".ptl", ".rten", ".safetensors", ".tflite", ".zip", ".zt"}
ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "RAY_DEDUP_LOGS": "0",
    "SPARK_LOCAL_HOSTNAME": "localhost",
    "SPARK_LOCAL_IP": "127.0.0.1",
}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files of all formats, sound and broken."""
    folder = tmp_path_factory.mktemp("files")
    found = sorted(
        path
        for path in ROOT.glob("testdata/*/*valid/**/*")
        if path.is_file() and path.suffix in ENDS and path.stat().st_size < 300_000
    )
    assert {path.suffix for path in found} >= {".carton", ".circle", ".ptl", ".rten", ".zip", ".zt"}
    for number in range(COUNT):
        source = found[number % len(found)]
        shutil.copy(source, folder / f"{number:05}{source.suffix}")
    return folder


def rows(table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.select(batch.VERIFY.names).to_pylist()
    return sorted(found, key=lambda row: str(row["path"]))


@pytest.fixture(scope="session")
def local(files: Path) -> pa.Table:
    """A row for each file."""
    paths = [str(path) for path in sorted(files.iterdir())]
    return pa.table({"path": paths, "etag": [batch.etag_of(path) for path in paths]})


@pytest.fixture(scope="session")
def single(local: pa.Table) -> list[dict[str, Any]]:
    """What one process says."""
    return rows(batch.verify(local))


def run(command: list[str], is_worker: Any, environment: dict[str, str]) -> int:
    """Runs a program, and kills one of its workers once it works; returns how many were killed."""
    process = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT, **environment}, cwd=ROOT)
    killed, deadline = 0, time.monotonic() + 300
    try:
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            if killed:
                continue
            for child in psutil.Process(process.pid).children(recursive=True):
                try:
                    if is_worker(child) and child.cpu_times().user > 0.3:
                        child.send_signal(signal.SIGKILL)
                        killed += 1
                        break
                except psutil.Error:
                    continue
    finally:
        if process.poll() is None:
            process.kill()
    assert process.wait() == 0
    return killed


def test_spark(local: pa.Table, single: list[dict[str, Any]], tmp_path: Path) -> None:
    spark = pytest.importorskip("pyspark")
    pq.write_table(local, tmp_path / "files.parquet")
    submit = Path(spark.__file__).parent / "bin/spark-submit"
    example = ROOT / "examples/spark/verify.py"
    report = tmp_path / "report.parquet"
    # Each of the two workers forks processes of Python from a daemon of its own.
    killed = run(
        [
            str(submit),
            "--master",
            "local-cluster[2,1,1024]",
            "--conf",
            "spark.ui.enabled=false",
            str(example),
            str(tmp_path / "files.parquet"),
            str(report),
        ],
        lambda child: "pyspark.daemon" in " ".join(child.cmdline())
        and "pyspark.daemon" in " ".join(child.parent().cmdline()),
        {},
    )
    assert killed == 1
    assert rows(pq.read_table(report)) == single


def test_ray(local: pa.Table, single: list[dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    pq.write_table(local, tmp_path / "files.parquet")
    killed = run(
        [
            sys.executable,
            str(ROOT / "examples/ray/verify.py"),
            str(tmp_path / "files.parquet"),
            str(tmp_path / "report.parquet"),
        ],
        lambda child: "ray::MapBatches(verify)" in " ".join(child.cmdline()),
        {},
    )
    assert killed == 1
    assert rows(pq.read_table(tmp_path / "report.parquet")) == single


@pytest.fixture
def bucket(files: Path) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """A bucket with all files, of a server that stops with the test."""
    pytest.importorskip("ray")
    server = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    moto = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    moto.start()
    host, port = moto.get_host_and_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        client = boto3.client("s3", endpoint_url=environment["AWS_ENDPOINT_URL"])
        client.create_bucket(Bucket="models")
        paths, etags = [], []
        for path in sorted(files.iterdir()):
            put = client.put_object(Bucket="models", Key=path.name, Body=path.read_bytes())
            paths.append(f"s3://models/{path.name}")
            etags.append(put["ETag"])
        yield environment, pa.table({"path": paths, "etag": etags})
    finally:
        moto.stop()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def test_ray_over_a_bucket(
    bucket: tuple[dict[str, str], pa.Table], single: list[dict[str, Any]], tmp_path: Path
) -> None:
    environment, table = bucket
    pq.write_table(table, tmp_path / "files.parquet")
    killed = run(
        [
            sys.executable,
            str(ROOT / "examples/ray/verify.py"),
            str(tmp_path / "files.parquet"),
            str(tmp_path / "report.parquet"),
        ],
        lambda child: "ray::MapBatches(verify)" in " ".join(child.cmdline()),
        environment,
    )
    assert killed == 1
    # What is found is what is found in the files themselves, but where they are.
    found = rows(pq.read_table(tmp_path / "report.parquet"))
    assert [verdict(row) for row in found] == [verdict(row) for row in single]
    assert {(row["path"], row["etag"]) for row in found} == set(
        zip(table["path"].to_pylist(), table["etag"].to_pylist())
    )


def verdict(row: dict[str, Any]) -> tuple[Any, ...]:
    name = str(row["path"]).rsplit("/", 1)[1]
    return name, row["verdict"], row["format"], row["errors"], row["warnings"], row["error"]
