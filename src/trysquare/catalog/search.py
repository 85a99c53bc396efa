"""ToolIndex: the tools nearest to a query. Exact names first, then words and meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import is_
from typing import Literal

from trysquare.catalog.descriptions import read_authored
from trysquare.core.json import as_list, properties_of
from trysquare.core.tool import Tool
from trysquare.search.index import SearchIndex, lead
from trysquare.search.tokenize import split_words
from trysquare.search.vectors import Vectors, default_vectors

EXACT = 1.0
"""The score of a tool whose name is the query."""

NAME, TRIGGER, USE, DESCRIPTION, CATEGORY, PARAMETER, PARAMETER_TEXT = 3.0, 2.5, 1.5, 1.0, 1.5, 0.8, 0.4
"""Weight of a term by the field that holds it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A tool near to a query. Scores compare within one query only; 0 means that they have nothing in common."""

    tool: Tool
    score: float
    likely: bool = False
    """Whether it probably does what the query asks for; else it is only the nearest there is."""

    @property
    def fit(self) -> Literal["likely", "unsure"]:
        return "likely" if self.likely else "unsure"


ALL_UNSURE = "No tool is a likely fit; these are only the nearest."
HOW_TO_ASK = "the action and its object in a few words that a tool's description would use, such as `rename file`"
ASK_AGAIN = f"ask for one thing at a time: {HOW_TO_ASK}"


def doubts(matches: Sequence[Match]) -> str | None:
    """What to say of matches of which none is likely."""
    return None if any(match.likely for match in matches) else ALL_UNSURE


def _group_of(tool: Tool) -> str:
    """What tells a tool's domain from others: its server, or what many servers write before two underscores."""
    server, parted, _ = tool.name.partition("__")
    return server_of(tool) or (server if parted else "")


def server_of(tool: Tool) -> str:
    """The MCP server behind the gateway that a tool is of, or its toolset."""
    metadata = tool.metadata
    return metadata.category if metadata.toolset == "gateway" and metadata.category else metadata.toolset


class ToolIndex(SearchIndex):
    """Index over the tools of a set; an update touches only what changed. By default the installed encoder is used."""

    def __init__(self, tools: Iterable[Tool] = (), *, vectors: Vectors | None = None) -> None:
        super().__init__(vectors or default_vectors())
        self._present: tuple[Tool, ...] = ()
        self._tools: dict[str, Tool] = {}
        self._names: dict[str, list[str]] = {}
        self.update(tools)

    def update(self, tools: Iterable[Tool]) -> None:
        """Take in the present tools: only those that are new, gone or another value than before are read."""
        present = tuple(tools)
        if len(present) == len(self._present) and all(map(is_, present, self._present)):
            return
        self._present, before = present, self._tools
        self._tools = {tool.name: tool for tool in present}
        self._names = {}
        for name in before.keys() - self._tools.keys():
            self.remove(name)
        for name, tool in self._tools.items():
            self._names.setdefault(_folded(name), []).append(name)
            if before.get(name) is not tool:
                text = " ".join([lead(read_authored(tool.description).description), tool.metadata.use_when or ""])
                words = dict.fromkeys(split_words(f"{name} {tool.title or ''}"))
                self.put_row(name, fields_of(tool), name=" ".join(words), text=text.strip(), group=_group_of(tool))

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        allowed: Callable[[Tool], bool] | None = None,
        known_for: Mapping[str, float] | None = None,
    ) -> list[Match]:
        """Return the nearest tools, best first, ties by name: always as many as asked for while there are so many."""
        near = (match for match in self._nearest(query, known_for) if allowed is None or allowed(match.tool))
        return list(islice(near, max(limit, 0)))

    def _nearest(self, query: str, known_for: Mapping[str, float] | None) -> Iterator[Match]:
        """Every tool once: exact names, then what has anything in common with the query, then the others by name."""
        exact = sorted(self._names.get(_folded(query), []))
        seen = set(exact)
        for name in exact:
            yield Match(tool=self._tools[name], score=EXACT, likely=True)
        for one in self.rank(query, known_for=known_for):
            if one.id not in seen:
                seen.add(one.id)
                yield Match(tool=self._tools[one.id], score=one.score, likely=one.likely)
        for name in sorted(self._tools.keys() - seen):
            yield Match(tool=self._tools[name], score=0.0)


def fields_of(tool: Tool) -> Iterator[tuple[str, float]]:
    """The texts by which a tool is found, and the weight of each."""
    metadata = tool.metadata
    yield tool.name, NAME
    yield tool.title or "", NAME
    yield read_authored(tool.description).description, DESCRIPTION
    yield metadata.category or "", CATEGORY
    yield metadata.use_when or "", USE
    yield " ".join((*metadata.trigger_words, *sorted(metadata.tags))), TRIGGER
    for name, schema in properties_of(tool.input_schema).items():
        yield name, PARAMETER
        choices = (choice for choice in as_list(schema.get("enum")) if isinstance(choice, str))
        yield " ".join([str(schema.get("description", "")), *choices]), PARAMETER_TEXT


def _folded(name: str) -> str:
    """One form of a name, however its words are parted."""
    return "".join(split_words(name))
