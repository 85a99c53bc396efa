"""Render: a document's text as it is delivered. Only documents that say `template: true` are templates."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.guide.document import Document
from trysquare.guide.flags import FlagValue

MAX_TEMPLATE = 64 * 1024
MAX_RENDERED = 1_000_000
_FORESEEN = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What a wrong template can make Python raise."""

Include = Callable[[str], str | None]
"""The text of a document that may be included, by its id; None where there is none."""


class TemplateError(ToolError):
    """A template that cannot be rendered, with its document and line."""

    default_code = ErrorCode.CONFIG_INVALID


def render(
    document: Document,
    *,
    flags: Mapping[str, FlagValue],
    include: Include,
    values: Mapping[str, Any] | None = None,
) -> str:
    """The text to deliver. `values` are what a template sees beside the flags."""
    if not document.metadata.get("template"):
        return document.text
    if len(document.text) > MAX_TEMPLATE:
        raise TemplateError(f"`{document.id}` is longer than the {MAX_TEMPLATE:,} characters that a template may have.")
    return _render_template(document, {"flags": _Flags(flags), "document": _about(document), **(values or {})}, include)


class _Flags(dict[str, FlagValue]):
    """Flags as a template sees them: one that is not set is none, not an error."""

    def __missing__(self, name: str) -> None:
        return None


def _render_template(document: Document, values: Mapping[str, Any], include: Include) -> str:
    try:
        from jinja2 import TemplateError as JinjaError
        from jinja2 import TemplateNotFound, TemplateSyntaxError

        from trysquare.guide.sandbox import Sandbox
    except ImportError:
        raise ConfigurationError(
            "Templates need Jinja2.", hint="Install it with: pip install 'trysquare[guide]'"
        ) from None
    own, allowed = str(document.id), frozenset(document.includes)
    sandbox = Sandbox(lambda name: document.text if name == own else include(name) if name in allowed else None)
    try:
        return _bounded(sandbox.get_template(own).generate(values), sandbox.check_time)
    except TemplateSyntaxError as error:
        raise TemplateError(f"{_place(document, error.name, error.lineno)}: {error.message}.") from None
    except TemplateNotFound as error:
        reason = f"`{error.name}` is not there, or is not named in `includes` of the front matter"
        raise TemplateError(f"{_failing_place(document, error)}: {reason}.") from None
    except (JinjaError, *_FORESEEN) as error:
        raise TemplateError(f"{_failing_place(document, error)}: {_reason(error)}.") from None


def _bounded(pieces: Iterable[str], check_time: Callable[[], None]) -> str:
    rendered: list[str] = []
    size = 0
    for piece in pieces:
        rendered.append(piece)
        size += len(piece)
        if size > MAX_RENDERED:
            raise ValueError(f"it renders to more than {MAX_RENDERED:,} characters")
        check_time()
    return "".join(rendered)


def _place(document: Document, name: str | None, line: int) -> str:
    own = str(document.id)
    if name in (None, own):
        return f"`{own}` cannot be rendered (line {line + document.first_line - 1})"
    return f"`{own}` cannot be rendered, because of `{name}` that it includes (line {line} of its text)"


def _failing_place(document: Document, error: BaseException) -> str:
    """Where a template was when it failed: its lines are the lines of the frames that carry its name."""
    names = {str(document.id), *document.includes}
    found = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in names
    ]
    return _place(document, *found[-1]) if found else f"`{document.id}` cannot be rendered"


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it includes itself, or is nested too deeply"
    return str(error).rstrip(".")[:300] or type(error).__name__


def _about(document: Document) -> dict[str, Any]:
    return {
        "id": str(document.id),
        "title": document.title,
        "tags": sorted(document.tags),
        "metadata": dict(document.metadata),
    }
