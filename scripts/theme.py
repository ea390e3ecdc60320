"""The colours of the documentation's charts and pictures, for light and for dark pages.

They are those of Okabe and Ito, which colour-blind readers can tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """The colours of one version of a picture."""

    name: str
    background: str
    text: str
    muted: str
    """Of secondary text, and of lines in a picture."""
    grid: str
    """Of a chart's grid, and of what is not read."""
    less: str
    """Of what costs less than plain Delta, and of where a table has most rows."""
    more: str
    """Of what costs more than plain Delta, and of what is read."""
    pale_more: str
    series: tuple[str, ...]


LIGHT = Theme(
    name="light",
    background="#ffffff",
    text="#1f2328",
    muted="#59636e",
    grid="#d8dee4",
    less="#0072b2",
    more="#d55e00",
    pale_more="#f3b27a",
    series=("#0072b2", "#d55e00", "#009e73", "#7b5ea7", "#6e7781"),
)
DARK = Theme(
    name="dark",
    background="#0d1117",
    text="#f0f6fc",
    muted="#a3adb8",
    grid="#30363d",
    less="#56b4e9",
    more="#e69f00",
    pale_more="#8a6010",
    series=("#56b4e9", "#e69f00", "#2fbf92", "#cc79a7", "#a3adb8"),
)
THEMES = (LIGHT, DARK)
