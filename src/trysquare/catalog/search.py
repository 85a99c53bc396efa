"""ToolIndex: the tools nearest to a query. Exact names first, then BM25 over all texts of a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import is_

from trysquare.catalog.descriptions import read_authored
from trysquare.core.json import as_list, properties_of
from trysquare.core.tool import Tool
from trysquare.search.fulltext import FullTextIndex
from trysquare.search.tokenize import split_words

_EXACT = 1_000.0

NAME, TRIGGER, USE, DESCRIPTION, CATEGORY, PARAMETER, PARAMETER_TEXT = 3.0, 2.5, 1.5, 1.0, 1.5, 0.8, 0.4
"""Weight of a term by the field that holds it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A tool near to a query. Scores compare within one query only; 0 means that they share no term."""

    tool: Tool
    score: float


class ToolIndex(FullTextIndex):
    """Full-text index over the tools of a set; an update touches only what changed."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        super().__init__()
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
                self.put(name, _fields(tool))

    def search(self, query: str, *, limit: int = 5, allowed: Callable[[Tool], bool] | None = None) -> list[Match]:
        """Return the nearest tools, best first, ties by name: always as many as asked for while there are so many."""
        scores = self.scores(query)
        for name in self._names.get(_folded(query), []):
            scores[name] = _EXACT + scores.get(name, 0.0)
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        rest = ((name, 0.0) for name in sorted(self._tools.keys() - scores.keys()))
        matches = (
            Match(tool=self._tools[name], score=round(score, 6)) for part in (ranked, rest) for name, score in part
        )
        usable = matches if allowed is None else (match for match in matches if allowed(match.tool))
        return list(islice(usable, max(limit, 0)))


def _fields(tool: Tool) -> Iterator[tuple[str, float]]:
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
    return " ".join(split_words(name))
