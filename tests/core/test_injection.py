"""Parameters that are filled in: the context, what a lifespan yields, and dependencies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import pytest

from trysquare import CallContext, DeclarationError, Depends, ToolArguments, ToolError, Tools, call_tool, tool
from trysquare.testing import call, make_context


class Database:
    """What a server opens."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def run(self, text: str) -> str:
        self.log.append(text)
        return text.upper()


class Runs(Protocol):
    def run(self, text: str) -> str: ...


def tools_with_database(opened: list[str]) -> Tools:
    tools = Tools()

    @tools.lifespan
    async def database() -> AsyncIterator[Database]:
        opened.append("open")
        yield Database()
        opened.append("close")

    return tools


async def test_what_a_lifespan_yields_is_filled_in_and_stays_out_of_the_schema() -> None:
    opened: list[str] = []
    tools = tools_with_database(opened)

    @tools.tool
    async def query(text: str, database: Database, context: CallContext) -> str:
        return f"{database.run(text)} {context.principal.subject}"

    @tools.tool
    def again(text: str, maybe: Annotated[Database | None, "The database"] = None) -> str:
        assert maybe is not None
        return maybe.run(text)

    @tools.prompt
    def ask(topic: str, database: Database) -> str:
        return database.run(topic)

    @tools.resource("data://{name}")
    async def data(name: str, database: Database) -> str:
        return database.run(name)

    toolset = tools.toolset()
    assert [list(each.input_schema["properties"]) for each in toolset.tools()] == [["text"], ["text"]]
    assert [each.name for each in toolset.prompts()[0].arguments] == ["topic"]
    assert (await call(tools, "query", text="a")).value == "A tester"
    assert opened == ["open", "close"]
    async with tools.open() as held:
        assert (await call(held, "query", text="b")).value == "B tester"
        assert (await call(held, "again", text="c")).value == "C"
        [message] = await held.prompts()[0].render({"topic": "d"}, CallContext())
        assert message.content.text == "D"  # pyright: ignore[reportAttributeAccessIssue]
        found = held.find_resource("data://e")
        assert found is not None
        assert (await found.read("data://e", {}, CallContext()))[0].text == "E"
        assert opened[2:] == ["open"]
    assert opened[2:] == ["open", "close"]


async def test_a_call_outside_of_its_lifespan_says_how_to_open_it(caplog: pytest.LogCaptureFixture) -> None:
    tools = tools_with_database([])

    @tools.tool
    async def query(text: str, database: Database) -> str:
        return database.run(text)

    assert (await call_tool(tools.toolset(), "query", {"text": "a"})).code == "INTERNAL_ERROR"
    assert "async with tools.open()" in caplog.text


@dataclass
class Settings:
    name: str


async def test_several_lifespans_are_opened_in_order_and_may_use_one_another() -> None:
    order: list[str] = []
    tools = Tools()

    @tools.lifespan
    @contextmanager
    def settings() -> Generator[Settings]:
        order.append("settings")
        yield Settings("x")
        order.append("settings closed")

    @tools.lifespan()
    @asynccontextmanager
    async def database(settings: Settings, server: Tools) -> AsyncGenerator[Database]:
        order.append(f"database {settings.name} {server is tools}")
        yield Database()
        order.append("database closed")

    @tools.tool
    def both(settings: Settings, database: Database, prefix: str = "") -> str:
        return database.run(prefix + settings.name)

    assert (await call(tools, "both")).value == "X"
    assert order == ["settings", "database x True", "database closed", "settings closed"]


async def test_a_lifespan_without_an_annotation_is_found_by_what_it_yields() -> None:
    async def lifespan(server: Any):
        yield Database()

    tools = Tools(lifespan=lifespan)

    @tools.tool
    def query(text: str, database: Database) -> str:
        return database.run(text)

    @tools.tool
    def named(values: Annotated[Any, Depends(lifespan)]) -> str:
        return type(values).__name__

    assert (await call(tools, "query", text="a")).value == "A"
    assert (await call(tools, "named")).value == "Database"


async def test_an_argument_of_the_type_that_a_lifespan_turns_out_to_yield_is_refused() -> None:
    async def lifespan():
        yield Settings("x")

    tools = Tools(lifespan=lifespan)
    tools.tool(lambda: None, name="other")

    @tools.tool
    def query(settings: Settings) -> str:
        return settings.name

    with pytest.raises(ToolError, match=r"`query`.*AsyncIterator\[Settings\]"):
        await call(tools, "other")


def test_a_lifespan_below_what_uses_it_is_refused() -> None:
    tools = Tools()
    tools.tool(takes_settings)
    with pytest.raises(DeclarationError, match=r"`takes_settings`.*above") as raised:

        @tools.lifespan
        async def settings() -> AsyncIterator[Settings]:
            yield Settings("x")

    assert __file__ in str(raised.value)


def takes_settings(settings: Settings) -> str:
    return settings.name


@pytest.mark.parametrize("how", ["raise", "exit"])
async def test_an_error_at_opening_closes_what_is_open_and_names_the_authors_lines(how: str) -> None:
    closed: list[str] = []
    tools = Tools()

    @tools.lifespan
    async def first() -> AsyncIterator[Settings]:
        yield Settings("x")
        closed.append("first")

    @tools.lifespan
    async def second() -> AsyncIterator[Database]:
        if how == "exit":
            raise SystemExit(3)
        connect()
        yield Database()

    def connect() -> None:
        raise ConnectionError("refused")

    tools.tool(lambda: 1, name="one")
    with pytest.raises(ToolError) as raised:
        await call(tools, "one")
    said = str(raised.value)
    assert "`second` failed to open" in said
    assert ("SystemExit" if how == "exit" else "ConnectionError: refused") in said
    frames = [line for line in said.splitlines() if line.startswith("  ")]
    assert all(__file__ in frame for frame in frames)
    assert len(frames) == (1 if how == "exit" else 2)
    assert closed == ["first"]


async def test_an_error_at_closing_is_raised_unless_another_ended_the_block(caplog: pytest.LogCaptureFixture) -> None:
    tools = Tools()

    @tools.lifespan
    async def broken() -> AsyncIterator[None]:
        yield
        raise OSError("cannot close")

    with pytest.raises(ToolError, match="`broken` failed to close: OSError"):
        async with tools.open():
            pass
    with pytest.raises(KeyError):
        async with tools.open():
            raise KeyError("mine")
    assert "`broken` failed to close" in caplog.text


async def test_all_that_use_a_toolset_at_once_share_its_lifespan() -> None:
    opened: list[str] = []
    tools = tools_with_database(opened)

    @tools.tool
    async def query(database: Database) -> int:
        await asyncio.sleep(0)
        return id(database)

    results = await asyncio.gather(*(call(tools, "query") for _ in range(20)))
    assert len({each.value for each in results}) == 1
    assert opened == ["open", "close"]


def test_the_end_of_the_event_loop_closes_what_nobody_closed() -> None:
    opened: list[str] = []
    tools = tools_with_database(opened)
    held: list[Any] = []

    async def main() -> None:
        held.append(tools.open())
        await held[0].__aenter__()

    asyncio.run(main())
    assert opened == ["open", "close"]


@dataclass
class Recorded:
    events: list[str] = field(default_factory=list[str])


def tools_that_record(record: Recorded) -> Tools:
    @asynccontextmanager
    async def recorded() -> AsyncGenerator[Recorded]:
        yield record

    return Tools(lifespan=recorded)


async def user(context: CallContext) -> str:
    return context.principal.subject


def session(record: Recorded, who: Annotated[str, Depends(user)]) -> Iterator[str]:
    record.events.append(f"open {who}")
    try:
        yield f"session of {who}"
    except ValueError:
        record.events.append("rolled back")
        raise
    finally:
        record.events.append("closed")


async def transaction(record: Recorded, current: str = Depends(session)) -> AsyncIterator[str]:
    record.events.append("begin")
    yield f"transaction in {current}"
    record.events.append("commit")


Session = Annotated[str, Depends(session)]


async def test_dependencies_of_every_kind_run_once_in_a_call_and_are_closed_after_it() -> None:
    record = Recorded()
    tools = tools_that_record(record)

    class Pay(ToolArguments):
        amount: int

    @tools.tool
    async def pay(args: Pay, current: Session, inside: str = Depends(transaction)) -> str:
        record.events.append(f"pay {args.amount}")
        return f"{current}, {inside}"

    @tools.tool
    def fail(current: Session) -> None:
        raise ValueError(current)

    assert list(tools.toolset().tools()[0].input_schema["properties"]) == ["amount"]
    paid = await call(tools, "pay", context=make_context(principal="ada"), amount=3)
    assert paid.value == "session of ada, transaction in session of ada"
    assert record.events == ["open ada", "begin", "pay 3", "commit", "closed"]
    record.events.clear()
    assert (await call(tools, "fail")).code == "INTERNAL_ERROR"
    assert record.events == ["open tester", "rolled back", "closed"]


async def test_a_dependency_that_swallows_the_error_does_not_make_a_success_of_it() -> None:
    def swallowing() -> Iterator[None]:
        with suppress(ValueError):
            yield

    def fail(nothing: Annotated[None, Depends(swallowing)]) -> None:
        raise ValueError("lost")

    assert (await call(tool(fail), "fail")).code == "INTERNAL_ERROR"


async def test_a_dependency_is_run_again_where_its_value_is_not_to_be_shared() -> None:
    made: list[int] = []

    def number() -> int:
        made.append(len(made))
        return made[-1]

    def pair(
        a: Annotated[int, Depends(number)],
        b: Annotated[int, Depends(number)],
        c: Annotated[int, Depends(number, use_cache=False)],
    ) -> list[int]:
        return [a, b, c]

    assert (await call(tool(pair), "pair")).value == [0, 0, 1]


async def test_wrong_arguments_open_no_dependency() -> None:
    made: list[int] = []

    def take(amount: int, opened: Annotated[None, Depends(lambda: made.append(1))]) -> None: ...

    assert (await call(tool(take), "take", amount="x")).code == "VALIDATION_INVALID_PARAM"
    assert made == []


def needs_more(limit: int) -> int:
    return limit


def takes_more(limit: Annotated[int, Depends(needs_more)]) -> None: ...


def test_a_dependency_that_nothing_fills_in_is_refused_with_its_line() -> None:
    with pytest.raises(DeclarationError, match=r"`limit` of the dependency `needs_more`") as raised:
        tool(takes_more)
    assert raised.value.location == f"{__file__}:{needs_more.__code__.co_firstlineno}"
    with pytest.raises(DeclarationError, match="without calling it"):
        Depends(3)  # pyright: ignore[reportArgumentType]


async def test_a_base_class_or_protocol_of_what_a_lifespan_yields_is_filled_in() -> None:
    class Special(Database): ...

    tools = Tools()

    @tools.lifespan
    async def database() -> AsyncIterator[Special]:
        yield Special()

    @tools.tool
    def query(database: Database, text: str = "a") -> str:
        return database.run(text)

    assert (await call(tools, "query")).value == "A"
