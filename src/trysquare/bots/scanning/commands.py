"""Commands as scanners: a program looks at files and says what is wrong where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from trysquare.bots.rules import CommandScanner
from trysquare.bots.scanning.findings import Hit, ScannerFailed, Selected
from trysquare.bots.scanning.worker_process import Ended, run_process

_PLACE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+)(?::\d+)?:\s*(?P<message>.+)$")
_FILE_KEYS = ("file", "filename", "path")
_LINE_KEYS = ("line", "row", "lineno")


def scan_command(scanner: CommandScanner, selected: Sequence[Selected], root: Path, *, seconds: float) -> list[Hit]:
    """What a program says about the files, which it is given by their paths below `root`."""
    paths = list(dict.fromkeys(each.file for each in selected))
    if not paths:
        return []
    # A path that begins with a dash would be read as an option.
    safe = [f"./{path}" if path.startswith("-") else path for path in paths]
    argv = [piece for given in scanner.argv for piece in (safe if given == "{files}" else [given])]
    ended = run_process(argv, seconds=seconds, what=f"the command `{scanner.argv[0]}`", folder=root)
    numbered = {path: place for place, path in enumerate(paths)}
    index = {str(base / path): place for base in (root, root.resolve()) for path, place in numbered.items()}
    hits = [hit for said in _said(ended) if (hit := _hit(said, index, root)) is not None]
    if ended.code != 0 and not hits:
        told = (ended.output.strip() or ended.errors.strip()).splitlines()[-1:] or ["it said nothing"]
        raise ScannerFailed(f"the command `{scanner.argv[0]}` ended with {ended.code}: {told[0][:300]}")
    return hits


def _said(ended: Ended) -> Iterator[tuple[str, int, str]]:
    text = ended.output.strip()
    if text.startswith(("[", "{")):
        yield from _from_json(text)
        return
    for line in (*text.splitlines(), *ended.errors.splitlines()):
        if found := _PLACE.match(line):
            yield found["file"], int(found["line"]), found["message"].strip()


def _from_json(text: str) -> Iterator[tuple[str, int, str]]:
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise ScannerFailed(f"the output looks like JSON and is not (line {error.lineno}): {error.msg}") from None
    entries = cast("list[Any]", value if isinstance(value, list) else [value])
    for said in entries:
        if not isinstance(said, dict):
            continue
        said = cast("dict[str, Any]", said)
        yield _first(said, _FILE_KEYS, ""), _line(said), str(said.get("message", ""))


def _line(entry: Mapping[str, Any]) -> int:
    place = entry.get("location")
    found = _first(cast("Mapping[str, Any]", place) if isinstance(place, Mapping) else entry, _LINE_KEYS, 1)
    return found if isinstance(found, int) else 1


def _first(entry: Mapping[str, Any], keys: tuple[str, ...], default: Any) -> Any:
    return next((entry[key] for key in keys if key in entry), default)


def _hit(said: tuple[str, int, str], index: Mapping[str, int], root: Path) -> Hit | None:
    file, line, message = said
    # Joining keeps an absolute path as it is; a program may also have followed links on the way to the folder.
    place = index.get(str(root / file), index.get(str((root / file).resolve())))
    return None if place is None else Hit(index=place, line=line, message=message or None, text=message)
