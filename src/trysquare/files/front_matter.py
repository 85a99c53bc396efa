"""Front matter: the YAML block at the start of a Markdown file, read safely."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError

_FENCE = "---"
_CLOSING = re.compile(rf"^{_FENCE}[^\S\n]*$", re.MULTILINE)
MAX_FRONT_MATTER = 16 * 1024
MAX_NESTING = 20


class FrontMatterError(ToolError):
    """Invalid front matter, with its line."""

    default_code = ErrorCode.CONFIG_INVALID


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkdownFile:
    """A Markdown text with its parsed front matter."""

    head: Mapping[str, Any]
    body: str
    first_line: int = 1
    """Line of the file at which the body begins."""
    head_text: str = ""


def split_front_matter(text: str) -> MarkdownFile:
    """Split a text into head and body; without a closed block at the start all of it is body."""
    normal = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not normal.startswith(f"{_FENCE}\n"):
        return MarkdownFile(head={}, body=normal)
    closing = _CLOSING.search(normal, len(_FENCE))
    if closing is None:
        return MarkdownFile(head={}, body=normal)
    end = closing.start()
    raw = normal[len(_FENCE) + 1 : end]
    body = normal[end:].partition("\n")[2].removeprefix("\n")
    first_line = normal.count("\n", 0, len(normal) - len(body)) + 1
    return MarkdownFile(head=_parse(raw), body=body, first_line=first_line, head_text=raw)


def _parse(raw: str) -> Mapping[str, Any]:
    if not raw.strip():
        return {}
    if len(raw) > MAX_FRONT_MATTER:
        raise FrontMatterError(f"The front matter is longer than {MAX_FRONT_MATTER:,} characters.")
    parsed = _parse_yaml(raw)
    if parsed is None:
        return {}
    if not isinstance(parsed, dict):
        raise FrontMatterError(
            "The front matter must be `key: value` lines.", instruction="Write `title: …` and so on."
        )
    return {str(key): value for key, value in cast(dict[Any, Any], parsed).items()}


def _parse_yaml(raw: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ConfigurationError(
            "Front matter needs PyYAML.", hint="Install it with: pip install 'trysquare[guide]'"
        ) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if _is_suspicious(raw):
            _refuse_unsafe(yaml.parse(raw, Loader=loader))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return yaml.load(raw, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 2})" if mark is not None else ""
        problem = getattr(error, "problem", None) or "invalid YAML"
        raise FrontMatterError(f"Invalid front matter{line}: {problem}.") from None
    except (RecursionError, ValueError) as error:
        raise FrontMatterError(f"Invalid front matter: {error}.") from None


def _is_suspicious(raw: str) -> bool:
    """Whether a text may have aliases, tags or deep nesting; only then it is scanned, at the cost of parsing."""
    return any(mark in raw for mark in "&*!") or sum(raw.count(mark) for mark in "[{-?") > MAX_NESTING


def _refuse_unsafe(events: Iterable[Any]) -> None:
    """Refuse what expands a small text to a huge value, or overflows the stack."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        problem = _unsafe(event, kind, depth)
        if problem is not None:
            # The fence is the first line, and marks count from zero.
            raise FrontMatterError(f"Invalid front matter (line {event.start_mark.line + 2}): {problem}.")


def _unsafe(event: Any, kind: str, depth: int) -> str | None:
    if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
        return "anchors and aliases are not allowed"
    if getattr(event, "tag", None) is not None:
        return f"tags such as `{event.tag[:40]}` are not allowed"
    # The stream and the document are two levels of their own.
    return f"it is nested deeper than {MAX_NESTING} levels" if depth > MAX_NESTING + 2 else None
