"""Public sets for measuring search: requests with the tools that are right, and questions that no tool answers.

`make data` brings a wheel with BFCL's questions. Further sets are read from the directory in TRYSQUARE_SEARCH_DATA:
`NAME.tools.jsonl` (server, name, description, inputSchema) and `NAME.queries.jsonl` (query, tools as `server.tool`).
"""

from __future__ import annotations

import json
import math
import os
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.tables import Table
from tests.gateway.requests.reading import read_other_requests, read_requests, read_servers
from trysquare.catalog.search import fields_of
from trysquare.core.json import JsonObject
from trysquare.core.signature import PassthroughArguments
from trysquare.core.tool import Tool
from trysquare.search import SearchIndex, Vectors, installed_vectors, lead
from trysquare.search.tokenize import split_words

DATA = Path(__file__).parents[1] / "bfcl"
VARIABLE = "TRYSQUARE_SEARCH_DATA"
FIRST = (1, 5, 10)
MOST_QUESTIONS = 400
"""Of each kind, of BFCL: half an hour would bring no other figure."""

Finding: TypeAlias = Callable[[str], Sequence[str]]
Query: TypeAlias = tuple[str, frozenset[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A tool of a set."""

    id: str
    server: str
    name: str
    description: str
    schema: JsonObject

    def tool(self) -> Tool:
        async def call(arguments: JsonObject, context: object) -> Any:
            raise AssertionError("tools of a set are found, not called")

        # Names of the sets are longer and stranger than those of tools; what is searched are their words.
        named = "".join(letter if letter.isalnum() else "_" for letter in f"{self.server}_{self.name}")[:64].strip("_")
        arguments = PassthroughArguments(wire=self.schema)
        return Tool(name=named or "tool", description=self.description, arguments=arguments, call=call)


@dataclass(slots=True)
class PublicResults:
    """Recall in the first 1, 5 and 10 by set and system, and how `unsure` separates; all in percent but the AUC."""

    recall: dict[tuple[str, str], tuple[float, ...]] = field(default_factory=dict[tuple[str, str], tuple[float, ...]])
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    unsure: list[list[str]] = field(default_factory=list[list[str]])
    cost: list[list[str]] = field(default_factory=list[list[str]])


def read_sets(folder: Path | None) -> Iterator[tuple[str, list[Entry], list[Query]]]:
    """The sets of a directory, by name."""
    for file in sorted(folder.glob("*.tools.jsonl")) if folder is not None else ():
        name = file.name.removesuffix(".tools.jsonl")
        entries = [
            Entry(
                id=f"{one['server']}.{one['name']}",
                server=one["server"],
                name=one["name"],
                description=one.get("description") or "",
                schema=one.get("inputSchema") or {"type": "object"},
            )
            for one in _lines(file)
        ]
        asked = [(one["query"], frozenset(one["tools"])) for one in _lines(file.with_name(f"{name}.queries.jsonl"))]
        yield name, entries, asked


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def index_of(entries: Sequence[Entry], vectors: Vectors | None) -> SearchIndex:
    """The entries as the index of tools has them, under the ids of their set."""
    return fill_index(SearchIndex(vectors), entries, vectors)


def fill_index(index: SearchIndex, entries: Sequence[Entry], vectors: Vectors | None) -> SearchIndex:
    """Put the entries into an index, and wait for their vectors."""
    for one in entries:
        tool = one.tool()
        name = " ".join(dict.fromkeys(split_words(f"{one.server} {one.name}")))
        index.put_row(one.id, fields_of(tool), name=name, text=lead(one.description), group=one.server)
    if vectors is not None and entries:
        for _ in index.rank("tool"):
            break
        vectors.wait(3_600)
    return index


def plain_bm25(entries: Sequence[Entry]) -> Finding:
    """BM25 over the lower-case words of name and description, as it is in textbooks."""
    rows = [Counter(split_words(f"{one.server} {one.name} {one.description}")) for one in entries]
    mean = sum(map(Counter.total, rows)) / len(rows)
    holding = Counter(word for row in rows for word in row)

    def find(query: str) -> Sequence[str]:
        scores = [0.0] * len(rows)
        for word in set(split_words(query)) & holding.keys():
            rarity = math.log(1 + (len(rows) - holding[word] + 0.5) / (holding[word] + 0.5))
            for place, row in enumerate(rows):
                if count := row[word]:
                    scores[place] += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * row.total() / mean))
        order = sorted(range(len(rows)), key=lambda place: -scores[place])
        return [entries[place].id for place in order[: FIRST[-1]]]

    return find


def encoder_alone(entries: Sequence[Entry], vectors: Vectors) -> Finding:
    """The cosine of the request with name and description, and nothing else."""
    texts = [f"{' '.join(split_words(f'{one.server} {one.name}'))}: {one.description}" for one in entries]
    vectors.request(texts)
    vectors.wait(3_600)
    matrix = vectors.of(texts)

    def find(query: str) -> Sequence[str]:
        asked = vectors.of_query((query,))
        assert asked is not None
        near = (matrix @ asked[0]).tolist()
        order = sorted(range(len(near)), key=lambda place: -near[place])
        return [entries[place].id for place in order[: FIRST[-1]]]

    return find


def ours(index: SearchIndex) -> Finding:
    return lambda query: [one.id for one, _ in zip(index.rank(query), range(FIRST[-1]), strict=False)]


def recall(find: Finding, asked: Sequence[Query]) -> tuple[float, ...]:
    totals = [0.0] * len(FIRST)
    for query, wanted in asked:
        found = find(query)
        for place, first in enumerate(FIRST):
            totals[place] += len(wanted & set(found[:first])) / len(wanted)
    return tuple(100 * total / len(asked) for total in totals)


def removed(index: SearchIndex, asked: Sequence[Query]) -> tuple[float, float]:
    """Of the right tools in five, how many are likely; and with them taken away, how often all five are unsure."""
    right = likely = unsure = 0
    for query, wanted in asked:
        ranked = list(index.rank(query))
        hits = [one for one in ranked[:5] if one.id in wanted]
        right += bool(hits)
        likely += any(one.likely for one in hits)
        unsure += not any(one.likely for one in [one for one in ranked if one.id not in wanted][:5])
    return 100 * likely / max(right, 1), 100 * unsure / len(asked)


def bfcl_questions(wheel: Path, names: Sequence[str], *, half: int = 1) -> list[tuple[str, list[Entry]]]:
    """The odd half of BFCL's live questions, each with its own functions; the even half, 0, is learned from."""
    found: list[tuple[str, list[Entry]]] = []
    with zipfile.ZipFile(wheel) as archive:
        for name in names:
            lines = archive.read(f"bfcl_eval/data/BFCL_v4_{name}.json").decode().splitlines()
            for line in lines[half::2]:
                one = json.loads(line)
                text = " ".join(each["content"] for each in one["question"][0] if each["role"] == "user")
                functions = [
                    Entry(
                        id=each["name"],
                        server="",
                        name=each["name"],
                        description=each["description"],
                        schema={"type": "object", "properties": each["parameters"].get("properties", {})},
                    )
                    for each in one["function"]
                ]
                if functions:
                    found.append((text, functions))
    return found


def separation(wheel: Path, vectors: Vectors | None) -> tuple[float, int, int]:
    """The AUC of the best function's confidence: questions with a right function beside those without."""
    able = bfcl_questions(wheel, ("live_simple", "live_multiple"))[::2][:MOST_QUESTIONS]
    unable = bfcl_questions(wheel, ("live_irrelevance",))[:MOST_QUESTIONS]
    scores = [_confidence(index_of(functions, vectors), text) for text, functions in (*able, *unable)]
    return auc(scores[: len(able)], scores[len(able) :]), len(able), len(unable)


def _confidence(index: SearchIndex, text: str) -> float:
    return next((one.confidence for one in index.rank(text)), -1.0)


def auc(high: Sequence[float], low: Sequence[float]) -> float:
    """How often one of the first is above one of the others."""
    wins = sum((one > other) + 0.5 * (one == other) for one in high for other in low)
    return wins / (len(high) * len(low))


def measure_public(
    results: PublicResults, peer: Callable[[Sequence[Entry], Sequence[str]], Mapping[str, Sequence[str]]]
) -> None:
    """Everything that is there: sets, encoder, BFCL."""
    vectors = installed_vectors()
    given = os.environ.get(VARIABLE)
    if vectors is not None:
        _measure_own(results, vectors)
    for name, entries, asked in read_sets(Path(given) if given else None):
        results.sizes[name] = (len(entries), len(asked))
        words = index_of(entries, None)
        systems: dict[str, Finding] = {"words": ours(words), "plain BM25": plain_bm25(entries)}
        answers = peer(entries, [query for query, _ in asked])
        systems["FastMCP BM25"] = answers.__getitem__
        if vectors is not None:
            both = index_of(entries, vectors)
            systems |= {"words and meaning": ours(both), "encoder alone": encoder_alone(entries, vectors)}
            if all(len(wanted) == 1 for _, wanted in asked):
                kept, refused = removed(both, asked)
                results.unsure.append([f"{name}: right tools that stay likely", str(len(asked)), f"{kept:.0f}%"])
                results.unsure.append([f"{name}: unsure once they are taken away", str(len(asked)), f"{refused:.0f}%"])
        results.recall |= {(name, system): recall(find, asked) for system, find in systems.items()}
    for wheel in sorted(DATA.glob("bfcl_eval-*.whl"))[-1:]:
        for system, used in (("words", None), ("words and meaning", vectors)):
            if system == "words" or used is not None:
                area, able, unable = separation(wheel, used)
                results.unsure.append([f"BFCL live, odd half, {system}: AUC", f"{able} + {unable}", f"{area:.3f}"])
    results.cost = [*_costs(None), *(_costs(vectors) if vectors is not None else [])]


def _measure_own(results: PublicResults, vectors: Vectors) -> None:
    """The ten servers of the tests by words and meaning: the requests that nothing was learned from."""
    entries = [
        Entry(id=f"{server}.{one.name}", server=server, name=one.name, description=one.description,
              schema=one.input_schema)
        for server, tools in read_servers().items() for one in tools
    ]  # fmt: skip
    kept = [*(one for one in read_requests() if one.is_held_out), *read_other_requests()]
    index = index_of(entries, vectors)
    for kind in ("keyword", "everyday", "impossible"):
        asked = [one for one in kept if one.kind == kind]
        top = [list(islice(index.rank(one.text), 5)) for one in asked]
        hits = [[each for each in near if each.id in one.wanted] for one, near in zip(asked, top, strict=True)]
        found, surely = sum(map(bool, hits)), sum(any(each.likely for each in some) for some in hits)
        unsure = sum(not any(each.likely for each in near) for near in top)
        if kind == "impossible":
            results.unsure.append(["ten servers: nothing fits, and all five are unsure", *_of(unsure, len(asked))])
        else:
            results.unsure.append([f"ten servers, {kind}: found among five", *_of(found, len(asked))])
            results.unsure.append([f"ten servers, {kind}: found ones that are likely", *_of(surely, found)])


def _of(part: int, whole: int) -> tuple[str, str]:
    return str(whole), f"{part / max(whole, 1):.0%}"


def _costs(vectors: Vectors | None) -> Iterator[list[str]]:
    """CPU over many tools: of building, of the first answer, and of a query once everything is there."""
    for count in (1_000, 10_000):
        entries = list(_many(count))
        start = time.process_time()
        index = fill_index(SearchIndex(vectors), entries, None)
        built, find = time.process_time() - start, ours(index)
        # What computes vectors meanwhile is another thread, which this answer does not wait for.
        start = time.thread_time()
        find("rename the invoice of workspace 7")
        first = time.thread_time() - start
        if vectors is not None:
            vectors.wait(3_600)
        find("warm up")
        queries = [f"{action} the {thing} number {count}" for action in _ACTIONS for thing in _OBJECTS[:3]]
        start = time.process_time()
        for query in queries:
            find(query)
        spent = (time.process_time() - start) / len(queries)
        system = "words" if vectors is None else "words and meaning"
        yield [f"{count:,}", system, *(f"{1_000 * each:.1f} ms" for each in (built, first, spent))]


_OBJECTS = ("file", "issue", "invoice", "mail", "branch", "city", "meeting", "user", "table", "page")
_ACTIONS = ("create", "delete", "rename", "list", "search", "send", "share", "archive", "count", "export")


def _many(count: int) -> Iterator[Entry]:
    """Tools of which most differ in one word, a hundred of each server."""
    for number in range(count):
        action, thing = _ACTIONS[number % 10], _OBJECTS[number // 10 % 10]
        yield Entry(
            id=f"{number}",
            server=f"server{number // 100}",
            name=f"{action}_{thing}",
            description=f"{action} a {thing} of workspace {number // 100}",
            schema={"type": "object", "properties": {"name": {"type": "string"}}},
        )


def public_tables(results: PublicResults) -> Iterator[Table]:
    if results.recall:
        order = ("words and meaning", "words", "encoder alone", "plain BM25", "FastMCP BM25")
        rows = [
            [
                f"{name} ({tools:,} tools, {asked:,} requests)",
                system,
                *(f"{share:.1f}" for share in results.recall[name, system]),
            ]
            for name, (tools, asked) in results.sizes.items()
            for system in order
            if (name, system) in results.recall
        ]
        yield Table(title="Public sets: recall", head=["set", "system", "in 1", "in 5", "in 10"], rows=rows)
    if results.unsure:
        yield Table(title="How `unsure` separates", head=["measured", "requests", "result"], rows=results.unsure)
    if results.cost:
        head = ["tools", "compared", "building", "first answer", "a query"]
        yield Table(title="CPU of building and asking", head=head, rows=results.cost)
