"""One test class for each name in classes.txt, with the fixtures that `overrides.py` replaces."""

from tests.conformance.classes import CLASS_NAMES, base_class, class_name
from tests.conformance.overrides import OVERRIDES

for _name in CLASS_NAMES:
    _base = base_class(_name)
    _bases = (OVERRIDES[_name], _base) if _name in OVERRIDES else (_base,)
    globals()[class_name(_name)] = type(class_name(_name), _bases, {"base": _base})
