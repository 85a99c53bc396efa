"""Contents of produced files, and saved answers and decisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path, PurePosixPath
from typing import Any, cast

from trysquare.bots.definition.model import BotDefinition
from trysquare.bots.workflow.machine import StateConflict
from trysquare.bots.workflow.runs import WorkflowRuns
from trysquare.core.errors import ConfigurationError, ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.files.edit import exclusive_lock
from trysquare.files.root import DirectoryRoot, PathNotAllowed
from trysquare.store.location import FOLDER, prepare_folder

CONTENTS = f"{FOLDER}/artifacts"
MAX_FILE = 4_000_000
"""Of larger files only the digests are recorded."""
CLARIFICATION = "clarification.json"
PLANNING = "planning.json"
_MAX_ENTRIES = 200
_MAX_ENTRY = 20_000
_CLOSING = ("workflow.close", "workflow.skip")

Digests = Mapping[str, str]
"""Digests of files by their paths in the project."""


def store_contents(project: Path, files: Digests) -> tuple[str, ...]:
    """Store the contents of files whose digests a close records; returns a warning if that fails.

    The contents are for comparisons and may be deleted at any time.
    """
    if not files:
        return ()
    try:
        prepare_folder(project / FOLDER)
        with DirectoryRoot(project) as folder:
            for path, digest in files.items():
                data = _read_version(folder, path, digest)
                if data is not None and _read_version(folder, f"{CONTENTS}/{digest}", digest) is None:
                    folder.write_bytes(f"{CONTENTS}/{digest}", data, mode=0o600)
    except (ToolError, ConfigurationError, OSError) as error:
        return (f"Only the digests of the files were recorded; their contents could not be stored ({error}).",)
    return ()


def contents(project: Path, path: str, digest: str) -> bytes | None:
    """The contents of a recorded file, from the stored copy or from the unchanged file itself; None without either."""
    with DirectoryRoot(project) as folder:
        copies = (_read_version(folder, each, digest) for each in (f"{CONTENTS}/{digest}", path))
        return next((data for data in copies if data is not None), None)


def _read_version(folder: DirectoryRoot, path: str, digest: str) -> bytes | None:
    """The contents of a file, if they have the digest."""
    try:
        data = folder.read_bytes(path, limit=MAX_FILE)
    except (NotFound, PathNotAllowed):
        return None
    return data if hashlib.sha256(data).hexdigest() == digest else None


def files_at(state: WorkflowRuns, run: str, version: int | None = None) -> dict[str, str]:
    """The files of a run as they were last recorded by its closes up to a version, or until now."""
    origins: dict[str, str] = {}
    each = run
    while each and each not in origins:
        origins[each] = state.origin(each)
        each = origins[each].rpartition("@")[0]
    recorded = [body for kind in _CLOSING for body in state.audited(kind)]
    return _recorded(recorded, origins, run, version)


def _recorded(
    closes: Iterable[JsonObject], origins: Mapping[str, str], run: str, version: int | None
) -> dict[str, str]:
    before, _, at = origins.get(run, "").rpartition("@")
    found = _recorded(closes, origins, before, int(at)) if before and before != run and at.isdigit() else {}
    own = [body for body in closes if body.get("run") == run and "files" in body]
    for body in sorted(own, key=lambda body: body["version"]):
        if version is not None and body["version"] > version:
            break
        # By the paths of the definition, so that the files of two runs can be compared.
        found.update(body.get("defined", body.get("files", {})))
        for path in body.get("defined_absent", body.get("absent", ())):
            found.pop(path, None)
    return found


def changed_files(project: Path, before: Digests, after: Digests, *, headings: tuple[str, str]) -> list[JsonObject]:
    """The differences between two states of the files, with the lines where both contents are available."""
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    return [_difference(project, path, before.get(path), after.get(path), headings) for path in paths]


def _difference(project: Path, path: str, old: str | None, new: str | None, headings: tuple[str, str]) -> JsonObject:
    difference: JsonObject = {
        "path": path,
        "change": "added" if old is None else "removed" if new is None else "changed",
        "before": old,
        "after": new,
    }
    texts = [_text(project, path, digest) for digest in (old, new)]
    lost = [name for name, text in zip(headings, texts, strict=True) if text is None]
    if lost:
        return {**difference, "lines": None, "note": f"The contents at {' and '.join(lost)} are not available."}
    first, second = (text or "" for text in texts)
    names = (f"{path} ({headings[0]})", f"{path} ({headings[1]})")
    lines = unified_diff(first.splitlines(), second.splitlines(), *names, lineterm="")
    return {**difference, "lines": list(lines)}


def _text(project: Path, path: str, digest: str | None) -> str | None:
    if digest is None:
        return ""
    data = contents(project, path, digest)
    return None if data is None else data.decode("utf-8", "replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedAnswers:
    answers: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    decisions: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])


def documents_folder(definition: BotDefinition) -> str:
    """Directory of a bot's documents in a project: that of the first one that it builds."""
    for behavior in definition.behaviors:
        for config in behavior.content.knowledge:
            return str(PurePosixPath(config.output).parent)
    return f"docs/{definition.name}" + ("" if definition.run is None else f"/runs/{definition.run}")


def saved_path(definition: BotDefinition, document: str) -> str:
    """Path of the saved answers (`CLARIFICATION`) or decisions (`PLANNING`)."""
    return str(PurePosixPath(documents_folder(definition)) / document)


def load_saved(project: Path, definition: BotDefinition) -> SavedAnswers:
    """The answers and decisions that earlier actions saved."""
    with DirectoryRoot(project) as folder:
        return SavedAnswers(
            answers=_read_document(folder, saved_path(definition, CLARIFICATION)),
            decisions=_read_document(folder, saved_path(definition, PLANNING)),
        )


def read_texts(name: str, raw: Any) -> JsonObject:
    """Answers or decisions of a call, by question: strings, or JSON of limited size."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise InvalidArguments(
            f"`{name}` must be an object.", instruction=f'Write it as {{"{name}": {{"the question": "the answer"}}}}.'
        )
    given = {str(key): value for key, value in cast(Mapping[Any, Any], raw).items()}
    if len(given) > _MAX_ENTRIES or any(len(json.dumps(each)) > _MAX_ENTRY for each in given.items()):
        raise InvalidArguments(
            f"`{name}` has more than {_MAX_ENTRIES} entries, or one of more than {_MAX_ENTRY:,} characters.",
            instruction="Save less in one call, and put long texts into files of the project.",
        )
    return given


def save_texts(project: Path, path: str, behavior: str, more: JsonObject) -> None:
    """Add answers or decisions to those of a behavior; a new one replaces an old one of the same name."""
    try:
        with DirectoryRoot(project) as folder, exclusive_lock(folder.root, directory=True):
            document = _read_document(folder, path)
            saved = document.setdefault(behavior, {})
            for name, value in more.items():
                saved[name] = {**as_object(saved.get(name)), **as_object(value)} if isinstance(value, dict) else value
            text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
            folder.write_bytes(path, text.encode("utf-8", "replace"))
    except (ConfigurationError, OSError) as error:
        raise ToolError(
            f"`{path}` of the project cannot be written: {getattr(error, 'strerror', None) or error}.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Tell the user; when they have fixed it, send the same call again.",
        ) from error


def _read_document(folder: DirectoryRoot, path: str) -> dict[str, JsonObject]:
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


def _unreadable(path: str, why: str) -> StateConflict:
    return StateConflict(
        f"`{path}` of the project cannot be read: {why}. Nothing was overwritten.",
        instruction="Tell the user, or fix the file; then send the call again.",
    )
