"""Languages: which one a target is written in, and which engine debugs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.debug.engines.delve import DelveEngine
from trysquare.debug.engines.java import JavaEngine
from trysquare.debug.engines.lldb import LldbEngine
from trysquare.debug.engines.node import NodeEngine
from trysquare.debug.engines.python import PythonEngine
from trysquare.debug.engines.rdbg import RdbgEngine
from trysquare.debug.launching import Engine
from trysquare.debug.targets import Target

ALIASES = {"js": "javascript", "ts": "typescript", "node": "javascript", "c++": "cpp", "golang": "go", "py": "python"}
_SUFFIXES = {
    ".py": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".ts": "typescript",
    ".mts": "typescript", ".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".rs": "rust", ".go": "go",
    ".rb": "ruby", ".java": "java", ".jar": "java",
}  # fmt: skip
_PROGRAMS = {"node": "javascript", "nodejs": "javascript", "ruby": "ruby", "java": "java", "go": "go"}


def engines() -> list[Engine]:
    """Every engine there is."""
    return [
        PythonEngine(),
        NodeEngine("javascript"),
        NodeEngine("typescript"),
        LldbEngine("c"),
        LldbEngine("cpp"),
        LldbEngine("rust"),
        DelveEngine(),
        RdbgEngine(),
        JavaEngine(),
    ]


def language_of(target: Target, *, given: str | None = None, known: Mapping[str, object] | None = None) -> str:
    """The language of a target: the one that is given, or the one that its words tell."""
    if given is not None:
        return ALIASES.get(given.lower(), given.lower())
    if target.is_python:
        return "python"
    first = Path(target.words[0])
    program = first.name.rstrip("0123456789.")
    if program in _PROGRAMS:
        return _PROGRAMS[program]
    for word in target.words[:2]:
        if (language := _SUFFIXES.get(Path(word).suffix)) is not None:
            return language
    if _is_binary(first):
        return "c"
    raise InvalidArguments(
        f"The language of `{target}` cannot be told from its name.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction=f"Give `language`: one of {', '.join(known or sorted(set(_SUFFIXES.values())))}.",
    )


def _is_binary(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) in (b"\x7fELF", b"\xcf\xfa\xed\xfe")
    except OSError:
        return False
