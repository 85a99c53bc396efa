"""Resources, resource templates and skills, which a client reads by their addresses."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qsl, unquote

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.docstrings import read_docstring
from trysquare.core.errors import DeclarationError
from trysquare.core.hints import declaring, docstring_of, function_name
from trysquare.core.injection import ValueSources
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Icon
from trysquare.core.prompts import Complete, parse_strings
from trysquare.core.result import dump_json, jsonable
from trysquare.core.signature import Signature, inspect_signature
from trysquare.core.text import encodable
from trysquare.core.tool import function_runner

RESOURCES_SCOPE = "resources"
"""The scope that a scoped token needs for resources, which belong to no toolset."""


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
class ListedExtras:
    """What else is listed of a resource."""

    icons: tuple[Icon, ...] = ()
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """For whom it is and how important: `{"audience": ["user"], "priority": 0.8}`."""
    tags: frozenset[str] = frozenset()
    """Words to choose by, as a tool has them."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


NO_EXTRAS = ListedExtras()


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
    extra: ListedExtras = NO_EXTRAS


_PART = re.compile(r"\{(\+?)([A-Za-z_]\w*)(\*?)\}", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S", re.ASCII)
_QUERY = re.compile(r"\{\?([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)\}$", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ResourceTemplate:
    """URIs of one form (RFC 6570): `{name}` matches one segment, `{name*}` and `{+name}` the rest of a path, and
    `{?a,b}` a query that may have these names."""

    uri_template: str
    name: str
    read: Read
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    complete: Complete | None = field(default=None)
    follow: Callable[[str], None] | None = None
    """As `follow` of a resource, for an address of this form."""
    extra: ListedExtras = NO_EXTRAS

    def __post_init__(self) -> None:
        names = self.parameters
        if len(set(names)) != len(names):
            raise DeclarationError(f"`{self.uri_template}` names a part twice. Give each part a name of its own.")

    @property
    def parameters(self) -> list[str]:
        """The names of the parts in braces."""
        return [found[2] for found in _PART.finditer(self._path)] + self.query

    @property
    def query(self) -> list[str]:
        """The names that the query of an address may have."""
        found = _QUERY.search(self.uri_template)
        return [] if found is None else found[1].split(",")

    @property
    def unsupported(self) -> str | None:
        """A part in braces that is none of the supported ones, so that it matches itself only."""
        rest = _PART.sub("", self._path)
        return next((rest[at:] for at, sign in enumerate(rest) if sign in "{}"), None)

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
            extra=self.extra,
        )

    @property
    def _path(self) -> str:
        """The template without its query."""
        return _QUERY.sub("", self.uri_template)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = _PART.split(self._path)
        text = re.escape(parts[0])
        for reserved, name, rest, literal in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True):
            text += f"(?P<{name}>{'.+' if reserved or rest else '[^/]+'})" + re.escape(literal)
        return re.compile(text)

    def match(self, uri: str) -> dict[str, str] | None:
        """The values in an address of this form, or None."""
        names = self.query
        path, _, query = uri.partition("?") if names else (uri, "", "")
        found = self._pattern.fullmatch(path)
        given = dict(parse_qsl(query, keep_blank_values=True))
        if found is None or not given.keys() <= set(names):
            return None
        return {name: unquote(value) for name, value in found.groupdict().items()} | given


def resource(
    function: Callable[..., Any],
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    complete: Complete | None = None,
    extra: ListedExtras = NO_EXTRAS,
    values: ValueSources | None = None,
) -> Resource | ResourceTemplate:
    """Make a resource of a function, or a template where the address has parts in braces."""
    label = name or function_name(function)
    about = description or read_docstring(docstring_of(function)).prose or None

    async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        return _as_contents(uri, mime_type, await run(parse_strings(signature, label, values), context))

    with declaring(function):
        template = ResourceTemplate(
            uri_template=uri,
            name=label,
            read=read,
            title=title,
            description=about,
            mime_type=mime_type,
            complete=complete,
            extra=extra,
        )
        signature = inspect_signature(function, values)
        _require_parameters(function, signature, template)
    run = function_runner(function, signature)
    if "{" in uri:
        return template
    return Resource(uri=uri, name=label, read=read, title=title, description=about, mime_type=mime_type, extra=extra)


def _require_parameters(function: Callable[..., Any], signature: Signature, template: ResourceTemplate) -> None:
    """The address must be a URI, and its parts and the parameters of the function the same."""
    uri, parts, schema = template.uri_template, template.parameters, signature.arguments.wire
    if _SCHEME.match(uri) is None:
        raise DeclarationError(
            f"`{uri}` is not a URI: it has no scheme. Write one in front, such as `notes://{uri.strip('/ ')}`."
        )
    if template.unsupported is not None:
        raise DeclarationError(
            f"`{template.unsupported}` in `{uri}` matches nothing. Write `{{name}}` for one segment, `{{name*}}` for "
            "the rest of a path, and `{?a,b}` at the end for a query."
        )
    parameters, needed = list(schema["properties"]), cast(list[str], schema.get("required", []))
    if asked := [name for name in needed if name in template.query]:
        raise DeclarationError(
            f"An address may leave out its query, and `{function_name(function)}` needs `{asked[0]}`. "
            "Give it a default."
        )
    if all(name in parameters for name in parts) and all(name in parts for name in needed):
        return
    raise DeclarationError(
        f"`{function_name(function)}` takes {', '.join(f'`{name}`' for name in parameters) or 'nothing'}, "
        f"and its address `{uri}` gives {', '.join(f'`{name}`' for name in parts) or 'nothing'}. Make them the same."
    )


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
