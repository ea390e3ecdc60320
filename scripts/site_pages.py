"""A hook of MkDocs: the parts of the site that are not pages of docs/.

Documents link to files outside docs/, such as `../examples/tpch/profiles.yml`, because GitHub
follows these links. The site follows them without a network: each linked file becomes a page
(Markdown as it is, other text as code) or is copied (anything else). A linked directory becomes its
README or a list of its files.

Diagrams are drawn by a copy of mermaid that the package mermaidx ships, so that the theme doesn't
load one from the network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parents[1]
DOCS = PurePosixPath("docs")
PAGES = PurePosixPath("repository")
MERMAID = "assets/mermaid.js"

# `[text](target)`, `[label]: target`, and attributes of HTML; a target ends before `#`.
_LINK = re.compile(
    r"""(?P<before>\]\(\s*<?|^[ ]{0,3}\[[^\]]+\]:\s+<?|\b(?P<attribute>href|src|srcset)=["'])"""
    r"""(?P<target>[^\s)>"'#?]+)""",
    re.MULTILINE,
)
_CODE = re.compile(
    r"^[ ]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^[ ]*(?P=fence)[ ]*$"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?!\n))+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_WITH_A_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replaces each directory in `nav` by its pages."""
    config.nav = _expanded(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what the pages link to outside docs/, and what those pages link to in turn."""
    known = {file.src_uri for file in files}
    pages = [(file.src_uri, file.content_string) for file in files.documentation_pages()]
    while pages:
        uri, text = pages.pop()
        for path in linked_paths(text, path_of(uri).parent):
            there = uri_of(path)
            if there in known:
                continue
            known.add(there)
            file = _added_file(path, there, config)
            files.append(file)
            if _is_markdown(path):
                pages.append((there, file.content_string))
    script = resources.files("mermaidx") / "assets/mermaid.js"
    files.append(File.generated(config, MERMAID, content=script.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links to files outside docs/ at their pages."""
    return with_links_of_the_site(markdown, page.file.src_uri)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Loads our copy of mermaid on pages with diagrams; the theme then uses it."""
    if 'class="mermaid"' not in output:
        return output
    script = os.path.relpath(MERMAID, PurePosixPath(page.file.dest_uri).parent)
    return output.replace("</head>", f'<script src="{script}"></script></head>', 1)


def linked_paths(markdown: str, directory: PurePosixPath) -> list[PurePosixPath]:
    """The files and directories of the repository that a text links to.

    Args:
        directory: where the text is in the repository.
    """
    found: list[PurePosixPath | None] = []

    def note(link: re.Match[str]) -> str:
        found.append(_resolved(link["target"], directory))
        return link[0]

    _outside_code(markdown, lambda text: _LINK.sub(note, text))
    return [path for path in found if path is not None]


def with_links_of_the_site(markdown: str, uri: str) -> str:
    """The text of a page, with its links to files outside docs/ as the site has them.

    Args:
        uri: the page's place among the site's sources, such as `flow/view.md`.
    """
    source = path_of(uri)

    def replaced(link: re.Match[str]) -> str:
        path = _resolved(link["target"], source.parent)
        # MkDocs itself resolves links between files of docs/.
        if path is None or (_is_in_docs(source) and _is_in_docs(path)):
            return link[0]
        target = os.path.relpath(uri_of(path), PurePosixPath(uri).parent)
        if link["attribute"]:
            # MkDocs leaves attributes as they are.
            target = re.sub(r"\bREADME\.md$", "index.md", target)
            target = re.sub(r"\.md$", ".html", target)
        return link["before"] + quote(target)

    return _outside_code(markdown, lambda text: _LINK.sub(replaced, text))


def uri_of(path: PurePosixPath) -> str:
    """The place among the site's sources of a file or directory of the repository.

    >>> uri_of(PurePosixPath("docs/sampling.md")), uri_of(PurePosixPath("LICENSE"))
    ('sampling.md', 'repository/LICENSE.md')
    """
    if (ROOT / path).is_dir():
        path /= "README.md" if (ROOT / path / "README.md").exists() else "index.md"
    if _is_in_docs(path):
        return path.relative_to(DOCS).as_posix()
    if path.suffix != ".md" and _text_of(path) is not None:
        path = path.with_name(f"{path.name}.md")
    return (PAGES / path).as_posix()


def path_of(uri: str) -> PurePosixPath:
    """Where a Markdown source of the site is in the repository."""
    path = PurePosixPath(uri)
    return path.relative_to(PAGES) if path.is_relative_to(PAGES) else DOCS / path


def _is_in_docs(path: PurePosixPath) -> bool:
    """Whether MkDocs finds it by itself: a file of docs/, or one that docs/ lacks."""
    return path.is_relative_to(DOCS) and not (ROOT / path).is_dir() and path.name != "index.md"


def _is_markdown(path: PurePosixPath) -> bool:
    return path.suffix == ".md" or (ROOT / path).is_dir()


def _resolved(target: str, directory: PurePosixPath) -> PurePosixPath | None:
    """The path in the repository that a link means; None for an address or what isn't there."""
    if _WITH_A_SCHEME.match(target) or target.startswith("/"):
        return None
    path = PurePosixPath(os.path.normpath(directory / unquote(target)))
    return None if ".." in path.parts or not (ROOT / path).exists() else path


def _added_file(path: PurePosixPath, uri: str, config: MkDocsConfig) -> File:
    hidden = InclusionLevel.NOT_IN_NAV
    if (ROOT / path).is_dir() and PurePosixPath(uri).name == "index.md":
        return File.generated(config, uri, content=_list_of_files(path), inclusion=hidden)
    if _is_markdown(path):
        source = ROOT / path / "README.md" if (ROOT / path).is_dir() else ROOT / path
        text = source.read_text(encoding="utf-8")
        return File.generated(config, uri, content=text, inclusion=hidden)
    code = _text_of(path)
    if code is None:
        return File.generated(config, uri, abs_src_path=str(ROOT / path), inclusion=hidden)
    return File.generated(config, uri, content=_as_code(path, code), inclusion=hidden)


def _list_of_files(path: PurePosixPath) -> str:
    names = sorted(p.name for p in (ROOT / path).iterdir() if p.is_file() and p.name[0] != ".")
    lines = [f"- [{name}]({quote(name)})" for name in names]
    return "\n".join([f"# {path}", "", *lines, ""])


def _as_code(path: PurePosixPath, code: str) -> str:
    try:
        language = get_lexer_for_filename(path.name).aliases[0]
    except ClassNotFound:
        language = "text"
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`{3,}", code))])
    front_matter = "---\nsearch:\n  exclude: true\n---\n"
    return f"{front_matter}# {path}\n\n{fence}{language}\n{code.rstrip()}\n{fence}\n"


def _text_of(path: PurePosixPath) -> str | None:
    """The text of a file that is worth a page; None for data, pictures and notebooks."""
    if path.suffix in (".html", ".ipynb", ".json", ".svg"):
        return None
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def _outside_code(markdown: str, edit: Callable[[str], str]) -> str:
    """The text with all edited but its code, fenced and in backticks."""
    parts, end = [], 0
    for code in _CODE.finditer(markdown):
        parts += [edit(markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, edit(markdown[end:])])


def _expanded(item: Any) -> Any:
    if isinstance(item, dict):
        return {title: _expanded(below) for title, below in item.items()}
    if isinstance(item, list):
        return [_expanded(each) for each in item]
    if not item.endswith("/"):
        return item
    directory = ROOT / DOCS / item
    names = sorted(path.name for path in directory.glob("*.md"))
    first = [name for name in names if name == "README.md"]
    return [f"{item}{name}" for name in [*first, *(n for n in names if n != "README.md")]]
