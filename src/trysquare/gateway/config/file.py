"""Configuration file as a tree: `mcpServers`, `servers`, a list with names, or a bare map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject
from trysquare.core.untrusted import one_line
from trysquare.files.edit import TextError
from trysquare.files.jsonc import Member, Node, find, read_tree
from trysquare.gateway.models import ConfigLocation

SECTIONS = ("mcpServers", "servers", "context_servers", "mcp")
"""Keys of the servers. `mcp` holds them itself, or in `servers`."""
SETTINGS_KEY = "x-trysquare"
MARKS = ("command", "url", "serverUrl", "httpUrl", "server_script_path", "type", "transport")
"""Keys of which a server's entry has at least one."""
_MAX_BYTES = 16 * 1024 * 1024
_NOT_SERVERS = ("$schema", "inputs", SETTINGS_KEY)


@dataclass(frozen=True, kw_only=True, slots=True)
class RawEntry:
    """One server's entry, not validated yet."""

    name: str | None
    """None for a list item without one."""
    node: Node
    file: ConfigText

    @property
    def label(self) -> str:
        """The name in errors and lists, without hidden characters."""
        return one_line(self.name) if self.name is not None else f"(line {self.file.line(self.node)})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A section with servers, and its path."""

    path: tuple[str, ...]
    node: Node


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigText:
    """The text of a configuration file and its syntax tree."""

    path: Path
    text: str
    root: Node

    def line(self, node: Node | Member) -> int:
        return self.text.count("\n", 0, node.start) + 1

    def location(self, node: Node | Member) -> ConfigLocation:
        return ConfigLocation(file=str(self.path), line=self.line(node))

    def entries(self) -> list[RawEntry]:
        return [entry for section in self.sections() for entry in self._of_section(section.node)]

    def input_defaults(self) -> Mapping[str, str]:
        inputs = find(self.root, "inputs")
        items: list[Any] = inputs.value if inputs is not None and inputs.items is not None else []
        objects = [cast(JsonObject, item) for item in items if isinstance(item, dict)]
        given = [(item.get("id"), item.get("default")) for item in objects]
        return {name: default for name, default in given if isinstance(name, str) and isinstance(default, str)}

    def sections(self) -> Iterator[Section]:
        if self.root.items is not None:
            yield Section(path=(), node=self.root)
            return
        found = [(name, find(self.root, name)) for name in SECTIONS]
        named = [(name, node) for name, node in found if node is not None and not _is_server(node)]
        if not named and self._is_bare():
            yield Section(path=(), node=self.root)
        for name, node in named:
            inner = find(node, "servers")
            if inner is None or _is_server(inner):
                yield Section(path=(name,), node=node)
            else:
                yield Section(path=(name, "servers"), node=inner)

    def _is_bare(self) -> bool:
        members = [member for member in self.root.members or () if member.name not in _NOT_SERVERS]
        if members and not any(_is_server(member.node) for member in members):
            raise ConfigurationError(
                "The file has no servers.",
                where=str(self.path),
                hint='Write them as {"mcpServers": {"name": {"command": "…"}}}.',
            )
        return bool(members)

    def _of_section(self, section: Node) -> Iterator[RawEntry]:
        if section.items is not None:
            for item in section.items:
                name = find(item.node, "name")
                given = name.value if name is not None and isinstance(name.value, str) else None
                yield RawEntry(name=given, node=item.node, file=self)
        elif section.members is not None:
            for member in section.members:
                if section is not self.root or member.name not in _NOT_SERVERS:
                    yield RawEntry(name=member.name, node=member.node, file=self)
        else:
            raise ConfigurationError(
                "The servers must be an object by name, or a list.", where=str(self.location(section))
            )


def read_text(path: Path) -> ConfigText:
    """Read and parse a file. Raises `ConfigurationError`."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigurationError("The file is too large.", where=str(path))
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise ConfigurationError("File not found.", where=str(path), hint="Run `trysquare gateway add`.") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            "The file is not UTF-8 text.", where=f"{path}:{line}", hint="Save it as UTF-8."
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"The file cannot be read: {reason}.", where=str(path)) from None
    return parse_text(path, text)


def parse_text(path: Path, text: str) -> ConfigText:
    """Parse a file's text. Raises `ConfigurationError`."""
    try:
        root = read_tree(text)
    except TextError as error:
        problem = f"{error.problem[:1].upper()}{error.problem[1:]}."
        raise ConfigurationError(problem, where=f"{path}:{error.line}:{error.column}", hint="Fix the syntax.") from None
    if root is None:
        raise ConfigurationError("The file is empty.", where=str(path), hint='Write at least {"mcpServers": {}}.')
    if root.members is None and root.items is None:
        raise ConfigurationError("The file must contain an object.", where=str(path), hint='Write {"mcpServers": {…}}.')
    return ConfigText(path=path, text=text, root=root)


def _is_server(node: Node) -> bool:
    """Whether an object is a server's entry rather than a map of servers."""
    return any((found := find(node, mark)) is not None and not isinstance(found.value, dict) for mark in MARKS)
