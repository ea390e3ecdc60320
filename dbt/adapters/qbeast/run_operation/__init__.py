"""What `dbt run-operation` does.

Its modules are imported on first use: most need PySpark, which takes long to load.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
