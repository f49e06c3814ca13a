"""Verifies many model files with Ray.

    python examples/ray/verify.py files.parquet report.parquet

`files.parquet` has a column `path`, of paths that all workers see or of addresses such as `s3://…`, and
perhaps one `etag`. `report.parquet` gets a row for each file, with the columns of
`modelcrate.batch.VERIFY`. Workers need the packages modelcrate and pyarrow, and nothing else.
"""

from __future__ import annotations

import sys

import ray

from modelcrate import batch


def main(files: str, report: str) -> None:
    ray.init(ignore_reinit_error=True)
    dataset = ray.data.read_parquet(files)
    # Blocks of their own, so that little is done twice where a worker is lost.
    dataset = dataset.repartition(target_num_rows_per_block=FILES_OF_A_TASK)
    verified = dataset.map_batches(batch.verify, batch_format="pyarrow")
    verified.write_parquet(report, mode="overwrite")


FILES_OF_A_TASK = 100

if __name__ == "__main__":
    main(*sys.argv[1:])
