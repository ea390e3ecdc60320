"""How much longer an indexed write takes than a plain Delta write of the same DataFrame.

python benchmarks/write.py [--scale 1]
"""

from __future__ import annotations

import argparse

from harness import alternate, fresh_directory, report, spark_session, tpch

from qbeast_core import write_table

TARGET = 1.5


def main() -> None:
    """Write TPC-H lineitem both ways, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor")
    scale = parser.parse_args().scale
    source = tpch("lineitem", scale)
    with spark_session() as spark, fresh_directory() as place:
        timings = alternate(
            {
                "plain Delta": lambda: (
                    spark.read.parquet(source).write.format("delta").save(place())
                ),
                "qbeast": lambda: write_table(
                    spark.read.parquet(source),
                    path=place(),
                    columns_to_index=["l_partkey", "l_shipdate"],
                ),
            }
        )
    report(f"write lineitem, scale {scale:g}", timings, baseline="plain Delta", target=TARGET)


if __name__ == "__main__":
    main()
