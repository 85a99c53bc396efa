"""Edits of a configuration file that leave the rest of it alone: comments, order and what only others understand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest
from trysquare.core.types import JsonObject
from trysquare.gateway.configuration.entries import read_entry, tool_name
from trysquare.gateway.configuration.shapes import ConfigText, Section, parse_text
from trysquare.gateway.configuration.variables import Variables
from trysquare.gateway.server import BrokenServer
from trysquare.settings.edited_file import edited, read_file, replace_file
from trysquare.settings.jsonc import append_item, put_entry, remove_entry, remove_item
from trysquare.settings.jsonc_tree import find, read_tree

_NEW_SECTION = ("mcpServers",)


def add_server(path: Path, name: str, entry: JsonObject) -> Path | None:
    """Add a server to a file, which is made if there is none. Returns the copy of the file as it was before."""
    before = read_file(path)
    file = None if edited(path, before, read_tree) is None else parse_text(path, before)
    if file is not None:
        _refuse_taken(name, file)
    section = None if file is None else next(file.sections(), None)
    after = edited(path, before, _addition(name, entry, section))
    _refuse_broken(path, name, after)
    return replace_file(path, before, after)


def remove_server(path: Path, name: str) -> Path | None:
    """Take a server out of a file. Returns the copy of the file as it was before."""
    before = read_file(path)
    file = parse_text(path, before)
    for section in file.sections():
        after = edited(path, before, _removal(name, section))
        if after != before:
            return replace_file(path, before, after)
    names = [entry.label for entry in file.entries()]
    near = nearest(name, names)
    hint = f"The nearest is `{near[0]}`." if near else f"It has {', '.join(names) or 'none'}."
    raise ConfigurationError(f"The file has no server `{name}`.", where=str(path), hint=hint)


def _refuse_taken(name: str, file: ConfigText) -> None:
    for entry in file.entries():
        if tool_name(entry.label) == tool_name(name):
            raise ConfigurationError(
                f"There is a server `{entry.label}` already, and its tool would have the same name.",
                where=str(file.place(entry.node)),
                hint=f"Choose another name, or run `trysquare gateway remove {entry.label}` first.",
            )


def _refuse_broken(path: Path, name: str, after: str) -> None:
    """Refuse an entry that could never be used, before it is written.

    One with `${…}` in it may only lack a variable, and is what was asked for.
    """
    written = next(entry for entry in parse_text(path, after).entries() if entry.label == name)
    if "${" in after[written.node.start : written.node.end]:
        return
    read = read_entry(written, Variables(env={}, secrets=lambda _: None, workspace=path.parent, input_defaults={}))
    if isinstance(read, BrokenServer):
        raise ConfigurationError(f"{read.reason} Nothing was written.", where=f"server `{name}`")


def _addition(name: str, entry: JsonObject, section: Section | None) -> Callable[[str], str]:
    if section is not None and section.node.items is not None:
        return lambda text: append_item(text, section.path, {"name": name, **entry})
    path = _NEW_SECTION if section is None else section.path
    return lambda text: put_entry(text, [*path, name], entry)


def _removal(name: str, section: Section) -> Callable[[str], str]:
    if section.node.items is None:
        return lambda text: remove_entry(text, [*section.path, name])
    named = [find(item.node, "name") for item in section.node.items]
    places = [place for place, node in enumerate(named) if node is not None and node.value == name]
    return lambda text: remove_item(text, section.path, places[-1]) if places else text
