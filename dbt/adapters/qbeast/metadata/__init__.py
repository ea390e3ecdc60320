"""What dbt reads about tables: columns, the catalog of `dbt docs generate`, freshness of sources.

Its modules are imported on first use, because most need PySpark, which is slow to import.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
