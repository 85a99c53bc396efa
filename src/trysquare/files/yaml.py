"""YAML texts as JSON values, with the line of every value; no tags, no aliases, no surprises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from trysquare.core.errors import ErrorCode, require_extra

Pointer: TypeAlias = tuple[str | int, ...]
MAX_NESTING = 50
_JSON_TAGS = frozenset({"int", "float", "bool", "null"})
_KEPT_AS_TEXT = frozenset({"str", "timestamp"})
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+)")


class YamlError(ValueError):
    """A text that is not YAML, or more than JSON can say; `line` counts from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, kw_only=True, slots=True)
class Scalar:
    """The place of a single value in its text, without quotes around it being lost."""

    start: int
    end: int
    style: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlText:
    """A parsed text: its value, the lines of its values and keys, and the places of single values."""

    value: Any
    lines: dict[Pointer, int] = field(default_factory=dict[Pointer, int])
    scalars: dict[Pointer, Scalar] = field(default_factory=dict[Pointer, Scalar])


def read_yaml(text: str) -> YamlText:
    """Parse a text; dates stay strings, as in JSON. Raises `YamlError`."""
    require_extra("bots", "yaml", feature="Reading YAML", code=ErrorCode.CONFIG_INVALID)
    import yaml

    # The loader in C has no marks of the characters, which edits in place need.
    try:
        node: Any = cast(Any, yaml).compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        # What was found often stands only beside what was expected.
        said = (getattr(error, name, None) for name in ("context", "problem"))
        problem = ", ".join(filter(None, said)) or "invalid YAML"
        raise YamlError(str(problem), 1 if mark is None else mark.line + 1) from None
    except (RecursionError, ValueError) as error:
        raise YamlError(str(error)[:200]) from None
    found = YamlText(value=None)
    made = None if node is None else _Reader(found).read(node, (), 1)
    return YamlText(value=made, lines=found.lines or {(): 1}, scalars=found.scalars)


@dataclass(slots=True)
class _Reader:
    """Converts nodes to values; the same node twice is an alias, which could make a small text huge."""

    into: YamlText
    seen: set[int] = field(default_factory=set[int])

    def read(self, node: Any, pointer: Pointer, depth: int) -> Any:
        line = node.start_mark.line + 1
        if depth > MAX_NESTING:
            raise YamlError(f"it is nested deeper than {MAX_NESTING} levels", line)
        if id(node) in self.seen:
            raise YamlError("anchors and aliases are not supported", line)
        self.seen.add(id(node))
        self.into.lines.setdefault(pointer, line)
        if node.id == "sequence":
            return [self.read(each, (*pointer, index), depth + 1) for index, each in enumerate(node.value)]
        return dict(self._pairs(node, pointer, depth)) if node.id == "mapping" else self._scalar(node, pointer)

    def _pairs(self, node: Any, pointer: Pointer, depth: int) -> Iterator[tuple[str, Any]]:
        known = set[str]()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                raise YamlError("a key must be a single text", line)
            name = str(key.value)
            if name in known:
                raise YamlError(f"the key `{name}` is there twice", line)
            known.add(name)
            self.into.lines[(*pointer, name)] = line
            yield name, self.read(value, (*pointer, name), depth + 1)

    def _scalar(self, node: Any, pointer: Pointer) -> Any:
        kind = node.tag.rpartition(":")[2]
        self.into.scalars[pointer] = Scalar(start=node.start_mark.index, end=node.end_mark.index, style=node.style)
        if kind in _KEPT_AS_TEXT:
            return str(node.value)
        if kind not in _JSON_TAGS:
            raise YamlError(f"the tag `{node.tag[:40]}` is not supported", node.start_mark.line + 1)
        return _plain(kind, str(node.value), node.start_mark.line + 1)


def _plain(kind: str, text: str, line: int) -> Any:
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("yes", "true", "on")
    if not _NUMBER.fullmatch(text):
        raise YamlError(f"`{text[:40]}` is not a number that JSON has; put it in quotes", line)
    digits = text.replace("_", "")
    if kind == "int":
        # A leading zero is an octal number to YAML 1.1 and a text to most who write it.
        return text if digits.lstrip("+-").startswith("0") and digits.strip("+-0") else int(digits)
    return float(digits)


def write_yaml(value: Any) -> str:
    """A value as YAML, keys in their order."""
    require_extra("bots", "yaml", feature="Writing YAML", code=ErrorCode.CONFIG_INVALID)
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110))


def as_scalar(value: Any) -> str:
    """One value as it stands in a YAML text: always on one line."""
    require_extra("bots", "yaml", feature="Writing YAML", code=ErrorCode.CONFIG_INVALID)
    import yaml

    style = '"' if isinstance(value, str) and "\n" in value else None
    text = str(yaml.safe_dump(value, allow_unicode=True, width=float("inf"), default_style=style)).strip()
    return text.removesuffix("...").strip()


def has_comments(text: str) -> bool:
    """Whether a text may hold comments, which writing it anew would lose."""
    return any(re.search(r"(^|\s)#", line) for line in text.splitlines())
