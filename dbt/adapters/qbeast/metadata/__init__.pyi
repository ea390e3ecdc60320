from . import catalog as catalog
from . import freshness as freshness
