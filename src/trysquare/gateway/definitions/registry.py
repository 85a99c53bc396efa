"""Registry of definitions: pinned at first sight, changes pending until a human approves them."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from trysquare.core.context import local_principal
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.untrusted import cleaned_value, one_line
from trysquare.gateway.models import ChangePolicy, FirstUse, ServerConfig, ServerEntry, ToolDefinition
from trysquare.store.database import Transactions
from trysquare.store.pins import AuditEvent, RecordAudit, ServerRecord, StoredDefinitions

if TYPE_CHECKING:
    from trysquare.gateway.definitions.drift import Change

logger = logging.getLogger("trysquare.gateway")

OfferKind: TypeAlias = Literal["prompts", "resources", "templates", "instructions", "left_out"]
"""`left_out` is what was left out of the other lists."""
_MAX_AUDITED, _MAX_LOGGED = 50, 20
MAX_GONE = 200
LOOK_SECONDS = 1.0
"""Interval at which changes of other processes are read."""


def described(
    record: ServerRecord,
    definitions: Sequence[ToolDefinition],
    *,
    changes: ChangePolicy = "hold",
    first_use: FirstUse = "trust",
) -> tuple[ServerRecord, tuple[str, ...]]:
    """The record after a server listed its tools, and notes for the log.

    Tools keep their order, with new ones last. A change that a human has not approved is pending: the approved
    definition stays in use, or the tool is refused.
    """
    from trysquare.gateway.definitions.drift import compare, suspicions

    # Of two tools with the same name, a call could only mean the first.
    by_name: dict[str, ToolDefinition] = {}
    for one in definitions:
        by_name.setdefault(one.name, one)
    listed = list(by_name.values())
    if record.tools is None and first_use == "trust":
        odd = tuple(f"{one.name}: {reason}" for one in listed for reason in suspicions(one))
        return replace(record, tools=[asdict(one) for one in listed], held=[], gone=[]), odd
    are_new_held = first_use == "hold" or changes == "refuse"
    shown = {one.name: one for one in (ToolDefinition(**tool) for tool in record.tools or ())}
    gone = {one.name: one for one in (ToolDefinition(**tool) for tool in record.gone)}
    held: list[JsonObject] = []
    notes: list[str] = []
    # With the removed ones: a tool that comes back must not pass as new.
    found = compare([*shown.values(), *gone.values()], listed)
    changed = {change.tool for change in found}
    # What did not change has the icons that it has now.
    shown.update({one.name: one for one in listed if one.name in shown and one.name not in changed})
    for change in found:
        if change.after is None and change.tool in gone:
            continue
        notes.extend(f"{change.tool}: {reason}" for reason in change.reasons)
        if change.after is None:
            gone[change.tool] = shown.pop(change.tool)
        elif change.grade == "dangerous" or (change.grade == "new" and are_new_held):
            held.append(_to_hold(change, change.after, refuses=True))
        elif change.grade == "changed" and changes != "accept":
            held.append(_to_hold(change, change.after, refuses=changes == "refuse"))
        else:
            shown[change.tool] = change.after
    _restore(shown, gone, listed, held)
    after = replace(record, tools=_plain(shown), gone=_plain(gone)[-MAX_GONE:], held=held)
    return after, tuple(notes)


def approved(record: ServerRecord, seen: Sequence[JsonObject]) -> ServerRecord:
    """The record after a human approved pending changes as displayed; later changes stay pending."""
    left = _without(record.held, seen)
    agreed = [one for one in record.held if one not in left]
    names = {str(one["tool"]) for one in agreed}
    shown = {str(tool["name"]): tool for tool in record.tools or ()}
    shown.update({str(one["tool"]): one["after"] for one in agreed})
    return replace(
        record,
        tools=list(shown.values()),
        gone=[tool for tool in record.gone if tool["name"] not in names],
        held=left,
    )


def is_over(record: ServerRecord, limits: ServerConfig) -> bool:
    lists = (record.tools or (), record.held, *record.offers.values())
    return record.size > 8 * limits.max_catalogue_bytes or any(len(each) > limits.max_tools for each in lists)


def trimmed(record: ServerRecord, limits: ServerConfig) -> ServerRecord:

    def cut(entries: Sequence[JsonObject]) -> list[JsonObject]:
        left, taken = limits.max_catalogue_bytes, list[JsonObject]()
        for entry in entries[: limits.max_tools]:
            left -= len(json.dumps(entry))
            if left < 0:
                break
            taken.append(entry)
        return taken

    return replace(
        record,
        tools=None if record.tools is None else cut(record.tools),
        held=cut(record.held),
        gone=cut(record.gone),
        offers={kind: cut(entries) for kind, entries in record.offers.items()},
    )


def _restore(
    shown: dict[str, ToolDefinition],
    gone: dict[str, ToolDefinition],
    listed: Sequence[ToolDefinition],
    held: Sequence[JsonObject],
) -> None:
    """List a removed tool that is there again: as it was approved, if it changed and is not refused."""
    waiting = {one["tool"]: one["refuses"] for one in held}
    for one in listed:
        if one.name in gone and not waiting.get(one.name, False):
            before = gone.pop(one.name)
            shown.setdefault(one.name, before if one.name in waiting else one)


def _without(held: Sequence[JsonObject], others: Sequence[JsonObject]) -> list[JsonObject]:
    known = [(one["tool"], one["after"]) for one in others]
    return [one for one in held if (one["tool"], one["after"]) not in known]


def _to_hold(change: Change, after: ToolDefinition, *, refuses: bool) -> JsonObject:
    return {
        "tool": change.tool,
        "reasons": list(change.reasons),
        "refuses": refuses,
        "before": None if change.before is None else asdict(change.before),
        "after": asdict(after),
    }


def _plain(definitions: dict[str, ToolDefinition]) -> list[JsonObject]:
    return [asdict(one) for one in definitions.values()]


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingChange:
    """A new or changed definition that waits for a human's approval."""

    server: str
    tool: str
    reasons: tuple[str, ...]
    after: ToolDefinition
    before: ToolDefinition | None = None
    refuses: bool = True
    """Whether the tool is refused meanwhile; else the approved definition is used."""

    @property
    def diff(self) -> str:
        from trysquare.gateway.definitions.drift import readable_diff

        return readable_diff(self.before, self.after)

    def refusal(self) -> ToolError:
        """The error of a call. It contains no text of the server, since a model reads it."""
        change = "new" if self.before is None else "changed"
        return ToolError(
            f"Tool `{self.tool}` of `{self.server}` is {change}, and a human must approve it first. Nothing was sent.",
            code=ErrorCode.STATE_CONFLICT,
            instruction=f"Continue without this tool, or ask the user to run `trysquare gateway diff {self.server}` and"
            f" `trysquare gateway approve {self.server}` in their terminal.",
            fields={"outcome": "not_sent"},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """A server's decoded record."""

    definitions: tuple[ToolDefinition, ...] | None
    by_name: Mapping[str, ToolDefinition]
    held: Mapping[str, PendingChange]
    offers: Mapping[str, Sequence[JsonObject]]


class DefinitionRegistry:
    """Registered definitions of all servers, shared with other processes through the store."""

    def __init__(self, database: Transactions, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stored = StoredDefinitions(database)
        self._clock = clock
        self._files: dict[str, str] = {}
        self._limits: dict[str, ServerConfig] = {}
        self._known: dict[str, _Known] = {}
        self._changes = -1
        self._poll_at = float("-inf")

    def configure(self, servers: Mapping[str, ServerEntry]) -> None:
        files = {name: entry.location.file for name, entry in servers.items()}
        for name in [name for name in self._known if files.get(name) != self._files.get(name)]:
            del self._known[name]
        self._files = files
        self._limits = {name: entry for name, entry in servers.items() if isinstance(entry, ServerConfig)}

    def definitions(self, server: str) -> tuple[ToolDefinition, ...] | None:
        """The listed tools of a server in stable order; None if it was never contacted."""
        return self._record(server).definitions

    def find(self, server: str, tool: str) -> ToolDefinition | None:
        return self._record(server).by_name.get(tool)

    def pending(self, server: str) -> tuple[PendingChange, ...]:
        return tuple(self._record(server).held.values())

    def pending_change(self, server: str, tool: str) -> PendingChange | None:
        return self._record(server).held.get(tool)

    def offer(self, server: str, kind: OfferKind) -> Sequence[JsonObject]:
        return self._record(server).offers.get(kind, ())

    def left_out(self, server: str) -> tuple[str, ...]:
        return tuple(str(note["reason"]) for note in self.offer(server, "left_out"))

    def take_left_out(self, server: str, reasons: Sequence[str]) -> None:
        """Store what was left out of a server's lists, and log it if it is new."""
        if self.take_offer(server, "left_out", [{"reason": reason} for reason in reasons]):
            for reason in reasons:
                logger.warning("left out of a list: server=%s: %s", server, reason)

    def take(self, server: str, definitions: Sequence[ToolDefinition]) -> bool:
        """Register a server's definitions: pin new ones, accept harmless changes, mark the others as pending.

        True if the listed definitions changed.
        """
        notes: tuple[str, ...] = ()
        entry = self._limits.get(server)
        policy: dict[str, Any] = {} if entry is None else {"changes": entry.changes, "first_use": entry.first_use}

        def change(record: ServerRecord) -> ServerRecord:
            nonlocal notes
            after, notes = described(record, definitions, **policy)
            return after

        before = self._record(server)
        known = self._change(
            server, change, audit=lambda old, new: _event("definition.held", _without(new.held, old.held))
        )
        _log(server, notes, is_new=before.definitions is None)
        for held in itertools.islice(known.held.values(), _MAX_LOGGED):
            if held != before.held.get(held.tool):
                use = "refused" if held.refuses else "approved definition in use"
                message = "change pending approval, %s: server=%s tool=%s: %s Run `trysquare gateway diff %s`."
                logger.warning(message, use, server, held.tool, " ".join(held.reasons), server)
        return known.definitions != before.definitions

    def take_offer(self, server: str, kind: OfferKind, entries: Sequence[JsonObject]) -> bool:
        """Register a server's prompts, resources, templates or instructions; whether they changed."""
        cleaned = [cleaned_value(entry) for entry in entries]
        if list(self.offer(server, kind)) == cleaned:
            return False
        self._change(server, lambda record: replace(record, offers={**record.offers, kind: cleaned}))
        return True

    def approve(self, seen: Sequence[PendingChange]) -> tuple[PendingChange, ...]:
        """Approve changes of one server as they were displayed; returns those that are still pending.

        A tool that changed again meanwhile stays pending.
        """
        if not seen:
            return ()
        server = seen[0].server
        agreed: list[JsonObject] = [{"tool": one.tool, "after": asdict(one.after)} for one in seen]
        known = self._change(
            server,
            lambda record: approved(record, agreed),
            audit=lambda old, new: _event("definition.approved", _without(old.held, new.held)),
        )
        return tuple(known.held.values())

    def forget(self, server: str) -> None:
        self._stored.forget(self._files.get(server, ""), server)
        self._known.pop(server, None)

    def _change(
        self, server: str, change: Callable[[ServerRecord], ServerRecord], *, audit: RecordAudit | None = None
    ) -> _Known:
        record = self._stored.change(self._files.get(server, ""), server, change, audit=audit)
        self._known[server] = known = _known(server, record)
        return known

    def _record(self, server: str) -> _Known:
        if (now := self._clock()) >= self._poll_at:
            self._poll_at, before = now + LOOK_SECONDS, self._changes
            self._changes = self._stored.changes()
            if self._changes != before:
                # Another process has changed the store.
                self._known.clear()
        known = self._known.get(server)
        if known is None:
            record = self._stored.find(self._files.get(server, ""), server)
            limits = self._limits.get(server)
            if limits is not None and is_over(record, limits):
                # Stored under other limits: cut once, so that later starts need not read all of it.
                return self._change(server, lambda record: trimmed(record, limits))
            known = self._known[server] = _known(server, record)
        return known


def _event(kind: str, held: Sequence[JsonObject]) -> AuditEvent | None:
    """The audit event: the number of definitions, and name, digest and reasons of the first."""
    if not held:
        return None
    tools = [
        {
            "tool": one_line(str(one["tool"])),
            "digest": hashlib.sha256(json.dumps(one["after"], sort_keys=True).encode()).hexdigest(),
            "reasons": one["reasons"],
        }
        for one in held[:_MAX_AUDITED]
    ]
    return AuditEvent(kind=kind, principal=local_principal().subject, body={"count": len(held), "tools": tools})


def _log(server: str, notes: Sequence[str], *, is_new: bool) -> None:
    """Log notes; problems at first sight as warnings."""
    level = logging.WARNING if is_new else logging.INFO
    for note in notes[:_MAX_LOGGED]:
        logger.log(level, "%s: %s", server, note)
    if len(notes) > _MAX_LOGGED:
        logger.log(level, "%s: %s more; run `trysquare gateway diff`", server, len(notes) - _MAX_LOGGED)


def _known(server: str, record: ServerRecord) -> _Known:
    definitions = None if record.tools is None else tuple(ToolDefinition(**tool) for tool in record.tools)
    return _Known(
        definitions=definitions,
        by_name={one.name: one for one in definitions or ()},
        held={one["tool"]: _held(server, one) for one in record.held},
        offers=record.offers,
    )


def _held(server: str, held: JsonObject) -> PendingChange:
    before = held["before"]
    return PendingChange(
        server=server,
        tool=held["tool"],
        reasons=tuple(held["reasons"]),
        # Missing in records of earlier versions.
        refuses=held.get("refuses", True),
        after=ToolDefinition(**held["after"]),
        before=None if before is None else ToolDefinition(**before),
    )
