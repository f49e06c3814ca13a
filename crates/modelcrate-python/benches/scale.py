"""Measures what a file costs: requests, bytes and processor time, and what follows for many.

    python crates/modelcrate-python/benches/scale.py [FOLDER]

Verifies and describes 1,000 files of all formats, those of `testdata/`, or of a folder, in one process:
from paths, and where `moto` and `boto3` are installed, from a bucket that a server on this machine has.
From half of them the time of the other half is forecast for two worker processes, and held to what is
measured; ends with status 1 where they are more than a fifth apart.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from modelcrate import _native, batch

ROOT = Path(__file__).parents[3]
ENDS = {".carton", ".circle", ".gguf", ".npz", ".ptl", ".rten", ".safetensors", ".tflite", ".zip", ".zt"}
FILES = 1000
BLOCK = 20
TURNS = 5
WORKERS = 2

Function = Callable[[pa.Table], pa.Table]


def files(folder: Path | None) -> list[str]:
    """Returns files, in no order, so that both halves are alike."""
    found = sorted((folder or ROOT / "testdata").rglob("*"))
    if folder is None:
        # Without the one whose content is 4 GiB of zeros.
        found = [path for path in found if "valid" in path.parts and path.suffix in ENDS]
        found = [path for path in found if "zip64" not in path.name]
    paths = [str(path) for path in found if path.is_file()]
    random.Random(1).shuffle(paths)
    return [paths[number % len(paths)] for number in range(FILES)]


def table(paths: Sequence[str]) -> pa.Table:
    return pa.table({"path": pa.array(paths, pa.string())})


def done(function: Function, paths: Sequence[str]) -> tuple[float, tuple[int, int, int]]:
    """Does a block; returns seconds of the processor, and what was asked of servers."""
    before, asked = time.process_time(), _native.remote_stats() or (0, 0, 0)
    function(table(paths))
    now = _native.remote_stats() or (0, 0, 0)
    requests, received, retries = (there - here for there, here in zip(now, asked))
    return time.process_time() - before, (requests, received, retries)


def blocks(paths: Sequence[str]) -> list[Sequence[str]]:
    return [paths[start : start + BLOCK] for start in range(0, len(paths), BLOCK)]


def measured(name: str, function: Function, paths: Sequence[str]) -> bool:
    """Prints a row; tells whether the forecast was right."""
    halves = [blocks(paths[0::2]), blocks(paths[1::2])]
    elapsed = [0.0, 0.0]
    asked: list[tuple[float, tuple[int, int, int]]] = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        # Starting is paid once, however many files there are.
        list(pool.map(done, [function] * WORKERS, [paths[:BLOCK]] * WORKERS))
        # In turns, as what else the machine does may change.
        for turn in range(TURNS):
            for side, half in enumerate(halves):
                part = half[turn::TURNS]
                start = time.perf_counter()
                found = list(pool.map(done, [function] * len(part), part))
                elapsed[side] += time.perf_counter() - start
                if side == 0:
                    asked += found
    count = len(paths[0::2])
    each = elapsed[0] / count * WORKERS
    forecast = each * len(paths[1::2]) / WORKERS
    cpu = sum(seconds for seconds, _ in asked) / count
    requests = sum(of[0] for _, of in asked) / count
    received = sum(of[1] for _, of in asked) / count
    hours = 10_000_000 * each / 3600
    print(
        f"{name:22} {requests:8.2f} {received / 1024:9.1f} {cpu * 1e3:9.2f} {each * 1e3:9.2f}"
        f" {hours:10.1f} {forecast:9.2f} {elapsed[1]:9.2f} {elapsed[1] / forecast:6.2f}"
    )
    return 0.8 <= elapsed[1] / forecast <= 1.2


def in_bucket(paths: Sequence[str]) -> tuple[Any, list[str]] | None:
    """Puts files into a bucket of a server on this machine."""
    try:
        import boto3
        from moto.server import ThreadedMotoServer
    except ImportError:
        print("skipped: a bucket, for which moto and boto3 are not installed")
        return None
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    os.environ.update(
        AWS_ACCESS_KEY_ID="test",
        AWS_ENDPOINT_URL=f"http://{host}:{port}",
        AWS_REGION="us-east-1",
        AWS_SECRET_ACCESS_KEY="test",
    )
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    client.create_bucket(Bucket="models")
    addresses: list[str] = []
    for number, path in enumerate(paths):
        key = f"{number:05}{Path(path).suffix}"
        client.put_object(Bucket="models", Key=key, Body=Path(path).read_bytes())
        addresses.append(f"s3://models/{key}")
    return server, addresses


def main(folder: Path | None) -> int:
    paths = files(folder)
    mean = sum(os.path.getsize(path) for path in paths) / len(paths)
    print(f"{len(paths)} files of {mean / 1024:.1f} KiB on average, {WORKERS} worker processes")
    print(
        f"{'':22} {'requests':>8} {'KiB':>9} {'CPU ms':>9} {'ms':>9} {'hours for':>10}"
        f" {'forecast':>9} {'measured':>9} {'ratio':>6}"
    )
    print(f"{'':22} {'a file':>8} {'a file':>9} {'a file':>9} {'a file':>9} {'10 million':>10} {'s':>9} {'s':>9}")
    right = measured("inspect, paths", batch.inspect, paths * 10)
    right &= measured("verify, paths", batch.verify, paths * 10)
    bucket = in_bucket(paths)
    if bucket is not None:
        server, addresses = bucket
        try:
            right &= measured("inspect, bucket", batch.inspect, addresses)
            right &= measured("verify, bucket", batch.verify, addresses)
        finally:
            server.stop()
    return int(not right)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
