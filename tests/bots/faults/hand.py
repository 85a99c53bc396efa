"""What a person does to the state files with an editor, and what a program that heard of it may have changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from tests.bots.faults.record import Event, Line, Record, is_done
from tests.bots.faults.tool_site import LAWS, Law, Site, read_document
from trysquare.bots.workflow.sync import NAME

AT = "2026-11-15T12:00:00.000Z"
Document: TypeAlias = dict[str, Any]
Lines: TypeAlias = "dict[str, set[tuple[str, int | None, bool]]]"


def _done(path: str, **more: Any) -> Document:
    return {"action_state": path, "timestamp": AT, **more}


SEEDS: Mapping[str, Document] = {
    "begun": {
        "current_behavior": "mini.shape",
        "current_action": "mini.shape.gather_context",
        "timestamp": AT,
        "completed_actions": [_done("mini.shape.initialize_project")],
    },
    "forged": {
        "current_behavior": "mini.code",
        "current_action": "mini.code.gather_context",
        "timestamp": AT,
        "completed_actions": [_done("mini.shape.gather_context", approval="confirmed", version=3)],
        "version": 3,
    },
}
"""State files that came with the project's folder."""


@dataclass(kw_only=True)
class Touch:
    """What was done to a file since a call last heard of it."""

    way: str
    shown: Lines
    """What the file told before it was touched."""
    says: Lines = field(default_factory=dict)
    written: bytes | None = None
    heard: bool = False
    runs: set[str] = field(default_factory=set[str])
    """The runs whose change was taken over."""


class Hand:
    """Edits, deletes, spoils, copies and restores the state files of the bots."""

    WAYS: ClassVar = ("pointer", "pointer", "done", "drop", "finish", "run", "unversioned", "layout", "delete", "spoil",
                      "halve", "swap", "copy", "restore")  # fmt: skip

    def __init__(self, site: Site) -> None:
        self._site = site
        self._touches: dict[str, Touch] = {}
        self._left: dict[str, tuple[bytes, Lines]] = {}
        """What lies there although a call heard of it, since the disk failed, and what the file told before."""
        self._copies: dict[str, list[bytes]] = {bot: [] for bot in LAWS}

    def lay(self, document: Document) -> None:
        """Put a state file into a project in which no bot has worked."""
        (self._site.project / NAME).write_text(json.dumps(document), encoding="utf-8")
        self._touches["mini"] = Touch(way="edit", shown={}, says=_lines("mini", document))

    def touch(self, bot: str, run: str, way: str, pick: int) -> None:
        """Do something to the file of a bot, if it lies there and the last touch of it is not half heard."""
        file = self._site.window(bot)
        known = self._touches.get(bot)
        if not file.exists() or (known is not None and known.heard) or not self._site.has_worked(bot):
            return
        data = file.read_bytes()
        if way == "copy":
            self._copies[bot].append(data)
            return
        shown = self._shown(bot, data) if known is None else known.shown
        written = self._written(bot, run, way, pick, data)
        if written is None and way != "delete":
            return
        if written is None:
            file.unlink()
        else:
            file.write_bytes(written)
        document = None if written is None else read_document(written)
        kind = "delete" if written is None else "garbage" if document is None else "edit"
        self._touches[bot] = Touch(way=kind, shown=shown, says=_lines(bot, document), written=written)

    def _shown(self, bot: str, data: bytes) -> Lines:
        """What the person was last shown: contents that could not be moved away are still their own."""
        left, shown = self._left.get(bot, (b"", {}))
        return shown if left == data else _lines(bot, read_document(data))

    def _written(self, bot: str, run: str, way: str, pick: int, data: bytes) -> bytes | None:
        """The new contents; None where the file goes, or nothing can be done in this way."""
        copies, other = self._copies[bot], next(each for each in LAWS if each != bot)
        match way:
            case "spoil":
                return (b"", b"{", b"[]", b"{}", b"\xff\x00", b'{"current_action": "a.b.c"}')[pick % 6]
            case "halve":
                return data[: len(data) // 2]
            case "swap":
                return data.replace(f'"{bot}.'.encode(), f'"{other}.'.encode())
            case "restore":
                return copies[pick % len(copies)] if copies else None
            case "delete":
                return None
            case _:
                document = read_document(data)
                return None if document is None else _edited(LAWS[bot], document, run, way, pick)

    def change_document(self, pick: int) -> None:
        """Change a file that an action produces."""
        file = self._site.project / "docs" / "map.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"schema": 1, "epics": [], "edition": pick}), encoding="utf-8")

    def is_touched(self, bot: str) -> bool:
        return bot in self._touches

    def heard(self, bot: str) -> None:
        """A call of the bot is made, which may take the touch over."""
        if bot in self._touches:
            self._touches[bot].heard = True

    def forget(self, bot: str) -> None:
        """A call of the bot was answered, and with it the touch was taken over."""
        touch, file = self._touches.pop(bot, None), self._site.window(bot)
        if touch is not None and touch.written is not None and file.exists() and file.read_bytes() == touch.written:
            self._left[bot] = (touch.written, _joined(touch.shown, touch.says))

    def check(self, law: Law, record: Record, event: Event) -> None:
        """A change by hand was made by hand, is taken over once, and loses only what the person took out."""
        touch = self._touches.get(law.bot)
        assert touch is not None, "a state file that nobody touched changed a run"
        assert event.run not in touch.runs, "one edit was taken over twice"
        touch.runs.add(event.run)
        assert touch.way == ("delete" if event.kind == "reset_by_delete" else "edit")
        if touch.way == "delete":
            return
        _, told = record.before(law, event)
        history = record.history(event)
        assert {_key(line) for line in told} <= {_key(line) for line in history}, "a line was lost"
        taken_out = touch.shown.get(event.run, set()) - touch.says.get(event.run, set())
        undone = {line.path for line in told if is_done(told, line.path) and not is_done(history, line.path)}
        assert undone <= {path for path, _, _ in taken_out}, "a completion was lost"


def _key(line: Line) -> tuple[str, int | None, bool]:
    return line.path, line.version, line.is_done


def _lines(bot: str, document: Document | None) -> Lines:
    """The histories that a file shows."""
    if document is None:
        return {}
    runs = {"main": document, **document.get("runs", {})}
    return {run: set(_history(bot, part.get("completed_actions", []))) for run, part in runs.items()}


def _history(bot: str, lines: list[Document]) -> Iterator[tuple[str, int | None, bool]]:
    newest = 0
    for line in lines:
        # A line that a person added has no version: it is newer than those above it.
        version = line.get("version", newest + 1)
        newest = max(newest, version)
        yield str(line["action_state"]).removeprefix(f"{bot}."), version, "reopened" not in line


def _joined(one: Lines, other: Lines) -> Lines:
    return {run: one.get(run, set()) | other.get(run, set()) for run in {*one, *other}}


def _edited(law: Law, document: Document, run: str, way: str, pick: int) -> bytes | None:
    """The file with one thing changed in the part of a run."""
    path = f"{law.bot}.{law.order[pick % len(law.order)]}"
    runs = document.setdefault("runs", {})
    part: Document = document if run == "main" else runs.setdefault(run, {"completed_actions": []})
    changes: Mapping[str, Callable[[], object]] = {
        "pointer": lambda: (part.update(current_action=path), part.pop("workflow_complete", None)),
        "done": lambda: part["completed_actions"].append(
            _done(path, approval=("claimed", "confirmed", "proven")[pick % 3])
        ),
        "drop": lambda: (
            part["completed_actions"] and part["completed_actions"].pop(pick % len(part["completed_actions"]))
        ),
        "finish": lambda: part.update(workflow_complete=True),
        "run": lambda: runs.update({"story-12": {"current_action": path, "completed_actions": []}}),
        "unversioned": lambda: part.pop("version", None),
        "layout": lambda: None,
    }
    changes[way]()
    return json.dumps(document, indent=pick).encode()
