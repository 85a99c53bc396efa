"""Files of a bot folder, and the names of its parts and tools."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from trysquare.bots.definition.findings import DefinitionError, Finding, finding_of
from trysquare.bots.documents.base import DocumentType
from trysquare.bots.documents.formats import RepeatedKeyError, without_repeats
from trysquare.bots.documents.story import StoryGraph
from trysquare.core.errors import ConfigurationError, NotFound, ToolError
from trysquare.files.root import DirectoryRoot

MAX_TOOL_NAME = 64

TOOL, CLOSE, RESTART, FIND, DO = "tool", "close_current_action", "restart_server", "find", "do"
RESERVED = frozenset({TOOL, "close", CLOSE, "restart", RESTART, FIND, DO})
"""Suffixes of tool names, which no behavior or action may have as its name."""

_PREFIX = re.compile(r"(\d+)_(?=.)", re.ASCII)
_NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """A name on disk, split into its number and the name itself."""

    raw: str
    name: str
    number: int | None = None

    @property
    def order(self) -> tuple[bool, int, str]:
        """By number, then by name; without a number last."""
        return (self.number is None, self.number or 0, self.name)


def read_label(raw: str) -> Label:
    """Split `2_render` into 2 and `render`; `2fa_login` has no number."""
    found = _PREFIX.match(raw)
    if found is None:
        return Label(raw=raw, name=raw)
    return Label(raw=raw, name=raw[found.end() :], number=int(found[1]))


def clean_name(raw: str) -> str:
    return read_label(raw).name


def is_name(name: str) -> bool:
    """Whether this is a valid name of a bot, behavior or action: lower-case letters, digits, single underscores."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolName:
    name: str
    behavior: str | None = None
    action: str | None = None


def tool_name(bot: str, *parts: str) -> str:
    """The name of a tool: of an action, a behavior or the bot itself (with `TOOL`), or one of the others above."""
    return "_".join((bot, *parts))


def close_tool_name(bot: str) -> str:
    return tool_name(bot, CLOSE)


def tool_names(bot: str, behaviors: Mapping[str, Iterable[str]]) -> Iterator[ToolName]:
    """The tools of profile `full`, of behaviors with their actions."""
    for name in (tool_name(bot, TOOL), close_tool_name(bot), tool_name(bot, RESTART)):
        yield ToolName(name=name)
    for behavior, actions in behaviors.items():
        yield ToolName(name=tool_name(bot, behavior, TOOL), behavior=behavior)
        for action in actions:
            yield ToolName(name=tool_name(bot, behavior, action), behavior=behavior, action=action)


MAX_FILES = 5_000
MAX_FILE = 1_000_000
TREES = ("behaviors", "base_actions", "rules", "config", "templates", "types", "scanners")
TOP_FILES = ("bot_config.json", "instructions.json", "trigger_words.json")

Model = TypeVar("Model", bound=BaseModel)
Loaded = TypeVar("Loaded")
Default = TypeVar("Default")
Entry = TypeVar("Entry")


@dataclass(frozen=True, kw_only=True, slots=True)
class Named(Label):
    """A folder or file of the bot."""

    path: str


@dataclass(kw_only=True, slots=True)
class BotFolder:
    """The files of a bot, with warnings collected on the way."""

    root: Path
    files: dict[str, bytes]
    folders: set[str]
    missing: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    findings: list[Finding] = field(default_factory=list[Finding])
    """Every mistake so far, in the order in which they were found."""
    errors: list[ConfigurationError] = field(default_factory=list[ConfigurationError])
    used: set[str] = field(default_factory=set[str])
    """Files that something refers to."""
    types: dict[str, type[DocumentType]] = field(default_factory=lambda: {"story_graph": StoryGraph})
    """The types of documents with a name, as far as they were used."""

    def error(
        self, path: str, message: str, *, hint: str, key: str | None = None, code: str = "invalid"
    ) -> ConfigurationError:
        """An error of a file, at the line of a key or a value where that is unambiguous."""
        line = "" if key is None or path not in self.files else _line_of(self.text(path), key)
        return DefinitionError(message, code=code, where=f"{self.location(path)}{line}", hint=hint)

    def error_at(self, path: str, line: int, message: str, *, hint: str, code: str = "invalid") -> ConfigurationError:
        """An error of a file at a line."""
        return DefinitionError(message, code=code, where=f"{self.location(path)}:{line}", hint=hint)

    def targets(self) -> tuple[str, ...]:
        """What `applies_to` can name of the types known so far."""
        return tuple(dict.fromkeys(each for kind in self.types.values() for each in kind.targets))

    def report(self, error: ConfigurationError) -> None:
        """Keep an error and go on, so that one reading finds all mistakes."""
        self.errors.append(error)
        self.findings.append(finding_of(error, self.root))

    def attempt(self, load: Callable[[], Loaded], default: Default) -> Loaded | Default:
        """What could be loaded, or the default where it could not."""
        try:
            return load()
        except _ReportedError:
            return default
        except ConfigurationError as error:
            self.report(error)
            return default

    def each(self, entries: Iterable[Entry], load: Callable[[Entry], Loaded]) -> list[Loaded]:
        """What could be loaded of each entry."""
        tried = (self.attempt(lambda entry=entry: load(entry), None) for entry in entries)
        return [found for found in tried if found is not None]

    def warn(self, path: str, message: str, *, hint: str, code: str, key: str | None = None) -> None:
        """Note a mistake that keeps nothing from being loaded."""
        line = line_of(self.text(path), key) if key is not None and path in self.files else 1
        self.warnings.append(f"{path}: {message} {hint}".strip())
        self.findings.append(
            Finding(code=code, severity="warning", file=path, line=line, message=message, remedy=hint or "Remove it.")
        )

    def location(self, path: str) -> str:
        return f"{self.root}/{path}"

    def digests(self) -> dict[str, str]:
        return {path: hashlib.sha256(data).hexdigest() for path, data in self.files.items()}

    def text(self, path: str) -> str:
        self.used.add(path)
        try:
            return self.files[path].decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"This is not UTF-8 text (byte {error.start})."
            raise self.error(path, message, hint="Save the file as UTF-8.", code="not_text") from None

    def subfolders(self, path: str) -> dict[str, Named]:
        """The folders directly below one, by name, in order."""
        return self._by_name(path, self.folders, ending="")

    def json_files(self, path: str) -> dict[str, Named]:
        """The JSON files directly in a folder, by name, in order."""
        return self._by_name(path, self.files, ending=".json")

    def _by_name(self, path: str, among: Iterable[str], *, ending: str) -> dict[str, Named]:
        prefix = f"{path}/"
        raw = (each[len(prefix) :] for each in among if each.startswith(prefix) and each.endswith(ending))
        labels = [read_label(each.removesuffix(ending)) for each in raw if "/" not in each]
        found: dict[str, Named] = {}
        for label in sorted(labels, key=lambda label: label.order):
            if (other := found.get(label.name)) is not None:
                message = f"`{other.raw}` and `{label.raw}` have the same name `{label.name}`: numbers only order."
                error = self.error(path, message, hint="Rename or remove one of them.", code="duplicate_name")
                if str(error) not in map(str, self.errors):
                    self.report(error)
                continue
            found[label.name] = Named(
                path=f"{prefix}{label.raw}{ending}", raw=label.raw, name=label.name, number=label.number
            )
        return found

    def read(self, path: str, model: type[Model]) -> Model:
        """Parse a JSON file; errors name the file, the line and the key."""
        text = self.text(path)
        document = parse_json(text, where=self.location(path))
        try:
            value = model.model_validate(document)
        except ValidationError as error:
            value = self._salvaged(error, model, document, path)
        for key in value.model_extra or ():
            self.warn(path, f"unknown key `{key}`.", hint=_nearest_key(key, model), code="unknown_key", key=key)
        return value

    def _salvaged(self, error: ValidationError, model: type[Model], document: Any, path: str) -> Model:
        """What is right in a file, after everything that is wrong was reported."""
        text = self.text(path)
        wrong = error.errors(include_url=False)
        for each in {str(one["loc"]): one for one in wrong}.values():
            self.report(_invalid_value(each, model, text, self.location(path)))
        bad = {one["loc"][0] for one in wrong if one["loc"]}
        if not isinstance(document, dict) or not bad:
            raise _ReportedError
        rest = {name: each for name, each in cast("dict[str, Any]", document).items() if name not in bad}
        try:
            return model.model_validate(rest)
        except ValidationError:
            raise _ReportedError from None

    def read_optional(self, path: str, model: type[Model]) -> Model:
        """Parse an optional file; its defaults where it is missing or cannot be read."""
        if path in self.files:
            return self.attempt(lambda: self.read(path, model), model())
        self.missing.append(path)
        return model()

    def note_unknown(self, found: Iterable[Named], known: Iterable[str], *, what: str) -> None:
        """Warn of unknown parts, most often a typo."""
        known = tuple(known)
        for each in found:
            if each.name not in known:
                self.used.update(path for path in self.files if path == each.path or path.startswith(f"{each.path}/"))
                self.warn(each.path, f"unknown {what}.", hint=nearest(each.name, known), code=f"unknown_{what}")


def read_bot_folder(root: Path) -> BotFolder:
    """Read every file of a definition, without leaving its folder."""
    if not root.is_dir():
        raise ConfigurationError(
            "Not a directory.",
            where=str(root),
            hint="Use the path of a bot's folder, or create one with `trysquare bot new`.",
        )
    with DirectoryRoot(root) as directory:
        try:
            files = dict(_read_all(directory))
            others = [name for name in directory.folders() if name not in TREES]
            folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
            for tree in ("behaviors", "base_actions"):
                # An empty folder has no file in `files`.
                with contextlib.suppress(NotFound):
                    folders.update(f"{tree}/{name}" for name in directory.folders(tree))
        except ToolError as error:
            raise ConfigurationError(error.message, where=str(root), hint=error.instruction) from None
    folder = BotFolder(root=root, files=files, folders=folders)
    for name in others:
        if close := get_close_matches(name, TREES, n=1):
            folder.warn(name, "unknown folder.", hint=f"Did you mean `{close[0]}`?", code="unknown_folder")
    return folder


def _read_all(directory: DirectoryRoot) -> Iterator[tuple[str, bytes]]:
    for count, path in enumerate(_paths(directory)):
        if count >= MAX_FILES:
            raise ToolError(f"This is not a bot's folder: it has more than {MAX_FILES:,} files.")
        yield path, directory.read_bytes(path, limit=MAX_FILE)


def _paths(directory: DirectoryRoot) -> Iterator[str]:
    for path in TOP_FILES:
        with contextlib.suppress(NotFound):
            yield directory.stat(path).path
    for tree in TREES:
        with contextlib.suppress(NotFound):
            yield from (entry.path for entry in directory.walk(tree) if "/__pycache__/" not in entry.path)


def parse_json(text: str, *, where: str) -> Any:
    """Parse strict JSON, without duplicate keys and NaN."""
    try:
        return json.loads(text, object_pairs_hook=without_repeats, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise DefinitionError(
            f"This is not JSON: {error.msg} (column {error.colno}).",
            code="not_json",
            where=f"{where}:{error.lineno}",
            hint="Check this line and the one before it.",
        ) from None
    except RepeatedKeyError as error:
        raise DefinitionError(
            f"Duplicate key `{error.args[0]}` in one object.",
            code="duplicate_key",
            where=f"{where}{_line_of(text, error.args[0], last=True)}",
            hint="Keep one of them.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"This is not JSON: {error}.", code="not_json", where=where) from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value")


def _nearest_key(key: str, model: type[BaseModel]) -> str:
    close = get_close_matches(key, _keys_of(model), n=1)
    return f"Did you mean `{close[0]}`?" if close else ""


def _keys_of(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


class _ReportedError(Exception):
    """A file that cannot be read, of which everything is reported already."""


def _invalid_value(wrong: Any, model: type[BaseModel], text: str, where: str) -> ConfigurationError:
    keys = [piece for piece in wrong["loc"] if isinstance(piece, str) and _line_of(text, piece)]
    path = ".".join(str(piece) for piece in wrong["loc"])
    where += _line_of(text, keys[-1]) if keys else ""
    if wrong["type"] == "extra_forbidden":
        top = len(wrong["loc"]) == 1
        hint = nearest(str(wrong["loc"][-1]), _keys_of(model)) if top else "Remove it."
        return DefinitionError(f"Unknown key `{path}`.", code="unknown_key", where=where, hint=hint)
    message = str(wrong["msg"]).removeprefix("Value error, ")
    code = "missing_key" if wrong["type"] == "missing" else "invalid_value"
    return DefinitionError(f"`{path}`: {message}." if path else f"{message}.", code=code, where=where)


def _line_of(text: str, key: str, *, last: bool = False) -> str:
    """The line of a key, where it is unambiguous."""
    quoted = json.dumps(key, ensure_ascii=False)
    if not last and text.count(quoted) != 1:
        return ""
    at = text.rfind(quoted) if last else text.find(quoted)
    return f":{text.count(chr(10), 0, at) + 1}" if at >= 0 else ""


def line_of(text: str, key: str) -> int:
    """The line where a key or a value stands first, or the first one."""
    at = text.find(json.dumps(key, ensure_ascii=False))
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint: the closest known name, or all of them."""
    known = tuple(known)
    close = get_close_matches(name, known, n=1)
    return f"Did you mean `{close[0]}`?" if close else f"Known: {', '.join(known)}."
