"""The catalogue: what servers say of their tools, as it was agreed to; complete while no server runs.

Each definition is pinned when it is first seen. A change is held until a human approves it: meanwhile the tool is used
as it was approved, or refused where the change is dangerous. What is shown keeps its order and its bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from trysquare.core.context import local_principal
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_value, one_line
from trysquare.gateway.definitions.pinning import approved, described, is_over, trimmed
from trysquare.gateway.server import Definition, ServerConfig, ServerEntry
from trysquare.store.definitions import AuditEvent, RecordAudit, ServerRecord, StoredDefinitions
from trysquare.store.lazy import Transactions

logger = logging.getLogger("trysquare.gateway")

OfferKind: TypeAlias = Literal["prompts", "resources", "templates", "instructions"]
_LEFT_OUT = "left_out"
"""Where a record keeps what was left out of a server's lists."""

_MOST_AUDITED, _MOST_LOGGED = 50, 20
LOOK_SECONDS = 1.0
"""How often the file is looked at for what another process changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A definition of a tool that waits for a human's approval."""

    server: str
    tool: str
    reasons: tuple[str, ...]
    after: Definition
    before: Definition | None = None
    refuses: bool = True
    """Whether the tool is refused meanwhile; else it is used as it was approved."""

    @property
    def diff(self) -> str:
        """What changed, line by line."""
        from trysquare.gateway.definitions.drift import readable_diff

        return readable_diff(self.before, self.after)

    def refusal(self) -> ToolError:
        """What a call of the tool is answered with. Nothing of what the server wrote stands in it: a model reads it."""
        did = "offers the new tool" if self.before is None else "changed its tool"
        return ToolError(
            f"The server `{self.server}` {did} `{self.tool}`, and a human has to approve that first. Nothing was sent.",
            code=ErrorCode.STATE_CONFLICT,
            instruction=f"Do without this tool, or ask the user to run `trysquare gateway diff {self.server}` and"
            f" `trysquare gateway approve {self.server}` in their terminal.",
            fields={"outcome": "not_sent"},
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
        self._limits: dict[str, ServerConfig] = {}
        self._known: dict[str, _Known] = {}
        self._changes = -1
        self._look_at = float("-inf")

    def use(self, servers: Mapping[str, ServerEntry]) -> None:
        """Know the servers of a configuration by the file that names each."""
        files = {name: entry.place.file for name, entry in servers.items()}
        for name in [name for name in self._known if files.get(name) != self._files.get(name)]:
            del self._known[name]
        self._files = files
        self._limits = {name: entry for name, entry in servers.items() if isinstance(entry, ServerConfig)}

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

    def left_out(self, server: str) -> tuple[str, ...]:
        """What was left out of a server's lists because it was too much, in sentences."""
        return tuple(str(note["reason"]) for note in self._record(server).offers.get(_LEFT_OUT, ()))

    def take_left_out(self, server: str, reasons: Sequence[str]) -> None:
        """Take in what was left out of a server's lists, and log it where it is new."""
        if tuple(reasons) == self.left_out(server):
            return
        for reason in reasons:
            logger.warning("%s: left out: %s", server, reason)
        notes: list[JsonObject] = [{"reason": reason} for reason in reasons]
        self._change(server, lambda record: replace(record, offers={**record.offers, _LEFT_OUT: notes}))

    def take(self, server: str, definitions: Sequence[Definition]) -> Taken:
        """Take in what a server says of its tools now: pin what is new, let pass what is harmless, hold the rest."""
        notes: tuple[str, ...] = ()

        def change(record: ServerRecord) -> ServerRecord:
            nonlocal notes
            entry = self._limits.get(server)
            if entry is None:
                after, notes = described(record, definitions)
            else:
                after, notes = described(record, definitions, changes=entry.changes, first_use=entry.first_use)
            return after

        before = self._record(server)
        known = self._change(server, change, audit=_newly_held)
        _log(server, notes, is_new=before.definitions is None)
        for held in itertools.islice(known.held.values(), _MOST_LOGGED):
            if held != before.held.get(held.tool):
                use = "is refused" if held.refuses else "is used as it was approved"
                told = "%s: %s %s until you approve its new definition: %s See `trysquare gateway diff %s`."
                logger.warning(told, server, held.tool, use, " ".join(held.reasons), server)
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
        known = self._change(server, lambda record: approved(record, agreed), audit=_approved)
        return tuple(known.held.values())

    def forget(self, server: str) -> None:
        """Forget a server, as if it had never been seen."""
        self._stored.forget(self._files.get(server, ""), server)
        self._known.pop(server, None)

    def _change(
        self, server: str, change: Callable[[ServerRecord], ServerRecord], *, audit: RecordAudit | None = None
    ) -> _Known:
        record = self._stored.change(self._files.get(server, ""), server, change, audit=audit)
        self._known[server] = known = _known(server, record)
        return known

    def _record(self, server: str) -> _Known:
        if self._clock() >= self._look_at:
            self._look()
        known = self._known.get(server)
        if known is None:
            record = self._stored.find(self._files.get(server, ""), server)
            limits = self._limits.get(server)
            if limits is not None and is_over(record, limits):
                # Stored under other limits: cut once, so that no later start has to read all of it.
                return self._change(server, lambda record: trimmed(record, limits))
            known = _known(server, record)
            self._known[server] = known
        return known

    def _look(self) -> None:
        """Forget what was read if another process has changed the file since."""
        self._look_at = self._clock() + LOOK_SECONDS
        changes = self._stored.changes()
        if changes != self._changes:
            self._changes = changes
            self._known.clear()


def _newly_held(before: ServerRecord, after: ServerRecord) -> AuditEvent | None:
    known = [(one["tool"], one["after"]) for one in before.held]
    return _event("definition.held", [one for one in after.held if (one["tool"], one["after"]) not in known])


def _approved(before: ServerRecord, after: ServerRecord) -> AuditEvent | None:
    left = [(one["tool"], one["after"]) for one in after.held]
    return _event("definition.approved", [one for one in before.held if (one["tool"], one["after"]) not in left])


def _event(kind: str, held: Sequence[JsonObject]) -> AuditEvent | None:
    """What the audit keeps of definitions: how many, and of the first some the name, the digest and the reasons."""
    if not held:
        return None
    tools = [
        {"tool": one_line(str(one["tool"])), "digest": _digest(one["after"]), "reasons": one["reasons"]}
        for one in held[:_MOST_AUDITED]
    ]
    return AuditEvent(kind=kind, principal=local_principal().subject, body={"count": len(held), "tools": tools})


def _digest(definition: JsonObject) -> str:
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()


def _log(server: str, notes: Sequence[str], *, is_new: bool) -> None:
    """Tell the person at the log. What is odd about a server on first sight is worth more than a change of words."""
    level = logging.WARNING if is_new else logging.INFO
    for note in notes[:_MOST_LOGGED]:
        logger.log(level, "%s: %s", server, note)
    if len(notes) > _MOST_LOGGED:
        logger.log(level, "%s: and %s more; see `trysquare gateway diff`", server, len(notes) - _MOST_LOGGED)


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
        # One that an earlier version kept was refused.
        refuses=held.get("refuses", True),
        after=Definition(**held["after"]),
        before=None if before is None else Definition(**before),
    )
