"""Lets the reference implementation of Carton pack a folder, with the description, tensors and files
that it reads of another carton.

    carton_pack.py HOME FILE FOLDER OUT [DIGEST=URL]...
"""

import os
import sys

from carton_client import cartonml, install_runner, run


async def main():
    install_runner()
    path, folder, out, *links = sys.argv[2:]
    info = await cartonml.get_model_info(path)
    # It reads files of folders below misc/, but cannot pack them under such names.
    misc = {name: file for name, file in info.misc_files.items() if "/" not in name}
    packed = await cartonml.pack(
        folder,
        runner_name=info.runner.runner_name,
        required_framework_version=info.runner.required_framework_version,
        runner_opts=info.runner.opts,
        model_name=info.model_name,
        short_description=info.short_description,
        model_description=info.model_description,
        license=info.license,
        repository=info.repository,
        homepage=info.homepage,
        required_platforms=info.required_platforms,
        inputs=info.inputs,
        outputs=info.outputs,
        self_tests=info.self_tests,
        examples=info.examples,
        misc_files={name: await file.read() for name, file in misc.items()},
        linked_files={digest: [url] for digest, url in (link.split("=", 1) for link in links)},
    )
    os.replace(packed, out)


run(main)
