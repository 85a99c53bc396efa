"""What the weights of search are learned on: training parts of public sets, and the practice requests of the tests.

The split is made before anything is learned, by the request's own text: a fifth of MetaTool's requests is never learned
from, nor is any request that stands in the directory of measuring sets. Of Seal-Tools the development file is read,
which has no request of its test files; of BFCL what is not live, and the even half of what is.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.discovery_sets import Entry, Query, bfcl_questions, read_sets
from tests.gateway.requests.reading import read_practice, read_requests, read_servers

HELD_OUT = 5
"""One request of so many is never learned from."""
MOST = {"MetaTool": 300, "MetaTool, several tools": 100, "Seal-Tools": 40, "BFCL": 100}
"""Of each source, the first by digest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSet:
    """Tools, requests with the tools that are right, and requests that nothing answers."""

    name: str
    entries: Sequence[Entry]
    asked: Sequence[Query]
    unanswerable: Sequence[str] = ()

    @property
    def digest(self) -> str:
        """Of every request, so that two runs can be seen to have learned from the same."""
        every = [*(query for query, _ in self.asked), *self.unanswerable]
        return hashlib.sha256("\n".join(every).encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True, slots=True)
class Questions:
    """BFCL's questions with their functions: those that a function answers, and those that none does."""

    able: Sequence[tuple[str, Sequence[Entry]]]
    unable: Sequence[tuple[str, Sequence[Entry]]]


def is_held_out(request: str) -> bool:
    """Whether a request is on the measuring side, by its own text; it never changes sides."""
    return int.from_bytes(_digest(request)[:4]) % HELD_OUT == 0


def read_training(sources: Path | None, measured: Path | None) -> Iterator[TrainingSet]:
    """The training parts: the practice requests always, clones of the public sources where they are."""
    yield from _practice()
    never = {query for _, _, asked in read_sets(measured) for query, _ in asked}
    if sources is not None and (folder := sources / "MetaTool" / "dataset").is_dir():
        yield from _metatool(folder, never)
    if sources is not None and (folder := sources / "Seal-Tools" / "Seal-Tools_Dataset").is_dir():
        yield _seal(folder, never)


def read_questions(wheel: Path) -> Questions:
    """BFCL's training half."""
    able = [
        *bfcl_questions(wheel, ("live_simple", "live_multiple"), half=0),
        *bfcl_questions(wheel, ("simple_python", "multiple"), half=0),
    ]
    unable = [*bfcl_questions(wheel, ("live_irrelevance",), half=0), *bfcl_questions(wheel, ("irrelevance",), half=0)]
    return Questions(able=_first(able, MOST["BFCL"]), unable=_first(unable, MOST["BFCL"]))


def _practice() -> Iterator[TrainingSet]:
    entries = [
        Entry(id=f"{server}.{one.name}", server=server, name=one.name, description=one.description,
              schema=one.input_schema)
        for server, tools in read_servers().items() for one in tools
    ]  # fmt: skip
    practice = read_practice()
    everyday = [(one.text, one.wanted) for one in practice if one.kind == "everyday"]
    impossible = [one.text for one in practice if one.kind == "impossible"]
    keyword = [(one.text, one.wanted) for one in read_requests() if one.kind == "keyword" and not one.is_held_out]
    yield TrainingSet(name="everyday", entries=entries, asked=everyday, unanswerable=impossible)
    yield TrainingSet(name="keyword", entries=entries, asked=keyword)


def _metatool(folder: Path, never: set[str]) -> Iterator[TrainingSet]:
    described = {**_json(folder / "plugin_des.json"), **_json(folder / "big_tool_des.json")}
    entries = [_entry("plugins", name, text) for name, text in described.items()]
    with (folder / "data" / "all_clean_data.csv").open(encoding="utf-8", newline="") as file:
        single = [(row["Query"], [row["Tool"]]) for row in csv.DictReader(file)]
    several = [(one["query"], one["tool"]) for one in _json(folder / "data" / "multi_tool_query_golden.json")]
    for name, rows in (("MetaTool", single), ("MetaTool, several tools", several)):
        yield TrainingSet(name=name, entries=entries, asked=_trained(rows, entries, never, MOST[name]))


def _seal(folder: Path, never: set[str]) -> TrainingSet:
    entries = [_entry("seal", one["api_name"], one["api_description"]) for one in _lines(folder / "tool.jsonl")]
    rows = [(one["query"], [call["api"] for call in one["calling"]]) for one in _lines(folder / "dev.jsonl")]
    return TrainingSet(
        name="Seal-Tools", entries=entries, asked=_trained(rows, entries, never, MOST["Seal-Tools"], held_out=False)
    )


def _trained(
    rows: Sequence[tuple[str, Sequence[str]]],
    entries: Sequence[Entry],
    never: set[str],
    most: int,
    *,
    held_out: bool = True,
) -> list[Query]:
    ids = {one.name: one.id for one in entries}
    found = [
        (query, frozenset(ids[name] for name in names))
        for query, names in rows
        if query not in never and not (held_out and is_held_out(query)) and names and all(name in ids for name in names)
    ]
    return _first(found, most)


def _first(rows: Sequence[Any], most: int) -> list[Any]:
    """As many as wanted, chosen by the digests of their requests."""
    return sorted(rows, key=lambda row: _digest(row[0]))[:most]


def _entry(server: str, name: str, description: str) -> Entry:
    return Entry(id=f"{server}.{name}", server=server, name=name, description=description, schema={"type": "object"})


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
