"""Docstrings: the text before the arguments, and what the `Args:` section says of each."""

from __future__ import annotations

import re

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE)
_ENTRY = re.compile(r"^(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")


def summary_text(docstring: str) -> str:
    """The docstring up to its first section."""
    found = _SECTION.search(docstring)
    return docstring[: found.start()].strip() if found else docstring.strip()


def argument_descriptions(docstring: str) -> dict[str, str]:
    """What an `Args:` section says of each argument, continued lines joined."""
    lines = _arguments_section(docstring)
    described: dict[str, str] = {}
    current, indent = "", 0
    for line in lines:
        entry = _ENTRY.match(line)
        if entry and (not current or len(entry[1]) <= indent):
            current, indent = entry[2], len(entry[1])
            described[current] = entry[3].strip()
        elif current and line.strip():
            described[current] += " " + line.strip()
    return described


def _arguments_section(docstring: str) -> list[str]:
    for found in _SECTION.finditer(docstring):
        if found[1] in ("Args", "Arguments", "Parameters"):
            following = _SECTION.search(docstring, found.end())
            return docstring[found.end() : following.start() if following else None].splitlines()
    return []
