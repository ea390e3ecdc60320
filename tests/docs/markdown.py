"""The fenced code blocks of a Markdown page."""

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_COMMENT = re.compile(r"^(?:--|#)\s+(\S+\.(?:sql|yml|py))$")
_CONTINUATION = re.compile(r"\\\n\s*")


@dataclass(frozen=True)
class CodeBlock:
    """A block, where it stands, and its language as the fence names it."""

    language: str
    text: str
    line: int

    @property
    def file_name(self) -> str | None:
        """The file that the block shows, from a comment in its first line: `-- models/a.sql`."""
        found = _FILE_COMMENT.match(self.text.partition("\n")[0])
        return found.group(1) if found else None

    def commands(self) -> list[tuple[str, list[str]]]:
        """Of a console block: each command after `$ `, with the lines of output under it."""
        commands: list[tuple[str, list[str]]] = []
        for line in _CONTINUATION.sub(" ", self.text).splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif line.strip():
                commands[-1][1].append(line)
        return commands


def code_blocks(page: Path) -> list[CodeBlock]:
    """All fenced blocks of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    return [
        CodeBlock(found.group(1), found.group(2), text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def missing_line(expected: list[str], output: str) -> str | None:
    """The first expected line that the output lacks, in order; `…` stands for any text.

    >>> missing_line(["a … c", "d"], "x a b c\\nd")
    >>> missing_line(["d", "a"], "a\\nd")
    'a'
    """
    rest = iter(plain(output).splitlines())
    for line in expected:
        pattern = re.compile(".*".join(re.escape(part) for part in line.strip().split("…")))
        if not any(pattern.search(candidate) for candidate in rest):
            return line
    return None


def plain(output: str) -> str:
    """The text without the codes that colour a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", output)
