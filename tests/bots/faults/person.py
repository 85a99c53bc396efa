"""The person whose agreement some closes need: in a terminal, or asked through the client."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.bots.faults.record import Event, Line, Record
from tests.bots.faults.tool_site import Law, Site
from trysquare import Answer, CallContext
from trysquare.core.context import ElicitRequest, SilentCaller
from trysquare.store.approvals import PendingApproval


class Person:
    """Remembers what they agreed to. Each agreement is good for one change, and for the one that they were shown."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._agreed: list[dict[str, Any]] = []
        self._client: _Client | None = None

    def decide(self, call: PendingApproval, *, agrees: bool) -> None:
        """Decide a call that waits, in a terminal."""
        if agrees:
            self._site.approvals.approve(call.code, by="ada")
            self._agreed.append(call.arguments)
        else:
            self._site.approvals.refuse(call.code, by="ada")

    def at_client(self, way: str, meddle: Callable[[], Awaitable[None]]) -> CallContext:
        """A client that asks the person: `yes`, `no`, or `yes, but` after something else has happened."""
        self._client = _Client(self, way, meddle)
        return CallContext(caller=self._client)

    def was_disturbed(self) -> bool:
        """Whether something happened while they were asked during the last call."""
        return self._client is not None and self._client.disturbed

    def answer(self, message: str, way: str) -> Answer:
        """Answer a question that came through the client, which shows the whole of what is agreed to."""
        if way != "no":
            shown = message[message.index("Arguments:") :]
            self._agreed.append(json.JSONDecoder().raw_decode(shown, shown.index("{"))[0])
        return Answer(action="accept", content={"approve": way != "no"})

    def check(self, law: Law, record: Record, event: Event, added: Sequence[Line]) -> None:
        """A change that needs the person uses up their agreement to it."""
        before, _ = record.before(law, event)
        run = {"run": event.run}
        if event.kind in ("close", "skip"):
            if law.proof & {line.path for line in added}:
                path = f"{law.bot}.{before.stand.current}"
                self._use({**run, "action": path, "version": before.version})
                assert added[-1].approval == ("skipped" if event.kind == "skip" else "confirmed")
        elif event.kind == "open":
            self._check_opened(law, before, added)

    def _check_opened(self, law: Law, before: Event, added: Sequence[Line]) -> None:
        for line in added:
            if line.is_done and line.path in law.proof:
                self._use({"run": before.run, "project": str(self._site.project)})
                assert line.approval == "confirmed"
            elif not line.is_done and not law.reopens_alone:
                self._use({"run": before.run, "open": f"{law.bot}.{line.path}", "version": before.version})

    def _use(self, wanted: dict[str, Any]) -> None:
        # The agreement that says no more than is wanted: the one to a folder says less than the one to a close in it.
        fitting = [each for each in self._agreed if wanted.items() <= each.items()]
        found = min(fitting, key=len, default=None)
        assert found is not None, f"nobody agreed to {wanted}"
        self._agreed.remove(found)


class _Client(SilentCaller):
    """A client that can ask."""

    def __init__(self, person: Person, way: str, meddle: Callable[[], Awaitable[None]]) -> None:
        self._person = person
        self._way = way
        self._meddle = meddle
        self.disturbed = False

    def can_ask(self) -> bool:
        return True

    async def ask(self, question: ElicitRequest) -> Answer:
        if self._way == "yes, but":
            self.disturbed = True
            await self._meddle()
        return self._person.answer(question.message, self._way)
