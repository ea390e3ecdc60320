"""The type of a relation, read from Spark's description of it."""

import re

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType

_LINE = re.compile(r"^(Type|Provider): (.*)$", re.MULTILINE)


def with_described_type(relation: BaseRelation) -> BaseRelation:
    """The relation with the type and the format that the lines of its description say.

    dbt-spark searches the whole text, which has the relation's comment too. For tables of its own
    catalog, Spark puts the comment after these lines, so only the first lines `Type:` and
    `Provider:` count.
    """
    lines: dict[str, str] = {}
    for kind, value in _LINE.findall(getattr(relation, "information", None) or ""):
        lines.setdefault(kind, value)
    if "Type" not in lines:
        return relation
    return relation.replace(
        type=RelationType.View if lines["Type"] == "VIEW" else RelationType.Table,
        is_delta=lines.get("Provider") == "delta",
        is_hudi=lines.get("Provider") == "hudi",
        is_iceberg=lines.get("Provider") == "iceberg",
    )
