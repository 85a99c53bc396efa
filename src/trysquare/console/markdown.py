"""Markdown of others as plain values, from which a template builds elements: no markup of theirs reaches a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Style: TypeAlias = Literal["text", "strong", "em", "code", "address"]
Kind: TypeAlias = Literal["heading", "paragraph", "list", "code", "quote", "table", "rule"]
MAX_TEXT, MAX_LINES, MAX_LINE, MAX_CELLS = 200_000, 5_000, 4_000, 40
"""What is longer than one of these stays a text, as a table with more columns does."""
_MAX_SPANS = 20_000
"""Characters of a paragraph in which styles are looked for."""
_DEEPEST = 4
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_RULE = re.compile(r" {0,3}(?:-[ \t]*){3,}$| {0,3}(?:\*[ \t]*){3,}$| {0,3}(?:_[ \t]*){3,}$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|(\d{1,9})[.)])[ \t]+(?:\[([ xX])\][ \t]+)?(.*)$")
_QUOTE = re.compile(r" {0,3}> ?(.*)$")
_CELLS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_INLINE = re.compile(
    r"(?<!`)(?P<ticks>`{1,9}+)(?!`)(?P<code>.{1,1000}?)(?<!`)(?P=ticks)(?!`)"
    r"|!?\[(?P<label>[^\[\]]{0,500})\]\((?P<address>[^()\s]{0,2000})(?:\s+\"[^\"]{0,200}\")?\)"
    r"|(?P<stars>\*\*|__)(?=\S)(?P<strong>[^*_]{1,2000}?)(?<=\S)(?P=stars)"
    r"|(?<![\w*_])(?P<star>[*_])(?=\S)(?P<em>[^*_]{1,2000}?)(?<=\S)(?P=star)(?![\w*_])"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A piece of text in one style."""

    text: str
    style: Style = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One entry of a list."""

    spans: Sequence[Span]
    depth: int
    number: int | None = None
    done: bool | None = None
    """Whether the box of the entry is ticked, where it has one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A part of a page. `text` is that of code, `rows` are those of a table, its head first."""

    kind: Kind
    spans: Sequence[Span] = ()
    level: int = 0
    text: str = ""
    items: Sequence[Item] = ()
    rows: Sequence[Sequence[Sequence[Span]]] = ()


def parse_markdown(text: str) -> list[Block]:
    """The blocks of a text. HTML, and whatever else is not read here, stays text."""
    lines = text.expandtabs(4).splitlines()
    if len(text) > MAX_TEXT or len(lines) > MAX_LINES or any(len(line) > MAX_LINE for line in lines):
        return [Block(kind="code", text=text)]
    return list(_blocks(lines))


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif match := _FENCE.match(line):
            end = _end_of_fence(lines, at + 1, match[1])
            yield Block(kind="code", text="\n".join(lines[at + 1 : end]))
            at = end + 1
        elif match := _HEADING.match(line):
            yield Block(kind="heading", level=len(match[1]), spans=_spans(match[2] or ""))
            at += 1
        elif _RULE.match(line):
            yield Block(kind="rule")
            at += 1
        elif (
            0 < line.count("|") <= MAX_CELLS
            and at + 1 < len(lines)
            and "-" in lines[at + 1]
            and _CELLS.match(lines[at + 1])
        ):
            end = _end_of(lines, at + 2, lambda each: "|" in each)
            yield Block(kind="table", rows=[_cells(each) for each in (line, *lines[at + 2 : end])])
            at = end
        elif _ITEM.match(line):
            block, at = _list(lines, at)
            yield block
        elif _QUOTE.match(line):
            end = _end_of(lines, at, lambda each: _QUOTE.match(each) is not None)
            inner = [match[1] for each in lines[at:end] if (match := _QUOTE.match(each))]
            yield Block(kind="quote", spans=_spans(" ".join(inner)))
            at = end
        else:
            end = _end_of(lines, at + 1, lambda each: not _begins_block(each))
            yield Block(kind="paragraph", spans=_spans(" ".join(each.strip() for each in lines[at:end])))
            at = end


def _begins_block(line: str) -> bool:
    return any(pattern.match(line) for pattern in (_FENCE, _HEADING, _RULE, _ITEM, _QUOTE))


def _end_of(lines: Sequence[str], at: int, belongs: Callable[[str], bool]) -> int:
    """The first line from here that is empty or does not belong."""
    while at < len(lines) and lines[at].strip() and belongs(lines[at]):
        at += 1
    return at


def _end_of_fence(lines: Sequence[str], at: int, fence: str) -> int:
    while at < len(lines) and not lines[at].strip().startswith(fence):
        at += 1
    return at


def _list(lines: Sequence[str], at: int) -> tuple[Block, int]:
    """A list to its end. An entry goes on in lines that are indented; its depth is that of its indentation."""
    items: list[tuple[re.Match[str], list[str]]] = []
    while at < len(lines):
        line = lines[at]
        if match := _ITEM.match(line):
            items.append((match, [match[4]]))
        elif line.strip() and (line[0] == " " or not _begins_block(line)) and lines[at - 1].strip():
            items[-1][1].append(line.strip())
        elif line.strip() or not (at + 1 < len(lines) and _ITEM.match(lines[at + 1])):
            break
        at += 1
    indents = sorted({len(match[1]) for match, _ in items})
    found = [
        Item(
            spans=_spans(" ".join(words)),
            depth=min(indents.index(len(match[1])), _DEEPEST),
            number=None if match[2] is None else int(match[2]),
            done=None if match[3] is None else match[3] != " ",
        )
        for match, words in items
    ]
    return Block(kind="list", items=found), at


def _cells(line: str) -> list[Sequence[Span]]:
    return [_spans(each.strip().replace("\\|", "|")) for each in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _spans(text: str) -> list[Span]:
    """The pieces of a text. The address of a link is shown beside it, and leads nowhere."""
    if len(text) > _MAX_SPANS:
        return [Span(text=text)]
    found: list[Span] = []
    at = 0
    for match in _INLINE.finditer(text):
        found.append(Span(text=_plain(text[at : match.start()])))
        if match["code"] is not None:
            found.append(Span(text=match["code"], style="code"))
        elif match["label"] is not None:
            found += [Span(text=_plain(match["label"])), Span(text=f" {match['address']}", style="address")]
        elif match["strong"] is not None:
            found.append(Span(text=_plain(match["strong"]), style="strong"))
        else:
            found.append(Span(text=_plain(match["em"]), style="em"))
        at = match.end()
    return [each for each in (*found, Span(text=_plain(text[at:]))) if each.text]


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
