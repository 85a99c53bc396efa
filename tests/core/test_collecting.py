"""Iterators that a tool returns arrive whole, or the answer says why not."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import ChainMap, UserList
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from mcp import Client
from pydantic import BaseModel

from tests.in_process import in_process
from trysquare import CallContext, Declarations, ErrorCode, Resource, Result, StaticToolset, tool
from trysquare.core import iterators as collecting
from trysquare.core.errors import DeadlineExceeded
from trysquare.core.resources import resource
from trysquare.middleware.pagination import paginate_results
from trysquare.testing import call, make_context


@dataclass(frozen=True)
class Held:
    name: str
    parts: Any


class Model(BaseModel):
    name: str
    parts: Any
    typed: Iterable[int] | None = None


class Named(NamedTuple):
    name: str
    parts: Any


def numbers() -> Iterator[int]:
    yield from range(3)


async def numbers_async() -> AsyncIterator[int]:
    for number in range(3):
        await asyncio.sleep(0)
        yield number


class Later:
    """An asynchronous iterator that is no generator."""

    def __init__(self) -> None:
        self._left = iter(range(3))

    def __aiter__(self) -> Later:
        return self

    async def __anext__(self) -> int:
        try:
            return next(self._left)
        except StopIteration:
            raise StopAsyncIteration from None


THREE = [0, 1, 2]
FORMS: dict[str, tuple[Callable[[], Any], Any]] = {
    "generator": (numbers, THREE),
    "expression": (lambda: (number for number in range(3)), THREE),
    "map": (lambda: map(int, "012"), THREE),
    "zip": (lambda: zip("ab", range(2), strict=True), [["a", 0], ["b", 1]]),
    "filter": (lambda: filter(None, [1, 0, 2]), [1, 2]),
    "reversed": (lambda: reversed(THREE), [2, 1, 0]),
    "keys": (lambda: {"a": 1}.keys(), ["a"]),
    "values": (lambda: {"a": numbers()}.values(), [THREE]),
    "items": (lambda: {"a": 1}.items(), [["a", 1]]),
    "range": (lambda: range(3), THREE),
    "proxy": (lambda: MappingProxyType({"a": numbers()}), {"a": THREE}),
    "chain map": (lambda: ChainMap({"a": 1}), {"a": 1}),
    "user list": (lambda: UserList([1]), [1]),
    "nested": (lambda: {"a": [numbers(), {"b": map(str, THREE)}]}, {"a": [THREE, {"b": ["0", "1", "2"]}]}),
    "generator of generators": (lambda: (numbers() for _ in range(2)), [THREE, THREE]),
    "tuple": (lambda: (1, numbers()), [1, THREE]),
    "named tuple": (lambda: Named("a", numbers()), ["a", THREE]),
    "dataclass": (lambda: Held("a", numbers()), {"name": "a", "parts": THREE}),
    "model": (lambda: Model(name="a", parts=numbers()), {"name": "a", "parts": THREE, "typed": None}),
    "typed model": (lambda: Model(name="a", parts=1, typed=numbers()), {"name": "a", "parts": 1, "typed": THREE}),
    "result": (lambda: Result.ok(numbers()), THREE),
    "asynchronous": (numbers_async, THREE),
    "asynchronous object": (Later, THREE),
    "asynchronous, nested": (lambda: {"a": [numbers_async(), numbers()]}, {"a": [THREE, THREE]}),
    "asynchronous in a dataclass": (lambda: Held("a", numbers_async()), {"name": "a", "parts": THREE}),
    "the same one twice": (lambda: [own := numbers(), own], [THREE, THREE]),
    "empty": (lambda: iter(()), []),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_an_iterator_arrives_whole(form: str, kind: str) -> None:
    make, expected = FORMS[form]

    def plain() -> Any:
        return make()

    async def coroutine() -> Any:
        return make()

    own = paginate_results(tool(plain if kind == "sync" else coroutine))
    async with Client(in_process(StaticToolset([own]))) as client:
        answer = await client.call_tool(own.name, {})
    assert answer.structured_content == (expected if isinstance(expected, dict) else {"result": expected})


async def test_a_long_one_is_paged_like_a_list() -> None:
    own = Declarations()

    @own.declare(result_limit=1_000)
    def many() -> Any:
        return (f"line {number}" for number in range(5_000))

    made = paginate_results(own.toolset().tools()[0])
    result = await made.call({}, make_context())
    assert result.to_json()["page"]["total"]["items"] == 5_000


async def test_a_plain_iterator_is_read_in_the_tools_thread() -> None:
    own, seen = Declarations(), list[threading.Thread]()

    def reading() -> Iterator[int]:
        seen.append(threading.current_thread())
        yield 1

    @own.declare
    def plain() -> Any:
        return reading()

    @own.declare
    async def coroutine() -> Any:
        return [reading()]

    assert (await call(own, "plain")).value == [1]
    assert (await call(own, "coroutine")).value == [[1]]
    assert threading.main_thread() not in seen


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_endless_one_is_an_error_that_says_so(is_async: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "MAX_BYTES", 1024 * 1024)
    own, closed = Declarations(), list[str]()

    def endless() -> Iterator[Any]:
        try:
            for number in itertools.count():
                yield {"number": number, "text": "x" * 100}
        finally:
            closed.append("closed")

    async def endless_async() -> AsyncIterator[Any]:
        for part in endless():
            yield part

    @own.declare
    def plain() -> Any:
        return endless_async() if is_async else endless()

    result = await call(own, "plain")
    assert result.code is ErrorCode.TOOL_FAILED
    assert "iterator" in str(result.error)
    if not is_async:
        assert closed == ["closed"]


async def test_a_range_beyond_all_memory_is_an_error() -> None:
    own = Declarations()

    @own.declare
    async def far() -> Any:
        return range(10**12)

    assert (await call(own, "far")).code is ErrorCode.TOOL_FAILED


async def test_a_crash_while_it_is_read_is_a_crash_of_the_tool() -> None:
    own = Declarations()

    def breaking() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    @own.declare
    def plain() -> Any:
        return {"a": breaking()}

    assert (await call(own, "plain")).code is ErrorCode.INTERNAL_ERROR


async def test_reading_stops_with_the_deadline_and_with_the_caller() -> None:
    own, ended, begun = Declarations(), threading.Event(), threading.Event()

    def endless() -> Iterator[int]:
        try:
            for number in itertools.count():
                begun.set()
                ended.wait(0.001)
                yield number
        finally:
            ended.set()

    @own.declare
    def cancelled() -> Any:
        return endless()

    with pytest.raises(DeadlineExceeded):
        collecting.collected(endless(), CallContext(deadline=time.monotonic()))
    assert ended.is_set()
    ended.clear()
    begun.clear()
    work = asyncio.ensure_future(call(own, "cancelled"))
    assert await asyncio.to_thread(begun.wait, 30)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await asyncio.to_thread(ended.wait, 30)


async def test_what_holds_itself_or_is_deep_still_arrives() -> None:
    own = Declarations()

    @own.declare
    def cyclic() -> Any:
        held: list[Any] = [numbers()]
        held.append(held)
        return held

    @own.declare
    def deep() -> Any:
        held: list[Any] = []
        for _ in range(3_000):
            held = [held]
        return held

    for name in ("cyclic", "deep"):
        result = await call(own, name)
        assert result.success
        result.to_json_str()


async def test_a_resource_gives_what_an_iterator_holds() -> None:
    made = resource(lambda: map(str, range(3)), "x://one", name="one")
    assert isinstance(made, Resource)
    [contents] = await made.read("x://one", {}, CallContext())
    assert contents.text == '["0","1","2"]'
