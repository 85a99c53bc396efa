"""Signed receipts of a bot in a project: which completions an approver signed, wherever the state came from."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from trysquare.bots.checkout_runs import is_of_checkout
from trysquare.bots.run_files import defined_digests
from trysquare.bots.workflow.machine import INITIALIZE, Depth, Entry, Position
from trysquare.bots.workflow.state_file import MAIN
from trysquare.core.approvals import SignedStatement
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.files.root import DirectoryRoot
from trysquare.store.approvers import RECEIPTS, SIGNATURE, Approvers, read_receipt, receipt_bytes, receipt_path
from trysquare.store.signatures import InvalidSignature, read_statement, read_time

Produced: TypeAlias = Callable[[Position], Sequence[str]]
"""The files of an action, by the paths of the bot's definition."""
_Key: TypeAlias = tuple[str, str, int]
_Stamp: TypeAlias = tuple[tuple[str, int, int], ...]


def write_receipt(project: Path, signed: SignedStatement) -> None:
    """Store a receipt in the project, to be committed with its state file."""
    with DirectoryRoot(project) as folder:
        folder.write_bytes(receipt_path(signed), receipt_bytes(signed))


class SignedReceipts:
    """The receipts in a project. A completion is proven by the one that was signed for exactly this close.

    That is its run, its action, the version of the run that was closed, and the files. What a table or a state file
    says beside it makes no difference, so that edited, copied and restored ones prove what was signed and nothing else.
    """

    def __init__(self, root: Path, bot: str, approvers: Approvers, produced: Produced) -> None:
        self._root = root
        self._bot = bot
        self._approvers = approvers
        self._produced = produced
        self._stamp: _Stamp = ()
        self._found: dict[_Key, list[SignedStatement]] = {}
        self._starts: dict[tuple[str, str], list[SignedStatement]] = {}
        """What was signed for the start of a run with a preset."""

    def demanded(self) -> bool:
        """Whether strict runs of this project need signatures."""
        return self._approvers.is_configured()

    def evidence(self, run: str, entry: Entry) -> Entry | None:
        """The completion with the evidence of its receipt; None without a receipt that holds."""
        try:
            return self.proven(run, entry)
        except InvalidSignature:
            return None

    def proven(self, run: str, entry: Entry) -> Entry:
        """The completion with the evidence of its receipt, or `InvalidSignature`."""
        key = _line_of(run), entry.position.path(self._bot), entry.version
        problem = InvalidSignature("no approver signed this close of this run")
        for signed in self._receipts().get(key, ()):
            try:
                return self._fitted(entry, signed)
            except InvalidSignature as error:
                problem = error
        raise problem

    def gave_up(self, run: str, depth: Depth) -> bool:
        """Whether an approver signed that this run starts with a preset, and everything that it takes away."""
        taken = {str(each) for each in depth.left_out | depth.waived if each.action != INITIALIZE}
        self._receipts()
        for signed in self._starts.get((_line_of(run), depth.name), ()):
            with suppress(InvalidSignature):
                _, fields = self._approvers.verify(signed)
                given = as_object(fields.get("arguments"))
                same = (fields.get("project"), given.get("bot")) == (
                    self._approvers.project_name(self._root),
                    self._bot,
                )
                if same and taken <= set(map(str, as_list(given.get("takes_away")))):
                    return True
        return False

    def _fitted(self, entry: Entry, signed: SignedStatement) -> Entry:
        by, fields = self._approvers.verify(signed)
        if fields.get("project") != (name := self._approvers.project_name(self._root)):
            raise InvalidSignature(f"it was signed for project {fields.get('project')}, and this is {name}")
        if (entry.approval == "skipped") != ("skip" in as_object(fields.get("arguments"))):
            raise InvalidSignature("the signed text says otherwise whether the action was skipped")
        if entry.by != by:
            raise InvalidSignature(f"{by} signed it, and not {entry.by}")
        if not str(fields.get("signed")) <= entry.at <= str(fields.get("expires")):
            raise InvalidSignature("it was closed when the signature had expired")
        digests = defined_digests(as_object(fields.get("files")), str(fields.get("run")))
        files = {path: digests[path] for path in self._produced(entry.position) if path in digests}
        if entry.files is not None and dict(entry.files) != files:
            raise InvalidSignature("other files were signed")
        return replace(entry, how=SIGNATURE, files=files)

    def files(self) -> dict[str, bytes]:
        """Every receipt in the project by its path."""
        folder = self._root / RECEIPTS
        found = sorted(folder.glob("*.json")) if folder.is_dir() else []
        return {f"{RECEIPTS}/{each.name}": each.read_bytes() for each in found}

    def _receipts(self) -> dict[_Key, list[SignedStatement]]:
        stamp = _stamp_of(self._root / RECEIPTS)
        if stamp != self._stamp:
            self._found, self._starts = {}, {}
            for data in self.files().values():
                self._add(data)
            self._stamp = stamp
        return self._found

    def _add(self, data: bytes) -> None:
        try:
            signed = read_receipt(data)
            fields = read_statement(signed.text)
            for key in closes_of(fields):
                self._found.setdefault(key, []).append(signed)
            given = as_object(fields.get("arguments"))
            if "preset" in given:
                start = _line_of(str(given.get("run"))), str(given["preset"])
                self._starts.setdefault(start, []).append(signed)
        except InvalidSignature:
            return  # `trysquare verify` names it


def closes_of(fields: JsonObject) -> list[_Key]:
    """The closes that a statement is about: run, action and the version that each makes."""
    version = fields.get("version")
    if "gate" not in fields or not isinstance(version, int):
        return []
    read_time(fields, "signed")
    closes = as_list(as_object(fields.get("arguments")).get("closes")) or [fields["gate"]]
    run = _line_of(str(fields.get("run")))
    return [(run, str(path), version + 1 + number) for number, path in enumerate(closes)]


def _line_of(run: str) -> str:
    """The runs of a project's branches and worktrees are one line of work: git brings what was signed from each."""
    return MAIN if is_of_checkout(run) else run


def _stamp_of(folder: Path) -> _Stamp:
    try:
        with os.scandir(folder) as scan:
            found = [(each.name, each.stat()) for each in scan]
    except OSError:
        return ()
    return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in found))
