"""Runs the reference implementation of Carton away from the network and from what the user has.

The first argument of a script is a folder for everything that it writes.
"""

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path

HOME = Path(sys.argv[1])

os.environ.update(
    HOME=str(HOME),
    TMPDIR=str(HOME),
    CARTON_CACHE_DIR=str(HOME / "cache"),
    CARTON_RUNNER_DIR=str(HOME / "runners"),
    RUST_BACKTRACE="0",
    # Nothing listens there: what a runner or a file is looked for elsewhere fails at once.
    http_proxy="http://127.0.0.1:9",
    https_proxy="http://127.0.0.1:9",
    all_proxy="http://127.0.0.1:9",
    no_proxy="",
)
os.environ.pop("CARTON_CONFIG_PATH", None)

import cartonml  # noqa: E402

from common import plain  # noqa: E402

RUNNER = """\
version = 1

[[runner]]
runner_name = "noop"
framework_version = "1.0.0"
runner_compat_version = 1
runner_interface_version = 1
runner_release_date = "2023-10-20T00:00:00Z"
runner_path = "noop"
platform = "x86_64-unknown-linux-gnu"
"""


def run(main):
    """Prints what a coroutine function returns, as JSON.

    The library has threads that outlive the interpreter and crash with it in one of two runs.
    """
    json.dump(asyncio.run(main()), sys.stdout)
    sys.stdout.flush()
    os._exit(0)


def install_runner():
    """Installs a runner `noop` 1.0.0; returns where it says what it was asked to load."""
    folder = HOME / "runners" / "noop"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "loaded.json"
    program = folder / "noop"
    script = Path(__file__).with_name("carton_runner.py")
    words = shlex.join([sys.executable, "-B", str(script), str(log)])
    program.write_text(f'#!/bin/sh\nexec {words} "$@" >/dev/null\n')
    program.chmod(0o755)
    (folder / "runner.toml").write_text(RUNNER)
    return log


def present(**values):
    return {key: value for key, value in values.items() if value is not None}


def shape(dims):
    if isinstance(dims, list):
        return ["*" if dim is None else dim for dim in dims]
    return "*" if dims is None else dims


def spec(tensor_spec):
    return present(
        name=tensor_spec.name,
        dtype=tensor_spec.dtype,
        shape=shape(tensor_spec.shape),
        description=tensor_spec.description,
        internal_name=tensor_spec.internal_name,
    )


def tensor(array):
    if array.dtype.kind == "U":
        data, dtype = array.flatten().tolist(), "string"
    else:
        assert array.dtype.isnative and sys.byteorder == "little"
        data, dtype = array.tobytes().hex(), str(array.dtype)
    return {"dtype": dtype, "shape": list(array.shape), "data": data}


async def value(lazy):
    if isinstance(lazy, cartonml.LazyLoadedMiscFile):
        return {"misc": (await lazy.read()).hex()}
    return tensor(await lazy.get())


async def values(lazy):
    if lazy is None:
        return None
    return {name: await value(one) for name, one in lazy.items()}


async def self_test(test):
    return present(
        name=test.name,
        description=test.description,
        inputs=await values(test.inputs),
        expected_out=await values(test.expected_out),
    )


async def example(one):
    return present(
        name=one.name,
        description=one.description,
        inputs=await values(one.inputs),
        sample_out=await values(one.sample_out),
    )


async def each(items, function):
    return None if items is None else [await function(item) for item in items]


def specs(items):
    return None if items is None else [spec(item) for item in items]


def runner(found):
    return present(
        runner_name=found.runner_name,
        required_framework_version=found.required_framework_version,
        runner_compat_version=found.runner_compat_version,
        opts=plain(found.opts),
    )


async def description(info):
    """Returns what carton.toml says, with the content of what it refers to."""
    return present(
        model_name=info.model_name,
        short_description=info.short_description,
        model_description=info.model_description,
        license=info.license,
        repository=info.repository,
        homepage=info.homepage,
        required_platforms=info.required_platforms,
        input=specs(info.inputs),
        output=specs(info.outputs),
        self_test=await each(info.self_tests, self_test),
        example=await each(info.examples, example),
        runner=runner(info.runner),
    )
