"""Outlining: the right parser for a file, or an honest refusal."""

from __future__ import annotations

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.workbench.outline.python_outline import python_outline
from trysquare.workbench.outline.symbols import SUFFIXES, Language, Outline, language_of
from trysquare.workbench.outline.tree_outline import has_parser, tree_outline


def can_outline(language: Language) -> bool:
    """Whether sources of a language can be read here."""
    return language == "python" or has_parser(language)


def outline_of(path: str, source: str) -> Outline:
    """What a file defines and imports."""
    language = language_of(path)
    if language is None:
        known = ", ".join(sorted(set(SUFFIXES.values())))
        raise ToolError(
            f"`{path}` is in no language that can be outlined ({known}).",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Read it with `file`, or search in it.",
        )
    if has_parser(language):
        return tree_outline(source, language)
    if language == "python":
        return python_outline(source, path)
    raise no_parser(language)


def no_parser(language: Language) -> ToolError:
    """The refusal where a language's grammar is not installed."""
    return ToolError(
        f"Sources in {language} cannot be outlined: their grammar is not installed.",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction="Use `search` with the action grep. A person can install it: pip install 'trysquare[code]'.",
    )
