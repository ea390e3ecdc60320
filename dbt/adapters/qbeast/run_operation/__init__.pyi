from . import operations as operations
from . import vacuum as vacuum
