"""Artifacts: what the files of a project held whenever an action was closed.

The audit of a close records the digest of each file that the action produced. The contents are kept beside it, by
their digest, in the project's `.trysquare/artifacts`. They may be deleted at any time: what is told then is the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from pathlib import Path

from trysquare.bots.state import BotState
from trysquare.core.errors import ConfigurationError, NotFound, ToolError
from trysquare.core.types import JsonObject
from trysquare.files.sealed_folder import PathRefused, SealedFolder
from trysquare.store.location import FOLDER, prepare_folder

KEPT = f"{FOLDER}/artifacts"
LARGEST = 4_000_000
"""Larger files are known by their digests alone."""
_CLOSING = ("workflow.close", "workflow.skip")

Digests = Mapping[str, str]
"""Files by their paths in the project, each with the digest of its contents."""


def keep(project: Path, files: Digests) -> tuple[str, ...]:
    """Keep the contents of files that are about to be recorded; what could not be kept is told and harms nothing."""
    if not files:
        return ()
    try:
        prepare_folder(project / FOLDER)
        with SealedFolder(project) as folder:
            for path, digest in files.items():
                _keep_one(folder, path, digest)
    except (ToolError, ConfigurationError, OSError) as error:
        return (f"The contents of the files could not be kept for comparisons; their digests are. ({error})",)
    return ()


def _keep_one(folder: SealedFolder, path: str, digest: str) -> None:
    data = _read(folder, path)
    # A file that changed a moment ago is not what is recorded.
    if data is not None and _digest(data) == digest and _read(folder, f"{KEPT}/{digest}") is None:
        folder.write_bytes(f"{KEPT}/{digest}", data, mode=0o600)


def contents(project: Path, path: str, digest: str) -> bytes | None:
    """What a file held, from what was kept or from the file itself if it is still the same; None where neither is."""
    with SealedFolder(project) as folder:
        for place in (f"{KEPT}/{digest}", path):
            data = _read(folder, place)
            if data is not None and _digest(data) == digest:
                return data
    return None


def _read(folder: SealedFolder, path: str) -> bytes | None:
    try:
        return folder.read_bytes(path, limit=LARGEST)
    except (NotFound, PathRefused):
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def files_at(state: BotState, run: str, version: int | None = None) -> dict[str, str]:
    """The files of a run as they were last recorded by its closes up to a version, or until now."""
    origins = {each.name: each.origin for each in state.runs()}
    recorded = [body for kind in _CLOSING for body in state.audited(kind)]
    return _recorded(recorded, origins, run, version)


def _recorded(
    closes: Iterable[JsonObject], origins: Mapping[str, str], run: str, version: int | None
) -> dict[str, str]:
    before, _, at = origins.get(run, "").rpartition("@")
    found = _recorded(closes, origins, before, int(at)) if before and before != run and at.isdigit() else {}
    own = [body for body in closes if body.get("run") == run and "files" in body and _is_until(body, version)]
    for body in sorted(own, key=lambda body: body["version"]):
        # By the paths of the definition, so that the files of two runs can be compared.
        found.update(body.get("defined", body.get("files", {})))
        for path in body.get("defined_absent", body.get("absent", ())):
            found.pop(path, None)
    return found


def _is_until(body: JsonObject, version: int | None) -> bool:
    return version is None or body["version"] <= version


def changed_files(project: Path, before: Digests, after: Digests, *, headings: tuple[str, str]) -> list[JsonObject]:
    """What differs between two states of the files, with the lines where both contents are at hand."""
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    return [_changed(project, path, before.get(path), after.get(path), headings) for path in paths]


def _changed(project: Path, path: str, old: str | None, new: str | None, headings: tuple[str, str]) -> JsonObject:
    told: JsonObject = {
        "path": path,
        "change": "added" if old is None else "removed" if new is None else "changed",
        "before": old,
        "after": new,
    }
    texts = [_text(project, path, digest) for digest in (old, new)]
    lost = [name for name, text in zip(headings, texts, strict=True) if text is None]
    if lost:
        return {**told, "lines": None, "note": f"The contents at {' and '.join(lost)} are not at hand."}
    first, second = (text or "" for text in texts)
    names = (f"{path} ({headings[0]})", f"{path} ({headings[1]})")
    lines = unified_diff(first.splitlines(), second.splitlines(), *names, lineterm="")
    return {**told, "lines": list(lines)}


def _text(project: Path, path: str, digest: str | None) -> str | None:
    if digest is None:
        return ""
    data = contents(project, path, digest)
    return None if data is None else data.decode("utf-8", "replace")
