"""Notion's blocks: Markdown as the pieces that Notion's API takes, each within its limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject

MAX_TEXT = 2000
"""Characters of one rich text, counted as Notion's own JavaScript does: those beyond the basic plane are two."""
MAX_TEXTS = 100
"""Rich texts of one block."""
MAX_BLOCKS = 100
"""Blocks of one request."""
MAX_BYTES = 400_000
"""Bytes of the blocks of one request; Notion refuses requests above 500 kB."""

Block: TypeAlias = JsonObject

_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_BULLET = re.compile(r"\s*[-*+]\s+(.+)")
_NUMBER = re.compile(r"\s*\d{1,9}[.)]\s+(.+)")
_QUOTE = re.compile(r">\s?(.*)")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,})\s*")
_FENCE = re.compile(r"```\s*([\w+#-]*)\s*")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]{1,2000})`"
    r"|\[(?P<label>[^\[\]\n]{1,300})\]\((?P<url>https?://[^\s)]{1,1990})\)"
    r"|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|(?<!\*)\*(?P<italic>[^*\s][^*\n]*)\*(?!\*)"
)
_LANGUAGES = frozenset({
    "bash", "c", "c++", "c#", "css", "diff", "docker", "elixir", "go", "graphql", "haskell", "html", "java",
    "javascript", "json", "kotlin", "latex", "lua", "makefile", "markdown", "perl", "php", "powershell", "python", "r",
    "ruby", "rust", "scala", "shell", "sql", "swift", "typescript", "xml", "yaml",
})  # fmt: skip
_SHORT = {"py": "python", "js": "javascript", "ts": "typescript", "sh": "shell", "yml": "yaml", "cpp": "c++"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    """A stretch of text that looks the same throughout."""

    text: str
    url: str | None = None
    style: str | None = None


def markdown_blocks(text: str) -> list[Block]:
    """A Markdown text as blocks: headings, lists, quotes, code, rules and paragraphs."""
    blocks: list[Block] = []
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        fence = _FENCE.fullmatch(lines[at].strip())
        if fence is not None:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == "```"), len(lines))
            blocks += code_blocks("\n".join(lines[at + 1 : end]), fence[1])
            at = end + 1
        elif _begins_block(lines[at]):
            blocks += _line_blocks(lines[at])
            at += 1
        else:
            end = next((n for n in range(at + 1, len(lines)) if _begins_block(lines[n])), len(lines))
            blocks += text_blocks("paragraph", "\n".join(lines[at:end]))
            at = max(end, at + 1)
    return blocks


def _begins_block(line: str) -> bool:
    """Whether a line does not go on with the paragraph before it."""
    patterns = (_HEADING, _BULLET, _NUMBER, _QUOTE, _RULE, _FENCE)
    return not line.strip() or any(pattern.fullmatch(line.strip()) for pattern in patterns)


def _line_blocks(line: str) -> list[Block]:
    if not line.strip():
        return []
    if _RULE.fullmatch(line.strip()):
        return [{"object": "block", "type": "divider", "divider": {}}]
    if heading := _HEADING.fullmatch(line.strip()):
        return text_blocks(f"heading_{min(len(heading[1]), 3)}", heading[2])
    for pattern, kind in ((_BULLET, "bulleted_list_item"), (_NUMBER, "numbered_list_item"), (_QUOTE, "quote")):
        if found := pattern.fullmatch(line):
            return text_blocks(kind, found[1])
    return text_blocks("paragraph", line)


def text_blocks(kind: str, text: str) -> list[Block]:
    """A text as a block of a kind, or as several where one cannot hold it."""
    texts = rich_texts(text)
    return [_block(kind, texts[at : at + MAX_TEXTS]) for at in range(0, len(texts), MAX_TEXTS)]


def code_blocks(text: str, language: str) -> list[Block]:
    """A program text, as it is."""
    known = _SHORT.get(language.lower(), language.lower())
    texts = [_rich(piece) for piece in pieces(text)] or [_rich("")]
    named = {"language": known if known in _LANGUAGES else "plain text"}
    return [_block("code", texts[at : at + MAX_TEXTS], **named) for at in range(0, len(texts), MAX_TEXTS)]


def rich_texts(text: str) -> list[JsonObject]:
    """A line of Markdown as rich texts: bold, italic, code and links are kept."""
    return [_rich(piece, run) for run in _runs(text) for piece in pieces(run.text)]


def _runs(text: str) -> Iterator[_Run]:
    at = 0
    for found in _INLINE.finditer(text):
        if found.start() > at:
            yield _Run(text=text[at : found.start()])
        kind = str(found.lastgroup)
        yield _Run(text=found["label"], url=found["url"]) if kind == "url" else _Run(text=found[kind], style=kind)
        at = found.end()
    if at < len(text):
        yield _Run(text=text[at:])


def pieces(text: str, most: int = MAX_TEXT) -> Iterator[str]:
    """The text in pieces that Notion takes; no character is cut in two."""
    piece, length = [""], 0
    for letter in text:
        width = 2 if ord(letter) > 0xFFFF else 1
        if length + width > most:
            yield "".join(piece)
            piece, length = [], 0
        piece.append(letter)
        length += width
    if length:
        yield "".join(piece)


def batches(blocks: Iterable[Block]) -> list[list[Block]]:
    """The blocks in the requests that carry them."""
    found: list[list[Block]] = [[]]
    size = 0
    for block in blocks:
        own = len(dump_json(block).encode())
        if len(found[-1]) == MAX_BLOCKS or (found[-1] and size + own > MAX_BYTES):
            found.append([])
            size = 0
        found[-1].append(block)
        size += own
    return found


def _rich(text: str, run: _Run | None = None) -> JsonObject:
    content: JsonObject = {"content": text}
    if run is not None and run.url:
        content["link"] = {"url": run.url}
    rich: JsonObject = {"type": "text", "text": content}
    if run is not None and run.style:
        rich["annotations"] = {run.style: True}
    return rich


def _block(kind: str, texts: Sequence[JsonObject], **more: str) -> Block:
    return {"object": "block", "type": kind, kind: {"rich_text": list(texts), **more}}
