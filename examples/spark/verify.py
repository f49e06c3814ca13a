"""Verifies many model files with Spark.

    spark-submit --master 'local[2]' examples/spark/verify.py files.parquet report.parquet

`files.parquet` has a column `path`, of paths that all workers see or of addresses such as `s3://…`, and
perhaps one `etag`. `report.parquet` gets a row for each file, with the columns of
`modelcrate.batch.VERIFY`. Workers need the packages modelcrate and pyarrow, and nothing else.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from modelcrate import batch


def main(files: str, report: str) -> None:
    spark = SparkSession.builder.appName("verify model files").getOrCreate()
    frame = spark.read.parquet(files)
    # So that files of unlike length are spread, and little is done twice where a worker is lost.
    frame = frame.repartition(max(1, frame.count() // FILES_OF_A_TASK))
    schema = from_arrow_schema(batch.VERIFY)
    verified = frame.mapInArrow(batch.in_arrow(batch.verify), schema)
    verified.write.parquet(report, mode="overwrite")
    spark.stop()


FILES_OF_A_TASK = 100

if __name__ == "__main__":
    main(*sys.argv[1:])
