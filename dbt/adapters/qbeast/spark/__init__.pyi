from . import cursor as cursor
from . import debug as debug
from . import environment as environment
from . import errors as errors
from . import handle as handle
from . import progress as progress
from . import session as session
from . import timestamps as timestamps
