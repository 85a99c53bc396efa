"""Prompts and resources of upstream servers."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote

from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink, Text
from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError, ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.prompts import Complete, Prompt, PromptArgument, PromptMessage
from trysquare.core.resources import ListedExtras, Read, Resource, ResourceTemplate
from trysquare.core.threads import run_in_thread
from trysquare.core.toolset import Toolset
from trysquare.core.untrusted import cleaned_text, cleaned_value, folded
from trysquare.gateway.apps import is_page, page_address, page_of_server, served_page
from trysquare.gateway.definitions.registry import OfferKind
from trysquare.gateway.icons import read_icons
from trysquare.gateway.models import ServerConfig, upstream_name
from trysquare.gateway.results.present import RESOURCE, resource_contents
from trysquare.gateway.service import GatewayService

logger = logging.getLogger("trysquare.gateway")

SCHEME = "trysquare"
OF_SERVERS = f"{SCHEME}://gateway/servers/"
TEMPLATE = "uriTemplate"
_SCHEME_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """The addresses that one server lists, and the prefixes of its templates."""

    addresses: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def covers(self, address: str) -> bool:
        """Whether an address is listed or matches the prefix of a template."""
        return address in self.addresses or address.startswith(self.prefixes)

    def overlaps(self, prefix: str) -> bool:
        """Whether an address with this prefix may be the server's."""
        is_template = any(prefix.startswith(own) or own.startswith(prefix) for own in self.prefixes)
        return is_template or any(address.startswith(prefix) for address in self.addresses)


def prefix_of(template: str) -> str:
    """The literal prefix of every address of a template."""
    return template.partition("{")[0]


def may_claim(address: str) -> bool:
    """Whether an address or prefix can be a server's at all: it has a scheme, and not our reserved one."""
    return _SCHEME_PREFIX.match(address) is not None and not is_reserved(address)


def is_reserved(address: str) -> bool:
    """Whether an address has our scheme, however it is written."""
    scheme = address.strip().partition(":")[0].lower()
    return scheme == SCHEME or scheme.startswith(f"{SCHEME}+")


def address_at(server: str, address: str) -> str:
    """The address of a resource under the name of its server."""
    return f"{OF_SERVERS}{quote(server, safe='')}/{address}"


class Addresses:
    """The claims of all servers.

    Our scheme and the addresses of other providers are reserved. An address that two servers claim is served only
    under the names of those servers.
    """

    def __init__(self, claims: Mapping[str, Claims], own: Toolset | None = None) -> None:
        self._claims, self._own = claims, own
        templates = () if own is None else own.templates()
        self._of_others = Claims(prefixes=tuple(filter(None, (prefix_of(one.uri_template) for one in templates))))

    def is_ours(self, address: str) -> bool:
        """Whether an address cannot be a server's."""
        return is_reserved(address) or (self._own is not None and self._own.find_resource(address) is not None)

    def claimants(self, address: str) -> list[str]:
        return [server for server, claims in self._claims.items() if claims.covers(address)]

    def qualified(self, address: str) -> tuple[str, str] | None:
        """The server and its own address, for an address under the name of its server."""
        if (page := page_of_server(address)) is not None:
            claims = self._claims.get(page[0])
            return page if claims is not None and claims.covers(page[1]) else None
        for server, claims in self._claims.items():
            start = address_at(server, "")
            if address.startswith(start) and claims.covers(inner := address.removeprefix(start)):
                return server, inner
        return None

    def served(self, server: str, address: str) -> str:
        if is_page(address):
            return page_address(server, address)
        is_sole = not self.is_ours(address) and not [one for one in self.claimants(address) if one != server]
        return address if is_sole else address_at(server, address)

    def served_template(self, server: str, template: str) -> str:
        prefix = prefix_of(template)
        others = [claims for name, claims in self._claims.items() if name != server]
        is_sole = not any(claims.overlaps(prefix) for claims in (*others, self._of_others))
        return template if is_sole else address_at(server, template)


def messages_of(answer: JsonObject) -> Iterator[PromptMessage]:
    for part in map(as_object, as_list(cleaned_value(answer.get("messages")))):
        if (content := _block(as_object(part.get("content")))) is not None:
            yield PromptMessage(content=content, role="assistant" if part.get("role") == "assistant" else "user")


def _block(block: JsonObject) -> Content | None:
    match block.get("type"):
        case "text":
            return Text(text=get_str(block, "text"))
        case "image" | "audio" as kind:
            make = Image if kind == "image" else Audio
            return make(data=get_str(block, "data"), mime_type=get_str(block, "mimeType"))
        case "resource":
            return _contents(as_object(block.get("resource")))
        case "resource_link":
            return ResourceLink(
                uri=get_str(block, "uri"),
                name=get_str(block, "name"),
                mime_type=get_str_or_none(block, "mimeType"),
                description=get_str_or_none(block, "description"),
            )
        case _:
            return None


def _contents(part: JsonObject) -> ResourceContents:
    uri, mime_type, blob = get_str(part, "uri"), get_str_or_none(part, "mimeType"), part.get("blob")
    if isinstance(blob, str):
        return ResourceContents(uri=uri, mime_type=mime_type, blob=blob)
    return ResourceContents(uri=uri, mime_type=mime_type, text=get_str(part, "text"))


def get_str_or_none(part: JsonObject, name: str) -> str | None:
    value = part.get(name)
    return value if isinstance(value, str) else None


def get_str(part: JsonObject, name: str) -> str:
    return get_str_or_none(part, name) or ""


class UpstreamOffers:
    """Prompts, resources and templates of the servers, from the registry."""

    def __init__(self, servers: GatewayService) -> None:
        self._servers = servers
        self._catalogue = servers.registry
        self.addresses = Addresses({})
        self._servers_by_name: dict[str, ServerConfig] = {}

    def prompts(self, server: ServerConfig) -> Iterator[Prompt]:
        """The prompts of a server, named like its tools."""
        for entry in self._catalogue.offer(server.name, "prompts"):
            if name := get_str_or_none(entry, "name"):
                yield self._prompt(server, name, entry)

    def use_addresses(self, servers: Sequence[ServerConfig], own: Toolset | None) -> None:
        claims = {
            server.name: Claims(
                addresses=frozenset(
                    filter(may_claim, [*self._entries(server.name, "resources", "uri"), *self._pages(server)])
                ),
                prefixes=tuple(filter(may_claim, map(prefix_of, self._entries(server.name, "templates", TEMPLATE)))),
            )
            for server in servers
        }
        self.addresses = Addresses(claims, own)
        self._servers_by_name = {server.name: server for server in servers}

    def _pages(self, server: ServerConfig) -> Iterator[str]:
        """The pages that tools name: a server need not list them."""
        for one in self._servers.known(server) or ():
            if "resourceUri" in one.page:
                yield one.page["resourceUri"]

    def resources(self, server: ServerConfig) -> Iterator[Resource]:
        for uri, entry in self._entries(server.name, "resources", "uri").items():
            if may_claim(uri):
                yield self._resource(server, uri, entry)

    def templates(self, server: ServerConfig) -> Iterator[ResourceTemplate]:
        for template, entry in self._entries(server.name, "templates", TEMPLATE).items():
            if may_claim(prefix_of(template)):
                try:
                    yield self._template(server, template, entry)
                except DeclarationError as error:
                    logger.warning("template ignored: server=%s: %s", server.name, error)

    def find(self, uri: str) -> Resource | None:
        """The resource at an address, read only from the server that claims it."""
        if (qualified := self.addresses.qualified(uri)) is not None:
            return self._at(*qualified)
        if self.addresses.is_ours(uri) or is_page(uri):
            # A page is served under the name of its server only.
            return None
        claimants = self.addresses.claimants(uri)
        if len(claimants) > 1:
            return _ambiguous(uri, claimants)
        return self._at(claimants[0], uri) if claimants else None

    def _at(self, server: str, uri: str) -> Resource:
        """A resource of a server by its own address: from the list, else from a template with its prefix."""
        templates = self._entries(server, "templates", TEMPLATE).items()
        of_template = (entry for template, entry in templates if uri.startswith(prefix_of(template)))
        entry = self._entries(server, "resources", "uri").get(uri) or next(of_template, JsonObject())
        return self._resource(self._servers_by_name[server], uri, entry)

    def _entries(self, server: str, kind: OfferKind, key: str) -> dict[str, JsonObject]:
        """The entries of a list by their address; of two with the same, the first."""
        found: dict[str, JsonObject] = {}
        for entry in self._catalogue.offer(server, kind):
            found.setdefault(get_str(entry, key), entry)
        return found

    def _resource(self, server: ServerConfig, uri: str, entry: JsonObject) -> Resource:
        size = entry.get("size")
        return Resource(
            uri=self.addresses.served(server.name, uri),
            name=get_str_or_none(entry, "name") or uri,
            read=self._reader(server),
            title=f"Page of the server {server.name}" if is_page(uri) else _title(entry),
            description=get_str_or_none(entry, "description"),
            mime_type=get_str_or_none(entry, "mimeType"),
            size=size if isinstance(size, int) else None,
            follow=partial(self._servers.subscribe_resource, server, uri),
            extra=ListedExtras(icons=read_icons(entry.get("icons"))),
        )

    def stored_results(self) -> ResourceTemplate:
        """Spilled results as resources, each readable by its caller only."""

        async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            results, owner = self._servers.results, context.principal.subject
            return [await run_in_thread(lambda: resource_contents(results, values["handle"], principal=owner))]

        return ResourceTemplate(
            uri_template=f"{RESOURCE}{{handle}}",
            name="gateway-result",
            title="Large result of an MCP server",
            description="The complete result of a call through the gateway that was too large to return",
            read=read,
        )

    def _prompt(self, server: ServerConfig, name: str, entry: JsonObject) -> Prompt:
        async def render(given: dict[str, str], context: CallContext) -> Sequence[PromptMessage]:
            params = {"name": name, "arguments": given}
            return tuple(messages_of(await self._servers.request(server, "prompts/get", params, context, about=name)))

        return Prompt(
            name=upstream_name(server, name),
            title=_title(entry),
            description=get_str_or_none(entry, "description") or "",
            arguments=tuple(
                PromptArgument(
                    name=get_str(one, "name"),
                    description=get_str_or_none(one, "description"),
                    required=one.get("required") is True,
                )
                for one in map(as_object, as_list(entry.get("arguments")))
            ),
            render=render,
            icons=read_icons(entry.get("icons")),
            complete=self._completer(server, {"type": "ref/prompt", "name": name}),
        )

    def _template(self, server: ServerConfig, template: str, entry: JsonObject) -> ResourceTemplate:
        return ResourceTemplate(
            uri_template=self.addresses.served_template(server.name, template),
            name=get_str_or_none(entry, "name") or template,
            read=self._reader(server),
            title=_title(entry),
            description=get_str_or_none(entry, "description"),
            mime_type=get_str_or_none(entry, "mimeType"),
            complete=self._completer(server, {"type": "ref/resource", "uri": template}),
            follow=lambda uri: self._servers.subscribe_resource(server, self._inner(uri)),
            extra=ListedExtras(icons=read_icons(entry.get("icons"))),
        )

    def _inner(self, uri: str) -> str:
        """The server's own address of a served one."""
        qualified = self.addresses.qualified(uri)
        return uri if qualified is None else qualified[1]

    def _reader(self, server: ServerConfig) -> Read:
        async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            inner = self._inner(uri)
            answer = await self._servers.request(server, "resources/read", {"uri": inner}, context, about=inner)
            if is_page(inner):
                tools, resources = self._servers.known(server) or (), address_at(server.name, "")
                parts = map(as_object, as_list(cleaned_value(answer.get("contents")))[:1])
                return [served_page(server, inner, part, tools, resources) for part in parts]
            found = [_contents(as_object(part)) for part in as_list(cleaned_value(answer.get("contents")))]
            # Embedded contents must not pass for those of another server either.
            return [replace(one, uri=self.addresses.served(server.name, one.uri)) for one in found]

        return read

    def _completer(self, server: ServerConfig, reference: JsonObject) -> Complete:
        async def complete(argument: str, typed: str, others: dict[str, str]) -> Sequence[str]:
            params: JsonObject = {"ref": reference, "argument": {"name": argument, "value": typed}}
            if others:
                params["context"] = {"arguments": others}
            answer = await self._servers.request(server, "completion/complete", params)
            values = as_list(as_object(answer.get("completion")).get("values"))
            return [cleaned_text(value) for value in values if isinstance(value, str)]

        return complete


def _ambiguous(uri: str, claimants: Sequence[str]) -> Resource:
    """A resource that several servers claim: it is read from none of them, and returns the address of each."""
    addresses = [address_at(server, uri) for server in claimants]

    async def read(address: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        raise ToolError(
            f"`{uri[:200]}` is ambiguous: {', '.join(f'`{one}`' for one in claimants)} list it.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Read one of `addresses`.",
            fields={"addresses": addresses},
        )

    return Resource(uri=uri, name=uri, read=read)


def _title(entry: JsonObject) -> str | None:
    title = get_str_or_none(entry, "title")
    return None if title is None else folded(title)
