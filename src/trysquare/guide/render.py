"""Render: a document's text as it is delivered. Only documents that say `template: true` are templates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.guide.document import Document
from trysquare.guide.flags import FlagValue

MAX_RENDERED = 1_000_000
MAX_SECONDS = 2.0

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
    return _render_template(document, {"flags": dict(flags), "document": _about(document), **(values or {})}, include)


def _render_template(document: Document, values: Mapping[str, Any], include: Include) -> str:
    try:
        from jinja2 import TemplateError as JinjaError
        from jinja2 import TemplateSyntaxError
    except ImportError:
        raise ConfigurationError(
            "Templates need Jinja2.", hint="Install it with: pip install 'trysquare[guide]'"
        ) from None
    try:
        template = _environment(document, include).from_string(document.text)
        return _bounded(document, template.generate(values))
    except TemplateSyntaxError as error:
        raise TemplateError(f"`{document.id}` is no template (line {error.lineno}): {error.message}.") from None
    except (JinjaError, ArithmeticError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise TemplateError(f"`{document.id}` cannot be rendered: {error}.") from None


def _environment(document: Document, include: Include) -> Any:
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    allowed = frozenset(document.includes)
    environment = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(lambda name: include(name) if name in allowed else None),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    # What could make a short template run long or large is not there.
    for name in ("range", "lipsum", "cycler", "joiner", "namespace", "dict"):
        environment.globals.pop(name, None)
    return environment


def _bounded(document: Document, pieces: Any) -> str:
    end = time.monotonic() + MAX_SECONDS
    rendered: list[str] = []
    size = 0
    for piece in pieces:
        rendered.append(piece)
        size += len(piece)
        if size > MAX_RENDERED or time.monotonic() > end:
            raise TemplateError(f"`{document.id}` renders to too much, or for too long.")
    return "".join(rendered)


def _about(document: Document) -> dict[str, Any]:
    return {
        "id": str(document.id),
        "title": document.title,
        "tags": sorted(document.tags),
        "metadata": dict(document.metadata),
    }
