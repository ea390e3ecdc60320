from . import fraction as fraction
from . import inputs as inputs
from . import marks as marks
from . import rewriting as rewriting
from . import run_sample as run_sample
from . import spans as spans
