"""The index page in a browser: open it, make choices, and read what it shows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

_SET = """([id, value]) => {
  const input = document.getElementById(id);
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}"""
_SHOWN = """() => ({
  ...Object.fromEntries([...document.querySelectorAll("[data-count]")]
    .map((shown) => [shown.dataset.count, Number(shown.dataset.value)])),
  fraction: Number(document.getElementById("query").dataset.fraction),
  where: document.getElementById("query").dataset.where,
})"""


@dataclass(frozen=True)
class Shown:
    """The choice that a page shows, and its counts."""

    files: int
    bytes: int
    rows: int
    fraction: float
    where: str


class OpenPage:
    """A page in a browser. Its errors and warnings are collected."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda said: self.problems.append(said.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    @property
    def shown(self) -> Shown:
        return Shown(**self.page.evaluate(_SHOWN))

    def choose(self, **values: int) -> Shown:
        """Moves sliders, by their id with an underscore for the dash."""
        for name, value in values.items():
            self.page.evaluate(_SET, [name.replace("_", "-"), value])
        return self.shown

    def slider_ends(self) -> dict[str, int]:
        """The largest value of each slider."""
        found: dict[str, int] = self.page.evaluate(
            "() => Object.fromEntries([...document.querySelectorAll('input[type=range]')]"
            ".map((input) => [input.id, Number(input.max)]))"
        )
        return found

    def random_choices(self, number: int, seed: int) -> Iterator[Shown]:
        """What the page shows for random fractions and ranges, some of them open."""
        draw = random.Random(seed)
        ends = self.slider_ends()
        for _ in range(number):
            self.page.evaluate("document.getElementById('reset').click()")
            most = ends["fraction"]
            values = {"fraction": draw.choice([most, draw.randint(0, most)])}
            for name in ends:
                if name.startswith("from-") and draw.random() < 0.7:
                    last = ends[name]
                    low = draw.choice([0, draw.randint(0, last)])
                    values[name] = low
                    values[f"to-{name.removeprefix('from-')}"] = draw.choice(
                        [last, min(last, low + draw.randint(0, 8))]
                    )
            yield self.choose(**{name.replace("-", "_"): value for name, value in values.items()})


@contextmanager
def opened(browser: Browser, path: Path, **context: Any) -> Iterator[OpenPage]:
    """The page, drawn. `context` is that of the browser: viewport, color_scheme."""
    with browser.new_context(**context) as running:
        shown = OpenPage(running.new_page())
        shown.page.goto(path.as_uri())
        shown.page.wait_for_selector("html[data-drawn=yes]", timeout=60_000)
        yield shown
