"""The rows of the scorecard: every way in which a server can fail its gateway."""

from __future__ import annotations

import anyio

from tests.gateway.torture.arena import LIMIT, MUCH_PATIENCE, PATIENCE, Arena, Heard, Row, has_ended
from tests.gateway.torture.chaos import MANY, WARNING, large_text
from tests.gateway.torture.fronts import NAME, gateway_process
from tests.gateway.torture.lanes import Lane
from tests.gateway.torture.servers import FAULTY, STEADY

_BRIEF = {"timeout": int(LIMIT * 1000), "x-trysquare": {"start_timeout": LIMIT}}


async def plain(arena: Arena) -> None:
    """Nothing is wrong. Where this fails, the gateway does not speak with such a server at all."""
    await arena.check_next(times=2)


async def killed(arena: Arena) -> None:
    await arena.check_next("call before")
    heard = await arena.call("die", "now")
    arena.check_failure(heard, "sent_unknown")
    await arena.check_next()
    await arena.check_others()
    arena.check_sent("die")


async def hangs(arena: Arena) -> None:
    async with arena.under_way("hang") as calling:
        await arena.check_next("same server meanwhile")
        await arena.check_others()
        arena.check_failure(await calling, "sent_unknown")
    taken_back = await arena.journal.until(lambda: arena.journal.happened(FAULTY, "taken back"), PATIENCE)
    arena.check("server is told", taken_back, "the call was never taken back")
    await arena.check_next()
    arena.check_sent("hang")


async def mute(arena: Arena) -> None:
    calls: list[Heard] = []

    async def call() -> None:
        calls.append(await arena.call("echo", "hello?"))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await arena.check_others()
    arena.check_failure(calls[0], "not_sent")
    await arena.check_others()
    arena.check_sent("echo", 0)


async def garbage(arena: Arena) -> None:
    await arena.check_next("call", times=3)
    await arena.check_others()


async def flood(arena: Arena) -> None:
    async with arena.under_way("flood", str(arena.sizes.flood), patience=MUCH_PATIENCE) as calling:
        await arena.check_next("same server meanwhile")
        await arena.check_others()
        heard = await calling
    arena.check("answer", heard.text == "dry", heard)
    await arena.check_next()
    arena.check_sent("flood")


async def large(arena: Arena) -> None:
    size = arena.sizes.large
    async with arena.under_way("large", str(size), patience=MUCH_PATIENCE) as calling:
        await arena.check_next("same server meanwhile")
        await arena.check_others()
        heard = await calling
    arena.check("answer", not heard.failed and heard.result is not None, heard)
    if heard.result is not None and not heard.failed:
        length, tail = await arena.front.tail(heard.result, FAULTY, 1000)
        arena.check("whole", (length, tail) == (size, large_text(size)[-1000:]), f"{length} characters, {tail[:40]}")
    await arena.check_next()
    arena.check_sent("large")


async def pages(arena: Arena) -> None:
    last = f"number_{MANY - 1}"
    shown = await arena.front.tools(FAULTY)
    arena.check("all listed", sum(last in name or "number_" in name for name in shown) == MANY, f"{len(shown)} tools")
    heard = await arena.call(last, "hello")
    arena.check("last one works", heard.text == "hello" and not heard.failed, heard)


async def endless(arena: Arena) -> None:
    heard = await arena.call("echo", "hello")
    arena.check("told at once", not heard.never, heard)
    await arena.check_others()
    asked = len(arena.journal.happened(FAULTY, "tools/list"))
    arena.check("gives up", asked <= 1000, f"asked for {asked} pages")


async def poisoned(arena: Arena) -> None:
    before = await arena.front.tools(FAULTY)
    arena.check("listed before", "pay" in before and "extra" not in before, sorted(before))
    await arena.call("poison")
    shown: dict[str, str] = {}
    with anyio.move_on_after(PATIENCE):
        while "extra" not in (shown := await arena.front.tools(FAULTY)):  # noqa: ASYNC110 - not every gateway tells
            await anyio.sleep(0.05)
    arena.check("harmless change passes", "extra" in shown, sorted(shown))
    arena.check("poison is not shown", not any(WARNING[:40] in one for one in shown.values()), "it is")
    hidden = any(mark in one for one in shown.values() for mark in ("\u202e", "\\u202e"))
    arena.check("no hidden characters", not hidden, "there are")
    heard = await arena.call("pay", "bill")
    arena.check("changed tool is held", heard.failed and not heard.never, heard)
    arena.check_sent("pay", 0)
    await arena.check_next("other tools")


async def shut(arena: Arena) -> None:
    await arena.check_next("call before")
    heard = await arena.call("shut")
    arena.check_failure(heard, "sent_unknown")
    await arena.check_next()
    await arena.check_others()
    if arena.lane.transport == "stdio":
        [first, *_] = arena.journal.happened(FAULTY, "start")
        arena.check("old process is ended", await has_ended(first.pid), f"{first.pid} still runs")
    arena.check_sent("shut")


async def late(arena: Arena) -> None:
    """The answer comes when nobody waits for it any more. A gateway without a limit may still pass it on."""
    heard = await arena.call("late", str(3 * LIMIT))
    if heard.failed:
        arena.check_failure(heard, "sent_unknown")
    else:
        arena.check("answer", heard.text == "too late", heard)
    await arena.journal.until(lambda: arena.journal.happened(FAULTY, "answered late"), PATIENCE)
    await arena.check_next(times=3)
    arena.check_sent("late")


async def twice(arena: Arena) -> None:
    heard = await arena.call("twice")
    arena.check("first answer", heard.text == "first", heard)
    await arena.check_next(times=3)
    arena.check_sent("twice")


async def asks(arena: Arena) -> None:
    heard = await arena.call("ask")
    arena.check("answer reaches the server", NAME in heard.text and not heard.failed, heard)
    first = [entry for entry in arena.journal.calls(FAULTY, "ask") if not entry.fields["has_answers"]]
    arena.check("sent once", len(first) == 1, f"{len(first)} times")
    await arena.check_next()


async def exits(arena: Arena) -> None:
    for _ in range(3):
        arena.check_failure(await arena.call("echo", "hello?"), "not_sent")
    await arena.check_others()
    starts = len(arena.journal.happened(FAULTY, "start"))
    arena.check("not started without end", starts <= 4, f"{starts} starts")


async def stubborn(arena: Arena) -> None:
    """A server that ends neither with its input nor when asked to. What is checked is that it is gone after all."""
    await arena.check_next()


async def gateway_killed(arena: Arena) -> None:
    """Kill -9 of the gateway itself, in the middle of a call to a server that would never end by itself."""
    gateway = gateway_process(arena.folder)
    # A client whose gateway is gone may fall apart; what is left of the servers is looked at all the same.
    with anyio.CancelScope(shield=True):
        async with arena.under_way("hang"):
            gateway.kill()
            for entry in (*arena.journal.happened(FAULTY, "start"), *arena.journal.happened(STEADY, "start")):
                arena.check("no orphan of a killed gateway", await has_ended(entry.pid), f"{entry.pid} still runs")


def _not_a_child(lane: Lane) -> str | None:
    return None if lane.transport == "stdio" else "a remote server is nobody's child"


ROWS = (
    Row(name="plain", title="nothing is wrong", trial=plain),
    Row(name="killed", title="is killed in the middle of a call", trial=killed),
    Row(name="hangs", title="never answers a call", trial=hangs, entry=_BRIEF),
    Row(name="mute", title="is mute from the start", trial=mute, fault="mute", entry=_BRIEF),
    Row(name="garbage", title="writes garbage between its messages", trial=garbage, fault="garbage"),
    Row(name="flood", title="floods notifications", trial=flood),
    Row(name="large", title="returns a huge result", trial=large),
    Row(name="pages", title="pages its list", trial=pages, fault="pages"),
    Row(name="endless", title="pages its list without end", trial=endless, fault="endless"),
    Row(name="poisoned", title="changes and poisons a definition", trial=poisoned),
    Row(name="shut", title="closes its pipe in the middle of a call", trial=shut),
    Row(name="late", title="answers late", trial=late, entry=_BRIEF),
    Row(name="twice", title="answers twice", trial=twice),
    Row(name="asks", title="asks for elicitation", trial=asks),
    Row(name="exits", title="exits at once", trial=exits, fault="exit"),
    Row(name="stubborn", title="does not end when asked to", trial=stubborn, fault="stubborn", impossible=_not_a_child),
    Row(
        name="gateway-killed",
        title="the gateway itself is killed",
        trial=gateway_killed,
        fault="stubborn",
        ends_gateway=True,
        impossible=_not_a_child,
    ),
)
