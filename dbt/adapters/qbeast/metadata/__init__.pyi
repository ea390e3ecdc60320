from . import catalog as catalog
from . import columns as columns
from . import freshness as freshness
from . import relations as relations
