"""The catalogue: what servers say of their tools, as it was agreed to; complete while no server runs.

Each definition is pinned when it is first seen. A harmless change takes its place; a dangerous one is held, and the
tool is refused, until a person approves it. What is shown keeps its order and its bytes until something changes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.cleaning import cleaned_value
from trysquare.gateway.definitions.pinning import approved, described
from trysquare.gateway.server import Definition, ServerEntry
from trysquare.store.definitions import ServerRecord, StoredDefinitions
from trysquare.store.lazy import Transactions

logger = logging.getLogger("trysquare.gateway")

OfferKind: TypeAlias = Literal["prompts", "resources", "templates", "instructions"]

LOOK_SECONDS = 1.0
"""How often the file is looked at for what another process changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A change of a tool's definition that waits for a person."""

    server: str
    tool: str
    reasons: tuple[str, ...]
    diff: str
    after: Definition
    before: Definition | None = None

    def refusal(self) -> ToolError:
        """What a call of the tool is answered with."""
        return ToolError(
            f"The server `{self.server}` changed its tool `{self.tool}` in a way that a person has to see first:"
            f" {' '.join(self.reasons)} Nothing was sent.",
            code=ErrorCode.STATE_CONFLICT,
            instruction=f"Do without this tool, or ask the person to run `trysquare gateway diff {self.server}` and"
            f" `trysquare gateway approve {self.server}` in their terminal.",
            fields={"outcome": "not_sent", "diff": self.diff},
        )

    def plain(self) -> JsonObject:
        """The change as it is kept."""
        kept = asdict(self)
        del kept["server"]
        return {**kept, "reasons": list(self.reasons)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What came of taking in a server's definitions. True where something is shown otherwise than before."""

    changed: bool
    notes: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()

    def __bool__(self) -> bool:
        return self.changed


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """A server's record, ready to be asked."""

    definitions: tuple[Definition, ...] | None
    by_name: Mapping[str, Definition]
    held: Mapping[str, Held]
    offers: Mapping[str, Sequence[JsonObject]]


class Catalogue:
    """What is known of the servers behind the gateway."""

    def __init__(self, database: Transactions, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stored = StoredDefinitions(database)
        self._clock = clock
        self._files: dict[str, str] = {}
        self._known: dict[str, _Known] = {}
        self._changes = -1
        self._look_at = float("-inf")

    def use(self, servers: Mapping[str, ServerEntry]) -> None:
        """Know the servers of a configuration by the file that names each."""
        files = {name: entry.place.file for name, entry in servers.items()}
        for name in [name for name in self._known if files.get(name) != self._files.get(name)]:
            del self._known[name]
        self._files = files

    def definitions(self, server: str) -> tuple[Definition, ...] | None:
        """The tools of a server as they are shown, always in the same order; None for one that was never asked."""
        return self._record(server).definitions

    def find(self, server: str, tool: str) -> Definition | None:
        """One tool of a server, as it is shown."""
        return self._record(server).by_name.get(tool)

    def held(self, server: str) -> tuple[Held, ...]:
        """The changes of a server that wait for a person."""
        return tuple(self._record(server).held.values())

    def held_tool(self, server: str, tool: str) -> Held | None:
        """The change of one tool that waits for a person."""
        return self._record(server).held.get(tool)

    def offer(self, server: str, kind: OfferKind) -> Sequence[JsonObject]:
        """The prompts, resources or templates of a server."""
        return self._record(server).offers.get(kind, ())

    def take(self, server: str, definitions: Sequence[Definition]) -> Taken:
        """Take in what a server says of its tools now: pin what is new, let pass what is harmless, hold the rest."""
        notes: tuple[str, ...] = ()

        def change(record: ServerRecord) -> ServerRecord:
            nonlocal notes
            after, notes = described(record, definitions)
            return after

        before = self._record(server)
        known = self._change(server, change)
        _log(server, notes, is_new=before.definitions is None)
        for held in known.held.values():
            if held != before.held.get(held.tool):
                logger.warning("%s", held.refusal())
        changed = known.definitions != before.definitions
        return Taken(changed=changed, notes=notes, held=tuple(known.held.values()))

    def take_offer(self, server: str, kind: OfferKind, entries: Sequence[JsonObject]) -> bool:
        """Take in a server's prompts, resources or templates, and say whether they changed."""
        cleaned = [cleaned_value(entry) for entry in entries]
        if list(self.offer(server, kind)) == cleaned:
            return False
        self._change(server, lambda record: replace(record, offers={**record.offers, kind: cleaned}))
        return True

    def approve(self, seen: Sequence[Held]) -> tuple[Held, ...]:
        """A person agrees with changes of one server as they were shown; returns those that are held still.

        A server that changed a tool once more, while the person read, has that change held again.
        """
        if not seen:
            return ()
        server = seen[0].server
        agreed = [one.plain() for one in seen]
        known = self._change(server, lambda record: approved(record, agreed))
        return tuple(known.held.values())

    def forget(self, server: str) -> None:
        """Forget a server, as if it had never been seen."""
        self._stored.forget(self._files.get(server, ""), server)
        self._known.pop(server, None)

    def _change(self, server: str, change: Callable[[ServerRecord], ServerRecord]) -> _Known:
        record = self._stored.change(self._files.get(server, ""), server, change)
        self._known[server] = known = _known(server, record)
        return known

    def _record(self, server: str) -> _Known:
        if self._clock() >= self._look_at:
            self._look()
        known = self._known.get(server)
        if known is None:
            known = _known(server, self._stored.find(self._files.get(server, ""), server))
            self._known[server] = known
        return known

    def _look(self) -> None:
        """Forget what was read if another process has changed the file since."""
        self._look_at = self._clock() + LOOK_SECONDS
        changes = self._stored.changes()
        if changes != self._changes:
            self._changes = changes
            self._known.clear()


def _log(server: str, notes: Sequence[str], *, is_new: bool) -> None:
    """Tell the person at the log. What is odd about a server on first sight is worth more than a change of words."""
    for note in notes:
        logger.log(logging.WARNING if is_new else logging.INFO, "%s: %s", server, note)


def _known(server: str, record: ServerRecord) -> _Known:
    definitions = None if record.tools is None else tuple(Definition(**tool) for tool in record.tools)
    return _Known(
        definitions=definitions,
        by_name={one.name: one for one in definitions or ()},
        held={one["tool"]: _held(server, one) for one in record.held},
        offers=record.offers,
    )


def _held(server: str, held: JsonObject) -> Held:
    before = held["before"]
    return Held(
        server=server,
        tool=held["tool"],
        reasons=tuple(held["reasons"]),
        diff=held["diff"],
        after=Definition(**held["after"]),
        before=None if before is None else Definition(**before),
    )
