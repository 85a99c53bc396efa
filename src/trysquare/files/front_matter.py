"""Front matter: the YAML block at the head of a Markdown file, read without surprises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError

_FENCE = "---"
MAX_FRONT_MATTER = 64 * 1024


class FrontMatterError(ToolError):
    """Front matter that cannot be read, with the line where it went wrong."""

    default_code = ErrorCode.CONFIG_INVALID


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkdownFile:
    """A Markdown text, parted into what its head says and what follows."""

    head: Mapping[str, Any]
    body: str


def split_front_matter(text: str) -> MarkdownFile:
    """Part a text into head and body. Without a closed block at the very start, all of it is body."""
    normal = text.replace("\r\n", "\n")
    if not normal.startswith(f"{_FENCE}\n"):
        return MarkdownFile(head={}, body=normal)
    end = _closing_fence(normal)
    if end is None:
        return MarkdownFile(head={}, body=normal)
    raw = normal[len(_FENCE) + 1 : end]
    body = normal[end:].partition("\n")[2]
    return MarkdownFile(head=_read(raw), body=body.removeprefix("\n"))


def _closing_fence(text: str) -> int | None:
    start = text.find("\n", 0) + 1
    while 0 < start < len(text):
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        if line.rstrip() == _FENCE:
            return start
        if end < 0:
            return None
        start = end + 1
    return None


def _read(raw: str) -> Mapping[str, Any]:
    if not raw.strip():
        return {}
    if len(raw) > MAX_FRONT_MATTER:
        raise FrontMatterError(f"The front matter is longer than {MAX_FRONT_MATTER:,} characters.")
    read = _parse_yaml(raw)
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise FrontMatterError(
            "The front matter must be `key: value` lines.", instruction="Write `title: …` and so on."
        )
    return {str(key): value for key, value in cast(dict[Any, Any], read).items()}


def _parse_yaml(raw: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ConfigurationError(
            "Front matter needs PyYAML.", hint="Install it with: pip install 'trysquare[guide]'"
        ) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Aliases could make a small text into a huge value, and no front matter needs them. Scanning costs as much as
        # reading, so only a text that could hold one is scanned.
        if ("&" in raw or "*" in raw) and _has_alias(yaml.scan(raw, Loader=loader)):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            raise FrontMatterError("Anchors and aliases are not allowed in front matter.")
        return yaml.load(raw, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 2})" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise FrontMatterError(f"The front matter cannot be read{line}: {problem}.") from None
    except (RecursionError, ValueError) as error:
        raise FrontMatterError(f"The front matter cannot be read: {error}.") from None


def _has_alias(tokens: Iterable[object]) -> bool:
    return any(type(token).__name__ in ("AliasToken", "AnchorToken") for token in tokens)
