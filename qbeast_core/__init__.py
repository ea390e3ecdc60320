"""Delta tables on Spark with an index over several columns and built-in sampling.

>>> from qbeast_core import QbeastTable, write_table  # doctest: +SKIP
>>> write_table(df, table="db.events", columns_to_index=["ts", "user_id:hash"])  # doctest: +SKIP
>>> QbeastTable.for_name(spark, "db.events").sample(0.01).count()  # doctest: +SKIP

`__init__.pyi` lists the public API. Names are imported on first use, so you can use
`qbeast_core.model`, the table format, without Spark.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
