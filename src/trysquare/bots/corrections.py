"""Corrections of a bot: kept in the store, shown as a diff of its folder, applied and taken back by a human."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from trysquare.bots.definition.check import check_bot, require_sound_rules
from trysquare.bots.definition.loader import load_bot
from trysquare.bots.projects import LiveBot
from trysquare.bots.workflow.runs import WorkflowRuns
from trysquare.core.errors import ConfigurationError, ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.files.root import DirectoryRoot, PathNotAllowed
from trysquare.store.audit import utc_now

_NOTE = "corrections"
_MAX_KEPT = 200
_MAX_TEXT = 64 * 1024
_MAX_FILE = 256 * 1024
Decision = Literal["apply", "take_back"]


class Edit(BaseModel):
    """A correction as it is proposed: what was wrong, and perhaps the change of one file of the bot's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    text: Annotated[str, Field(min_length=1, max_length=_MAX_TEXT)]
    file: Annotated[str, Field(min_length=1, max_length=400)] | None = None
    old: Annotated[str, Field(max_length=_MAX_TEXT)] = ""
    """A piece of the file, which stands there once; empty for a new file."""
    new: Annotated[str, Field(max_length=_MAX_TEXT)] = ""


class Correction(Edit):
    """A correction as it is kept."""

    id: int
    by: str
    at: str
    status: Literal["kept", "applied", "taken_back"] = "kept"
    before: str | None = None
    """The file before it was applied; None for a file that it made."""
    after: str | None = None
    """Digest of the file after it was applied."""


_KEPT = TypeAdapter(list[Correction])


def read_corrections(raw: Any) -> list[Edit]:
    """The corrections of a call: texts, or objects with the change of a file."""
    if not isinstance(raw, list):
        raise InvalidArguments("`corrections` must be a list.", instruction='Send {"corrections": ["…"]}.')
    edits: list[Edit] = []
    for number, each in enumerate(raw):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        try:
            edits.append(Edit.model_validate({"text": each} if isinstance(each, str) else each))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, (number, *first["loc"])))
            raise InvalidArguments(
                f"`corrections.{where}`: {first['msg']}. Nothing was done.",
                instruction="A correction is a text, or an object of `text`, `file`, `old` and `new`.",
            ) from None
    return edits


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What a correction makes of its file."""

    file: str
    before: str | None
    after: str | None
    """None where the file is removed."""

    @property
    def diff(self) -> str:
        old, new = (self.before or "").splitlines(), (self.after or "").splitlines()
        names = (f"a/{self.file}" if self.before is not None else "/dev/null",
                 f"b/{self.file}" if self.after is not None else "/dev/null")  # fmt: skip
        return "\n".join(unified_diff(old, new, *names, lineterm=""))


class Corrections:
    """The corrections of one bot in one project."""

    def __init__(self, bot: LiveBot, state: WorkflowRuns) -> None:
        self._bot = bot
        self._state = state

    def all(self) -> list[Correction]:
        return _KEPT.validate_python(self._state.bot_notes().get(_NOTE, []))

    def find(self, number: int) -> Correction:
        found = next((each for each in self.all() if each.id == number), None)
        if found is None:
            known = ", ".join(str(each.id) for each in self.all()) or "none"
            raise NotFound(f"There is no correction {number}; known: {known}.", code=ErrorCode.RESOURCE_NOT_FOUND)
        return found

    def keep(self, edits: Sequence[Edit], *, by: str) -> list[Correction]:
        """Keep corrections; one that is kept already is not kept twice."""

        def added(kept: list[Correction]) -> list[Correction]:
            known = {(each.text, each.file, each.old, each.new) for each in kept if each.status == "kept"}
            number = max((each.id for each in kept), default=0)
            for edit in edits:
                if (edit.text, edit.file, edit.old, edit.new) not in known:
                    number += 1
                    kept.append(Correction(**edit.model_dump(), id=number, by=by, at=utc_now()))
            return kept

        return self._update(added, kind="corrections", by=by, body={"kept": [each.model_dump() for each in edits]})

    def change(self, correction: Correction, decision: Decision) -> Change:
        """The change of the folder, or an error that says why it does not fit."""
        if correction.file is None:
            raise InvalidArguments(
                f"Correction {correction.id} is a text without a change of a file.",
                instruction="Send it again as an object of `text`, `file`, `old` and `new`.",
            )
        is_applied = correction.status == "applied"
        if is_applied != (decision == "take_back"):
            raise _conflict(f"Correction {correction.id} is {'' if is_applied else 'not '}applied.")
        present = self._read(correction.file)
        if decision == "apply":
            return Change(file=correction.file, before=present, after=_edited(correction, present))
        if _digest(present) != correction.after:
            raise _conflict(f"{correction.file} was changed since correction {correction.id} was applied.")
        return Change(file=correction.file, before=present, after=correction.before)

    def decide(self, number: int, decision: Decision, change: Change, *, by: str) -> Correction:
        """Make a change that a human agreed to. The bot is tested with it first, and again in its place."""
        correction = self.find(number)
        if self.change(correction, decision) != change:
            raise _conflict(f"{change.file} was changed meanwhile.")
        self._try(change)
        _put(self._bot.config.folder, change.file, change.after)
        try:
            self._bot.reload(by)
        except ConfigurationError as error:
            _put(self._bot.config.folder, change.file, change.before)
            raise _refused(error) from None
        status = "applied" if decision == "apply" else "taken_back"
        update: JsonObject = {"status": status, "before": None, "after": None}
        if decision == "apply":
            update |= {"before": change.before, "after": _digest(change.after)}
        fresh = correction.model_copy(update=update)
        body: JsonObject = {"correction": number, "file": change.file, "by": by, "decision": decision}
        self._update(
            lambda kept: [fresh if each.id == number else each for each in kept], kind="corrected", by=by, body=body
        )
        return fresh

    def shown(self, correction: Correction) -> JsonObject:
        """A correction for a response: with its diff, or with the reason why it does not fit."""
        fields: JsonObject = {
            "id": correction.id, "status": correction.status, "text": correction.text, "by": correction.by,
        }  # fmt: skip
        if correction.file is None:
            return fields
        decision: Decision = "take_back" if correction.status == "applied" else "apply"
        try:
            return {**fields, "file": correction.file, "diff": self.change(correction, decision).diff}
        except ToolError as error:
            return {**fields, "file": correction.file, "problem": str(error)}

    def _update(
        self, change: Callable[[list[Correction]], list[Correction]], *, kind: str, by: str, body: JsonObject
    ) -> list[Correction]:
        def changed(raw: Any) -> Any:
            kept = change(_KEPT.validate_python(raw or []))
            if sum(each.status != "taken_back" for each in kept) > _MAX_KEPT:
                raise _conflict(f"More than {_MAX_KEPT} corrections are kept.")
            return [each.model_dump() for each in kept[-2 * _MAX_KEPT :]]

        return _KEPT.validate_python(self._state.update_bot_note(_NOTE, changed, kind=kind, principal=by, body=body))

    def _read(self, file: str) -> str | None:
        try:
            with DirectoryRoot(self._bot.config.folder) as folder:
                return folder.read_text(file, limit=_MAX_FILE)
        except PathNotAllowed as error:
            raise InvalidArguments(f"`{file[:200]}` is not in the bot's folder: {error}") from None
        except NotFound:
            return None

    def _try(self, change: Change) -> None:
        """Load and test the bot with the change in a copy of its folder."""
        with tempfile.TemporaryDirectory() as parent:
            copy = Path(parent) / self._bot.config.folder.resolve().name
            shutil.copytree(self._bot.config.folder, copy, symlinks=True)
            _put(copy, change.file, change.after)
            try:
                definition = load_bot(copy)
                require_sound_rules(definition)
            except ConfigurationError as error:
                raise _refused(error, str(copy), str(self._bot.config.folder)) from None
            defects = check_bot(definition).defects
        if definition.name != self._bot.name:
            raise _conflict(f"The bot would be named {definition.name}.")
        if defects:
            raise _conflict(f"The workflow would have a defect: {defects[0]}.")


def _put(root: Path, file: str, text: str | None) -> None:
    with DirectoryRoot(root) as folder:
        if text is None:
            folder.remove(file)
        else:
            folder.write_bytes(file, text.encode("utf-8"))


def _edited(correction: Correction, present: str | None) -> str:
    if not correction.old:
        if present is not None:
            raise _conflict(f"{correction.file} exists; name in `old` what is replaced.")
        return correction.new
    count = 0 if present is None else present.count(correction.old)
    if present is None or count != 1:
        found = "does not exist" if present is None else f"has the text of `old` {count} times"
        raise _conflict(f"{correction.file} {found}.")
    return present.replace(correction.old, correction.new)


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _conflict(problem: str) -> ToolError:
    return ToolError(
        f"{problem} Nothing was changed.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Read the file and send the correction again.",
    )


def _refused(error: ConfigurationError, copy: str = "", folder: str = "") -> ToolError:
    text = str(error).replace(copy, folder) if copy else str(error)
    return ToolError(
        f"The bot does not hold with this correction, so it was taken back: {text}",
        code=ErrorCode.CONFIG_INVALID,
        instruction="Send a correction with which the bot's rules hold.",
    )
