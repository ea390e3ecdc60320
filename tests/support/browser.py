"""A Chromium for tests, wherever it comes from, driven by playwright.

In this order: the one that QBEAST_BROWSER names, one on the PATH, one that playwright has, and one
that is installed now: from the system's packages where we may, else by playwright's own download,
else the one that an npm package carries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock
from playwright.sync_api import Browser, Error, Playwright, sync_playwright

VARIABLE = "QBEAST_BROWSER"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_CACHE = Path.home() / ".cache" / "dbt-qbeast-tests"
_PATIENCE_SECONDS = 600
_NPM_PACKAGE = "@sparticuz/chromium@^153"
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser without a window.

    Raises:
        RuntimeError: there is none and none can be installed; the message says what was tried.
    """
    with sync_playwright() as playwright:
        browser = _launched(playwright)
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class _Found:
    path: str
    variables: dict[str, str] = field(default_factory=dict)
    """What the browser needs in its environment."""

    def launched(self, playwright: Playwright) -> Browser:
        return playwright.chromium.launch(
            executable_path=self.path, args=_ARGUMENTS, env={**os.environ, **self.variables}
        )


def _launched(playwright: Playwright) -> Browser:
    if named := os.environ.get(VARIABLE):
        return _Found(named).launched(playwright)
    tried: list[str] = []
    # One process installs; those beside it find what it has installed.
    with FileLock(Path(tempfile.gettempdir()) / f"qbeast-browser-{os.getuid()}.lock"):
        for find in (_on_path, _of_playwright, _from_packages, _downloaded, _from_npm):
            try:
                if found := find(playwright):
                    return found.launched(playwright)
            except (Error, OSError, subprocess.SubprocessError) as problem:
                tried.append(f"{find.__name__.strip('_')}: {_first_error(problem)}")
    raise RuntimeError(
        "the tests of the index page need Chromium, and none could be found or installed "
        f"({'; '.join(tried)}). Install chromium or google-chrome, or name one in {VARIABLE}"
    )


def _on_path(_: Playwright) -> _Found | None:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return _Found(found) if found else None


def _of_playwright(playwright: Playwright) -> _Found | None:
    path = playwright.chromium.executable_path
    return _Found(path) if Path(path).is_file() else None


def _from_packages(playwright: Playwright) -> _Found | None:
    apt = shutil.which("apt-get")
    if apt is None or os.getuid() != 0:
        return None
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run([apt, "update", "-qq"], env=variables)
    _run([apt, "install", "-y", "-qq", "--no-install-recommends", "chromium"], env=variables)
    return _on_path(playwright)


def _downloaded(playwright: Playwright) -> _Found | None:
    _run([sys.executable, "-m", "playwright", "install", "chromium"])
    return _of_playwright(playwright)


def _from_npm(_: Playwright) -> _Found | None:
    """A package that carries a browser for bare machines, with the libraries and fonts it needs."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise OSError("there is no npm")
    _CACHE.mkdir(parents=True, exist_ok=True)
    _run([npm, "install", "--silent", "--prefix", str(_CACHE), _NPM_PACKAGE])
    # It unpacks into the directory for temporary files. It unpacks its libraries only if this
    # variable claims that the machine has none.
    variables = {"TMPDIR": str(_CACHE), "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x"}
    script = "import('@sparticuz/chromium').then(of => of.default.executablePath())"
    _run([node, "--input-type=module", "-e", script], cwd=_CACHE, env={**os.environ, **variables})
    return _Found(
        str(_CACHE / "chromium"),
        {
            "LD_LIBRARY_PATH": str(_CACHE / "al2023" / "lib"),
            "FONTCONFIG_PATH": str(_CACHE / "fonts"),
        },
    )


def _run(command: list[str], **options: object) -> str:
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
    return run(
        command, check=True, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, **options
    ).stdout


def _first_error(problem: BaseException) -> str:
    said = getattr(problem, "stderr", None) or str(problem)
    command = getattr(problem, "cmd", None)
    words = " ".join(command[:3]) + ": " if isinstance(command, list) else ""
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line or line.startswith("E:")]
    return words + (errors or lines or ["failed"])[0]
