"""Resources, resource templates and skills, which a client reads by their addresses."""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError
from trysquare.core.json import JsonObject
from trysquare.core.prompts import Complete
from trysquare.core.result import ResourceContents, dump_json, jsonable
from trysquare.core.signature import context_parameter, function_name
from trysquare.core.text import encodable
from trysquare.core.tool import run_function


@dataclass(frozen=True, kw_only=True, slots=True)
class SkillFile:
    """One file of a skill, with the digest and the size of exactly what is read at its address."""

    uri: str
    digest: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Skill:
    """The listing of a skill: its front matter, and all its files."""

    frontmatter: JsonObject
    files: tuple[SkillFile, ...]


Read: TypeAlias = Callable[[str, dict[str, str], CallContext], Awaitable[Sequence[ResourceContents]]]
"""Read an address: the address, the template's values in it, the context."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """Content at one URI."""

    uri: str
    name: str
    read: Read
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    skill: Skill | None = None
    """Set on the resource that opens a skill, its `SKILL.md`."""
    follow: Callable[[], None] | None = None
    """Called when a client subscribes, where the provider has to watch for changes."""


@dataclass(frozen=True, kw_only=True)
class ResourceTemplate:
    """URIs of one form: `{name}` matches one segment, `{name*}` the rest of a path."""

    uri_template: str
    name: str
    read: Read
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    complete: Complete | None = field(default=None)
    follow: Callable[[str], None] | None = None
    """As `follow` of a resource, for an address of this form."""

    def __post_init__(self) -> None:
        names = self.parameters
        if len(set(names)) != len(names):
            raise DeclarationError(f"`{self.uri_template}` names a part twice. Give each part a name of its own.")

    @property
    def parameters(self) -> list[str]:
        """The names of the parts in braces."""
        return re.findall(r"\{(\w+)\*?\}", self.uri_template)

    def resource(self, uri: str, values: dict[str, str]) -> Resource:
        """The resource at one address of this form. Reading it needs no values: it brings them itself."""

        async def read(address: str, more: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            return await self.read(address, {**values, **more}, context)

        return Resource(
            uri=uri,
            name=self.name,
            read=read,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
            follow=None if self.follow is None else partial(self.follow, uri),
        )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)(\*?)\}", self.uri_template)
        text = re.escape(parts[0])
        for name, rest, literal in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            text += f"(?P<{name}>{'.+' if rest else '[^/]+'})" + re.escape(literal)
        return re.compile(text)

    def match(self, uri: str) -> dict[str, str] | None:
        """The values in an address of this form, or None."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}


def resource(
    function: Callable[..., Any],
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    complete: Complete | None = None,
) -> Resource | ResourceTemplate:
    """Make a resource of a function, or a template where the address has parts in braces."""
    label = name or function_name(function)
    about = description or inspect.getdoc(function)
    read = _reading(function, mime_type)
    template = ResourceTemplate(
        uri_template=uri, name=label, read=read, title=title, description=about, mime_type=mime_type, complete=complete
    )
    _require_parameters(function, uri, template.parameters)
    if "{" in uri:
        return template
    return Resource(uri=uri, name=label, read=read, title=title, description=about, mime_type=mime_type)


def _require_parameters(function: Callable[..., Any], uri: str, parts: list[str]) -> None:
    """The parts of the URI and the parameters of the function must be the same."""
    context = context_parameter(function)
    parameters = {name: each for name, each in inspect.signature(function).parameters.items() if name != context}
    needed = [name for name, each in parameters.items() if each.default is inspect.Parameter.empty]
    if all(name in parameters for name in parts) and all(name in parts for name in needed):
        return
    raise DeclarationError(
        f"`{function_name(function)}` takes {', '.join(f'`{name}`' for name in parameters) or 'nothing'}, "
        f"and its address `{uri}` gives {', '.join(f'`{name}`' for name in parts) or 'nothing'}. Make them the same."
    )


def _reading(function: Callable[..., Any], mime_type: str | None) -> Read:
    context_name = context_parameter(function)
    is_async = inspect.iscoroutinefunction(function)

    async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        bound: dict[str, Any] = dict(values)
        if context_name is not None:
            bound[context_name] = context
        return _as_contents(uri, mime_type, await run_function(function, bound, context, is_async=is_async))

    return read


def _as_contents(uri: str, mime_type: str | None, returned: Any) -> Sequence[ResourceContents]:
    if isinstance(returned, ResourceContents):
        return (returned,)
    if isinstance(returned, str):
        return (ResourceContents(uri=uri, mime_type=mime_type or "text/plain", text=encodable(returned)),)
    if isinstance(returned, bytes):
        blob = base64.b64encode(returned).decode()
        return (ResourceContents(uri=uri, mime_type=mime_type or "application/octet-stream", blob=blob),)
    if isinstance(returned, (list, tuple)) and returned:
        parts = cast(Sequence[Any], returned)
        if all(isinstance(part, ResourceContents) for part in parts):
            return tuple(parts)
    text = dump_json(jsonable(returned))
    return (ResourceContents(uri=uri, mime_type=mime_type or "application/json", text=text),)
