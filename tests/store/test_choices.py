"""What was called after a search ranks a little higher in the next one: bounded, inspectable, erasable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from trysquare import Tools, Toolset, call_tool
from trysquare.catalog import with_catalog
from trysquare.cli.main import main
from trysquare.store import LazyDatabase, project_state
from trysquare.store.choices import Choice, StoredChoices

tools = Tools()


@tools.tool
def archive_invoice(number: int) -> str:
    """Store an invoice."""
    return f"archived {number}"


@tools.tool
def book_invoice(number: int) -> str:
    """Store an invoice."""
    return f"booked {number}"


@tools.tool
def weather(city: str) -> str:
    """Weather of a city."""
    return city


@pytest.fixture
def choices(tmp_path: Path) -> Iterator[StoredChoices]:
    with closing(LazyDatabase(project_state(tmp_path))) as state:
        yield StoredChoices(state)


async def _found(toolset: Toolset, query: str) -> list[str]:
    result = await call_tool(toolset, "find_tools", {"query": query})
    return [one["name"] for one in result.value or []]


async def _call(toolset: Toolset, name: str) -> None:
    arguments = {"city": "Oslo"} if name == "weather" else {"number": 1}
    await call_tool(toolset, "call_tool", {"name": name, "arguments": arguments})


async def test_a_tool_that_was_called_after_a_search_comes_first_the_next_time(choices: StoredChoices) -> None:
    toolset = with_catalog(tools.toolset(), choices)
    assert (await _found(toolset, "store an invoice"))[:2] == ["archive_invoice", "book_invoice"]
    await _call(toolset, "book_invoice")
    assert (await _found(toolset, "store an invoice"))[:2] == ["book_invoice", "archive_invoice"]
    assert (await _found(toolset, "weather"))[0] == "weather"
    assert {one.tool for one in choices.all()} == {"book_invoice"}


async def test_nothing_is_kept_unless_it_is_switched_on_and_of_calls_without_a_search(choices: StoredChoices) -> None:
    plain = with_catalog(tools.toolset())
    await _found(plain, "store an invoice")
    await _call(plain, "book_invoice")
    learning = with_catalog(tools.toolset(), choices)
    await _call(learning, "book_invoice")
    await _found(learning, "weather")
    await call_tool(learning, "call_tool", {"name": "weather", "arguments": {"wrong": 1}})
    assert choices.all() == []


def test_choices_do_not_grow_without_end(choices: StoredChoices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trysquare.store.choices.MOST_CHOICES", 3)
    for number in range(5):
        choices.record([f"term{number}"], "weather")
    assert {one.term for one in choices.all()} == {"term2", "term3", "term4"}


def test_choices_are_shown_and_forgotten_by_a_command(
    tmp_path: Path, choices: StoredChoices, capsys: pytest.CaptureFixture[str]
) -> None:
    choices.record(["invoice"], "book_invoice")
    choices.record(["invoice"], "book_invoice")
    assert choices.all() == [Choice("invoice", "book_invoice", 2)]
    assert main(["list", "--choices", "--json", "--project", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == [{"term": "invoice", "tool": "book_invoice", "count": 2}]
    assert main(["list", "--forget-choices", "--project", str(tmp_path)]) == 0
    assert choices.all() == []
