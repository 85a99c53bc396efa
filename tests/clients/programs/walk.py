"""The walk that every client makes through our tools, and how a program reports it.

A program is run in the environment of its client and imports nothing but this module, the standard library and that
client. It reads where to connect and what to call from its argument and prints one JSON object: the report of every
target.

    python PROGRAM '{"targets": {"stdio 2025-11-25": {"command": [...]}, "http 2026-07-28": {"url": "http://..."}},
                     "calls": [{"tool": "plain_text", "arguments": {"name": "Ada"}, "needs": null}]}'
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Protocol

ROUNDS = 20
"""How often progress is asked for: a report that gets lost is one of many."""
SECONDS = 60
ANSWERS = {"sure": True, "approve": True, "guests": 4, "where": "terrace"}
"""What the user fills in, whatever form has these fields."""
COMPLETION = "a greeting"
"""What the client's own model says."""


def filled(schema: dict[str, Any]) -> dict[str, Any]:
    """The form that the user fills in."""
    return {name: ANSWERS[name] for name in schema["properties"]}


@dataclass(frozen=True, kw_only=True)
class Called:
    """What a client hands on of a call."""

    text: str
    data: Any = None
    is_error: bool | None = False
    """None where the client does not say it."""
    images: list[str] = field(default_factory=list)
    """The MIME types of the images."""
    blocks: list[str] | None = None
    """The types of the content blocks; None where the client turns them into something of its own."""


class Client(Protocol):
    """A connected client. What it cannot do is not in `can`."""

    package: str
    """The distribution that is tested."""
    can: frozenset[str]

    async def tools(self) -> list[str]: ...

    async def call(
        self, name: str, arguments: dict[str, Any], progress: Callable[[float], None] | None, /
    ) -> Called: ...


Connect = Callable[[str, dict[str, Any]], AbstractAsyncContextManager[Client]]
"""Connects to a target, given its name and where it is."""


async def walk(client: Client, target: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Use everything that the client can do, and report what came of it."""
    report: dict[str, Any] = {"version": version(client.package), "tools": await client.tools()}
    report["kinds"] = {
        call["tool"]: vars(await client.call(call["tool"], call["arguments"], None))
        for call in calls
        if call["needs"] is None or call["needs"] in client.can
    }
    report["pages"] = await pages(client)
    report["plain"] = vars(await client.call("greet", {"name": "Ada"}, None))
    report["structured"] = vars(await client.call("total", {"amounts": [1, 2.5]}, None))
    report["image"] = vars(await client.call("picture", {}, None))
    report["failed"] = vars(await client.call("fail", {"reason": "rain"}, None))
    wrong = await client.call("total", {"amounts": [1, 2.4], "rounde": True}, None)
    following = next_call(wrong)
    report["wrong"] = {**vars(wrong), "next": following}
    report["corrected"] = vars(await client.call(following["tool"], following["arguments"], None))
    if "progress" in client.can:
        report["progress"] = [await counted(client) for _ in range(ROUNDS)]
    if "elicitation" in client.can:
        report["elicitation"] = vars(await client.call("confirm", {"question": "Sure?"}, None))
    if "progress" in client.can:
        # Without progress a client cannot say when a call has begun.
        report["abandoned"] = await abandoned(client, target)
    return report


def next_call(wrong: Called) -> dict[str, Any]:
    """The corrected call, from the structured content or, for clients that show only text, from the text."""
    if isinstance(wrong.data, dict) and "next" in wrong.data:
        return wrong.data["next"]
    _, found, call = wrong.text.partition("Next: ")
    return json.JSONDecoder().raw_decode(call)[0] if found else {"missing in": wrong.text}


async def pages(client: Client) -> list[str]:
    """The texts of every page of a long result, read by the calls that each page names."""
    page = await client.call("long_result", {}, None)
    texts = [shown(page)]
    while "Next: " in page.text or (isinstance(page.data, dict) and "next" in page.data):
        following = next_call(page)
        page = await client.call(following["tool"], following["arguments"], None)
        texts.append(shown(page))
    return texts


def shown(page: Called) -> str:
    """All that the client shows of a page."""
    return page.text + json.dumps(page.data)


async def counted(client: Client) -> list[float]:
    """The progress that had been reported when the result was there."""
    seen: list[float] = []
    await client.call("count", {"upto": 3}, seen.append)
    return list(seen)


async def abandoned(client: Client, target: str) -> dict[str, Any]:
    """Give up a call that has begun, then go on with the same connection."""
    began = asyncio.Event()
    call = asyncio.ensure_future(client.call("linger", {"name": target}, lambda _: began.set()))
    await began.wait()
    call.cancel()
    await asyncio.wait([call])
    after = {"next": vars(await client.call("greet", {"name": "Bob"}, None))}
    if "cancellation" in client.can:
        after["cancelled"] = vars(await client.call("await_cancelled", {}, None))
    return after


async def _reports(connect: Connect) -> dict[str, Any]:
    reports: dict[str, Any] = {}
    given = json.loads(sys.argv[1])
    for name, target in given["targets"].items():
        try:
            async with asyncio.timeout(SECONDS), connect(name, target) as client:
                reports[name] = await walk(client, name, given["calls"])
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - whatever a client raises is what its report says
            reports[name] = {"crashed": traceback.format_exc()}
    return reports


def main(connect: Connect) -> None:
    """Walk through every target, and print the reports."""
    sys.stdout.write(json.dumps(asyncio.run(_reports(connect)), default=str))
