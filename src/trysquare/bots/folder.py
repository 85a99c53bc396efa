"""BotFolder: the files of a bot, read once, and what was missing or not understood while they were used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from trysquare.bots.naming import Label, read_label
from trysquare.core.errors import ConfigurationError, NotFound, ToolError
from trysquare.files.sealed_folder import SealedFolder

MAX_FILES = 5_000
MAX_FILE = 1_000_000
TREES = ("behaviors", "base_actions", "rules", "config")
TOP_FILES = ("bot_config.json", "instructions.json", "trigger_words.json")

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """A folder or a file of the bot: its path, and its name without number and ending."""

    path: str
    label: Label

    @property
    def name(self) -> str:
        """What it is called."""
        return self.label.name


@dataclass(kw_only=True, slots=True)
class BotFolder:
    """What was read, and the notes taken on the way: they end in the definition."""

    root: Path
    files: dict[str, bytes]
    folders: set[str]
    missing: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])

    def place(self, path: str) -> str:
        """A path as errors name it."""
        return f"{self.root}/{path}"

    def digests(self) -> dict[str, str]:
        """The digest of every file."""
        return {path: hashlib.sha256(data).hexdigest() for path, data in self.files.items()}

    def text(self, path: str) -> str:
        """The text of a file."""
        try:
            return self.files[path].decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"This is not UTF-8 text (byte {error.start}).",
                where=self.place(path),
                hint="Save the file as UTF-8.",
            ) from None

    def subfolders(self, path: str) -> dict[str, Named]:
        """The folders directly below one, by name, in order; two of one name are an error."""
        return self._by_name(path, self.folders, ending="")

    def json_files(self, path: str) -> dict[str, Named]:
        """The JSON files directly in a folder, by name, in order; two of one name are an error."""
        return self._by_name(path, self.files, ending=".json")

    def _by_name(self, path: str, among: Iterable[str], *, ending: str) -> dict[str, Named]:
        prefix = f"{path}/"
        raw = (each[len(prefix) :] for each in among if each.startswith(prefix) and each.endswith(ending))
        labels = [read_label(each.removesuffix(ending)) for each in raw if "/" not in each]
        found: dict[str, Named] = {}
        for label in sorted(labels, key=lambda label: label.order):
            if (other := found.get(label.name)) is not None:
                raise ConfigurationError(
                    f"`{other.label.raw}` and `{label.raw}` have the same name `{label.name}`: numbers only order.",
                    where=self.place(path),
                    hint="Rename or remove one of them.",
                )
            found[label.name] = Named(path=f"{prefix}{label.raw}{ending}", label=label)
        return found

    def read(self, path: str, model: type[Model]) -> Model:
        """A JSON file as a value, or an error that names the file, the line and the key."""
        text = self.text(path)
        document = parse_json(text, where=self.place(path))
        try:
            value = model.model_validate(document)
        except ValidationError as error:
            raise _wrong_value(error, model, text, self.place(path)) from None
        self.warnings.extend(f"{path}: nothing uses the key `{key}`." for key in value.model_extra or ())
        return value

    def read_optional(self, path: str, model: type[Model]) -> Model:
        """The same for a file that need not be there: its defaults then, and a note."""
        if path in self.files:
            return self.read(path, model)
        self.missing.append(path)
        return model()

    def note_unknown(self, found: Iterable[Named], known: Iterable[str], *, what: str) -> None:
        """Warn of parts whose names mean nothing, most often a slip of the pen."""
        known = tuple(known)
        for each in found:
            if each.name not in known:
                self.warnings.append(f"{each.path}: nothing uses this {what}. {nearest(each.name, known)}")


def read_bot_folder(root: Path) -> BotFolder:
    """Read every file that can belong to a definition, through a folder that nothing leads out of."""
    if not root.is_dir():
        raise ConfigurationError(
            "There is no such folder.",
            where=str(root),
            hint="Give the path of a bot's folder, or make one with `trysquare bot new`.",
        )
    with SealedFolder(root) as sealed:
        try:
            files = dict(_read_all(sealed))
            folders = {folder for path in files for folder in _parents(path)}
            for tree in ("behaviors", "base_actions"):
                folders.update(f"{tree}/{name}" for name in _folders(sealed, tree))
        except ToolError as error:
            raise ConfigurationError(error.message, where=str(root), hint=error.instruction) from None
    return BotFolder(root=root, files=files, folders=folders)


def _read_all(sealed: SealedFolder) -> Iterator[tuple[str, bytes]]:
    for count, path in enumerate(_paths(sealed)):
        if count >= MAX_FILES:
            raise ToolError(f"There are more than {MAX_FILES:,} files; this is no bot's folder.")
        yield path, sealed.read_bytes(path, limit=MAX_FILE)


def _paths(sealed: SealedFolder) -> Iterator[str]:
    for path in TOP_FILES:
        try:
            yield sealed.stat(path).path
        except NotFound:
            continue
    for tree in TREES:
        try:
            yield from (entry.path for entry in sealed.walk(tree))
        except NotFound:
            continue


def _folders(sealed: SealedFolder, tree: str) -> list[str]:
    # An empty folder holds no file that would tell of it.
    try:
        return sealed.folders(tree)
    except NotFound:
        return []


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def parse_json(text: str, *, where: str) -> Any:
    """Strict JSON: no key twice, no NaN; errors name the line."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"This is not JSON: {error.msg} (column {error.colno}).",
            where=f"{where}:{error.lineno}",
            hint="Look at this line and the one before it.",
        ) from None
    except _TwiceError as error:
        raise ConfigurationError(
            f"The key `{error.key}` stands twice in one object.",
            where=f"{where}{_line_of(text, error.key, last=True)}",
            hint="Keep one of them.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"This is not JSON: {error}.", where=where) from None


class _TwiceError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _TwiceError(next(key for key in keys if keys.count(key) > 1))
    return made


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")


def _wrong_value(error: ValidationError, model: type[BaseModel], text: str, where: str) -> ConfigurationError:
    first = error.errors(include_url=False)[0]
    keys = [piece for piece in first["loc"] if isinstance(piece, str)]
    place = ".".join(str(piece) for piece in first["loc"])
    line = _line_of(text, keys[-1]) if keys else ""
    if first["type"] == "extra_forbidden":
        known = _keys(model) if len(first["loc"]) == 1 else ()
        return ConfigurationError(
            f"`{place}` is no key of this file.",
            where=f"{where}{line}",
            hint=nearest(keys[-1], known) if known else "Remove it.",
        )
    said = first["msg"].removeprefix("Value error, ")
    return ConfigurationError(f"`{place}`: {said}." if place else f"{said}.", where=f"{where}{line}")


def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(model.model_fields)


def _line_of(text: str, key: str, *, last: bool = False) -> str:
    """The line of a key, where it can be told: an error that names a wrong line is worse than one that names none."""
    quoted = json.dumps(key, ensure_ascii=False)
    if not last and text.count(quoted) != 1:
        return ""
    at = text.rfind(quoted) if last else text.find(quoted)
    return f":{text.count(chr(10), 0, at) + 1}" if at >= 0 else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint: the known name that was probably meant, or all of them."""
    known = tuple(known)
    close = get_close_matches(name, known, n=1)
    return f"Did you mean `{close[0]}`?" if close else f"Known are {', '.join(known)}."
