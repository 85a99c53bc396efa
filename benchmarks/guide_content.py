"""`get_content` under load: our guide and the original over the same documents, with the same requests, over stdio."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measures import Load, cpu_seconds, running
from benchmarks.peers.known import ROOT, Start
from benchmarks.peers.mcp_guide_environment import Original
from benchmarks.stdio_client import StdioClient
from benchmarks.workload import HANDSHAKE, request


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """A folder of content: so many categories with so many documents each."""

    categories: int
    documents: int

    @property
    def total(self) -> int:
        return self.categories * self.documents

    def __str__(self) -> str:
        areas = "1 category" if self.categories == 1 else f"{self.categories} categories"
        return f"{self.total:,} documents in {areas}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """An expression, and texts that its answer must hold."""

    expression: str
    holds: tuple[str, ...]


def write_content(folder: Path, layout: Layout) -> None:
    """Write the documents: some headings, some lines, and front matter with a tag."""
    for category in range(layout.categories):
        area = folder / f"area{category:02d}"
        area.mkdir(parents=True)
        for number in range(layout.documents):
            (area / f"note-{number:05d}.md").write_text(_document(category, number), encoding="utf-8")


def _document(category: int, number: int) -> str:
    head = f"---\ntitle: Note {number}\ntags: [tag{number % 500}]\n---\n\n# {_mark(category, number)}\n\n"
    rules = "".join(f"- Rule {line} of note {number}: say what a reader needs, and no more.\n" for line in range(12))
    return head + rules


def _mark(category: int, number: int) -> str:
    return f"Mark {category}.{number}."


def named_documents(layout: Layout, turn: int) -> Asked:
    """Three documents by name, of two categories: another three each time."""
    one, other = turn % layout.categories, (turn * 7 + 3) % layout.categories
    first, second, third = (
        turn * 13 % layout.documents,
        (turn * 13 + 1) % layout.documents,
        turn * 5 % layout.documents,
    )
    expression = f"area{one:02d}/note-{first:05d}+note-{second:05d},area{other:02d}/note-{third:05d}"
    return Asked(expression=expression, holds=(_mark(one, first), _mark(one, second), _mark(other, third)))


def wildcard(layout: Layout, turn: int) -> Asked:
    """Ten documents by a pattern."""
    area, ten = turn % layout.categories, turn * 3 % (layout.documents // 10)
    return Asked(expression=f"area{area:02d}/note-{ten:04d}*", holds=(_mark(area, ten * 10), _mark(area, ten * 10 + 9)))


def tagged_and_excluded(layout: Layout, turn: int) -> Asked:
    """Every document with a tag, without one of them."""
    tag = turn % 500
    return Asked(expression=f"#tag{tag},-area00/note-{tag + 500:05d}", holds=(_mark(0, tag), _mark(0, tag + 1000)))


def whole_category(layout: Layout, turn: int) -> Asked:
    """All documents of a category."""
    area = turn % layout.categories
    return Asked(expression=f"area{area:02d}", holds=(_mark(area, 0), _mark(area, layout.documents - 1)))


Asking = Callable[[Layout, int], Asked]


class GuideClient:
    """Asks one guide server for content and checks what comes."""

    def __init__(self, client: StdioClient, wrap: Callable[[dict[str, Any]], dict[str, Any]], prefix: str) -> None:
        self._client, self._wrap, self._prefix = client, wrap, prefix
        self._number = 0
        self._answer(0)

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return the text of its answer."""
        self._number += 1
        params = {"name": self._prefix + tool, "arguments": self._wrap(arguments)}
        self._client.send(request(self._number, "tools/call", params, HANDSHAKE))
        answer = self._answer(self._number)
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{tool} failed: {str(answer)[:500]}")
        return answer["result"]["content"][0]["text"]

    def _answer(self, number: int) -> dict[str, Any]:
        """The answer of that number. What the server itself asks for, such as roots, this client has not."""
        while True:
            for raw in self._client.lines():
                message = json.loads(raw) if raw.strip() else {}
                if "method" in message and "id" in message:
                    refusal = {"code": -32601, "message": "not supported"}
                    self._client.send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
                elif message.get("id") == number:
                    return message

    def ask(self, asked: Asked) -> None:
        """Fetch content and hold the answer against what it must hold."""
        text = self.call("get_content", {"expression": asked.expression})
        for mark in asked.holds:
            if mark not in text:
                raise RuntimeError(f"the answer to {asked.expression} lacks {mark!r}: {text[:300]}")


def our_start(content: Path, project: Path) -> Start:
    """Our server over the content."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "XDG_STATE_HOME": str(project / "user-state")}
    words = ["-m", "trysquare", "serve", "--guide", str(content), "--project", str(project)]
    return Start(command=[sys.executable, *words], environment=environment)


def original_start(found: Original, content: Path, project: Path) -> Start:
    """The original over the same content. It looks nothing up on the network while it is measured."""
    environment = {
        **os.environ,
        "HOME": str(project),
        "XDG_CONFIG_HOME": str(project / "config"),
        "FASTMCP_CHECK_FOR_UPDATES": "off",
        "FASTMCP_SHOW_SERVER_BANNER": "false",
    }
    words = ["stdio", "--configdir", str(project / "config"), "--docroot", str(content), "--log-level", "error"]
    # It takes its project from the folder that it is started in, and nobody reads here what it writes on its stderr.
    shell = ["sh", "-c", 'cd "$1" && shift && exec "$@" 2>/dev/null', "sh", str(project)]
    return Start(command=[*shell, str(found.command), *words], environment=environment)


def our_load(content: Path, project: Path, layout: Layout, asking: Asking, seconds: float) -> Load:
    """What our server uses for `get_content`."""
    with running(our_start(content, project), piped=True) as process:
        guide = GuideClient(StdioClient(process), dict, "guide_")
        return _measured(guide, process.pid, layout, asking, seconds)


def original_load(
    found: Original, content: Path, project: Path, layout: Layout, asking: Asking, seconds: float
) -> Load:
    """What the original uses for the same. Its project keeps its categories from one start to the next."""
    is_configured = (project / "config" / "config.yaml").exists()
    with running(original_start(found, content, project), piped=True) as process:
        guide = GuideClient(StdioClient(process), lambda arguments: {"args": arguments}, "")
        if not is_configured:
            _add_categories(guide, layout)
        return _measured(guide, process.pid, layout, asking, seconds)


def _add_categories(guide: GuideClient, layout: Layout) -> None:
    for number in range(layout.categories):
        name = f"area{number:02d}"
        entry = {"type": "category", "name": name, "dir": name, "patterns": ["*.md"]}
        guide.call("category_collection_add", entry)


def _measured(guide: GuideClient, process: int, layout: Layout, asking: Asking, seconds: float) -> Load:
    """Every category is asked for once before the clock starts; then one call after the other."""
    for turn in range(layout.categories + 3):
        guide.ask(asking(layout, turn))
    before, started = cpu_seconds(process), time.monotonic()
    calls = 0
    while calls < 5 or time.monotonic() < started + seconds:
        guide.ask(asking(layout, layout.categories + 3 + calls))
        calls += 1
    return Load(calls=calls, seconds=time.monotonic() - started, cpu=cpu_seconds(process) - before)
