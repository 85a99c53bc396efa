"""Pages: the Markdown files of the project, their code blocks, headings and links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE_SPAN = re.compile(r"`[^`]*`")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block: what language it claims, what its marks say, and its text."""

    page: str
    line: int
    language: str
    marks: dict[str, str]
    text: str

    @property
    def place(self) -> str:
        """Where a reader finds the block."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Page:
    """One Markdown file, read once."""

    path: Path
    text: str
    blocks: tuple[Block, ...]
    prose: tuple[tuple[int, str], ...] = field(repr=False)
    """The lines outside of the blocks, with their numbers."""

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.name

    def links(self) -> Iterator[tuple[int, str]]:
        """Every link with its line."""
        for number, line in self.prose:
            for found in _LINK.finditer(_CODE_SPAN.sub("", line)):
                yield number, found["target"]

    def anchors(self) -> set[str]:
        """The anchors of the headings, as GitHub makes them."""
        found: dict[str, int] = {}
        anchors: set[str] = set()
        for _, line in self.prose:
            if heading := _HEADING.match(line):
                anchor = _anchor(heading["text"])
                seen = found.get(anchor, 0)
                found[anchor] = seen + 1
                anchors.add(f"{anchor}-{seen}" if seen else anchor)
        return anchors


def _anchor(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def read_page(path: Path) -> Page:
    """Read a Markdown file into its parts."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    text = path.read_text(encoding="utf-8")
    blocks, prose = _split(name, text)
    return Page(path=path, text=text, blocks=tuple(blocks), prose=tuple(prose))


def _split(name: str, text: str) -> tuple[list[Block], list[tuple[int, str]]]:
    blocks: list[Block] = []
    prose: list[tuple[int, str]] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            prose.append((number, line))
            continue
        body = _body(lines, fence["ticks"], len(fence["indent"]), f"{name}:{number}")
        language, marks = _info(fence["info"], f"{name}:{number}")
        blocks.append(Block(page=name, line=number, language=language, marks=marks, text=body))
    return blocks, prose


def _body(lines: Iterator[tuple[int, str]], ticks: str, indent: int, place: str) -> str:
    body: list[str] = []
    for _, line in lines:
        if re.fullmatch(rf" *{re.escape(ticks[0])}{{{len(ticks)},}} *", line):
            return "".join(f"{kept}\n" for kept in body)
        body.append(line[indent:] if line[:indent].strip() == "" else line)
    raise AssertionError(f"{place}: this block is never closed")


def _info(info: str, place: str) -> tuple[str, dict[str, str]]:
    """`python title="a.py" append` as a language and its marks."""
    words = shlex.split(info)
    if not words:
        raise AssertionError(f"{place}: a block must name its language; `text` is for what is neither run nor parsed")
    language, *rest = words
    pairs = (word.partition("=") for word in rest)
    return language, {name: value for name, _, value in pairs}


def run_pages() -> list[Path]:
    """The pages whose blocks are run: what a user reads and copies from."""
    examples = [path for path in (ROOT / "examples").rglob("README.md") if "node_modules" not in path.parts]
    templates = (ROOT / "src").rglob("README.md")
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *examples, *templates]
    return sorted(found)


def all_pages() -> list[Path]:
    """Every page that we wrote, for the checks of links."""
    return sorted({*run_pages(), *ROOT.glob("*.md")})
