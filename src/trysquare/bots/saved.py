"""Saved: the answers and decisions of a project, kept as files beside its documents, one entry for each behavior."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

from trysquare.bots.definition import BotDefinition
from trysquare.core.errors import ConfigurationError, ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.types import JsonObject
from trysquare.files.sealed_folder import SealedFolder
from trysquare.store.location import FOLDER, prepare_folder

CLARIFICATION = "clarification.json"
PLANNING = "planning.json"
_MOST = 200
_LONGEST = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """What was saved, by behavior."""

    answers: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    decisions: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Each with `decisions` and `assumptions`."""


def documents_folder(definition: BotDefinition) -> str:
    """Where a bot keeps its documents in a project: beside the first one that it builds."""
    for behavior in definition.behaviors:
        for config in behavior.content.knowledge:
            return str(PurePosixPath(config.output).parent)
    return f"docs/{definition.name}" + ("" if definition.run is None else f"/runs/{definition.run}")


def clarification_path(definition: BotDefinition) -> str:
    """The file that holds the answers."""
    return str(PurePosixPath(documents_folder(definition)) / CLARIFICATION)


def planning_path(definition: BotDefinition) -> str:
    """The file that holds the decisions."""
    return str(PurePosixPath(documents_folder(definition)) / PLANNING)


def load_saved(project: Path, definition: BotDefinition) -> Saved:
    """What earlier actions saved."""
    with SealedFolder(project) as folder:
        return Saved(
            answers=_read(folder, clarification_path(definition)),
            decisions=_read(folder, planning_path(definition)),
        )


def save_answers(project: Path, definition: BotDefinition, behavior: str, answers: JsonObject) -> None:
    """Add answers to those of a behavior; an answer to the same question replaces it."""
    _add(project, clarification_path(definition), behavior, answers)


def save_decisions(project: Path, definition: BotDefinition, behavior: str, decided: JsonObject) -> None:
    """Add decisions and assumptions to those of a behavior."""
    _add(project, planning_path(definition), behavior, decided)


def read_texts(name: str, raw: Any) -> JsonObject:
    """Answers or decisions as a call gives them: texts, or JSON of a bearable size, by question."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise InvalidArguments(
            f"`{name}` is an object.", instruction=f'Write it as {{"{name}": {{"the question": "the answer"}}}}.'
        )
    given = {str(key): value for key, value in cast(Mapping[Any, Any], raw).items()}
    if len(given) > _MOST or any(len(json.dumps(each)) > _LONGEST for each in given.items()):
        raise InvalidArguments(
            f"`{name}` holds more than {_MOST} entries, or one of more than {_LONGEST:,} characters.",
            instruction="Save less in one call, and keep long texts in files of the project.",
        )
    return given


def _add(project: Path, path: str, behavior: str, more: JsonObject) -> None:
    try:
        with _locked(project), SealedFolder(project) as folder:
            document = _read(folder, path)
            document[behavior] = _merged(document.get(behavior, {}), more)
            text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
            folder.write_bytes(path, text.encode("utf-8", "replace"))
    except (ConfigurationError, OSError) as error:
        raise ToolError(
            f"`{path}` of the project cannot be written: {getattr(error, 'strerror', None) or error}.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Tell the person; once they mended it, the same call can be sent again.",
        ) from error


def _merged(before: JsonObject, more: JsonObject) -> JsonObject:
    merged = dict(before)
    for name, value in more.items():
        known = merged.get(name)
        both = isinstance(known, dict) and isinstance(value, dict)
        merged[name] = {**cast(JsonObject, known), **cast(JsonObject, value)} if both else value
    return merged


def _read(folder: SealedFolder, path: str) -> dict[str, JsonObject]:
    try:
        text = folder.read_text(path)
    except NotFound:
        return {}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"it is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise _unreadable(path, "it is not a JSON object")
    parts = cast(dict[str, Any], document)
    wrong = next((name for name, part in parts.items() if not isinstance(part, dict)), None)
    if wrong is not None:
        raise _unreadable(path, f"`{wrong[:60]}` is not an object")
    return cast(dict[str, JsonObject], parts)


def _unreadable(path: str, why: str) -> ToolError:
    return ToolError(
        f"`{path}` of the project cannot be read: {why}. Nothing was overwritten.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Tell the person, or mend the file; then send the call again.",
    )


@contextmanager
def _locked(project: Path) -> Generator[None]:
    """Two processes that save at once must not lose what the other one saved."""
    folder = project / FOLDER
    prepare_folder(folder)
    descriptor = os.open(folder / "saved.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
