from . import operations as operations
from . import selection as selection
from . import vacuum as vacuum
